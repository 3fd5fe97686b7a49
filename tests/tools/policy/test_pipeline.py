"""TP-03 and the policy pipeline: order, lists, groups, aliases, and the rule that decided."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_engine.tools.policy.circumstances import circumstances
from claw_engine.tools.policy.names import CATALOG, GROUPS, Present, Vocabulary, matches, normal
from claw_engine.tools.policy.pipeline import Step, Verdict, decide, doubts, verdicts
from claw_engine.tools.policy.steps import Circumstances, steps_of
from tests.tools.policy.support import settings_of

ALL = tuple(known.id for known in CATALOG)
PATCH = {"exec": {"applyPatch": {"enabled": True}}}
WORDS = Vocabulary(
    (*(Present(name) for name in ALL), Present("weather", "sky"), Present("tide", "sky"),
     Present("whatsapp_login", "wa", owner_only=True))
)  # fmt: skip


def left(
    tools: Mapping[str, object] | None = None,
    there: Circumstances | None = None,
    *,
    agent: Mapping[str, object] | None = None,
) -> set[str]:
    """Names the policy leaves of the whole catalogue, a plugin's tools and an owner's tool."""
    return {v.tool for v in judged(tools, there, agent=agent) if v.allowed}


def judged(
    tools: Mapping[str, object] | None = None,
    there: Circumstances | None = None,
    *,
    agent: Mapping[str, object] | None = None,
) -> tuple[Verdict, ...]:
    config: dict[str, object] = {"tools": {**PATCH, **(tools or {})}}
    if agent is not None:
        config["agents"] = {"list": [{"id": "main", "tools": agent}]}
    there = there or Circumstances("main", "openai", "gpt")
    return verdicts(steps_of(settings_of(config), there), WORDS, owner=there.owner)


def of(name: str, found: tuple[Verdict, ...]) -> Verdict:
    return next(v for v in found if v.tool == name)


EVERYTHING = {tool.name for tool in WORDS.present}
CODING = {
    "read", "write", "edit", "apply_patch", "exec", "process", "memory_search", "memory_get",
    "sessions_list", "sessions_history", "sessions_send", "sessions_spawn", "subagents",
    "session_status", "cron", "image",
}  # fmt: skip


@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        ({}, EVERYTHING),
        ({"allow": []}, EVERYTHING),
        ({"profile": "full"}, EVERYTHING),
        ({"profile": "minimal"}, {"session_status"}),
        ({"profile": "coding"}, CODING),
        (
            {"profile": "messaging"},
            {"sessions_list", "sessions_history", "sessions_send", "session_status", "message"},
        ),
        ({"profile": "minimal", "alsoAllow": ["exec", "group:web"]},
         {"session_status", "exec", "apply_patch", "web_search", "web_fetch"}),
        ({"allow": ["read", "Exec "]}, {"read", "exec", "apply_patch"}),
        ({"allow": ["bash"]}, {"exec", "apply_patch"}),
        ({"allow": ["sessions_*"]},
         {"sessions_list", "sessions_history", "sessions_send", "sessions_spawn"}),
        ({"allow": ["group:fs"]}, {"read", "write", "edit", "apply_patch"}),
        ({"alsoAllow": ["weather"]}, EVERYTHING),
        ({"allow": ["read", "sky"]}, {"read", "weather", "tide"}),
        ({"allow": ["read", "group:plugins"]}, {"read", "weather", "tide", "whatsapp_login"}),
        ({"allow": ["weather"]}, EVERYTHING),
        ({"allow": ["browser"], "deny": ["browser"]}, set()),
        ({"deny": ["bash"]}, EVERYTHING - {"exec"}),
        ({"deny": ["group:runtime"]}, EVERYTHING - {"exec", "process"}),
        ({"deny": ["apply-patch", "EDIT"]}, EVERYTHING - {"apply_patch", "edit"}),
        ({"deny": ["*"]}, set()),
        ({"deny": ["exec:rm*"]}, EVERYTHING),
        ({"allow": ["exec"], "deny": ["Exec "]}, {"apply_patch"}),
        ({"deny": ["group:openclaw"]},
         {"read", "write", "edit", "apply_patch", "exec", "process", "weather", "tide",
          "whatsapp_login"}),
    ],
)  # fmt: skip
def test_lists_of_the_whole_engine(tools: dict[str, object], expected: set[str]) -> None:
    assert left(tools) == expected


@pytest.mark.parametrize(
    ("tools", "agent", "tool", "step", "source"),
    [
        ({"profile": "minimal", "deny": ["exec"]}, None, "exec", "profile",
         "tools.profile=minimal"),
        ({"deny": ["exec"]}, {"deny": ["exec"]}, "exec", "global", "tools"),
        ({}, {"deny": ["exec"]}, "exec", "agent", "agents.list[main].tools"),
        ({"profile": "coding"}, {"profile": "messaging"}, "exec", "profile",
         "agents.list[main].tools.profile=messaging"),
        ({"byProvider": {"openai": {"profile": "minimal"}}}, None, "exec", "provider profile",
         "tools.byProvider[openai].profile=minimal"),
        ({"byProvider": {"OpenAI": {"deny": ["exec"]}}}, None, "exec", "global provider",
         "tools.byProvider[OpenAI]"),
        ({}, {"byProvider": {"openai/gpt": {"deny": ["exec"]}}}, "exec", "agent provider",
         "agents.list[main].tools.byProvider[openai/gpt]"),
        ({"exec": {}}, None, "apply_patch", "switch", "tools.exec.applyPatch"),
    ],
)  # fmt: skip
def test_the_first_step_that_takes_a_tool_away_is_named(
    tools: dict[str, object], agent: dict[str, object] | None, tool: str, step: str, source: str
) -> None:
    verdict = of(tool, judged(tools, agent=agent))
    assert (verdict.allowed, verdict.step, verdict.source) == (False, step, source)
    assert source in verdict.sentence()


def test_a_model_entry_comes_before_its_providers() -> None:
    table = {"byProvider": {"openai": {"deny": ["read"]}, "openai/gpt": {"deny": ["write"]}}}
    assert left(table) == EVERYTHING - {"write"}
    assert left(table, Circumstances("main", "openai", "o9")) == EVERYTHING - {"read"}
    assert left(table, Circumstances("main", "other", "gpt")) == EVERYTHING - {"apply_patch"}


def test_an_agent_cannot_take_back_what_the_engine_denies() -> None:
    assert "exec" not in left({"deny": ["exec"]}, agent={"allow": ["exec", "read"]})
    assert left({"profile": "minimal"}, agent={"alsoAllow": ["read"]}) == {"session_status", "read"}


@pytest.mark.parametrize(
    ("provider", "model", "patch", "allowed"),
    [
        ("openai", "gpt", {"enabled": True}, True),
        ("openai-codex", "gpt", {"enabled": True}, True),
        ("openai", "gpt", {}, False),
        ("anthropic", "claude", {"enabled": True}, False),
        ("openai", "gpt", {"enabled": True, "allowModels": ["GPT"]}, True),
        ("openai", "gpt", {"enabled": True, "allowModels": ["openai/gpt"]}, True),
        ("openai", "gpt", {"enabled": True, "allowModels": ["other"]}, False),
    ],
)
def test_the_switch_of_apply_patch(
    provider: str, model: str, patch: dict[str, object], allowed: bool
) -> None:
    there = Circumstances("main", provider, model)
    found = judged({"exec": {"applyPatch": patch}}, there)
    assert of("apply_patch", found).allowed is allowed


def test_a_sandboxed_session_has_the_sandbox_list_and_no_more() -> None:
    there = Circumstances("main", "openai", "gpt", sandboxed=True)
    assert left({}, there) == {
        "exec", "process", "read", "write", "edit", "apply_patch", "image", "sessions_list",
        "sessions_history", "sessions_send", "sessions_spawn", "subagents", "session_status",
    }  # fmt: skip
    own = {"sandbox": {"tools": {"allow": ["read", "browser"]}}}
    assert left(own, there) == {"read", "browser"}
    more = {"sandbox": {"tools": {"alsoAllow": ["web_fetch", "cron"]}}}
    assert {"web_fetch", "cron", "exec"} <= left(more, there)
    shut = {"sandbox": {"tools": {"allow": ["read"], "deny": ["read"]}}}
    assert left(shut, there) == set()
    assert left(own, Circumstances("main", "openai", "gpt")) == EVERYTHING
    agent = {"sandbox": {"tools": {"allow": ["exec"]}}}
    assert left(own, there, agent=agent) == {"exec", "apply_patch"}


def test_sub_agents_lose_what_is_not_theirs_and_leaves_lose_more() -> None:
    always = {
        "gateway", "agents_list", "whatsapp_login", "session_status", "cron", "memory_search",
        "memory_get", "sessions_send",
    }  # fmt: skip
    leaf = {"sessions_list", "sessions_history", "sessions_spawn"}
    there = Circumstances("main", "openai", "gpt", depth=1)
    assert left({}, there) == EVERYTHING - always - leaf
    lifted = {"subagents": {"tools": {"alsoAllow": ["cron", "sessions_list"], "deny": ["exec"]}}}
    assert left(lifted, there) == (EVERYTHING - always - leaf | {"cron", "sessions_list"}) - {
        "exec"
    }
    only = {"subagents": {"tools": {"allow": ["read", "cron"]}}}
    assert left(only, there) == {"read", "cron"}

    deeper = settings_of({"agents": {"defaults": {"subagents": {"maxSpawnDepth": 2}}}})
    found = verdicts(steps_of(deeper, there), WORDS, owner=True)
    assert {v.tool for v in found if v.allowed} >= leaf


def test_only_the_owner_has_the_owners_tools() -> None:
    guest = Circumstances("main", "openai", "gpt", owner=False)
    assert left({}, guest) == EVERYTHING - {"cron", "gateway", "whatsapp_login"}
    assert "owner" in of("cron", judged({"alsoAllow": ["cron"]}, guest)).sentence()


GROUP = "agent:main:telegram:group:-100"


@pytest.mark.parametrize(
    ("channels", "extra", "expected"),
    [
        ({"groups": {"-100": {"tools": {"allow": ["read"]}}}}, {}, {"read"}),
        ({"groups": {"*": {"tools": {"deny": ["exec"]}}}}, {}, EVERYTHING - {"exec"}),
        ({"groups": {"-100": {}, "*": {"tools": {"allow": ["read"]}}}}, {}, {"read"}),
        ({"groups": {"-100": {"tools": "all"}}}, {}, set()),
        ({"groups": {"-100": {"tools": {"allow": [1]}}}}, {}, set()),
        (
            {"groups": {"-100": {"tools": {"deny": ["*"]},
                                 "toolsBySender": {"@Ann": {"allow": ["exec"]}}}}},
            {"senderId": "ann"},
            {"exec", "apply_patch"},
        ),
        ({"groups": {"-200": {"tools": {"deny": ["*"]}}}}, {}, EVERYTHING),
    ],
)  # fmt: skip
def test_a_group_chat_has_its_own_lists(
    channels: dict[str, object], extra: dict[str, object], expected: set[str]
) -> None:
    settings = settings_of({"tools": PATCH, "channels": {"telegram": channels}})
    there = circumstances(
        settings, GROUP, "main", source="console", extra=extra, provider="openai", model="gpt"
    )
    found = verdicts(steps_of(settings, there), WORDS, owner=True)
    assert {v.tool for v in found if v.allowed} == expected


@pytest.mark.parametrize(
    ("key", "mode", "boxed"),
    [
        ("agent:main:main", "off", False),
        ("agent:main:main", "non-main", False),
        ("agent:main:work", "non-main", True),
        ("agent:main:main", "all", True),
        ("agent:other:main", "all", False),
    ],
)
def test_the_circumstances_of_a_session(key: str, mode: str, boxed: bool) -> None:
    agents = {
        "defaults": {"sandbox": {"mode": mode}},
        "list": [{"id": "main"}, {"id": "other", "sandbox": {"mode": "off"}}],
    }
    agent = key.split(":")[1]
    assert circumstances(settings_of({"agents": agents}), key, agent).sandboxed is boxed


def test_a_message_from_outside_is_never_the_owners() -> None:
    settings = settings_of({})
    assert circumstances(settings, "main", "main", source="console").owner
    assert not circumstances(settings, "main", "main", source="hook").owner
    extra = {"externalContent": "mail", "senderIsOwner": True}
    assert not circumstances(settings, "main", "main", source="console", extra=extra).owner
    deep = "agent:main:subagent:x:subagent:y"
    assert circumstances(settings, deep, "main", source="gateway").depth == 2


@pytest.mark.parametrize(
    ("tools", "word"),
    [
        ({"deny": ["exec:rm*"]}, "exec-approvals.json"),
        ({"deny": ["rm -rf"]}, "exec-approvals.json"),
        ({"deny": ["group:net"]}, "no such group"),
        ({"deny": ["web_fech"]}, "did you mean web_fetch"),
        ({"deny": ["frobnicate"]}, "no tool has this name"),
        ({"allow": ["weather"]}, "none of the engine's own tools"),
    ],
)
def test_entries_without_effect_are_told_with_the_right_place(
    tools: dict[str, object], word: str
) -> None:
    found = doubts(steps_of(settings_of({"tools": tools}), Circumstances("main")), WORDS)
    assert any(word in doubt.text for doubt in found), found
    assert all(doubt.source == "tools" for doubt in found)


@pytest.mark.parametrize("entry", ["Exec ", "bash", "group:runtime", "*", "sess*", "sky", "cron"])
def test_entries_that_mean_something_are_not_doubted(entry: str) -> None:
    steps = steps_of(settings_of({"tools": {"deny": [entry]}}), Circumstances("main"))
    assert doubts(steps, WORDS) == ()


NAMES = st.sampled_from([*ALL, "bash", "weather", "sky", *GROUPS, "*", "web_*", "nothing", "x:y"])
LISTS = st.lists(NAMES, max_size=4).map(tuple)
STEPS = st.lists(
    st.builds(Step, st.just("s"), st.just("here"), LISTS, LISTS, st.booleans()), max_size=5
)


@given(STEPS, st.booleans())
def test_every_step_can_only_take_away(steps: list[Step], owner: bool) -> None:
    allowed = [
        {v.tool for v in verdicts(steps[:n], WORDS, owner=owner) if v.allowed}
        for n in range(len(steps) + 1)
    ]
    for before, after in pairwise(allowed):
        assert after <= before
    assert allowed[-1] <= {v.tool for v in verdicts(steps, WORDS, owner=True) if v.allowed}


@given(STEPS, NAMES)
def test_a_further_denial_never_gives_a_tool(steps: list[Step], entry: str) -> None:
    denied = [*steps, Step("s", "more", deny=(entry,))]
    for tool in WORDS.present:
        after = decide(tool, denied, WORDS, owner=True)
        if any(matches(p, normal(tool.name)) for p in WORDS.expand(entry)):
            assert not after.allowed
        assert not after.allowed or decide(tool, steps, WORDS, owner=True).allowed


def test_only_the_star_is_special() -> None:
    assert matches("web_*", "web_fetch")
    assert not matches("web_?etch", "web_fetch")
    assert not matches("[w]eb_fetch", "web_fetch")
    assert matches("*", "anything")
    assert not matches("web", "web_fetch")
