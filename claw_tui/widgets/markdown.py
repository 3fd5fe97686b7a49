"""Finished answers as Markdown, once, into strips. Imported only when there is one to paint.

Markup may change how a word looks, never whether it is there: HTML, images, entities and link
definitions are shown as they were written, and a text that Markdown would lose words of (rows
longer than their table, nesting without end) is painted as plain lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading, Markdown, MarkdownElement
from rich.segment import Segment
from rich.style import Style
from rich.theme import Theme
from textual.strip import Strip

from claw_tui.widgets.cells import wrap
from claw_tui.widgets.ink import Ink

COLUMN_CELLS = 6
"""A table with less room than this for each column is painted as it was written."""


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
    inlines = Markdown.inlines | {"link", "link_url"}

    def __init__(self, text: str, width: int, *, code_theme: str, style: Style) -> None:
        super().__init__("", code_theme=code_theme, hyperlinks=False, style=style)
        tokens = _parse(text, tables=True)
        if any(columns * COLUMN_CELLS > width for columns in _columns(tokens)):
            tokens = _parse(text, tables=False)
        self.markup, self.parsed = text, tokens


def _parse(text: str, *, tables: bool) -> list[Token]:
    # Nothing of the source may vanish: no HTML, no definitions set aside; no entities, because
    # they would put characters back that `tame` has taken out.
    parser = MarkdownIt("commonmark", {"html": False})
    parser.disable(["html_block", "html_inline", "reference", "entity"]).enable("strikethrough")
    parser.normalizeLink = str  # type: ignore[assignment]  # a URL is shown, not followed
    if tables:
        parser.enable("table")
    tokens = parser.parse(text)
    for token in tokens:
        if token.children:
            token.children = list(_literal(token.children))
        words = token.info.split()
        if token.type == "fence" and len(words) > 1:
            token.content = f"{token.info.strip()}\n{token.content}"
            token.info = ""
    return tokens


def _literal(tokens: Iterable[Token]) -> Iterable[Token]:
    """Inline tokens with URLs as text, images as written, and the writer's line breaks kept."""
    links: list[tuple[str, str, list[str]]] = []
    for token in tokens:
        match token.type:
            case "link_open":
                links.append((_attr(token, "href"), _attr(token, "title"), []))
                yield Token("pen_open", "link", 1)
                continue
            case "link_close":
                url, title, said = links.pop()
                yield Token("pen_close", "link", -1)
                if title or "".join(said) != url.removeprefix("mailto:"):
                    yield _text(" (")
                    yield Token("pen_open", "link_url", 1)
                    yield _text(_target(url, title))
                    yield Token("pen_close", "link_url", -1)
                    yield _text(")")
                continue
            case "image":
                target = _target(_attr(token, "src"), _attr(token, "title"))
                token.type, token.tag = "text", ""
                token.content = f"![{token.content}]({target})"
            case "softbreak":
                token.type = "hardbreak"
            case _:
                pass
        for _, _, said in links:
            said.append(token.content)
        yield token


def _target(url: str, title: str) -> str:
    return f'{url} "{title}"' if title else url


def _attr(token: Token, name: str) -> str:
    return str(token.attrs.get(name, ""))


def _text(words: str) -> Token:
    token = Token("text", "", 0)
    token.content = words
    return token


def _columns(tokens: Iterable[Token]) -> Iterable[int]:
    """How many columns each table has."""
    count = 0
    for token in tokens:
        if token.type == "th_open":
            count += 1
        elif token.type == "thead_close":
            yield count
            count = 0


def _lost(text: str, tokens: Iterable[Token], strips: Iterable[Strip]) -> bool:
    """Whether letters or digits of the source are missing on the lines. Counted, not compared
    in order: a table folds its cells beside each other."""
    painted = Counter[str]()
    for strip in strips:
        painted.update(strip.text)
    for token in tokens:
        if token.type in ("fence", "list_item_open"):
            painted.update(token.info)  # the language and the number: markup
    source = Counter(text)
    return any(n > painted[char] for char, n in source.items() if char.isalnum())


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
        markup = _Plain(text, width, code_theme=self._code_theme, style=self._text)
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
        if not strips or _lost(text, markup.parsed, strips):
            return [Strip([Segment(row or " ", self._text)]) for row in wrap(text, width)]
        return strips


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
