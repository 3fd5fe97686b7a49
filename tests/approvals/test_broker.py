"""The broker: durable questions, one answer each, and nothing that decides by accident."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from claw_engine.approvals.answers import Answer
from claw_engine.approvals.broker import DEFAULT_TIMEOUT_MS, Broker
from claw_engine.approvals.errors import (
    AlreadyKnown,
    AlreadyResolved,
    AmbiguousApproval,
    BrokerClosed,
    JournalError,
    NotOffered,
    UnknownApproval,
)
from claw_engine.approvals.events import ApprovalRan, ApprovalRequested, ApprovalResolved
from claw_engine.approvals.model import (
    AlwaysOffer,
    ApprovalAsk,
    ApprovalKind,
    ApprovalRecord,
    Binding,
    BoundFile,
    Decision,
    Outcome,
    SegmentView,
    Status,
)
from claw_engine.events import Event
from claw_engine.world import World
from tests.support.fakes import FakeClock, FakeIds, FaultyDisk, fake_world


def ask(
    command: str = "id", *, run_id: str = "run-1", resolved: str = "/usr/bin/id"
) -> ApprovalAsk:
    return ApprovalAsk(
        kind=ApprovalKind.EXEC,
        command=command,
        cwd="/w",
        agent_id="main",
        session_key="agent:main:main",
        run_id=run_id,
        tool_call_id="call-1",
        why="to see",
        binding=Binding(command, "/w", "/w", (1, 2), "e", (BoundFile("/a", "/a", "h", 1, 2),)),
        env_changes=("LC_ALL",),
        reasons=("no rule matches",),
        segments=(
            SegmentView(command, (command,), resolved, None, "no rule matches", ("deletes",)),
        ),
        always=AlwaysOffer((resolved,), None, {}),
    )


class Desk:
    """A broker on a real journal, with a clock and ids under control."""

    def __init__(self, path: Path, ids: FakeIds | None = None) -> None:
        self.clock = FakeClock()
        self.disk = FaultyDisk()
        self.path = path
        self.events: list[Event] = []
        self.asked: asyncio.Queue[ApprovalRecord] = asyncio.Queue()
        self.world: World = fake_world(self.clock, self.disk, ids)
        self.broker = self.restarted()

    def restarted(self) -> Broker:
        return Broker(self.world, self._publish, self.path)

    def _publish(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, ApprovalRequested):
            self.asked.put_nowait(event.record)

    async def put(
        self, question: ApprovalAsk | None = None
    ) -> tuple[asyncio.Task[Outcome], ApprovalRecord]:
        task = asyncio.create_task(self.broker.request(question or ask()))
        return task, await self.asked.get()

    def lines(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.path.read_text().splitlines()]


@pytest.fixture
async def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path / "approvals" / "requests.jsonl")
    await desk.broker.start()
    return desk


@pytest.mark.parametrize("decision", list(Decision))
async def test_an_answer_reaches_the_one_who_asked(desk: Desk, decision: Decision) -> None:
    task, record = await desk.put()
    assert not task.done()
    answered = await desk.broker.resolve(record.id, decision, "console", "because")
    outcome = await task
    assert outcome.record == answered
    assert (outcome.decision, outcome.by, outcome.reason) == (decision, "console", "because")
    assert outcome.allowed == (decision is not Decision.DENY)
    assert desk.events == [ApprovalRequested(record), ApprovalResolved(answered)]
    assert desk.broker.pending() == ()


async def test_the_question_is_on_disk_before_it_is_shown(desk: Desk) -> None:
    seen: list[list[dict[str, object]]] = []
    task = asyncio.create_task(
        desk.broker.request(ask(), on_pending=lambda record: seen.append(desk.lines()))
    )
    record = await desk.asked.get()
    assert [line["type"] for line in seen[0]] == ["requested"]
    await desk.broker.resolve(record.id, Decision.DENY, "x")
    await task
    assert [line["type"] for line in desk.lines()] == ["requested", "resolved"]


async def test_a_question_that_cannot_be_written_is_not_asked(desk: Desk) -> None:
    desk.disk.fail_next()
    with pytest.raises(JournalError):
        await desk.broker.request(ask())
    assert desk.events == []
    assert desk.broker.pending() == ()


async def test_a_decision_that_cannot_be_written_takes_no_effect(desk: Desk) -> None:
    task, record = await desk.put()
    desk.disk.fail_next()
    with pytest.raises(JournalError):
        await desk.broker.resolve(record.id, Decision.ALLOW_ONCE, "console")
    assert not task.done()
    assert desk.broker.pending() == (record,)
    desk.disk.heal()
    await desk.broker.resolve(record.id, Decision.DENY, "console")
    assert (await task).decision is Decision.DENY


async def test_an_expiry_ends_the_wait_even_on_a_full_disk(desk: Desk) -> None:
    task, record = await desk.put()
    desk.disk.fail_next()
    await desk.clock.advance(DEFAULT_TIMEOUT_MS / 1000)
    outcome = await task
    assert (outcome.decision, outcome.reason) == (None, "timeout")
    assert desk.broker.pending() == ()
    assert record.expires_at_ms == record.created_at_ms + DEFAULT_TIMEOUT_MS


async def test_nobody_answers_and_it_expires_after_thirty_minutes(desk: Desk) -> None:
    task, record = await desk.put()
    await desk.clock.advance(30 * 60 - 1)
    assert desk.broker.pending() == (record,)
    await desk.clock.advance(1)
    outcome = await task
    assert (outcome.decision, outcome.allowed, outcome.reason) == (None, False, "timeout")
    assert outcome.record.status is Status.EXPIRED
    with pytest.raises(AlreadyResolved, match="timeout"):
        await desk.broker.resolve(record.id, Decision.ALLOW_ONCE, "late")


async def test_the_first_answer_wins_and_the_second_learns_by_whom(desk: Desk) -> None:
    task, record = await desk.put()
    answers = await asyncio.gather(
        desk.broker.resolve(record.id, Decision.DENY, "console 1"),
        desk.broker.resolve(record.id, Decision.ALLOW_ONCE, "cli"),
        desk.broker.resolve(record.id, Decision.ALLOW_ALWAYS, "console 2"),
        return_exceptions=True,
    )
    assert isinstance(answers[0], ApprovalRecord)
    for late in answers[1:]:
        assert isinstance(late, AlreadyResolved)
        assert late.title == "already resolved by console 1 (deny)"
        assert late.code == "INVALID_REQUEST"
    assert (await task).decision is Decision.DENY
    assert [line["type"] for line in desk.lines()] == ["requested", "resolved"]


async def test_after_the_end_nobody_is_asked(desk: Desk) -> None:
    await desk.broker.close()
    with pytest.raises(BrokerClosed):
        await desk.broker.request(ask())
    assert desk.events == []


async def test_always_needs_an_offer(desk: Desk) -> None:
    refused = replace(ask(), always=AlwaysOffer(refusal="sh is a shell"))
    task, record = await desk.put(refused)
    with pytest.raises(NotOffered, match="sh is a shell"):
        await desk.broker.resolve(record.id, Decision.ALLOW_ALWAYS, "console")
    assert not task.done()
    await desk.broker.resolve(record.id, Decision.ALLOW_ONCE, "console")
    assert (await task).allowed


async def test_cancelling_a_run_ends_its_questions_only(desk: Desk) -> None:
    mine, _ = await desk.put(ask(run_id="run-1"))
    other, kept = await desk.put(ask(run_id="run-2"))
    closed = await desk.broker.cancel("run-1", "user")
    assert [r.status for r in closed] == [Status.EXPIRED]
    assert (await mine).reason == "user"
    assert desk.broker.pending() == (kept,)
    await desk.broker.close()
    assert (await other).reason == "shutdown"


async def test_an_asker_who_is_cancelled_leaves_no_question_behind(desk: Desk) -> None:
    task, record = await desk.put()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await desk.broker.close()
    assert desk.broker.pending() == ()
    found = desk.broker.get(record.id)
    assert found is not None
    assert (found.status, found.reason) == (Status.EXPIRED, "cancelled")


async def test_a_restart_expires_what_was_open_and_never_arms_it_again(desk: Desk) -> None:
    task, record = await desk.put()
    after = desk.restarted()
    desk.events.clear()
    await after.start()
    assert after.pending() == ()
    (expired,) = await after.history(10)
    assert expired == replace(
        record, status=Status.EXPIRED, reason="restart", decided_at_ms=desk.clock.now_ms()
    )
    assert desk.events == [ApprovalResolved(expired)]
    with pytest.raises(AlreadyResolved, match="restart"):
        await after.resolve(record.id, Decision.ALLOW_ONCE, "console")
    again = desk.restarted()
    await again.start()
    assert await again.history(10) == (expired,)
    await desk.broker.close()
    await task


async def test_history_survives_a_restart_with_what_ran(desk: Desk) -> None:
    for number, decision in enumerate([Decision.DENY, Decision.ALLOW_ALWAYS]):
        path = f"/usr/bin/id{number}"
        task, record = await desk.put(ask(f"id {number}", resolved=path))
        await desk.broker.resolve(record.id, decision, "console", f"reason {number}")
        await task
    await desk.broker.record_ran(record.id, {"pid": 7, "exitCode": 0})
    before = await desk.broker.history(10)
    assert [r.ask.command for r in before] == ["id 1", "id 0"]
    assert before[0].ran == {"pid": 7, "exitCode": 0}
    after = desk.restarted()
    await after.start()
    assert await after.history(10) == before
    assert await after.history(1) == before[:1]
    assert await after.history(0) == ()
    assert after.get(record.id) == before[0]


async def test_a_torn_journal_is_mended(desk: Desk) -> None:
    task, record = await desk.put()
    await desk.broker.resolve(record.id, Decision.DENY, "console")
    await task
    with desk.path.open("ab") as file:
        file.write(b'{"type":"requested","id":"half')
    after = desk.restarted()
    await after.start()
    assert [r.id for r in await after.history(10)] == [record.id]


class TwinIds(FakeIds):
    """Ids that share their first eight characters."""

    def __init__(self) -> None:
        super().__init__()
        self._ids = iter(["abcd1234-1000", "abcd1234-2000"])

    def uuid(self) -> str:
        return next(self._ids)


@pytest.fixture
async def twins(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path / "requests.jsonl", TwinIds())
    await desk.broker.start()
    return desk


@pytest.mark.parametrize(
    "text",
    ["abcd1234-1000", "abcd1234-1", "`abcd1234-1000`\n", " ``abcd1234-1`` ", "ABCD1234-1000"],
)
async def test_ap_07_an_id_is_found_however_it_was_typed(twins: Desk, text: str) -> None:
    """AP-07: whole, unique prefix, backticks, newline; a second answer learns by whom."""
    first, _ = await twins.put()
    second, _ = await twins.put()
    await twins.broker.resolve(text, Decision.DENY, "phone")
    assert (await first).by == "phone"
    assert not second.done()
    with pytest.raises(AlreadyResolved, match="already resolved by phone"):
        await twins.broker.resolve("abcd1234-1000", Decision.ALLOW_ONCE, "console")
    await twins.broker.close()
    await second


async def test_ap_07_an_ambiguous_prefix_is_refused_and_lists_both(twins: Desk) -> None:
    """AP-07: eight characters that two ids share."""
    tasks = [(await twins.put())[0] for _ in range(2)]
    with pytest.raises(AmbiguousApproval) as caught:
        await twins.broker.resolve("abcd1234", Decision.ALLOW_ONCE, "console")
    assert "abcd1234-1000" in caught.value.title
    assert "abcd1234-2000" in caught.value.title
    assert len(twins.broker.pending()) == 2
    await twins.broker.resolve("abcd1234-1", Decision.DENY, "console")
    # Only one of the two still waits, so the short form means that one.
    assert (await twins.broker.resolve("abcd1234", Decision.DENY, "x")).id == "abcd1234-2000"
    await asyncio.gather(*tasks)


@pytest.mark.parametrize("text", ["", " ", "`", "nope", "*"])
async def test_ap_07_an_unknown_id_decides_nothing(desk: Desk, text: str) -> None:
    task, record = await desk.put()
    with pytest.raises(UnknownApproval):
        await desk.broker.resolve(text, Decision.ALLOW_ONCE, "console")
    assert desk.broker.get(text) is None
    assert desk.broker.pending() == (record,)
    await desk.broker.close()
    await task


@pytest.mark.parametrize("word", ["", "y", "yes", "allow", "ALLOW-ONCE", "enter", "\n"])
def test_ap_09_only_the_exact_word_of_a_decision_is_one(word: str) -> None:
    with pytest.raises(ValueError, match="not a valid Decision"):
        Decision(word)


async def test_ap_09_a_pending_question_carries_no_preselected_answer(desk: Desk) -> None:
    """AP-09: nothing is selected beforehand."""
    task, record = await desk.put(ask("rm -rf build"))
    assert record.decision is None
    await desk.clock.advance(0.15)
    assert not task.done()
    await desk.broker.close()
    assert not (await task).allowed


async def test_ap_09_an_answer_for_one_card_never_decides_the_next(desk: Desk) -> None:
    first, one = await desk.put()
    second, _ = await desk.put()
    await desk.broker.resolve(one.id, Decision.ALLOW_ONCE, "console")
    with pytest.raises(AlreadyResolved):
        await desk.broker.resolve(one.id, Decision.ALLOW_ONCE, "console")
    assert (await first).allowed
    assert not second.done()
    await desk.broker.close()
    await second


async def test_the_card_says_what_always_would_have_matched(desk: Desk) -> None:
    for command, path in (("id", "/usr/bin/id"), ("id -u", "/usr/bin/id"), ("ls", "/usr/bin/ls")):
        task, record = await desk.put(ask(command, resolved=path))
        await desk.broker.resolve(record.id, Decision.DENY, "console")
        await task
    assert desk.broker.recent_matches(("/usr/bin/id",)) == ("id -u", "id")
    task, record = await desk.put(ask("id -g"))
    assert record.ask.always.recent_matches == ("id -u", "id")
    await desk.broker.close()
    await task


async def test_one_answer_to_several_is_one_write_and_each_has_its_own_end(desk: Desk) -> None:
    tasks = [await desk.put(ask(f"id {n}")) for n in range(4)]
    ids = [record.id for _, record in tasks]
    await desk.broker.resolve(ids[1], Decision.DENY, "cli")
    before = desk.disk.writes
    found = await desk.broker.resolve_many(
        [*ids[:3], "nope", ids[0]], Answer(Decision.ALLOW_ONCE, "console", "all of them")
    )
    assert desk.disk.writes == before + 1
    assert [type(one) for one in found] == [
        ApprovalRecord, AlreadyResolved, ApprovalRecord, UnknownApproval, AlreadyResolved,
    ]  # fmt: skip
    assert [task.done() for task, _ in tasks] == [True, True, True, False]
    assert (await tasks[1][0]).by == "cli"
    assert (await tasks[0][0]).reason == "all of them"
    assert desk.broker.pending() == (tasks[3][1],)
    await desk.broker.close()
    await tasks[3][0]


async def test_several_that_cannot_be_written_all_stay_undecided(desk: Desk) -> None:
    tasks = [await desk.put(ask(f"id {n}")) for n in range(3)]
    desk.disk.fail_next()
    found = await desk.broker.resolve_many(
        [record.id for _, record in tasks], Answer(Decision.ALLOW_ONCE, "console")
    )
    assert all(isinstance(one, JournalError) for one in found)
    assert len(desk.broker.pending()) == 3
    desk.disk.heal()
    await desk.broker.close()
    assert not any([(await task).allowed for task, _ in tasks])


async def test_several_may_wait_for_one_end_and_one_may_give_up(desk: Desk) -> None:
    record = await desk.broker.open(ask(), approval_id="Mine-1")
    waits = [asyncio.create_task(desk.broker.wait("Mine-1")) for _ in range(3)]
    await asyncio.sleep(0)
    waits[0].cancel()
    with pytest.raises(AlreadyKnown):
        await desk.broker.open(ask(), approval_id="Mine-1")
    done = await desk.broker.resolve("Mine-1", Decision.ALLOW_ONCE, "cli")
    assert await waits[1] == await waits[2] == done
    assert await desk.broker.wait(record.id) == done
    with pytest.raises(AlreadyKnown):
        await desk.broker.open(ask(), approval_id="Mine-1")
    with pytest.raises(UnknownApproval, match="expired or not found"):
        await desk.broker.wait("another")
    await asyncio.gather(*waits, return_exceptions=True)


async def test_who_withdraws_a_question_ends_it(desk: Desk) -> None:
    record = await desk.broker.open(ask())
    await desk.broker.withdraw(record.id, "the client went away")
    await desk.broker.withdraw("unknown", "x")
    found = desk.broker.get(record.id)
    assert found is not None and found.reason == "the client went away"


async def test_what_ran_is_told_to_who_shows_the_history(desk: Desk) -> None:
    task, record = await desk.put()
    await desk.broker.resolve(record.id, Decision.ALLOW_ONCE, "console")
    await task
    await desk.broker.record_ran(record.id, {"exitCode": 3})
    told = desk.events[-1]
    assert isinstance(told, ApprovalRan) and told.record.ran == {"exitCode": 3}


async def test_earlier_commands_match_a_rule_for_exact_arguments_only_with_these(
    desk: Desk,
) -> None:
    def git(verb: str) -> ApprovalAsk:
        label = f"/usr/bin/git {verb}"
        offer = AlwaysOffer((label,), arguments={label: ("/usr/bin/git", verb)}, notes=("n",))
        return replace(ask(f"git {verb}", resolved="/usr/bin/git"), always=offer)

    for verb in ("status", "log"):
        task, record = await desk.put(git(verb))
        await desk.broker.resolve(record.id, Decision.ALLOW_ONCE, "console")
        await task
    assert desk.broker.recent_matches(("/usr/bin/git status",)) == ("git status",)
    assert desk.broker.recent_matches(("/usr/bin/git",)) == ("git log", "git status")
    after = desk.restarted()
    await after.start()
    assert after.recent_matches(("/usr/bin/git log",)) == ("git log",)
    assert (await after.history(1))[0].ask == git("log")
