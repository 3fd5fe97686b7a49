"""Turns a child's bytes into text: for the model (the last 200,000 characters) and live.

Bytes become UTF-8 text piece by piece, terminal control sequences are taken out, progress lines
rewritten with a carriage return keep their last state. Memory is bounded whatever the child
writes. Knows nothing of processes.
"""

from __future__ import annotations

import codecs
import re
from collections import deque
from collections.abc import Callable

from claw_engine.patterns import late
from claw_engine.world import Clock, Timer

AGGREGATED_CHARS = 200_000
"""Characters of output a result keeps, from the end (OpenClaw 2026.2.26)."""

LIVE_INTERVAL_S = 0.05
LIVE_PENDING_CHARS = 8 * 1024

_HELD_CHARS = 512
_LINE_CHARS = 16 * 1024
_NEUTRALISED = late(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC, DCS, SOS, PM, APC
    r"|\x1b[ -/]+[0-~]|\x1b[0-OQ-WYZ\\`-~]"  # two-byte and charset escapes
    r"|\x9b[0-?]*[ -/]*[@-~]"
    r"|(?P<control>[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f])"
)
_UNFINISHED = late(
    r"(?:\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)|\x9b[0-?]*[ -/]*)\Z"
)
_CONTROL = late(r"[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f]")
_OVERWRITTEN = late(r"[^\n\r]*\r+(?=[^\n\r])")
_LINE_END = late(r"\r+\n")
_REWRITES = late(r"[^\n\r]*\r+(?!\n)")


class Cleaner:
    """Bytes in, harmless text out; a sequence cut between two pieces is still recognised."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._held = ""

    def feed(self, data: bytes, *, final: bool = False) -> str:
        text = self._decoder.decode(data, final)
        if self._held:
            text, self._held = self._held + text, ""
        if _CONTROL.search(text) is None:
            return text
        if not final:
            unfinished = _UNFINISHED.search(text, max(0, len(text) - _HELD_CHARS))
            if unfinished is not None:
                self._held = text[unfinished.start() :]
                text = text[: unfinished.start()]
        # One pass: what is left after a removal must not join into a new sequence.
        return _NEUTRALISED.sub(_harmless, text)


def _harmless(match: re.Match[str]) -> str:
    """Nothing for a whole sequence; for a single control character a visible sign."""
    if match["control"] is None:
        return ""
    code = ord(match["control"])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else "\ufffd"


def overwrite(text: str) -> str:
    """`text` with carriage returns carried out: of a rewritten line, the last state stays."""
    return _OVERWRITTEN.sub("", _LINE_END.sub("\n", text))


class Tail:
    """The last `limit` characters of a text that arrives in pieces."""

    def __init__(self, limit: int = AGGREGATED_CHARS) -> None:
        self._limit = limit
        self._pieces: deque[str] = deque()
        self._size = 0
        self._line = ""
        self.dropped = 0

    def append(self, text: str) -> None:
        data = self._line + text
        if "\r" in data:
            data = overwrite(data)
        end = data.rfind("\n") + 1
        if len(data) - end > _LINE_CHARS:
            end = len(data)
        self._line = data[end:]
        self._push(data[:end])

    @property
    def empty(self) -> bool:
        return not self._size and not self._line

    def text(self) -> str:
        """What is kept; `dropped` then says how many characters before it are not."""
        whole = "".join(self._pieces) + self._line.rstrip("\r")
        extra = len(whole) - self._limit
        return whole[extra:] if extra > 0 else whole

    @property
    def left_out(self) -> int:
        """Characters that `text()` does not hold any more."""
        return self.dropped + max(0, self._size + len(self._line) - self._limit)

    def _push(self, text: str) -> None:
        if not text:
            return
        self._pieces.append(text)
        self._size += len(text)
        while self._size - len(self._pieces[0]) >= self._limit:
            gone = self._pieces.popleft()
            self._size -= len(gone)
            self.dropped += len(gone)


class Live:
    """Hands output on at most 20 times a second and at most 8 KB at a time, newest kept.

    The first output goes out at once. What a flood writes between two hand-overs and beyond 8 KB
    is replaced by a note of its length: the whole (bounded) text is in the result.
    """

    def __init__(self, clock: Clock, emit: Callable[[str], None]) -> None:
        self._clock = clock
        self._emit = emit
        self._tail = Tail(LIVE_PENDING_CHARS)
        self._last: float | None = None
        self._timer: Timer | None = None
        self._mid_line = False
        self._returned = False
        self._rewrites = False

    def append(self, text: str) -> None:
        if not text:
            return
        if self._tail.empty:
            self._rewrites = self._returned or _REWRITES.match(text) is not None
        self._returned = text.endswith("\r")
        self._tail.append(text)
        if self._timer is not None:
            return
        now = self._clock.monotonic()
        wait = 0.0 if self._last is None else self._last + LIVE_INTERVAL_S - now
        if wait <= 0:
            self._flush()
        else:
            self._timer = self._clock.call_later(wait, self._flush)

    def close(self) -> None:
        """Hand on what is pending."""
        if self._timer is not None:
            self._timer.cancel()
        self._flush()

    def _flush(self) -> None:
        self._timer = None
        text, left_out = self._tail.text(), self._tail.left_out
        self._tail = Tail(LIVE_PENDING_CHARS)
        if left_out:
            text = f"[… {left_out:,} characters not shown live …]\n{text}"
        if not text:
            return
        ended = text.endswith("\n")
        if self._mid_line and (left_out or self._rewrites) and not text.startswith("\n"):
            text = f"\n{text}"
        self._mid_line = not ended
        self._last = self._clock.monotonic()
        self._emit(text)
