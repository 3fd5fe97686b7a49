from __future__ import annotations

import errno
import hashlib
import json
import stat
from pathlib import Path

import pytest

from claw_engine.config.load import BaseMoved, ConfigStore, Refused
from claw_engine.config.problems import ConfigError, Problem, ProblemKind, format_path
from claw_engine.paths import StateDir
from tests.config.support import Config
from tests.support.fakes import FaultyDisk, fake_world


def only(problems: tuple[Problem, ...]) -> Problem:
    assert len(problems) == 1, [problem.sentence() for problem in problems]
    return problems[0]


@pytest.mark.parametrize("text", [None, "", "  \n", "{}"])
def test_a_missing_or_empty_file_means_defaults(config: Config, text: str | None) -> None:
    if text is not None:
        config.write(text)
    loaded = config.store().load()
    settings = loaded.settings
    assert (settings.generation, loaded.problems, loaded.banner) == (1, (), None)
    assert settings.agents.defaults.model.primary is None
    assert settings.agents.defaults.timeout_seconds == 600
    assert settings.agents.defaults.max_concurrent == 4
    assert settings.agents.defaults.subagents.max_concurrent == 8
    assert (settings.tools.exec.security, settings.tools.exec.ask) == ("allowlist", "on-miss")
    assert settings.tools.exec.safe_bins == ()
    assert settings.approvals.timeout_ms == 30 * 60 * 1000
    assert settings.permission_mode == "guarded"


def test_sections_read_openclaws_names(config: Config) -> None:
    config.write(
        """{
          agents: { defaults: { model: 'ollama/qwen3', bootstrapMaxChars: 0x100 },
                    list: [{ id: 'main', model: { primary: 'a/b', fallbacks: ['c/d'] } }] },
          models: { providers: { ollama: { baseUrl: 'http://box:11434/v1', apiKey: 'sk-local-1',
            models: [{ id: 'qwen3', contextWindow: 32000, cost: { cacheRead: 1 } }] } } },
          tools: { exec: { ask: 'always', timeoutSec: 60 } },
          gateway: { port: 19001, auth: { token: 'abc' } },
          claw: { permissionMode: 'look', approvalTimeoutMs: 1000 },
        }"""
    )
    loaded = config.store().load()
    settings = loaded.settings
    assert [p.path[-1] for p in loaded.problems] == ["fallbacks"]  # read, and not acted on yet
    assert settings.agents.defaults.model.primary == "ollama/qwen3"
    assert settings.agents.defaults.bootstrap_max_chars == 256
    assert settings.agents.list[0].model is not None
    assert settings.agents.list[0].model.fallbacks == ("c/d",)
    provider = settings.models.providers["ollama"]
    assert (provider.base_url, provider.api_key) == ("http://box:11434/v1", "sk-local-1")
    assert provider.models[0].context_window == 32000
    assert provider.models[0].cost is not None and provider.models[0].cost.cache_read == 1
    assert settings.tools.exec.timeout_sec == 60
    assert settings.gateway.auth.token == "abc"
    assert (settings.permission_mode, settings.approvals.timeout_ms) == ("look", 1000)
    assert "sk-local-1" not in repr(settings) and "abc" not in repr(settings)


def test_settings_cannot_be_changed(config: Config) -> None:
    settings = config.store().load().settings
    with pytest.raises(AttributeError):
        settings.generation = 2  # type: ignore[misc]  # the point of the test
    with pytest.raises(AttributeError):
        settings.gateway.port = 1


def test_cf01_an_unknown_key_is_reported_and_the_engine_starts(config: Config) -> None:
    """CF-01: the whole file of the case."""
    path = config.write(
        "{\n"
        "  // my agents\n"
        "  agents: {\n"
        "    list: [\n"
        "      { 'id': 'main', thinkng: \"high\" },\n"
        "    ],\n"
        "    defaults: { timeoutSeconds: 0x1F, contextTokens: Infinity },\n"
        "  },\n"
        "}\n"
    )
    loaded = config.store().load()
    assert loaded.banner is None
    assert loaded.settings.agents.defaults.timeout_seconds == 31
    assert loaded.settings.agents.defaults.context_tokens is None
    unknown, infinite = loaded.problems
    assert unknown.kind is ProblemKind.UNKNOWN_KEY
    assert format_path(unknown.path) == "agents.list[0].thinkng"
    assert (unknown.file, unknown.line, unknown.column) == (str(path), 5, 23)
    assert unknown.severity == "warning"
    assert infinite.kind is ProblemKind.NOT_FINITE
    assert format_path(infinite.path) == "agents.defaults.contextTokens"
    assert (infinite.line, infinite.severity) == (7, "error")
    raw = loaded.settings.raw["agents"]
    assert isinstance(raw, dict) and raw["list"][0]["thinkng"] == "high"


