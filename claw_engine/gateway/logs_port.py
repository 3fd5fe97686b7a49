"""The engine's own log, as the gateway needs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class LogsPort(Protocol):
    async def tail(self, cursor: int | None, limit: int, max_bytes: int) -> Mapping[str, object]:
        """The `logs.tail` payload. Raises OSError."""
        ...

    async def page(
        self, file: str, at: int, *, older: bool, limit: int, max_bytes: int
    ) -> Mapping[str, object]:
        """The `logs.page` payload. Raises OSError; FileNotFoundError for a file that is none of
        the log's."""
        ...
