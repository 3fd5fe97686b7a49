"""SK-01: what people write at the head of a SKILL.md is read; what is hostile does nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_engine.skills.frontmatter import MAX_FRONT, read_front
from claw_engine.skills.model import BadSkill, Front, Install, Requires


def front(head: str, folder: str = "a") -> Front:
    return read_front(f"---\n{head}\n---\nBody.", folder)


@pytest.mark.parametrize(
    ("text", "description"),
    [
        ("---\nname: a\ndescription: Use when: (1) a, (2) b\n---\n", "Use when: (1) a, (2) b"),
        ("---\nname: a\ndescription:\tTabs are: fine\n---\n", "Tabs are: fine"),
        ("---\nname: a\ndescription: one\n\ttwo: three\n---\n", "one two: three"),
        ("\ufeff---\r\nname: a\r\ndescription: Windows: yes\r\n---\r\n", "Windows: yes"),
        ("---\nname: a\ndescription: >\n  folded\n  text\n---\n", "folded text"),
        ("---\nname: a\ndescription: 'quoted: fine'\n---\n", "quoted: fine"),
        ('---\nname: a\ndescription: "Half" and: more\n---\n', '"Half" and: more'),
        ("---\nname: a\ndescription: ends so: \n...\n", "ends so:"),
        ("---\nname: a\ndescription: @at first\n---\n", "@at first"),
        ("---  \nname: a\ndescription: x # a comment: here\n---\n", "x"),
        ("---\nname: a\ndescription: bi\u202edi and\u0085more\n---\n", "bi di and more"),
    ],
)
def test_what_people_write_is_read(text: str, description: str) -> None:
    assert read_front(text, "a").description == description


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("name: a\n", "does not begin with a head"),
        ("", "does not begin with a head"),
        ("---\nname: a\ndescription: b\n", "has no end"),
        ("---", "does not begin"),
        ("---\n---\n", "has no description"),
        ("---\nname: a\n---\n", "has no description"),
        ("---\nname: a\ndescription: ''\n---\n", "has no description"),
        ("---\nname: [a]\ndescription: b\n---\n", "name is not a text"),
        ("---\nname: a\ndescription: [b]\n---\n", "description is not a text"),
        ("---\nname: a/../b\ndescription: b\n---\n", "characters that no name has"),
        ('---\nname: "a\\nb"\ndescription: b\n---\n', "characters that no name has"),
        ("---\nname: a\u200bb\ndescription: b\n---\n", "characters that no name has"),
        (f"---\nname: {'n' * 65}\ndescription: b\n---\n", "longer than 64"),
        ("---\nname: a\ndescription: \0b\n---\n", "not text"),
        ("---\nname: a\ndescription: {[}\n---\n", "not YAML (line 3)"),
        ("---\n- a\n- b\n---\n", "not YAML"),
        (f"---\nname: a\ndescription: {'d' * MAX_FRONT}\n---\n", "longer than 32768"),
        ("---\n" + "[" * 20_000 + "\n---\n", "not YAML"),
        ("---\n" + "- " * 10_000 + "\n---\n", "not YAML"),
    ],
)
def test_what_cannot_be_used_says_why(text: str, reason: str) -> None:
    with pytest.raises(BadSkill, match=reason.replace("(", r"\(").replace(")", r"\)")):
        read_front(text, "a")


def test_a_tag_makes_no_object(tmp_path: Path) -> None:
    trap = tmp_path / "p"
    for value in (f'!!python/object/apply:os.system ["touch {trap}"]',
                  f"!!python/object/new:os.system ['touch {trap}']"):  # fmt: skip
        with pytest.raises(BadSkill):
            front(f"name: a\ndescription: {value}")
        assert front(f"name: a\ndescription: b\nmetadata: {value}").requires == Requires()
    assert not trap.exists()


def test_a_name_from_the_folder_and_one_that_differs_are_told() -> None:
    assert front("description: b").name == "a"
    assert "no name" in front("description: b").warnings[0]
    assert front("name: other\ndescription: b").name == "other"
    assert "another name: a" in front("name: other\ndescription: b").warnings[0]


def test_a_long_description_is_cut() -> None:
    cut = front(f"name: a\ndescription: {'d' * 2000}")
    assert len(cut.description) == 1024 and cut.description.endswith("…")
    assert cut.warnings == ("its description is cut at 1024 characters",)


META = {
    "openclaw": {
        "emoji": "🔧", "always": True, "skillKey": "k", "primaryEnv": "A_KEY", "os": ["linux"],
        "requires": {"bins": ["jq"], "anyBins": ["rg", "grep"], "env": ["A"], "config": ["a.b"]},
        "install": [{"id": "brew", "kind": "brew", "label": "Get it", "bins": ["jq"]}, {}, 3],
    }
}  # fmt: skip
READ = Requires(("jq",), ("rg", "grep"), ("A",), ("a.b",), ("linux",))


@pytest.mark.parametrize(
    "metadata",
    [
        json.dumps(META),
        "'" + json.dumps(META) + "'",
        json.dumps(META, indent=2).replace("\n", "\n  "),
        "\n  openclaw:\n    emoji: 🔧\n    always: yes\n    skillKey: k\n    primaryEnv: A_KEY\n"
        "    os: [linux]\n    requires: {bins: jq, anyBins: [rg, grep], env: [A], config: [a.b]}\n"
        "    install:\n      - {id: brew, kind: brew, label: Get it, bins: [jq]}",
        json.dumps({"clawdbot": META["openclaw"]}),
        '"{openclaw: ' + json.dumps(META["openclaw"]).replace('"', "'") + ',}"',
    ],
)
def test_metadata_in_every_spelling(metadata: str) -> None:
    found = front(f"name: a\ndescription: b\nmetadata: {metadata}")
    assert found.requires == READ
    assert (found.key, found.primary_env, found.always, found.emoji) == ("k", "A_KEY", True, "🔧")
    assert found.install == (Install("brew", "brew", "Get it", ("jq",)),)
    assert all("read leniently" in warning for warning in found.warnings)


def test_metadata_survives_a_head_that_had_to_be_mended() -> None:
    found = front(f"name: a\ndescription: when: now\nmetadata: {json.dumps(META)}")
    assert found.requires == READ
    assert found.warnings[0].startswith("its head is not YAML (line 3)")


@pytest.mark.parametrize(
    ("head", "for_model", "for_user"),
    [
        ("", True, True),
        ("disable-model-invocation: true", False, True),
        ("disable-model-invocation: false\nuser-invocable: no", True, False),
        ("user-invocable: 'False'", True, False),
    ],
)
def test_who_may_call_it(head: str, for_model: bool, for_user: bool) -> None:
    found = front(f"name: a\ndescription: b\n{head}")
    assert (found.for_model, found.for_user) == (for_model, for_user)


def test_an_alias_bomb_is_only_text() -> None:
    levels = ["a0: &a0 [x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    merges = ["m0: &m0 {k: v}"]
    merges += [f"m{n}: &m{n} {{<<: [*m{n - 1}, *m{n - 1}]}}" for n in range(1, 40)]
    bomb = "\n".join([*levels, *merges])
    found = front(f"{bomb}\nname: a\ndescription: b\nmetadata: {{openclaw: {{os: *a29}}}}")
    assert found.requires == Requires()


@given(st.text(max_size=400) | st.binary(max_size=400).map(lambda b: b.decode("utf-8", "replace")))
def test_nothing_breaks_it(junk: str) -> None:
    for text in (junk, f"---\n{junk}\n---\n", f"---\nname: a\ndescription: {junk}\n---\n"):
        try:
            found = read_front(text, "a")
        except BadSkill:
            continue
        assert found.name and "\n" not in found.description
