"""Finished answers as Markdown, once, into strips. Imported only when there is one to paint."""

from __future__ import annotations

from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading, Markdown, MarkdownElement
from rich.segment import Segment
from rich.style import Style
from rich.theme import Theme
from textual.strip import Strip

from claw_tui.widgets.ink import Ink


class _Heading(Heading):
    """Left aligned and bold: a chat answer has no room for centred boxes."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class _Plain(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
    }


class MarkdownPainter:
    """Paints one text at a width; owns a console with the theme's pens."""

    def __init__(self, ink: Ink) -> None:
        code = ink("accent")
        self._code_theme = "ansi_dark" if ink.dark else "ansi_light"
        self._console = Console(
            width=80,
            color_system="truecolor",
            force_terminal=True,
            legacy_windows=False,
            _environ={},
            emoji=False,
            markup=False,
            highlight=False,
            theme=Theme(
                {
                    "markdown.code": code,
                    "markdown.code_block": ink("output"),
                    "markdown.h1": ink("claw", "b"),
                    "markdown.h2": ink("claw", "b"),
                    "markdown.h3": ink("text", "b"),
                    "markdown.h4": ink("text", "b"),
                    "markdown.item.bullet": ink("claw"),
                    "markdown.item.number": ink("claw"),
                    "markdown.link": ink("user"),
                    "markdown.link_url": ink("muted"),
                    "markdown.block_quote": ink("muted"),
                    "markdown.hr": ink("faint"),
                    "markdown.table.border": ink("faint"),
                    "markdown.table.header": ink("text", "b"),
                }
            ),
        )
        self._text = ink("text")

    def paint(self, text: str, width: int) -> list[Strip]:
        """`text` must be tame already. Lines have no trailing blank one."""
        markup = _Plain(text, code_theme=self._code_theme, hyperlinks=False, style=self._text)
        options = self._console.options.update(width=width, height=None)
        lines = self._console.render_lines(markup, options, pad=False)
        strips: list[Strip] = []
        for segments in lines:
            strip = Strip(_clean(segments))
            if strip.text.strip() or (strips and strips[-1].text.strip()):
                strips.append(strip)  # never two blank lines in a row
        while strips and not strips[-1].text.strip():
            strips.pop()
        while strips and not strips[0].text.strip():
            strips.pop(0)
        return strips or [Strip([Segment(text or " ", self._text)])]


def _clean(segments: list[Segment]) -> list[Segment]:
    """Without background, link and meta: the pane's own background shows through."""
    out = []
    for text, style, control in segments:
        if not control:
            out.append(Segment(text, None if style is None else _bare(style)))
    return out


def _bare(style: Style) -> Style:
    if style.bgcolor is None and not style.link and not style.meta:
        return style
    return Style(
        color=style.color,
        bold=style.bold,
        italic=style.italic,
        dim=style.dim,
        underline=style.underline,
        strike=style.strike,
        reverse=style.reverse,
    )