@pytest.mark.parametrize(
    ("text", "path", "nearest"),
    [
        ("{agnets: {}}", "agnets", "agents"),
        ("{gateway: {prot: 1}}", "gateway.prot", "port"),
        (
            "{agents: {defaults: {timeout_seconds: 3}}}",
            "agents.defaults.timeout_seconds",
            "timeoutSeconds",
        ),
        ("{models: {providers: {x: {baseURL: 'u'}}}}", "models.providers.x.baseURL", "baseUrl"),
        ("{tools: {exec: {zzzzqqq: 3}}}", "tools.exec.zzzzqqq", None),
    ],
)
def test_the_nearest_valid_name_is_told(
    config: Config, text: str, path: str, nearest: str | None
) -> None:
    config.write(text)
    problem = only(config.store().load().problems)
    assert (format_path(problem.path), problem.nearest) == (path, nearest)


def test_openclaws_own_keys_that_we_do_not_read_are_no_mistake(config: Config) -> None:
    config.write(
        """{ $schema: 'x', meta: { lastTouchedVersion: '2026.2.26' },
          wizard: { lastRunMode: 'local' },
          channels: { telegram: { anything: { goes: 1 } } }, cron: { enabled: true },
          agents: { defaults: { heartbeat: { every: '1h' }, models: { 'a/b': { alias: 'x' } },
            sandbox: { mode: 'off', docker: { image: 'i' } } } },
          skills: { entries: { weather: { apiKey: 'k', config: { free: 1 } } } },
          env: { FOO: 'bar', vars: { BAZ: 'q' } }, broadcast: { 'a@b': ['main'] } }"""
    )
    problems = config.store().load().problems
    assert {problem.kind for problem in problems} == {ProblemKind.IDLE_KEY}


@pytest.mark.parametrize(
    ("text", "path", "line", "words"),
    [
        ("{gateway: {\n port: 'eighty'}}", "gateway.port", 2, "expected a whole number"),
        ("{gateway: {port: 'eighty'}}", "gateway.port", 1, "found the text 'eighty'"),
        ("{gateway: {port: 99999}}", "gateway.port", 1, "at most 65535, found the number 99999"),
        ("{tools: {exec: {\n\n security: 'fulll'}}}", "tools.exec.security", 3, "mean 'full'"),
        ("{tools: []}", "tools", 1, "expected an object: { … }, found a list"),
        ("{tools: {deny: 'exec'}}", "tools.deny", 1, "expected a list"),
        ("{agents: {list: [\n{}]}}", "agents.list[0].id", 2, "is required"),
        (
            "{agents: {defaults: {timeoutSeconds: true}}}",
            "agents.defaults.timeoutSeconds",
            1,
            "expected a number, found true; change",
        ),
        ("{gateway: {auth: {token: 5}}}", "gateway.auth.token", 1, "expected a text in quotes"),
    ],
)
def test_a_wrong_type_names_place_expectation_and_way_out(
    config: Config, text: str, path: str, line: int, words: str
) -> None:
    file = config.write(text)
    with pytest.raises(ConfigError) as caught:
        config.store().load()
    problem = caught.value.problems[0]
    assert (problem.kind, format_path(problem.path)) == (ProblemKind.WRONG_TYPE, path)
    assert (problem.file, problem.line) == (str(file), line)
    assert words in problem.message
    assert f"{file}:{line}:" in caught.value.title
    assert str(file) in caught.value.hint


def test_a_wrong_secret_is_not_repeated_in_the_message(config: Config) -> None:
    config.write("{gateway: {auth: {token: ['hunter2hunter2']}}}")
    with pytest.raises(ConfigError) as caught:
        config.store().load()
    assert "hunter2" not in str(caught.value.details) + caught.value.sentence()


@pytest.mark.parametrize("text", ['{ "agents": {', "[1]", "{a: nope}", "// only a comment"])
def test_cf03_a_broken_file_without_a_good_copy_refuses_to_start(config: Config, text: str) -> None:
    path = config.write(text)
    with pytest.raises(ConfigError) as caught:
        config.store().load()
    assert f"{path}:1:" in caught.value.title
    assert "move" in caught.value.hint


