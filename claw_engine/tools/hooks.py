"""Code that looks at tool calls before and after: may block one, rewrite its arguments or result.

One registry, ordered by priority, then by registration. A hook that fails or takes too long never
breaks the run: it is passed over (or, if it asked for that, counts as a refusal), and either is
told. Knows no plugin and no particular tool; whoever rewrites is checked again by the caller.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from claw_engine.tools.base import ToolResult
from claw_engine.world import Clock

log = logging.getLogger("claw.hooks")

TIMEOUT_S = 5.0
"""How long one hook may take over one call, in seconds."""


class CallEvent(Struct, frozen=True):
    """A call that is about to be made. `params` were validated."""

    tool: str
    params: Mapping[str, object]
    agent_id: str
    session_key: str
    run_id: str
    call_id: str


class ResultEvent(Struct, frozen=True):
    """A call that was made, and what came back; `duration_ms` with waits for the operator."""

    call: CallEvent
    result: ToolResult
    duration_ms: int


class Before(Struct, frozen=True):
    """What a hook wants of a call: nothing, other arguments, or that it is not made."""

    params: Mapping[str, object] | None = None
    block: bool = False
    reason: str = ""


class After(Struct, frozen=True):
    """What a hook wants of a result: nothing, or another one."""

    result: ToolResult | None = None


BeforeHook = Callable[[CallEvent], Awaitable[Before | None]]
AfterHook = Callable[[ResultEvent], Awaitable[After | None]]


class Action(Struct, frozen=True):
    """Something a hook did or failed to do, for the operator."""

    hook: str
    kind: Literal["blocked", "rewrote arguments", "rewrote result", "failed", "timed out"]
    text: str

    def sentence(self, tool: str) -> str:
        said = f": {self.text}" if self.text else "."
        return f"Hook {self.hook} {self.kind} at {tool}{said}"


Tell = Callable[[Action], None]

H = TypeVar("H")
E = TypeVar("E")
A = TypeVar("A")


class _Entry(Struct, Generic[H]):
    name: str
    hook: H
    priority: int
    timeout_s: float
    blocks_on_failure: bool
    order: int


class ToolHooks:
    """The registry and its runner; loop thread only."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._before: list[_Entry[BeforeHook]] = []
        self._after: list[_Entry[AfterHook]] = []
        self._count = 0

    def __bool__(self) -> bool:
        return bool(self._before or self._after)

    def on_before(
        self,
        name: str,
        hook: BeforeHook,
        *,
        priority: int = 0,
        timeout_s: float = TIMEOUT_S,
        blocks_on_failure: bool = False,
    ) -> Callable[[], None]:
        """Register; higher priority goes first. Returns what takes it out again.

        `blocks_on_failure`: a call that the hook could not look at is not made.
        """
        entry = self._entry(name, hook, priority, timeout_s, blocks_on_failure)
        return _insert(self._before, entry)

    def on_after(
        self, name: str, hook: AfterHook, *, priority: int = 0, timeout_s: float = TIMEOUT_S
    ) -> Callable[[], None]:
        """Register; higher priority goes first. Returns what takes it out again."""
        return _insert(self._after, self._entry(name, hook, priority, timeout_s, False))

    async def before(self, event: CallEvent, tell: Tell) -> Before:
        """Ask all hooks in order; each sees what the one before it made of the arguments.

        The first to block ends it. Raises nothing but CancelledError.
        """
        changed = False
        for entry in tuple(self._before):
            answer, failure = await self._ask(entry, entry.hook, event, Before, tell)
            if failure and entry.blocks_on_failure:
                return Before(block=True, reason=f"{entry.name} could not look at it ({failure})")
            if answer is None:
                continue
            if answer.block:
                reason = answer.reason.strip() or "no reason given"
                tell(Action(entry.name, "blocked", reason))
                return Before(block=True, reason=f"{reason} (hook {entry.name})")
            if answer.params is not None and dict(answer.params) != dict(event.params):
                tell(Action(entry.name, "rewrote arguments", _changes(event.params, answer.params)))
                event, changed = replace(event, params=dict(answer.params)), True
        return Before(params=event.params if changed else None)

    async def after(self, event: ResultEvent, tell: Tell) -> ToolResult:
        """Show all hooks the result in order; returns the one that counts. Raises as `before`."""
        for entry in tuple(self._after):
            answer, _ = await self._ask(entry, entry.hook, event, After, tell)
            if answer is not None and answer.result is not None and answer.result != event.result:
                tell(Action(entry.name, "rewrote result", _sizes(event.result, answer.result)))
                event = replace(event, result=answer.result)
        return event.result

    def _entry(
        self, name: str, hook: H, priority: int, timeout_s: float, blocks: bool
    ) -> _Entry[H]:
        self._count += 1
        return _Entry(name, hook, priority, timeout_s, blocks, self._count)

    async def _ask(
        self, entry: _Entry[H], hook: Callable[[E], Awaitable[A | None]], event: E,
        kind: type[A], tell: Tell,
    ) -> tuple[A | None, str]:  # fmt: skip
        """The hook's answer, or why there is none."""
        work = asyncio.ensure_future(_call(hook, event))
        limit = asyncio.ensure_future(self._clock.sleep(entry.timeout_s))
        try:
            await asyncio.wait({work, limit}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                text = f"no answer within {entry.timeout_s:g} s"
                tell(Action(entry.name, "timed out", text))
                return None, text
            answer = work.result()
            if answer is not None and not isinstance(answer, kind):
                raise TypeError(f"answered with {type(answer).__name__}, not {kind.__name__}")
            return answer, ""
        except asyncio.CancelledError:
            if work.cancelled():  # the hook gave up by itself: its failure, not the run's end
                tell(Action(entry.name, "failed", "it cancelled itself"))
                return None, "it cancelled itself"
            raise
        except Exception as error:
            log.exception("hook failed: hook=%s", entry.name)
            text = f"{type(error).__name__}: {error}"
            tell(Action(entry.name, "failed", text))
            return None, text
        finally:
            limit.cancel()
            work.cancel()


async def _call(hook: Callable[[E], Awaitable[A | None]], event: E) -> A | None:
    return await hook(event)


def _insert(entries: list[_Entry[H]], entry: _Entry[H]) -> Callable[[], None]:
    entries.append(entry)
    entries.sort(key=lambda one: (-one.priority, one.order))

    def remove() -> None:
        if entry in entries:
            entries.remove(entry)

    return remove


def _changes(before: Mapping[str, object], after: Mapping[str, object]) -> str:
    """Which arguments differ, shortened."""
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    shown = [f"{name}: {_short(before.get(name))} -> {_short(after.get(name))}" for name in names]
    return "; ".join(shown[:5]) + ("; …" if len(shown) > 5 else "")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:119]}…"


def _sizes(before: ToolResult, after: ToolResult) -> str:
    flags = f", error {before.is_error} -> {after.is_error}" * (before.is_error != after.is_error)
    return f"{len(before.text)} -> {len(after.text)} characters{flags}"
