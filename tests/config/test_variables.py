from __future__ import annotations

from pathlib import Path

import pytest

from claw_engine.config.dotenv import parse_dotenv
from claw_engine.config.problems import ConfigError, ProblemKind, format_path
from claw_engine.config.variables import Substitution, is_refused_name, substitute
from tests.config.support import Config

PROVIDERS = """{ models: { providers: {
    ark: { baseUrl: 'https://ark', apiKey: '${NOT_SET_42}', models: [] },
    box: { baseUrl: 'http://box', apiKey: '${BOX_KEY}', models: [] } } } }"""


def test_cf03_a_missing_variable_makes_only_its_provider_unusable(config: Config) -> None:
    """CF-03: `${VAR}` of a variable that is not set."""
    config.write(PROVIDERS)
    loaded = config.store({"BOX_KEY": "sk-box-123456"}).load()
    ark = loaded.settings.models.providers["ark"]
    box = loaded.settings.models.providers["box"]
    assert ark.api_key is None
    assert ark.unusable is not None and "NOT_SET_42" in ark.unusable and "apiKey" in ark.unusable
    assert (box.api_key, box.unusable) == ("sk-box-123456", None)
    (problem,) = loaded.problems
    assert problem.kind is ProblemKind.MISSING_VARIABLE
    assert format_path(problem.path) == "models.providers.ark.apiKey"
    assert problem.line == 2
    assert "${" not in repr(loaded.settings.resolved)


def test_an_empty_variable_counts_as_missing(config: Config) -> None:
    config.write(PROVIDERS)
    providers = config.store({"BOX_KEY": ""}).load().settings.models.providers
    assert providers["box"].unusable is not None


def test_a_policy_that_loses_a_value_is_not_used(config: Config) -> None:
    config.write("{tools: {deny: ['exec', '${DENY_TOO}']}}")
    with pytest.raises(ConfigError, match="DENY_TOO"):
        config.store().load()
    denied = config.store({"DENY_TOO": "write"}).load().settings.tools.deny
    assert denied == ("exec", "write")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${A}", "1"),
        ("x${A}y${B}z", "x1y2z"),
        ("$${A}", "${A}"),
        ("${a} $A {A}", "${a} $A {A}"),
        ("$$ ${A}", "$$ 1"),
    ],
)
def test_references_inside_strings(text: str, expected: str) -> None:
    assert substitute(text, Substitution({"A": "1", "B": "2"})) == expected


def test_a_value_is_not_expanded_twice() -> None:
    assert substitute("${A}", Substitution({"A": "${B}", "B": "no"})) == "${B}"


def test_used_variables_and_secret_values_are_recorded(config: Config) -> None:
    config.write(
        "{agents: {defaults: {workspace: '${HOME}/ws', userTimezone: '${MY_TZ}'}},"
        " gateway: {auth: {token: 'plain-token-1'}},"
        " models: {providers: {x: {apiKey: '${KEY_ONE}',"
        " headers: {Authorization: 'Bearer ${T}'}}}}}"
    )
    env = {"HOME": "/h", "MY_TZ": "Europe/Berlin", "KEY_ONE": "secret-one", "T": "tttttttt"}
    settings = config.store(env).load().settings
    assert settings.resolved_env_names == {"MY_TZ", "KEY_ONE", "T"}
    assert settings.secret_values == {
        "plain-token-1", "secret-one", "tttttttt", "Bearer tttttttt",
    }  # fmt: skip
    assert "secret-one" not in repr(settings)


def test_an_environment_secret_ref_is_read_and_others_are_refused(config: Config) -> None:
    config.write(
        "{models: {providers: {"
        "a: {apiKey: {source: 'env', provider: 'default', id: 'A_KEY'}},"
        "b: {apiKey: {source: 'exec', provider: 'vault', id: 'b'}}}}}"
    )
    loaded = config.store({"A_KEY": "value-of-a"}).load()
    providers = loaded.settings.models.providers
    assert providers["a"].api_key == "value-of-a"
    assert providers["b"].api_key is None
    assert providers["b"].unusable is not None and "exec" in providers["b"].unusable
    assert loaded.problems[0].kind is ProblemKind.UNSUPPORTED