def test_a_file_that_is_not_utf8_or_not_readable_refuses_to_start(config: Config) -> None:
    config.state.config.write_bytes(b"{a:\n '\xff'}")
    with pytest.raises(ConfigError, match=":2:3: not UTF-8"):
        config.store().load()
    config.state.config.unlink()
    config.state.config.mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        config.store().load()


def test_cf03_a_broken_file_falls_back_to_the_last_good_copy(config: Config) -> None:
    """CF-03: a start on a broken file."""
    config.write("{gateway: {port: 1234, auth: {token: 'old-token-value'}}}")
    config.store().load()
    copy = config.state.config_last_good
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    config.write('{ "gateway": { "auth": {\n "token": "new-token-value" ')
    loaded = config.store().load()
    assert loaded.settings.gateway.port == 1234
    banner = loaded.banner
    assert banner is not None
    assert (banner.file, banner.line) == (str(config.state.config), 1)
    assert "never closed" in banner.text
    assert "-{gateway: {port: 1234" in banner.diff and '+{ "gateway"' in banner.diff
    assert "token-value" not in banner.diff
    assert config.state.config.read_text().startswith('{ "gateway"'), "the file is left alone"


def test_a_wrong_type_also_falls_back_to_the_last_good_copy(config: Config) -> None:
    config.write("{tools: {exec: {security: 'deny'}}}")
    config.store().load()
    config.write("{tools: {exec: {security: 'dney'}}}")
    loaded = config.store().load()
    assert loaded.settings.tools.exec.security == "deny"
    assert loaded.banner is not None and "tools.exec.security" in loaded.banner.text


def test_a_full_disk_for_the_copy_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "openclaw.json").write_text("{gateway: {port: 1}}")
    disk = FaultyDisk()
    disk.fail_next(error=errno.ENOSPC)
    loaded = ConfigStore(fake_world(disk=disk), StateDir(tmp_path), {}).load()
    problem = only(loaded.problems)
    assert (problem.kind, problem.severity) == (ProblemKind.STORAGE, "warning")
    assert loaded.settings.gateway.port == 1


def test_a_file_that_went_missing_is_said(config: Config) -> None:
    config.write("{gateway: {port: 1}}").unlink()
    config.write("{gateway: {port: 1}}")
    config.store().load()
    config.state.config.unlink()
    loaded = config.store().load()
    assert loaded.settings.gateway.port == 18789
    assert str(config.state.config_last_good) in only(loaded.problems).message


def test_openclaw_config_path_names_another_file(config: Config) -> None:
    path = config.write("{gateway: {port: 77}}", "elsewhere/my.json5")
    store = config.store({"OPENCLAW_CONFIG_PATH": str(path)})
    assert store.load().settings.gateway.port == 77


def test_the_hash_is_of_the_bytes_on_disk_with_a_byte_order_mark(config: Config) -> None:
    data = b"\xef\xbb\xbf{gateway: {port: 5}}"
    config.state.config.write_bytes(data)
    loaded = config.store().load()
    assert loaded.settings.gateway.port == 5
    assert loaded.raw_hash == hashlib.sha256(data).hexdigest()


def test_a_leading_tilde_in_path_keys_is_the_home(config: Config) -> None:
    config.write("{agents: {defaults: {workspace: '~/ws', userTimezone: '~/tz'}}}")
    defaults = config.store({"HOME": "/home/ada"}).load().settings.agents.defaults
    assert (defaults.workspace, defaults.user_timezone) == ("/home/ada/ws", "~/tz")


async def test_reload_swaps_the_generation_and_says_what_changed(config: Config) -> None:
    config.write("{gateway: {port: 1, reload: {mode: 'hot'}}, tools: {deny: ['a']}}")
    store = config.store()
    pinned = store.load().settings
    config.write("{gateway: {port: 2, reload: {mode: 'hot'}}, tools: {deny: ['a', 'b']}, // n\n}")
    outcome = await store.reload()
    assert outcome.swapped
    assert [format_path(path) for path in outcome.changed] == ["gateway.port", "tools.deny"]
    assert (pinned.generation, pinned.gateway.port) == (1, 1)
    # The port is what the engine started with until it starts again.
    assert (store.settings.generation, store.settings.gateway.port) == (2, 1)
    assert store.settings.tools.deny == ("a", "b")


