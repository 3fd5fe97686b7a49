"""What was told is there again: bodies to the byte, texts once, runs, calls, steps, retention."""

from __future__ import annotations

import random
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from claw_engine.models.base import Encoded, Piece
from claw_engine.parts import PartKind
from claw_engine.protocol.trace import CallCause, TraceKind
from claw_engine.storage.sqlite_driver import plain as plain_sqlite
from claw_engine.trace import contents, reader
from claw_engine.trace.bodies import MIDDLE_MOST, numbers_of
from claw_engine.trace.contents import BodyDiffers
from claw_engine.trace.noted import overlap
from claw_engine.trace.retention import Limits, sweep, used_bytes
from claw_engine.trace.schema import VERSION, NewerStore, StoreDamaged, packed, prepare, unpacked
from claw_engine.trace.views import view
from claw_engine.trace.writer import LEFT_OUT, OUTPUT_CHARS, dumped, loaded
from tests.trace.rig import MAIN, Rig, encoded, piece

COMMA = b","


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.close()


def talk(messages: list[Piece], system: Piece, model: str = "one") -> Encoded:
    """A body as a codec makes it: head and tail anew each time, what stands between shared."""
    pieces = [Piece(b'{"model":"' + model.encode() + b'",'), system]
    for message in messages:
        pieces += (Piece(COMMA), message)
    return encoded([*pieces, Piece(b',"stream":true}')])


def told(rig: Rig, run: str, **ended: object) -> None:
    rig.tell(TraceKind.RUN_QUEUED, run=run, message=f"do {run}", source="console")
    rig.tell(TraceKind.RUN_STARTED, run=run, model="fake/one", cause="message", waitMs=3)
    rig.tell(TraceKind.RUN_ENDED, run=run, **{"status": "done", "stopReason": "stop", **ended})


# ── bodies ──────────────────────────────────────────────────────────────────────────────────


def test_a_long_talk_is_kept_as_what_each_call_adds(rig: Rig) -> None:
    system = piece("system", "s" * 30_000, PartKind.SECTION)
    messages: list[Piece] = []
    bodies = []
    for turn in range(400):
        messages.append(piece(f"m{turn}", f"message {turn} " * 20))
        body = talk(messages, system)
        bodies.append(body.body)
        rig.begin(body, run=f"r{turn}")
        rig.end(run=f"r{turn}")
        if turn % 50 == 0:
            rig.flush()
    rig.flush()
    for turn, body in [*enumerate(bodies)][::37]:
        assert contents.body(rig.db, reader.call(rig.db, f"r{turn}/call-1")) == body
    count = rig.db.execute("SELECT count(*) FROM blobs WHERE length(data) > 400").fetchone()[0]
    assert count == 0, "text that repeats is packed"
    assert rig.db.execute("SELECT count(*) FROM blobs").fetchone()[0] == 401
    middle, lists = (
        rig.db.execute(f"SELECT sum(length({name})) FROM {table}").fetchone()[0]
        for name, table in (("middle", "calls"), ("pieces", "lists"))
    )
    assert middle < 400 * 4 * MIDDLE_MOST
    assert lists < 40_000
    assert sum(map(len, bodies)) > 40 * used_bytes(rig.db)


@pytest.mark.parametrize("seed", range(5))
def test_bodies_that_change_anywhere(rig: Rig, seed: int) -> None:
    """Messages come, go and change in any place, sessions take turns, the writer forgets."""
    rng = random.Random(seed)
    talks: dict[str, list[Piece]] = {"a": [], "b": []}
    wanted = {}
    for step in range(120):
        session = rng.choice("ab")
        messages = talks[session]
        for _ in range(rng.randint(0, 3)):
            place = rng.randint(0, len(messages))
            match rng.choice(("add", "add", "drop", "change")):
                case "add":
                    messages.insert(place, piece(f"{session}{step}.{place}", rng.choice("xyz") * 9))
                case "drop" if messages:
                    del messages[min(place, len(messages) - 1)]
                case "change" if messages:
                    messages[min(place, len(messages) - 1)] = piece(f"c{step}", "changed")
                case _:
                    pass
        system = piece("system", rng.choice(("one", "two")), PartKind.SECTION)
        body = talk(messages, system, rng.choice(("m1", "m2")))
        wanted[f"r{step}"] = body.body
        rig.begin(body, run=f"r{step}", session=session)
        if rng.random() < 0.3:
            rig.flush()
        if rng.random() < 0.1:
            rig.writer.forget()
    rig.flush()
    for run, body in wanted.items():
        assert contents.body(rig.db, reader.call(rig.db, f"{run}/call-1")) == body


