"""Regular expressions that are compiled at their first use, not when their module is imported.

Together they cost a twentieth of a start. The engine compiles the rest one by one when it is
ready, so that no message waits for them. Knows nothing of what they are for.
"""

from __future__ import annotations

import re
from typing import AnyStr, cast

_waiting: list[_Late] = []


class _Late:
    """Looks like the compiled expression; its methods become attributes when it is compiled."""

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self._source = pattern, flags

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        pattern, flags = self._source
        compiled = re.compile(cast("str", pattern), flags)  # or bytes: re takes both
        for method in ("match", "fullmatch", "search", "sub", "subn", "finditer", "findall",
                       "split", "pattern", "flags", "groups", "groupindex"):  # fmt: skip
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


def late(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """As re.compile, but a wrong pattern is found at its first use."""
    made = _Late(pattern, flags)
    _waiting.append(made)
    return cast("re.Pattern[AnyStr]", made)


def compile_next() -> bool:
    """Compile one that was not used yet, some ms at most; False when there is none."""
    while _waiting:
        waiting = _waiting.pop()
        if "match" not in vars(waiting):
            waiting.__getattr__("match")
            return True
    return False
