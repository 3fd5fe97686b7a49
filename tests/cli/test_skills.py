"""`claw skills` and the methods behind it, with a real engine in this process (case SK-01)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from claw_engine.cli.skills import _named
from claw_engine.engine import Engine
from claw_engine.errors import InvalidRequest
from tests.cli.test_listing_verbs import Claw
from tests.cli.test_listing_verbs import claw as claw
from tests.cli.test_listing_verbs import engine as engine
from tests.skills.test_scan import put


async def test_list_info_and_the_switch(engine: Engine, claw: Claw, tmp_path: Path) -> None:
    _, out, _ = await claw("skills")
    assert out.startswith("No skills. They go into ")
    skills = tmp_path / "workspace/skills"
    put(skills / "weather", description="Tells the weather: today, tomorrow")
    put(skills / "broken").write_text("---\nname: broken\n---\n")
    put(skills / "mac", description="x\nmetadata: {openclaw: {os: [darwin]}}")
    code, out, _ = await claw("skills", "list")
    assert code == 0
    assert out.splitlines() == [
        "no   broken                it has no description: nobody could tell when it fits",
        "no   mac                   it is for darwin",
        "yes  weather               Tells the weather: today, tomorrow",
        "     note: its head is not YAML (line 3) and was read leniently: put such texts in quotes",
    ]
    _, out, _ = await claw("skills", "info", "mac")
    assert "shown    no: it is for darwin" in out and "missing  os darwin" in out
    _, out, _ = await claw("skills", "disable", "weather")
    assert out == "weather: disabled; it counts from the next run on.\n"
    _, out, _ = await claw("skills", "info", "weather", "--json")
    row = json.loads(out)
    assert (row["disabled"], row["eligible"], row["listed"]) == (True, False, False)
    assert row["reason"] == "switched off: skills.entries.weather.enabled"
    await claw("skills", "enable", "weather")
    _, out, _ = await claw("skills", "list", "--json")
    status = json.loads(out)
    assert [row["name"] for row in status["skills"] if row["listed"]] == ["weather"]
    assert status["managedSkillsDir"] == str(tmp_path / "skills")
    assert set(status["skills"][2]) >= {
        "name", "description", "source", "bundled", "filePath", "baseDir", "skillKey", "always",
        "disabled", "blockedByAllowlist", "eligible", "requirements", "missing", "configChecks",
        "install",
    }  # fmt: skip


async def test_what_is_not_there_is_said(claw: Claw) -> None:
    code, _, err = await claw("skills", "info", "none")
    assert code == 2 and "no skill 'none'" in err
    code, _, err = await claw("skills", "list", "--agent", "nobody")
    assert code == 1 and "unknown agent id" in err
    with pytest.raises(InvalidRequest):
        _named({"skills": []}, "x")


async def test_keys_are_refused_in_words(claw: Claw) -> None:
    params = '{"skillKey": "a", "apiKey": "k"}'
    code, _, err = await claw("call", "skills.update", params)
    assert code == 1 and "no keys or variables" in err
    code, _, err = await claw("call", "skills.update", '{"skillKey": "a"}')
    assert code == 1 and "enabled is missing" in err


async def test_the_doctor_names_what_is_no_skill(claw: Claw, tmp_path: Path) -> None:
    assert "skills" not in (await claw("doctor"))[1]
    put(tmp_path / "workspace/skills/good")
    put(tmp_path / "workspace/skills/bad").write_text("no head")
    _, out, _ = await claw("doctor")
    assert "1 of 2 skills are shown to the model. Not read: bad." in out
