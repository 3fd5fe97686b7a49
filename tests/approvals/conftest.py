"""A small world of programs in a temporary folder, and short ways to decide over commands."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from claw_engine.approvals.evaluate import Verdict, evaluate
from claw_engine.approvals.fsview import RealFs
from claw_engine.approvals.policy import ExecPolicy, Rule


@dataclass
class Box:
    """`bin` is on PATH before the system's folders; everything in here is writable."""

    root: Path
    fs: RealFs = field(default_factory=RealFs)

    @property
    def bin(self) -> Path:
        return self.root / "bin"

    @property
    def cwd(self) -> Path:
        return self.root / "work"

    @property
    def env(self) -> dict[str, str]:
        return {"PATH": f"{self.bin}:/usr/bin:/bin", "HOME": str(self.root / "home")}

    def program(self, path: str, text: str = "#!/bin/sh\necho ran\n") -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
        return file

    def hash(self, path: Path) -> str:
        found = self.fs.file(str(path))
        assert found is not None
        digest = self.fs.sha256(found)
        assert digest is not None
        return digest

    def rule(self, path: Path | str, *, bound: bool = True) -> Rule:
        pattern = str(path)
        writable = bound and not pattern.startswith("/usr/")
        return Rule("r1", pattern, self.hash(Path(pattern)) if writable else None)

    def decide(self, command: str, *rules: Rule, policy: ExecPolicy | None = None) -> Verdict:
        policy = policy or ExecPolicy(rules=rules)
        return evaluate(command, str(self.cwd), self.env, policy, self.fs)


@pytest.fixture
def box(tmp_path: Path) -> Box:
    root = tmp_path.resolve()
    for name in ("bin", "work", "home", "opt"):
        (root / name).mkdir()
    return Box(root)
