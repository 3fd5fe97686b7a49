"""JSON values that come from outside, read into msgspec Structs: everything wrong at once.

Knows types, not files and not protocols. msgspec's own `convert` stops at the first fault and does
not say which fields were given; pydantic costs a third of the engine's start.
"""

from __future__ import annotations

import contextlib
import math
import operator
import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, ClassVar, Literal, TypeAlias, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import FieldInfo

Path: TypeAlias = tuple[str | int, ...]
Extra = Literal["refuse", "ignore", "keep"]


class Shape(Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of what comes from outside: camelCase there, snake_case here.

    `extra` says what becomes of unknown properties; "keep" puts them into a field `rest`.
    `lax` reads "8", 8.0 and "true" where a number or a truth value is wanted.
    A subclass states a rule between its fields in `__post_init__`, raising ValueError.
    """

    extra: ClassVar[Extra] = "refuse"
    lax: ClassVar[bool] = False

    @classmethod
    def before(cls, value: object) -> object:
        """A chance to change the value before its properties are looked at."""
        return value


class Before(Struct, frozen=True):
    """Annotated metadata: changes a value before it is looked at."""

    change: Callable[[object], object]


class Fault(Struct, frozen=True):
    """One thing that is wrong. `expected` completes "expected …"; of a rule it is the sentence."""

    kind: Literal["missing", "unexpected", "wrong", "rule"]
    path: Path
    expected: str = ""
    found: object = None
    choices: tuple[str, ...] = ()


class Faults(ValueError):
    """A value does not have its shape; `all` lists every fault."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__(f"{len(faults)} faults")
        self.all = tuple(faults)


T = TypeVar("T", bound=Shape)

TEXT, NUMBER, WHOLE = "a text in quotes", "a number", "a whole number"
OBJECT, LIST, TRUTH = "an object: { … }", "a list: [ … ]", "true or false"

_TRUE = frozenset({"true", "1", "yes", "on", "y", "t"})
_FALSE = frozenset({"false", "0", "no", "off", "n", "f"})


def read(kind: type[T], value: object) -> T:
    """`value` as a `kind`. Raises Faults."""
    reader = _Reader(kind.lax)
    built = reader.shape(kind, value, ())
    if built is None:
        raise Faults(reader.faults)
    return built


@cache
def _fields(kind: type[Shape]) -> tuple[tuple[FieldInfo, tuple[type, ...]], ...]:
    """Each with the types whose values need no further look."""
    fields = (field for field in msgspec.structs.fields(kind) if field.encode_name[0] != "(")
    return tuple((field, _plainly(field.type)) for field in fields)


_PLAIN: frozenset[object] = frozenset({str, int, bool})


def _plainly(wanted: object) -> tuple[type, ...]:
    """Types whose values are taken as they are: most fields are a text, a number or left out."""
    kinds = get_args(wanted) if get_origin(wanted) in (Union, types.UnionType) else (wanted,)
    plain = [kind for kind in kinds if kind in _PLAIN]
    nothing = [kind for kind in kinds if kind is type(None)]
    # Of several kinds the first that fits counts, which is not always the value's own.
    if len(plain) != 1 or len(plain) + len(nothing) != len(kinds):
        return ()
    return (*plain, *nothing)


class _Reader:
    """One pass; after a fault what is returned has no meaning."""

    def __init__(self, lax: bool) -> None:
        self._lax = lax
        self.faults: list[Fault] = []

    def shape(self, kind: type[T], value: object, path: Path) -> T | None:
        """The object, or None when there was a fault in it."""
        value = kind.before(value)
        if not isinstance(value, Mapping):
            self._wrong(path, OBJECT, value)
            return None
        before, given, known = len(self.faults), {}, set()
        for field, plain in _fields(kind):
            name = field.encode_name
            known.add(name)
            if name in value:
                item = value[name]
                if type(item) in plain:
                    given[field.name] = item
                else:
                    given[field.name] = self._value(field.type, item, (*path, name))
            elif field.required:
                self.faults.append(Fault("missing", (*path, name)))
        if kind.extra != "ignore" and not known.issuperset(value):
            rest = {str(name): item for name, item in value.items() if name not in known}
            if kind.extra == "keep":
                given["rest"] = rest
            else:
                self.faults += [Fault("unexpected", (*path, name)) for name in rest]
        if len(self.faults) > before:
            return None
        try:
            return kind.given(given) if issubclass(kind, Stated) else kind(**given)
        except ValueError as error:
            self.faults.append(Fault("rule", path, str(error), value))
            return None

    def _value(self, wanted: object, value: object, path: Path) -> object:
        origin = get_origin(wanted)
        if origin is None:
            return self._plain(wanted, value, path)
        inner = get_args(wanted)
        if origin is Annotated:
            return self._annotated(inner[0], inner[1:], value, path)
        if origin is Literal:
            return self._literal(inner, value, path)
        if origin is Union or origin is types.UnionType:
            return self._union(inner, value, path)
        if origin in (tuple, list):
            if not isinstance(value, list | tuple):
                return self._wrong(path, LIST, value)
            items = [self._value(inner[0], item, (*path, at)) for at, item in enumerate(value)]
            return items if origin is list else tuple(items)
        if origin is dict:
            if not isinstance(value, Mapping):
                return self._wrong(path, OBJECT, value)
            return {
                str(name): self._value(inner[1], item, (*path, str(name)))
                for name, item in value.items()
            }
        raise TypeError(f"no way to read a {wanted}")

    def _plain(self, wanted: object, value: object, path: Path) -> object:
        if wanted is str:
            return value if isinstance(value, str) else self._wrong(path, TEXT, value)
        if wanted is int:
            return self._int(value, path)
        if wanted is bool:
            return self._bool(value, path)
        if wanted is float:
            return self._float(value, path)
        if isinstance(wanted, type) and issubclass(wanted, Shape):
            return self.shape(wanted, value, path)
        if wanted is type(None):
            return None if value is None else self._wrong(path, "null", value)
        return value  # object, Any: free-form by the format

    def _int(self, value: object, path: Path) -> object:
        match value:
            case bool():
                pass
            case int():
                return value
            case float() if self._lax and value.is_integer():
                return int(value)
            case str() if self._lax:
                try:
                    return int(value)
                except ValueError:
                    pass
        return self._wrong(path, NUMBER if isinstance(value, bool) else WHOLE, value)

    def _float(self, value: object, path: Path) -> object:
        number = value
        if isinstance(value, str) and self._lax:
            with contextlib.suppress(ValueError):
                number = float(value)
        if isinstance(number, bool) or not isinstance(number, int | float):
            return self._wrong(path, NUMBER, value)
        return float(number) if math.isfinite(number) else self._wrong(path, NUMBER, value)

    def _bool(self, value: object, path: Path) -> object:
        if isinstance(value, bool):
            return value
        word = str(value).lower() if self._lax and isinstance(value, str | int) else ""
        if word in _TRUE or word in _FALSE:
            return word in _TRUE
        return self._wrong(path, TRUTH, value)

    def _literal(self, choices: tuple[object, ...], value: object, path: Path) -> object:
        if any(value == choice and type(value) is type(choice) for choice in choices):
            return value
        words = [repr(choice) for choice in choices]
        one_of = " or ".join((", ".join(words[:-1]), words[-1])) if len(words) > 1 else words[0]
        texts = tuple(choice for choice in choices if isinstance(choice, str))
        self.faults.append(Fault("wrong", path, f"one of {one_of}", value, texts))
        return None

    def _union(self, kinds: tuple[object, ...], value: object, path: Path) -> object:
        if value is None and type(None) in kinds:
            return None
        found: list[Fault] = []
        for kind in kinds:
            if kind is type(None):
                continue
            trial = _Reader(self._lax)
            result = trial._value(kind, value, path)
            if not trial.faults:
                return result
            found = found or trial.faults
        self.faults += found
        return None

    def _annotated(
        self, kind: object, notes: tuple[object, ...], value: object, path: Path
    ) -> object:
        for note in notes:
            if isinstance(note, Before):
                value = note.change(value)
        before = len(self.faults)
        result = self._value(kind, value, path)
        if len(self.faults) == before:
            for note in notes:
                expected = _broken_limit(note, result) if isinstance(note, Meta) else None
                if expected:
                    return self._wrong(path, expected, value)
        return result

    def _wrong(self, path: Path, expected: str, found: object) -> object:
        self.faults.append(Fault("wrong", path, expected, found))
        return None


S = TypeVar("S", bound="Stated")


class Stated(Shape, frozen=True, kw_only=True):
    """A shape that remembers which of its fields were given (`stated`)."""

    # A name in brackets is never looked for in a file.
    stated: frozenset[str] = msgspec.field(default=frozenset(), name="(stated)")

    @classmethod
    def given(cls: type[S], values: Mapping[str, object]) -> S:
        return cls(**values, stated=frozenset(values))


def _broken_limit(meta: Meta, value: object) -> str | None:
    """What was expected, when `value` breaks a limit."""
    if isinstance(value, int | float):
        limits: tuple[tuple[float | None, str, Callable[[float, float], bool]], ...] = (
            (meta.gt, "greater than", operator.gt),
            (meta.ge, "at least", operator.ge),
            (meta.lt, "less than", operator.lt),
            (meta.le, "at most", operator.le),
        )
        for limit, words, holds in limits:
            if limit is not None and not holds(value, limit):
                return f"a number {words} {limit}"
    elif isinstance(value, str | list | tuple):
        return _broken_size(meta, value)
    return None


def _broken_size(
    meta: Meta, value: str | list[object] | tuple[object, ...] | dict[str, object]
) -> str | None:
    what = (
        "a text"
        if isinstance(value, str)
        else "a list"
        if not isinstance(value, dict)
        else "an object"
    )
    unit = "characters" if isinstance(value, str) else "items"
    if meta.min_length is not None and len(value) < meta.min_length:
        if meta.min_length == 1:
            return f"{what} that is not empty"
        return f"{what} of at least {meta.min_length} {unit}"
    if meta.max_length is not None and len(value) > meta.max_length:
        return f"{what} of at most {meta.max_length} {unit}"
    if meta.pattern is not None and isinstance(value, str):
        import re

        if re.search(meta.pattern, value) is None:
            return f"a text that matches {meta.pattern}"
    return None
