"""A recorded request as the prompt view reads it: its call, its parts, what grew. Values only;
knows neither widgets nor the engine."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from claw_tui.store.wire import Json, flag, maybe_num, num, obj, objs, text

ENVELOPE = "envelope"
"""The kind of what belongs to no part: keys, punctuation, parameters."""
GROUPS = {
    "section": "system",
    "tool": "tools",
    "file": "files",
    "skill": "skills",
    "user": "talk",
    "assistant": "talk",
    "reasoning": "talk",
    "tool_call": "talk",
    "tool_result": "results",
}
"""What the bar calls a kind of part; kinds that are not here stand under their own name."""
KINDS = {"tool_result": "result", "tool_call": "call", "assistant": "claw", "reasoning": "think"}
"""The names of kinds in a row, where they are not the engine's own."""
FILES = ("file", "skill")
"""Kinds whose source is a file."""

_NUMBER = re.compile(r"(\d+)(?:@\d+)?$")


class Usage(Struct, frozen=True):
    """Tokens as the provider counted them; `input` leaves out what came from its cache."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    @property
    def sent(self) -> int:
        return self.input + self.cache_read + self.cache_write


class CallInfo(Struct, frozen=True):
    """One call to a model. Times in ms since the epoch, spans in ms."""

    id: str
    run_id: str = ""
    session: str = ""
    seq: int = 0
    cause: str = ""
    model: str = ""
    status: str = ""
    error: str = ""
    started_ms: int = 0
    first_token_ms: int | None = None
    ended_ms: int | None = None
    queue_ms: int = 0
    parked_ms: int = 0
    body_bytes: int = 0
    estimated: int = 0
    tokens: int = 0
    measured: bool = False
    usage: Usage | None = None
    cost: float | None = None

    @property
    def number(self) -> int:
        """Which call of its run it is, from 1."""
        found = _NUMBER.search(self.id)
        return int(found[1]) if found else self.seq

    @property
    def duration_ms(self) -> int | None:
        return None if self.ended_ms is None else max(0, self.ended_ms - self.started_ms)

    @property
    def wait_ms(self) -> int | None:
        """From the start of the call to its first token."""
        first = self.first_token_ms
        return None if first is None else max(0, first - self.started_ms)


class PartInfo(Struct, frozen=True):
    """One part of a request; sizes are those of the original."""

    id: str
    kind: str = ""
    name: str = ""
    source: str = ""
    bytes: int = 0
    tokens: int = 0
    cached: bool = False
    new: bool = False

    @property
    def group(self) -> str:
        return GROUPS.get(self.kind, self.kind or "other")

    @property
    def label(self) -> str:
        """Kind and name, for a sentence."""
        name = self.name or self.source
        kind = KINDS.get(self.kind, self.kind)
        return f"{kind} {name}" if name and name != self.kind else kind


class Growth(Struct, frozen=True):
    """How much one source became more or less since the call before."""

    source: str
    kind: str
    label: str
    bytes: int
    tokens: int


class Request(Struct, frozen=True):
    """A call with everything that was sent."""

    call: CallInfo
    previous: CallInfo | None
    parts: tuple[PartInfo, ...]
    growth: tuple[Growth, ...]
    cache_break: int | None
    """The first part that differs from the one that stood there in the call before."""
    answer: str = ""

    @property
    def grown(self) -> int:
        """Tokens more than in the call before; measured where both are."""
        before = self.previous
        if before is None:
            return 0
        if before.measured and self.call.measured:
            return self.call.tokens - before.tokens
        return sum(row.tokens for row in self.growth)

    @property
    def culprit(self) -> int | None:
        """The place of the part that made the call grow most; None when it did not grow."""
        if self.previous is None or not self.growth or self.grown <= 0:
            return None
        most = max(self.growth, key=lambda row: row.tokens)
        if most.tokens <= 0:
            return None
        found = None
        for place, part in enumerate(self.parts):
            if (part.source, part.kind) == (most.source, most.kind) and (
                most.label in (part.name, part.source)
            ):
                found = place
        return found

    def more(self, part: PartInfo) -> int:
        """By how many tokens the source of a part grew; all of it when it is new altogether."""
        for row in self.growth:
            if (row.source, row.kind) == (part.source, part.kind) and (
                row.label in (part.name, part.source)
            ):
                return row.tokens
        return 0

    @property
    def cached(self) -> tuple[int, bool]:
        """Tokens that a provider took from its cache, and whether it said so itself."""
        if self.call.usage is not None:
            return self.call.usage.cache_read, True
        return sum(part.tokens for part in self.parts if part.cached), False


class Pair(Struct, frozen=True):
    """A part of one call beside its counterpart: same, changed, added or removed."""

    state: str
    a: PartInfo | None
    b: PartInfo | None
    lines: tuple[tuple[str, str], ...] = ()
    """What is with a line (" ", "+", "-", "@" for a gap), and its text."""

    @property
    def part(self) -> PartInfo:
        part = self.b or self.a
        assert part is not None, "a pair has at least one side"
        return part


class Comparison(Struct, frozen=True):
    a: CallInfo
    b: CallInfo
    pairs: tuple[Pair, ...]
    tokens: int
    bytes: int
    truncated: bool


class Match(Struct, frozen=True):
    """A place where a text was found; `offset` in characters of the shown text of the part."""

    part: str
    place: int
    offset: int
    before: str
    match: str
    after: str


# ── from the wire ───────────────────────────────────────────────────────────────────────────


def usage_from(raw: object) -> Usage | None:
    if not isinstance(raw, dict):
        return None
    data = obj(raw)
    names = ("input", "output", "cacheRead", "cacheWrite")
    return Usage(*(num(data, name) for name in names))


def cost_from(raw: Json) -> float | None:
    value = raw.get("cost")
    return float(value) if isinstance(value, int | float) else None


def call_from(raw: object) -> CallInfo:
    data = obj(raw)
    return CallInfo(
        text(data, "id"),
        text(data, "runId"),
        text(data, "sessionKey"),
        num(data, "seq"),
        text(data, "cause"),
        text(data, "model"),
        text(data, "status"),
        text(data, "error"),
        num(data, "startedMs"),
        maybe_num(data, "firstTokenMs"),
        maybe_num(data, "endedMs"),
        num(data, "queueMs"),
        num(data, "parkedMs"),
        num(data, "bodyBytes"),
        num(data, "estimatedTokens"),
        num(data, "tokens"),
        text(data, "basis") == "measured",
        usage_from(data.get("usage")),
        cost_from(data),
    )


def calls_from(raw: Json) -> tuple[list[CallInfo], int | None]:
    """The calls of a page, and the `before` of the next one."""
    return [call_from(row) for row in objs(raw.get("calls"))], maybe_num(raw, "next")


def part_from(raw: object) -> PartInfo:
    data = obj(raw)
    return PartInfo(
        text(data, "id"),
        text(data, "kind"),
        text(data, "name"),
        text(data, "source"),
        num(data, "bytes"),
        num(data, "tokens"),
        flag(data, "cached"),
        flag(data, "isNew"),
    )


def request_from(raw: Json) -> Request:
    previous = raw.get("previous")
    grown = (
        Growth(
            text(row, "source"),
            text(row, "kind"),
            text(row, "label"),
            num(row, "bytes"),
            num(row, "tokens"),
        )
        for row in objs(raw.get("growth"))
    )
    return Request(
        call_from(raw.get("call")),
        call_from(previous) if isinstance(previous, dict) else None,
        tuple(part_from(row) for row in objs(raw.get("parts"))),
        tuple(grown),
        maybe_num(raw, "cacheBreak"),
        text(obj(raw.get("answer")), "text"),
    )


def comparison_from(raw: Json) -> Comparison:
    pairs = []
    for row in objs(raw.get("parts")):
        a, b = row.get("a"), row.get("b")
        if a is None and b is None:
            continue
        lines = tuple((text(one, "op", " "), text(one, "text")) for one in objs(row.get("lines")))
        state, two = text(row, "state"), None if b is None else part_from(b)
        # Most pairs are equal ones: they are read once.
        one = two if state == "same" and b is not None else None if a is None else part_from(a)
        pairs.append(Pair(state, one, two, lines))
    return Comparison(
        call_from(raw.get("a")),
        call_from(raw.get("b")),
        tuple(pairs),
        num(raw, "tokens"),
        num(raw, "bytes"),
        flag(raw, "truncated"),
    )


def matches_from(raw: Json) -> list[Match]:
    return [
        Match(
            text(row, "partId"),
            num(row, "index"),
            num(row, "offset"),
            text(row, "before"),
            text(row, "match"),
            text(row, "after"),
        )
        for row in objs(raw.get("matches"))
    ]


def bar_groups(parts: Sequence[PartInfo]) -> list[tuple[str, int]]:
    """What each kind of part weighs in tokens (in bytes when none is known), in wire order."""
    weigh_tokens = any(part.tokens for part in parts)
    sums: dict[str, int] = {}
    for part in parts:
        weight = part.tokens if weigh_tokens else part.bytes
        if part.kind == ENVELOPE and not weight:
            continue
        sums[part.group] = sums.get(part.group, 0) + weight
    return list(sums.items())


def shares(weights: Sequence[int], cells: int) -> list[int]:
    """`cells` shared out by weight; what weighs anything has one at least while there are any."""
    total = sum(weights)
    if not total or cells <= 0:
        return [0] * len(weights)
    exact = [weight * cells / total for weight in weights]
    out = [max(1, int(part)) if weight else 0 for part, weight in zip(exact, weights, strict=True)]
    by_rest = sorted(range(len(out)), key=lambda i: exact[i] - out[i], reverse=True)
    while sum(out) < cells:
        for place in by_rest[: cells - sum(out)]:
            out[place] += 1
    while sum(out) > cells:
        out[max(range(len(out)), key=out.__getitem__)] -= 1
    return out
