"""What a dead engine left half done, said truthfully in the transcript it belongs to.

An interrupted run is not repeated here: what it had begun may have had effects. Its message is
kept, its open tool calls get a result that claims nothing, and a custom entry marks the place.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

from msgspec import Struct

from claw_engine.agent.options import local_timezone
from claw_engine.agent.ports import Conversation, RunError, RunResult
from claw_engine.agent.record import (
    INTERRUPTED_ENTRY,
    RESUMED_FIELD,
    RUN_ID_FIELD,
    before_text,
    message_ids,
    stamped,
    user_message,
)
from claw_engine.agent.steering import TAKEN_FIELD
from claw_engine.errors import ClawError
from claw_engine.inbox.model import Accepted, InboundMessage, Mark
from claw_engine.inbox.ports import DispatchDeps
from claw_engine.messages import (
    AssistantMessage,
    Message,
    TextBlock,
    ToolResultMessage,
    UserMessage,
    text_of,
)
from claw_engine.protocol.names import INTERRUPTED_BY_RESTART
from claw_engine.protocol.names import LOST_CALL as LOST_CALL

log = logging.getLogger("claw.inbox")

UNANSWERED_CALL = (
    "Not run: this call still waited for the operator when the engine stopped. The request has "
    "expired; call again if it is still needed."
)
INTERRUPTED = INTERRUPTED_BY_RESTART
RUN_CHARS = 4_000_000
"""Characters at the end of a talk in which a run that was cut short is looked for."""

_ENDS = {
    "stop": Mark.DONE,
    "length": Mark.DONE,
    "error": Mark.FAILED,
    "aborted": Mark.ABORTED,
}
"""Stop reasons of a run's last message, and the mark that belongs to them."""


def written_end(own: Sequence[Message]) -> Mark | None:
    """How the run ended by what its transcript says: it may have died after writing its end.

    None means that it was cut short and nobody has said so yet.
    """
    last = own[-1] if own else None
    if not isinstance(last, AssistantMessage):
        return None
    if last.error_message == INTERRUPTED:  # by a recovery that was itself cut short
        return Mark.INTERRUPTED
    return _ENDS.get(last.stop_reason)


def messages_of_run(messages: Sequence[Message], run_id: str) -> Sequence[Message]:
    """The newest user message that stands for the run's, and what follows up to the end of the run
    that answered it; empty if absent. What entered that run half-way belongs to it.
    """
    for start in range(len(messages) - 1, -1, -1):
        message = messages[start]
        if isinstance(message, UserMessage) and run_id in _ids(message):
            lead = lead_of(message)
            end = start + 1
            while end < len(messages):
                later = messages[end]
                if isinstance(later, UserMessage) and later.extra.get(TAKEN_FIELD) != lead:
                    break
                end += 1
            return messages[start:end]
    return ()


def _ids(message: UserMessage) -> list[str]:
    return message_ids(str(message.extra.get(RUN_ID_FIELD, "")), message.extra)


def lead_of(message: UserMessage) -> str:
    """The id of the run that answered a user message."""
    return str(message.extra.get(TAKEN_FIELD) or message.extra.get(RUN_ID_FIELD) or "")


def closing(
    messages: Sequence[Message], inbound: InboundMessage, timezone: str, now_ms: int,
    unanswered: Collection[str] = (),
) -> list[Message]:  # fmt: skip
    """Messages that make the transcript of an interrupted run complete; of its calls those that
    are `unanswered` did nothing. Pure."""
    out: list[Message] = []
    own = messages_of_run(messages, inbound.id)
    if not own:
        stamp = stamped(inbound.text, inbound.received_ms, timezone)
        text = before_text(inbound.extra) + stamp
        out.append(user_message(text, inbound.received_ms, inbound.id))
    else:
        out += [
            ToolResultMessage(call_id, name, (TextBlock(words),), True, now_ms)
            for call_id, name in _open_calls(own)
            for words in [UNANSWERED_CALL if call_id in unanswered else LOST_CALL]
        ]
    out.append(
        AssistantMessage(
            (), provider="claw", stop_reason="aborted", timestamp=now_ms, error_message=INTERRUPTED
        )
    )
    return out


def _open_calls(messages: Sequence[Message]) -> list[tuple[str, str]]:
    waiting: dict[str, str] = {}
    for message in messages:
        if isinstance(message, AssistantMessage):
            waiting = {call.id: call.name for call in message.tool_calls()}
        elif isinstance(message, ToolResultMessage):
            waiting.pop(message.tool_call_id, None)
    return list(waiting.items())


