"""Runs: states, the one way to stop, and what is told about it."""

from __future__ import annotations

import pytest

from claw_engine.events import Event
from claw_engine.runs import AbortReason, RunAborted, Runs, RunState, RunStateChanged
from tests.support.fakes import FakeClock


def make() -> tuple[Runs, list[Event]]:
    events: list[Event] = []
    return Runs(FakeClock(), events.append), events


def test_state_changes_are_told_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "claw.runs")
    runs, events = make()
    run = runs.create("r", session_key="s", agent_id="main", lane="main", settings=None)
    runs.set_state(run, RunState.BUILDING, "run_started")
    assert isinstance(events[0], RunStateChanged)
    assert (events[0].prev, events[0].new) == (RunState.QUEUED, RunState.BUILDING)
    assert "session state: sessionKey=s runId=r prev=queued new=building reason=run_started" in (
        caplog.text
    )


def test_an_ended_run_is_gone_and_keeps_its_end() -> None:
    runs, events = make()
    run = runs.create("r", session_key="s", agent_id="main", lane="main", settings=None)
    runs.set_state(run, RunState.ABORTED, "user")
    runs.set_state(run, RunState.DONE, "late")
    assert run.state is RunState.ABORTED
    assert runs.get("r") is None
    assert len(events) == 1


def test_the_first_abort_reason_stays_and_cancels_once() -> None:
    runs, _ = make()
    run = runs.create("r", session_key="s", agent_id="main", lane="main", settings=None)
    calls: list[int] = []
    run.cancel = lambda: calls.append(1)
    assert runs.abort("r", AbortReason.USER)
    assert not runs.abort("r", AbortReason.SHUTDOWN)
    assert (run.scope.reason, calls) == (AbortReason.USER, [1])
    with pytest.raises(RunAborted):
        run.scope.check()
    assert not runs.abort("nobody", AbortReason.USER)


def test_one_id_is_one_run() -> None:
    runs, _ = make()
    runs.create("r", session_key="s", agent_id="main", lane="main", settings=None)
    with pytest.raises(ValueError, match="exists"):
        runs.create("r", session_key="s", agent_id="main", lane="main", settings=None)
