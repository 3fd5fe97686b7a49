"""Reads a sessions.json into a table without holding the loop for more than some milliseconds."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Iterable, Iterator
from pathlib import Path
from time import perf_counter
from typing import TypeAlias

from msgspec import Struct

from claw_engine.sessions import store_file
from claw_engine.sessions.store_file import BrokenStore, NotLaidOut, Record
from claw_engine.sessions.table import Table
from claw_engine.storage.errors import disk_error
from claw_engine.world import Disk

STRICT_BYTES = 1024 * 1024
"""Files up to this size are parsed whole, so that damage shows at once."""
SLICE_S = 0.002
"""Seconds of work before other tasks get a turn."""

Mark: TypeAlias = tuple[int, int, int] | None
"""Which version of a file it is: inode, size, mtime (ns); None = there is no file."""


class Read(Struct):
    """What was read. `broken` says why the file is none; `table` then holds what was whole."""

    table: Table
    mark: Mark
    broken: str = ""


def mark_of(disk: Disk, path: Path) -> Mark:
    """The version of a file. Synchronous; raises StateDiskError."""
    try:
        stat = disk.stat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise disk_error(error, path) from error
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


async def read_store(disk: Disk, path: Path, agent_id: str, strict: int = STRICT_BYTES) -> Read:
    """Read the file. Raises StateDiskError."""
    mark, data = await disk.run(_bytes, disk, path)
    if data is None:
        return Read(Table(agent_id), None)
    if len(data) > strict:
        with _uncollected(), contextlib.suppress(NotLaidOut):
            return Read(await _adopt(Table(agent_id), store_file.scan_laid_out(data)), mark)
    table = Table(agent_id)
    try:
        await _adopt(table, store_file.scan(store_file.decode(data)))
    except BrokenStore as error:
        return Read(table, mark, str(error))
    return Read(table, mark)


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Thousands of records that stay make the garbage collector look through all of memory, in one
    piece (110 ms were seen), and find nothing: records hold no cycles."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.freeze()  # nor need it look at them later
            gc.enable()


async def _adopt(table: Table, members: Iterable[tuple[Record, int]]) -> Table:
    began = perf_counter()
    for record, _ in members:
        table.adopt(record)
        if perf_counter() - began > SLICE_S:
            await asyncio.sleep(0)
            began = perf_counter()
    return table


def _bytes(disk: Disk, path: Path) -> tuple[Mark, bytes | None]:
    mark = mark_of(disk, path)
    try:
        return mark, disk.read_bytes(path)
    except FileNotFoundError:
        return None, None
    except OSError as error:
        raise disk_error(error, path) from error
