"""What was approved is what runs: take identities before the question, compare before the spawn.

A binding names the command text, the directory (path and inode), a hash of the environment, and
every file that decides what happens: the programs, the interpreters of those that are scripts and,
for whatever interprets or starts files, the files named in its arguments. Blocking file access:
call on the disk executor.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping

from claw_engine.approvals.fsview import FileId, FsView
from claw_engine.approvals.model import Binding, BoundFile
from claw_engine.approvals.pinning import interpreters
from claw_engine.approvals.programs import Kind
from claw_engine.approvals.resolve import Resolver, Step
from claw_engine.approvals.shell import parse

MAX_FILES = 128
"""Files bound per command; a command that names more is bound to the first of them."""


def bind(
    command: str,
    cwd: str,
    env: Mapping[str, str],
    fs: FsView,
    *,
    resolver: Resolver | None = None,
    steps: tuple[Step, ...] | None = None,
) -> Binding:
    """Bind a command line as it would run now in `cwd` with the full child environment `env`.

    `steps` are those of the command, when the caller has them already.
    """
    resolver = resolver or Resolver(cwd, env, fs)
    if steps is None:
        steps = resolver.steps(parse(command).segments)
    files: dict[str, BoundFile] = {}
    seen: set[tuple[str, str]] = set()
    for step in resolver.inner_steps(steps):
        called = step.called
        if step.kind is Kind.PLAIN and called and not step.segment.assignments:
            if called in seen:
                continue  # `echo … && echo …`: bound already
            seen.add(called)
        for path, file in _deciding_files(step, resolver, fs):
            if len(files) >= MAX_FILES:
                break
            if path not in files:
                files[path] = _bound(path, file, fs)
    folder = fs.directory(cwd)
    real, dev, ino = folder if folder else ("", 0, 0)
    return Binding(command, cwd, real, (dev, ino), env_hash(env), tuple(files.values()))


def verify(binding: Binding, env: Mapping[str, str], fs: FsView) -> tuple[str, ...]:
    """What differs from the moment of the question, in plain words; empty = nothing.

    The command is resolved anew, so a program that now comes first on PATH, a switched symlink
    and a script that did not exist before are all seen.
    """
    return differences(binding, bind(binding.command, binding.cwd, env, fs))


def differences(then: Binding, now: Binding) -> tuple[str, ...]:
    """Plain words for what changed from one binding to a later one."""
    changes: list[str] = []
    if then.command != now.command:
        changes.append("the command is another one")
    if (then.cwd, then.cwd_real, then.cwd_id) != (now.cwd, now.cwd_real, now.cwd_id):
        changes.append(f"the directory {then.cwd} is not the same one any more")
    if then.env_hash != now.env_hash:
        changes.append("the environment is different")
    old, new = ({f.path: f for f in b.files} for b in (then, now))
    for path, file in old.items():
        change = _change(file, new.get(path))
        if change:
            changes.append(change)
    changes.extend(f"{path} was not there" for path in new if path not in old)
    return tuple(changes)


def env_hash(env: Mapping[str, str]) -> str:
    """sha256 (hex) over the sorted NAME=value pairs."""
    text = "\0".join(f"{name}={env[name]}" for name in sorted(env))
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _change(old: BoundFile, new: BoundFile | None) -> str | None:
    if new is None:
        return f"{old.path} is gone or something else is found first"
    if old.real != new.real:
        return f"{old.path} now leads to {new.real}"
    if old.sha256 != new.sha256:
        return f"the content of {old.path} changed"
    if (old.dev, old.ino) != (new.dev, new.ino):
        return f"{old.path} was replaced by another file"
    return None


def _deciding_files(step: Step, resolver: Resolver, fs: FsView) -> Iterator[tuple[str, FileId]]:
    for program in step.programs:
        if program is not None:
            yield program.path, program.file
            yield from interpreters(program.file, resolver.env, fs)
    special = step.kind is not Kind.PLAIN or step.unwrapped.problem or step.segment.assignments
    if not special:
        return
    for word in step.segment.argv[1:]:
        for text in _file_names(resolver.guess(word, step.segment)):
            for folder in dict.fromkeys((step.cwd, resolver.cwd)):
                path = os.path.join(folder, text)  # noqa: PTH118 -- text as the program gets it
                file = fs.file(path)
                if file is not None:
                    yield path, file


def _file_names(word: str) -> Iterator[str]:
    """The word itself, `VALUE` of `--option=VALUE`, and `VALUE` of `-oVALUE`."""
    if not word or "\0" in word or len(word) > 4096:
        return
    yield word
    if "=" in word:
        yield word.split("=", 1)[1]
    if word.startswith("-") and len(word) > 2:
        yield word[2:]


def _bound(path: str, file: FileId, fs: FsView) -> BoundFile:
    return BoundFile(path, file.real, fs.sha256(file), file.dev, file.ino)