@pytest.mark.parametrize(
    ("old", "new", "ends"),
    [
        ("", "", (0, 0)), ("abc", "abc", (3, 0)), ("abc", "abxc", (2, 1)), ("ab", "abcd", (2, 0)),
        ("abcd", "cd", (0, 2)), ("abc", "xbz", (0, 0)), ("aab", "ab", (1, 1)), ("x", "", (0, 0)),
    ],
)  # fmt: skip
def test_overlap(old: str, new: str, ends: tuple[int, int]) -> None:
    pieces = {letter: piece(letter, letter) for letter in "abcdxz"}
    found = overlap([pieces[x] for x in old], [pieces[x] for x in new])
    assert found == ends or sum(found) == sum(ends)
    assert [*new[: found[0]]] == [*old[: found[0]]]


def test_a_damaged_body_is_never_given_for_the_real_one(rig: Rig) -> None:
    rig.begin(talk([piece("m", "words")], piece("s", "system", PartKind.SECTION)))
    rig.flush()
    rig.db.execute("UPDATE blobs SET data = ? WHERE data = ?", (packed(b"wordy"), packed(b"words")))
    with pytest.raises(BodyDiffers):
        contents.body(rig.db, reader.call(rig.db, "r/call-1"))
    rig.db.execute("PRAGMA foreign_keys=OFF")
    rig.db.execute("DELETE FROM pieces")
    with pytest.raises(BodyDiffers):
        contents.contents(rig.db, reader.call(rig.db, "r/call-1"))


def test_what_the_writer_remembered_wrongly_is_not_stored(rig: Rig) -> None:
    """A batch that fails leaves nothing, and the next one stands by itself."""
    system = piece("s", "system", PartKind.SECTION)
    rig.begin(talk([piece("m", "first")], system))
    rig.tell(TraceKind.TOOL_OUTPUT, toolCallId="t")
    rig.db.execute(
        "CREATE TEMP TRIGGER no BEFORE INSERT ON events BEGIN SELECT raise(FAIL, 'no'); END"
    )
    with pytest.raises(Exception, match="no"):
        rig.flush()
    assert rig.db.execute("SELECT count(*) FROM pieces").fetchone()[0] == 0
    rig.db.execute("DROP TRIGGER no")
    body = talk([piece("m", "first"), piece("n", "second")], system)
    rig.begin(body, call="call-2")
    rig.flush()
    assert contents.body(rig.db, reader.call(rig.db, "r/call-2")) == body.body


# ── what a call looks like ──────────────────────────────────────────────────────────────────


def seen(rig: Rig, run: str = "r", call: str = "call-1") -> list[tuple[str, bool, bool]]:
    found = reader.call(rig.db, f"{run}/{call}")
    before = reader.call_before(rig.db, found)
    made = view(
        contents.contents(rig.db, found), contents.contents(rig.db, before) if before else None
    )
    return [(part.id, part.is_new, part.cached) for part in made.parts[:-1]]


