"""From folders to the prompt: gates, places, and the same objects while nothing changed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec import Struct
from msgspec.structs import replace

from claw_engine.agent.briefing import Briefer, Place
from claw_engine.agent.prompt.facts import Host
from claw_engine.config.sections.agents import AgentEntry, AgentsSettings
from claw_engine.config.sections.box import BoxSettings
from claw_engine.config.sections.skills import SkillEntry, SkillsLoad, SkillsSettings
from claw_engine.config.settings import Settings
from claw_engine.protocol.trace import TraceKind
from claw_engine.sandbox.box import Backend, Box, WorkspaceAccess
from claw_engine.skills.shelf import AgentSkills, SkillShelf
from claw_engine.tools.files import file_tools
from claw_engine.world import RealDisk
from tests.agent.bench import ScriptedModel, calls, says, with_queue
from tests.agent.conftest import MakeBench
from tests.agent.conftest import bench as bench
from tests.skills.test_scan import put
from tests.support.fakes import FakeClock


class Rig(Struct):
    root: Path
    clock: FakeClock
    shelf: SkillShelf
    settings: Settings

    @property
    def workspace(self) -> Path:
        return self.root / "ws"

    def look(self, settings: Settings | None = None, agent: str = "main") -> AgentSkills:
        return self.shelf.look(settings or self.settings, agent, self.workspace)

    def names(self, settings: Settings | None = None, agent: str = "main") -> list[str]:
        return [part.name for part in self.look(settings, agent).of(None).parts]


def settings_at(root: Path, **more: object) -> Settings:
    return replace(Settings(), env={"HOME": str(root / "home"), "PATH": str(root / "bin")}, **more)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    clock = FakeClock()
    shelf = SkillShelf(RealDisk(), clock, tmp_path / "state/skills")
    (tmp_path / "bin").mkdir()
    return Rig(tmp_path, clock, shelf, settings_at(tmp_path))


def needing(rig: Rig, program: str) -> None:
    put(rig.workspace / "skills/needs", description=f"x\nmetadata: {{openclaw: {{requires: "
        f"{{bins: [{program}]}}}}}}")  # fmt: skip


def test_every_place_is_looked_at_and_the_path_is_told(rig: Rig) -> None:
    put(rig.workspace / "skills/w")
    put(rig.workspace / ".agents/skills/p")
    put(rig.root / "home/.agents/skills/h")
    put(rig.root / "state/skills/m")
    put(rig.root / "bundled/b")
    put(rig.root / "home/extra/e")
    env = {**rig.settings.env, "OPENCLAW_BUNDLED_SKILLS_DIR": str(rig.root / "bundled")}
    load = SkillsLoad(extra_dirs=("~/extra", "  "))
    settings = replace(rig.settings, env=env, skills=SkillsSettings(load=load))
    found = rig.look(settings)
    assert [part.name for part in found.of(None).parts] == ["b", "e", "h", "m", "p", "w"]
    said = {part.name: part.text for part in found.of(None).parts}
    assert "<location>~/.agents/skills/h/SKILL.md</location>" in said["h"]
    assert f"<location>{rig.root}/state/skills/m/SKILL.md</location>" in said["m"]
    outside = {"bundled/b", "home/extra/e", "home/.agents/skills/h", "state/skills/m"}
    assert {str(Path(f).relative_to(rig.root)) for f in found.folders(None)} == outside


def test_the_same_objects_until_something_changed(rig: Rig) -> None:
    for name in ("a", "b"):
        put(rig.workspace / "skills" / name)
    first = rig.look()
    assert rig.look() is first
    assert rig.look(replace(rig.settings, generation=2)) is first
    same = replace(rig.settings, env=dict(rig.settings.env), skills=SkillsSettings())
    assert rig.look(same) is first
    before = first.of(None)
    assert first.of(None) is before
    put(rig.workspace / "skills/b", description="does more")
    after = rig.look().of(None)
    assert after is not before
    assert [x is y for x, y in zip(before.parts, after.parts, strict=True)] == [True, False]
    off = replace(rig.settings, skills=SkillsSettings(entries={"b": SkillEntry(enabled=False)}))
    assert rig.names(off) == ["a"]


async def test_a_program_that_was_installed_is_seen_after_a_while(rig: Rig) -> None:
    needing(rig, "tool")
    assert rig.names() == []
    program = rig.root / "bin/tool"
    program.touch(mode=0o755)
    assert rig.names() == []
    await rig.clock.advance(31)
    assert rig.names() == ["needs"]


def test_an_agent_may_have_only_some(rig: Rig) -> None:
    for name in ("a", "b"):
        put(rig.workspace / "skills" / name)
    agents = AgentsSettings(list=(AgentEntry(id="main", skills=("b",)), AgentEntry(id="x"),
                                  AgentEntry(id="none", skills=())))  # fmt: skip
    settings = replace(rig.settings, agents=agents)
    assert rig.names(settings) == ["b"]
    assert rig.names(settings, "x") == ["a", "b"]
    assert rig.names(settings, "none") == []


@pytest.mark.parametrize(
    ("backend", "access", "told"),
    [
        (Backend.DOCKER, WorkspaceAccess.READ, {"w": "/agent/skills/w/SKILL.md"}),
        (Backend.DOCKER, WorkspaceAccess.NONE, {}),
        (Backend.DOCKER, WorkspaceAccess.WRITE, {"w": "/workspace/skills/w/SKILL.md"}),
        (Backend.BWRAP, WorkspaceAccess.READ, {"w": "{ws}/skills/w/SKILL.md"}),
        (Backend.BWRAP, WorkspaceAccess.NONE, {}),
        (None, WorkspaceAccess.WRITE, {}),
    ],
)
def test_a_sandbox_is_shown_only_what_it_can_read(
    rig: Rig, backend: Backend | None, access: WorkspaceAccess, told: Mapping[str, str]
) -> None:
    put(rig.workspace / "skills/w")
    put(rig.root / "home/.agents/skills/h")
    ws = str(rig.workspace)
    own = ws if access is WorkspaceAccess.WRITE else f"{rig.root}/box"
    box = Box("k", "n", "main", access, own, ws, BoxSettings(), backend)
    found = rig.look()
    parts = found.of(Place(box)).parts
    assert [part.name for part in parts] == list(told)
    for part in parts:
        assert f"<location>{told[part.name].format(ws=ws)}</location>" in part.text
    assert found.folders(Place(box)) == ()


async def test_the_model_is_shown_a_skill_and_may_read_it(bench: MakeBench, rig: Rig) -> None:
    """Also one that lies in the state directory, which tools never read otherwise."""
    b = await bench(ScriptedModel([]), file_tools())
    file = put(b.state.skills_dir / "mine")
    (b.state.root / "secret.txt").write_text("secret")
    asked = [("read", f'{{"path": "{file}"}}'),
             ("read", f'{{"path": "{b.state.root}/skills/mine/../../secret.txt"}}'),
             ("write", f'{{"path": "{file}", "content": "x"}}')]  # fmt: skip
    model = ScriptedModel([calls(*asked), says("Done.")])
    b = await bench(model, file_tools(), settings=replace(
        with_queue("followup", debounce_ms=0), env=rig.settings.env))  # fmt: skip
    shelf = SkillShelf(b.disk, b.clock, b.state.skills_dir)
    deps = b.agent.deps
    b.agent.briefer = Briefer(b.agent.prompts, deps.tools, Host("L", "x", "sh"), None, shelf)
    run_id = await b.send("go")
    await b.until(TraceKind.RUN_ENDED, run_id)
    first, second = model.requests
    names = [part.name for part in first.system]
    assert names[names.index("Skills") :][:3] == ["Skills", "mine", "Skills (end)"]
    assert first.system is second.system
    results = [turn.parts[0].text for turn in second.turns if turn.role == "tool"]
    assert "description: does it" in results[0]
    assert "state directory" in results[1] and "secret\n" not in results[1]
    assert "state directory" in results[2]
