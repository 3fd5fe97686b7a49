"""One session's conversation: live trace events and stored history end as the same blocks."""

from __future__ import annotations

from dataclasses import dataclass, field

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
from claw_tui.store.wire import Json, flag, maybe_num, num, obj, text

DECISIONS = {
    "allow-once": "allowed once",
    "allow-always": "allowed always",
    "deny": "denied",
}


@dataclass(slots=True)
class Queued:
    """A message that is accepted but not yet dispatched; shown apart from the transcript."""

    run_id: str
    message: str
    source: str
    ts_ms: int


@dataclass(slots=True)
class Conversation:
    key: str
    blocks: list[Block] = field(default_factory=list)
    queued: dict[str, Queued] = field(default_factory=dict)
    runs: dict[str, Block] = field(default_factory=dict)
    tools: dict[str, Block] = field(default_factory=dict)
    tails: dict[str, Block] = field(default_factory=dict)
    """The open reasoning or text block of each run."""
    seqs: dict[str, int] = field(default_factory=dict)
    loaded: bool = False
    generation: int = 0
    """Counts reloads: blocks before and after are different objects."""

    # ── live ────────────────────────────────────────────────────────────────────────────────

    def apply(self, run_id: str, seq: int, ts: int, kind: str, data: Json) -> bool:
        """Take one trace event; False when it was already known. O(1) in the text so far."""
        if seq <= self.seqs.get(run_id, 0):
            return False
        self.seqs[run_id] = seq
        match kind:
            case "run.queued":
                self.queued[run_id] = Queued(
                    run_id, text(data, "message"), text(data, "source"), ts
                )
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
        return True

    def _add(self, block: Block) -> Block:
        self.blocks.append(block)
        return block

    def _run(self, run_id: str, ts: int) -> Block:
        """The run's header; made on the spot when its start was not seen."""
        known = self.runs.get(run_id)
        if known is not None:
            return known
        if (queued := self.queued.get(run_id)) is not None and not queued.message:
            self.queued.pop(run_id)
        block = Block(f"run:{run_id}", BlockKind.RUN, run_id, ts, run=RunInfo(started_ms=ts))
        if run_id not in self.queued:
            self._add(block)
        self.runs[run_id] = block
        return block

    def _run_started(self, run_id: str, ts: int, data: Json) -> None:
        queued = self.queued.pop(run_id, None)
        if queued is not None and queued.message:
            user = Block(
                f"user:{run_id}", BlockKind.USER, run_id, queued.ts_ms, source=queued.source
            )
            user.body.append(queued.message)
            self._add(user)
        block = self._run(run_id, ts)
        if block not in self.blocks[-64:]:
            self._add(block)
        info = block.run
        if info is not None:
            info.started_ms = ts
            info.model = text(data, "model")
            info.is_ai = flag(data, "isAI", True)
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
                tool.decision = decision_words(data.get("decision"), text(data, "reason"))
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
        block = self._run(run_id, ts)
        self.queued.pop(run_id, None)
        if block not in self.blocks[-256:] and block not in self.blocks:
            self._add(block)
        if block.run is not None:
            block.run.status = text(data, "status", "done")
            block.run.state = block.run.status
            block.run.duration_ms = maybe_num(data, "durationMs")
        block.touch()
        for tool in self.tools.values():
            if tool.run_id == run_id and tool.open and tool.tool is not None:
                tool.open = False
                tool.tool.status = ToolStatus.ABORTED
                tool.touch()
        error = obj(data.get("error"))
        if error:
            words = text(error, "title")
            hint = text(error, "hint")
            self._end_mark(run_id, ts, BlockKind.ERROR, f"{words}\n{hint}" if hint else words)
        elif text(data, "status") in ("aborted", "interrupted"):
            aborted = text(data, "status") == "aborted"
            words = "stopped" if aborted else INTERRUPTED_BY_RESTART
            self._end_mark(run_id, ts, BlockKind.NOTICE, words)

    def _end_mark(self, run_id: str, ts: int, kind: BlockKind, words: str) -> None:
        mark = self._add(Block(f"end:{run_id}", kind, run_id, ts))
        mark.body.append(words)

    # ── reading ─────────────────────────────────────────────────────────────────────────────

    def active_run(self) -> Block | None:
        """The run that is going on in this session, the newest if there are several."""
        for block in reversed(self.runs.values()):
            if block.run is not None and block.run.status == "running":
                return block
        return None

    def unfinished(self) -> list[str]:
        """Ids of the runs that are queued or going on, as far as is known here."""
        going = [r for r, b in self.runs.items() if b.run is not None and b.run.status == "running"]
        return list(dict.fromkeys([*self.queued, *going]))

    def forget_run(self, run_id: str) -> None:
        """Drop everything about a run, so that a replay can tell it again."""
        self.blocks = [block for block in self.blocks if block.run_id != run_id]
        self.tools = {call: b for call, b in self.tools.items() if b.run_id != run_id}
        for known in (self.queued, self.runs, self.tails, self.seqs):
            known.pop(run_id, None)
        self.generation += 1

    def reload(self, history: list[Block]) -> None:
        """Put stored history under what is live. Runs still going keep their live blocks;
        ended runs take the stored ones, with the timings and decisions only live ones know."""
        live = {r for r, b in self.runs.items() if b.run is not None and b.run.status == "running"}
        stored = {b.run_id for b in history if b.run_id}
        kept = [
            b
            for b in self.blocks
            if b.run_id in live or (b.run_id and b.run_id not in stored and b.run_id in self.runs)
        ]
        known = {b.id: b for b in self.blocks}
        merged: list[Block] = []
        for block in history:
            if block.run_id in live:
                continue
            merged.append(_with_live_facts(block, known.get(block.id)))
        if kept and merged and _same_user(merged[-1], kept[0]):
            merged.pop()
        ended = [b for b in self.blocks if b.id.startswith("end:") and b.run_id not in live]
        self._restore_end_marks(merged, ended)
        self.blocks = merged + kept
        self.runs = {b.run_id: b for b in self.blocks if b.kind is BlockKind.RUN}
        self.tools = {b.tool.call_id: b for b in self.blocks if b.tool is not None}
        self.tails = {r: b for r, b in self.tails.items() if r in live}
        self.loaded = True
        self.generation += 1

    @staticmethod
    def _restore_end_marks(merged: list[Block], ended: list[Block]) -> None:
        """An end mark that history does not store stays where its run ended."""
        have = {b.id for b in merged}
        for mark in ended:
            if mark.id in have:
                continue
            last = max((i for i, b in enumerate(merged) if b.run_id == mark.run_id), default=-1)
            if last >= 0:
                merged.insert(last + 1, mark)


def _same_user(stored: Block, live: Block) -> bool:
    return stored.kind is live.kind is BlockKind.USER and stored.text == live.text


def _with_live_facts(stored: Block, live: Block | None) -> Block:
    if live is None:
        return stored
    if stored.run is not None and live.run is not None:
        stored.run = live.run
    if stored.tool is not None and live.tool is not None:
        stored.tool.decision = live.tool.decision
        stored.tool.duration_ms = live.tool.duration_ms
        stored.tool.exit_code = live.tool.exit_code
        stored.tool.status = live.tool.status
    stored.version = live.version + 1
    return stored


def _tool_status(raw: str) -> ToolStatus:
    try:
        return ToolStatus(raw)
    except ValueError:
        return ToolStatus.ERROR


def decision_words(decision: object, reason: str, *, asked: bool = True) -> str:
    """How a decision reads in the trace; a None decision of an asked call has expired."""
    if isinstance(decision, str) and decision:
        words = DECISIONS.get(decision, decision)
        return f"{words}: {reason}" if reason and decision == "deny" else words
    return "expired" if asked else ""