def test_new_cached_and_where_the_cache_breaks(rig: Rig) -> None:
    system, tool = piece("s", "system", PartKind.SECTION), piece("t", "{}", PartKind.TOOL)
    m1, m2, m3 = (piece(f"m{n}", f"message {n}") for n in (1, 2, 3))
    rig.begin(encoded([system, m1, tool]))
    rig.begin(encoded([system, m1, m2, tool]), call="call-2")
    rig.begin(encoded([piece("s", "SYSTEM", PartKind.SECTION), m1, m2, m3, tool]), call="call-3")
    rig.flush()
    assert seen(rig) == [("s", True, False), ("m1", True, False), ("t", True, False)]
    assert seen(rig, call="call-2") == [
        ("s", False, True), ("m1", False, True), ("m2", True, False), ("t", False, True),
    ]  # fmt: skip
    assert seen(rig, call="call-3") == [
        ("s", True, False), ("m1", False, False), ("m2", False, False), ("m3", True, False),
        ("t", False, True),
    ]  # fmt: skip
    now, before = (contents.contents(rig.db, reader.call(rig.db, f"r/call-{n}")) for n in (3, 2))
    assert view(now, before).cache_break == 0
    assert view(now, before, same_model=False).cache_break is None
    assert sum(part.bytes for part in view(now, before).parts) == now.bytes


def test_a_large_tool_result_is_named_as_what_made_the_call_grow(rig: Rig) -> None:
    system = piece("s", "system", PartKind.SECTION)
    result = piece("m2", "word " * 24_000, PartKind.TOOL_RESULT, "entry-17")
    rig.begin(encoded([system, piece("m1", "read it")]))
    rig.begin(encoded([system, piece("m1", "read it"), piece("a", "ok"), result]), call="call-2")
    rig.flush()
    now, before = (contents.contents(rig.db, reader.call(rig.db, f"r/call-{n}")) for n in (2, 1))
    grown = view(now, before).growth
    assert (grown[0].source, grown[0].kind, grown[0].tokens) == ("entry-17", "tool_result", 30_000)
    assert len(grown) == 2


def test_estimates_are_drawn_by_the_ratio_of_their_call(rig: Rig) -> None:
    body = encoded([piece("m", "word " * 40)])
    rig.begin(body)
    rig.begin(body, call="call-2", ratio=1.5)
    rig.flush()
    one, two = (reader.call(rig.db, f"r/call-{n}") for n in (1, 2))
    assert two.record.estimated_tokens == round(one.record.estimated_tokens * 1.5)
    (plain,), (drawn,) = (contents.contents(rig.db, found).parts for found in (one, two))
    assert (plain.tokens, drawn.tokens) == (50, 75)
    now, before = contents.contents(rig.db, two), contents.contents(rig.db, one, 1.5)
    assert view(now, before).growth == (), "another ratio is no growth"


def test_a_file_of_the_first_version_goes_on(tmp_path: Path) -> None:
    db = plain_sqlite().connect(str(tmp_path / "old.db"))
    prepare(db)
    db.execute("ALTER TABLE calls DROP COLUMN ratio")
    db.execute("PRAGMA user_version=1")
    prepare(db)
    assert db.execute("PRAGMA user_version").fetchone()[0] == VERSION
    assert "ratio" in {row[1] for row in db.execute("PRAGMA table_info(calls)")}
    db.close()


# ── runs and steps ──────────────────────────────────────────────────────────────────────────


