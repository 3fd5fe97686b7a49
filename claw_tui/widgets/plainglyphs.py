"""For locales that are not UTF-8: every line that leaves for the terminal is made ASCII, cell by
cell, so that columns stay where they are."""

from __future__ import annotations

from rich.cells import get_character_cell_size
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

SIGNS = str.maketrans(
    {
        "─": "-", "│": "|", "╭": "+", "╮": "+", "╰": "+", "╯": "+", "╌": "-", "━": "=", "┃": "|",
        "▌": ">", "▾": "v", "▸": ">", "▶": ">", "◷": "@", "⏸": "#", "■": "#", "▫": "-",
        "●": "*", "○": "o", "◐": "%", "◌": "o", "✗": "x", "✓": "+", "⚠": "!", "•": "*",
        "·": "-", "…": "~", "❯": ">", "‹": "<", "›": ">", "“": '"', "”": '"', "’": "'",
        "–": "-", "—": "-", "→": ">", "↑": "^", "⏎": "$", "⟪": "<", "⟫": ">", "␉": "^",
        "▓": "#", "▒": "%", "░": ".", "◇": "*", "⋯": "~", "×": "x", "←": "<",
        "▁": "_", "▂": "_", "▃": "-", "▄": "-", "▅": "=", "▆": "=", "▇": "#",
        "█": "#", "▀": "-", "▔": "-", "▎": "|", "▊": "|", "▍": "|", "␛": "^",
    }
)  # fmt: skip
"""One cell each, like what they stand for."""


def plain(text: str) -> str:
    """`text` in ASCII with the same width: one question mark for each cell of the unknown."""
    if text.isascii():
        return text
    signs = text.translate(SIGNS)
    if signs.isascii():
        return signs
    return "".join(c if c.isascii() else "?" * get_character_cell_size(c) for c in signs)


class PlainGlyphs(LineFilter):
    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            Segment(plain(text), style, control) if not control else Segment(text, style, control)
            for text, style, control in segments
        ]
