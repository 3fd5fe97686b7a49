"""Neighbours of one stream that say one thing become one event. Pure.

What arrived in one read of a socket is seen at the same moment anyway: told as one event, it costs
its followers one step and not one a token.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from claw_engine.models.base import ModelEvent, ReasoningDelta, TextDelta, ToolCallDelta


def merged(events: Iterable[ModelEvent]) -> Iterator[ModelEvent]:
    """The same events in the same order, deltas of one kind and owner joined."""
    run: list[ModelEvent] = []
    for event in events:
        if run and not _belongs(run[-1], event):
            yield _joined(run)
            run = []
        run.append(event)
    if run:
        yield _joined(run)


def _belongs(last: ModelEvent, event: ModelEvent) -> bool:
    match last, event:
        case TextDelta(), TextDelta():
            return True
        case ReasoningDelta(name=name), ReasoningDelta(name=other):
            return name == other
        case ToolCallDelta(index=index), ToolCallDelta(index=other):
            return index == other
    return False


def _joined(run: list[ModelEvent]) -> ModelEvent:
    first = run[0]
    if len(run) == 1:
        return first
    match first:
        case TextDelta():
            return TextDelta("".join(e.text for e in run if isinstance(e, TextDelta)))
        case ReasoningDelta(name=name):
            text = "".join(e.text for e in run if isinstance(e, ReasoningDelta))
            return ReasoningDelta(text, name)
        case ToolCallDelta(index=index):
            arguments = "".join(e.arguments for e in run if isinstance(e, ToolCallDelta))
            return ToolCallDelta(index, arguments)
    raise AssertionError("only deltas are joined")
