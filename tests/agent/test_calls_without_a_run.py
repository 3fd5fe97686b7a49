"""A tool call over HTTP: the same policy and the same hooks as in a run."""

from __future__ import annotations

from msgspec.structs import replace

from claw_engine.gateway.tool_port import ToolInvocation
from claw_engine.tool_calls import ToolCalls
from claw_engine.tools.base import ToolResult
from claw_engine.tools.hooks import After, Before, CallEvent, ResultEvent, ToolHooks
from claw_engine.tools.registry import ToolRegistry
from tests.agent.bench import MAIN, Bench, ScriptedModel
from tests.agent.conftest import MakeBench
from tests.agent.test_checks import DENIED, Noted
from tests.tools.policy.support import settings_of


def calls(b: Bench, noted: Noted) -> tuple[ToolCalls, ToolHooks]:
    hooks = ToolHooks(b.clock)
    deps = replace(b.agent.deps, hooks=hooks)
    settings = settings_of(DENIED)
    made = ToolCalls(deps, ToolRegistry(noted.tools), lambda: settings, b.state.workspace)
    return made, hooks


async def test_the_policy_refuses_with_its_rule(bench: MakeBench) -> None:
    """TP-01."""
    noted = Noted("web_fetch", "exec")
    there, _ = calls(await bench(ScriptedModel([])), noted)
    answer = await there.invoke(ToolInvocation("c1", "web_fetch", {}, MAIN))
    assert answer.status == "denied"
    assert "agents.list[main].tools" in answer.text
    assert noted.ran == []


async def test_hooks_block_rewrite_and_see_the_result(bench: MakeBench) -> None:
    noted = Noted("exec")
    there, hooks = calls(await bench(ScriptedModel([])), noted)

    async def change(event: CallEvent) -> Before:
        if event.params["n"] == 0:
            return Before(block=True, reason="not zero")
        return Before(params={"n": "8"})

    async def mark(event: ResultEvent) -> After:
        return After(ToolResult(f"{event.result.text}, seen"))

    hooks.on_before("change", change)
    hooks.on_after("mark", mark)
    answer = await there.invoke(ToolInvocation("c1", "exec", {"n": 1}, MAIN))
    assert (answer.status, answer.text) == ("ok", "exec ran, seen")
    assert noted.ran == [("exec", {"n": 8})]
    answer = await there.invoke(ToolInvocation("c2", "exec", {"n": 0}, MAIN))
    assert answer.status == "denied"
    assert "not zero (hook change)" in answer.text
    assert len(noted.ran) == 1
