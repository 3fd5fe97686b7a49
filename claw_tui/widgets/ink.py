"""The console's pens: named roles, resolved against the theme that is on."""

from __future__ import annotations

from collections.abc import Mapping

from rich.style import Style
from textual.color import Color, ColorParseError

ROLES: Mapping[str, tuple[str, ...]] = {
    "text": ("claw-text", "foreground"),
    "muted": ("claw-muted", "foreground-muted", "foreground"),
    "faint": ("claw-faint", "claw-muted", "foreground-disabled", "foreground"),
    "user": ("claw-user", "accent"),
    "claw": ("claw-agent", "primary"),
    "think": ("claw-think", "secondary"),
    "tool": ("claw-tool", "primary"),
    "output": ("claw-output", "claw-muted", "foreground-muted", "foreground"),
    "key": ("claw-key", "accent"),
    "good": ("success",),
    "warn": ("warning",),
    "bad": ("error",),
    "accent": ("accent",),
    "primary": ("primary",),
}
"""A role's theme variables, the first that is defined and is a plain colour wins."""


class Ink:
    """Styles without a background: a widget's own background shows through."""

    def __init__(self, variables: Mapping[str, str], *, dark: bool, ansi: bool) -> None:
        self.dark = dark
        self.ansi = ansi
        self._colors = {role: self._color(names, variables) for role, names in ROLES.items()}
        self._styles: dict[tuple[str, str], Style] = {}

    @staticmethod
    def _color(names: tuple[str, ...], variables: Mapping[str, str]) -> Color | None:
        for name in names:
            value = variables.get(name, "")
            if not value or value.startswith("auto"):
                continue
            try:
                return Color.parse(value)
            except ColorParseError:
                continue
        return None

    def __call__(self, role: str, extra: str = "") -> Style:
        """The style of a role; `extra` has any of b(old) d(im) i(talic) r(everse) u(nderline)."""
        cached = self._styles.get((role, extra))
        if cached is None:
            color = self._colors.get(role)
            cached = Style(
                color=color.rich_color if color is not None else None,
                bold="b" in extra or None,
                dim="d" in extra or None,
                italic="i" in extra or None,
                reverse="r" in extra or None,
                underline="u" in extra or None,
            )
            self._styles[(role, extra)] = cached
        return cached
