from __future__ import annotations

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_engine.config.diff import changed_paths, text_diff
from claw_engine.config.problems import format_path
from claw_engine.config.redact import (
    MARKER,
    MarkerError,
    Redactor,
    compile_pattern,
    redact_config,
    restore,
)
from claw_engine.config.secret_names import is_secret_name
from tests.config.support import Config

ALNUM = st.text(string.ascii_letters + string.digits, min_size=6, max_size=40)


@pytest.mark.parametrize(
    "name",
 [
        "apiKey", "api_key", "API-KEY", "token", "botToken", "accessToken", "password",
        "db_passwd", "passphrase", "secret", "clientSecret", "Authorization", "x-api-key",
        "Cookie", "privateKey", "encryptKey", "serviceAccount", "OPENAI_API_KEY",
        "FOO_PASSWORD", "HF_TOKEN", "DEPLOY_KEY", "GH_PAT", "AWS_SECRET_ACCESS_KEY_2",
    ],
)  # fmt: skip
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
 [
        "maxTokens", "reserveTokens", "contextTokens", "mainKey", "sessionKey", "keyPath",
        "tokens", "secrets", "port", "publicKeyPath", "tlsFingerprint", "sshIdentity", "PATH",
        "HOME", "KEYBOARD", "monkey", "author",
    ],
)  # fmt: skip
def test_names_that_hold_no_secret(name: str) -> None:
    assert not is_secret_name(name)


SE05 = """{
  models: { providers: { x: { apiKey: 'sk-provider-0001', headers: {
      Authorization: 'Bearer header-token-0002', 'X-Plain': 'plain' } } } },
  channels: { telegram: { botToken: '123456789:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA' } },
  gateway: { auth: { token: 'shared-value-0003', password: '${GW_PASSWORD}' } },
  env: { vars: { FOO_PASSWORD: 'foo-password-0004' } },
  webhooks: [ 'https://user:url-pass-0005@h/' ],
  notes: 'shared-value-0003',
  session: { mainKey: 'main' },
  cron: { webhookToken: 'main' },
}"""
SE05_SECRETS = (
    "sk-provider-0001", "header-token-0002", "AAAAAAAAAA", "shared-value-0003",
    "gw-password-0006", "foo-password-0004", "url-pass-0005",
)  # fmt: skip


def test_se05_no_secret_is_left_in_the_configuration_as_shown(config: Config) -> None:
    """SE-05: raw and resolved."""
    config.write(SE05)
    settings = config.store({"GW_PASSWORD": "gw-password-0006"}).load().settings
    redactor = Redactor.from_settings(settings)
    for shown in (redactor.config(settings.raw), redactor.config(settings.resolved)):
        text = json.dumps(shown)
        assert not [secret for secret in SE05_SECRETS if secret in text]
    shown = redactor.config(settings.raw)
    assert isinstance(shown, dict)
    assert shown["session"] == {"mainKey": "main"}, "a short shared value blanks only its own key"
    assert shown["cron"] == {"webhookToken": MARKER}
    assert shown["models"]["providers"]["x"]["headers"]["X-Plain"] == "plain"
    assert shown["gateway"]["auth"]["password"] == "${GW_PASSWORD}"


def test_se05_no_secret_is_left_in_a_log_text(config: Config) -> None:
    """SE-05: a dump in a log line."""
    config.write(SE05)
    settings = config.store({"GW_PASSWORD": "gw-password-0006"}).load().settings
    redactor = Redactor.from_settings(settings)
    text = redactor.text(f"dump: {dict(settings.resolved)!r} and {SE05}")
    assert not [secret for secret in SE05_SECRETS if secret in text]


def test_se05_writing_the_shown_object_back_keeps_every_secret(config: Config) -> None:
    """SE-05: the shown object written back."""
    config.write(SE05)
    settings = config.store({"GW_PASSWORD": "gw-password-0006"}).load().settings
    shown = Redactor.from_settings(settings).config(settings.raw)
    assert restore(shown, settings.raw) == settings.raw


def test_a_marker_never_becomes_the_value() -> None:
    """SE-05: the marker is no value."""
    with pytest.raises(MarkerError):
        restore({"gateway": {"auth": {"token": MARKER}}}, {"gateway": {}})


def test_without_settings_names_and_shapes_still_count() -> None:
    raw = {"token": "x", "pin": {"password": 1234}, "apiKeys": ["a", "b"], "n": 5, "flag": True}
    assert redact_config(raw) == {
        "token": MARKER,
        "pin": {"password": MARKER},
        "apiKeys": [MARKER, MARKER],
        "n": 5,
        "flag": True,
    }


