"""What a run writes into its session's transcript, and how user text is stamped.

Writes go out in order; a write that has begun is never cancelled, an abort only stops waiting.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, tzinfo
from functools import lru_cache

from msgspec.structs import replace

from claw_engine.agent.context.hygiene import turn_of
from claw_engine.agent.ports import Conversation
from claw_engine.agent.prompt.facts import INBOUND_FIELD
from claw_engine.agent.steering import TAKEN_FIELD
from claw_engine.messages import (
    AssistantMessage,
    Block,
    Message,
    TextBlock,
    Usage,
    UserMessage,
)
from claw_engine.models.base import ModelRef, Turn
from claw_engine.world import Clock

INTERRUPTED_ENTRY = "claw:interrupted"
RUN_ID_FIELD = "runId"
"""Extra field of our user messages: which run they belong to."""
RUN_IDS_FIELD = "runIds"
"""Extra field of a user message that stands for several: the ids of all of them."""
RESUMED_FIELD = "resumed"
"""Extra field of a message that takes an interrupted run up again."""

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def stamped(text: str, received_ms: int, timezone: str) -> str:
    """`[Mon 2026-11-30 08:46 UTC] text`, in the user's time zone (wire facts §4)."""
    at = datetime.fromtimestamp(received_ms / 1000, zone(timezone))
    name = at.tzname() or timezone
    date = f"{at.year:04d}-{at.month:02d}-{at.day:02d} {at.hour:02d}:{at.minute:02d}"
    return f"[{_DAYS[at.weekday()]} {date} {name}] {text}"


def before_text(extra: Mapping[str, object]) -> str:
    """What its channel tells of a message, to stand before its stamped text; mostly ""."""
    if INBOUND_FIELD not in extra:
        return ""
    from claw_engine.agent.prompt import inbound  # only channels tell

    return inbound.before_text(extra)


@lru_cache(maxsize=32)
def zone(name: str) -> tzinfo:
    """The named IANA zone; an unknown name means UTC."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # off the start path

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo("UTC")


def user_message(
    text: str, now_ms: int, run_id: str, extra: Mapping[str, object] | None = None
) -> UserMessage:
    """The message a run answers; of `extra` only what the transcript should know is kept."""
    kept = {k: extra[k] for k in (RUN_IDS_FIELD, RESUMED_FIELD) if extra and k in extra}
    return UserMessage((TextBlock(text),), now_ms, {RUN_ID_FIELD: run_id, **kept})


def steered_message(text: str, now_ms: int, run_id: str, into: str) -> UserMessage:
    """A message that entered the run `into` half-way; `run_id` "" means it is queued as well."""
    own: dict[str, object] = {RUN_ID_FIELD: run_id} if run_id else {}
    return UserMessage((TextBlock(text),), now_ms, {**own, TAKEN_FIELD: into})


def message_ids(run_id: str, extra: Mapping[str, object]) -> list[str]:
    """Ids of all messages that a run answers, its own included."""
    ids = extra.get(RUN_IDS_FIELD)
    return [str(id_) for id_ in ids] if isinstance(ids, list | tuple) and ids else [run_id]


class Recorder:
    """The transcript of one run. All methods raise what the sessions room raises."""

    def __init__(self, conversation: Conversation, ref: ModelRef | None, clock: Clock) -> None:
        self._conversation = conversation
        self.ref = ref
        self._clock = clock

    @property
    def whole(self) -> bool:
        """Whether the run was shown the talk from its beginning on."""
        return self._conversation.whole

    def begin(self, message: UserMessage) -> None:
        """Write the user's message without waiting; it is in the inbox journal already."""
        self._conversation.append_soon(message)

    async def add(self, *messages: Message) -> list[Turn]:
        """Write messages; returns them as turns, the same that a later run will read back."""
        ids = await self._conversation.append(*messages)
        turns = (turn_of(id_, m) for id_, m in zip(ids, messages, strict=True))
        return [turn for turn in turns if turn is not None]

    def assistant(
        self,
        content: tuple[Block, ...],
        stop_reason: str,
        usage: Usage | None = None,
        error: str | None = None,
        hint: str = "",
    ) -> AssistantMessage:
        """An assistant message of this run's model, stamped now; `hint` is how to mend `error`.

        OpenClaw has one text for both: a line for each.
        """
        ref = self.ref
        if usage is not None and ref is not None and ref.cost is not None:
            from claw_engine.usage.price import costs_of  # with the first answer

            usage = replace(usage, cost=costs_of(usage, ref.cost))
        return AssistantMessage(
            content,
            ref.api if ref else "",
            ref.provider if ref else "claw",
            ref.id if ref else "",
            usage or Usage(),
            stop_reason,
            self._clock.now_ms(),
            f"{error}\n{hint}" if error and hint else error,
        )
