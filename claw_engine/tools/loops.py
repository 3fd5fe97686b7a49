"""Notices a model that makes the same calls again and again without getting further.

Thresholds, signatures and the order of checks: OpenClaw 2026.2.26 (gateway digest §6.3). Off unless
switched on. `examine` is pure; `LoopGuard` keeps the history of each session.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from claw_engine.tools.base import ToolResult

if TYPE_CHECKING:
    from claw_engine.config.sections.toolpolicy import LoopSettings

Detector = Literal[
    "global_circuit_breaker", "known_poll_no_progress", "ping_pong", "generic_repeat"
]
BUCKET = 10
"""A warning is said once for every ten calls."""
_KEPT_SESSIONS = 256
_POLLS = frozenset({"poll", "log"})
_POLL_FIELDS = ("status", "exitCode", "exitSignal", "aggregated", "tail")
_LOG_FIELDS = ("status", "totalLines", "totalChars", "truncated", "exitCode", "exitSignal")
_TIMES = frozenset({"durationMs", "startedAt"})
"""Fields that differ from call to call although nothing else does (OpenClaw compares them too,
so that it never sees a repeated command as one without progress)."""


class LoopRules(Struct, frozen=True):
    """Thresholds count calls; each is above the one before it."""

    enabled: bool = False
    history: int = 30
    warning: int = 10
    critical: int = 20
    breaker: int = 30
    generic_repeat: bool = True
    poll: bool = True
    ping_pong: bool = True


class Seen(Struct):
    """A call that was made. `outcome` is the hash of its result, None while it runs."""

    tool: str
    signature: str
    call_id: str
    outcome: str | None = None


class Finding(Struct, frozen=True):
    """A loop: `blocks` says whether the call must not be made; `key` tells warnings apart."""

    detector: Detector
    count: int
    blocks: bool
    text: str
    key: str


def rules_of(shared: LoopSettings, own: LoopSettings | None = None) -> LoopRules:
    """The agent's values over the shared ones over the defaults; thresholds made ascending."""
    layers = [layer for layer in (own, shared) if layer is not None]

    def pick(name: str, default: int) -> int:
        found = (getattr(layer, name) for layer in layers)
        return next((value for value in found if isinstance(value, int)), default)

    def on(name: str) -> bool:
        found = (getattr(layer.detectors, name) for layer in layers)
        return next((value for value in found if isinstance(value, bool)), True)

    warning = pick("warning_threshold", 10)
    critical = max(pick("critical_threshold", 20), warning + 1)
    breaker = max(pick("global_circuit_breaker_threshold", 30), critical + 1)
    return LoopRules(
        enabled=bool(pick("enabled", 0)),
        history=pick("history_size", 30),
        warning=warning,
        critical=critical,
        breaker=breaker,
        generic_repeat=on("generic_repeat"),
        poll=on("known_poll_no_progress"),
        ping_pong=on("ping_pong"),
    )


def signature(tool: str, args: Mapping[str, object]) -> str:
    """The same for the same call, whatever the order of its arguments."""
    return f"{tool}:{_hash(args)}"


def outcome(tool: str, args: Mapping[str, object], result: ToolResult) -> str:
    """A hash of what came back; of polls only what says whether something moved."""
    if result.is_error:
        return f"error:{_hash(result.text)}"
    details = result.details or {}
    if is_poll(tool, args) and tool == "process":
        fields = _POLL_FIELDS if args.get("action") == "poll" else _LOG_FIELDS
        # The text of a poll suggests when to look again, and that grows by itself.
        text = result.text.partition("\n\n")[0] if args.get("action") == "poll" else result.text
        return _hash([{name: details.get(name) for name in fields}, text])
    return _hash([{k: v for k, v in details.items() if k not in _TIMES}, result.text])


def is_poll(tool: str, args: Mapping[str, object]) -> bool:
    """Calls that are meant to be repeated while something goes on."""
    return tool == "command_status" or (tool == "process" and args.get("action") in _POLLS)


