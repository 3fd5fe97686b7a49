"""A tool call's surroundings for tests: real disk, real processes, real broker and rules."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from claw_engine.approvals.broker import Broker
from claw_engine.approvals.events import ApprovalRequested
from claw_engine.approvals.model import ApprovalRecord, Decision, Status
from claw_engine.approvals.store import ExecApprovals
from claw_engine.config.sections.tools import ExecSettings, ToolsSettings
from claw_engine.config.settings import Settings
from claw_engine.events import Event
from claw_engine.paths import StateDir
from claw_engine.runs import AbortScope
from claw_engine.tools.base import ToolContext, ToolError, ToolResult
from claw_engine.tools.exec.background import Background
from claw_engine.tools.exec.table import ProcessTable
from claw_engine.tools.exec.tool import ExecTool
from claw_engine.tools.files import file_tools
from claw_engine.tools.process.tool import ProcessTool
from claw_engine.tools.registry import ToolRegistry
from claw_engine.world import World

RUN_ID = f"run-of-desk-{os.getpid()}"
"""Of this process alone: whoever stops a run kills every process that carries its id."""
FULL = ToolsSettings(exec=ExecSettings(security="full", ask="off"))
BASE = {"PATH": os.environ.get("PATH", os.defpath), "OPENAI_API_KEY": "sk-not-for-children"}


class Desk:
    """Runs tool calls like a run does, and plays the operator."""

    def __init__(self, root: Path, world: World) -> None:
        self.state = StateDir(root / "state")
        self.state.ensure()
        self.workspace = self.state.workspace("main")
        self.workspace.mkdir(parents=True)
        self.outside = root / "outside"
        self.outside.mkdir()
        self.world = world
        self.scope = AbortScope()
        self.settings = Settings(env=BASE)
        self.rules = ExecApprovals(world, self.state.exec_approvals)
        self.broker = Broker(world, self._published, self.state.approvals_journal, 60_000)
        self.news: list[Event] = []
        self.table = ProcessTable(world, self.news.append, self.state.processes_json)
        self.session_key = "agent:main:main"
        exec_tool = ExecTool(processes=self.table)
        self.registry = ToolRegistry([*file_tools(), exec_tool, ProcessTool(self.table)])
        self.live = ""
        self.waiting = 0
        self.heard: list[ApprovalRecord] = []
        self._news = asyncio.Event()
        self._asked: asyncio.Queue[ApprovalRecord] = asyncio.Queue()

    def _published(self, event: Event) -> None:
        if isinstance(event, ApprovalRequested):
            self._asked.put_nowait(event.record)

    @asynccontextmanager
    async def _operator_wait(self) -> AsyncIterator[None]:
        self.waiting += 1
        try:
            yield
        finally:
            self.waiting -= 1

    def _emit(self, text: str) -> None:
        self.live += text
        self._news.set()

    async def said(self, word: str) -> None:
        """Wait until live output holds `word`."""
        async with asyncio.timeout(10):
            while word not in self.live:
                self._news.clear()
                await self._news.wait()

    async def in_background(self, command: str, **args: object) -> tuple[Background, ToolResult]:
        """Start a command in the background, allowed by policy."""
        self.policy(security="full", ask="off")
        self.settings = Settings(env=BASE, tools=FULL)
        result = await self.call("exec", command=command, **{"background": True, **args})
        assert result.details is not None, result.text
        assert result.details["status"] == "running", result.text
        entry = self.table.get(self.session_key, str(result.details["sessionId"]))
        assert entry is not None
        return entry, result

    async def wrote(self, entry: Background, word: str) -> None:
        """Wait until a command in the background has written `word`."""
        if word not in entry.running.tail.text():
            self.live = ""
            entry.running.follow(self._emit)
            await self.said(word)
            entry.running.follow(None)

    async def process(self, action: str, entry: Background, **args: object) -> ToolResult:
        return await self.call("process", action=action, sessionId=entry.id, **args)

    def context(self, call_id: str = "call-1") -> ToolContext:
        return ToolContext(
            run_id=RUN_ID,
            session_key=self.session_key,
            agent_id="main",
            tool_call_id=call_id,
            workspace=self.workspace,
            state_dir=self.state,
            why="because",
            world=self.world,
            scope=self.scope,
            settings=self.settings,
            approvals=self.broker,
            exec_approvals=self.rules,
            output=self._emit,
            operator_wait=self._operator_wait,
            on_approval=self.heard.append,
        )

    async def call(self, name: str, **args: object) -> ToolResult:
        """One call, as the loop does it: a ToolError is an error result."""
        try:
            tool = self.registry.get(name)
            return await tool.run(self.registry.validate(tool, args), self.context())
        except ToolError as error:
            return ToolResult(error.sentence(), is_error=True)

    async def asked(self) -> ApprovalRecord:
        """Wait for the next question."""
        return await asyncio.wait_for(self._asked.get(), 10)

    async def decide(
        self, record: ApprovalRecord, decision: Decision, reason: str = ""
    ) -> ApprovalRecord:
        return await self.broker.resolve(record.id, decision, "tester", reason)

    async def answered(
        self,
        decision: Decision,
        name: str,
        *,
        reason: str = "",
        meanwhile: Callable[[], object] = lambda: None,
        **args: object,
    ) -> tuple[ToolResult, ApprovalRecord]:
        """A call that asks once; `meanwhile` happens between the question and the answer."""
        task = asyncio.create_task(self.call(name, **args))
        record = await self.asked()
        assert not task.done()
        assert self.waiting == 1
        meanwhile()
        await self.decide(record, decision, reason)
        return await task, record

    @property
    def unasked(self) -> bool:
        return self._asked.empty() and not self.broker.pending()

    def policy(self, **fields: str) -> None:
        """Write the rules file's defaults."""
        data: Mapping[str, object] = {"version": 1, "defaults": fields, "agents": {}}
        self.state.exec_approvals.write_text(json.dumps(data))

    def ended(self) -> list[Status]:
        return [record.status for record in self.heard]
