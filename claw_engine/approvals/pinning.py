"""Which other files decide what an allowed program does: its `#!` interpreter, and PATH.

Reads files through `FsView`; judges no rule. A program that was allowed may look others up by
name: they are found in the folders that the agent cannot write before those that it can.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from claw_engine.approvals.fsview import FileId, FsView
from claw_engine.approvals.resolve import DEFAULT_PATH, Program
from claw_engine.approvals.wrappers import base_name


class Interpreter(Struct, frozen=True):
    """What runs a script. `objection` says why no rule can stand for it; `files` are its own."""

    objection: str | None = None
    files: tuple[tuple[str, FileId], ...] = ()


_NONE = Interpreter()
MAX_INTERPRETERS = 8


def interpreter_of(program: Program | None, env: Mapping[str, str], fs: FsView) -> Interpreter:
    """Look at the first line of a program file; nothing for one that is no script."""
    if program is None:
        return _NONE
    line = fs.shebang(program.file)
    if not line:
        return _NONE
    if base_name(line[0]) == "env" and (len(line) < 2 or not _plain(line[1])):
        return Interpreter(f"{base_name(program.file.real)} starts through env with options")
    found = _interpreters(line, pinned_path(env, fs), fs)
    files = tuple((path, file) for path, file in found if file is not None)
    for path, file in found:
        if file is None:
            return Interpreter(f"{path} of its first line does not exist", files)
        if fs.writable(file):
            return Interpreter(
                f"{base_name(program.file.real)} is run by {file.real}, which the agent could "
                "have written", files,
            )  # fmt: skip
    return Interpreter(None, files)


def interpreters(file: FileId, env: Mapping[str, str], fs: FsView) -> list[tuple[str, FileId]]:
    """The files that run a script as things are now: its interpreter's, and that one's."""
    out: list[tuple[str, FileId]] = []
    while len(out) < MAX_INTERPRETERS:
        line = fs.shebang(file)
        found = _interpreters(line, env.get("PATH", DEFAULT_PATH), fs) if line else []
        out += [(path, one) for path, one in found if one is not None]
        if not found or found[-1][1] is None:
            break
        file = found[-1][1]
    return out


def _interpreters(line: tuple[str, ...], path: str, fs: FsView) -> list[tuple[str, FileId | None]]:
    found = [(line[0], fs.file(line[0]))]
    if base_name(line[0]) == "env" and len(line) > 1 and _plain(line[1]):
        found.append(_on_path(line[1], path, fs))
    return found


def pinned_path(env: Mapping[str, str], fs: FsView) -> str:
    """PATH for a program that nobody was asked about: absolute folders only, first those in which
    the agent cannot put a program, each group in its own order."""
    folders = [f for f in env.get("PATH", DEFAULT_PATH).split(":") if f.startswith("/")]
    known = dict.fromkeys(folders)
    return ":".join(sorted(known, key=fs.writable_folder))


def _plain(word: str) -> bool:
    return not word.startswith("-") and "=" not in word and len(word.split()) == 1


def _on_path(word: str, path: str, fs: FsView) -> tuple[str, FileId | None]:
    if "/" in word:
        return word, fs.file(word)
    for folder in path.split(":"):
        file = fs.file(f"{folder}/{word}")
        if file is not None and file.executable:
            return f"{folder}/{word}", file
    return word, None
