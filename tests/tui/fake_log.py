"""A log on disk that a scripted engine tells as the real one does: the real reader reads it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from claw_engine.log_tail import LIMIT, MAX_BYTES, LogTail
from claw_engine.world import RealDisk
from tests.tui.fake_client import NOW, FakeClient

START = datetime.fromtimestamp(NOW / 1000, UTC) - timedelta(hours=1)
LEVELS = ("info", "info", "debug", "info", "warn", "info", "info", "info", "info", "error")


class FakeLog:
    """A file a day in `folder`. `paged` False: a gateway that has only `logs.tail`."""

    def __init__(self, folder: Path, *, paged: bool = True) -> None:
        self.folder = folder
        self.paged = paged
        self.written = 0
        self.tail = LogTail(RealDisk(), folder)

    def add(self, *messages: str, day: int = 30, level: str = "", logger: str = "claw.engine",
            **fields: object) -> None:  # fmt: skip
        with (self.folder / f"claw-2026-11-{day:02d}.log").open("a") as file:
            for message in messages:
                at = START + timedelta(milliseconds=250 * self.written)
                entry: dict[str, object] = {
                    "ts": at.isoformat(timespec="milliseconds"),
                    "level": level or LEVELS[self.written % len(LEVELS)],
                    "logger": logger,
                    "msg": message,
                }
                if "error" in fields:
                    entry["error"] = fields["error"]
                elif fields:
                    entry["fields"] = fields
                file.write(json.dumps(entry, ensure_ascii=False) + "\n")
                self.written += 1

    def many(self, count: int, *, day: int = 30, words: str = "request served") -> None:
        first = self.written
        self.add(*(f"{words} n={first + n}" for n in range(count)), day=day,
                 logger="claw_engine.gateway.http")  # fmt: skip

    def install(self, client: FakeClient) -> FakeClient:
        client.answers["logs.tail"] = self._tail
        if self.paged:
            client.answers["logs.page"] = self._page
        return client

    def _tail(self, params: Mapping[str, object]) -> Mapping[str, object]:
        limit, room = _number(params, "limit", LIMIT), _number(params, "maxBytes", MAX_BYTES)
        cursor = _number(params, "cursor", 0) if "cursor" in params else None
        found = dict(self.tail.read(cursor, limit, room))
        if not self.paged:
            del found["start"]
        return found

    def _page(self, params: Mapping[str, object]) -> Mapping[str, object]:
        older = "end" in params
        at = _number(params, "end" if older else "start", 0)
        limit, room = _number(params, "limit", LIMIT), _number(params, "maxBytes", MAX_BYTES)
        return self.tail.read_page(str(params["file"]), at, older, limit, room)


def _number(params: Mapping[str, object], name: str, default: int) -> int:
    value = params.get(name, default)
    assert isinstance(value, int)
    return value
