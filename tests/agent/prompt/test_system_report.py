"""The report adds up: total = project + rest, per file, per skill, per tool."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from claw_engine.agent.prompt.builder import Limits, PromptBuilder, assemble
from claw_engine.agent.prompt.system_report import ReportBook, Told, system_report
from claw_engine.agent.prompt.workspace import WorkspaceFile, inject
from claw_engine.models.base import ToolSpec
from claw_engine.parts import Part, PartKind
from claw_engine.skills.listing import Listing
from claw_engine.world import RealClock, RealDisk
from tests.agent.bench import REF
from tests.agent.prompt.test_sections import FACTS

SIZES = {
    "AGENTS.md": 7804, "SOUL.md": 2613, "BOOTSTRAP.md": 1449, "TOOLS.md": 850, "USER.md": 474,
    "HEARTBEAT.md": 167, "IDENTITY.md": 153, "MEMORY.md": 43,
}  # fmt: skip
"""Characters of the workspace that the project began from; together 13,553."""
WIRE_ORDER = ["AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md", "USER.md", "HEARTBEAT.md",
              "BOOTSTRAP.md", "MEMORY.md"]  # fmt: skip

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}
TOOL = {"name": "read", "description": " Reads a file. ", "parameters": SCHEMA}
SPECS = (
    ToolSpec(Part("tool:read", PartKind.TOOL, "tool:read", json.dumps(TOOL), "read")),
    ToolSpec(Part("tool:x", PartKind.TOOL, "tool:x", '{"name":"x","parameters":{}}', "x")),
)
SKILLS = Listing(tuple(
    Part(f"skill:{name}", PartKind.SKILL, f"/s/{name}", f"<skill>{name}</skill>", name)
    for name in ("one", "three")
))  # fmt: skip


async def test_the_articles_workspace_gives_the_same_arithmetic(tmp_path: Path) -> None:
    for name, size in SIZES.items():
        (tmp_path / name).write_text((name * size)[: size - 1] + "·\n\n", "utf-8")
    disk = RealDisk()
    builder = PromptBuilder(disk, RealClock())
    await builder.prepare(tmp_path, seeding=False)
    limits = Limits()
    prompt = await builder.build(FACTS, "agent:main:main", limits, None, tmp_path, SKILLS)
    disk.close()
    report = system_report(
        Told(prompt, SPECS, REF, "agent:main:main", str(tmp_path), limits), "run", 7
    )
    files = report["injectedWorkspaceFiles"]
    assert isinstance(files, list)
    assert [row["name"] for row in files] == WIRE_ORDER
    for row in files:
        assert row["rawChars"] == row["injectedChars"] == SIZES[row["name"]]
        assert (row["missing"], row["truncated"]) == (False, False)
        assert row["path"] == str(tmp_path / row["name"])
    assert sum(row["injectedChars"] for row in files) == 13_553
    text = "\n".join(part.text for part in prompt.parts)
    sizes = report["systemPrompt"]
    assert isinstance(sizes, dict)
    assert sizes["chars"] == len(text)
    assert sizes["projectContextChars"] == text.index("## Runtime") - text.index(
        "# Project Context"
    )
    assert sizes["projectContextChars"] + sizes["nonProjectContextChars"] == sizes["chars"]
    # What is left beside the files is their headings and the one above them.
    heading = next(part.text for part in prompt.parts if part.name == "Project Context")
    headings = sum(len(f"## {tmp_path / name}\n") + 1 for name in SIZES)
    assert sizes["projectContextChars"] - 13_553 == headings + len(heading) + 1
    shown = text[text.index("<available_skills>") : text.index("</available_skills>")]
    assert report["skills"] == {
        "promptChars": len(shown) + len("</available_skills>"),
        "entries": [{"name": "one", "blockChars": 18}, {"name": "three", "blockChars": 20}],
    }
    assert report["tools"] == {
        "listChars": len("- read: reads a file\n- exec: runs a command\n- zeta: last"),
        "schemaChars": len(json.dumps(SCHEMA, separators=(",", ":"))) + 2,
        "entries": [
            {"name": "read", "summaryChars": 13, "propertiesCount": 2,
             "schemaChars": len(json.dumps(SCHEMA, separators=(",", ":")))},
            {"name": "x", "summaryChars": 0, "schemaChars": 2, "propertiesCount": None},
        ],
    }  # fmt: skip


def test_the_fields_are_openclaws() -> None:
    golden = Path(__file__).parents[2] / "golden/state/agents/main/sessions"
    entries = json.loads((golden / "sessions.json").read_text())
    theirs = next(e["systemPromptReport"] for e in entries.values() if "systemPromptReport" in e)
    files = inject([WorkspaceFile("AGENTS.md", Path("/w/AGENTS.md"), "x")], 20_000, 150_000)
    told = Told(assemble(FACTS, files, SKILLS), SPECS, REF, "k", "/w", Limits())
    ours = system_report(told, "run", 1)

    def shape(value: object) -> object:
        match value:
            case dict():
                return {key: shape(inner) for key, inner in value.items()}
            case [first, *_]:
                return [shape(first)]
            case bool() | str():
                return type(value).__name__
            case _:
                return "number"

    assert shape(dict(ours)) == shape(theirs)
    assert list(ours) == list(theirs)


@given(
    st.lists(st.sampled_from(WIRE_ORDER), unique=True),
    st.integers(0, 3000), st.integers(1, 2000), st.integers(0, 4000), st.booleans(),
)  # fmt: skip
def test_it_adds_up_whatever_was_cut(
    names: list[str], size: int, most: int, total: int, missing: bool
) -> None:
    text = None if missing else "ä" * size
    files = inject([WorkspaceFile(n, Path("/w") / n, text) for n in names], most, total)
    prompt = assemble(FACTS, files)
    report = system_report(Told(prompt, (), REF, "k", "/w", Limits(most, total)), "run", 1)
    sizes = report["systemPrompt"]
    joined = "\n".join(part.text for part in prompt.parts)
    assert isinstance(sizes, dict)
    assert sizes["chars"] == len(joined)
    assert sizes["projectContextChars"] + sizes["nonProjectContextChars"] == len(joined)
    start = joined.find("# Project Context")
    cut = joined[start : joined.index("## Runtime")] if start >= 0 else ""
    assert sizes["projectContextChars"] == len(cut)
    rows = report["injectedWorkspaceFiles"]
    assert isinstance(rows, list)
    assert sum(row["injectedChars"] for row in rows) <= total


def test_a_skill_may_be_called_like_a_section() -> None:
    names = ("Project Context", "Skills", "Skills (end)", "Tooling", "Runtime")
    skills = Listing(tuple(
        Part(f"skill:{n}", PartKind.SKILL, "/s", f"<skill>{n}</skill>", n) for n in names
    ))  # fmt: skip
    files = inject([WorkspaceFile("AGENTS.md", Path("/w/AGENTS.md"), "x")], 20_000, 150_000)
    prompt = assemble(FACTS, files, skills)
    report = system_report(Told(prompt, (), REF, "k", "/w", Limits()), "run", 1)
    text = "\n".join(part.text for part in prompt.parts)
    sizes, shown = report["systemPrompt"], report["skills"]
    assert isinstance(sizes, dict) and isinstance(shown, dict)
    assert sizes["projectContextChars"] == text.index("## Runtime") - text.index("# Project")
    end = text.index("</available_skills>") + len("</available_skills>")
    assert shown["promptChars"] == end - text.index("<available_skills>")


def test_the_same_report_until_something_changed() -> None:
    book = ReportBook()
    prompt = assemble(FACTS, ())
    told = Told(prompt, SPECS, REF, "k", "/w", Limits())
    first = book.of(told, lambda: 1)
    assert book.of(Told(prompt, SPECS, REF, "k", "/w", Limits()), lambda: 2) is first
    other = book.of(Told(assemble(FACTS, ()), SPECS, REF, "k", "/w", Limits()), lambda: 3)
    assert other is not first and other["generatedAt"] == 3
