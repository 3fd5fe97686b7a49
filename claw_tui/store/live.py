"""One session's live trace events as blocks.

Blocks stand under the name of their turn (`turns.py`): a message that another run answers stands
in that run's turn, and a run that was taken up again after a restart has a second turn."""

from __future__ import annotations

from msgspec import Struct, field

from claw_engine.protocol.names import INTERRUPTED_BY_RESTART
from claw_tui.store.blocks import (
    LIVE_CLIP,
    Block,
    BlockKind,
    RunInfo,
    ToolInfo,
    ToolStatus,
    clip_output,
)
from claw_tui.store.turns import Queued, queued_from, run_of, turn_name, turn_of, user_block
from claw_tui.store.wire import Json, flag, maybe_num, num, obj, text, texts

BY_GRANT = "grant"
"""Who decided where a standing grant did."""
DECISIONS = {
    "allow-once": "allowed once",
    "allow-always": "allowed always",
    "deny": "denied",
}


class Live(Struct):
    """What is happening, event by event."""

    key: str
    blocks: list[Block] = field(default_factory=list)
    queued: dict[str, Queued] = field(default_factory=dict)
    runs: dict[str, Block] = field(default_factory=dict)
    tools: dict[str, Block] = field(default_factory=dict)
    tails: dict[str, Block] = field(default_factory=dict)
    """The open reasoning or text block of each run."""
    seqs: dict[str, int] = field(default_factory=dict)
    heard: dict[str, int] = field(default_factory=dict)
    """When the newest event of each run happened, ms."""
    names: dict[str, str] = field(default_factory=dict)
    """The newest turn of each run that has had several."""
    answered: dict[str, str] = field(default_factory=dict)
    """Messages that another run answers, and that run: they have no header of their own."""
    # ── live ────────────────────────────────────────────────────────────────────────────────

    def apply(self, run_id: str, seq: int, ts: int, kind: str, data: Json) -> bool:
        """Take one trace event; False when it was already known. O(1) in the text so far."""
        if kind == "run.queued":
            self._begin_anew(run_id, ts)
        if seq <= self.seqs.get(run_id, 0):
            return False
        self.seqs[run_id], self.heard[run_id] = seq, ts
        if kind == "run.queued":
            self.queued[run_id] = queued_from(run_id, ts, data)
        elif kind == "run.started" and text(data, "answeredBy"):
            self._answered(run_id, text(data, "answeredBy"), ts, data)
        elif run_id in self.answered:
            pass  # what happens is told by the run that answers it
        elif run_id in self.queued and kind in ("run.state", "notice"):
            self._while_waiting(self.queued[run_id], kind, ts, data)
        else:
            self._step(self.names.get(run_id, run_id), ts, kind, data)
        return True

    def _step(self, run_id: str, ts: int, kind: str, data: Json) -> None:
        match kind:
            case "run.started":
                self._run_started(run_id, ts, data)
            case "run.state":
                run = self._run(run_id, ts)
                if run.run is not None:
                    run.run.state = text(data, "new")
                    run.run.note = text(data, "reason")
                run.touch()
            case "call.started":
                self._call_started(run_id, ts, data)
            case "reasoning":
                self._delta(run_id, ts, BlockKind.REASONING, data)
            case "text":
                self._delta(run_id, ts, BlockKind.TEXT, data)
            case "call.ended":
                self._call_ended(run_id, ts, data)
            case "tool.started":
                self._tool_started(run_id, ts, data)
            case "tool.waiting" | "tool.decided" | "tool.output" | "tool.ended":
                self._tool_event(run_id, ts, kind, data)
            case "retry":
                delay = num(data, "delayMs") / 1000
                self._note(
                    run_id,
                    ts,
                    f"retry {num(data, 'attempt')} in {delay:.1f} s: {text(data, 'reason')}",
                )
            case "notice":
                self._note(run_id, ts, text(data, "text"))
            case "run.ended":
                self._run_ended(run_id, ts, data)
            case _:
                pass

    def _add(self, block: Block) -> Block:
        self.blocks.append(block)
        return block

    def _run(self, run_id: str, ts: int) -> Block:
        """The run's header; made on the spot when its start was not seen."""
        known = self.runs.get(run_id)
        if known is not None:
            return known
        info = RunInfo(started_ms=ts, resumed=turn_of(run_id) > 0)
        block = self._add(Block(f"run:{run_id}", BlockKind.RUN, run_id, ts, run=info))
        self.runs[run_id] = block
        return block

    # ── from waiting to a turn ──────────────────────────────────────────────────────────────

    def _begin_anew(self, run_id: str, ts: int) -> None:
        """A run that had ended and is queued again: its next turn, numbered from the start."""
        name = self.names.get(run_id, run_id)
        header = self.runs.get(name)
        last = self.heard.get(run_id, header.ts_ms if header is not None else ts)
        if ts <= last:
            return
        self.seqs.pop(run_id, None)
        self.answered.pop(run_id, None)
        if header is not None and header.run is not None and header.run.status != "running":
            self.names[run_id] = turn_name(run_id, turn_of(name) + 1)

    def _while_waiting(self, queued: Queued, kind: str, ts: int, data: Json) -> None:
        if kind == "run.state":
            queued.begun |= text(data, "new") not in ("queued", "aborted")
            return
        host = self.runs.get(self.names.get(queued.host, queued.host))
        if text(data, "level") == "info" and host is not None and host.open_run:
            # Told to the run that goes on, and still in the queue: it is said twice.
            said = user_block(host.run_id, queued.run_id, queued.message, queued.ts_ms)
            self._insert(said, host.run_id, ts)
            queued.host = ""
        queued.note = text(data, "text")

    def _dispatch(self, name: str, run_id: str, before: Block | None = None) -> None:
        """A waiting message enters the conversation, in the turn `name`, before its header."""
        queued = self.queued.pop(run_id, None)
        if queued is None or not queued.message:
            return
        said = user_block(name, run_id, queued.message, queued.ts_ms, queued.source)
        if before is None:
            self._add(said)
        else:
            self.blocks.insert(self.blocks.index(before), said)

    def _insert(self, said: Block, name: str, ts: int) -> None:
        """Put what was said at `ts` into the turn `name`, after what was there by then."""
        self._close_tail(name, ts)
        at = len(self.blocks)
        while at and (last := self.blocks[at - 1]).run_id == name and last.run is None:
            if last.ts_ms <= ts:
                break
            at -= 1
        self.blocks.insert(at, said)

    def _answered(self, run_id: str, lead: str, ts: int, data: Json) -> None:
        """Another run answers this message: from its start, or from here on."""
        self.answered[run_id] = lead
        name = self.names.get(lead, lead)
        queued, header = self.queued.get(run_id), self.runs.get(name)
        if queued is None:
            return
        if text(data, "cause") == "steered":
            del self.queued[run_id]
            said = user_block(name, run_id, queued.message, queued.ts_ms, queued.source)
            self._insert(said, name, ts)
        elif header is not None and lead not in self.queued:
            self._dispatch(name, run_id, header)
        else:
            queued.lead, queued.begun = lead, True  # enters with the run that answers it

    def _enter(self, name: str, members: tuple[str, ...]) -> None:
        """All messages of a turn that begins, its own first."""
        run_id = run_of(name)
        joined = [q.run_id for q in self.queued.values() if q.lead == run_id]
        header = self.runs.get(name)
        for member in dict.fromkeys((run_id, *members, *joined)):
            self._dispatch(name, member, header)

    def _run_started(self, run_id: str, ts: int, data: Json) -> None:
        self._enter(run_id, texts(data, "messages"))
        block = self._run(run_id, ts)
        info = block.run
        if info is not None:
            info.started_ms = ts
            info.model = text(data, "model")
            info.is_ai = flag(data, "isAI", True)
            info.resumed = info.resumed or text(data, "cause") == "resume"
        block.touch()

    def _call_started(self, run_id: str, ts: int, data: Json) -> None:
        block = self._run(run_id, ts)
        if block.run is not None:
            block.run.calls += 1
            block.run.context_tokens = num(data, "tokens")
        self._close_tail(run_id, ts)
        block.touch()

    def _delta(self, run_id: str, ts: int, kind: BlockKind, data: Json) -> None:
        call = text(data, "callId")
        tail = self.tails.get(run_id)
        if tail is None or tail.kind is not kind or tail.source != call:
            self._close_tail(run_id, ts)
            self._run(run_id, ts)
            name = f"{kind}:{run_id}:{call}:{len(self.blocks)}"
            tail = self._add(Block(name, kind, run_id, ts, open=True, source=call))
            self.tails[run_id] = tail
        tail.body.append(text(data, "delta"))
        tail.touch()

    def _close_tail(self, run_id: str, ts: int) -> None:
        tail = self.tails.pop(run_id, None)
        if tail is not None:
            tail.open = False
            tail.duration_ms = max(0, ts - tail.ts_ms)
            tail.touch()

    def _call_ended(self, run_id: str, ts: int, data: Json) -> None:
        self._close_tail(run_id, ts)
        block = self._run(run_id, ts)
        usage = obj(data.get("usage"))
        if block.run is not None and usage:
            block.run.tokens_in += num(usage, "input") + num(usage, "cacheRead")
            block.run.tokens_out += num(usage, "output")
            block.run.cached += num(usage, "cacheRead")
            block.run.context_tokens = num(usage, "total") or block.run.context_tokens
        block.touch()

    def _tool_started(self, run_id: str, ts: int, data: Json) -> None:
        self._close_tail(run_id, ts)
        self._run(run_id, ts)
        call_id = text(data, "toolCallId")
        info = ToolInfo(call_id, text(data, "name"), dict(obj(data.get("args"))))
        block = Block(f"tool:{call_id}", BlockKind.TOOL, run_id, ts, open=True, tool=info)
        self.tools[call_id] = self._add(block)

    def _tool_event(self, run_id: str, ts: int, kind: str, data: Json) -> None:
        call_id = text(data, "toolCallId")
        block = self.tools.get(call_id)
        if block is None:
            self._tool_started(run_id, ts, {**data, "name": text(data, "name", "tool")})
            block = self.tools[call_id]
        tool = block.tool
        if tool is None:
            return
        match kind:
            case "tool.waiting":
                tool.status = ToolStatus.WAITING
                tool.approval_id = text(data, "approvalId")
                tool.expires_at_ms = num(data, "expiresAtMs")
            case "tool.decided":
                tool.status = ToolStatus.RUNNING
                tool.decision = decision_words(
                    data.get("decision"), text(data, "reason"), by=text(data, "by")
                )
            case "tool.output":
                block.body.append(text(data, "delta"))
                block.body.keep_tail(LIVE_CLIP)
            case _:
                block.open = False
                tool.name = text(data, "name") or tool.name
                tool.status = _tool_status(text(data, "status"))
                tool.exit_code = maybe_num(data, "exitCode")
                tool.duration_ms = maybe_num(data, "durationMs")
                if "decision" in data and not tool.decision:
                    tool.decision = decision_words(data.get("decision"), "", asked=False)
                block.body.replace(clip_output(text(data, "text")))
        block.touch()

    def _note(self, run_id: str, ts: int, words: str) -> None:
        self._close_tail(run_id, ts)
        name = f"notice:{run_id}:{len(self.blocks)}"
        note = self._add(Block(name, BlockKind.NOTICE, run_id, ts))
        note.body.append(words)

    def _run_ended(self, run_id: str, ts: int, data: Json) -> None:
        self._close_tail(run_id, ts)
        waited = self.queued.get(run_of(run_id))
        self._enter(run_id, ())
        if waited is not None and not waited.begun and text(data, "status") != "failed":
            self._never_ran(run_id, ts, data)
            return
        block = self._run(run_id, ts)
        if block.run is not None:
            block.run.status = text(data, "status", "done")
            block.run.state = block.run.status
            block.run.duration_ms = maybe_num(data, "durationMs")
        block.touch()
        self._cut_tools(run_id, interrupted=text(data, "status") == "interrupted")
        error = obj(data.get("error"))
        if error:
            words = text(error, "title")
            hint = text(error, "hint")
            self._end_mark(run_id, ts, BlockKind.ERROR, f"{words}\n{hint}" if hint else words)
        elif text(data, "status") in ("aborted", "interrupted"):
            aborted = text(data, "status") == "aborted"
            words = "stopped" if aborted else INTERRUPTED_BY_RESTART
            self._end_mark(run_id, ts, BlockKind.NOTICE, words)

    def _cut_tools(self, run_id: str, *, interrupted: bool = True) -> None:
        """Tools of the run that have not ended never will."""
        for tool in self.tools.values():
            if tool.run_id == run_id and tool.open and tool.tool is not None:
                tool.open = False
                tool.tool.status = ToolStatus.INTERRUPTED if interrupted else ToolStatus.ABORTED
                tool.touch()

    def _never_ran(self, run_id: str, ts: int, data: Json) -> None:
        """The end of a message that no run has answered: no header, only why; or what the engine
        itself answers to a command."""
        why = text(obj(data.get("error")), "title") or "stopped before its turn came"
        answered = text(data, "status") == "done"
        self._end_mark(run_id, ts, BlockKind.NOTICE, text(data, "text") if answered else why)

    def _end_mark(self, run_id: str, ts: int, kind: BlockKind, words: str) -> None:
        mark = self._add(Block(f"end:{run_id}", kind, run_id, ts))
        mark.body.append(words)


def _tool_status(raw: str) -> ToolStatus:
    try:
        return ToolStatus(raw)
    except ValueError:
        return ToolStatus.ERROR


def decision_words(decision: object, reason: str, *, asked: bool = True, by: str = "") -> str:
    """How a decision reads in the trace; a None decision of an asked call has expired. What a
    grant let through nobody was asked about."""
    if isinstance(decision, str) and decision:
        if by == BY_GRANT and decision == "allow-once":
            return "granted"
        words = DECISIONS.get(decision, decision)
        return f"{words}: {reason}" if reason and decision == "deny" else words
    return "expired" if asked else ""
