from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_engine.sessions.errors import InvalidSessionKey
from claw_engine.sessions.keys import (
    MAX_KEY,
    canonical,
    chat_type,
    normalise_agent_id,
    thread_parent,
    valid_session_id,
)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("main", "agent:main:main"),
        ("MAIN", "agent:main:main"),
        ("  Main ", "agent:main:main"),
        ("Work", "agent:main:work"),
        ("hook:7F", "agent:main:hook:7f"),
        ("agent:main:main", "agent:main:main"),
        ("Agent:Ops:Telegram:Direct:42", "agent:ops:telegram:direct:42"),
        ("agent:My Agent:x", "agent:my-agent:x"),
        ("agent:main:a::b", "agent:main:a::b"),
        ("agent", "agent:main:agent"),
        ("agents:x", "agent:main:agents:x"),
        ("global", "global"),
        ("Unknown", "unknown"),
        ("telegram:direct:9007199254740993", "agent:main:telegram:direct:9007199254740993"),
        ("wechat:direct:A:😀", "agent:main:wechat:direct:a:😀"),
    ],
)
def test_every_spelling_has_one_canonical_form(key: str, expected: str) -> None:
    assert str(canonical(key)) == expected


def test_bare_keys_belong_to_the_default_agent() -> None:
    assert canonical("main", "Ops").text == "agent:ops:main"
    assert canonical("global", "ops").agent_id == "ops"


@pytest.mark.parametrize(
    "key",
    [
        "",
        "  ",
        "agent:",
        "agent:main",
        "agent:main:",
        "agent::x",
        "agent: :x",
        "AGENT:MAIN:",
        "agent:main:::",
        "a\nb",
        "a\0b",
        "a\x1b[31m",
        "a\u2028b",
        "\ud800",
        "x" * (MAX_KEY + 1),
    ],
)
def test_what_cannot_be_a_key_is_refused(key: str) -> None:
    with pytest.raises(InvalidSessionKey) as caught:
        canonical(key)
    assert caught.value.code == "INVALID_REQUEST"


@given(st.text(max_size=60) | st.text(max_size=40).map(lambda t: f"agent:{t}"))
def test_canonical_is_idempotent_lower_case_and_well_formed(key: str) -> None:
    try:
        once = canonical(key)
    except InvalidSessionKey:
        return
    assert canonical(once.text) == once
    assert once.text == once.text.lower()
    assert re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", once.agent_id)
    if once.text not in ("global", "unknown"):
        assert once.text == f"agent:{once.agent_id}:{once.rest}"


@given(st.text(alphabet=st.characters(codec="ascii", categories=["L", "N"]), min_size=1))
def test_case_never_makes_a_second_session(name: str) -> None:
    assert canonical(name.upper()) == canonical(name.lower())


@given(st.text(max_size=100))
def test_an_agent_id_is_always_valid_and_stable(raw: str) -> None:
    agent = normalise_agent_id(raw)
    assert re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", agent)
    assert normalise_agent_id(agent) == agent


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("main", "direct"),
        ("agent:main:telegram:group:-100", "group"),
        ("agent:main:slack:channel:c1:thread:9", "channel"),
        ("agent:main:direct:42", "direct"),
        ("agent:main:cron:job", "unknown"),
    ],
)
def test_the_chat_type_is_in_the_key(key: str, kind: str) -> None:
    assert chat_type(canonical(key)) == kind


def test_threads_cron_runs_and_depth() -> None:
    thread = canonical("agent:main:slack:channel:c1:thread:9")
    assert thread_parent(thread) == canonical("agent:main:slack:channel:c1")
    assert thread_parent(canonical("main")) is None
    assert canonical("agent:main:cron:j:run:u").is_cron_run
    assert not canonical("agent:main:cron:j").is_cron_run
    assert canonical("agent:main:subagent:a:subagent:b").subagent_depth == 2
    assert canonical("main").subagent_depth == 0


@pytest.mark.parametrize(
    ("value", "valid"),
    [
        ("a1", True),
        ("A.b-C_9", True),
        ("", False),
        (".hidden", False),
        ("a/b", False),
        ("a" * 128, True),
        ("a" * 129, False),
        (None, False),
        ("é", False),
        ("a\n", False),
    ],
)
def test_a_session_id_can_be_a_file_name(value: object, valid: bool) -> None:
    assert valid_session_id(value) is valid
