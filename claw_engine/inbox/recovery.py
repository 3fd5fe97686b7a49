"""What a dead engine left half done, said truthfully in the transcript it belongs to.

An interrupted run is not repeated: what it had begun may have had effects. Its message is kept,
its open tool calls get a result that claims nothing, and a custom entry marks the place.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from claw_engine.agent.options import local_timezone
from claw_engine.agent.ports import RunResult
from claw_engine.agent.record import INTERRUPTED_ENTRY, RUN_ID_FIELD, stamped, user_message
from claw_engine.errors import ClawError
from claw_engine.inbox.model import InboundMessage, Mark
from claw_engine.inbox.ports import DispatchDeps
from claw_engine.messages import (
    AssistantMessage,
    Message,
    TextBlock,
    ToolResultMessage,
    UserMessage,
    text_of,
)

log = logging.getLogger("claw.inbox")

LOST_CALL = "The engine stopped while this call was going on. Its effect is unknown."
INTERRUPTED = "Interrupted: the engine stopped during this run. It was not repeated."

ANSWERED = frozenset({"stop", "length"})


def was_answered(messages: Sequence[Message], run_id: str) -> bool:
    """Whether the run's final answer is in the transcript after all (it died after writing it)."""
    after = messages_of_run(messages, run_id)
    last = after[-1] if after else None
    return isinstance(last, AssistantMessage) and last.stop_reason in ANSWERED


def messages_of_run(messages: Sequence[Message], run_id: str) -> Sequence[Message]:
    """The run's user message and what follows up to the next user message; empty if absent."""
    for start, message in enumerate(messages):
        if isinstance(message, UserMessage) and message.extra.get(RUN_ID_FIELD) == run_id:
            end = start + 1
            while end < len(messages) and not isinstance(messages[end], UserMessage):
                end += 1
            return messages[start:end]
    return ()


def closing(
    messages: Sequence[Message], inbound: InboundMessage, timezone: str, now_ms: int
) -> list[Message]:
    """Messages that make the transcript of an interrupted run complete. Pure."""
    out: list[Message] = []
    own = messages_of_run(messages, inbound.id)
    if not own:
        text = stamped(inbound.text, inbound.received_ms, timezone)
        out.append(user_message(text, inbound.received_ms, inbound.id))
    else:
        out += [
            ToolResultMessage(call_id, name, (TextBlock(LOST_CALL),), True, now_ms)
            for call_id, name in _open_calls(own)
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


async def mark_interrupted(deps: DispatchDeps, inbound: InboundMessage) -> RunResult:
    """Settle a run that the last engine left open; a disk that fails is logged, not raised."""
    mark, result = Mark.INTERRUPTED, RunResult("interrupted", "restart")
    now = deps.world.clock.now_ms()
    try:
        conversation = await deps.sessions.transcript(inbound.session_key)
        messages = [stored.message for stored in conversation.messages()]
        if was_answered(messages, inbound.id):
            mark, result = Mark.DONE, RunResult("done", "stop", text_of(messages[-1]))
        else:
            zone = deps.settings().agents.defaults.user_timezone or local_timezone()
            await conversation.append(*closing(messages, inbound, zone, now))
            await conversation.append_custom(
                INTERRUPTED_ENTRY,
                {"runId": inbound.id, "timestamp": now, "source": inbound.source},
            )
            await deps.sessions.update(
                inbound.session_key, lambda entry: entry.replace(abortedLastRun=True)
            )
        await deps.journal.mark(inbound.id, mark.value, "restart")
    except (ClawError, OSError) as error:
        log.error("interrupted run not recorded: runId=%s %s", inbound.id, error)
    log.warning("run recovered: runId=%s as=%s", inbound.id, mark.value)
    return result