def test_a_run_with_its_calls(rig: Rig) -> None:
    body = talk([piece("m", "words")], piece("s", "system", PartKind.SECTION))
    rig.tell(TraceKind.RUN_QUEUED, message="x" * 500, source="console")
    rig.tell(TraceKind.RUN_STARTED, model="fake/one", cause="message", waitMs=7)
    rig.begin(body)
    rig.end(tool_calls=({"id": "t0", "name": "read", "arguments": "{}"},))
    rig.tell(TraceKind.TOOL_STARTED, callId="call-1", toolCallId="t0", name="read", args={})
    rig.tell(TraceKind.RUN_STATE, prev="tool", new="parked")
    rig.now += 5_000
    rig.tell(TraceKind.RUN_STATE, prev="parked", new="tool")
    rig.tell(TraceKind.TOOL_ENDED, toolCallId="t0", name="read", status="ok", exitCode=0,
             durationMs=4, waitedMs=5_000, decision="allow-once", text="out")  # fmt: skip
    rig.begin(body, call="call-2", cause=CallCause.TOOL_ROUND, parent="r/call-1")
    rig.end(call="call-2", usage=None, error="it broke", status="error")
    rig.tell(TraceKind.RUN_ENDED, status="failed", stopReason="error", error={"title": "it broke"})
    rig.flush()
    n, row = reader.run(rig.db, "r")
    assert (row.title, row.status, row.error, row.queue_ms) == ("x" * 200, "failed", "it broke", 7)
    assert (row.calls, row.tools, row.parked_ms) == (2, 1, 5_010)
    assert row.usage is not None and (row.usage.input, row.usage.cache_read) == (70, 30)
    (second, first), following = reader.calls(rig.db, run_id="r")
    assert following is None
    assert (first.tokens, first.basis, first.status) == (100, "measured", "ok")
    assert (second.basis, second.status, second.error) == ("estimated", "error", "it broke")
    assert (second.cause, second.parent_id, second.parked_ms) == ("tool_round", "r/call-1", 5_010)
    assert first.body_hash == sha256(body.body).hexdigest()
    assert first.first_token_ms == first.started_ms + 4
    answer = reader.answer(rig.db, reader.call(rig.db, first.id))
    assert (answer.text, answer.tool_calls[0]["name"]) == ("yes", "read")
    (tool,) = reader.tools(reader.events(rig.db, n, row), row)
    assert (tool.call_id, tool.status, tool.waited_ms) == ("r/call-1", "ok", 5_000)


def test_steps_come_back_in_order_with_deltas_together(rig: Rig) -> None:
    rig.tell(TraceKind.RUN_QUEUED, message="hi", source="console")
    rig.tell(TraceKind.TEXT, callId="call-1", delta="one ")
    rig.tell(TraceKind.TEXT, callId="call-1", delta="two ")
    rig.flush()
    rig.tell(TraceKind.TEXT, callId="call-1", delta="three")
    rig.tell(TraceKind.REASONING, callId="call-1", delta="hm")
    rig.tell(TraceKind.TEXT, callId="call-1", delta="four")
    rig.tell(TraceKind.CALL_STARTED, callId="call-2", parts=[{"id": "big"}])
    rig.flush()
    steps = reader.events(rig.db, *reader.run(rig.db, "r"))
    assert [(step.kind.value, step.data.get("delta")) for step in steps] == [
        ("run.queued", None), ("text", "one two three"), ("reasoning", "hm"), ("text", "four"),
        ("call.started", None),
    ]  # fmt: skip
    assert [step.seq for step in steps] == [1, 2, 3, 4, 5]
    assert "parts" not in steps[-1].data


def test_a_flood_of_output_is_cut(rig: Rig) -> None:
    for _ in range(20):
        rig.tell(TraceKind.TOOL_OUTPUT, toolCallId="t", delta="x" * 10_000)
    rig.tell(TraceKind.TOOL_OUTPUT, toolCallId="u", delta="other")
    rig.flush()
    steps = reader.events(rig.db, *reader.run(rig.db, "r"))
    assert steps[0].data["delta"] == "x" * OUTPUT_CHARS + LEFT_OUT
    assert steps[1].data["delta"] == "other"


def test_a_run_taken_up_again_has_a_second_life(rig: Rig) -> None:
    body = talk([piece("m", "words")], piece("s", "system", PartKind.SECTION))
    rig.tell(TraceKind.RUN_QUEUED, message="hi", source="console")
    rig.begin(body)
    rig.flush()
    prepare(rig.db)  # the engine died; the next one opens the file
    _, row = reader.run(rig.db, "r")
    assert row.status == "interrupted"
    assert reader.call(rig.db, "r/call-1").record.status == "interrupted"
    rig.writer.forget()
    rig.tell(TraceKind.RUN_QUEUED, message="hi again", source="console")
    rig.begin(body, cause=CallCause.RESUME)
    rig.end()
    rig.flush()
    assert reader.run(rig.db, "r")[1].status == "running"
    again = reader.call(rig.db, "r/call-1").record
    assert (again.id, again.cause, again.seq) == ("r/call-1@2", "resume", 1)
    assert reader.call(rig.db, "r/call-1@2").record == again
    assert reader.call(rig.db, "r/call-1@1").record.status == "interrupted"
    assert reader.run(rig.db, "r")[1].title == "hi"


