"""Environment variables that make another program run than the one on the card.

Pure table; source: OpenClaw 2026.2.26's block list for host execution. The exec tool removes
these from a child's environment and refuses them as overrides; the decision core asks when one
is left.
"""

from __future__ import annotations

from collections.abc import Mapping

from claw_engine.approvals.wordlist import words

_NAMES = words(
    "NODE_OPTIONS NODE_PATH PYTHONHOME PYTHONPATH PERL5LIB PERL5OPT RUBYLIB RUBYOPT BASH_ENV ENV "
    "GIT_EXTERNAL_DIFF SHELL SHELLOPTS PS4 GCONV_PATH IFS SSLKEYLOGFILE"
)
_PREFIXES = ("DYLD_", "LD_", "BASH_FUNC_")
# Removed from children all the same, but they change nothing for a program started by its path.
_HARMLESS_HERE = frozenset({"SHELL"})


def is_blocked(name: str) -> bool:
    """Whether a child must not get this variable, nor a model set it."""
    return name in _NAMES or name.startswith(_PREFIXES)


def dangerous(env: Mapping[str, str]) -> tuple[str, ...]:
    """Names in `env` that could redirect a program which was allowed by its path, sorted."""
    return tuple(sorted(n for n in env if is_blocked(n) and n not in _HARMLESS_HERE))
