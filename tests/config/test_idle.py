"""Right keys that nobody acts on are told with their place, and the list of them stays true."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import fields

from claw_engine.config.idle import IDLE, _inside
from claw_engine.config.problems import ProblemKind, format_path
from claw_engine.config.read import SECTIONS
from claw_engine.config.sections.base import Section
from claw_engine.notices import problem_notices
from tests.config.support import Config

PACKAGE = Path(__file__).parents[2] / "claw_engine"


def idle(config: Config, text: str) -> list[tuple[str, int]]:
    config.write(text)
    problems = config.store().load().problems
    return [(format_path(p.path), p.line) for p in problems if p.kind is ProblemKind.IDLE_KEY]


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("{}", []),
        ("{channels: {telegram: {botToken: 'x'}}}", ["channels"]),
        ("{$schema: 's', meta: {}, wizard: {}, env: {A: 'b'}}", []),
        ("{agents: {defaults: {model: 'a/b'}}}", []),
        (
            "{agents: {defaults: {model: {primary: 'a/b', fallbacks: ['c/d']}}}}",
            ["agents.defaults.model.fallbacks"],
        ),
        (
            "{agents: {defaults: {heartbeat: {every: '1h'}}}}",
            ["agents.defaults.heartbeat"],
        ),
        (
            "{agents: {list: [{id: 'a', skills: []}, {id: 'b', agentDir: 'x'}]}}",
            ["agents.list[1].agentDir"],
        ),
        ("{skills: {entries: {a: {enabled: false, env: {}}}}}", ["skills.entries.a.env"]),
        ("{models: {providers: {x: {authHeader: true}}}}", ["models.providers.x.authHeader"]),
        ("{logging: {level: 'info', consoleLevel: 'warn'}}", ["logging.consoleLevel"]),
        ("{logging: {redactSensitive: 'off'}}", ["logging.redactSensitive"]),
        ("{session: {resetTriggers: ['/fresh']}}", []),
        ("{tools: {alsoAllow: ['x'], media: {}}}", ["tools.media"]),
        ("{agnets: {}}", []),
    ],
)
def test_what_nobody_acts_on_is_told(config: Config, text: str, places: list[str]) -> None:
    assert [path for path, _ in idle(config, text)] == places


def test_the_place_is_told_and_one_notice_says_it_all(config: Config) -> None:
    text = "{\n ui: {},\n web: {},\n logging: {\n file: 'x'},\n audio: {}, talk: {}}"
    found = idle(config, text)
    assert found == [("ui", 2), ("web", 3), ("logging.file", 5), ("audio", 6), ("talk", 6)]
    (notice,) = problem_notices(config.store().load())
    assert (notice.level, notice.sticky) == ("info", True)
    assert "ui, web, logging.file and 2 more" in notice.title
    assert len(notice.text.splitlines()) == 5
    assert ":5:" in notice.text.splitlines()[2]


def places(kind: object, place: str) -> Iterator[tuple[str, str]]:
    """Every leaf the sections read: its place and its name in the code."""
    how, inner = _inside(kind)
    if how == "map":
        yield from places(inner, f"{place}.*")
    elif how == "list":
        yield from places(inner, f"{place}.[]")
    elif how == "section":
        assert isinstance(inner, type) and issubclass(inner, Section)
        for field in fields(inner):
            below = f"{place}.{field.encode_name}"
            if field.name == "stated":
                continue
            within = list(places(field.type, below))
            yield from within or [(below, field.name)]


def used(name: str) -> bool:
    return re.search(rf"\.{name}\b|\"{name}\"", CODE) is not None


CODE = "\n".join(
    path.read_text()
    for path in sorted(PACKAGE.rglob("*.py"))
    if path.parts[len(PACKAGE.parts)] != "config" or path.parent.name == "sections"
)


def test_every_key_that_is_read_is_used_or_listed() -> None:
    """By name only: a common name that something else has too escapes this."""
    leaves = [leaf for name, kind in SECTIONS.items() for leaf in places(kind, name)]
    unused = {place for place, name in leaves if not used(name)}
    claw = {"claw.approvalTimeoutMs"}  # the loader itself hands it on
    assert unused - claw - IDLE == set()
    known = {place for place, _ in leaves}
    assert known >= IDLE
