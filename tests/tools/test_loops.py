"""The loop detector: thresholds, order of checks, what blocks and what is only told."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from claw_engine.config.sections.toolpolicy import LoopDetectors, LoopSettings
from claw_engine.tools.base import ToolResult
from claw_engine.tools.loops import Finding, LoopGuard, LoopRules, is_poll, rules_of, signature

ON = LoopRules(enabled=True, history=100)
A: Mapping[str, object] = {"path": "a"}
B: Mapping[str, object] = {"path": "b"}
POLL: Mapping[str, object] = {"action": "poll", "sessionId": "x"}


class Talk:
    """One session's calls; each is made unless it is blocked."""

    def __init__(self, rules: LoopRules = ON) -> None:
        self.guard = LoopGuard()
        self.rules = rules
        self.count = 0

    def call(
        self, tool: str, args: Mapping[str, object], result: ToolResult | None = None
    ) -> Finding | None:
        self.count += 1
        id_ = f"c{self.count}"
        found = self.guard.before("s", self.rules, tool, args, id_)
        if found is None or not found.blocks:
            self.guard.after("s", tool, args, id_, result or ToolResult("same"))
        return found

    def run(
        self, times: int, tool: str, args: Mapping[str, object], *, news: bool = False
    ) -> dict[int, tuple[str, bool]]:
        """What was found, by the number of the call."""
        out: dict[int, tuple[str, bool]] = {}
        for n in range(1, times + 1):
            found = self.call(tool, args, ToolResult(str(n)) if news else None)
            if found is not None:
                out[n] = (found.detector, found.blocks)
        return out


def test_the_same_call_is_told_at_ten_and_twenty_and_blocked_at_thirty() -> None:
    found = Talk().run(33, "read", A)
    assert found == {
        11: ("generic_repeat", False),
        21: ("generic_repeat", False),
        31: ("global_circuit_breaker", True),
        32: ("global_circuit_breaker", True),
        33: ("global_circuit_breaker", True),
    }


def test_the_same_call_with_new_results_is_only_told() -> None:
    found = Talk().run(60, "read", A, news=True)
    assert {blocks for _, blocks in found.values()} == {False}
    assert list(found) == [11, 21, 31, 41, 51]


def test_polling_without_progress_is_told_at_ten_and_blocked_at_twenty() -> None:
    found = Talk().run(22, "process", POLL)
    assert found == {
        11: ("known_poll_no_progress", False),
        21: ("known_poll_no_progress", True),
        22: ("known_poll_no_progress", True),
    }


def test_polling_with_progress_is_no_loop() -> None:
    assert Talk().run(80, "process", POLL, news=True) == {}


def test_a_poll_that_only_suggests_to_wait_longer_made_no_progress() -> None:
    talk = Talk()
    found = [
        talk.call(
            "process", POLL,
            ToolResult(f"(no new output)\n\nRunning. Look again in {n} s.",
                       details={"status": "running", "retryInMs": n * 1000}),
        )
        for n in range(21)
    ]  # fmt: skip
    assert found[10] is not None
    assert found[20] is not None
    assert found[20].blocks


@pytest.mark.parametrize("stuck", [True, False])
def test_two_calls_that_take_turns(stuck: bool) -> None:
    talk = Talk()
    found: dict[int, tuple[str, bool]] = {}
    for n in range(1, 25):
        result = ToolResult("same" if stuck else str(n))
        one = talk.call("read", A if n % 2 else B, result)
        if one is not None:
            found[n] = (one.detector, one.blocks)
    if stuck:
        assert found[10] == ("ping_pong", False)
        assert next(n for n, (_, blocks) in found.items() if blocks) == 20
        assert found[20] == ("ping_pong", True)
    else:
        assert found[10] == ("ping_pong", False)
        assert not any(blocks for _, blocks in found.values())


def test_a_blocked_call_stays_blocked_until_something_else_is_done() -> None:
    talk = Talk()
    talk.run(30, "read", A)
    assert (talk.call("read", A) or pytest.fail("not found")).blocks
    for n in range(100):
        talk.call("write", {"n": n})
    assert talk.call("read", A) is None


def test_other_sessions_and_other_arguments_do_not_count() -> None:
    talk = Talk()
    talk.run(40, "read", A)
    assert talk.call("read", B) is None
    assert talk.guard.before("other", ON, "read", A, "x") is None


def test_off_means_off() -> None:
    talk = Talk(LoopRules(enabled=False))
    assert talk.run(100, "read", A) == {}


@pytest.mark.parametrize("name", ["generic_repeat", "poll", "ping_pong"])
def test_a_detector_can_be_switched_off(name: str) -> None:
    rules = replace(ON, **{name: False})
    if name == "poll":
        assert not any(b for _, b in Talk(rules).run(29, "process", POLL).values())
    elif name == "generic_repeat":
        assert Talk(rules).run(30, "read", A) == {}
    else:
        talk = Talk(rules)
        found = [talk.call("read", A if n % 2 else B) for n in range(19)]
        assert found == [None] * 19


def test_times_in_details_do_not_hide_a_loop() -> None:
    talk = Talk()
    found = [
        talk.call("exec", {"command": "ls"},
                  ToolResult("a", details={"exitCode": 0, "durationMs": n}))
        for n in range(31)
    ]  # fmt: skip
    assert found[30] is not None
    assert found[30].detector == "global_circuit_breaker"


def test_errors_count_by_their_message() -> None:
    talk = Talk()
    for _ in range(30):
        talk.call("exec", A, ToolResult("no", is_error=True))
    found = talk.call("exec", A)
    assert found is not None
    assert found.blocks


def test_the_defaults_are_off_and_the_agent_overrides_the_engine() -> None:
    assert rules_of(LoopSettings()) == LoopRules()
    shared = LoopSettings(enabled=True, history_size=50, warning_threshold=5)
    own = LoopSettings(warning_threshold=3, detectors=LoopDetectors(ping_pong=False))
    assert rules_of(shared, own) == LoopRules(
        enabled=True, history=50, warning=3, critical=20, breaker=30, ping_pong=False
    )


def test_thresholds_are_made_ascending() -> None:
    rules = rules_of(
        LoopSettings(warning_threshold=40, critical_threshold=2, global_circuit_breaker_threshold=1)
    )
    assert (rules.warning, rules.critical, rules.breaker) == (40, 41, 42)


def test_a_signature_does_not_depend_on_the_order_of_arguments() -> None:
    assert signature("t", {"a": 1, "b": 2}) == signature("t", {"b": 2, "a": 1})
    assert signature("t", {"a": 1}) != signature("u", {"a": 1})
    assert is_poll("process", {"action": "log"})
    assert is_poll("command_status", {})
    assert not is_poll("process", {"action": "kill"})


def test_many_sessions_cost_a_bounded_amount() -> None:
    guard = LoopGuard()
    for n in range(1000):
        guard.before(f"s{n}", ON, "read", A, "c")
    assert len(guard._sessions) == 256  # the bound is the point of this test
