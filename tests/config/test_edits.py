"""Changes in a configuration's text: what is not meant stays, and secrets go and come back."""

from __future__ import annotations

import json

import pyjson5
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from claw_engine.config.edit import EditError, remove_value, set_value
from claw_engine.config.merge import merged, rewritten
from claw_engine.config.redact import MARKER, MarkerError, Redactor
from claw_engine.config.veil import unveiled, veiled, with_comments

TEXT = """{
  // mine
  gateway: { auth: { token: "abcdefgh123" }, port: 1 }, /* password: hunter22 */
  agents: {
    list: [ {id: "a"}, {id: "b", x: 1} ],
    // last
    defaults: {},
  },
}
"""

LEAVES = st.none() | st.integers(-9, 9) | st.text("ab\n'", max_size=3)
NAMES = st.text("xy-", min_size=1, max_size=2)
VALUES = st.recursive(
    LEAVES,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(NAMES, below, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=4)


@settings(suppress_health_check=[HealthCheck.too_slow])  # says how busy the machine is
@given(OBJECTS, OBJECTS, st.sampled_from([None, 1]))
def test_a_rewritten_text_says_the_new_value(
    old: dict[str, object], new: dict[str, object], indent: int | None
) -> None:
    text = rewritten(json.dumps(old, indent=indent), old, new)
    assert pyjson5.decode(text) == new
    json.loads(text)  # strict JSON stays strict


@pytest.mark.parametrize(
    "path",
    [("gateway",), ("gateway", "auth"), ("gateway", "port"), ("agents",), ("agents", "defaults")],
)
def test_taking_out_keeps_comments(path: tuple[str, ...]) -> None:
    out = remove_value(TEXT, path)
    assert "// mine" in out and "/* password" in out
    want = pyjson5.decode(TEXT)
    below = want
    for step in path[:-1]:
        below = below[step]
    del below[path[-1]]
    assert pyjson5.decode(out) == want


def test_a_patch_merges_lists_by_id_and_null_takes_out() -> None:
    old = pyjson5.decode(TEXT)
    patch = {"gateway": {"port": None}, "agents": {"list": [{"id": "b", "x": 2}, {"id": "c"}]}}
    new = merged(old, patch)
    assert isinstance(new, dict)
    assert new["agents"]["list"] == [{"id": "a"}, {"id": "b", "x": 2}, {"id": "c"}]
    assert new["gateway"] == {"auth": {"token": "abcdefgh123"}}
    out = rewritten(TEXT, old, new)
    assert pyjson5.decode(out) == new
    assert "// mine" in out and "// last" in out


def test_new_keys_follow_the_text_and_a_new_file_is_strict() -> None:
    assert json.loads(set_value("", ("gateway", "auth"), 1)) == {"gateway": {"auth": 1}}
    assert "port: 2" in set_value("{gateway: {}}", ("gateway", "port"), 2)
    with pytest.raises(EditError, match="no item"):
        set_value("{a: {}}", ("a", 0), 1)


def test_secrets_go_and_come_back_with_every_character() -> None:
    """SE-05: what clients see of the file."""
    redactor = Redactor()
    shown = veiled(TEXT, redactor)
    assert shown is not None
    assert "abcdefgh123" not in shown and "hunter22" not in shown
    assert shown.count(MARKER) == 1
    stored = pyjson5.decode(TEXT)
    assert with_comments(unveiled(shown, stored), TEXT, redactor) == TEXT


def test_a_marker_goes_to_its_own_item_or_nowhere() -> None:
    stored = {"list": [{"id": "a", "token": "one"}, {"id": "b", "token": "two"}]}
    moved = json.dumps({"list": [{"id": "b", "token": MARKER}]})
    assert json.loads(unveiled(moved, stored)) == {"list": [{"id": "b", "token": "two"}]}
    for wrong in (
        {"list": [{"id": "c", "token": MARKER}]},
        {"list": [{"token": MARKER}]},
        {"other": MARKER},
        {"list": f"x {MARKER}"},
    ):
        with pytest.raises(MarkerError):
            unveiled(json.dumps(wrong), stored)
