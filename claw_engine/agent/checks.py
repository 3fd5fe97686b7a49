"""What stands between the model's call and the tool: loop detection, then hooks, both told.

Rewritten arguments are looked up and validated again; approval happens inside the tool, so it sees
them as they are. Knows no particular tool and no particular hook.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from claw_engine.agent.ports import ToolBox
from claw_engine.tools.base import Tool, ToolError, ToolResult
from claw_engine.tools.hooks import Action, Before, CallEvent, ResultEvent, Tell
from claw_engine.tools.loops import Finding, LoopGuard, LoopRules, rules_of
from claw_engine.tools.policy.steps import agent_tools

if TYPE_CHECKING:
    from claw_engine.config.settings import Settings


class Hooks(Protocol):
    """The hook runner."""

    def __bool__(self) -> bool: ...
    async def before(self, event: CallEvent, tell: Tell) -> Before: ...
    async def after(self, event: ResultEvent, tell: Tell) -> ToolResult: ...


class Cleared(Struct, frozen=True):
    """A call that may go on: the tool, its arguments now, and what the operator should know."""

    tool: Tool
    args: Mapping[str, object]
    asked: Mapping[str, object]
    """The arguments as the model gave them."""
    notes: tuple[str, ...] = ()


class Caller(Struct, frozen=True):
    """On whose behalf calls are made."""

    agent_id: str
    session_key: str
    run_id: str


def loop_rules(settings: Settings, agent_id: str) -> LoopRules:
    """The loop detector's thresholds for an agent."""
    own = agent_tools(settings, agent_id)
    shared = settings.tools.loop_detection
    return rules_of(shared, own[1].loop_detection if own is not None else None)


class CallChecks:
    """For the calls of one run, or of one caller without a run.

    `notice` (level, text) is what the operator hears.
    """

    def __init__(
        self, caller: Caller, tools: ToolBox, notice: Callable[[str, str], None],
        loops: LoopGuard, rules: LoopRules, hooks: Hooks | None = None,
    ) -> None:  # fmt: skip
        self._caller = caller
        self._tools = tools
        self._notice = notice
        self._loops = loops
        self._rules = rules
        self._hooks = hooks

    async def before(self, name: str, given: Mapping[str, object], call_id: str) -> Cleared:
        """Look the tool up, validate, examine, ask the hooks.

        Raises ToolError when the call is not to be made, in words for the model.
        """
        tool = self._tools.get(name)
        args = self._tools.validate(tool, given)
        session = self._caller.session_key
        found = self._loops.before(session, self._rules, tool.name, args, call_id)
        if found is not None:
            self._loop_found(found)
        hooks = self._hooks
        if not hooks:
            return Cleared(tool, args, args)
        actions: list[Action] = []

        def tell(action: Action) -> None:
            actions.append(action)
            self._tell(action, tool.name)

        answer = await hooks.before(self._event(tool, args, call_id), tell)
        if answer.block:
            raise ToolError(f"{tool.name} was blocked: {answer.reason}. Nothing was done.")
        if answer.params is None:
            return Cleared(tool, args, args)
        # What a hook made of the call is a new call: same checks, no trust.
        again = self._tools.get(tool.name)
        changed = self._tools.validate(again, answer.params)
        who = ", ".join(a.hook for a in actions if a.kind == "rewrote arguments")
        return Cleared(again, changed, args, (f"arguments rewritten by hook {who}",))

    async def after(
        self, call: Cleared, call_id: str, result: ToolResult, duration_ms: int
    ) -> ToolResult:
        """Note the outcome, show it to the hooks; the result that counts."""
        name = call.tool.name
        self._loops.after(self._caller.session_key, name, call.asked, call_id, result)
        if not self._hooks:
            return result
        event = ResultEvent(self._event(call.tool, call.args, call_id), result, duration_ms)
        return await self._hooks.after(event, lambda action: self._tell(action, name))

    def _event(self, tool: Tool, args: Mapping[str, object], call_id: str) -> CallEvent:
        who = self._caller
        return CallEvent(tool.name, args, who.agent_id, who.session_key, who.run_id, call_id)

    def _loop_found(self, found: Finding) -> None:
        if found.blocks:
            self._notice("warn", f"Loop stopped ({found.detector}): {found.text}.")
            raise ToolError(
                f"Not called: {found.text} ({found.detector}). Stop repeating it: look at what "
                "you know, try another way, or tell your user what is missing."
            )
        self._notice("warn", f"Possible loop ({found.detector}): {found.text}.")

    def _tell(self, action: Action, tool: str) -> None:
        level = "info" if action.kind.startswith("rewrote") else "warn"
        self._notice(level, action.sentence(tool))
