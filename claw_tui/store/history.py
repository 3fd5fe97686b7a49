"""Stored messages (chat.history) as the blocks a live run would have left behind. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from claw_engine.protocol.names import INTERRUPTED_BY_RESTART
from claw_tui.store.blocks import Block, BlockKind, RunInfo, ToolInfo, ToolStatus, clip_output
from claw_tui.store.live import decision_words
from claw_tui.store.turns import turn_name, turn_of, user_block
from claw_tui.store.wire import Json, flag, maybe_num, num, obj, objs, text, texts

COLLECTED = "[Queued messages while agent was busy]\n\n"
"""How the engine begins a user message that stands for several."""
SKIPPED = "Skipped: the user sent a new message before this call did anything."
"""How the result of a call begins that was never run because of newer words."""
NOT_BEGUN = ("The run was stopped before this call began", "Not run: this call still waited for")
STOPPED = ("The call was stopped before it finished", "The call was told to stop but had not")
LOST = "The engine stopped while this call was going on. Outcome unknown"
"""How the result of a call begins whose engine died under it."""
_ITEM = re.compile(r"(?:^|\n\n)---\nQueued #(\d+)\n")


def blocks_from_history(messages: Sequence[Json]) -> list[Block]:
    """Blocks in the order they happened. A run without an id in the file gets one from its
    user message, so that it groups as it did live."""
    reader = _Reader()
    for message in messages:
        reader.take(message)
    reader.finish()
    return reader.blocks


class _Reader:
    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.run: Block | None = None
        self.tools: dict[str, Block] = {}
        self.last_id = ""
        self.pending_run = ""
        self.names: dict[str, str] = {}
        """The newest turn of runs that have had several."""

    def take(self, message: Json) -> None:
        mark = obj(message.get("__claw")) or obj(message.get("__openclaw"))
        entry, run_id = text(mark, "id"), text(mark, "runId")
        ts = num(message, "timestamp")
        match text(message, "role"):
            case "user" if text(mark, "steeredInto"):
                into = text(mark, "steeredInto")
                name = self.names.get(into, into)
                self.blocks.append(user_block(name, run_id or f"h{entry}", _text_of(message), ts))
            case "user":
                self._user(message, mark, run_id or f"h{entry or len(self.blocks)}", ts)
            case "assistant":
                self._assistant(message, run_id, ts)
            case "toolResult":
                self._result(message, ts)
            case "system":
                self._end_run()
                note = Block(f"notice:{entry or len(self.blocks)}", BlockKind.NOTICE, "", ts)
                note.body.append(_text_of(message))
                self.blocks.append(note)
            case _:
                pass

    def _user(self, message: Json, mark: Json, run_id: str, ts: int) -> None:
        """A message that begins a turn; one block for each message that it stands for."""
        self._end_run()
        words = _text_of(message)
        if flag(mark, "resumed"):
            known = self.names.get(run_id, run_id)
            self.names[run_id] = turn_name(run_id, turn_of(known) + 1)
            words = words.partition("]\n\n")[2] or words  # the engine's note to the model
        self.pending_run = name = self.names.get(run_id, run_id)
        ids = texts(mark, "runIds") or (run_id,)
        parts = _parts(words, len(ids))
        for member, part in zip(ids, parts, strict=False):
            self.blocks.append(user_block(name, member, part, ts))

    def _assistant(self, message: Json, run_id: str, ts: int) -> None:
        run_id = self.names.get(run_id, run_id) or self.pending_run or f"h{len(self.blocks)}"
        if self.run is None or self.run.run_id != run_id:
            self._end_run()
            resumed = turn_of(run_id) > 0
            info = RunInfo("done", state="done", started_ms=ts, resumed=resumed)
            self.run = Block(f"run:{run_id}", BlockKind.RUN, run_id, ts, run=info)
            self.blocks.append(self.run)
        if (info_ := self.run.run) is not None:
            provider, model = text(message, "provider"), text(message, "model")
            info_.model = f"{provider}/{model}" if provider else model
            info_.is_ai = provider != "rehearsal"
            usage = obj(message.get("usage"))
            info_.tokens_in += num(usage, "input") + num(usage, "cacheRead")
            info_.tokens_out += num(usage, "output")
            info_.cached += num(usage, "cacheRead")
            info_.calls += 1
            info_.duration_ms = max(0, ts - (self._user_ts(run_id) or ts))
        content = message.get("content")
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        for item in objs(content):
            self._item(item, run_id, ts)
        self._stop(message, run_id, ts)

    def _user_ts(self, run_id: str) -> int:
        for block in reversed(self.blocks):
            if block.id == f"user:{run_id}":
                return block.ts_ms
        return 0

    def _item(self, item: Json, run_id: str, ts: int) -> None:
        name = f"{run_id}:{len(self.blocks)}"
        match text(item, "type"):
            case "text" if text(item, "text"):
                self._words(BlockKind.TEXT, name, run_id, ts, text(item, "text"))
            case "thinking" if text(item, "thinking"):
                self._words(BlockKind.REASONING, name, run_id, ts, text(item, "thinking"))
            case "toolCall":
                call = text(item, "id")
                info = ToolInfo(
                    call, text(item, "name"), dict(obj(item.get("arguments"))), ToolStatus.ABORTED
                )
                block = Block(f"tool:{call}", BlockKind.TOOL, run_id, ts, tool=info)
                self.tools[call] = block
                self.blocks.append(block)
            case _:
                pass

    def _words(self, kind: BlockKind, name: str, run_id: str, ts: int, words: str) -> None:
        block = Block(f"{kind}:{name}", kind, run_id, ts)
        block.body.append(words)
        self.blocks.append(block)

    def _result(self, message: Json, ts: int) -> None:
        call = text(message, "toolCallId")
        block = self.tools.get(call)
        if block is None:
            info = ToolInfo(call, text(message, "toolName"), {})
            block = Block(f"tool:{call}", BlockKind.TOOL, self.pending_run, ts, tool=info)
            self.blocks.append(block)
        if block.tool is not None:
            block.tool.status = _status(flag(message, "isError"), _text_of(message))
            details = obj(message.get("details"))
            # Its own time, without the operator's; nobody knows how long a lost call went on.
            took = maybe_num(details, "durationMs")
            if took is None and not _text_of(message).startswith(LOST):
                took = max(0, ts - block.ts_ms) or None
            block.tool.duration_ms = took
            if text(details, "approvalId"):
                reason = text(details, "reason")
                block.tool.decision = decision_words(
                    details.get("decision"), reason, by=text(details, "decidedBy")
                )
        block.body.replace(clip_output(_text_of(message)))

    def _stop(self, message: Json, run_id: str, ts: int) -> None:
        reason = text(message, "stopReason")
        if self.run is None or self.run.run is None or reason not in ("error", "aborted"):
            return
        why, _, hint = text(message, "errorMessage").partition("\n")
        if reason == "error" or hint:
            status, kind = "failed" if reason == "error" else "aborted", BlockKind.ERROR
            words = "\n".join(line for line in (why or "the model call failed", hint) if line)
        elif why == INTERRUPTED_BY_RESTART:
            status, kind, words = "interrupted", BlockKind.NOTICE, why
            self.run.run.duration_ms = None  # written by the engine that found it
        else:
            status, kind, words = "aborted", BlockKind.NOTICE, "stopped"
        self.run.run.status = self.run.run.state = status
        block = Block(f"end:{run_id}", kind, run_id, ts)
        block.body.append(words)
        self.blocks.append(block)

    def _end_run(self) -> None:
        self.run = None

    def finish(self) -> None:
        self._end_run()


def _text_of(message: Json) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(text(item, "text") for item in objs(content) if text(item, "type") == "text")


def _status(failed: bool, words: str) -> ToolStatus:
    """The file knows only whether a call failed; the engine's own sentences say how."""
    if not failed:
        return ToolStatus.OK
    if words.startswith((SKIPPED, *NOT_BEGUN)):
        return ToolStatus.SKIPPED
    if words.startswith((*STOPPED, LOST)):
        return ToolStatus.ABORTED
    return ToolStatus.ERROR


def _parts(words: str, count: int) -> list[str]:
    """The messages that a collected message stands for, or the whole when it cannot be told."""
    if count < 2 or not words.startswith(COLLECTED):
        return [words]
    body, start = words[len(COLLECTED) :], None
    parts: list[str] = []
    for found in _ITEM.finditer(body):
        if int(found[1]) != len(parts) + 1 + (start is not None):
            continue  # a message that quotes such a line
        if start is not None:
            parts.append(body[start : found.start()])
        elif found.start():
            return [words]  # shortened ones stand before: their words are not all there
        start = found.end()
    if start is not None:
        parts.append(body[start:])
    return parts if len(parts) == count else [words]
