"""What a request is made of, in bytes and estimated tokens: for the trace.

Byte counts come from the spans of the encoded body, so they are what really crosses the wire.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from claw_engine.agent.context.tokens import estimate
from claw_engine.models.base import Encoded, Request
from claw_engine.parts import Part

_MAX_REMEMBERED = 4096


class SizeBook:
    """What is known of a part without the body, worked out once a part: parts are immutable."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Part, int, dict[str, object]]] = {}

    def tokens(self, part: Part) -> int:
        """Estimated tokens."""
        return self.look(part)[1]

    def look(self, part: Part) -> tuple[Part, int, dict[str, object]]:
        """The part, its estimated tokens, and its row without bytes; not to be changed."""
        # Keyed by object identity; the part is kept so that its id() cannot be reused.
        known = self._known.get(id(part))
        if known is None:
            if len(self._known) >= _MAX_REMEMBERED:
                self._known.clear()
            size = estimate(part.text)
            row: dict[str, object] = {
                "id": part.id,
                "kind": part.kind.value,
                "name": part.name,
                "source": part.source,
                "tokens": size,
            }
            known = self._known[id(part)] = (part, size, row)
        return known


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


def rows(request: Request, encoded: Encoded, book: SizeBook) -> tuple[list[dict[str, object]], int]:
    """One row a part that is in the body: id, kind, name, source, bytes, tokens (estimated); and
    the tokens of all parts."""
    sizes: dict[str, int] = {}
    for span in encoded.spans:
        if span.part_id is not None:
            sizes[span.part_id] = sizes.get(span.part_id, 0) + span.end - span.start
    out: list[dict[str, object]] = []
    total = 0
    for part in parts_of(request):
        _, tokens, row = book.look(part)
        total += tokens
        size = sizes.get(part.id)
        if size is not None:
            out.append({**row, "bytes": size})
    return out, total


def size_changes(before: Mapping[str, int], after: Mapping[str, int]) -> list[str]:
    """What a change of workspace files means for the next prompt, a phrase a file. Pure."""
    out: list[str] = []
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old is None:
            out.append(f"{name} added (+{new} tokens)")
        elif new is None:
            out.append(f"{name} removed (-{old} tokens)")
        elif new != old:
            out.append(f"{name} changed ({new - old:+d} tokens)")
    return out
