from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from claw_engine.config.redact import Redactor
from claw_engine.logs import OURS, TRACE, DayFileHandler, Logs, diag, level_number, start_logs

logger = logging.getLogger("claw_engine.test")


@pytest.fixture(autouse=True)
def levels() -> Iterator[None]:
    before = {name: logging.getLogger(name).level for name in OURS}
    yield
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)


def lines(folder: Path) -> list[dict[str, object]]:
    (path,) = folder.glob("claw-*.log")
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def logged(folder: Path, write: Callable[[], None], **options: object) -> list[dict[str, object]]:
    logs = start_logs(folder, **options)  # type: ignore[arg-type]  # options of one test each
    try:
        write()
    finally:
        logs.close()
    return [line for line in lines(folder) if str(line["logger"]).startswith("claw_engine")]


def test_a_record_is_one_json_line_in_a_private_file_of_its_day(tmp_path: Path) -> None:
    (line,) = logged(tmp_path / "logs", lambda: logger.warning("hello %s", "wörld"))
    (path,) = (tmp_path / "logs").iterdir()
    assert path.name == f"claw-{time.strftime('%Y-%m-%d')}.log"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert (line["level"], line["logger"], line["msg"]) == (
        "warn", "claw_engine.test", "hello wörld",
    )  # fmt: skip
    assert str(line["ts"]).endswith("+00:00")


def test_a_diagnostic_line_has_its_words_and_its_values(tmp_path: Path) -> None:
    def write() -> None:
        diag(logger, "lane enqueue", lane="main", queueSize=2)
        diag(logger, "session state", prev="idle", new="running", reason="run start")

    first, second = logged(tmp_path, write)
    assert first["msg"] == "lane enqueue: lane=main queueSize=2"
    assert first["fields"] == {"lane": "main", "queueSize": 2}
    assert second["msg"] == 'session state: prev=idle new=running reason="run start"'


def test_se05_secrets_are_gone_from_message_fields_and_traceback(tmp_path: Path) -> None:
    """SE-05: message, fields, traceback."""
    secret = "very-secret-value"

    def write() -> None:
        diag(logger, "model call", key=secret)
        try:
            raise ValueError(f"bad {secret}")
        except ValueError:
            logger.exception("failed with %s", secret)

    entries = logged(tmp_path, write, redact=Redactor([secret]).text)
    text = json.dumps(entries)
    assert secret not in text and "***" in text
    assert "Traceback" in str(entries[1]["error"]) and "ValueError: bad ***" in text


def test_the_redaction_can_be_changed_while_running(tmp_path: Path) -> None:
    logs = start_logs(tmp_path)
    logs.set_redact(lambda text: text.replace("a", "b"))
    logger.warning("aaa")
    logs.close()
    assert lines(tmp_path)[-1]["msg"] == "bbb"


def test_characters_that_steer_a_terminal_are_escaped(tmp_path: Path) -> None:
    text = "a\x1b[2J\x9b1m\u202eb\nc"
    (line,) = logged(tmp_path, lambda: logger.warning(text))
    (path,) = tmp_path.iterdir()
    raw = path.read_bytes().decode("ascii")
    assert raw.count("\n") == 1 and "\x1b" not in raw
    assert line["msg"] == text, "nothing is lost for a reader of the JSON"


def test_a_lone_surrogate_is_escaped(tmp_path: Path) -> None:
    # Not through a logger: the test runner keeps what is logged and could not pass this on.
    handler = DayFileHandler(tmp_path, str, 7, 1 << 20)
    handler.emit(logging.makeLogRecord({"msg": "c\ud800", "name": "claw.x"}))
    handler.close()
    (path,) = tmp_path.iterdir()
    assert json.loads(path.read_bytes().decode("ascii"))["msg"] == "c\ud800"


@pytest.mark.parametrize(
    ("configured", "env", "expected"),
    [
        ("info", {}, logging.INFO),
        ("warn", {}, logging.WARNING),
        ("trace", {}, TRACE),
        ("info", {"OPENCLAW_LOG_LEVEL": "debug"}, logging.DEBUG),
        ("error", {"OPENCLAW_LOG_LEVEL": "nonsense"}, logging.INFO),
        ("error", {"OPENCLAW_LOG_LEVEL": ""}, logging.ERROR),
    ],
)
def test_levels(configured: str, env: dict[str, str], expected: int) -> None:
    assert level_number(configured, env) == expected


def test_silent_writes_nothing(tmp_path: Path) -> None:
    logs = start_logs(tmp_path, level=level_number("silent", {}))
    logger.critical("nothing")
    logs.close()
    assert not list(tmp_path.glob("claw-*.log"))