def test_tools_of_a_killed_run_read_interrupted(rig: Rig) -> None:
    def rows() -> list[tuple[str, str, int, str | None]]:
        n, row = reader.run(rig.db, "r")
        found = reader.tools(reader.events(rig.db, n, row), row)
        return [(tool.id, tool.status, tool.waited_ms, tool.decision) for tool in found]

    rig.tell(TraceKind.RUN_QUEUED, message="hi", source="console")
    rig.tell(TraceKind.RUN_STARTED, model="fake/one", cause="message")
    for id_ in ("t1", "t2", "t3"):
        rig.tell(TraceKind.TOOL_STARTED, callId="call-1", toolCallId=id_, name="exec", args={})
    rig.tell(TraceKind.TOOL_WAITING, toolCallId="t1", approvalId="a1")
    rig.now += 5_000
    rig.tell(TraceKind.TOOL_DECIDED, toolCallId="t1", decision="allow-once")
    rig.tell(TraceKind.TOOL_WAITING, toolCallId="t2", approvalId="a2")
    rig.tell(TraceKind.TOOL_OUTPUT, toolCallId="t1", delta="x")
    rig.tell(TraceKind.TOOL_ENDED, toolCallId="t3", name="exec", status="ok")
    rig.flush()
    assert {status for _, status, *_ in rows()} == {"running", "ok"}
    prepare(rig.db)  # the engine died; the next one opens the file
    dead = [
        ("t1", "interrupted", 5_010, "allow-once"), ("t2", "interrupted", 20, None),
        ("t3", "ok", 0, None),
    ]  # fmt: skip
    assert rows() == dead
    rig.writer.forget()
    rig.tell(TraceKind.RUN_QUEUED, message="hi", source="console")
    rig.tell(TraceKind.RUN_STARTED, model="fake/one", cause="resume")
    rig.tell(TraceKind.TOOL_STARTED, callId="call-1", toolCallId="t4", name="exec", args={})
    rig.flush()
    assert [row[1] for row in rows()] == ["interrupted", "interrupted", "ok", "running"]


def test_a_call_cut_off_with_its_run_is_not_open_for_ever(rig: Rig) -> None:
    rig.tell(TraceKind.RUN_QUEUED, message="hi", source="console")
    rig.begin(talk([], piece("s", "system", PartKind.SECTION)))
    rig.flush()
    rig.tell(TraceKind.RUN_ENDED, status="aborted", stopReason="user")
    rig.flush()
    assert reader.call(rig.db, "r/call-1").record.status == "aborted"


def test_pages(rig: Rig) -> None:
    for n in range(5):
        told(rig, f"r{n}")
        rig.begin(talk([], piece("s", "x", PartKind.SECTION)), run=f"r{n}", session=f"s{n % 2}")
    rig.flush()
    rows, following = reader.runs(rig.db, None, 2, None)
    assert [row.id for row in rows] == ["r4", "r3"]
    rows, following = reader.runs(rig.db, None, 2, following)
    assert [row.id for row in rows] == ["r2", "r1"]
    rows, following = reader.runs(rig.db, None, 2, following)
    assert ([row.id for row in rows], following) == (["r0"], None)
    assert len(reader.runs(rig.db, MAIN, 10, None)[0]) == 5
    found, following = reader.calls(rig.db, session_key="s0", limit=2)
    assert [call.run_id for call in found] == ["r4", "r2"]
    assert [c.run_id for c in reader.calls(rig.db, session_key="s0", before=following)[0]] == ["r0"]
    assert reader.last_call(rig.db, "s1").record.run_id == "r3"


def test_names_that_are_not_there(rig: Rig) -> None:
    for ask in (
        lambda: reader.run(rig.db, "no"), lambda: reader.call(rig.db, "no/call-1"),
        lambda: reader.call(rig.db, "nonsense"), lambda: reader.last_call(rig.db),
    ):  # fmt: skip
        with pytest.raises(reader.UnknownTrace):
            ask()


