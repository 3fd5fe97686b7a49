"""Answers as Markdown: markup changes how a word looks, never whether it is on the lines."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claw_tui.store.sanitize import tame
from claw_tui.widgets.ink import Ink
from claw_tui.widgets.markdown import MarkdownPainter

PAINTER = MarkdownPainter(Ink({}, dark=True, ansi=False))


def lines(text: str, width: int = 60) -> list[str]:
    strips = PAINTER.paint(tame(text), width)
    assert all(strip.cell_length <= width for strip in strips)
    return [strip.text.rstrip() for strip in strips]


def joined(text: str, width: int = 60) -> str:
    return "".join("".join(lines(text, width)).split())


LITERAL = [
    "use Vec<String> and HashMap<K, V> here",
    "an <b>x</b> inline",
    "a <!-- hidden --> comment",
    "<script>alert(1)</script>",
    "<div>\nblock words\n</div>",
    "<!-- only a comment -->",
    "<details><summary>more</summary>inner</details>",
    "![a cat](https://example.org/cat.png)",
    "&lt;tag&gt; &#27;[2J &#x202e;evil &nbsp;end",
    "[ref]: https://example.org/definition",
    "see [text][ref]\n\n[ref]: https://example.org/x",
    "<?php echo 1 ?>",
    "a\n\n<table><tr><td>cell</td></tr></table>\n\nb",
    "javascript [x](javascript:alert(1)) stays",
]


@pytest.mark.parametrize("text", LITERAL)
def test_what_looks_like_markup_of_another_kind_is_shown_as_it_was_written(text: str) -> None:
    assert joined(text) == "".join(text.split())


def test_a_link_shows_its_url_whole_however_narrow() -> None:
    url = "https://example.org/" + "long/" * 30 + "end?q=ü"
    assert joined(f"see [the **docs**]({url}) now") == f"seethedocs({url})now"
    assert joined(f"<{url}>") == url
    assert joined('[a](http://b.c "the title")') == 'a(http://b.c"thetitle")'
    assert joined("[![alt](http://i.mg/x)](http://b.c)") == "[![alt](http://i.mg/x)](http://b.c)"


def test_line_breaks_of_a_paragraph_are_kept() -> None:
    assert lines("Try:\nrun: uptime\nthink: why?") == ["Try:", "run: uptime", "think: why?"]


def test_what_markdown_would_lose_is_painted_as_plain_lines() -> None:
    assert "lost" in joined("| a | b |\n|---|---|\n| 1 | 2 | lost |\n")
    wide = "|" + "|".join(f"column{n}" for n in range(40)) + "|\n" + "|---" * 40 + "|\n"
    assert all(f"column{n}" in joined(wide) for n in range(40))
    assert "bottom" in joined("> " * 60 + "bottom")
    nested = "\n".join("  " * n + f"- level{n}" for n in range(60))
    assert all(f"level{n}" in joined(nested) for n in range(60))
    assert "title.py" in joined("```python title.py\nx = 1\n```")


def test_markup_still_works() -> None:
    text = "# Head\n\n- **bold** `code`\n\n1. one\n1. two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    shown = "\n".join(lines(text))
    assert "#" not in shown and "**" not in shown and "`" not in shown and "|---" not in shown
    assert "• bold code" in shown and "2 two" in shown


PIECES = st.sampled_from([
    "word", "zwei", "<b>", "</b>", "<div>", "\n", "\n\n", "- ", "1. ", "2) ", "> ", "# ", "| ",
    "|---|---|\n", "```\n", "`", "*", "**", "~~", "[", "](http://x.yz/q)", "![", "&amp;", "\\",
    "<!--", "-->", "    ", "\t", "---\n", "===\n", "漢字", " ",
])  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=30).map("".join), st.integers(20, 100))
def test_every_letter_of_the_source_is_on_the_lines(text: str, width: int) -> None:
    shown = "".join(lines(text, width))
    for char in "wordzweidv漢字xyqamp":
        missing = text.count(char) - shown.count(char)
        # What stands behind a fence is the name of a language.
        fenced = "```" in text or "~~~" in text
        assert missing <= (len(text) if fenced else 0), char
