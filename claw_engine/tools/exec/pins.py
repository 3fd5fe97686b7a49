"""The command line that makes the last check and then becomes the command (see pinned.py).

Only where something could change between the check here and the start: a file that the agent may
write, a directory that it may move. Reads files through `FsView`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from claw_engine.approvals.environment import for_unasked
from claw_engine.approvals.evaluate import SHELL, Verdict
from claw_engine.approvals.fsview import FsView
from claw_engine.approvals.model import Binding, BoundFile
from claw_engine.approvals.resolve import DEFAULT_PATH
from claw_engine.approvals.wrappers import unwrap
from claw_engine.tools.exec.pinned import PARTIAL

_LAUNCHER = os.path.join(os.path.dirname(__file__), "pinned.py")  # noqa: PTH118,PTH120 - text


class Start(Struct, frozen=True):
    """What to start, with which environment."""

    argv: tuple[str, ...]
    env: Mapping[str, str]


def by_rules(verdict: Verdict, env: Mapping[str, str], fs: FsView, *, fixed_cwd: bool) -> Start:
    """What rules allowed, each program with the content that its rule is bound to."""
    argv = verdict.enforced_argv
    assert argv is not None
    by_real = {file.real: file for file in verdict.binding.files}
    files = dict(by_real)
    for use in verdict.rules_used:
        file = by_real.get(use.resolved)
        if file is not None:
            digest = use.rule.content_hash or file.sha256
            files[use.resolved] = replace(file, path=use.resolved, sha256=digest)
    for file in verdict.binding.files:
        files.setdefault(file.path, file)
    binding = replace(verdict.binding, files=tuple(files.values()))
    told = _pinned(argv, binding, fs, fixed_cwd=fixed_cwd, text=len(verdict.segments) > 1)
    return Start(told, for_unasked(env, verdict.search_path))


def by_person(verdict: Verdict, env: Mapping[str, str], fs: FsView, *, fixed_cwd: bool) -> Start:
    """What a person allowed: its words where it was understood in full, else its text."""
    words = verdict.literal_argv or verdict.enforced_argv
    argv = words or (SHELL, "-c", verdict.binding.command)
    text = words is None or len(verdict.segments) > 1
    absent = _absent(verdict.binding.files, env.get("PATH", DEFAULT_PATH), fs) if not words else ()
    told = _pinned(argv, verdict.binding, fs, fixed_cwd=fixed_cwd, text=text, absent=absent)
    return Start(told, env)


def _pinned(
    argv: Sequence[str],
    binding: Binding,
    fs: FsView,
    *,
    fixed_cwd: bool,
    text: bool,
    absent: Sequence[str] = (),
) -> tuple[str, ...]:
    """`argv` behind the last check, or as it is when nothing of it can change any more.

    `fixed_cwd` says that nothing can put another directory in the place of `binding.cwd`; `text`
    that a shell reads the command, so files cannot be handed over by descriptor. Nothing may be at
    the paths of `absent`.
    """
    options = list(_files(binding.files, fs))
    for path in absent:
        options += ("--absent", path)
    if "--file" not in options and not absent and fixed_cwd:
        return tuple(argv)
    dev, ino = binding.cwd_id
    at = -1 if text else unwrap(tuple(argv)).programs[-1]
    return (
        sys.executable, "-I", "-S", _LAUNCHER,
        "--cwd", f"{dev}:{ino}:{binding.cwd}", *options, "--at", str(at), "--", *argv,
    )  # fmt: skip


def _files(files: tuple[BoundFile, ...], fs: FsView) -> Iterator[str]:
    for bound in files:
        found = fs.file(bound.path)
        through_link = os.path.realpath(bound.path) != bound.path
        safe = found is not None and not fs.writable(found) and not (
            through_link and fs.writable_folder(os.path.dirname(bound.path))  # noqa: PTH120 - text
        )  # fmt: skip
        if safe or bound.sha256 is None:
            yield from ("--known", bound.path)
        else:
            digest = bound.sha256.replace("partial:", PARTIAL)
            yield from ("--file", f"{bound.dev}:{bound.ino}:{digest}:{bound.path}")


def _absent(files: tuple[BoundFile, ...], search: str, fs: FsView) -> tuple[str, ...]:
    """Where a shell would look before it finds these programs, and the agent could put one."""
    folders = [folder for folder in search.split(":") if folder]
    found: dict[str, None] = {}
    for file in files:
        folder, _, name = file.path.rpartition("/")
        if folder in folders:
            before = folders[: folders.index(folder)]
            found |= dict.fromkeys(f"{one}/{name}" for one in before if fs.writable_folder(one))
    return tuple(found)
