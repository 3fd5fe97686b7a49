"""Themes as data: `*.yaml` files with exactly Textual's theme fields plus `variables:`. A file
that is wrong says what is wrong and changes nothing."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from textual.color import Color, ColorParseError
from textual.theme import Theme

DEFAULT_DARK = "claw-dark"
DEFAULT_LIGHT = "claw-light"
DEFAULT_ANSI = "claw-ansi"

_FIELDS = {field.name for field in fields(Theme)}
_COLORS = _FIELDS - {"name", "dark", "ansi", "luminosity_spread", "text_alpha", "variables"}
_NOT_COLORS = ("-style", "-style-hover", "-style-focus")


class ThemeError(ValueError):
    """A theme file that cannot be used; the message names file, field and reason."""


def theme_dirs() -> list[Path]:
    """Where themes are looked for: inside the installed package, else beside it in a checkout."""
    package = Path(__file__).parent
    return [d for d in (package / "themes", package.parent / "themes") if d.is_dir()][:1]


def load_theme(path: Path) -> Theme:
    """Read one file. Raises ThemeError."""
    import yaml  # start-up: only when a theme is read

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        raw = yaml.load(path.read_text("utf-8"), loader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ThemeError(f"{path.name}: {str(error).splitlines()[0]}") from error
    if not isinstance(raw, dict):
        raise ThemeError(f"{path.name}: not a mapping")
    return check_theme(raw, path.name)


def check_theme(raw: dict[object, object], source: str) -> Theme:
    """A theme from a parsed file. Raises ThemeError for unknown fields and wrong values."""
    values: dict[str, object] = {}
    for key, value in raw.items():
        name = str(key)
        if name not in _FIELDS:
            raise ThemeError(f"{source}: unknown field {name}")
        values[name] = _checked(name, value, source)
    for needed in ("name", "primary"):
        if needed not in values:
            raise ThemeError(f"{source}: {needed} is missing")
    return Theme(**values)  # type: ignore[arg-type]  # names and types were checked above


def _checked(name: str, value: object, source: str) -> object:
    if name in ("dark", "ansi"):
        if not isinstance(value, bool):
            raise ThemeError(f"{source}: {name} must be true or false")
        return value
    if name in ("luminosity_spread", "text_alpha"):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ThemeError(f"{source}: {name} must be a number")
        return float(value)
    if name == "variables":
        if not isinstance(value, dict):
            raise ThemeError(f"{source}: variables must be a mapping")
        for key, item in value.items():
            if str(key).startswith("claw-"):
                _color(f"variables.{key}", item, source)
        return {str(key): str(item) for key, item in value.items()}
    if name == "name":
        if not isinstance(value, str) or not value:
            raise ThemeError(f"{source}: name must be a word")
        return value
    return _color(name, value, source)


def _color(name: str, value: object, source: str) -> str:
    try:
        Color.parse(str(value))
    except ColorParseError as error:
        raise ThemeError(f"{source}: {name}: {value!r} is no colour") from error
    return str(value)


def names(directories: list[Path]) -> list[str]:
    """What the files are called, read or not."""
    return sorted(path.stem for directory in directories for path in directory.glob("*.yaml"))


def load_all(directories: list[Path], only: str = "") -> tuple[list[Theme], list[str]]:
    """Every theme that can be used, and a sentence for each that cannot; or the one of a name."""
    themes: list[Theme] = []
    problems: list[str] = []
    for directory in directories:
        for path in sorted(directory.glob("*.yaml")):
            if only and path.stem != only:
                continue
            try:
                themes.append(load_theme(path))
            except ThemeError as error:
                problems.append(str(error))
    return themes, problems