def examine(
    rules: LoopRules, seen: Sequence[Seen], tool: str, args: Mapping[str, object]
) -> Finding | None:
    """What is to be said about the next call, given the calls before it. Pure."""
    if not rules.enabled:
        return None
    now = signature(tool, args)
    streak = _streak(seen, now)
    if streak >= rules.breaker:
        text = f"{tool} was called {streak} times with the same arguments and the same result"
        return _finding("global_circuit_breaker", streak, True, text, now)
    poll = is_poll(tool, args)
    if poll and rules.poll and streak >= rules.warning:
        text = f"{tool} was asked {streak} times and nothing changed"
        return _finding("known_poll_no_progress", streak, streak >= rules.critical, text, now)
    if rules.ping_pong:
        count, other, stuck = _ping_pong(seen, now)
        if count >= rules.warning:
            text = f"two calls took turns {count} times" + (" and nothing changed" * stuck)
            blocks = stuck and count >= rules.critical
            return _finding("ping_pong", count, blocks, text, "|".join(sorted((now, other))))
    if rules.generic_repeat and not poll:
        count = sum(call.signature == now for call in seen)
        if count >= rules.warning:
            text = f"{tool} was called {count} times with the same arguments"
            return _finding("generic_repeat", count, False, text, now)
    return None


def _finding(detector: Detector, count: int, blocks: bool, text: str, key: str) -> Finding:
    return Finding(detector, count, blocks, text, f"{detector}:{key}")


def _streak(seen: Sequence[Seen], now: str) -> int:
    """How often this very call came back with one and the same result, newest first."""
    last: str | None = None
    count = 0
    for call in reversed(seen):
        if call.signature != now or call.outcome is None:
            continue
        if last is not None and call.outcome != last:
            break
        last = call.outcome
        count += 1
    return count


def _ping_pong(seen: Sequence[Seen], now: str) -> tuple[int, str, bool]:
    """Length of the alternation that this call would go on with, its other half, and whether
    either half always had the same result."""
    if not seen or seen[-1].signature == now:
        return 0, "", False
    other = seen[-1].signature
    tail: list[Seen] = []
    wanted = other
    for call in reversed(seen):
        if call.signature != wanted:
            break
        tail.append(call)
        wanted = now if wanted == other else other
    if len(tail) < 2:
        return 0, other, False
    results = [{c.outcome for c in tail if c.signature == half} for half in (now, other)]
    stuck = all(len(found) == 1 and None not in found for found in results)
    return len(tail) + 1, other, stuck


class LoopGuard:
    """The histories of all sessions; loop thread only. Old sessions are forgotten first."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, deque[Seen]] = OrderedDict()
        self._said: OrderedDict[tuple[str, str], int] = OrderedDict()

    def before(
        self, session: str, rules: LoopRules, tool: str, args: Mapping[str, object], call_id: str
    ) -> Finding | None:
        """A finding the operator has not been told of in this form yet, or one that blocks.

        A call that is not blocked enters the history.
        """
        if not rules.enabled:
            return None
        seen = self._history(session, rules.history)
        found = examine(rules, seen, tool, args)
        if found is not None and found.blocks:
            return found
        seen.append(Seen(tool, signature(tool, args), call_id))
        return found if found is not None and self._news(session, found) else None

    def after(
        self, session: str, tool: str, args: Mapping[str, object], call_id: str, result: ToolResult
    ) -> None:
        """Note the outcome of a call that entered the history."""
        for call in reversed(self._sessions.get(session, ())):
            if call.call_id == call_id and call.tool == tool and call.outcome is None:
                call.outcome = outcome(tool, args, result)
                return

    def _history(self, session: str, size: int) -> deque[Seen]:
        seen = self._sessions.get(session)
        if seen is None or seen.maxlen != size:
            seen = self._sessions[session] = deque(seen or (), maxlen=size)
        self._sessions.move_to_end(session)
        if len(self._sessions) > _KEPT_SESSIONS:
            self._sessions.popitem(last=False)
        return seen

    def _news(self, session: str, found: Finding) -> bool:
        key, bucket = (session, found.key), found.count // BUCKET
        if self._said.get(key, -1) >= bucket:
            return False
        self._said[key] = bucket
        if len(self._said) > _KEPT_SESSIONS:
            self._said.popitem(last=False)
        return True


def _hash(value: object) -> str:
    text = json.dumps(value, sort_keys=True, default=str, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
