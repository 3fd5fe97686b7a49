from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from claw_engine.config.sections.agents import AgentsSettings
from claw_engine.config.sections.bindings import BindingsSettings
from claw_engine.config.sections.session import SessionSettings
from claw_engine.config.settings import Settings
from claw_engine.paths import StateDir
from claw_engine.sessions import keyforms
from claw_engine.sessions.errors import InvalidSessionKey
from claw_engine.sessions.keys import canonical, chat_type, normalise_account_id, thread_parent
from claw_engine.sessions.routing import (
    MatchedBy,
    Origin,
    Peer,
    Routes,
    linked,
    routes_of,
    workspace_of,
)
from claw_engine.shapes import read


def routes(
    bindings: Sequence[Mapping[str, object]] = (),
    agents: Sequence[Mapping[str, object]] = (),
    **session: object,
) -> Routes:
    return routes_of(
        Settings(
            agents=read(AgentsSettings, {"list": list(agents)}),
            bindings=read(BindingsSettings, list(bindings)),
            session=read(SessionSettings, session),
        )
    )


def bind(agent: str, **match: object) -> dict[str, object]:
    return {"agentId": agent, "match": {"channel": "discord", **match}}


# -- keys of conversations ---------------------------------------------------------------------

DIRECT = [
    ("main", "agent:main:main"),
    ("per-peer", "agent:main:direct:u1"),
    ("per-channel-peer", "agent:main:telegram:direct:u1"),
    ("per-account-channel-peer", "agent:main:telegram:work:direct:u1"),
]


@pytest.mark.parametrize(("scope", "key"), DIRECT)
def test_direct_talks_have_the_key_of_their_scope(scope: str, key: str) -> None:
    origin = Origin("Telegram", "Work", Peer("dm", " U1 "))
    found = routes(dmScope=scope).route(origin)
    assert str(found.session_key) == key
    assert str(found.main_session_key) == "agent:main:main"
    assert (found.account_id, found.matched_by) == ("work", MatchedBy.DEFAULT)


@pytest.mark.parametrize("scope", [scope for scope, _ in DIRECT])
@pytest.mark.parametrize(
    ("peer", "key"),
    [
        (Peer("group", "-100123"), "agent:main:telegram:group:-100123"),
        (Peer("channel", "C7"), "agent:main:telegram:channel:c7"),
        (Peer("group", ""), "agent:main:telegram:group:unknown"),
        (None, "agent:main:main"),
        (Peer("direct", ""), "agent:main:main"),
    ],
)
def test_groups_have_their_own_key_in_every_scope(scope: str, peer: Peer | None, key: str) -> None:
    assert str(routes(dmScope=scope).route(Origin("telegram", peer=peer)).session_key) == key


def test_one_global_session_takes_everything() -> None:
    shared = routes(scope="global", agents=[{"id": "ops"}])
    found = shared.route(Origin("telegram", peer=Peer("group", "1")))
    assert (str(found.session_key), found.session_key.agent_id) == ("global", "ops")
    assert [str(shared.request_key(k)) for k in ("main", "agent:ops:main", "work")] == [
        "global",
        "global",
        "agent:ops:work",
    ]


ROOM, GROUP = canonical("slack:channel:c1"), canonical("telegram:group:-1")
FORMS = [
    (keyforms.thread_key(ROOM, "T.9"), "agent:main:slack:channel:c1:thread:t.9"),
    (keyforms.topic_key(GROUP, "7"), "agent:main:telegram:group:-1:topic:7"),
    (keyforms.cron_key("ops", "job-1"), "agent:ops:cron:job-1"),
    (keyforms.cron_key("ops", "job-1", "s1"), "agent:ops:cron:job-1:run:s1"),
    (keyforms.hook_key("main", "h1"), "agent:main:hook:h1"),
    (keyforms.subagent_key(canonical("main"), "u1"), "agent:main:subagent:u1"),
    (keyforms.acp_key("main", "u1"), "agent:main:acp:u1"),
    (keyforms.http_key("main", "openai", "u1"), "agent:main:openai:u1"),
    (keyforms.http_key("main", "openai", "u1", "Bob"), "agent:main:openai-user:bob"),
    (keyforms.http_key("main", "openresponses", "u1"), "agent:main:openresponses:u1"),
    (keyforms.node_key("main", "pi"), "agent:main:node-pi"),
]  # fmt: skip


