"""`claw prompt` and `claw trace` against a real engine in this process, and without one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from claw_engine.cli import trace
from claw_engine.cli.__main__ import main
from claw_engine.config.sections.approvals import TraceSettings
from claw_engine.engine import Engine
from tests.cli.test_listing_verbs import Claw
from tests.cli.test_listing_verbs import claw as claw
from tests.support.engines import Operator, engine_on

SECRET = "sk-abcdefghijklmnop1234"


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with engine_on(tmp_path) as made:
        yield made


async def talk(engine: Engine) -> str:
    async with Operator(engine.local_client(strict=True)) as operator:
        await operator.ended(await operator.say(f"think: the key is {SECRET}"))
        run_id = await operator.say("read: AGENTS.md")
        await operator.ended(run_id)
    return run_id


async def test_prompt_show_and_diff(engine: Engine, claw: Claw) -> None:
    code, _, err = await claw("prompt", "show")
    assert (code == 1 and "No call" in err) or "nothing was recorded" in err
    run_id = await talk(engine)
    code, out, _ = await claw("prompt", "show", "--json")
    found = json.loads(out)
    assert code == 0
    assert {"bytes", "tokens", "model", "cause", "parts"} <= found.keys()
    assert found["cause"] == "tool_round" and found["model"] == "rehearsal/stage"
    assert all(
        part.keys() == {"name", "kind", "source", "bytes", "tokens", "cached"}
        for part in found["parts"]
    )
    assert sum(part["bytes"] for part in found["parts"]) == found["bytes"]
    kinds = [part["kind"] for part in found["parts"]]
    assert kinds[0] == "section" and kinds[-2:] == ["tool", "envelope"]
    assert kinds.index("tool_result") < kinds.index("tool"), "wire order"
    code, out, _ = await claw("prompt", "show")
    assert f"{run_id}/call-2" in out and "tool_result" in out and "envelope" in out
    _, out, _ = await claw("prompt", "show", f"{run_id}/call-1", "--json")
    assert json.loads(out)["cause"] == "turn"
    _, out, _ = await claw("prompt", "show", "--part", "file:AGENTS.md")
    assert "How to work here" in out
    _, out, _ = await claw("prompt", "diff")
    assert f"{run_id}/call-1 -> {run_id}/call-2" in out and "tool_result" in out
    _, out, _ = await claw("prompt", "diff", "--json")
    assert {pair["state"] for pair in json.loads(out)["parts"]} == {"same", "added"}
    code, _, err = await claw("prompt", "show", "nobody/call-1")
    assert code == 1 and "nobody/call-1" in err


async def test_trace_list_and_show(engine: Engine, claw: Claw) -> None:
    assert (await claw("trace", "list"))[1] == "No run is recorded.\n"
    code, _, err = await claw("trace", "show")
    assert code == 1 and "yet" in err and "switches it on" not in err
    run_id = await talk(engine)
    _, out, _ = await claw("trace", "list", "--session", "main")
    assert out.startswith(run_id) and len(out.splitlines()) == 2 and SECRET not in out
    newer, older = out.splitlines()
    assert " 2 calls" in newer and " 1 call " in older and "1 calls" not in out
    assert newer.index(" tool") == older.index(" tool")
    assert newer.index("read:") == older.index("think:")
    _, out, _ = await claw("trace", "show")
    assert "tool read  ok" in out and f"call {run_id}/call-2  tool_round" in out
    _, out, _ = await claw("trace", "show", run_id, "--json")
    assert json.loads(out)["run"]["id"] == run_id


async def test_a_list_in_columns_whatever_stands_in_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    row = {"id": "r1", "startedMs": 1, "status": "done", "title": "xyz", "calls": 1, "tools": 0}
    other = {**row, "id": "webchat-of-a-long-name-0001", "status": "interrupted", "calls": 12}
    trace._list({"enabled": True, "runs": [row, {**other, "estimatedTokens": 123_456_789}]})
    first, second = capsys.readouterr().out.splitlines()
    assert first.index(" call ") == second.index(" calls ")
    assert first.index("xyz") == second.index("xyz")


async def test_the_real_reason_why_nothing_is_recorded(engine: Engine, claw: Claw) -> None:
    recorder = engine._rooms.tracing.recorder
    recorder._stop("the state disk is full")
    _, out, _ = await claw("trace", "list")
    assert "Nothing is recorded now: the state disk is full." in out
    _, _, err = await claw("trace", "show")
    assert "the state disk is full" in err and "enabled" not in err
    recorder.configure(TraceSettings(enabled=False))
    _, _, err = await claw("trace", "show")
    assert "claw.trace.enabled is off" in err


async def test_export_redacted_raw_and_as_spans(engine: Engine, claw: Claw, tmp_path: Path) -> None:
    await talk(engine)
    first = json.loads((await claw("trace", "list", "--json"))[1])["runs"][-1]["id"]
    target = tmp_path / "out.json"
    target.write_text("older")
    target.chmod(0o666)
    code, out, _ = await claw("trace", "export", first, "--out", str(target))
    assert code == 0 and str(target) in out
    assert target.stat().st_mode & 0o777 == 0o600
    found = json.loads(target.read_text())
    assert (found["format"], found["version"], found["raw"]) == ("claw-trace", 1, False)
    assert SECRET not in target.read_text()
    (call,) = found["calls"]
    assert "body" not in call
    texts = [found["texts"][part["hash"]] for part in call["parts"] if part["hash"]]
    assert any("the key is ***" in text for text in texts)
    assert next(event["kind"] for event in found["events"]) == "run.queued"

    raw = json.loads((await claw("trace", "export", first, "--raw", "--out", "-"))[1])
    (call,) = raw["calls"]
    assert raw["raw"] is True and SECRET in call["body"]
    assert len(call["body"].encode()) == call["bodyBytes"]
    assert json.loads(call["body"])["stream"] is True

    got: list[tuple[str, bytes]] = []

    async def collector(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        size = int(next(x for x in head.lower().split(b"\r\n") if b"content-length" in x)[15:])
        got.append((head.split(b" ")[1].decode(), await reader.readexactly(size)))
        answer = (
            b'{"partialSuccess":{}}'
            if len(got) == 1
            else (b'{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too old"}}')
        )
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(answer), answer))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(collector, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        code, _, err = await claw("trace", "export", first, "--otlp", url)
        assert code == 0 and "/v1/traces" in err
        code, _, err = await claw("trace", "export", first, "--otlp", f"{url}/v1/traces")
        assert code == 1 and "2 rejected, too old" in err
    path, sent = got[0]
    assert path == "/v1/traces"
    spans = json.loads(sent)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert [span["name"] for span in spans] == ["invoke_agent main", "chat stage"]
    assert SECRET.encode() not in sent and b"the key is" not in sent
    code, _, err = await claw("trace", "export", first, "--otlp", url)
    assert code == 1 and "did not take the spans" in err
    assert (await claw("trace", "export", first, "--otlp", "ftp://x"))[0] == 1


async def test_raw_needs_no_engine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with engine_on(tmp_path) as engine:
        run_id = await talk(engine)
    argv = ["trace", "export", "--raw", "--out", "-", "--state-dir", str(tmp_path)]
    assert await asyncio.to_thread(main, argv) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["run"]["id"] == run_id and len(found["calls"]) == 2
    code = await asyncio.to_thread(main, ["trace", "list", "--state-dir", str(tmp_path)])
    assert code == 2 and "No engine" in capsys.readouterr().err
    nothing = ["trace", "export", "--raw", "--state-dir", str(tmp_path / "empty")]
    assert await asyncio.to_thread(main, nothing) != 0
