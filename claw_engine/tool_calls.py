"""One tool call without a run, as the gateway's `ToolsPort`: for POST /tools/invoke.

The policy of the session decides as it would in a run, and what needs the operator's yes waits for
it here too. There is no model: nobody hears of the result but the caller.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

from claw_engine.agent.run import AgentDeps
from claw_engine.config.settings import Settings
from claw_engine.gateway.tool_port import ToolAnswer, ToolInvocation
from claw_engine.runs import AbortReason, AbortScope
from claw_engine.sandbox.box import Standing
from claw_engine.sessions.keys import canonical
from claw_engine.tools.base import Tool, ToolContext, ToolError
from claw_engine.tools.policy.circumstances import circumstances
from claw_engine.tools.registry import ToolRegistry

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
        try:
            args = box.validate(tool, _with_action(tool, call))
        except ToolError as error:
            return ToolAnswer("bad_input", error.sentence())
        return await self._run(tool, args, call, settings, key.agent_id)

    async def _run(
        self,
        tool: Tool,
        args: Mapping[str, object],
        call: ToolInvocation,
        settings: Settings,
        agent_id: str,
    ) -> ToolAnswer:
        deps, scope = self._deps, AbortScope()
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
            mode=deps.mode,
            standing=standing,
        )
        await deps.world.disk.run(deps.world.disk.mkdir, workspace)
        try:
            result = await tool.run(args, context)
        except ToolError as error:
            return ToolAnswer("error", error.sentence())
        except asyncio.CancelledError:
            scope.abort(AbortReason.USER)
            raise
        return ToolAnswer("error" if result.is_error else "ok", result.text, result.details)


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