def record(text: str, created: float) -> logging.LogRecord:
    made = logging.LogRecord("claw_engine", logging.INFO, "", 0, text, None, None)
    made.created = created
    return made


def test_a_new_day_begins_a_new_file_and_old_ones_go(tmp_path: Path) -> None:
    writer = DayFileHandler(tmp_path, str, retention_days=7, max_file_bytes=10**6)
    (tmp_path / "other.txt").write_text("kept")
    noon = time.mktime((2026, 11, 1, 12, 0, 0, 0, 0, -1))
    for days in (0, 1, 9):
        writer.emit(record("x", noon + days * 86_400))
    writer.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "claw-2026-11-10.log",
        "other.txt",
    ]


def test_a_deleted_file_is_made_again(tmp_path: Path) -> None:
    writer = DayFileHandler(tmp_path, str, retention_days=7, max_file_bytes=10**6)
    now = time.time()
    writer.emit(record("one", now))
    next(tmp_path.iterdir()).unlink()
    writer.emit(record("two", now))
    writer.close()
    assert [line["msg"] for line in lines(tmp_path)] == ["two"]


def test_a_file_at_its_limit_says_so_once_and_stops(tmp_path: Path) -> None:
    writer = DayFileHandler(tmp_path, str, retention_days=7, max_file_bytes=400)
    for _ in range(20):
        writer.emit(record("x" * 50, time.time()))
    writer.close()
    messages = [str(line["msg"]) for line in lines(tmp_path)]
    assert messages[-1].startswith("the log file is full")
    assert len([message for message in messages if "full" in message]) == 1
    assert len(messages) < 6


def test_a_disk_that_fails_never_raises_and_the_loss_is_told_later(tmp_path: Path) -> None:
    blocked = tmp_path / "logs"
    blocked.write_text("a file where the folder should be")
    writer = DayFileHandler(blocked, str, retention_days=7, max_file_bytes=10**6)
    writer.emit(record("one", time.time()))
    writer.emit(record("two", time.time()))
    blocked.unlink()
    writer.emit(record("three", time.time()))
    writer.close()
    assert [line["msg"] for line in lines(blocked)] == ["2 log lines were lost", "three"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_never_raises(tmp_path: Path) -> None:
    (tmp_path / f"claw-{time.strftime('%Y-%m-%d')}.log").symlink_to("/dev/full")
    writer = DayFileHandler(tmp_path, str, retention_days=7, max_file_bytes=10**6)
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        Path("/dev/full").write_text("the device really is full")
    writer.emit(record("one", time.time()))
    assert writer.lost == 1
    writer.close()


def test_a_message_that_cannot_be_formatted_prints_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    logs = start_logs(tmp_path)
    bad = logging.LogRecord("claw_engine", logging.INFO, "", 0, "%d", ("x",), None)
    logs._handler.handle(bad)
    logger.info("next")
    logs.close()
    assert [line["msg"] for line in lines(tmp_path)] == ["1 log lines were lost", "next"]
    assert capfd.readouterr() == ("", "")


def test_a_redaction_that_fails_loses_the_line_not_the_thread(tmp_path: Path) -> None:
    def redact(text: str) -> str:
        if "bad" in text:
            raise KeyError(text)
        return text

    def write() -> None:
        logger.warning("bad")
        logger.warning("good")

    assert [entry["msg"] for entry in logged(tmp_path, write, redact=redact)][-1] == "good"


async def test_a_stuck_disk_does_not_hold_the_loop(tmp_path: Path) -> None:
    held, entered = threading.Event(), threading.Event()

    def redact(text: str) -> str:
        entered.set()
        held.wait(20)
        return text

    logs = start_logs(tmp_path, redact=redact, queue_lines=100)
    logger.warning("first")
    await asyncio.to_thread(entered.wait, 20)
    for number in range(200):  # more than the queue takes: the rest is counted, not waited for
        logger.warning("line %d", number)
    held.set()
    await asyncio.to_thread(logs.close)
    messages = [str(line["msg"]) for line in lines(tmp_path)]
    assert any(message.endswith("log lines were lost") for message in messages)


@pytest.mark.parametrize("name", ["claw.lanes", "claw_engine.x", "claw_tui.y"])
def test_info_of_all_our_loggers_is_written(tmp_path: Path, name: str) -> None:
    logs = start_logs(tmp_path)
    logging.getLogger(name).info("seen")
    logging.getLogger("library").info("not seen")
    logs.close()
    assert [line["logger"] for line in lines(tmp_path)] == [name]


def test_closing_detaches(tmp_path: Path) -> None:
    before = list(logging.getLogger().handlers)
    logs: Logs = start_logs(tmp_path)
    logs.close()
    assert logging.getLogger().handlers == before
