"""What all sections share: frozen, OpenClaw's camelCase names in the file, snake_case here.

Defaults are plain instances; a start without a configuration file reads no field's type.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, TypeVar

from msgspec import Meta
from msgspec.structs import replace

from claw_engine.shapes import Extra, Stated


class Section(Stated, frozen=True):
    """Base of every settings object. Unknown keys are reported elsewhere and ignored here."""

    extra: ClassVar[Extra] = "ignore"
    lax: ClassVar[bool] = True

    def __repr__(self) -> str:
        """Names only: a value may be a secret."""
        return f"{type(self).__name__}({', '.join(sorted(self.stated))})"


S = TypeVar("S", bound=Section)


def laid_over(base: S, own: S) -> S:
    """`base` with the fields that `own` states, section by section."""
    changes: dict[str, object] = {}
    for name in own.stated:
        old, new = getattr(base, name), getattr(own, name)
        both = isinstance(old, Section) and isinstance(new, Section)
        changes[name] = laid_over(old, new) if both else new
    return replace(base, **changes, stated=base.stated | own.stated)


Count = Annotated[int, Meta(gt=0)]
"""A whole number of at least 1."""

Amount = Annotated[int, Meta(ge=0)]
"""A whole number of at least 0."""

Number = Annotated[float, Meta(ge=0)]

Names = tuple[str, ...]
