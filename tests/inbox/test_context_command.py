"""`/context`: the report of the last run, an estimate before it, and what a session keeps of it."""

from __future__ import annotations

import json

from msgspec.structs import replace

from claw_engine.agent.context.tokens import estimate
from claw_engine.inbox.context_command import USAGE, context_text
from claw_engine.messages import Usage
from claw_engine.models.base import UsageSeen
from claw_engine.protocol.trace import TraceKind
from claw_engine.tools.base import ToolContext, ToolResult
from tests.agent.bench import MAIN, Bench, FnTool, ScriptedModel, calls, says
from tests.agent.conftest import MakeBench
from tests.agent.conftest import bench as bench


async def said(b: Bench, text: str) -> str:
    run_id = await b.send(text)
    result = await b.dispatcher.wait(run_id)  # also until the session's entry is written
    assert result is not None
    return result.text


async def test_before_and_after_a_run(bench: MakeBench) -> None:
    b = await bench(ScriptedModel([says("Hi.", usage=Usage(100, 5, 20, 0, 125))]))
    assert await said(b, "/context") == USAGE
    text = await said(b, "/context list")
    assert text.startswith(f"Context of {MAIN} (an estimate of the next run)\nModel: fake/one\n")
    assert "Session:" not in text
    await said(b, "hello")
    text = await said(b, "/context show")
    assert "(the last run)" in text.splitlines()[0]
    assert text.splitlines()[-1] == "Session: 125 tokens of 32,000"
    assert "- AGENTS.md: whole," in text
    both = json.loads(await said(b, "/context json"))
    assert both["session"] == {
        "totalTokens": 125, "inputTokens": 100, "outputTokens": 5, "contextTokens": 32_000,
    }  # fmt: skip
    entry = b.sessions.get(MAIN)
    assert entry is not None
    assert both["report"] == entry.raw["systemPromptReport"]
    assert both["report"]["sessionId"] == entry.session_id
    assert both["report"]["source"] == "run"
    assert "Most parameters" not in await said(b, "/context detail")  # there are no tools


async def test_a_session_keeps_one_report_until_something_changed(bench: MakeBench) -> None:
    b = await bench(ScriptedModel([says("1"), says("2"), says("3")]))

    def kept() -> object:
        entry = b.sessions.get(MAIN)
        assert entry is not None
        return entry.raw["systemPromptReport"]

    await said(b, "one")
    first = kept()
    await b.clock.advance(1)
    await said(b, "two")
    assert kept() is first
    workspace = b.state.workspace("main")
    (workspace / "TOOLS.md").write_text("A NAS.")
    await said(b, "three")
    assert kept() is not first


async def test_a_large_tool_result_is_told_as_its_own(bench: MakeBench) -> None:
    """The call grew by 30,000 tokens: that line is the result that did it."""
    doc = ""
    while estimate(doc) < 30_000:
        doc += "飞书文档的一段内容，说明第三次调用为什么变大。\n" * 50

    async def read_doc(args: object, ctx: ToolContext) -> ToolResult:
        return ToolResult(doc)

    # Without a count of the provider's: estimates are drawn to it.
    uncounted = [step for step in calls(("feishu_doc", "{}")) if not isinstance(step, UsageSeen)]
    model = ScriptedModel([uncounted, says("Done.")])
    model.ref = replace(model.ref, context_window=200_000)
    b = await bench(model, [FnTool("feishu_doc", read_doc)])
    run_id = await b.send("read it")
    before = await b.until(TraceKind.CALL_STARTED, run_id)
    after = await b.until(TraceKind.CALL_STARTED, run_id)
    old = {row["id"] for row in before.data["parts"]}
    new = [row for row in after.data["parts"] if row["id"] not in old]
    (result,) = [row for row in new if row["kind"] == "tool_result"]
    assert result["name"] == "feishu_doc"
    assert 30_000 <= result["tokens"] < 31_000
    grown = after.data["tokens"] - before.data["tokens"]
    assert sum(row["tokens"] for row in new) == grown
    assert result["tokens"] / grown > 0.97


def test_what_was_cut_is_said_with_the_setting() -> None:
    def row(name: str, raw: int, injected: int) -> dict[str, object]:
        return {"name": name, "missing": False, "truncated": raw != injected, "rawChars": raw,
                "injectedChars": injected}  # fmt: skip

    report = {"bootstrapMaxChars": 100, "injectedWorkspaceFiles": [row("A.md", 150, 90)]}
    assert "Cut: A.md (longer than a file may be)" in context_text(report, {})
    assert "bootstrapMaxChars" in context_text(report, {})
    report["injectedWorkspaceFiles"] = [row("A.md", 80, 80), row("B.md", 90, 70)]
    assert "agents.defaults.bootstrapTotalMaxChars" in context_text(report, {})


def test_long_lists_end_with_how_many_more() -> None:
    entries = [{"name": f"t{n:02}", "schemaChars": n, "summaryChars": 1, "propertiesCount": None}
               for n in range(40)]  # fmt: skip
    skills = [{"name": f"s{n:02}", "blockChars": n} for n in range(40)]
    report = {"tools": {"entries": entries}, "skills": {"entries": skills}}
    text = context_text(report, {}, detail=True)
    assert "s19, and 20 more" in text and "t29, and 10 more" in text
    assert text.count("- and 10 more") == 4
    assert "Largest tool schemas:\n- t39: 39 chars (~10 tok)\n" in text


async def test_what_the_session_shows_stands_in_the_last_line(bench: MakeBench) -> None:
    model = ScriptedModel([says("1"), says("2")])
    b = await bench(model)
    await said(b, "hello")
    await said(b, "/reasoning on")
    await said(b, "and now?")
    first, second = (request.system for request in model.requests)
    assert first[-1].text.endswith("| thinking=off")
    assert second[-1].text.endswith("| thinking=off | reasoning=on")
    assert [a is b for a, b in zip(first, second, strict=True)] == [True] * (len(first) - 1) + [
        False
    ]