@pytest.mark.parametrize(("key", "text"), FORMS, ids=[text for _, text in FORMS])
def test_every_form_is_canonical(key: object, text: str) -> None:
    assert str(key) == text
    assert str(canonical(text)) == text


def test_threads_know_their_parent_and_subagents_their_depth() -> None:
    base = canonical("slack:channel:c1")
    assert thread_parent(keyforms.thread_key(base, "t")) == base
    assert keyforms.thread_key(base, " ") == base
    child = keyforms.subagent_key(canonical("main"), "a")
    nested = keyforms.subagent_key(child, "b")
    assert (child.subagent_depth, nested.subagent_depth) == (1, 2)
    assert keyforms.cron_key("main", "j", "r").is_cron_run


@pytest.mark.parametrize(
    ("rest", "kind"),
    [
        ("telegram:group:1", "group"),
        ("slack:channel:1", "channel"),
        ("telegram:dm:1", "direct"),
        ("discord:guild-1:channel-2", "channel"),
        ("guild-1", "unknown"),
        ("hook:1", "unknown"),
    ],
)
def test_a_chat_type_is_read_from_a_key(rest: str, kind: str) -> None:
    assert chat_type(canonical(rest)) == kind


@pytest.mark.parametrize(
    ("raw", "account"),
    [
        ("", "default"), ("  ", "default"), ("Work Phone", "work-phone"), ("__proto__", "default"),
        ("constructor", "default"), ("é", "default"), ("main", "main"), ("--", "default"),
    ],
)  # fmt: skip
def test_account_ids_are_normalised(raw: str, account: str) -> None:
    assert normalise_account_id(raw) == account


ids = st.text(min_size=1, max_size=40)


@given(
    ids, st.sampled_from(["direct", "group", "channel"]), st.sampled_from([s for s, _ in DIRECT])
)
def test_a_routed_key_is_stable_whatever_the_peer_is_called(
    peer: str, kind: str, scope: str
) -> None:
    origin = Origin("telegram", "acc", Peer(kind, peer))
    try:
        key = routes(dmScope=scope).route(origin).session_key
    except InvalidSessionKey:
        return
    assert canonical(str(key)) == key
    assert routes(dmScope=scope).route(origin).session_key == key


# -- identity links ----------------------------------------------------------------------------

LINKS = {"alice": ["telegram:111", "Discord:222", "333"], "other": ["111"]}


@pytest.mark.parametrize(
    ("channel", "peer", "name"),
    [
        ("telegram", "111", "alice"),
        ("discord", "222", "alice"),
        ("telegram", "222", "222"),
        ("signal", "333", "alice"),
        ("discord", "111", "other"),
    ],
)
def test_a_linked_peer_has_the_name_of_the_person(channel: str, peer: str, name: str) -> None:
    assert linked(LINKS, channel, peer) == name
    scoped = routes(dmScope="per-peer", identityLinks=LINKS)
    origin = Origin(channel, peer=Peer("direct", peer))
    assert str(scoped.route(origin).session_key) == f"agent:main:direct:{name}"


def test_links_leave_groups_and_the_main_scope_alone() -> None:
    group = Origin("telegram", peer=Peer("group", "111"))
    made = routes(dmScope="per-peer", identityLinks=LINKS)
    assert str(made.route(group).session_key) == "agent:main:telegram:group:111"
    main = routes(identityLinks=LINKS)
    assert main.route(replace(group, peer=Peer("direct", "111"))).session_key.is_main


# -- bindings ----------------------------------------------------------------------------------

U1 = Peer("direct", "1")
TWO = [{"id": "a"}, {"id": "b"}]
AGENTS = [{"id": name} for name in ("first", "a", "b", "c", "d", "e", "f", "g")]
TIERS = [
    bind("g", accountId="*"),
    bind("f", accountId="default"),
    bind("e", teamId="t1"),
    bind("d", guildId="g1"),
    bind("c", guildId="g1", roles=["r1", "r2"]),
    bind("b", peer={"kind": "channel", "id": "parent"}),
    bind("a", peer={"kind": "dm", "id": "u1"}),
]
FULL = Origin(
    "discord",
    peer=Peer("direct", "u1"),
    parent_peer=Peer("channel", "parent"),
    guild_id="g1",
    team_id="t1",
    role_ids=("r2",),
)
CASES = [
    (FULL, "a", MatchedBy.PEER),
    (replace(FULL, peer=Peer("direct", "x")), "b", MatchedBy.PEER_PARENT),
    (replace(FULL, peer=None, parent_peer=None), "c", MatchedBy.GUILD_ROLES),
    (replace(FULL, peer=None, parent_peer=None, role_ids=()), "d", MatchedBy.GUILD),
    (replace(FULL, peer=None, parent_peer=None, guild_id=""), "e", MatchedBy.TEAM),
    (Origin("discord"), "f", MatchedBy.ACCOUNT),
    (Origin("discord", "other"), "g", MatchedBy.CHANNEL),
    (Origin("slack"), "first", MatchedBy.DEFAULT),
]


