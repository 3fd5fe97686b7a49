"""What a request is made of, in bytes and estimated tokens: for the trace.

Byte counts come from the spans of the encoded body, so they are what really crosses the wire.
"""

from __future__ import annotations

from collections.abc import Iterator

from claw_engine.agent.context.tokens import estimate
from claw_engine.models.base import Encoded, Request
from claw_engine.parts import Part

_MAX_REMEMBERED = 4096


class SizeBook:
    """Token estimates that are computed once a part; parts are immutable and ids stay theirs."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Part, int]] = {}

    def tokens(self, part: Part) -> int:
        # Keyed by object identity; the part is kept so that its id() cannot be reused.
        known = self._known.get(id(part))
        if known is not None:
            return known[1]
        if len(self._known) >= _MAX_REMEMBERED:
            self._known.clear()
        size = estimate(part.text)
        self._known[id(part)] = (part, size)
        return size


def parts_of(request: Request) -> Iterator[Part]:
    """All parts in the order in which they are said."""
    yield from request.system
    for tool in request.tools:
        yield tool.part
    for turn in request.turns:
        yield from turn.reasoning
        yield from turn.parts
        for call in turn.tool_calls:
            yield call.arguments


def rows(request: Request, encoded: Encoded, book: SizeBook) -> list[dict[str, object]]:
    """One row a part that is in the body: id, kind, name, source, bytes, tokens (estimated)."""
    sizes: dict[str, int] = {}
    for span in encoded.spans:
        if span.part_id is not None:
            sizes[span.part_id] = sizes.get(span.part_id, 0) + span.end - span.start
    return [
        {
            "id": part.id,
            "kind": part.kind.value,
            "name": part.name,
            "source": part.source,
            "bytes": sizes[part.id],
            "tokens": book.tokens(part),
        }
        for part in parts_of(request)
        if part.id in sizes
    ]
