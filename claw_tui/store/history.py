"""Stored messages (chat.history) as the blocks a live run would have left behind. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from claw_engine.protocol.names import INTERRUPTED_BY_RESTART
from claw_tui.store.blocks import Block, BlockKind, RunInfo, ToolInfo, ToolStatus, clip_output
from claw_tui.store.wire import Json, flag, num, obj, objs, text


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

    def take(self, message: Json) -> None:
        mark = obj(message.get("__claw")) or obj(message.get("__openclaw"))
        entry, run_id = text(mark, "id"), text(mark, "runId")
        ts = num(message, "timestamp")
        match text(message, "role"):
            case "user":
                self._end_run()
                run_id = run_id or f"h{entry or len(self.blocks)}"
                self.pending_run = run_id
                block = Block(f"user:{run_id}", BlockKind.USER, run_id, ts)
                block.body.append(_text_of(message))
                self.blocks.append(block)
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

    def _assistant(self, message: Json, run_id: str, ts: int) -> None:
        run_id = run_id or self.pending_run or f"h{len(self.blocks)}"
        if self.run is None or self.run.run_id != run_id:
            self._end_run()
            info = RunInfo("done", state="done", started_ms=ts)
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
            if block.kind is BlockKind.USER and block.run_id == run_id:
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
            failed = flag(message, "isError")
            block.tool.status = ToolStatus.ERROR if failed else ToolStatus.OK
            block.tool.duration_ms = max(0, ts - block.ts_ms) or None
        block.body.replace(clip_output(_text_of(message)))

    def _stop(self, message: Json, run_id: str, ts: int) -> None:
        reason = text(message, "stopReason")
        if self.run is None or self.run.run is None or reason not in ("error", "aborted"):
            return
        why = text(message, "errorMessage")
        if reason == "error":
            status, kind, words = "failed", BlockKind.ERROR, why or "the model call failed"
        elif why == INTERRUPTED_BY_RESTART:
            status, kind, words = "interrupted", BlockKind.NOTICE, why
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
