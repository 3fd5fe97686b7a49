"""Cases of the configuration through the whole engine: what it starts with, shows and logs."""

from __future__ import annotations

import json
import logging
from pathlib import Path

from claw_engine.client.base import Client
from tests.config.test_redact import SE05, SE05_SECRETS
from tests.support.engines import PLAIN_ENV, Operator, engine_on
from tests.support.fake_openai import FakeOpenAI

UNKNOWN = """{
  // my agents
  agents: {
    list: [{ 'id': 'main', thinkng: "high" },],
    defaults: { timeoutSeconds: 0x1F, contextTokens: Infinity },
  },
}
"""


async def snapshot(client: Client) -> dict[str, object]:
    return dict(await client.call("config.get"))


async def test_an_unknown_key_is_told_and_the_engine_runs(tmp_path: Path) -> None:
    """CF-01: unknown key, comment, trailing comma, single quotes, hex number, Infinity."""
    state = tmp_path / "state"
    state.mkdir()
    file = state / "openclaw.json"
    file.write_text(UNKNOWN)
    async with (
        engine_on(state) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        shown = await snapshot(operator.client)
        issues = shown["warnings"]
        assert isinstance(issues, list)
        assert [i["path"] for i in issues] == ["agents.list.0.thinkng",
                                               "agents.defaults.contextTokens"]  # fmt: skip
        told = issues[0]["message"]
        for fact in (
            str(file),
            "agents.list[0].thinkng",
            ":4:",
            "did you mean subagents.thinking?",
        ):
            assert fact in told, told
        assert engine.settings().agents.defaults.timeout_seconds == 31
        end = await operator.ended(await operator.say("think: on"))
        assert end["status"] == "done"
    assert file.read_text() == UNKNOWN


async def test_a_bad_edit_is_no_mine_for_the_next_start(tmp_path: Path) -> None:
    """CF-03: broken while running, then a restart, then mended with a variable that is not set."""
    state = tmp_path / "state"
    good: dict[str, object] = {"agents": {"defaults": {"maxConcurrent": 2}}}
    async with (
        engine_on(state, config=good) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        (state / "openclaw.json").write_text('{ "agents": {')
        notice = await operator.event("notice", lambda p: p["code"] == "config-broken")
        assert (notice["level"], notice["sticky"]) == ("error", True)
    async with (
        engine_on(state) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        assert engine.settings().agents.defaults.max_concurrent == 2
        notices = (await operator.client.call("status"))["notices"]
        assert isinstance(notices, list)
        (banner,) = [n for n in notices if n["code"] == "config-broken"]
        assert (banner["level"], banner["sticky"]) == ("error", True)
        assert '+{ "agents": {' in banner["text"]  # the diff that the notices page shows
    async with FakeOpenAI() as server:
        provider = {
            "baseUrl": server.base_url,
            "apiKey": "${NOT_SET_42}",
            "api": "openai-completions",
            "models": [{"id": "one", "name": "one"}],
        }
        config: dict[str, object] = {
            "models": {"providers": {"ark": provider}},
            "agents": {"defaults": {"model": {"primary": "ark/one"}}},
        }
        async with (
            engine_on(state, config=config) as engine,
            Operator(engine.local_client(strict=True)) as operator,
        ):
            end = await operator.ended(await operator.say("hello?"))
            assert end["status"] == "failed"
            assert "NOT_SET_42" in json.dumps(end["error"])
        assert server.requests == []


async def test_no_answer_and_no_log_shows_a_secret(tmp_path: Path) -> None:
    """SE-05, as far as there are engines: config.get, status, doctor, notices, the log."""
    state = tmp_path / "state"
    state.mkdir()
    (state / "openclaw.json").write_text(SE05)
    (state / ".env").write_text("GW_PASSWORD=gw-password-0006\n")
    assert "GW_PASSWORD" not in PLAIN_ENV
    async with (
        engine_on(state) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        assert engine.settings().gateway.auth.password == "gw-password-0006"
        try:
            raise RuntimeError(f"dump {dict(engine.settings().resolved)!r}")
        except RuntimeError:
            logging.getLogger("claw_engine.test").exception("crash with %s", SE05)
        methods = ("config.get", "status", "health", "doctor.probes", "models.list")
        shown = json.dumps([await operator.client.call(name) for name in methods])
        shown += json.dumps([frame.payload for frame in operator.seen])
        (state / "openclaw.json").write_text("{ broken")  # its diff is shown, too
        notice = await operator.event("notice", lambda p: p["code"] == "config-broken")
        shown += json.dumps(notice)
    logged = "".join(path.read_text() for path in (state / "logs").iterdir())
    assert "crash with" in logged
    for secret in SE05_SECRETS:
        assert secret not in shown
        assert secret not in logged
