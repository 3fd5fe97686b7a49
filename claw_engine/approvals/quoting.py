"""Taking backslashes off, in runs: pure, text in, text out. Knows no words and no commands."""

from __future__ import annotations

from claw_engine.patterns import late

ESCAPED = late(r"(?:\\[^\n]|[^ \t\n'\"\\$`<>()&;|*?\[{}~#]++)++")
"""Outside of quotes: ordinary characters, and any but a line break behind a backslash."""

IN_DOUBLE = late(r'(?:[^"\\$`]++|\\[^\n])++')
"""The same between double quotes."""

DROPPED_IN_DOUBLE = '$`"'
"""Between double quotes a backslash quotes only these, and itself; else it stays."""


def unescaped(text: str, quotes: str | None = None) -> str:
    """`text` without the backslashes that quote (None = any character, else one of `quotes`, or
    a backslash). It neither ends in the middle of an escape nor holds one of a line break."""
    pieces = iter(text.split("\\"))
    out = [next(pieces)]
    for piece in pieces:
        if piece == "":  # a backslash that quotes a backslash; what follows it is plain
            out += ("\\", next(pieces, ""))
        elif quotes is None or piece[0] in quotes:
            out.append(piece)
        else:
            out += ("\\", piece)
    return "".join(out)