async def begun(deps: DispatchDeps, messages: Sequence[Accepted]) -> tuple[Accepted, ...]:
    """Those whose user turn is in the transcript although the journal knows of no start.

    The turn and the `started` mark are written side by side; either one proves that the run began.
    To run such a message again would write it twice, and might answer it twice.
    """
    found = []
    for accepted in messages:
        try:
            conversation = await deps.sessions.transcript(accepted.message.session_key)
        except (ClawError, OSError) as error:  # the run itself will meet it and tell it
            log.error("transcript not read: runId=%s %s", accepted.id, error)
            continue
        await conversation.reach(RUN_CHARS)
        talk = [stored.message for stored in conversation.messages()]
        if messages_of_run(talk, accepted.id):
            found.append(accepted)
    return tuple(found)


class Interrupted(Struct, frozen=True):
    """How a run stands after a restart. `lead_id` is the run that was to answer the message;
    `resumed` means that it had been taken up again before."""

    result: RunResult
    lead_id: str
    resumed: bool = False


async def settle_interrupted(
    deps: DispatchDeps, inbound: InboundMessage, *, keep_open: bool = False
) -> Interrupted:
    """Make the transcript of a run that the last engine left open say what is known.

    With `keep_open` a run that was cut short stays open in the journal, for a decision. May be
    repeated: what an earlier recovery wrote is not written again. A disk that fails is logged.
    """
    mark, lead, resumed = Mark.INTERRUPTED, inbound.id, False
    own: Sequence[Message] = ()
    try:
        conversation = await deps.sessions.transcript(inbound.session_key)
        await conversation.reach(RUN_CHARS)
        messages = [stored.message for stored in conversation.messages()]
        own = messages_of_run(messages, inbound.id)
        if own and isinstance(own[0], UserMessage):
            lead = lead_of(own[0]) or inbound.id
            resumed = own[0].extra.get(RESUMED_FIELD) is True
        end = written_end(own)
        if end is None or end is Mark.INTERRUPTED:
            await _close(deps, conversation, messages, inbound, closed=end is not None)
        else:
            mark = end
        if mark is not Mark.INTERRUPTED or not keep_open:
            await deps.journal.mark(inbound.id, mark.value, "restart")
    except (ClawError, OSError) as error:
        log.error("interrupted run not recorded: runId=%s %s", inbound.id, error)
    log.warning("run recovered: runId=%s as=%s", inbound.id, mark.value)
    if mark is Mark.INTERRUPTED:
        return Interrupted(RunResult("interrupted", "restart"), lead, resumed)
    return Interrupted(_result(own[-1]), lead, resumed)


async def _close(
    deps: DispatchDeps,
    conversation: Conversation,
    messages: Sequence[Message],
    inbound: InboundMessage,
    *,
    closed: bool,
) -> None:
    now = deps.world.clock.now_ms()
    if not closed:
        zone = deps.settings().agents.defaults.user_timezone or local_timezone()
        own = messages_of_run(messages, inbound.id)
        lead = lead_of(own[0]) if own and isinstance(own[0], UserMessage) else inbound.id
        unanswered = deps.approvals.unanswered(lead or inbound.id)
        await conversation.append(*closing(messages, inbound, zone, now, unanswered))
    marked = conversation.customs(INTERRUPTED_ENTRY)
    if any(data.get("runId") == inbound.id for data in marked):
        return  # what this session's last run is, later turns have decided since
    await deps.sessions.update(
        inbound.session_key, lambda entry: entry.replace(abortedLastRun=True)
    )
    await conversation.append_custom(
        INTERRUPTED_ENTRY, {"runId": inbound.id, "timestamp": now, "source": inbound.source}
    )


def _result(last: Message) -> RunResult:
    """The result of a run whose end stands in its transcript."""
    assert isinstance(last, AssistantMessage)
    text, why = text_of(last), last.error_message
    title, _, hint = (why or "").partition("\n")
    error = RunError(title, hint) if why else None
    match _ENDS[last.stop_reason]:
        case Mark.DONE:
            return RunResult("done", last.stop_reason, text)
        case Mark.FAILED:
            return RunResult("failed", "error", text, error)
        case _:
            return RunResult("aborted", "restart", text, error)
