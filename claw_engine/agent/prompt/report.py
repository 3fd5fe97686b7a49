"""What a request is made of, in bytes and estimated tokens: for the trace.

Byte counts come from the spans of the encoded body, so they are what really crosses the wire.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from claw_engine.agent.context.tokens import estimate
from claw_engine.models.base import Encoded, Piece
from claw_engine.parts import Part

_MAX_REMEMBERED = 4096


Row = dict[str, object]


class SizeBook:
    """Sizes of parts and of the pieces of a body, worked out once: both are immutable."""

    def __init__(self) -> None:
        self._tokens: dict[int, tuple[Part, int]] = {}
        self._rows: dict[int, tuple[Piece, list[Row], int]] = {}
        self._ratios: dict[int, tuple[Piece, float, list[Row]]] = {}

    def tokens(self, part: Part) -> int:
        """Estimated tokens."""
        # Keyed by object identity; the part is kept so that its id() cannot be reused.
        known = self._tokens.get(id(part))
        if known is None:
            if len(self._tokens) >= _MAX_REMEMBERED:
                self._tokens.clear()
            known = self._tokens[id(part)] = (part, estimate(part.text))
        return known[1]

    def rows(self, piece: Piece, ratio: float = 1.0) -> tuple[list[Row], int]:
        """The rows of a piece's parts, tokens drawn by `ratio`, and the tokens of all of them
        without it; not to be changed."""
        known = self._rows.get(id(piece))
        if known is None:
            if len(self._rows) >= _MAX_REMEMBERED:
                self._rows.clear()
            known = self._rows[id(piece)] = (piece, *self._count(piece))
        return known[1] if ratio == 1.0 else self._drawn(known[0], known[1], ratio), known[2]

    def _drawn(self, piece: Piece, plain: list[Row], ratio: float) -> list[Row]:
        # A ratio moves seldom, so what was drawn by it is kept like what was counted.
        known = self._ratios.get(id(piece))
        if known is None or known[0] is not piece or known[1] != ratio:
            if len(self._ratios) >= _MAX_REMEMBERED:
                self._ratios.clear()
            drawn = [{**row, "tokens": round(cast("int", row["tokens"]) * ratio)} for row in plain]
            known = self._ratios[id(piece)] = (piece, ratio, drawn)
        return known[2]

    def all_rows(self, pieces: Iterable[Piece], ratio: float = 1.0) -> tuple[list[Row], int]:
        """`rows` of many, in order; nearly all pieces of a talk are known."""
        out: list[Row] = []
        total = 0
        for piece in pieces:
            if piece.parts:
                known = self._rows.get(id(piece))
                found, tokens = (known[1], known[2]) if known is not None else self.rows(piece)
                out += found if ratio == 1.0 else self._drawn(piece, found, ratio)
                total += tokens
        return out, total

    def _count(self, piece: Piece) -> tuple[list[Row], int]:
        sizes: dict[str | None, int] = {}
        for span in piece.spans:
            sizes[span.part_id] = sizes.get(span.part_id, 0) + span.end - span.start
        rows: list[Row] = []
        total = 0
        for part in piece.parts:
            size = self.tokens(part)
            total += size
            if part.id in sizes:
                rows.append({
                    "id": part.id, "kind": part.kind.value, "name": part.name,
                    "source": part.source, "tokens": size, "bytes": sizes[part.id],
                })  # fmt: skip
        return rows, total


def rows(encoded: Encoded, book: SizeBook, ratio: float = 1.0) -> tuple[list[Row], int]:
    """One row a part that is in the body, in wire order: id, kind, name, source, bytes, tokens
    (estimated, times `ratio`); and the tokens of all parts, without the ratio."""
    return book.all_rows(encoded.pieces, ratio)


def size_changes(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """What a change of workspace files means for the next prompt, a phrase a file, from their
    texts in it. Pure."""
    out: list[str] = []
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old is None and new is not None:
            out.append(f"{name} added (+{estimate(new)} tokens)")
        elif new is None and old is not None:
            out.append(f"{name} removed (-{estimate(old)} tokens)")
        elif old is not None and new is not None and new != old:
            grown = estimate(new) - estimate(old)
            size = f"{grown:+d} tokens" if grown else "as many tokens as before"
            out.append(f"{name} changed ({size})")
    return out
