"""The file of requests and decisions: append-only JSON lines, each on disk before it counts.

Synchronous; every call runs on the disk executor. Knows records only as lines.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path

from claw_engine.approvals import records
from claw_engine.approvals.model import ApprovalRecord
from claw_engine.storage import jsonl
from claw_engine.storage.errors import disk_error
from claw_engine.storage.text import to_line
from claw_engine.world import World

log = logging.getLogger(__name__)

LINES_PER_REQUEST = 3
"""requested, resolved, ran."""


class RequestJournal:
    """`<state>/approvals/requests.jsonl`. Methods raise StateDiskError."""

    def __init__(self, world: World, path: Path) -> None:
        self.path = path
        self._world = world
        self._file = jsonl.LineFile(world.disk, path)

    def open(self, limit: int) -> list[ApprovalRecord]:
        """Make the folder, mend a torn end, and give the newest `limit` records, oldest first."""
        try:
            self._world.disk.mkdir(self.path.parent)
        except OSError as error:
            raise disk_error(error, self.path) from error
        mended = jsonl.repair(self._world.disk, self.path, self._world.clock.now_ms())
        if mended is not None:
            log.warning(mended.sentence())
        return self.tail(limit)

    def tail(self, limit: int) -> list[ApprovalRecord]:
        """The newest `limit` records, oldest first."""
        if not self._world.disk.exists(self.path):
            return []
        lines = jsonl.tail(self._world.disk, self.path, limit * LINES_PER_REQUEST)
        return records.fold(_objects(lines))[-limit:]

    def append(self, *lines: Mapping[str, object]) -> None:
        """Add lines, all or none; returns once they are on disk."""
        self._file.append(b"".join(map(to_line, lines)), fsync=True)


def _objects(lines: Iterable[bytes]) -> Iterable[Mapping[str, object]]:
    for line in lines:
        value = jsonl.parse_line(line)
        if isinstance(value, dict):
            yield value
