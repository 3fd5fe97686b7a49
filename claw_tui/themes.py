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
    try:
        words = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ThemeError(f"{path.name}: {error}") from error
    raw = read_plain(words)
    return check_theme(_read_yaml(words, path.name) if raw is None else raw, path.name)


def _read_yaml(words: str, source: str) -> dict[object, object]:
    import yaml  # start-up: only for a file that `read_plain` leaves to it

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        raw = yaml.load(words, loader)
    except yaml.YAMLError as error:
        raise ThemeError(f"{source}: {str(error).splitlines()[0]}") from error
    if not isinstance(raw, dict):
        raise ThemeError(f"{source}: not a mapping")
    return raw


def read_plain(words: str) -> dict[object, object] | None:
    """What YAML reads in a file of `name: value` lines, with more of them two columns in under a
    name that has none; None where it might read something else. Our own themes are written so:
    loading YAML costs a start more than all it reads."""
    out: dict[object, object] = {}
    inner: dict[object, object] | None = None
    for line in words.removesuffix("\n").split("\n"):
        row = line
        if not row.isprintable():
            return None
        if not row or row.startswith("#"):
            continue
        place: dict[object, object] | None = out
        if row.startswith("  "):
            row, place = row[2:], inner
        elif inner == {}:  # a name without a value: YAML says null
            return None
        else:
            inner = None
        name, colon, said = row.partition(":")
        if place is None or not colon or not _is_word(name):
            return None
        if said == "" and place is out:
            inner = {}
            out[name] = inner
            continue
        value = _plain_value(said[1:]) if said.startswith(" ") else None
        if value is None:
            return None
        place[name] = value
    return None if inner == {} or not out else out


_YAML_WORDS = ("true", "false", "yes", "no", "on", "off", "null")
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz")


def _is_word(said: str) -> bool:
    return (
        said[:1] in _LETTERS
        and said not in _YAML_WORDS
        and _LETTERS.issuperset(said.replace("-", "").replace("_", ""))
    )


def _plain_value(said: str) -> str | bool | None:
    if said in ("true", "false"):
        return said == "true"
    if _is_word(said):
        return said
    quoted = len(said) > 1 and said[0] == said[-1] == '"'
    return said[1:-1] if quoted and not set(said[1:-1]) & {'"', "\\"} else None


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
