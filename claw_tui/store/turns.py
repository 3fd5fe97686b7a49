"""Names and waiting of turns: one message, one run id, but a run that a restart cut short and
that is taken up again stands in the conversation twice. Pure."""

from __future__ import annotations

from msgspec import Struct

from claw_tui.store.blocks import Block, BlockKind
from claw_tui.store.wire import Json, num, text, texts


def turn_name(run_id: str, turn: int) -> str:
    """The name under which the blocks of a run's first (0), second (1) … turn stand.

    Run ids are visible ASCII, so a space cannot be part of one.
    """
    return f"{run_id} {turn}" if turn else run_id


def run_of(name: str) -> str:
    return name.partition(" ")[0]


def turn_of(name: str) -> int:
    return int(name.partition(" ")[2] or 0)


def user_block(name: str, member: str, words: str, ts: int, source: str = "") -> Block:
    """What a person said in the turn `name`; `member` is the message's own run id."""
    own = f"user:{name}" if member == run_of(name) else f"user:{name}+{member}"
    block = Block(own, BlockKind.USER, name, ts, source=source)
    block.body.append(words)
    return block


class Queued(Struct):
    """A message that is accepted but not yet dispatched; shown apart from the transcript."""

    run_id: str
    message: str
    source: str
    ts_ms: int
    behind: int = 0
    """How many runs and messages went before it when it came."""
    host: str = ""
    """The run it was offered to, while that run has not taken it."""
    note: str = ""
    """The newest thing the engine said about its waiting."""
    begun: bool = False
    """Whether its run has its place and is being built: it waits no more."""
    lead: str = ""
    """The run that will answer it, once that is settled."""

    @property
    def waits(self) -> bool:
        """Whether a person should see it apart: not in the moment between sent and begun."""
        return bool(self.message and not self.begun and (self.behind or self.note))


def queued_from(run_id: str, ts: int, data: Json) -> Queued:
    """A message from the data of `run.queued`."""
    ahead = data.get("waitingBehind")
    return Queued(
        run_id,
        text(data, "message"),
        text(data, "source"),
        ts,
        len(texts(data, "waitingBehind"))
        if isinstance(ahead, list)
        else num(data, "waitingBehind"),
        text(data, "steeredInto"),
    )
