from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from textual.color import Color

from claw_tui.themes import ThemeError, load_all, load_theme, read_plain, theme_dirs
from claw_tui.widgets.ink import ROLES, Ink


def test_ours_load_without_a_problem() -> None:
    themes, problems = load_all(theme_dirs())
    assert problems == []
    assert {"claw-dark", "claw-light", "claw-ansi", "claw-clear"} <= {t.name for t in themes}
    by_name = {theme.name: theme for theme in themes}
    assert by_name["claw-ansi"].ansi and not by_name["claw-light"].dark


@pytest.mark.parametrize("name", ["claw-dark", "claw-light", "claw-clear"])
def test_every_pen_can_be_read_on_its_background(name: str) -> None:
    """WCAG contrast of at least 3:1 for faint words, 4.5:1 for the rest."""
    theme = next(t for t in load_all(theme_dirs())[0] if t.name == name)
    fields = {
        "success": theme.success,
        "warning": theme.warning,
        "error": theme.error,
        "accent": theme.accent,
        "primary": theme.primary,
        "foreground": theme.foreground,
    }
    variables = {**{k: v or "" for k, v in fields.items()}, **theme.variables}
    background = Color.parse(theme.background or "#000000")
    for role, names in ROLES.items():
        value = next(variables[n] for n in names if variables.get(n))
        ratio = contrast(Color.parse(value), background)
        assert ratio >= (3 if role == "faint" else 4.5), (role, value, round(ratio, 2))


def contrast(a: Color, b: Color) -> float:
    def light(color: Color) -> float:
        parts = [
            x / 12.92 if x <= 0.03928 else ((x + 0.055) / 1.055) ** 2.4 for x in color.normalized
        ]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    high, low = sorted((light(a), light(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("name: x\nprimary: red\nsize: 3\n", "unknown field size"),
        ("name: x\n", "primary is missing"),
        ("name: x\nprimary: nocolour\n", "'nocolour' is no colour"),
        ("name: x\nprimary: red\ndark: 'yes'\n", "dark must be true or false"),
        ("name: x\nprimary: red\nvariables: 3\n", "variables must be a mapping"),
        ("name: x\nprimary: red\nvariables: {claw-text: zzz}\n", "variables.claw-text"),
        ("- a\n", "not a mapping"),
        ("a: [\n", "t.yaml"),
        ("name: ''\nprimary: red\n", "a word"),
        ("!!python/object/apply:os.system ['true']\n", "t.yaml"),
    ],
)
def test_a_broken_file_says_what_is_wrong(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(text)
    with pytest.raises(ThemeError, match=r"t\.yaml") as caught:
        load_theme(path)
    assert reason in str(caught.value)
    assert load_all([tmp_path])[0] == []


def test_pens_have_no_background_and_fall_back_for_foreign_themes() -> None:
    ink = Ink(
        {"foreground": "#ffffff", "primary": "#0000ff", "text-muted": "auto 60%"},
        dark=True,
        ansi=False,
    )
    for role in ROLES:
        assert ink(role, "b").bgcolor is None
    assert ink("claw").color is not None


def test_our_files_are_read_without_yaml_as_yaml_reads_them() -> None:
    for path in theme_dirs()[0].glob("*.yaml"):
        assert read_plain(path.read_text()) == yaml.safe_load(path.read_text()) is not None


NAMES = st.sampled_from(["name", "variables", "claw-a", "on", "x_y", "A", "'a'", "# said", "- a"])
VALUES = st.sampled_from(
    ["", " ", " x", ' "#fff"', ' "a" # b', ' "\\n"', " 'a'", " true", " no", " 1", " ~", " é",
     ' "é"', "\tx", " x\r", ' "\x85"', " {}", " x y", "x", ' "', ' ""', " |", " &a"]
)  # fmt: skip
ROWS = st.builds("{}{}:{}".format, st.sampled_from(["", "", "  ", " ", "   "]), NAMES, VALUES)
NOISE = st.sampled_from(["", " ", "# said", "---", "name", "\t"])
FILES = st.lists(ROWS | ROWS | ROWS | NOISE, max_size=6).map("\n".join)


@given(FILES)
@example("variables:\n  a: x\n")
@example('a: "\x7f"\n')
@example("a: x\na: y\n")
def test_what_is_read_without_yaml_is_what_yaml_reads(text: str) -> None:
    found = read_plain(text)
    if found is not None:
        assert found == yaml.safe_load(text)