# ── retention ───────────────────────────────────────────────────────────────────────────────


def test_old_runs_go_with_what_only_they_used(rig: Rig) -> None:
    system = piece("s", "shared " * 100, PartKind.SECTION)
    for n in range(4):
        told(rig, f"r{n}")
        rig.begin(talk([piece(f"m{n}", f"only {n} " * 100)], system), run=f"r{n}")
    rig.flush()
    cut = rig.db.execute("SELECT started_ms FROM runs WHERE id = 'r2'").fetchone()[0]
    swept = sweep(rig.db, Limits(cut, 1 << 40))
    assert swept.runs == 2
    assert sweep(rig.db, Limits(cut, 1 << 40)).runs == 0
    rig.writer.forget()
    assert [row.id for row in reader.runs(rig.db, None, 9, None)[0]] == ["r3", "r2"]
    left = {
        part.id
        for n in (2, 3)
        for part in contents.contents(rig.db, reader.call(rig.db, f"r{n}/call-1")).parts
    }
    assert left == {"s", "m2", "m3"}
    assert rig.db.execute("SELECT count(*) FROM blobs").fetchone()[0] == 3
    for n in (2, 3):
        contents.body(rig.db, reader.call(rig.db, f"r{n}/call-1"))
    # And the talk goes on as if nothing had been thrown away.
    body = talk([piece("m4", "next")], system)
    rig.begin(body, run="r4")
    rig.flush()
    assert contents.body(rig.db, reader.call(rig.db, "r4/call-1")) == body.body


def test_above_its_size_the_oldest_go_and_running_ones_stay(rig: Rig) -> None:
    rng = random.Random(1)
    system = piece("s", "system", PartKind.SECTION)
    rig.tell(TraceKind.RUN_QUEUED, run="going", message="hi", source="console")
    for n in range(60):
        told(rig, f"r{n}")
        noise = "".join(rng.choices("abcdefghijklmnop", k=20_000))
        rig.begin(talk([piece(f"m{n}", noise)], system), run=f"r{n}", session=f"s{n}")
    rig.flush()
    limit = used_bytes(rig.db) // 2
    while sweep(rig.db, Limits(0, limit)).runs:
        pass
    assert used_bytes(rig.db) <= limit
    left = [row.id for row in reader.runs(rig.db, None, 99, None)[0]]
    assert left[-1] == "going"
    assert left[0] == "r59"
    assert 15 < len(left) < 40
    assert rig.db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    assert rig.db.execute("PRAGMA foreign_key_check").fetchall() == []


# ── small things ────────────────────────────────────────────────────────────────────────────


def test_a_store_of_a_later_version_is_left_alone(rig: Rig) -> None:
    rig.db.execute(f"PRAGMA user_version={VERSION + 1}")
    with pytest.raises(NewerStore):
        prepare(rig.db)


@pytest.mark.parametrize("data", [b"", b"short", b"long " * 1000, bytes(range(256)) * 9])
def test_packed(data: bytes) -> None:
    assert unpacked(packed(data)) == data


@pytest.mark.parametrize("blob", [b"", b"\2x", b"\1no zlib"])
def test_what_was_not_packed(blob: bytes) -> None:
    with pytest.raises(StoreDamaged, match="damaged"):
        unpacked(blob)


def test_a_damaged_list_is_told(rig: Rig) -> None:
    with pytest.raises(StoreDamaged, match="damaged"):
        numbers_of(packed(b"\0\0\0\0"), 2, 0, b"")


@pytest.mark.parametrize("value", [{"a": [1, 2.5, None, "x"]}, "lone \ud800", {"p": "\udcff"}])
def test_json_of_any_text(value: object) -> None:
    assert loaded(dumped(value)) == value


def test_values_that_json_lacks_become_texts() -> None:
    assert loaded(dumped({"path": Path("/x")})) in ({"path": "/x"}, {"path": "PosixPath('/x')"})