def test_a_secret_reference_stays_readable() -> None:
    raw = {"apiKey": {"source": "env", "provider": "default", "id": "MY_KEY"}}
    assert redact_config(raw) == raw


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("key sk-abcdefgh12345678 used", "key *** used"),
        ("risk-assessment task-list", "risk-assessment task-list"),
        ("ghp_abcdefghijklmnop1234", "***"),
        ("glpat-abcDEF_1234567890-xy", "***"),
        ("push with hf_abcdefghijklmnopqrst now", "push with *** now"),
        ("sk_live_abcdefghijklmnop1234", "***"),
        ("ya29.a0abcdefghijklmnopqrst-_", "***"),
        ("xoxb-1234-abcd-efgh", "***"),
        ("Authorization: Bearer abc.def-1", "Authorization: ***"),
        ("sent bearer abcdefghijklmnop1", "sent bearer ***"),
        ("the bearer of news", "the bearer of news"),
        ("https://u:p@host/x", "https://***:***@host/x"),
        ("http://host:8080/a@b", "http://host:8080/a@b"),
        ("GET /x?a=1&access_token=zz&b=2", "GET /x?a=1&access_token=***&b=2"),
        ('{"apiKey": "v", "maxTokens": 5}', '{"apiKey": ***, "maxTokens": 5}'),
        ("export DEPLOY_KEY=abc", "export DEPLOY_KEY=***"),
        ("tool --api-key abc --x", "tool --api-key *** --x"),
        ("apiKey: '${OPENAI_API_KEY}'", "apiKey: '${OPENAI_API_KEY}'"),
        ("lane enqueue: lane=main queueSize=1", "lane enqueue: lane=main queueSize=1"),
        ("sessionKey=agent:main:main", "sessionKey=agent:main:main"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
            "-----BEGIN RSA PRIVATE KEY-----***-----END RSA PRIVATE KEY-----",
        ),
    ],
)
def test_shapes_of_tokens_in_text(text: str, expected: str) -> None:
    assert Redactor().text(text) == expected


@given(ALNUM, st.text(max_size=60), st.text(max_size=60))
def test_a_known_secret_never_stays_in_a_text(secret: str, before: str, after: str) -> None:
    assert secret not in Redactor([secret]).text(before + secret + after)


@given(st.text(min_size=6, max_size=20).filter(lambda s: len(s.strip()) >= 6 and "*" not in s))
def test_a_known_secret_never_stays_in_json(secret: str) -> None:
    for text in (json.dumps({"v": secret}), json.dumps({"v": secret}, ensure_ascii=False)):
        assert json.dumps(secret)[1:-1] not in Redactor([secret]).text(text)


@given(ALNUM)
def test_the_credential_inside_a_header_value_is_known_too(secret: str) -> None:
    assert secret not in Redactor([f"Bearer {secret}"]).text(f"got <{secret}>")


def test_long_texts_are_redacted_in_linear_time() -> None:
    redactor = Redactor(["some-secret"])
    for filler in ("a", "a-", "token ", '"', "://", "${", "-----BEGIN PRIVATE KEY-----", "eyJ"):
        redactor.text(filler * (200_000 // len(filler)))


@pytest.mark.parametrize(
    ("source", "text", "hit"),
    [(r"ticket-\d+", "TICKET-12", True), (r"/abc/g", "ABC", False), (r"/abc/gi", "ABC", True)],
)
def test_own_patterns(source: str, text: str, hit: bool) -> None:
    pattern = compile_pattern(source)
    assert pattern is not None
    assert (Redactor(patterns=[pattern]).text(text) == "***") is hit


def test_an_unreadable_own_pattern_is_reported(config: Config) -> None:
    config.write("{logging: {redactPatterns: ['ok', '(']}}")
    (problem,) = config.store().load().problems
    assert format_path(problem.path) == "logging.redactPatterns[1]"


@pytest.mark.parametrize(
    ("old", "new", "paths"),
    [
        ({}, {}, []),
        ({"a": 1}, {"a": 1.0}, ["a"]),
        ({"a": 1}, {"a": True}, ["a"]),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, ["a.c"]),
        ({"a": {"b": 1}}, {}, ["a.b"]),
        ({}, {"a": {"b": {"c": 1}}}, ["a.b.c"]),
        ({"a": [1, 2]}, {"a": [1, 3]}, ["a"]),
        ({"a": {"b": 1}}, {"a": 5}, ["a"]),
    ],
)
def test_changed_leaf_paths(
    old: dict[str, object], new: dict[str, object], paths: list[str]
) -> None:
    assert [format_path(path) for path in changed_paths(old, new)] == paths


def test_the_diff_hides_secrets_split_over_lines() -> None:
    diff = text_diff("{a: 1}", "{a: 1,\n token:\n  'fresh-secret-99'", Redactor())
    assert "fresh-secret" not in diff and "+{a: 1," in diff
