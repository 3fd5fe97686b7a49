"""The log file: one JSON line a record, secrets taken out, never in the way of the event loop.

Callers hand records over; one thread redacts, formats and writes them, what comes within LINGER_S
in one go (an error at once). A full or missing disk loses lines (and says how many later), it
never raises into a caller. Knows no configuration: level, folder and redaction are handed in.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

TRACE = 5
BATCH_LINES = 256
"""Lines written in one piece."""
QUEUE_LINES = 10_000
LINGER_S = 0.1
"""Seconds a line may wait for others: waking a thread costs more than a line."""
RETENTION_DAYS = 7
MAX_FILE_BYTES = 500 * 1024 * 1024

LEVELS: Mapping[str, int] = {
    "silent": logging.CRITICAL + 10,
    "fatal": logging.CRITICAL,
    "error": logging.ERROR,
    "warn": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
    "trace": TRACE,
}
"""OpenClaw's level names."""

OURS = ("claw", "claw_engine", "claw_tui")
_FILE_NAME = re.compile(r"claw-(\d{4}-\d{2}-\d{2})\.log")
_PLAIN = re.compile(r"[\w.:/+@,\-]+")
# C0 is escaped by JSON itself. These are the other characters that steer a terminal or hide text.
_UNSEEN = re.compile(r"[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")

Redact = Callable[[str], str]


def level_number(configured: str, env: Mapping[str, str]) -> int:
    """The level by OpenClaw's name; OPENCLAW_LOG_LEVEL wins, an unknown name counts as info."""
    name = env.get("OPENCLAW_LOG_LEVEL", "").strip().lower() or configured
    return LEVELS.get(name, logging.INFO)


def diag(logger: logging.Logger, event: str, /, **fields: object) -> None:
    """A diagnostic line: `event: key=value key=value`, at info level.

    The values also stand in the record as they are (`fields` of the JSON line).
    """
    if logger.isEnabledFor(logging.INFO):
        line = " ".join(f"{key}={_value(value)}" for key, value in fields.items())
        logger.info("%s: %s", event, line, extra={"fields": fields}, stacklevel=2)


def _value(value: object) -> str:
    text = str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)


class Logs:
    """The running log: made by `start_logs`, ended by `close`."""

    def __init__(self, handler: _Enqueue, writer: DayFileHandler) -> None:
        self._handler = handler
        self._writer = writer

    def set_level(self, level: int) -> None:
        for name in OURS:
            logging.getLogger(name).setLevel(level)

    def set_redact(self, redact: Redact) -> None:
        """Use another redaction from the next record on (after a reload)."""
        self._writer.redact = redact

    def close(self) -> None:
        """Write what is queued (at most about 2 s) and detach."""
        logging.getLogger().removeHandler(self._handler)
        _note_origin(True)
        self._handler.finish(2.0)
        self._writer.close()


def start_logs(
    folder: Path,
    *,
    level: int = logging.INFO,
    redact: Redact = str,
    retention_days: int = RETENTION_DAYS,
    max_file_bytes: int = MAX_FILE_BYTES,
    queue_lines: int = QUEUE_LINES,
) -> Logs:
    """Send all records of this process to `<folder>/claw-YYYY-MM-DD.log` (0600, local date).

    Our own loggers get `level`, other libraries warnings and up. Files older than
    `retention_days` are removed when a new one is begun. At most `queue_lines` wait for the disk,
    the rest is lost and counted. Raises nothing: a folder that cannot be made loses the lines.
    """
    logging.addLevelName(TRACE, "TRACE")
    writer = DayFileHandler(folder, redact, retention_days, max_file_bytes)
    handler = _Enqueue(writer, queue_lines)
    handler.start()
    root = logging.getLogger()
    root.addHandler(handler)
    _note_origin(False)
    logs = Logs(handler, writer)
    logs.set_level(level)
    return logs


_SOURCE = logging._srcfile


def _note_origin(on: bool) -> None:
    """Whether records look for their file, line, thread and process: half of what a record costs
    its caller, and nothing that our lines show. The switches are those of the logging HOWTO."""
    logging._srcfile = _SOURCE if on else None
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = on


