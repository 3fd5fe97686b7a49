"""Newline-delimited frames out of a byte stream: the framing of the local door. Pure."""

from __future__ import annotations

from collections.abc import Iterator


class LineSplitter:
    """Feed bytes, get whole lines; `rest` is how much waits for its end."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._searched = 0

    @property
    def rest(self) -> int:
        """Bytes of the unfinished line."""
        return len(self._buffer)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Lines that are complete now, without their ends, empty ones left out."""
        self._buffer += data
        while (end := self._buffer.find(b"\n", self._searched)) >= 0:
            line = bytes(memoryview(self._buffer)[:end])
            del self._buffer[: end + 1]
            self._searched = 0
            if line := line.strip():
                yield line
        self._searched = len(self._buffer)
