"""What all sections share: frozen, OpenClaw's camelCase names in the file, snake_case here.

Models are built when first validated (`defer_build`), so that a start without a configuration
file pays for none of them; defaults are made without validation.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel


class Section(BaseModel):
    """Base of every settings object."""

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        alias_generator=to_camel,
        validate_by_name=False,
        defer_build=True,
        protected_namespaces=(),
    )


S = TypeVar("S", bound=Section)


def defaults(section: type[S]) -> Any:
    """A field whose default is the section's own defaults (Any, as pydantic's Field is typed)."""
    return Field(default_factory=section.model_construct)


def _not_bool(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("expected a number")
    return value


Count = Annotated[int, BeforeValidator(_not_bool), Field(gt=0)]
"""A whole number of at least 1."""

Amount = Annotated[int, BeforeValidator(_not_bool), Field(ge=0)]
"""A whole number of at least 0."""

Number = Annotated[float, BeforeValidator(_not_bool), Field(ge=0, allow_inf_nan=False)]

Names = tuple[str, ...]