@pytest.mark.parametrize(("origin", "agent", "tier"), CASES, ids=[t.value for *_, t in CASES])
def test_the_first_tier_with_a_match_wins(origin: Origin, agent: str, tier: MatchedBy) -> None:
    for order in (TIERS, TIERS[::-1]):
        found = routes(order, AGENTS).route(origin)
        assert (found.agent_id, found.matched_by) == (agent, tier)
        assert found.session_key.agent_id == agent


@pytest.mark.parametrize(
    ("match", "origin", "matches"),
    [
        ({}, Origin("discord"), True),
        ({}, Origin("DISCORD", "Default"), True),
        ({}, Origin("discord", "work"), False),
        ({"accountId": "Work"}, Origin("discord", "work"), True),
        ({"accountId": "Work"}, Origin("discord"), False),
        ({"guildId": "g", "teamId": "t"}, Origin("discord", guild_id="g"), False),
        ({"guildId": "g", "roles": ["r"]}, Origin("discord", guild_id="g"), False),
        ({"roles": ["r"]}, Origin("discord", role_ids=["r"]), True),
        ({"roles": ["r"]}, Origin("discord"), False),
        ({"peer": {"kind": "direct"}}, Origin("discord", peer=Peer("direct", "")), False),
        ({"peer": {"id": "1"}}, Origin("discord", peer=Peer("direct", "1")), False),
        ({"peer": {"kind": "group", "id": "1"}}, Origin("discord", peer=U1), False),
        (
            {"peer": {"kind": "group", "id": "1"}, "guildId": "g"},
            Origin("discord", peer=Peer("group", "1")),
            False,
        ),
    ],
)  # fmt: skip
def test_every_stated_constraint_must_hold(
    match: dict[str, object], origin: Origin, matches: bool
) -> None:
    found = routes([bind("a", **match)], AGENTS).route(origin)
    assert (found.matched_by is not MatchedBy.DEFAULT) is matches


def test_inside_a_tier_the_order_of_the_file_counts() -> None:
    two = [bind("b", guildId="g"), bind("a", guildId="g")]
    assert routes(two, AGENTS).route(Origin("discord", guild_id="g")).agent_id == "b"


@pytest.mark.parametrize(
    ("agents", "expected"),
    [
        ([], "ghost"),
        ([{"id": "a"}, {"id": "b"}], "a"),
        ([{"id": "a"}, {"id": "B", "default": True}], "b"),
        ([{"id": "Ghost"}], "ghost"),
    ],
)
def test_an_agent_nobody_listed_becomes_the_default(
    agents: list[dict[str, object]], expected: str
) -> None:
    assert routes([bind("ghost")], agents).route(Origin("discord")).agent_id == expected


def test_the_default_agent_answers_bare_keys() -> None:
    made = routes(agents=[{"id": "a"}, {"id": "ops", "default": True}])
    assert str(made.request_key("Main")) == "agent:ops:main"
    assert str(made.request_key("agent:a:x")) == "agent:a:x"


@pytest.mark.parametrize(
    ("agents", "agent", "folder"),
    [
        ({}, "main", "/s/workspace"),
        ({"defaults": {"workspace": "/w"}}, "main", "/w"),
        ({"defaults": {"workspace": "/w"}, "list": TWO}, "a", "/w"),
        ({"defaults": {"workspace": "/w"}, "list": TWO}, "b", "/s/workspace-b"),
        ({"list": [{"id": "a"}, {"id": "B", "workspace": "/b"}]}, "b", "/b"),
        ({"list": [{"id": "a", "default": True}]}, "a", "/s/workspace"),
    ],
)  # fmt: skip
def test_each_agent_has_its_workspace(agents: dict[str, object], agent: str, folder: str) -> None:
    settings = Settings(agents=read(AgentsSettings, agents))
    assert workspace_of(settings, StateDir(Path("/s")), agent) == Path(folder)
