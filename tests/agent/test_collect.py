"""An answer put together from its events."""

from __future__ import annotations

from claw_engine.agent.collect import Collector
from claw_engine.messages import ThinkingBlock
from claw_engine.models.base import ReasoningDelta


def test_a_thought_keeps_the_wire_field_that_openclaw_would_replay_it_under() -> None:
    named, unnamed = Collector(), Collector()
    for delta in (ReasoningDelta("Let ", "reasoning_content"), ReasoningDelta("me.")):
        named.take(delta)
    unnamed.take(ReasoningDelta("Inside <think> tags."))
    assert named.blocks() == (ThinkingBlock("Let me.", "reasoning_content"),)
    assert unnamed.blocks() == (ThinkingBlock("Inside <think> tags.", None),)
