"""The transcript of a run: what was done, what was seen, which checks held. Redacts as it goes."""

from __future__ import annotations

import re
from pathlib import Path

from bench.interop.files import spoken
from bench.interop.peer import TOKEN

_UUID = re.compile(r"\b([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_PORT = re.compile(r"127\.0\.0\.1:\d+")
LONG = 160


class Report:
    """Prints as it goes and keeps everything for the file."""

    def __init__(self, work: Path) -> None:
        self._work = str(work)
        self._lines: list[str] = []
        self.held = 0
        self.broken: list[str] = []
        self._part = ""

    def part(self, title: str) -> None:
        self._part = title
        self._add("", f"## {title}", "")

    def step(self, text: str) -> None:
        self._add(f"- {text}")

    def check(self, what: str, good: bool, seen: object = "") -> bool:
        """One thing that must hold; `seen` tells what was there instead."""
        if good:
            self.held += 1
            self._add(f"  - ok: {what}")
        else:
            self.broken.append(f"{self._part}: {what}")
            self._add(f"  - **BROKEN**: {what}: {seen}")
        return good

    def same_history(self, what: str, one: list[dict[str, object]], two: object) -> bool:
        """Whether two histories say the same; tells the first difference."""
        assert isinstance(two, list)
        left, right = spoken(one), spoken(two)
        where = next(
            (i for i, p in enumerate(zip(left, right, strict=False)) if p[0] != p[1]), None
        )
        if where is None and len(left) != len(right):
            where = min(len(left), len(right))
        seen = ""
        if where is not None:
            seen = f"at message {where} of {len(left)}/{len(right)}: "
            seen += f"{left[where : where + 1]!r:.300} / {right[where : where + 1]!r:.300}"
        return self.check(f"{what} ({len(left)} messages)", left == right, seen)

    def text(self) -> str:
        total = self.held + len(self.broken)
        end = [f"{self.held} passed, {len(self.broken)} failed ({total} checks)"]
        return "\n".join([*self._lines, "", "## Result", "", *end, *map("- ".__add__, self.broken)])

    def _add(self, *lines: str) -> None:
        for line in map(self._redacted, lines):
            self._lines.append(line)
            print(line, flush=True)

    def _redacted(self, line: str) -> str:
        line = line.replace(self._work, "<work>").replace(TOKEN, "<token>")
        line = _PORT.sub("127.0.0.1:<port>", line)
        return _UUID.sub(r"\1-…", line)
