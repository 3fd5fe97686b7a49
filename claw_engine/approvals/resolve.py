"""From a program word to the file that would run: PATH, directory changes, wrappers, inner shells.

Looks at files through `FsView` only; judges nothing. One `Resolver` serves one decision and
remembers what it has looked up.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from claw_engine.approvals.fsview import FileId, FsView
from claw_engine.approvals.programs import Kind, classify, is_builtin
from claw_engine.approvals.shell import Segment, parse
from claw_engine.approvals.wrappers import DIRECT, Unwrapped, base_name, unwrap
from claw_engine.patterns import late

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
MAX_INNER_DEPTH = 3
_VARIABLE = late(r"\$([A-Za-z_][A-Za-z0-9_]*)")


class Program(Struct, frozen=True):
    """A program word and the file it leads to; `path` is where it was found, before symlinks."""

    word: str
    path: str
    file: FileId


class Step(Struct, frozen=True):
    """A segment as it would run: in which directory, which programs, what kind of thing.

    `programs[i]` belongs to `unwrapped.programs[i]`; None when no file was found. `kind` is the
    strictest that the innermost name and its file's name suggest.
    """

    segment: Segment
    cwd: str
    unwrapped: Unwrapped
    programs: tuple[Program | None, ...]
    kind: Kind

    @property
    def word(self) -> str:
        return self.segment.argv[self.unwrapped.programs[-1]] if self.segment.argv else ""

    @property
    def arguments(self) -> tuple[str, ...]:
        """The words after the program that is finally run."""
        return self.segment.argv[self.unwrapped.programs[-1] + 1 :]

    @property
    def program(self) -> Program | None:
        return self.programs[-1] if self.programs else None

    @property
    def called(self) -> tuple[str, str] | None:
        """The same for all steps that start the same program by itself; None behind a wrapper, and
        where the shell fills something in."""
        if self.unwrapped is not DIRECT or self.segment.expansions:
            return None
        return self.segment.argv[0], self.cwd


class Resolver(Struct):
    """Looks programs up as a shell in `cwd` with `env` would."""

    cwd: str
    env: Mapping[str, str]
    fs: FsView
    _found: dict[tuple[str, str], Program | None] = field(default_factory=dict)
    _folders: dict[str, str | None] = field(default_factory=dict)
    _path: list[str] | None = None
    _direct: dict[tuple[str, str], tuple[Program | None, Kind]] = field(default_factory=dict)

    def steps(self, segments: tuple[Segment, ...]) -> tuple[Step, ...]:
        """One step a segment; a literal `cd DIR` moves the directory of those after it."""
        cwd, steps = self.cwd, []
        for segment in segments:
            steps.append(self._step(segment, cwd))
            if len(segment.argv) == 2 and segment.argv[0] == "cd":
                cwd = os.path.join(cwd, self.guess(segment.argv[1], segment))  # noqa: PTH118 -- text
        return tuple(steps)

    def inner_steps(self, steps: tuple[Step, ...], depth: int = 0) -> Iterator[Step]:
        """The steps and, to a small depth, those of text handed to a shell with `-c`."""
        for step in steps:
            yield step
            if depth < MAX_INNER_DEPTH and step.kind is not Kind.PLAIN:
                for text in _inner_texts(step):
                    inner = Resolver(step.cwd, self.env, self.fs, self._found, self._folders)
                    yield from inner.inner_steps(inner.steps(parse(text).segments), depth + 1)

    def program(self, word: str, cwd: str) -> Program | None:
        """The executable file of a word: by its slash, else the first on PATH."""
        key = (word, cwd)
        if key not in self._found:
            self._found[key] = self._look_up(word, cwd)
        return self._found[key]

    def guess(self, word: str, segment: Segment) -> str:
        """A word with a leading `~` and plain `$NAME` replaced, when the shell would do so."""
        if not segment.expansions:
            return word
        if word == "~" or word.startswith("~/"):
            word = self.env.get("HOME", "~") + word[1:]
        return _VARIABLE.sub(lambda m: self.env.get(m.group(1), ""), word)

    def _step(self, segment: Segment, cwd: str) -> Step:
        if not segment.argv:
            return Step(segment, cwd, Unwrapped(()), (), Kind.BUILTIN)
        unwrapped = unwrap(segment.argv)
        if unwrapped is DIRECT and not segment.expansions:
            return self._direct_step(segment, cwd)
        words = [self.guess(segment.argv[i], segment) for i in unwrapped.programs]
        if is_builtin(words[0]):
            return Step(segment, cwd, unwrapped, (None,) * len(words), Kind.BUILTIN)
        programs = tuple(self.program(word, cwd) for word in words)
        return Step(segment, cwd, unwrapped, programs, _kind(words[-1], programs[-1]))

    def _direct_step(self, segment: Segment, cwd: str) -> Step:
        """A segment without a wrapper: the usual case, looked at once for each program."""
        word = segment.argv[0]
        known = self._direct.get((word, cwd))
        if known is None:
            program = None if is_builtin(word) else self.program(word, cwd)
            known = program, Kind.BUILTIN if is_builtin(word) else _kind(word, program)
            self._direct[word, cwd] = known
        return Step(segment, cwd, DIRECT, (known[0],), known[1])

    def _look_up(self, word: str, cwd: str) -> Program | None:
        if not word:
            return None
        if "/" in word:
            path = os.path.join(cwd, word)  # noqa: PTH118 -- keeps "./"
            file = self.fs.file(path)
            return Program(word, path, file) if file and file.executable else None
        if self._path is None:
            self._path = self.env.get("PATH", DEFAULT_PATH).split(":")
        for entry in self._path:
            # Text, as the shell puts it together; an empty entry is cwd.
            folder = entry if entry.startswith("/") else os.path.join(cwd, entry)  # noqa: PTH118
            path = f"{folder}{word}" if folder.endswith("/") else f"{folder}/{word}"
            file = self._in_folder(folder, word, path)
            if file and file.executable:
                return Program(word, path, file)
        return None

    def _in_folder(self, folder: str, word: str, path: str) -> FileId | None:
        """Where more than one program is looked up, the folder's own symlinks are followed once."""
        if folder not in self._folders:
            self._folders[folder] = ""
            return self.fs.file(path)
        real = self._folders[folder]
        if real == "":
            found = self.fs.directory(folder)
            real = self._folders[folder] = found[0] if found else None
        return self.fs.file_in(real, word) if real is not None else None


def _kind(word: str, program: Program | None) -> Kind:
    kind = classify(base_name(word))
    if kind is Kind.PLAIN and program is not None:
        kind = classify(base_name(program.file.real))
    return kind


def _inner_texts(step: Step) -> Iterator[str]:
    """Command texts inside a segment: the word after a shell's `-c` cluster, `eval`'s words."""
    argv = step.segment.argv
    if argv and argv[0] == "eval":
        yield " ".join(argv[1:])
    for at, word in enumerate(argv[:-1]):
        if re.fullmatch(r"-[A-Za-z]*c[A-Za-z]*", word):
            yield argv[at + 1]
