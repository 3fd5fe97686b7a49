"""Two-word names for commands in the background: easy to say, easy to type. Pure."""

from __future__ import annotations

from collections.abc import Container

_FIRST = (
    "amber", "brisk", "calm", "clear", "coral", "crisp", "dawn", "deep", "eager", "early",
    "faint", "fresh", "glad", "gold", "grand", "green", "ivory", "keen", "kind", "lucky",
    "mellow", "mild", "misty", "neat", "nimble", "plain", "quick", "quiet", "rapid", "sunny",
    "tidy", "warm",
)  # fmt: skip
_SECOND = (
    "basil", "bison", "brook", "cedar", "cloud", "comet", "crane", "dune", "falcon", "fern",
    "finch", "gecko", "grove", "harbor", "heron", "lagoon", "lark", "maple", "meadow", "otter",
    "pine", "prairie", "reef", "ridge", "river", "robin", "sage", "seal", "shell", "tiger",
    "trail", "willow",
)  # fmt: skip


def slug(number: int, taken: Container[str]) -> str:
    """A free name for `number` (any non-negative one); a third part when all names are taken."""
    count = len(_FIRST) * len(_SECOND)
    for step in range(count):
        first, second = divmod((number + step) % count, len(_SECOND))
        name = f"{_FIRST[first]}-{_SECOND[second]}"
        if name not in taken:
            return name
    extra = 2
    while (name := f"{_FIRST[0]}-{_SECOND[0]}-{extra}") in taken:
        extra += 1
    return name
