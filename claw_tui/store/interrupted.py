"""Runs that a restart cut short and nobody has decided about, and what was going on in them as
far as their transcript tells. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from claw_tui.store.blocks import Block, BlockKind, ToolStatus, summarize_args
from claw_tui.store.history import LOST
from claw_tui.store.turns import run_of
from claw_tui.store.wire import Json, num, objs, text, texts


class Interrupted(Struct, frozen=True):
    run_id: str
    session: str
    text: str
    source: str
    received_ms: int
    since_ms: int
    messages: int


class Step(Struct, frozen=True):
    """A tool call of an interrupted run."""

    name: str
    words: str
    unknown: bool
    """The engine died under it: it may have happened, in part or not at all."""
    failed: bool = False


def interrupted_from(payload: Json) -> list[Interrupted]:
    """The rows of `runs.interrupted`, oldest first."""
    return [
        Interrupted(
            text(raw, "runId"),
            text(raw, "sessionKey"),
            text(raw, "text"),
            text(raw, "source"),
            num(raw, "receivedAtMs"),
            num(raw, "interruptedAtMs"),
            max(1, len(texts(raw, "messages"))),
        )
        for raw in objs(payload.get("runs"))
        if text(raw, "runId")
    ]


def steps_of(run: Interrupted, blocks: Iterable[Block]) -> list[Step]:
    """The calls of the run's newest turn, in order."""
    own = [block for block in blocks if run_of(block.run_id) == run.run_id]
    newest = own[-1].run_id if own else ""
    return [
        Step(
            block.tool.name,
            summarize_args(block.tool.args),
            block.text.startswith(LOST),
            block.tool.status is ToolStatus.ERROR,
        )
        for block in own
        if block.kind is BlockKind.TOOL and block.tool is not None and block.run_id == newest
    ]


def said_last(run: Interrupted, blocks: Sequence[Block]) -> str:
    """The model's last words before the end, or nothing."""
    for block in reversed(blocks):
        if run_of(block.run_id) == run.run_id and block.kind is BlockKind.TEXT:
            return block.text.strip()
    return ""


def unknown(steps: Iterable[Step]) -> list[Step]:
    """Calls of which nobody knows whether they happened."""
    return [step for step in steps if step.unknown]