@pytest.mark.parametrize("mode", ["off", "restart"])
async def test_modes_that_apply_nothing_keep_the_settings(config: Config, mode: str) -> None:
    config.write("{tools: {deny: ['a']}}")
    store = config.store()
    store.load()
    config.write(f"{{gateway: {{reload: {{mode: '{mode}'}}}}, tools: {{deny: ['b']}}}}")
    outcome = await store.reload()
    assert not outcome.swapped and outcome.plan is not None
    assert outcome.plan.restart is (mode == "restart")
    assert (store.settings.tools.deny, store.settings.generation) == (("a",), 1)


async def test_a_write_needs_the_newest_base_and_a_good_text(config: Config) -> None:
    path = config.write("{tools: {deny: ['a']}} // mine")
    store = config.store()
    first = store.load()
    good = config.state.config_last_good.read_bytes()
    for base in (None, "0" * 64):
        with pytest.raises(BaseMoved):
            await store.write(lambda now: "{}", base)
    with pytest.raises(Refused) as refused:
        await store.write(lambda now: '{\n "tools": 5}', first.raw_hash)
    (problem,) = [p for p in refused.value.problems if p.fatal]
    assert (problem.line, format_path(problem.path)) == (2, "tools")
    assert path.read_text() == "{tools: {deny: ['a']}} // mine"
    assert config.state.config_last_good.read_bytes() == good
    outcome = await store.write(lambda now: now.text.replace("'a'", "'b'"), first.raw_hash)
    assert store.settings.tools.deny == ("b",) and outcome.swapped
    assert path.read_text() == "{tools: {deny: ['b']}} // mine"
    assert (config.state.root / "openclaw.json.bak").read_text().endswith("// mine")
    assert config.state.config_last_good.read_bytes() == path.read_bytes()


async def test_a_comment_only_change_is_no_new_generation(config: Config) -> None:
    config.write("{gateway: {port: 1}}")
    store = config.store()
    first = store.load()
    config.write("{gateway: {port: 1}} // same")
    outcome = await store.reload()
    assert (outcome.swapped, outcome.changed, store.settings.generation) == (False, (), 1)
    assert store.current.raw_hash != first.raw_hash


async def test_cf03_a_bad_edit_keeps_the_old_settings_until_mended(config: Config) -> None:
    """CF-03: a bad edit while running."""
    config.write("{gateway: {port: 1}}")
    store = config.store()
    store.load()
    config.write('{ "agents": {')
    outcome = await store.reload()
    assert not outcome.swapped and outcome.loaded.banner is not None
    assert (store.settings.gateway.port, store.settings.generation) == (1, 1)
    config.write("{gateway: {port: 1}, tools: {deny: ['a']}}")
    assert (await store.reload()).loaded.banner is None
    assert (store.settings.tools.deny, store.settings.generation) == (("a",), 2)


async def test_a_vanished_file_keeps_the_old_settings(config: Config) -> None:
    path = config.write("{gateway: {port: 1}}")
    store = config.store()
    store.load()
    path.unlink()
    outcome = await store.reload()
    assert store.settings.gateway.port == 1
    assert outcome.loaded.banner is not None and "gone" in outcome.loaded.banner.text


def test_the_last_good_copy_of_included_parts_stands_alone(config: Config) -> None:
    config.write("{gateway: {$include: './parts/gw.json5'}}")
    part = config.write("{port: 4242}", "parts/gw.json5")
    assert config.store().load().settings.gateway.port == 4242
    assert json.loads(config.state.config_last_good.read_text()) == {"gateway": {"port": 4242}}
    part.write_text("{port: ")
    loaded = config.store().load()
    assert loaded.settings.gateway.port == 4242
    assert loaded.banner is not None and loaded.banner.file == str(part)


def test_a_wrong_value_from_a_variable_is_not_repeated(config: Config) -> None:
    config.write("{gateway: {port: '${PLACE}'}}")
    with pytest.raises(ConfigError, match="found a text") as caught:
        config.store({"PLACE": "hunter22"}).load()
    assert "hunter22" not in caught.value.sentence()


@pytest.mark.parametrize(("zone", "count"), [("Mars/Base", 1), ("../x", 1), ("UTC", 0)])
def test_an_unknown_time_zone_is_a_problem(config: Config, zone: str, count: int) -> None:
    config.write(f"{{agents: {{defaults: {{userTimezone: '{zone}'}}}}}}")
    problems = config.store().load().problems
    found = [f"no time zone {zone!r}" in p.sentence() and not p.fatal for p in problems]
    assert found == [True] * count
