"""Reads the patch format of `apply_patch`: which files are added, deleted, changed, moved. Pure.

    *** Begin Patch
    *** Add File: PATH          then lines that begin with +
    *** Delete File: PATH
    *** Update File: PATH       optionally *** Move to: PATH, then chunks:
    @@ a line above it          (or @@ alone, or nothing before the first chunk)
     kept / -removed / +added   optionally *** End of File
    *** End Patch

A wrapper as of a shell's here-document around it is forgiven (agent digest §5.2).
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, field

from claw_engine.patterns import late

BEGIN, END = "*** Begin Patch", "*** End Patch"
ADD, DELETE, UPDATE = "*** Add File:", "*** Delete File:", "*** Update File:"
MOVE, EOF = "*** Move to:", "*** End of File"
_HEREDOC = late(r"""^(?:\S+\s+)?<<-?\s*(['"]?)(\w+)\1\s*$""")


class PatchRefused(ValueError):
    """The patch cannot be read or does not fit; the message is for the model."""


class Chunk(Struct):
    """Lines with their signs (" " kept, "-", "+"; "" for an empty line, which counts as kept).

    `anchor` is a line above them, `line` the chunk's place in the patch.
    """

    line: int
    anchor: str | None = None
    lines: list[tuple[str, str]] = field(default_factory=list)
    at_end: bool = False

    @property
    def old(self) -> list[str]:
        """What must be there."""
        return [text for sign, text in self.lines if sign != "+"]


class AddFile(Struct):
    path: str
    lines: list[str]


class DeleteFile(Struct):
    path: str


class UpdateFile(Struct):
    path: str
    move_to: str | None
    chunks: list[Chunk]


Operation = AddFile | DeleteFile | UpdateFile


def parse(text: str) -> list[Operation]:
    """The operations in order. Raises PatchRefused with the line that is wrong."""
    lines = _unwrapped(text)
    if not lines or lines[0].rstrip() != BEGIN:
        raise PatchRefused(f"The patch must begin with the line {BEGIN!r}.")
    if len(lines) < 2 or lines[-1].rstrip() != END:
        raise PatchRefused(f"The patch must end with the line {END!r}.")
    body = _Lines(lines[1:-1], 2)
    operations = list(_operations(body))
    if not operations:
        raise PatchRefused("The patch changes no file.")
    return operations


def _unwrapped(text: str) -> list[str]:
    lines = text.replace("\r\n", "\n").strip().split("\n")
    found = _HEREDOC.match(lines[0].strip()) if len(lines) > 2 else None
    return lines[1:-1] if found is not None and lines[-1].strip() == found[2] else lines


class _Lines:
    """Lines that are taken one by one; `number` is the next one's in the patch."""

    def __init__(self, lines: list[str], first: int) -> None:
        self._lines = lines
        self._at = 0
        self._first = first

    @property
    def number(self) -> int:
        return self._first + self._at

    def peek(self) -> str | None:
        return self._lines[self._at] if self._at < len(self._lines) else None

    def take(self) -> str:
        self._at += 1
        return self._lines[self._at - 1]

    def until_header(self) -> Iterator[str]:
        """Lines up to the next operation."""
        while (line := self.peek()) is not None and not _is_header(line):
            yield self.take()


def _is_header(line: str) -> bool:
    return line.startswith((ADD, DELETE, UPDATE))


def _operations(lines: _Lines) -> Iterator[Operation]:
    while (line := lines.peek()) is not None:
        number = lines.number
        if not line.strip():
            lines.take()
            continue
        for mark, read in ((ADD, _add), (DELETE, _delete), (UPDATE, _update)):
            if line.startswith(mark):
                path = lines.take()[len(mark) :].strip()
                if not path:
                    raise PatchRefused(f"Line {number} of the patch names no file.")
                yield read(path, lines)
                break
        else:
            raise PatchRefused(
                f"Line {number} of the patch is not understood: {line[:80]!r}. Expected "
                f"{ADD!r}, {DELETE!r} or {UPDATE!r} with a path."
            )


def _add(path: str, lines: _Lines) -> AddFile:
    content: list[str] = []
    number = lines.number
    for line in lines.until_header():
        if not line.startswith("+"):
            if not line.strip() and _only_blank(lines):
                break
            raise PatchRefused(
                f"Line {number} of the patch: each line of a new file begins with +, got "
                f"{line[:80]!r}."
            )
        content.append(line[1:])
        number = lines.number
    return AddFile(path, content)


def _only_blank(lines: _Lines) -> bool:
    return all(not line.strip() for line in lines.until_header())


def _delete(path: str, lines: _Lines) -> DeleteFile:
    number = lines.number
    for line in lines.until_header():
        if line.strip():
            raise PatchRefused(f"Line {number} of the patch: nothing may follow a deletion.")
        number = lines.number
    return DeleteFile(path)


def _update(path: str, lines: _Lines) -> UpdateFile:
    move_to: str | None = None
    if (line := lines.peek()) is not None and line.startswith(MOVE):
        move_to = lines.take()[len(MOVE) :].strip()
        if not move_to:
            raise PatchRefused(f"Line {lines.number - 1} of the patch names no file to move to.")
    chunks: list[Chunk] = []
    current: Chunk | None = None
    while (line := lines.peek()) is not None and not _is_header(line):
        number = lines.number
        lines.take()
        if line.startswith("@@"):
            current = Chunk(number, line[2:].strip() or None)
            chunks.append(current)
            continue
        if line.rstrip() == EOF:
            if current is None or not current.lines:
                raise PatchRefused(f"Line {number} of the patch: no chunk before {EOF!r}.")
            current.at_end, current = True, None
            continue
        if current is None:
            if not line.strip():
                continue
            current = Chunk(number)
            chunks.append(current)
        _chunk_line(current, line, number)
    if not chunks and move_to is None:
        raise PatchRefused(f"{path}: the update has no chunk and no {MOVE!r}.")
    for chunk, following in zip(chunks, [*chunks[1:], None], strict=True):
        # Blank lines may stand between the sections of a patch.
        while len(chunk.lines) > 1 and chunk.lines[-1][0] == "" and not chunk.at_end:
            chunk.lines.pop()
        # An @@ line may lead to another @@ line, not to nothing.
        if not chunk.lines and (following is None or chunk.anchor is None):
            raise PatchRefused(f"{path}: the chunk at line {chunk.line} of the patch is empty.")
    return UpdateFile(path, move_to, chunks)


def _chunk_line(chunk: Chunk, line: str, number: int) -> None:
    if line[:1] not in ("", " ", "-", "+"):
        raise PatchRefused(
            f"Line {number} of the patch must begin with a space, + or -: {line[:80]!r}."
        )
    chunk.lines.append((line[:1], line[1:]))