class _Enqueue(logging.Handler):
    """Hands a record over without formatting it; a full queue loses it."""

    def __init__(self, writer: DayFileHandler, limit: int) -> None:
        super().__init__()
        self._writer = writer
        self._limit = limit
        self._records: deque[tuple[logging.LogRecord, str]] = deque()
        self._some = threading.Event()
        self._urgent = threading.Event()
        self._ending = False
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Never raises, never waits."""
        try:
            # The arguments may change after this call, the traceback does not: only the message
            # is made here, reading source lines for the traceback is left to the writing thread.
            text = record.getMessage()
        except Exception:  # a message that cannot be formatted: the screen is no place for it
            self._writer.lost += 1
            return
        if len(self._records) >= self._limit:
            self._writer.lost += 1
            return
        # The message goes beside it: other handlers get the record as it was made.
        self._records.append((record, text))
        if record.levelno >= logging.ERROR:
            self._urgent.set()
        if not self._some.is_set():
            self._some.set()

    def finish(self, seconds: float) -> None:
        """Stop after what is queued, but wait no longer than `seconds` for a slow disk."""
        self._ending = True
        self._urgent.set()
        self._some.set()
        self._thread.join(seconds)

    def _write(self) -> None:
        while True:
            self._some.wait()
            self._urgent.wait(LINGER_S)
            # Cleared first: what is queued from here on sets it again.
            self._urgent.clear()
            self._some.clear()
            ending = self._ending
            self._writer.emit_all(self._taken())
            if ending:
                return

    def _taken(self) -> Iterable[tuple[logging.LogRecord, str]]:
        while self._records:
            yield self._records.popleft()


class DayFileHandler(logging.Handler):
    """Writes records to the file of their local day. Used by one thread."""

    def __init__(
        self, folder: Path, redact: Redact, retention_days: int, max_file_bytes: int
    ) -> None:
        super().__init__()
        self.folder = folder
        self.redact = redact
        self.lost = 0
        self._retention_days = retention_days
        self._max_bytes = max_file_bytes
        self._day = ""
        self._minute = -1
        self._minute_day = ""
        self._fd: int | None = None
        self._full = False

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record; what cannot be written is counted, never raised."""
        self.emit_all([(record, record.getMessage())])

    def emit_all(self, records: Iterable[tuple[logging.LogRecord, str]]) -> None:
        """Write records, each with its message, those of one day in one piece."""
        waiting: list[bytes] = []
        day = ""
        for record, text in records:
            try:
                of = self._day_of(record.created)
                line = self._line(record, text)
            except Exception:  # whatever it is: a log thread that dies loses everything after it
                self.lost += 1
                continue
            if waiting and (of != day or len(waiting) >= BATCH_LINES):
                self._write_day(day, waiting)
                waiting = []
            day = of
            waiting.append(line)
        if waiting:
            self._write_day(day, waiting)

    def _write_day(self, day: str, lines: list[bytes]) -> None:
        done = 0
        try:
            self._roll(day)
            self._tell_lost()
            done = self._write(lines)
        except Exception:  # as above
            self.lost += len(lines) - done

    def _day_of(self, seconds: float) -> str:
        minute = int(seconds // 60)
        if minute != self._minute:  # a day begins with a minute everywhere
            self._minute = minute
            self._minute_day = time.strftime("%Y-%m-%d", time.localtime(seconds))
        return self._minute_day

    def close(self) -> None:
        self._shut()
        super().close()

    def _line(self, record: logging.LogRecord, text: str) -> bytes:
        entry: dict[str, object] = {
            "ts": _timestamp(record.created),
            "level": _level_name(record.levelno),
            "logger": record.name,
            "msg": self.redact(text),
        }
        fields = getattr(record, "fields", None)
        if isinstance(fields, Mapping):
            entry["fields"] = {str(key): self._field(value) for key, value in fields.items()}
        if record.exc_info:
            entry["error"] = self.redact(_formatter.formatException(record.exc_info))
        line = _encode_json(entry)
        return (_UNSEEN.sub(lambda m: f"\\u{ord(m.group()):04x}", line) + "\n").encode()

    def _field(self, value: object) -> object:
        if value is None or isinstance(value, bool | int | float):
            return value
        return self.redact(str(value))

    def _roll(self, day: str) -> None:
        if self._fd is not None and day == self._day and os.fstat(self._fd).st_nlink:
            return
        self._shut()
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self.folder / f"claw-{day}.log"
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._day = day
        self._full = False
        self._remove_old(day)

    def _remove_old(self, day: str) -> None:
        today = datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC)
        for path in self.folder.iterdir():
            match = _FILE_NAME.fullmatch(path.name)
            if match and _age_days(today, match.group(1)) > self._retention_days:
                with contextlib.suppress(OSError):
                    path.unlink()

    def _write(self, lines: list[bytes]) -> int:
        """Append whole lines as far as there is room; how many went in or were counted lost."""
        assert self._fd is not None  # _roll opened it or raised
        size = os.fstat(self._fd).st_size
        room = self._max_bytes - size
        data = b"".join(lines)
        if len(data) > room:
            return self._write_some(lines, room)
        written = os.write(self._fd, data)
        if written < len(data):
            # No half line: a full disk took only a part.
            whole = data.rfind(b"\n", 0, written) + 1
            os.ftruncate(self._fd, size + whole)
            self.lost += data.count(b"\n", whole)
        return len(lines)

    def _write_some(self, lines: list[bytes], room: int) -> int:
        fit = 0
        while fit < len(lines) and len(lines[fit]) <= room:
            room -= len(lines[fit])
            fit += 1
        if fit:
            self._write(lines[:fit])
        self.lost += len(lines) - fit
        if not self._full:
            self._full = True
            assert self._fd is not None
            os.write(self._fd, self._note("the log file is full; nothing more is written"))
        return len(lines)

    def _tell_lost(self) -> None:
        if self.lost and not self._full:
            lost, self.lost = self.lost, 0
            try:
                self._write([self._note(f"{lost} log lines were lost")])
            except OSError:
                self.lost += lost
                raise

    def _note(self, text: str) -> bytes:
        entry = {"ts": _timestamp(time.time()), "level": "warn", "logger": __name__, "msg": text}
        return json.dumps(entry).encode() + b"\n"

    def _shut(self) -> None:
        if self._fd is not None:
            with contextlib.suppress(OSError):
                os.close(self._fd)
            self._fd = None


_formatter = logging.Formatter()
_encode_json = json.JSONEncoder(ensure_ascii=False).encode
_NAMES = {number: name for name, number in LEVELS.items()}


def _level_name(number: int) -> str:
    return _NAMES.get(number, str(number))


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def _age_days(today: datetime, day: str) -> int:
    try:
        return (today - datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC)).days
    except ValueError:
        return 0
