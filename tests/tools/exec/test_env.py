from __future__ import annotations

import pytest

from claw_engine.tools.exec import env

DANGEROUS = [
    "NODE_OPTIONS",
    "PYTHONPATH",
    "BASH_ENV",
    "ENV",
    "IFS",
    "PS4",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "DYLD_INSERT_LIBRARIES",
    "BASH_FUNC_ls%%",
]
CREDENTIALS = [
    "OPENCLAW_GATEWAY_TOKEN",
    "OPENCLAW_GATEWAY_PASSWORD",
    "OPENCLAW_STATE_DIR",
    "CLAW_RUN_ID",
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "ARK_API_KEY",
    "AWS_SECRET_ACCESS_KEY",
    "GITHUB_TOKEN",
    "GH_PAT",
    "HF_TOKEN",
    "DISCORD_BOT_TOKEN",
    "DB_PASSWORD",
    "openai_api_key",
    "SLACK_WEBHOOK_URL",
    "SENTRY_DSN",
    "SIGNING_KEY",
]
ORDINARY = ["HOME", "USER", "LANG", "LC_ALL", "EDITOR", "TZ", "SSH_AUTH_SOCK", "XDG_RUNTIME_DIR"]


@pytest.mark.parametrize("name", [*DANGEROUS, *CREDENTIALS])
def test_names_that_are_not_inherited(name: str) -> None:
    assert name not in env.base_environment({name: "value"})


@pytest.mark.parametrize("name", ORDINARY)
def test_names_that_are_inherited(name: str) -> None:
    assert env.base_environment({name: "value"})[name] == "value"


def test_what_the_configuration_resolved_is_removed_by_name_and_by_value() -> None:
    inherited = {"MY_ARK": "sk-123456789", "COPY": "Bearer sk-123456789", "PIN": "42", "AGE": "421"}
    kept = env.base_environment(
        inherited, secret_names={"MY_ARK"}, secret_values={"sk-123456789", "42", ""}
    )
    assert set(kept) == {"AGE", "PATH", "TERM"}


def test_path_is_there_and_configured_folders_come_first() -> None:
    kept = env.base_environment({"PATH": "/usr/bin", "TERM": "xterm"}, path_prepend=["/opt/x"])
    assert kept == {"PATH": "/opt/x:/usr/bin", "TERM": "dumb"}
    assert env.base_environment({})["PATH"]


@pytest.mark.parametrize("name", [*DANGEROUS, "PATH", "HOME", "ZDOTDIR", "PWD", "ld_preload"])
def test_an_override_of_a_guarded_name_is_refused(name: str) -> None:
    with pytest.raises(env.EnvRefused) as refused:
        env.checked_overrides({name: "x"})
    assert name in str(refused.value)


@pytest.mark.parametrize("name", ["CLAW_RUN_ID", "OPENCLAW_TOKEN", "", "A=B", "1X", "a b", "X\n"])
def test_own_and_impossible_names_are_refused(name: str) -> None:
    with pytest.raises(env.EnvRefused):
        env.checked_overrides({name: "x"})


def test_only_names_that_change_looks_need_no_question() -> None:
    overrides = {"LANG": "C", "GIT_SSH_COMMAND": "x", "NO_COLOR": "1"}
    assert env.checked_overrides(overrides) == overrides
    assert env.needs_asking(overrides) == ("GIT_SSH_COMMAND",)
    assert env.changes(overrides) == ("GIT_SSH_COMMAND=x", "LANG=C", "NO_COLOR=1")