def test_the_env_block_stands_under_the_real_environment(config: Config) -> None:
    config.write(
        "{env: {A: 'file', vars: {B: 'file', LD_PRELOAD: '/evil.so'}, NODE_OPTIONS: '-r evil'},"
        " gateway: {customBindHost: '${A}-${B}'}}"
    )
    loaded = config.store({"A": "real"}).load()
    assert loaded.settings.gateway.custom_bind_host == "real-file"
    assert loaded.settings.env == {"A": "real", "B": "file"}
    assert [format_path(p.path) for p in loaded.problems] == [
        "env.vars.LD_PRELOAD",
        "env.NODE_OPTIONS",
    ]
    assert {p.kind for p in loaded.problems} == {ProblemKind.IGNORED_NAME}


@pytest.mark.parametrize(
    ("name", "refused"),
    [("PATH", True), ("path", True), ("DYLD_X", True), ("BASH_FUNC_ls%%", True), ("HOME", True),
     ("OPENAI_API_KEY", False), ("PATHS", False)],
)  # fmt: skip
def test_names_a_file_may_not_set(name: str, refused: bool) -> None:
    assert is_refused_name(name) is refused


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("A=1", {"A": "1"}),
        ("export A = two words # note", {"A": "two words"}),
        ("A='x # y'", {"A": "x # y"}),
        ('A="a\\nb\\"c" # n', {"A": 'a\nb"c'}),
        ("A=", {"A": ""}),
        ("A=sk-1#2", {"A": "sk-1#2"}),
        ("# A=1", {}),
        ("not a pair", {}),
        ("1A=2", {}),
    ],
)
def test_dotenv_lines(line: str, expected: dict[str, str]) -> None:
    assert parse_dotenv(line) == expected


def test_the_state_directorys_dotenv_stands_under_the_environment(config: Config) -> None:
    config.write("A_TOKEN=from-file\nB=file\n", ".env")
    env = config.store({"B": "real"}).load().settings.env
    assert env == {"A_TOKEN": "from-file", "B": "real"}


def test_includes_merge_in_order_and_siblings_win(config: Config) -> None:
    config.write(
        "{$include: ['./a.json5', 'sub/b.json5'], gateway: {port: 3}, tools: {deny: ['c']}}"
    )
    config.write("{gateway: {port: 1, bind: 'lan'}, tools: {deny: ['a']}}", "a.json5")
    config.write("{gateway: {port: 2}, tools: {$include: './t.json5'}}", "sub/b.json5")
    config.write("{deny: ['b'], nope: 1}", "sub/t.json5")
    loaded = config.store().load()
    gateway = loaded.settings.gateway
    assert (gateway.port, gateway.bind) == (3, "lan")
    assert loaded.settings.tools.deny == ("a", "b", "c")
    (problem,) = loaded.problems
    assert format_path(problem.path) == "tools.nope"
    assert problem.file.endswith("sub/t.json5") and problem.line == 1
    assert len(loaded.files) == 5


def test_what_lacks_in_an_included_file_is_named_there(config: Config) -> None:
    """On one line, so that only the column says where."""
    config.write("{$include: './b'}")
    config.write("{agents: {list: [{default: true}]}, bindings: [{agentId: 'a'}]}", "b")
    with pytest.raises(ConfigError) as caught:
        config.store().load()
    found = [(Path(one.file).name, one.line, one.column, format_path(one.path))
             for one in caught.value.problems]  # fmt: skip
    assert found == [("b", 1, 18, "agents.list[0].id"), ("b", 1, 48, "bindings[0].match")]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"openclaw.json": "{$include: './openclaw.json'}"}, "include each other"),
        (
            {"openclaw.json": "{$include: './a'}", "a": "{$include: './openclaw.json'}"},
            "include each other",
        ),
        ({"openclaw.json": "{$include: '../outside'}"}, "lies outside"),
        ({"openclaw.json": "{$include: '/etc/hostname'}"}, "lies outside"),
        ({"openclaw.json": "{$include: './gone'}"}, "cannot be read"),
        ({"openclaw.json": "{$include: 5}"}, "takes a file name"),
        ({"openclaw.json": "{a: {$include: './l', b: 1}}", "l": "[1]"}, "JSON|one object"),
        ({"openclaw.json": "{$include: './big'}", "big": " " * (2 * 1024 * 1024 + 1)}, "2 MiB"),
    ],
)
def test_bad_includes_are_refused_with_the_place(
    config: Config, files: dict[str, str], words: str
) -> None:
    for name, text in files.items():
        config.write(text, name)
    with pytest.raises(ConfigError, match=words):
        config.store().load()


def test_a_symlink_may_not_lead_an_include_outside(config: Config, tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside.json5"
    outside.write_text("{}")
    (tmp_path / "inside.json5").symlink_to(outside)
    config.write("{$include: './inside.json5'}")
    with pytest.raises(ConfigError, match="lies outside"):
        config.store().load()
