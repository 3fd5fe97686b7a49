"""The state directory's `.env` file: `NAME=value` lines that stand under the real environment."""

from __future__ import annotations

import re

_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*$")


def parse_dotenv(text: str) -> dict[str, str]:
    """Names and values; blank lines, comments and lines of another shape are passed over.

    Single quotes keep the text as it is, double quotes know `\\n`, `\\"` and `\\\\`; without
    quotes a ` #` starts a comment. Nothing is expanded.
    """
    values: dict[str, str] = {}
    for line in text.splitlines():
        match = _LINE.match(line)
        if match and not line.lstrip().startswith("#"):
            values[match.group(1)] = _unquote(match.group(2))
    return values


def _unquote(value: str) -> str:
    quoted = re.match(r"""("(?:\\.|[^"\\])*"|'[^']*')\s*(?:#.*)?$""", value)
    if not quoted:
        return re.split(r"(?:^|\s)#", value, maxsplit=1)[0].rstrip()
    inner = quoted.group(1)[1:-1]
    if quoted.group(1)[0] == "'":
        return inner
    return re.sub(r"\\(.)", lambda m: "\n" if m.group(1) == "n" else m.group(1), inner)
