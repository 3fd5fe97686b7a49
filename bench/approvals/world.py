"""A small machine to decide about: programs with and without rules, safe bins, a search path.

What is allowed stands here twice: as a policy for the engine, and as plain tables for the oracle.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from claw_engine.approvals.arguments import exactly
from claw_engine.approvals.evaluate import Verdict, evaluate
from claw_engine.approvals.fsview import FileId, RealFs
from claw_engine.approvals.policy import ExecPolicy, Rule
from claw_engine.approvals.safe_bins import configured

RULED = (
    "uname", "ls", "cat", "date", "id", "true", "false", "basename", "dirname", "seq", "stat", "df",
    "echo", "printf", "expr", "nproc", "tac", "nl",
)  # fmt: skip
SAFE = ("sort", "grep", "head", "tail", "wc", "tr", "cut", "uniq")
OWN = ("mytool", "mybin")
EXACT = {"git": (("status",), ("log", "--oneline", "-n", "3")), "find": ((".", "-name", "a b"),)}
WRAPPERS = ("env", "nice", "nohup", "stdbuf", "timeout")


def _found(name: str) -> str | None:
    for folder in ("/usr/bin", "/bin"):
        if os.access(f"{folder}/{name}", os.X_OK):
            real = os.path.realpath(f"{folder}/{name}")
            return real if Path(real).name == name else None
    return None


class StillFs(RealFs):
    """A file system that does not change while commands are decided: every look is kept."""

    def __init__(self) -> None:
        super().__init__()
        self._files: dict[str, FileId | None] = {}
        self._hashes: dict[str, str | None] = {}

    def file(self, path: str) -> FileId | None:
        if path not in self._files:
            if len(self._files) > 50_000:
                self._files.clear()
            self._files[path] = super().file(path)
        return self._files[path]

    def sha256(self, file: FileId) -> str | None:
        if file.real not in self._hashes:
            self._hashes[file.real] = super().sha256(file)
        return self._hashes[file.real]


@dataclass
class Machine:
    """Use: `make(root)`, then `decide`. `programs` maps each allowed name to its real path."""

    root: Path
    policy: ExecPolicy
    programs: dict[str, str]
    wrappers: dict[str, str]
    fs: RealFs = field(default_factory=RealFs)

    @property
    def cwd(self) -> str:
        return str(self.root / "work")

    @property
    def env(self) -> dict[str, str]:
        path = f"{self.root}/bin:/usr/bin:/bin"
        return {"PATH": path, "HOME": str(self.root / "home"), "LANG": "C.UTF-8"}

    def decide(self, command: str) -> Verdict:
        return evaluate(command, self.cwd, self.env, self.policy, self.fs)


def make(root: Path, *, still: bool = False) -> Machine:
    """Build it below an empty directory; `still` looks at each file only once."""
    root = root.resolve()
    for name in ("bin", "work", "home"):
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "work" / "a b").touch()
    script = root / "bin/mytool"
    script.write_text('#!/bin/sh\n: "$@"\n')
    script.chmod(0o755)
    shutil.copy(os.path.realpath("/bin/true"), root / "bin/mybin")
    for name, target in (("ls2", "/bin/ls"), ("tool", str(script)), ("s", "/bin/sh")):
        link = root / "bin" / name
        if not link.is_symlink():
            link.symlink_to(target)
    fs = RealFs()
    rules, programs = [], {}
    for name in RULED:
        real = _found(name)
        if real is not None:
            rules.append(Rule(name, real))
            programs[name] = real
    for name in OWN:
        file = fs.file(str(root / "bin" / name))
        assert file is not None
        rules.append(Rule(name, file.real, fs.sha256(file)))
        programs[name] = file.real
    for name, uses in EXACT.items():
        real = _found(name)
        if real is not None:
            rules += [Rule(f"{name}{n}", real, arg_pattern=exactly(a)) for n, a in enumerate(uses)]
            programs[name] = real
    safe = [name for name in SAFE if _found(name)]
    programs.update({name: real for name in safe if (real := _found(name)) is not None})
    wrappers = {name: real for name in WRAPPERS if (real := _found(name)) is not None}
    policy = ExecPolicy(rules=tuple(rules), safe_bins=configured(safe))
    return Machine(root, policy, programs, wrappers, StillFs() if still else fs)
