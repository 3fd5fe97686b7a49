"""Names and what they stand for."""

from __future__ import annotations

import pytest

from claw_engine.approvals.programs import Kind, classify, is_builtin, refusal
from claw_engine.approvals.wrappers import unwrap


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("sh", Kind.SHELL),
        ("SH", Kind.SHELL),
        ("bash-static", Kind.SHELL),
        ("bash5.2", Kind.SHELL),
        ("sh.distrib", Kind.SHELL),
        ("pwsh.exe", Kind.SHELL),
        ("python3.11", Kind.INTERPRETER),
        ("python3.12m", Kind.INTERPRETER),
        ("perl5.36-x86_64-linux-gnu", Kind.INTERPRETER),
        ("php-cgi", Kind.INTERPRETER),
        ("node20", Kind.INTERPRETER),
        ("mawk", Kind.INTERPRETER),
        ("ld-linux-x86-64.so.2", Kind.INTERPRETER),
        ("busybox", Kind.MULTIPLEXER),
        ("coreutils", Kind.MULTIPLEXER),
        ("vim.basic", Kind.LAUNCHER),
        ("nc.openbsd", Kind.LAUNCHER),
        ("git-lfs", Kind.LAUNCHER),
        ("x86_64-linux-gnu-gcc-12", Kind.LAUNCHER),
        ("sudo", Kind.PRIVILEGE),
        ("xargs", Kind.BLOCKED_WRAPPER),
        ("env", Kind.WRAPPER),
        ("systemd-inhibit", Kind.BLOCKED_WRAPPER),
        ("fakeroot-tcp", Kind.BLOCKED_WRAPPER),
        ("gpg-agent", Kind.BLOCKED_WRAPPER),  # `gpg-agent --daemon PROGRAM`
        ("not-14", Kind.BLOCKED_WRAPPER),  # of LLVM: `not COMMAND`
        ("runc", Kind.BLOCKED_WRAPPER),
        ("pdb3.11", Kind.LAUNCHER),
        ("xzless", Kind.LAUNCHER),
        ("prove", Kind.LAUNCHER),
        ("lli-14", Kind.LAUNCHER),
        ("nm", Kind.LAUNCHER),  # --plugin
        ("x86_64-linux-gnu-gcc-ar-12", Kind.LAUNCHER),
        ("ls", Kind.PLAIN),
        ("cat", Kind.PLAIN),
        ("sha256sum", Kind.PLAIN),
        ("run-time-report", Kind.PLAIN),
        ("backup-script", Kind.PLAIN),
        ("7", Kind.PLAIN),
        ("", Kind.PLAIN),
    ],
)
def test_classify(name: str, kind: Kind) -> None:
    assert classify(name) is kind


@pytest.mark.parametrize("kind", list(Kind))
def test_every_special_kind_has_a_sentence(kind: Kind) -> None:
    sentence = refusal(kind, "tool")
    assert (sentence is None) == (kind is Kind.PLAIN)
    assert sentence is None or sentence.startswith("tool ")


def test_words_of_the_shell() -> None:
    assert is_builtin("cd")
    assert is_builtin(".")
    assert not is_builtin("echo")  # there is a program of that name, and it is what would run


@pytest.mark.parametrize(
    ("argv", "programs", "blocked"),
    [
        (("id",), (0,), False),
        (("env", "id"), (0, 1), False),
        (("/usr/bin/env", "nice", "-n", "-5", "id"), (0, 1, 4), False),
        (("timeout", "--foreground", "1.5m", "id"), (0, 3), False),
        (("env",), (0,), True),
        (("env", "-u", "X", "id"), (0,), True),
        (("env", "A=1", "id"), (0,), True),
        (("nice", "-19", "id"), (0,), True),
        (("timeout", "id"), (0,), True),
        (("timeout", "5", "-s", "id"), (0,), True),
        (("stdbuf", "-oX", "id"), (0,), True),
        (("nohup",), (0,), True),
        (("nice",) * 4 + ("id",), (0, 1, 2, 3, 4), False),
        (("nice",) * 5 + ("id",), (0, 1, 2, 3, 4), True),
    ],
)
def test_unwrap(argv: tuple[str, ...], programs: tuple[int, ...], blocked: bool) -> None:
    found = unwrap(argv)
    assert found.programs == programs
    assert (found.problem is not None) == blocked
