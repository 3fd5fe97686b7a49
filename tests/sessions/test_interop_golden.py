"""Directories that the real OpenClaw 2026.2.26 wrote or took over, and what it said of them.

`theirs` it wrote itself: tools, aborts, a model-written compaction, a cut file, resets, a delete.
`taken-over` we wrote and it then appended to, compacted, cut and reset. `accepted-shapes.json`
are the lines of ours it took. Made by `python -m bench.interop --golden` (docs/interop/README.md).
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from bench.interop.files import chain_faults, first_added, leaf_of, look, spoken
from bench.interop.golden import ROW, shapes_of
from claw_engine.messages import UserMessage, message_to_json, text_of
from claw_engine.sessions.entries import StoredMessage
from claw_engine.sessions.rows import strip_stamp
from tests.sessions.support import Box, assistant, user
from tests.support.engines import Operator, engine_on

GOLDEN = Path(__file__).parents[1] / "golden" / "interop"
CUT = "agent:main:lines"
"""Its `sessions.compact` dropped the header line of this one."""
TWO_ROOTS = ("agent:main:aborted", "agent:main:stopped")
"""Of `theirs`: an aborted first answer is written twice, under a header each."""


@pytest.fixture(params=["theirs", "taken-over"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def box(name: str, tmp_path: Path) -> Box:
    shutil.copytree(GOLDEN / name / "agents", tmp_path / "agents")
    return Box(tmp_path)


def told(name: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((GOLDEN / name / "told.json").read_text())
    return value


def heard(history: tuple[StoredMessage, ...]) -> list[list[str]]:
    messages = []
    for stored in history:
        raw: dict[str, Any] = message_to_json(stored.message)
        if isinstance(stored.message, UserMessage):
            raw["content"] = strip_stamp(text_of(stored.message))
        messages.append(raw)
    return [list(pair) for pair in spoken(messages)]


async def test_rows_and_histories_are_what_the_real_one_said(box: Box, name: str) -> None:
    before = look(box.root)
    sessions = box.sessions()
    await sessions.open()
    rows = {row.key: row.to_wire() for row in await sessions.list()}
    expected = told(name)
    assert set(rows) == set(expected)
    for key, said in expected.items():
        assert {field: rows[key].get(field) for field in ROW} == said["row"]
        history = heard(await sessions.history(key, 1000))
        if name == "theirs" and key in TWO_ROOTS:
            assert all(pair in history for pair in said["said"])
            assert len(history) == len(said["said"]) - 1
        else:
            assert history == said["said"]
    await sessions.close()
    cut = f"{before.index[CUT]['sessionId']}.jsonl"
    after = look(box.root).files
    assert {n: data for n, data in after.items() if n in before.files and n != cut} == {
        n: data for n, data in before.files.items() if n != cut
    }
    kept = [data for n, data in after.items() if n.startswith(f"{cut}.bak-")]
    if chain_faults(before.lines(CUT)[:1]):
        assert kept == [before.files[cut]]
        assert not chain_faults([json.loads(line) for line in after[cut].splitlines()[:1]])
        assert after[cut].endswith(before.files[cut])
    else:
        assert after[cut] == before.files[cut]


async def test_a_turn_of_ours_follows_its_leaf_and_changes_nothing_else(
    box: Box, name: str
) -> None:
    sessions = box.sessions()
    await sessions.open()
    for key in told(name):
        await sessions.history(key)  # mends the cut one
    before = look(box.root)
    key = "agent:main:long"
    transcript = await sessions.transcript(key)
    await transcript.append(user("more?"), assistant("More."))
    await sessions.update(key, lambda entry: entry.replace(updatedAt=box.clock.now_ms()))
    await sessions.close()
    after = look(box.root)
    old, new = before.transcript(key), after.transcript(key)
    assert new.startswith(old)
    added = first_added(old, new)
    assert added is not None
    assert added["parentId"] == leaf_of(old)
    assert not chain_faults(after.lines(key), leaf_of(old))
    assert {k: v for k, v in after.index.items() if k != key} == {
        k: v for k, v in before.index.items() if k != key
    }
    changed = {n for n, v in after.index[key].items() if v != before.index[key].get(n)}
    assert changed == {"updatedAt"}
    others = before.files.keys() - {"sessions.json", f"{before.index[key]['sessionId']}.jsonl"}
    assert {n: after.files[n] for n in others} == {n: before.files[n] for n in others}


async def test_a_model_reads_its_summary_and_what_it_kept(box: Box) -> None:
    sessions = box.sessions()
    await sessions.open()
    transcript = await sessions.transcript("agent:main:long")
    texts = [text_of(stored.message) for stored in transcript.messages()]
    assert "Summary by the scripted model" in texts[0]
    assert not any("letter 0 please" in text for text in texts)
    assert any("letter 25 please" in text for text in texts)
    assert any("after the compaction" in text for text in texts)
    everything = [text_of(stored.message) for stored in transcript.history()]
    assert any("letter 0 please" in text for text in everything)
    await sessions.close()


async def test_we_reset_as_it_does(box: Box) -> None:
    before = look(box.root)
    sessions = box.sessions()
    await sessions.open()
    await sessions.reset("agent:main:main")
    await sessions.close()
    after = look(box.root)
    old, entry = before.index["agent:main:main"], after.index["agent:main:main"]
    assert entry["sessionId"] != old["sessionId"]
    assert entry["model"] == old["model"]
    assert entry["skillsSnapshot"] == old["skillsSnapshot"]
    archives = after.archives_of(old["sessionId"], "reset")
    assert archives == [before.transcript("agent:main:main")]


async def test_every_line_we_write_has_a_shape_the_real_one_took(tmp_path: Path) -> None:
    async with (
        engine_on(tmp_path) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        await operator.ended(await operator.say("hello"))
        run_id = await operator.say("run echo hi")
        await operator.decide(await operator.request(run_id), "allow-once")
        await operator.ended(run_id)
        await operator.ended(await operator.say("think about it"))
        run_id = await operator.say("long 100000")
        await operator.trace(run_id, "text")
        await operator.client.call("chat.abort", {"sessionKey": "main"})
        await operator.ended(run_id)
        await operator.ended(await operator.say("fail: 401"))
    written = look(tmp_path)
    lines = written.lines("agent:main:main")
    assert {line.get("message", {}).get("role") for line in lines} >= {"assistant", "toolResult"}
    accepted = set(json.loads((GOLDEN / "accepted-shapes.json").read_text()))
    assert shapes_of(lines) - accepted == set()
