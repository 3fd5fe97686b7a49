"""One session's conversation: live trace events and stored history end as the same blocks."""

from __future__ import annotations

from claw_tui.store.blocks import Block, BlockKind
from claw_tui.store.live import Live
from claw_tui.store.turns import Queued, run_of, turn_name, turn_of


class Conversation(Live):
    loaded: bool = False
    generation: int = 0
    """Counts reloads: blocks before and after are different objects."""

    # ── reading ─────────────────────────────────────────────────────────────────────────────

    def active_run(self) -> Block | None:
        """The run that is going on in this session, the newest if there are several."""
        for block in reversed(self.runs.values()):
            if block.open_run:
                return block
        return None

    def unfinished(self) -> list[str]:
        """Ids of the runs that are queued or going on, as far as is known here."""
        going = [run_of(name) for name, block in self.runs.items() if block.open_run]
        return list(dict.fromkeys([*self.queued, *going]))

    def waiting(self, *, everything: bool = False) -> list[Queued]:
        """Messages that wait for their turn, in the order they came; with `everything` also
        those that wait behind nothing."""
        return [
            q for q in self.queued.values() if q.waits or (everything and q.message and not q.begun)
        ]

    def asked(self, run_id: str) -> str:
        """The message that a run answers or that waits for it; empty while that is not known."""
        waiting = self.queued.get(run_id)
        if waiting is not None and waiting.message:
            return waiting.message
        for block in reversed(self.blocks):
            if block.kind is BlockKind.USER and run_of(block.run_id) == run_id:
                return block.text
        return ""

    def forget_run(self, run_id: str) -> None:
        """Drop everything about a run's newest turn, so that a replay can tell it again."""
        name = self.names.get(run_id, run_id)
        self.blocks = [block for block in self.blocks if block.run_id != name]
        self.tools = {call: b for call, b in self.tools.items() if b.run_id != name}
        for member in [m for m, lead in self.answered.items() if lead == run_id]:
            for numbers in (self.seqs, self.heard, self.answered):
                numbers.pop(member, None)
        for known in (self.queued, self.runs, self.tails, self.seqs, self.heard):
            known.pop(run_id, None)
            known.pop(name, None)
        self.generation += 1

    def reload(self, history: list[Block], *, whole: bool = False) -> None:
        """Put stored history under what is live. Runs still going keep their live blocks;
        ended runs take the stored ones, with the timings and decisions only live ones know.

        `whole`: nothing goes on, and the history cannot name its runs: it replaces everything."""
        if whole:
            self.blocks, self.runs = [], {}
            self.queued.clear()
        self._align(history)
        live = {name for name, block in self.runs.items() if block.open_run}
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
        for name in self.runs:
            if turn_of(name) > turn_of(self.names.get(run_of(name), "")):
                self.names[run_of(name)] = name
        self.loaded = True
        self.generation += 1

    def _align(self, history: list[Block]) -> None:
        """Whoever attaches in the middle of a run learns here that it is not its first turn."""
        last = {run_of(b.run_id): b for b in history if b.kind is BlockKind.RUN}
        for name in [name for name, block in self.runs.items() if block.open_run]:
            header = last.get(run_of(name))
            if header is None or header.run is None:
                continue
            turn = turn_of(header.run_id) + (header.run.status == "interrupted")
            if turn > turn_of(name):
                self._rename(name, turn_name(run_of(name), turn))

    def _rename(self, old: str, new: str) -> None:
        for block in self.blocks:
            if block.run_id == old:
                block.run_id, block.id = new, block.id.replace(old, new, 1)
                if block.run is not None:
                    block.run.resumed = True
        for known in (self.runs, self.tails):
            if old in known:
                known[new] = known.pop(old)
        self.names[run_of(new)] = new

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
