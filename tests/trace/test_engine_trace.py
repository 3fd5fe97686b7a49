"""The trace of a real engine: asked by its methods, off, killed, on a full disk, torn."""

from __future__ import annotations

import ast
import asyncio
import json
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

import claw_engine
from claw_engine.client.base import ClientError
from claw_engine.protocol.trace import CallCause, TraceEvent
from claw_engine.trace import recorder as recorder_module
from claw_engine.trace.recorder import Recorder
from tests.support import fake_openai
from tests.support.engines import Operator, engine_on
from tests.support.fake_openai import FakeOpenAI, Received, Reply


async def say(operator: Operator, text: str, session: str = "main") -> str:
    run_id = await operator.say(text, session)
    await operator.ended(run_id)
    return run_id


def configured(server: FakeOpenAI, **trace: object) -> dict[str, object]:
    model = {"id": "m", "name": "m", "contextWindow": 32000, "maxTokens": 1000}
    provider = {"baseUrl": server.base_url, "apiKey": "sk-the-key-of-this-test", "models": [model]}
    return {
        "models": {"providers": {"box": {**provider, "api": "openai-completions"}}},
        "agents": {"defaults": {"model": "box/m"}},
        "claw": {"trace": trace} if trace else {},
    }


# ── asked by methods ────────────────────────────────────────────────────────────────────────


