"""Applies the chunks of a patch to the text of one file. Pure; knows no file.

Each chunk must name one place: after the chunk before it and below its `@@` line. A line's white
space at the end, then at both ends, is overlooked where nothing matches exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from claw_engine.tools.edits import BOM
from claw_engine.tools.patch.parse import Chunk, PatchRefused

_LISTED = 5


def apply(original: str, chunks: Sequence[Chunk], path: str) -> str:
    """The new text; line ends, byte order mark and a missing last line end stay as they are.

    Raises PatchRefused for a chunk that fits nowhere or in several places.
    """
    mark = BOM if original.startswith(BOM) else ""
    text = original[len(mark) :]
    crlf = "\r\n" in text
    lines = text.replace("\r\n", "\n").split("\n") if text else []
    ends = bool(lines) and lines[-1] == ""
    if ends:
        lines.pop()
    out: list[str] = []
    at = 0
    anchored = False
    for chunk in chunks:
        start = at
        if chunk.anchor is not None:
            start = _anchor(lines, chunk, at, path) + 1
            anchored = True
        if not chunk.lines:
            out += lines[at:start]
            at = start
            continue
        place = _place(lines, chunk, start, path, anchored=anchored)
        out += lines[at:place]
        at = place
        for sign, text_now in chunk.lines:
            if sign == "+":
                out.append(text_now)
                continue
            if sign != "-":
                out.append(lines[at])  # as the file has it, white space included
            at += 1
        anchored = False
    out += lines[at:]
    joined = "\n".join(out) + ("\n" if out and (ends or not lines) else "")
    return mark + (joined.replace("\n", "\r\n") if crlf else joined)


def _anchor(lines: Sequence[str], chunk: Chunk, start: int, path: str) -> int:
    wanted = chunk.anchor or ""
    for same in (str, str.rstrip, str.strip):
        for number in range(start, len(lines)):
            if same(lines[number]) == same(wanted):
                return number
    raise PatchRefused(
        f"{path}: no line {wanted[:80]!r} (the @@ at line {chunk.line} of the patch)"
        f"{' below the chunk before it' if start else ''}."
    )


def _place(lines: Sequence[str], chunk: Chunk, start: int, path: str, *, anchored: bool) -> int:
    """Where the chunk's old lines are."""
    old = chunk.old
    if not old:
        # Only additions: below the anchor, else at the end of the file.
        return start if anchored and not chunk.at_end else len(lines)
    for same in (str, str.rstrip, str.strip):
        places = _matches(lines, old, start, same)
        if chunk.at_end:
            places = [place for place in places if place + len(old) == len(lines)]
        if len(places) == 1 or (places and anchored):
            return places[0]
        if places:
            listed = ", ".join(str(place + 1) for place in places[:_LISTED])
            raise PatchRefused(
                f"{path}: the chunk at line {chunk.line} of the patch fits in {len(places)} places "
                f"(lines {listed}). Add lines around it, or an @@ line above it."
            )
    raise PatchRefused(_no_match(lines, chunk, start, path))


def _matches(
    lines: Sequence[str], old: Sequence[str], start: int, same: Callable[[str], str]
) -> list[int]:
    wanted = [same(line) for line in old]
    first = wanted[0]
    return [
        at
        for at in range(start, len(lines) - len(old) + 1)
        if same(lines[at]) == first
        and all(same(lines[at + i]) == wanted[i] for i in range(1, len(wanted)))
    ]


def _no_match(lines: Sequence[str], chunk: Chunk, start: int, path: str) -> str:
    head = f"{path}: the chunk at line {chunk.line} of the patch fits nowhere"
    if start and _matches(lines, chunk.old, 0, str.strip):
        return f"{head} below the chunk before it: chunks go from the top of the file down."
    first = next((line.strip() for line in chunk.old if line.strip()), "")
    where = [i + 1 for i, line in enumerate(lines) if first and line.strip() == first]
    if where:
        listed = ", ".join(map(str, where[:_LISTED]))
        return (
            f"{head}: its line {first[:60]!r} is at line {listed} of the file, but the lines "
            "around it differ. Read the file and copy them exactly."
        )
    later = " below the chunk before it" if start else ""
    return f"{head}{later}: the file has no line {first[:60]!r}. Read the file again."
