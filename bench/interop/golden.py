"""Keeps samples of a run for offline tests: small, without paths of the machine it ran on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bench.interop.files import Look, spoken
from bench.interop.provider import SENTENCE

ROW = ("sessionId", "updatedAt", "totalTokens", "contextTokens", "model")
"""Fields of a session's row that both programs must tell alike."""
_BULKY = ("skillsSnapshot", "systemPromptReport")
_FILLER = re.compile(f"(?:{re.escape(SENTENCE)})*{re.escape(SENTENCE.strip())} ?")


class Golden:
    """Writes under `folder`; with None it keeps nothing."""

    def __init__(self, folder: Path | None, work: Path) -> None:
        self._folder = folder
        self._work = work

    def directory(
        self, name: str, seen: Look, told: Mapping[str, Any], rows: Mapping[str, Any]
    ) -> None:
        """A sessions folder as it was, and what the real program said of it."""
        if self._folder is None:
            return
        folder = self._folder / name / "agents" / "main" / "sessions"
        folder.mkdir(parents=True)
        for file, data in seen.files.items():
            if ".jsonl" in file and not file.endswith(".lock"):
                (folder / file).write_text(self._plain(data.decode()))
        index = {
            key: {n: {"prompt": "…"} if n in _BULKY else v for n, v in entry.items()}
            for key, entry in seen.index.items()
        }
        text = json.dumps(index, indent=2, ensure_ascii=False)
        (folder / "sessions.json").write_text(self._plain(text))
        said = {
            key: {
                "row": {field: rows[key].get(field) for field in ROW},
                "said": spoken(m for m in messages if m["role"] != "system"),
            }
            for key, messages in told.items()
        }
        told_text = json.dumps(said, indent=1, ensure_ascii=False)
        (self._folder / name / "told.json").write_text(self._plain(told_text) + "\n")

    def shapes(self, seen: Look) -> None:
        """The shapes of all lines of the live transcripts."""
        if self._folder is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        lines = [line for key in seen.index for line in seen.lines(key)]
        text = json.dumps(sorted(shapes_of(lines)), indent=1)
        (self._folder / "accepted-shapes.json").write_text(text + "\n")

    def _plain(self, text: str) -> str:
        text = _FILLER.sub(SENTENCE.strip(), text)
        return re.sub(rf"{re.escape(str(self._work))}/home-\w+", "/home/user", text)


def shapes_of(lines: Iterable[Mapping[str, Any]]) -> set[str]:
    """What kinds of lines there are, by the names of their fields, one text each."""
    found = set()
    for line in lines:
        message = line.get("message", {})
        what = message.get("role") or line.get("customType") or ""
        found.add(f"{line['type']} {what}: {' '.join(sorted(line))}")
        if message:
            found.add(f"{what} message: {' '.join(sorted(message))}")
        for block in message.get("content", []):
            found.add(f"{what} {block['type']} block: {' '.join(sorted(block))}")
    return found
