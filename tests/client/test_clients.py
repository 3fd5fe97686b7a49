"""What every client can do, wherever the engine is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from claw_engine.approvals.events import ApprovalRequested
from claw_engine.client.base import Client, ClientError, ConnectionLost
from claw_engine.events import Notice, Resync
from claw_engine.gateway.table import EVENTS
from claw_engine.gateway.wire_events import WireEvent
from claw_engine.protocol.frames import EventFrame
from claw_engine.protocol.names import Scope
from claw_engine.protocol.trace import TraceKind
from claw_engine.runs import RunState
from tests.client.conftest import MakeClient
from tests.gateway.rig import Rig, Tracer, approval
from tests.support.fakes import FakeClock, settle

SEND = {"sessionKey": "main", "message": "hi", "idempotencyKey": "k1"}


async def until(events: AsyncIterator[EventFrame], name: str) -> EventFrame:
    async with asyncio.timeout(5):
        async for event in events:
            if event.event == name:
                return event
    raise AssertionError(f"no {name}")


async def test_hello_lists_exactly_what_exists(rig: Rig, make_client: MakeClient) -> None:
    hello = await make_client().connect()
    assert hello["type"] == "hello-ok"
    assert hello["protocol"] == 3
    assert hello["features"] == {
        "methods": rig.gateway.dispatcher.table.names, "events": list(EVENTS)
    }  # fmt: skip
    assert hello["policy"] == {
        "maxPayload": 26_214_400, "maxBufferedBytes": 8 << 20, "tickIntervalMs": 30_000
    }  # fmt: skip
    assert hello["snapshot"]["model"]["name"] == "rehearsal/stage"  # type: ignore[index]  # JSON


async def test_health_and_status(client: Client, rig: Rig) -> None:
    health = await client.call("health")
    assert set(health) >= {"ok", "ts", "pid", "version", "uptimeMs", "sessions", "channels"}
    rig.run("r1")
    status = await client.call("status")
    assert set(status) == {
        "version", "pid", "stateDir", "host", "uptimeMs", "mode", "model", "permissionMode",
        "bypassWarning", "paused", "runs", "approvals", "lanes", "notices", "sessions",
        "budgets",
    }  # fmt: skip
    assert status["runs"] == {"active": 0, "queued": 1, "parked": 0}


@pytest.mark.parametrize(
    ("method", "params", "message"),
    [
        ("no.such", {}, "unknown method: no.such"),
        ("connect", {}, "connect is only valid as the first request"),
        ("chat.history", {}, "invalid chat.history params: must have required property "
                             "'sessionKey'"),
        ("chat.send", {**SEND, "bogus": 1},
         "invalid chat.send params: at root: unexpected property 'bogus'"),
        ("chat.send", {**SEND, "session_key": "x"},
         "invalid chat.send params: at root: unexpected property 'session_key'"),
        ("chat.send", {**SEND, "message": " \n"}, "message required"),
        ("chat.send", {**SEND, "message": "a\0b"}, "message must not contain null bytes"),
        ("exec.approval.resolve", {"id": "nope", "decision": "allow-once"},
         "unknown approval id"),
    ],
)  # fmt: skip
async def test_refusals(
    client: Client, method: str, params: dict[str, object], message: str
) -> None:
    with pytest.raises(ClientError) as caught:
        await client.call(method, params)
    assert caught.value.shape.message == message
    assert caught.value.shape.code == "INVALID_REQUEST"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("chat.send", {**SEND, "message": 5}),
        ("chat.send", {**SEND, "idempotencyKey": "a\nb"}),
        ("chat.send", {**SEND, "idempotencyKey": "x" * 129}),
        ("chat.history", {"sessionKey": "main", "limit": 0}),
        ("chat.history", {"sessionKey": "main", "limit": "5"}),
        ("exec.approval.resolve", {"id": "a", "decision": "allow"}),
        ("engine.stop", {"when": "later"}),
    ],
)
async def test_parameters_are_strict(
    client: Client, method: str, params: dict[str, object]
) -> None:
    with pytest.raises(ClientError, match=f"invalid {method} params: at /"):
        await client.call(method, params)


@pytest.mark.parametrize(
    ("scopes", "allowed", "refused"),
    [
        ({Scope.READ}, ["status", "chat.history"], ["chat.send", "exec.approval.list"]),
        ({Scope.WRITE}, ["status", "lanes.pause"], ["exec.approval.list", "engine.stop"]),
        ({Scope.APPROVALS}, ["exec.approval.list", "health"], ["status", "lanes.pause"]),
        ({Scope.ADMIN}, ["status", "lanes.pause", "exec.approval.list", "engine.stop"], []),
        (set(), ["health"], ["status", "lanes.pause", "exec.approval.list"]),
    ],
)
async def test_scopes(
    make_client: MakeClient, scopes: set[Scope], allowed: list[str], refused: list[str]
) -> None:
    client = make_client(scopes=frozenset(scopes))
    await client.connect()
    params = {"chat.history": {"sessionKey": "main"}, "chat.send": SEND,
              "engine.stop": {"when": "idle"}}  # fmt: skip
    for method in allowed:
        await client.call(method, params.get(method))
    for method in refused:
        with pytest.raises(ClientError, match=r"missing scope: operator\."):
            await client.call(method, params.get(method))


async def test_one_key_is_one_message(client: Client, rig: Rig) -> None:
    rig.intake.hold = asyncio.Event()
    calls = [asyncio.create_task(client.call("chat.send", SEND)) for _ in range(2)]
    await client.call("health")
    rig.intake.hold.set()
    first, second = await asyncio.gather(*calls)
    assert {str(first["status"]), str(second["status"])} == {"started", "in_flight"}
    assert len(rig.intake.submitted) == 1
    assert await client.call("chat.send", SEND) == {"runId": "k1", "status": "in_flight"}
    rig.intake.finish("k1")
    assert await client.call("chat.send", SEND) == {"runId": "k1", "status": "ok"}
    assert rig.intake.submitted[0].session_key == "agent:main:main"
    assert rig.intake.submitted[0].source == "console"


async def test_slash_stop_aborts(client: Client) -> None:
    await client.call("chat.send", SEND)
    stop = {**SEND, "message": "/stop", "idempotencyKey": "k2"}
    assert await client.call("chat.send", stop) == {"ok": True, "aborted": True, "runIds": ["k1"]}
    assert await client.call("chat.abort", {"sessionKey": "main"}) == {
        "ok": True, "aborted": False, "runIds": [],
    }  # fmt: skip


async def test_abort_of_another_sessions_run_is_refused(client: Client) -> None:
    await client.call("chat.send", SEND)
    with pytest.raises(ClientError, match="runId does not match sessionKey"):
        await client.call("chat.abort", {"sessionKey": "other", "runId": "k1"})


async def test_agent_answers_when_the_run_has_ended(client: Client, rig: Rig) -> None:
    turn = asyncio.create_task(
        client.call("agent", {"message": "hi", "idempotencyKey": "k"}, timeout=None)
    )
    status = await client.call("status")
    while status["runs"] == {"active": 0, "queued": 0, "parked": 0}:
        await asyncio.sleep(0)
        status = await client.call("status")
    waited = await client.call("agent.wait", {"runId": "k", "timeoutMs": 0})
    assert waited == {"runId": "k", "status": "timeout"}
    rig.intake.finish("k", "the answer")
    final = await turn
    assert final["status"] == "ok"
    assert final["result"]["payloads"] == [{"text": "the answer", "mediaUrl": None}]  # type: ignore[index]  # JSON
    assert (await client.call("agent.wait", {"runId": "k"}))["status"] == "ok"


async def test_a_failed_turn_is_an_error_with_its_hint(client: Client, rig: Rig) -> None:
    await client.call("chat.send", SEND)
    rig.intake.finish("k1", "", "failed")
    with pytest.raises(ClientError, match="It broke") as caught:
        await client.call("agent", {"message": "x", "idempotencyKey": "k1"})
    assert caught.value.hint == "Mend it."
    assert caught.value.shape.code == "UNAVAILABLE"


async def test_stop_all_pauses_and_aborts(client: Client, rig: Rig) -> None:
    rig.run("r1")
    assert await client.call("runs.stopAll") == {"runIds": ["r1"]}
    assert (await client.call("lanes.status"))["paused"] is True
    assert await client.call("lanes.resume") == {"ok": True, "paused": False}


async def test_session_rows_tell_what_runs(client: Client, rig: Rig) -> None:
    run = rig.run("r1", "agent:main:new")
    listed = await client.call("sessions.list")
    assert listed["sessions"][0]["state"] == "queued"  # type: ignore[index]  # JSON
    rig.runs.set_state(run, RunState.PARKED, "test")
    listed = await client.call("sessions.list", {"search": "NEW"})
    assert listed["sessions"][0]["state"] == "waiting"  # type: ignore[index]  # JSON
    assert (await client.call("sessions.list", {"search": "zzz"}))["sessions"] == []


async def test_approvals_are_listed_decided_and_told(client: Client, rig: Rig) -> None:
    record = approval()
    rig.approvals.records[record.id] = record
    events = client.events()
    rig.bus.publish(ApprovalRequested(record))
    told = await until(events, "exec.approval.requested")
    listed = await client.call("exec.approval.list")
    assert listed["approvals"] == [told.payload]
    assert isinstance(told.payload, dict)
    assert {"id", "request", "createdAtMs", "expiresAtMs"} <= set(told.payload)
    params = {"id": "a1", "decision": "deny", "reason": "no"}
    answer = await client.call("exec.approval.resolve", params)
    assert answer["record"]["resolvedBy"] == "console"  # type: ignore[index]  # JSON
    assert answer["record"]["reason"] == "no"  # type: ignore[index]  # JSON
    with pytest.raises(ClientError, match="unknown approval id"):
        await client.call("exec.approval.resolve", params)


async def test_trace_reaches_subscribers_with_what_already_happened(
    make_client: MakeClient, rig: Rig
) -> None:
    client, deaf = make_client(), make_client()
    await client.connect()
    await deaf.connect()
    t = Tracer("r1")
    rig.intake.traces = [[t(TraceKind.RUN_STARTED, model="m")]]
    live = await client.call("trace.subscribe", {"sessionKey": "main"})
    assert live["live"][0]["events"][0]["kind"] == "run.started"  # type: ignore[index]  # JSON
    rig.bus.publish(t(TraceKind.TEXT, callId="c", delta="hello"))
    rig.bus.publish(Tracer("r2", "agent:main:other")(TraceKind.NOTICE, text="elsewhere"))
    rig.bus.publish(t(TraceKind.RUN_ENDED, status="done", text="hello", error=None))
    events = client.events()
    first = await until(events, "trace")
    assert first.payload["data"] == {"callId": "c", "delta": "hello"}  # type: ignore[index]  # JSON
    assert first.seq is None
    assert (await until(events, "trace")).payload["kind"] == "run.ended"  # type: ignore[index]  # JSON
    names = [(await until(deaf.events(), "chat")).payload["state"]]  # type: ignore[index]  # JSON
    assert names == ["delta"]
    await client.call("trace.unsubscribe")


async def test_who_subscribes_gets_nothing_twice(client: Client, rig: Rig) -> None:
    t = Tracer("r1")
    events = [t(TraceKind.TEXT, callId="c", delta=f"{n},") for n in range(3)]
    rig.intake.traces = [events]
    for event in events:
        rig.bus.publish(event)  # still in the broadcaster's mailbox
    live = await client.call("trace.subscribe", {})
    rig.bus.publish(t(TraceKind.TEXT, callId="c", delta="3,"))
    told = await until(client.events(), "trace")
    assert len(live["live"][0]["events"]) == 3  # type: ignore[index]  # JSON
    assert told.payload["data"]["delta"] == "3,"  # type: ignore[index]  # JSON


async def test_numbers_run_on_and_a_lost_mailbox_says_read_again(client: Client, rig: Rig) -> None:
    events = client.events()
    rig.bus.publish(Notice("a", "info", "A"))
    first = await until(events, "notice")
    rig.bus.publish(Resync(3))  # what an overflowed mailbox leaves
    rig.gateway.broadcaster.handle(Resync(3))
    state = await until(events, "client.state")
    assert state.payload == {"state": "connected", "reason": "resync"}
    assert first.seq == 1
    assert (await until(events, "tick")).seq == 3


async def test_ticks_and_lanes_are_throttled(client: Client, rig: Rig) -> None:
    clock = rig.world.clock
    assert isinstance(clock, FakeClock)
    events = client.events()
    for burst in range(3):
        rig.run(f"r{burst}")
        rig.lanes.enqueue(f"r{burst}", f"agent:main:s{burst}")
        await settle()
    first = await until(events, "lanes")
    assert len(first.payload["runs"]) == 1  # type: ignore[index]  # JSON
    await clock.advance(0.3)
    second = await until(events, "lanes")
    assert len(second.payload["runs"]) == 3  # type: ignore[index]  # JSON
    await clock.advance(0.3)
    await clock.advance(30)
    assert (await until(events, "tick")).event == "tick"


async def test_the_end_of_the_engine_is_told(client: Client, rig: Rig) -> None:
    events = client.events()
    await rig.close()
    assert (await until(events, "shutdown")).payload["reason"] == "test over"  # type: ignore[index]  # JSON
    state = await until(events, "client.state")
    assert state.payload["state"] == "disconnected"  # type: ignore[index]  # JSON
    assert not client.connected
    with pytest.raises(ConnectionLost):
        await client.call("health")


async def test_events_end_after_close(client: Client) -> None:
    await client.close()
    async with asyncio.timeout(5):
        seen = [e.event async for e in client.events()]
    assert seen[0] == "client.state"


async def test_a_large_answer_and_odd_text_arrive_whole(client: Client, rig: Rig) -> None:
    text = "é😀\u2028" * 40_000
    rig.sessions.messages["agent:main:main"] = [
        {"role": "user", "content": [{"type": "text", "text": text}]} for _ in range(20)
    ]
    answer = await client.call("chat.history", {"sessionKey": "main"})
    assert len(answer["messages"]) == 20  # type: ignore[arg-type]  # JSON
    assert answer["messages"][19]["content"][0]["text"] == text  # type: ignore[index]  # JSON


async def test_a_time_limit_on_a_call(client: Client, rig: Rig) -> None:
    rig.intake.hold = asyncio.Event()
    with pytest.raises(ClientError, match="no answer within"):
        await client.call("chat.send", SEND, timeout=0.01)
    rig.intake.hold.set()
    assert (await client.call("chat.send", SEND))["runId"] == "k1"
    assert len(rig.intake.submitted) == 1


async def test_one_peers_broken_outbox_is_not_anothers(make_client: MakeClient, rig: Rig) -> None:
    good, bad = make_client(), make_client()
    await good.connect()
    await bad.connect()

    def broken(event: WireEvent) -> None:
        raise RuntimeError("send failed")

    rig.gateway.broadcaster.peers[1].outbox.put = broken  # type: ignore[method-assign]  # a fault
    rig.bus.publish(Notice("a", "info", "A"))
    assert (await until(good.events(), "notice")).seq == 1
