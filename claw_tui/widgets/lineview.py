"""The base of every pane: a scroll view that paints single lines from cached strips."""

from __future__ import annotations

from rich.style import Style
from textual.content import Content
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from claw_tui.store.sanitize import line
from claw_tui.widgets.ink import Ink


def set_title(widget: Widget, title: str, subtitle: str = "") -> None:
    """Border titles as plain text: never parsed as markup."""
    widget.border_title = Content(line(title))
    widget.border_subtitle = Content(line(subtitle)) if subtitle else None


class LineView(ScrollView, can_focus=True, inherit_bindings=False):
    """Subclasses say how many lines there are and draw one; nothing else is kept."""

    DEFAULT_CSS = """
    LineView { scrollbar-size-vertical: 1; overflow-x: hidden; overflow-y: auto; }
    """
    _ground = Style.null()

    @property
    def ink(self) -> Ink:
        ink = getattr(self.app, "ink", None)
        assert isinstance(ink, Ink)
        return ink

    @property
    def line_width(self) -> int:
        """Cells a line may use, the scrollbar's column always left free."""
        return max(4, self.content_size.width - 1)

    def set_line_count(self, lines: int) -> None:
        size = Size(max(1, self.content_size.width - 1), lines)
        if size != self.virtual_size:
            self.virtual_size = size
        height = self.styles.height
        if self.size.height != lines and (height is None or height.is_auto):
            # Lines that came while the page was first laid out: their height was not seen.
            self.call_after_refresh(self.refresh, layout=True)

    def draw(self, y: int) -> Strip:
        raise NotImplementedError

    def render_lines(self, crop: Region) -> list[Strip]:
        # Textual puts it together from all ancestors' styles: once a frame, not for each line.
        self._ground = self.rich_style
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        strip = self.draw(y + self.scroll_offset.y)
        width = self.size.width
        return strip.adjust_cell_length(width, Style.null()).apply_style(self._ground)

    def scroll_into(self, top: int, bottom: int, *, at_once: bool = False) -> None:
        """Scroll as little as needed to show lines `top`..`bottom` (exclusive)."""
        height = max(1, self.size.height)
        offset = self.scroll_offset.y
        if top < offset:
            self.scroll_to(y=top, animate=False, force=True, immediate=at_once)
        elif bottom > offset + height:
            y = min(top, bottom - height)
            self.scroll_to(y=y, animate=False, force=True, immediate=at_once)


class Lines(LineView, can_focus=False):
    """Fixed lines handed in; as high as they are."""

    DEFAULT_CSS = "Lines { height: auto; }"

    def __init__(self, name: str | None = None) -> None:
        super().__init__(id=name)
        self.lines: list[Strip] = []

    def show(self, lines: list[Strip]) -> None:
        self.lines = lines
        self.set_line_count(len(lines))
        self.styles.height = max(1, len(lines))
        self.refresh()

    def draw(self, y: int) -> Strip:
        return self.lines[y] if y < len(self.lines) else Strip.blank(0)
