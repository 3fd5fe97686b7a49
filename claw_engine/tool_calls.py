"""One tool call without a run, as the gateway's `ToolsPort`: for POST /tools/invoke.

The policy of the session decides as it would in a run, and what needs the operator's yes waits for
it here too. There is no model: nobody hears of the result but the caller.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from pathlib import Path

from claw_engine.agent.checks import CallChecks, Caller, Cleared
from claw_engine.agent.run import AgentDeps
from claw_engine.config.settings import Settings
from claw_engine.gateway.tool_port import ToolAnswer, ToolInvocation
from claw_engine.runs import AbortReason, AbortScope
from claw_engine.sandbox.box import Standing
from claw_engine.sessions.keys import canonical
from claw_engine.tools.base import Tool, ToolContext, ToolError, ToolResult
from claw_engine.tools.loops import LoopGuard, LoopRules
from claw_engine.tools.policy.circumstances import circumstances
from claw_engine.tools.registry import ToolRegistry

log = logging.getLogger("claw.tools")

SOURCE = "gateway"
WHY = "Asked for over HTTP (POST /tools/invoke), by somebody who knows the gateway's secret."


class ToolCalls:
    """Use: `await invoke(call)`. `workspace` is that of an agent."""

    def __init__(
        self,
        deps: AgentDeps,
        tools: ToolRegistry,
        settings: Callable[[], Settings],
        workspace: Callable[[str], Path],
    ) -> None:
        self._deps = deps
        self._tools = tools
        self._settings = settings
        self._workspace = workspace

    async def invoke(self, call: ToolInvocation) -> ToolAnswer:
        """Raises CancelledError when the caller goes away: the call is stopped then."""
        settings = self._settings()
        key = canonical(call.session_key)
        there = circumstances(settings, str(key), key.agent_id, source=SOURCE)
        box = self._tools.under(settings, there)
        try:
            tool = self._tools.get(call.tool)
        except ToolError as error:
            return ToolAnswer("not_found", error.sentence())
        if rule := call.denied.get(tool.name.lower()) or call.denied.get(call.tool.lower()):
            return ToolAnswer("denied", f"The tool {tool.name} is denied by {rule}.")
        try:
            tool = box.get(tool.name)
        except ToolError as error:
            return ToolAnswer("denied", error.sentence())
        given = _with_action(tool, call)
        try:
            box.validate(tool, given)
        except ToolError as error:
            return ToolAnswer("bad_input", error.sentence())
        # The hooks of a run look at this call too; without a model there is no loop to find.
        caller = Caller(key.agent_id, call.session_key, call.call_id)
        checks = CallChecks(caller, box, _log_notice, LoopGuard(), LoopRules(), self._deps.hooks)
        try:
            cleared = await checks.before(tool.name, given, call.call_id)
        except ToolError as error:
            return ToolAnswer("denied", error.sentence())
        return await self._run(checks, cleared, call, settings, key.agent_id)

    async def _run(
        self,
        checks: CallChecks,
        cleared: Cleared,
        call: ToolInvocation,
        settings: Settings,
        agent_id: str,
    ) -> ToolAnswer:
        deps, scope = self._deps, AbortScope()
        began = deps.world.clock.monotonic()
        workspace = self._workspace(agent_id)
        standing = Standing()
        if deps.standing is not None:
            standing = await deps.standing(
                settings, session_key=call.session_key, agent_id=agent_id, workspace=workspace,
                source=SOURCE, extra={},
            )  # fmt: skip
        context = ToolContext(
            run_id=call.call_id,
            session_key=call.session_key,
            agent_id=agent_id,
            tool_call_id=call.call_id,
            workspace=workspace,
            state_dir=deps.state_dir,
            why=WHY,
            world=deps.world,
            scope=scope,
            settings=settings,
            approvals=deps.approvals,
            exec_approvals=deps.exec_approvals,
            output=lambda text: None,
            operator_wait=_nothing_to_park,
            on_approval=lambda record: None,
            mode=partial(deps.mode, call.session_key),
            standing=standing,
            notes=cleared.notes,
        )
        await deps.world.disk.run(deps.world.disk.mkdir, workspace)
        try:
            result = await cleared.tool.run(cleared.args, context)
        except ToolError as error:
            result = ToolResult(error.sentence(), is_error=True)
        except asyncio.CancelledError:
            scope.abort(AbortReason.USER)
            raise
        elapsed = int((deps.world.clock.monotonic() - began) * 1000)
        result = await checks.after(cleared, call.call_id, result, elapsed)
        return ToolAnswer("error" if result.is_error else "ok", result.text, result.details)


def _log_notice(level: str, text: str) -> None:
    log.log(logging.WARNING if level == "warn" else logging.INFO, "%s", text)


def _with_action(tool: Tool, call: ToolInvocation) -> Mapping[str, object]:
    """The arguments, with `action` where the tool has one and none was given."""
    properties = tool.parameters.get("properties")
    known = isinstance(properties, Mapping) and "action" in properties
    if not call.action or not known or "action" in call.args:
        return call.args
    return {**call.args, "action": call.action}


@contextlib.asynccontextmanager
async def _nothing_to_park() -> AsyncIterator[None]:
    """There is no run whose place could be given to others while the operator thinks."""
    yield