async def test_a_past_run_opens_like_a_live_one(tmp_path: Path) -> None:
    async with (
        engine_on(tmp_path) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        call = operator.client.call
        assert (await call("trace.list", {}))["runs"] == []
        run_id = await say(operator, "read: AGENTS.md")
        live = [
            f.payload for f in operator.seen if f.event == "trace" and f.payload["runId"] == run_id
        ]
        found = await call("trace.run", {"runId": run_id})
        assert found["run"]["status"] == "done"
        assert [row["cause"] for row in found["calls"]] == ["turn", "tool_round"]
        assert found["calls"][1]["parentId"] == f"{run_id}/call-1"
        assert [row["name"] for row in found["tools"]] == ["read"]

        def outline(events: list[Any]) -> list[tuple[str, object]]:
            out: list[tuple[str, object]] = []
            for event in events:
                what = event["data"].get("callId") or event["data"].get("toolCallId")
                if not (out and out[-1] == (event["kind"], what) and "delta" in event["data"]):
                    out.append((event["kind"], what))
            return out

        assert outline(found["events"]) == outline(live)
        started = [event for event in found["events"] if event["kind"] == "call.started"]
        assert started[0]["data"]["parts"] == []
        last = next(e for e in reversed(live) if e["kind"] == "call.started")
        assert started[1]["data"]["parts"] == last["data"]["parts"]
        listed = await call("trace.list", {"sessionKey": "main", "limit": 1})
        assert [row["id"] for row in listed["runs"]] == [run_id]


async def test_parts_are_redacted_and_keep_their_sizes(tmp_path: Path) -> None:
    secret = "sk-abcdefghijklmnop1234"
    async with (
        engine_on(tmp_path) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        call = operator.client.call
        run_id = await say(operator, f"think: my key is {secret} and that is all")
        found = await call("trace.call", {"sessionKey": "main"})
        user = next(part for part in found["parts"] if part["kind"] == "user")
        part = await call("trace.part", {"callId": found["call"]["id"], "partId": user["id"]})
        assert secret not in part["text"] and "my key is ***" in part["text"]
        assert part["redacted"] is True and part["bytes"] == user["bytes"] > len(part["text"])
        section = found["parts"][0]
        whole = await call("trace.part", {"callId": found["call"]["id"], "partId": section["id"]})
        assert whole["redacted"] is False and whole["chars"] == len(whole["text"])
        piece = await call("trace.part", {
            "callId": found["call"]["id"], "partId": section["id"], "offset": 3, "limit": 5,
        })  # fmt: skip
        assert (piece["text"], piece["next"]) == (whole["text"][3:8], 8)
        everything = [
            found, await call("trace.run", {"runId": run_id}), await call("trace.list", {}),
            await call("trace.calls", {}),
            await call("trace.search", {"callId": found["call"]["id"], "text": "my KEY is"}),
        ]  # fmt: skip
        assert secret not in json.dumps(everything)
        assert everything[-1]["total"] == 1
        hit = everything[-1]["matches"][0]
        assert (hit["partId"], hit["match"]) == (user["id"], "my key is")
        none = await call("trace.search", {"callId": found["call"]["id"], "text": secret})
        assert none["total"] == 0, "a search must not find what is hidden"
        with pytest.raises(ClientError, match="envelope"):
            await call("trace.part", {"callId": found["call"]["id"], "partId": "envelope"})
        with pytest.raises(ClientError, match="no part"):
            await call("trace.part", {"callId": found["call"]["id"], "partId": "nothing"})


async def test_a_changed_workspace_file_is_the_first_change(tmp_path: Path) -> None:
    async with (
        engine_on(tmp_path) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        call = operator.client.call
        one = await say(operator, "think: one")
        agents = tmp_path / "workspace" / "AGENTS.md"
        agents.write_text(agents.read_text() + "\n- token: sk-hidden-in-a-file-123\n- New rule.\n")
        two = await say(operator, "think: two")
        found = await call("trace.compare", {"a": f"{one}/call-1", "b": f"{two}/call-1"})
        changed = [pair for pair in found["parts"] if pair["state"] == "changed"]
        assert [pair["b"]["name"] for pair in changed] == ["AGENTS.md"]
        added = [line["text"] for line in changed[0]["lines"] if line["op"] == "+"]
        assert "- New rule." in added and not any("sk-hidden" in text for text in added)
        assert found["parts"][found["firstChange"]] == changed[0]
        seen = await call("trace.call", {"callId": f"{two}/call-1"})
        assert seen["parts"][seen["cacheBreak"]]["name"] == "AGENTS.md"
        assert seen["previous"]["id"] == f"{one}/call-1"
        assert sum(part["bytes"] for part in seen["parts"]) == seen["bytes"]


async def test_long_texts_are_compared_and_searched_in_the_worker_process(tmp_path: Path) -> None:
    long = "\n".join(f"line {n} of a long note" for n in range(3000))
    async with (
        engine_on(tmp_path) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        call = operator.client.call
        await say(operator, "think: first")
        tools = tmp_path / "workspace" / "TOOLS.md"
        tools.write_text(long[:19_000])
        (tmp_path / "workspace" / "USER.md").write_text(long[:19_000])
        one = await say(operator, "think: one")
        tools.write_text(long[:19_000].replace("line 77 ", "LINE 77 "))
        two = await say(operator, "think: two")
        found = await call("trace.compare", {"a": f"{one}/call-1", "b": f"{two}/call-1"})
        (pair,) = [pair for pair in found["parts"] if pair["state"] == "changed"]
        assert [line["text"] for line in pair["lines"] if line["op"] == "+"] == [
            "LINE 77 of a long note"
        ]
        hits = await call("trace.search", {"callId": f"{two}/call-1", "text": "line 77 "})
        assert hits["total"] == 2 and hits["parts"] == 2


# ── causes ──────────────────────────────────────────────────────────────────────────────────


def test_there_is_one_place_that_calls_a_model_and_it_needs_a_cause() -> None:
    """Every `.stream(` of the engine: whoever adds another must trace it too."""
    root = Path(claw_engine.__file__).parent
    calls, asks = [], []
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                where = str(path.relative_to(root))
                # httpx2's client has a method of that name, in the transport alone.
                if node.func.attr == "stream" and where != "models/transport.py":
                    calls.append(where)
                if node.func.attr == "ask" and where.startswith("agent/"):
                    asks.append(len(node.args) + len(node.keywords))
    assert calls == ["agent/ask.py"]
    assert asks and min(asks) >= 2, "an ask without a cause"


async def test_causes_and_parents_of_real_calls(tmp_path: Path) -> None:
    replies = [
        fake_openai.error(500, "boom", headers={"Retry-After": "0"}),
        fake_openai.answer(*fake_openai.text("fine")),
    ]
    async with FakeOpenAI() as server:
        server.reply(*replies)
        async with (
            engine_on(tmp_path, config=configured(server)) as engine,
            Operator(engine.local_client(strict=True)) as operator,
        ):
            run_id = await say(operator, "hello")
            found = await operator.client.call("trace.run", {"runId": run_id})
            first, second = found["calls"]
            assert (first["cause"], first["status"], first["attempt"]) == ("turn", "error", 1)
            assert (second["cause"], second["status"], second["attempt"]) == ("retry", "ok", 2)
            assert (first["parentId"], second["parentId"]) == (None, first["id"])
            assert {row["cause"] for row in found["calls"]} <= {cause.value for cause in CallCause}
            usage = second["usage"]
            assert second["basis"] == "measured" and second["tokens"] == usage["input"] == 12
    stored = b"".join(path.read_bytes() for path in (tmp_path / "trace").iterdir())
    assert b"sk-the-key-of-this-test" not in stored


# ── off, killed, full, torn ─────────────────────────────────────────────────────────────────


async def bodies(tmp_path: Path, *, enabled: bool) -> list[bytes]:
    """What a server receives for the same three messages."""

    def handler(request: Received) -> Reply:
        if b"list" in request.body and b'"role":"tool"' not in request.body:
            return fake_openai.answer(
                *fake_openai.tool_call(0, "call_1", "read", '{"path": "AGENTS.md"}'),
                finish="tool_calls",
            )
        return fake_openai.answer(*fake_openai.text("done"))

    async with FakeOpenAI(handler) as server:
        async with (
            engine_on(tmp_path, config=configured(server, enabled=enabled)) as engine,
            Operator(engine.local_client(strict=True)) as operator,
        ):
            for text in ("hello", "list it", "bye"):
                await say(operator, text)
        return [request.body for request in server.requests]


async def test_tracing_off_changes_no_byte_that_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same state directory twice: paths, and times of the same minute, are in the prompt."""
    import re
    import shutil

    def timeless(body: bytes) -> bytes:
        # What differs between any two runs: times, ids of entries and fences, nothing else.
        body = re.sub(rb"\[\w{3} \d{4}-\d\d-\d\d \d\d:\d\d \w+\]", b"[then]", body)
        return re.sub(rb"outside [0-9a-f]{12}", b"outside", body)

    state = tmp_path / "state"
    on = await bodies(state, enabled=True)
    assert (state / "trace" / "trace.db").exists()
    shutil.rmtree(state)
    off = await bodies(state, enabled=False)
    assert not (state / "trace").exists()
    assert [timeless(body) for body in on] == [timeless(body) for body in off]
    assert len(on) == 4


_KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from tests.support.engines import Operator, engine_on

async def main():
    async with engine_on(Path(sys.argv[1])) as engine:
        async with Operator(engine.local_client(strict=True)) as operator:
            await operator.ended(await operator.say("think: first words"))
            run = await operator.say("run: uname")
            await operator.request(run)
            await operator.client.call("trace.list", {})  # what was told is written
            await operator.say("long: 100000 200", "other")
            await operator.event("trace", lambda p: "two" in p["data"].get("delta", ""))
            await operator.client.call("trace.list", {})
            os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


async def test_after_kill_9_the_store_opens_and_what_ran_is_marked(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    (state / "openclaw.json").write_text('{"claw": {"resume": "never"}}')
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", _KILLED, str(state))
    assert await process.wait() == -9
    async with (
        engine_on(state) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        runs = (await operator.client.call("trace.list", {}))["runs"]
        assert [row["status"] for row in runs] == ["interrupted", "interrupted", "done"]
        calls = (await operator.client.call("trace.calls", {}))["calls"]
        assert [row["status"] for row in calls] == ["interrupted", "ok", "ok"]
        opened = await operator.client.call("trace.call", {"callId": calls[0]["id"]})
        assert sum(part["bytes"] for part in opened["parts"]) == opened["bytes"]
        await say(operator, "think: back again")
        assert (await operator.client.call("trace.list", {}))["runs"][0]["status"] == "done"
    db = sqlite3.connect(state / "trace" / "trace.db")
    assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    db.close()


async def test_a_full_disk_ends_the_recording_and_no_run(tmp_path: Path) -> None:
    async with (
        engine_on(tmp_path) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        await say(operator, "think: recorded")
        await operator.client.call("trace.list", {})
        recorder: Recorder = engine._rooms.tracing.recorder
        pages = await recorder.read(lambda db: db.execute("PRAGMA page_count").fetchone()[0])
        await recorder.read(lambda db: db.execute(f"PRAGMA max_page_count={pages}").fetchone())
        (tmp_path / "workspace" / "AGENTS.md").write_text("x1 y2 z3 " * 2000)
        for n in range(30):
            await say(operator, f"think: {n} " + f"{n * 7919} " * 500)
            if recorder.stopped is not None:
                break
            await recorder.flush()
        assert recorder.stopped is not None and "full" in recorder.stopped
        notice = next(n for n in engine.notices() if n["code"] == "trace-stopped")
        assert "no longer recorded" in str(notice["title"])
        end = await operator.ended(await operator.say("think: still answering"))
        assert end["status"] == "done"
        listed = await operator.client.call("trace.list", {})
        assert listed["enabled"] is False and listed["runs"], "what was recorded can be read"
        probes = (await operator.client.call("doctor.probes"))["probes"]
        row = next(p for p in probes if p["room"] == "trace" and p["name"] == "recording")
        assert row["health"] == "fail"
        # A changed setting while the disk is still full, and one when there is room again.
        await engine.warm_up()
        for most, standing in ((pages, True), (1 << 20, False)):
            await recorder.read(lambda db, n=most: db.execute(f"PRAGMA max_page_count={n}"))
            config = await operator.client.call("config.get")
            raw = json.dumps({"claw": {"trace": {"maxAgeDays": 20 + standing}}})
            patch = {"raw": raw, "baseHash": config["hash"]}
            await operator.client.call("config.patch", patch)
            await say(operator, "think: once more " + f"{most} " * 9000)
            await recorder.flush()
            now = {n["code"] for n in engine.notices()}
            assert ("trace-stopped" in now) is standing
        assert recorder.recording


async def test_a_damaged_store_is_put_aside_with_a_notice(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "trace" / "trace.db"
    path.parent.mkdir()
    path.write_bytes(b"not a database at all " * 500)
    async with (
        engine_on(tmp_path) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        await say(operator, "think: hello")
        notice = await operator.event("notice", lambda p: p["code"] == "trace-damaged")
        assert "trace.db.damaged-1" in notice["hint"]
        assert "trace-damaged" in {n["code"] for n in engine.notices()}, "it stands"
        assert "the store was damaged" in caplog.text
        assert len((await operator.client.call("trace.list", {}))["runs"]) == 1
    assert path.with_name("trace.db.damaged-1").read_bytes().startswith(b"not a database")
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700


async def test_what_breaks_while_it_is_open_begins_a_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        engine_on(tmp_path) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        await say(operator, "think: before")
        await operator.client.call("trace.list", {})
        broken = sqlite3.DatabaseError("database disk image is malformed")
        broken.sqlite_errorcode = 11
        recorder: Recorder = engine._rooms.tracing.recorder
        assert recorder._writer is not None

        def torn(*_: object) -> None:
            raise broken

        monkeypatch.setattr(recorder._writer, "write", torn)
        await say(operator, "think: lost")
        await recorder.flush()
        await say(operator, "think: after")
        runs = (await operator.client.call("trace.list", {}))["runs"]
        assert [row["title"][-5:] for row in runs] == ["after"]
        assert recorder.stopped is None
    assert (tmp_path / "trace" / "trace.db.damaged-1").exists()


async def test_a_python_without_sqlite_records_nothing_and_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing() -> None:
        raise ImportError("No module named '_sqlite3'")

    monkeypatch.setattr(recorder_module, "_load", nothing)
    async with (
        engine_on(tmp_path) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        await say(operator, "think: hello")
        await operator.event("notice", lambda p: p["code"] == "trace-stopped")
        assert (await operator.client.call("trace.list", {}))["enabled"] is False
        await say(operator, "think: again")
    assert not (tmp_path / "trace" / "trace.db").exists()


async def test_a_changed_setting_begins_and_ends_the_recording(tmp_path: Path) -> None:
    async with (
        engine_on(tmp_path, config={"claw": {"trace": {"enabled": False}}}) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        await say(operator, "think: unseen")
        listed = await operator.client.call("trace.list", {})
        why = "claw.trace.enabled is off"
        assert listed == {"enabled": False, "why": why, "runs": [], "next": None}
        with pytest.raises(ClientError, match="nothing was recorded"):
            await operator.client.call("trace.call", {})
        patch = {"raw": '{"claw": {"trace": {"enabled": true}}}'}
        snapshot = await operator.client.call("config.get")
        await operator.client.call("config.patch", {**patch, "baseHash": snapshot["hash"]})
        await say(operator, "think: seen")
        runs = (await operator.client.call("trace.list", {}))["runs"]
        assert [row["title"][-4:] for row in runs] == ["seen"]


async def test_old_runs_go_by_themselves(tmp_path: Path) -> None:
    from tests.support.fakes import FakeClock, fake_world

    clock = FakeClock()
    notices: list[object] = []
    made = recorder_module.TraceSettings(max_age_days=1)
    recorder = Recorder(
        fake_world(clock), tmp_path / "t" / "trace.db", lambda *a, **k: notices.append(a), made
    )
    await recorder.open()
    told = [("run.queued", {"message": "m", "source": "s"}), ("run.ended", {"status": "done"})]
    for run, days in (("old", 0), ("new", 3)):
        for seq, (kind, data) in enumerate(told):
            ts = clock.now_ms() + days * 24 * 3600 * 1000
            recorder.note(TraceEvent(run, "main", seq, ts, recorder_kind(kind), data))
    await recorder.flush()
    await clock.advance(2 * 24 * 3600.0)
    async with asyncio.timeout(10):
        while await count(recorder) > 1:
            await clock.advance(3600.0)
    assert notices == []
    await recorder.close()


def recorder_kind(name: str) -> Any:
    from claw_engine.protocol.trace import TraceKind

    return TraceKind(name)


async def count(recorder: Recorder) -> int:
    return int(
        await recorder.read(lambda db: db.execute("SELECT count(*) FROM runs").fetchone()[0])
    )
