"""Grants: exactly what was on the screen goes ahead, for as long as was said, and nothing else."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from claw_engine.approvals import grants
from claw_engine.approvals.answers import Answer
from claw_engine.approvals.broker import Broker
from claw_engine.approvals.errors import JournalError, NotOffered
from claw_engine.approvals.events import ApprovalRequested, ApprovalResolved, StandingChanged
from claw_engine.approvals.grants import SESSION_MS, Covers, Grant, Span, Wanted
from claw_engine.approvals.model import (
    AlwaysOffer,
    ApprovalAsk,
    ApprovalKind,
    ApprovalRecord,
    Binding,
    BoundFile,
    Decision,
)
from tests.approvals.test_broker import Desk
from tests.approvals.test_broker import ask as plain

NOW = 1_000_000
EXACT = Wanted(Covers.EXACT, Span.SESSION)
PROGRAMS = Wanted(Covers.PROGRAMS, Span.SESSION)


def ask(command: str = "id -u", **changes: object) -> ApprovalAsk:
    question = replace(plain(command), env_changes=())
    return replace(question, **changes)


def script(sha256: str = "aa", **changes: object) -> ApprovalAsk:
    """An interpreter with a script: never a rule, never a program grant."""
    files = (
        BoundFile("python3", "/usr/bin/python3.11", "pp", 1, 2),
        BoundFile("x.py", "/w/x.py", sha256, 1, 3),
    )
    binding = Binding("python3 x.py", "/w", "/w", (1, 2), "e", files)
    refused = AlwaysOffer(refusal="python3 runs what it is given")
    return ask("python3 x.py", binding=binding, always=refused, **changes)


def grant(question: ApprovalAsk, wanted: Wanted) -> Grant:
    return grants.make(question, wanted, grant_id="g", approval_id="a", by="console", now_ms=NOW)


def binding(**changes: object) -> Binding:
    return replace(ask().binding, **changes)


SAME = [
    ask(),
    ask(run_id="another", tool_call_id="c9", why="other words", reasons=("other",)),
    ask(binding=binding(env_hash="each run has its own", cwd_id=(9, 9))),
]
OTHER = {
    "text": ask("id -u "),
    "folder": ask(cwd="/v"),
    "folder behind a link": ask(binding=binding(cwd_real="/v")),
    "a file's content": ask(binding=binding(files=(BoundFile("/a", "/a", "zz", 1, 2),))),
    "a file's place": ask(binding=binding(files=(BoundFile("/a", "/b", "h", 1, 2),))),
    "one more file": ask(
        binding=binding(files=(*ask().binding.files, BoundFile("/c", "/c", "h", 1, 3)))
    ),
    "environment": ask(env_changes=("GIT_DIR=/x",)),
    "agent": ask(agent_id="other"),
    "session": ask(session_key="agent:main:other"),
    "walls": ask(sandbox="bwrap"),
    "host": ask(host="node"),
    "kind": ask(kind=ApprovalKind.WRITE),
    "policy asks always": ask(ask="always"),
    "a client's own": ask(client={"name": "x"}),
}


@pytest.mark.parametrize("question", SAME)
def test_an_exact_grant_covers_the_same_command(question: ApprovalAsk) -> None:
    assert grants.covers(grant(ask(), EXACT), question, NOW)


@pytest.mark.parametrize("name", OTHER)
def test_an_exact_grant_covers_nothing_else(name: str) -> None:
    assert not grants.covers(grant(ask(), EXACT), OTHER[name], NOW)


def test_an_interpreter_is_granted_by_its_exact_text_and_script_only() -> None:
    assert {offer.wanted.covers for offer in grants.offers(script())} == {Covers.EXACT}
    assert "runs what it is given" in (grants.objection(script(), PROGRAMS) or "")
    held = grant(script(), EXACT)
    assert grants.covers(held, script(), NOW)
    assert not grants.covers(held, script(sha256="bb"), NOW)
    assert not grants.covers(held, replace(script(), command="python3 y.py"), NOW)


def test_a_program_grant_covers_its_programs_with_any_arguments_in_plain_commands() -> None:
    held = grant(ask(), PROGRAMS)
    assert grants.covers(held, ask("id -g"), NOW)
    unparsed = AlwaysOffer(refusal="only a plain command can be allowed for ever")
    bound = AlwaysOffer(("/usr/bin/id",), None, {"/usr/bin/id": "sha"})
    for question in (
        ask("ls", always=AlwaysOffer(("/usr/bin/ls",))),
        ask("id; ls", always=AlwaysOffer(("/usr/bin/id", "/usr/bin/ls"))),
        ask("id $(x)", always=unparsed),
        ask("id > f", redirections=("> f",)),
        ask("id -g", env_changes=("LC_ALL=C",)),
        ask("id -g", always=bound),
        ask("id -g", sandbox="bwrap"),
        ask("id -g", session_key="agent:main:other"),
        script(),
    ):
        assert not grants.covers(held, question, NOW), question.command


def test_a_program_that_is_harmless_with_these_arguments_only_is_granted_exactly() -> None:
    label = "/usr/bin/git status"
    offer = AlwaysOffer((label,), arguments={label: ("/usr/bin/git", "x")})
    question = ask("git status", always=offer)
    assert {o.wanted.covers for o in grants.offers(question)} == {Covers.EXACT}
    assert not grants.covers(grant(ask(), PROGRAMS), question, NOW)


def test_a_program_grant_holds_for_the_content_it_was_made_for() -> None:
    bound = ask(always=AlwaysOffer(("/w/tool",), None, {"/w/tool": "one"}))
    changed = ask(always=AlwaysOffer(("/w/tool",), None, {"/w/tool": "two"}))
    held = grant(bound, PROGRAMS)
    assert grants.covers(held, bound, NOW)
    assert not grants.covers(held, changed, NOW)


@pytest.mark.parametrize(
    ("wanted", "until"),
    [
        (Wanted(Covers.EXACT, Span.MINUTES), NOW + 15 * 60_000),
        (Wanted(Covers.EXACT, Span.MINUTES, 3), NOW + 180_000),
        (EXACT, NOW + SESSION_MS),
        (Wanted(Covers.EXACT, Span.LASTING), None),
    ],
)
def test_a_grant_ends_when_it_was_said_to(wanted: Wanted, until: int | None) -> None:
    held = grant(ask(), wanted)
    assert held.until_ms == until
    if until is not None:
        assert grants.covers(held, ask(), until - 1)
        assert not grants.covers(held, ask(), until)
    else:
        assert grants.covers(held, ask(), NOW * 1000)
        assert grants.covers(held, ask(session_key="agent:main:other"), NOW)
        assert not grants.covers(held, ask(agent_id="other"), NOW)


def test_offers_are_the_narrowest_first_and_say_what_they_open() -> None:
    found = grants.offers(ask())
    assert [(o.wanted.covers, o.wanted.span) for o in found] == [
        (Covers.EXACT, Span.MINUTES), (Covers.EXACT, Span.SESSION), (Covers.EXACT, Span.LASTING),
        (Covers.PROGRAMS, Span.MINUTES), (Covers.PROGRAMS, Span.SESSION),
    ]  # fmt: skip
    assert all(grants.objection(ask(), offer.wanted) is None for offer in found)
    assert "/usr/bin/id with any arguments, for 15 minutes" in found[3].words


REFUSED = [
    (Wanted(Covers.PROGRAMS, Span.LASTING), "by a rule"),
    (Wanted(Covers.EXACT, Span.MINUTES, 0), "1 to 1440 minutes"),
    (Wanted(Covers.EXACT, Span.MINUTES, 1441), "1 to 1440 minutes"),
]


@pytest.mark.parametrize(("wanted", "words"), REFUSED)
def test_what_is_not_offered_is_refused_with_its_reason(wanted: Wanted, words: str) -> None:
    assert words in (grants.objection(ask(), wanted) or "")


# ── with the broker ─────────────────────────────────────────────────────────────────────────


@pytest.fixture
async def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path / "approvals" / "requests.jsonl")
    await desk.broker.start()
    return desk


async def allowed(
    desk: Desk, wanted: Wanted, question: ApprovalAsk | None = None
) -> ApprovalRecord:
    task, record = await desk.put(question or ask())
    done = await desk.broker.resolve(record.id, Decision.ALLOW_ONCE, "console", "", wanted)
    assert (await task).record == done
    return done


async def test_a_granted_command_asks_nobody_and_each_use_is_in_the_history(desk: Desk) -> None:
    first = await allowed(desk, EXACT)
    (held,) = desk.broker.grants.list()
    assert first.grant == held.id
    desk.events.clear()
    outcome = await desk.broker.request(ask(run_id="run-2"))
    assert outcome.allowed and outcome.by == "grant" and outcome.record.grant == held.id
    assert "session grant of console" in outcome.reason
    assert not any(isinstance(event, ApprovalRequested) for event in desk.events)
    assert ApprovalResolved(outcome.record) in desk.events and StandingChanged() in desk.events
    await desk.broker.record_ran(outcome.record.id, {"exitCode": 0})
    used = desk.broker.grants.list()[0]
    assert (used.uses, used.last_command) == (1, "id -u")
    after = desk.restarted()
    await after.start()
    assert [(r.grant, r.by, r.ran) for r in await after.history(5)] == [
        (held.id, "grant", {"exitCode": 0}), (held.id, "console", None),
    ]  # fmt: skip


async def test_a_grant_does_not_answer_where_a_person_must(desk: Desk) -> None:
    await allowed(desk, EXACT)
    asked = asyncio.create_task(desk.broker.request(ask(), by_grant=False))
    record = await desk.asked.get()
    assert not asked.done()
    await desk.broker.resolve(record.id, Decision.DENY, "console")
    assert (await asked).by == "console"


async def test_a_grant_survives_a_restart_and_ends_in_time(desk: Desk) -> None:
    await allowed(desk, Wanted(Covers.EXACT, Span.MINUTES))
    after = desk.broker = desk.restarted()
    await after.start()
    assert (await after.request(ask())).by == "grant"
    await desk.clock.advance(15 * 60)
    assert after.grants.list() == ()
    task, _ = await desk.put(ask())
    assert not task.done()
    await after.close()
    await task


async def test_a_grant_taken_back_counts_no_more(desk: Desk) -> None:
    await allowed(desk, EXACT)
    (held,) = desk.broker.grants.list()
    assert await desk.broker.grants.remove("no such") is None
    assert await desk.broker.grants.remove(held.id) == held
    for broker in (desk.broker, desk.restarted()):
        await broker.grants.load()
        assert await broker.granted(ask()) is None


async def test_a_session_that_begins_anew_takes_its_grants_with_it(desk: Desk) -> None:
    await allowed(desk, EXACT)
    await allowed(desk, Wanted(Covers.EXACT, Span.LASTING), ask("id -g"))
    await allowed(desk, EXACT, ask("id", session_key="agent:main:other"))
    await desk.broker.grants.end_session("agent:main:main")
    assert [g.command for g in desk.broker.grants.list()] == ["id", "id -g"]


async def test_a_session_that_begins_anew_by_itself_has_no_grants(desk: Desk) -> None:
    """By policy or by hand, with this engine or before it was started: another id, another life."""
    life = {"agent:main:main": "one"}
    path = desk.path
    desk.broker = Broker(desk.world, desk._publish, path, session_id=lambda key: life.get(key, ""))
    await desk.broker.start()
    await allowed(desk, EXACT)
    await allowed(desk, Wanted(Covers.EXACT, Span.LASTING), ask("id -g"))
    assert await desk.broker.granted(ask()) is not None
    life["agent:main:main"] = "two"
    assert await desk.broker.granted(ask()) is None
    assert [g.command for g in desk.broker.grants.list()] == ["id -g"]
    after = Broker(desk.world, desk._publish, path, session_id=lambda key: life.get(key, ""))
    await after.start()
    assert await after.granted(ask()) is None and await after.granted(ask("id -g")) is not None


async def test_the_same_grant_twice_is_one_that_holds_longer(desk: Desk) -> None:
    tasks = [await desk.put(ask()) for _ in range(3)]
    answer = Answer(Decision.ALLOW_ONCE, "console", "", Wanted(Covers.EXACT, Span.MINUTES))
    found = await desk.broker.resolve_many([record.id for _, record in tasks], answer)
    assert all(isinstance(one, ApprovalRecord) for one in found)
    assert all([(await task).allowed for task, _ in tasks])
    assert len(desk.broker.grants.list()) == 1


async def test_a_grant_that_cannot_be_kept_decides_nothing(desk: Desk) -> None:
    task, record = await desk.put(ask())
    desk.disk.fail_next()
    with pytest.raises(JournalError):
        await desk.broker.resolve(record.id, Decision.ALLOW_ONCE, "console", "", EXACT)
    desk.disk.heal()
    assert not task.done() and desk.broker.grants.list() == ()
    assert desk.broker.pending() == (record,)
    await desk.broker.close()
    await task


async def test_a_decision_that_cannot_be_written_leaves_no_grant(desk: Desk) -> None:
    task, record = await desk.put(ask())
    grants_file = desk.path.with_name("grants.json")
    desk.disk.fail_next(after=1)  # the grant is written, the decision is not
    with pytest.raises(JournalError):
        await desk.broker.resolve(record.id, Decision.ALLOW_ONCE, "console", "", EXACT)
    assert desk.broker.grants.list() == ()
    assert await desk.broker.granted(ask()) is None
    desk.disk.heal()
    await desk.broker.resolve(record.id, Decision.DENY, "console")
    assert not (await task).allowed
    assert grants_file.exists()


async def test_a_use_that_cannot_be_recorded_does_not_count(desk: Desk) -> None:
    await allowed(desk, EXACT)
    desk.disk.fail_next()
    with pytest.raises(JournalError):
        await desk.broker.request(ask())


@pytest.mark.parametrize("decision", [Decision.DENY, Decision.ALLOW_ALWAYS])
async def test_a_grant_goes_with_allow_once_only(desk: Desk, decision: Decision) -> None:
    task, record = await desk.put(ask())
    with pytest.raises(NotOffered, match="allow-once"):
        await desk.broker.resolve(record.id, decision, "console", "", EXACT)
    await desk.broker.close()
    await task


async def test_a_damaged_file_grants_nothing_and_is_kept(desk: Desk) -> None:
    await allowed(desk, EXACT)
    file = desk.path.with_name("grants.json")
    data = json.loads(file.read_text())
    data[0]["covers"] = "everything"
    file.write_text(json.dumps(data))
    after = desk.restarted()
    await after.start()
    assert after.grants.list() == ()
    assert [p.name for p in file.parent.iterdir() if ".bad-" in p.name]


async def test_what_waits_already_is_not_decided_by_a_new_grant(desk: Desk) -> None:
    """Somebody may be about to deny it."""
    waits, record = await desk.put(ask("id -g"))
    await allowed(desk, PROGRAMS)
    assert desk.broker.pending() == (record,)
    assert (await desk.broker.request(ask("id -n"))).by == "grant"
    await desk.broker.close()
    await waits
