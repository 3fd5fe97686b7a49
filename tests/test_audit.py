"""Each check of the security audit finds what it is for, and nothing where all is well."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from claw_engine.audit import Audit, Finding, Severity, mend_modes
from claw_engine.audits import NothingToAudit, all_checks, fix, report, subject_of
from claw_engine.disk import RealDisk
from claw_engine.paths import StateDir

LONG = "t" * 32


@pytest.fixture
def disk() -> Any:
    made = RealDisk()
    yield made
    made.close()


def state_of(tmp_path: Path, config: dict[str, Any] | None = None) -> StateDir:
    """A state directory as the engine makes it."""
    state = StateDir(tmp_path / "state")
    state.ensure()
    if config is not None:
        state.config.write_text(json.dumps(config))
        state.config.chmod(0o600)
    return state


def found(state: StateDir, disk: RealDisk, **more: Any) -> dict[str, Finding]:
    subject = subject_of(state, {}, disk, **more)
    # The suite's own directory lies in /tmp, where everything is as on any machine.
    return {one.check: one for one in all_checks().run(subject)}


def test_nothing_where_all_is_well(tmp_path: Path, disk: RealDisk) -> None:
    state = state_of(tmp_path, {"gateway": {"auth": {"token": LONG}}})
    assert set(found(state, disk)) == {"summary.attack_surface"}


SETTINGS: list[tuple[dict[str, Any], str, str]] = [
    ({"gateway": {"bind": "lan", "auth": {"mode": "none"}}}, "gateway.bind_no_auth", "critical"),
    ({"gateway": {"auth": {"mode": "none"}}}, "gateway.loopback_no_auth", "critical"),
    ({"gateway": {"auth": {"token": "short"}}}, "gateway.token_too_short", "warn"),
    ({"gateway": {"tools": {"allow": ["exec"]}}}, "gateway.tools_invoke_http.dangerous_allow",
     "warn"),
    ({"gateway": {"bind": "lan", "tools": {"allow": ["exec"]}}},
     "gateway.tools_invoke_http.dangerous_allow", "critical"),
    ({"gateway": {"bind": "lan", "auth": {"token": LONG}}}, "gateway.auth_no_rate_limit", "warn"),
    ({"gateway": {"allowRealIpFallback": True}}, "gateway.real_ip_fallback_enabled", "warn"),
    ({"gateway": {"tailscale": {"mode": "funnel"}}}, "gateway.tailscale_funnel", "critical"),
    ({"gateway": {"tailscale": {"mode": "serve"}}}, "gateway.tailscale_serve", "info"),
    ({"gateway": {"auth": {"mode": "trusted-proxy"}}}, "gateway.trusted_proxy_no_proxies",
     "critical"),
    ({"gateway": {"auth": {"mode": "trusted-proxy"}}}, "gateway.trusted_proxy_no_user_header",
     "critical"),
    ({"gateway": {"auth": {"mode": "trusted-proxy"}}}, "gateway.trusted_proxy_no_allowlist",
     "warn"),
    ({"gateway": {"controlUi": {"allowedOrigins": ["https://x"]}}},
     "gateway.trusted_proxies_missing", "warn"),
    ({"gateway": {"controlUi": {"dangerouslyDisableDeviceAuth": True}}},
     "gateway.control_ui.device_auth_disabled", "critical"),
    ({"gateway": {"controlUi": {"allowInsecureAuth": True}}}, "gateway.control_ui.insecure_auth",
     "warn"),
    ({"gateway": {"controlUi": {"dangerouslyAllowHostHeaderOriginFallback": True}}},
     "gateway.control_ui.host_header_origin_fallback", "warn"),
    ({"gateway": {"bind": "lan", "controlUi": {"enabled": True}}},
     "gateway.control_ui.allowed_origins_required", "critical"),
    ({"gateway": {"controlUi": {"dangerouslyDisableDeviceAuth": True}}},
     "config.insecure_or_dangerous_flags", "warn"),
    ({"gateway": {"auth": {"password": "written out"}}},
     "config.secrets.gateway_password_in_config", "warn"),
    ({"hooks": {"token": "written out"}}, "config.secrets.hooks_token_in_config", "info"),
    ({"logging": {"redactSensitive": "off"}}, "logging.redact_off", "warn"),
    ({"tools": {"elevated": {"allowFrom": {"discord": ["*"]}}}},
     "tools.elevated.allowFrom.discord.wildcard", "critical"),
    ({"tools": {"elevated": {"allowFrom": {"discord": list(range(30))}}}},
     "tools.elevated.allowFrom.discord.large", "warn"),
    ({"tools": {"exec": {"host": "sandbox"}}}, "tools.exec.host_sandbox_no_sandbox_defaults",
     "warn"),
    ({"tools": {"exec": {"host": "sandbox"}},
      "agents": {"list": [{"id": "a", "sandbox": {"mode": "off"}}]}},
     "tools.exec.host_sandbox_no_sandbox_agents", "warn"),
    ({"tools": {"profile": "minimal"},
      "agents": {"list": [{"id": "a", "tools": {"profile": "full"}}]}},
     "tools.profile_minimal_overridden", "warn"),
    ({"tools": {"exec": {"safeBins": ["python3"]}}},
     "tools.exec.safe_bins_interpreter_unprofiled", "warn"),
    ({"tools": {"exec": {"safeBinTrustedDirs": ["/tmp/bin"], "safeBins": ["wc"]}}},
     "tools.exec.safe_bin_trusted_dirs_risky", "warn"),
    ({"agents": {"defaults": {"sandbox": {"docker": {"memory": "1g"}}}}},
     "sandbox.docker_config_mode_off", "warn"),
    *(
        ({"agents": {"defaults": {"sandbox": {"mode": "all", "docker": docker}}}}, check, level)
        for docker, check, level in (
            ({"network": "host"}, "sandbox.dangerous_network_mode", "critical"),
            ({"seccompProfile": "unconfined"}, "sandbox.dangerous_seccomp_profile", "critical"),
            ({"apparmorProfile": "unconfined"}, "sandbox.dangerous_apparmor_profile", "critical"),
            ({"binds": ["/etc:/x"]}, "sandbox.dangerous_bind_mount", "critical"),
            ({"binds": ["x:/x"]}, "sandbox.bind_mount_non_absolute", "warn"),
        )
    ),
    ({"agents": {"list": [{"id": "a", "sandbox": {"mode": "all", "docker": {"network": "host"}}}]}},
     "sandbox.dangerous_network_mode", "critical"),
]  # fmt: skip


@pytest.mark.parametrize(("config", "check", "severity"), SETTINGS, ids=[s[1] for s in SETTINGS])
def test_settings(
    tmp_path: Path, disk: RealDisk, config: dict[str, Any], check: str, severity: str
) -> None:
    rows = found(state_of(tmp_path, config), disk)
    assert rows[check].severity == severity
    assert rows[check].detail


@pytest.mark.parametrize(
    ("elevated", "default", "said"),
    [
        ({}, "off", "elevated off unless changed by the operator;"),
        ({}, "full", "elevated full unless changed by the operator;"),
        ({"enabled": False}, "on", "elevated off, for everyone;"),
        ({"allowFrom": {"discord": ["1"], "slack": []}}, "on",
         "elevated ask unless changed by the operator or discord;"),
    ],
)  # fmt: skip
def test_the_surface_says_of_elevated_what_explain_says(
    tmp_path: Path, disk: RealDisk, elevated: dict[str, Any], default: str, said: str
) -> None:
    config = {"tools": {"elevated": elevated}, "agents": {"defaults": {"elevatedDefault": default}}}
    assert said in found(state_of(tmp_path, config), disk)["summary.attack_surface"].detail


def test_a_broken_configuration_is_named_with_its_place(tmp_path: Path, disk: RealDisk) -> None:
    state = state_of(tmp_path, {"gateway": {"port": "x"}})
    with pytest.raises(NothingToAudit, match=r"openclaw\.json:1:14: gateway\.port: expected"):
        found(state, disk)


RULES: list[tuple[dict[str, Any], str]] = [
    ({"defaults": {"security": "full", "ask": "off"}}, ""),
    ({"defaults": {"askFallback": "full"}}, "claw.exec.fallback_runs_everything"),
    ({"agents": {"main": {"allowlist": [{"id": "1", "pattern": "*"}]}}},
     "claw.exec.rule_allows_all"),
    ({"agents": {"*": {"allowlist": [{"id": "1", "pattern": "/usr/bin/git"}]}}},
     "claw.exec.rule_runs_others"),
    ({"agents": {"main": {"allowlist": [{"id": "1", "pattern": "/usr/bin/wc"}]}}}, ""),
]  # fmt: skip


@pytest.mark.parametrize(("rules", "check"), RULES)
def test_rules(tmp_path: Path, disk: RealDisk, rules: dict[str, Any], check: str) -> None:
    state = state_of(tmp_path)
    state.exec_approvals.write_text(json.dumps({"version": 1, **rules}))
    state.exec_approvals.chmod(0o600)
    assert set(found(state, disk)) - {"summary.attack_surface"} == ({check} if check else set())


def test_search_path(tmp_path: Path, disk: RealDisk) -> None:
    """Of the engine's environment and of pathPrepend."""
    for name, mode in (("loose", 0o777), ("group", 0o775), ("own", 0o755)):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(mode)
    prepend = [str(tmp_path / "loose")]
    state = state_of(tmp_path, {"tools": {"exec": {"pathPrepend": prepend}}})
    env = {"PATH": f"/usr/bin:{tmp_path}/group:{tmp_path}/own:bin:{tmp_path}/none"}
    rows = [
        (one.check, one.severity.value)
        for one in all_checks().run(subject_of(state, env, disk))
        if one.check.startswith("claw.exec.path")
    ]
    assert rows == [
        ("claw.exec.path_dir_writable", "critical"),
        ("claw.exec.path_dir_writable", "warn"),
        ("claw.exec.path_relative", "warn"),
    ]


def test_everything_runs(tmp_path: Path, disk: RealDisk) -> None:
    state = state_of(tmp_path, {"tools": {"exec": {"security": "full", "ask": "off"}}})
    state.exec_approvals.write_text(
        '{"version": 1, "defaults": {"security": "full", "ask": "off"}}'
    )
    state.exec_approvals.chmod(0o600)
    assert found(state, disk)["claw.exec.runs_everything"].severity is Severity.CRITICAL


MODES = [
    ("", 0o707, "fs.state_dir.perms_world_writable", "critical"),
    ("", 0o770, "fs.state_dir.perms_group_writable", "warn"),
    ("", 0o755, "fs.state_dir.perms_readable", "warn"),
    ("openclaw.json", 0o620, "fs.config.perms_writable", "critical"),
    ("openclaw.json", 0o604, "fs.config.perms_world_readable", "critical"),
    ("openclaw.json", 0o640, "fs.config.perms_group_readable", "warn"),
    ("more.json", 0o604, "fs.config_include.perms_world_readable", "critical"),
    ("more.json", 0o622, "fs.config_include.perms_writable", "critical"),
    ("credentials", 0o720, "fs.credentials_dir.perms_writable", "critical"),
    ("credentials", 0o750, "fs.credentials_dir.perms_readable", "warn"),
    ("agents/a/agent/auth-profiles.json", 0o620, "fs.auth_profiles.perms_writable", "critical"),
    ("agents/a/agent/auth-profiles.json", 0o604, "fs.auth_profiles.perms_readable", "warn"),
    ("agents/a/sessions/sessions.json", 0o604, "fs.sessions_store.perms_readable", "warn"),
    ("logs/claw.log", 0o640, "fs.log_file.perms_readable", "warn"),
    ("door.key", 0o604, "claw.fs.secret_file.perms_readable", "warn"),
    ("approvals", 0o755, "claw.fs.private_dir.perms_readable", "warn"),
]


@pytest.mark.parametrize(("name", "mode", "check", "severity"), MODES, ids=str)
def test_modes_are_found_and_mended(
    tmp_path: Path, disk: RealDisk, name: str, mode: int, check: str, severity: str
) -> None:
    state = state_of(tmp_path, {"$include": "./more.json"})
    (state.root / "more.json").write_text("{}")
    (state.root / "more.json").chmod(0o600)
    path = state.root / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}") if "." in path.name else path.mkdir()
    for folder in state.root.rglob("*"):
        if folder.is_dir():
            folder.chmod(0o700)
    path.chmod(mode)
    assert found(state, disk)[check].severity == severity
    done = fix(subject_of(state, {}, disk), disk)
    assert [words for words in done if str(path) in words]
    assert not stat.S_IMODE(path.stat().st_mode) & 0o077
    assert check not in found(state, disk)
    assert fix(subject_of(state, {}, disk), disk) == []


def test_links(tmp_path: Path, disk: RealDisk) -> None:
    real = state_of(tmp_path)
    (tmp_path / "elsewhere").write_text("{}")
    (tmp_path / "elsewhere").chmod(0o600)
    real.config.symlink_to(tmp_path / "elsewhere")
    real.approvals_dir.symlink_to(tmp_path)
    link = tmp_path / "link"
    link.symlink_to(real.root)
    rows = found(StateDir(link), disk)
    assert {"fs.state_dir.symlink", "fs.config.symlink", "claw.fs.symlinked_state"} <= set(rows)


def test_a_mend_never_follows_a_link(tmp_path: Path) -> None:
    from claw_engine.audit import Mode

    target = tmp_path / "target"
    target.write_text("")
    target.chmod(0o644)
    (tmp_path / "link").symlink_to(target)
    mends = (Mode(str(tmp_path / "link"), 0o600), Mode(str(tmp_path / "gone"), 0o600))
    done = mend_modes([Finding("x", Severity.WARN, "", "", mends=mends)])
    assert all(words.startswith("NOT DONE") for words in done)
    assert stat.S_IMODE(target.stat().st_mode) == 0o644


def test_a_mend_only_takes_away(tmp_path: Path) -> None:
    from claw_engine.audit import Mode

    path = tmp_path / "read-only"
    path.write_text("")
    path.chmod(0o444)
    mend_modes([Finding("x", Severity.WARN, "", "", mends=(Mode(str(path), 0o600),))])
    assert stat.S_IMODE(path.stat().st_mode) == 0o400


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_who_owns_what_is_above(tmp_path: Path, disk: RealDisk) -> None:
    state = state_of(tmp_path)
    os.chown(tmp_path, 12345, 12345)
    assert "12345" in found(state, disk)["claw.fs.above_state_dir"].detail
    os.chown(tmp_path, 0, 0)
    tmp_path.chmod(0o777)
    assert "anyone" in found(state, disk)["claw.fs.above_state_dir"].detail


def test_a_synced_folder(tmp_path: Path, disk: RealDisk) -> None:
    folder = tmp_path / "Dropbox"
    folder.mkdir()
    assert "fs.synced_dir" in found(state_of(folder), disk)


def test_open_routes(tmp_path: Path, disk: RealDisk) -> None:
    rows = found(state_of(tmp_path), disk, routes=("docker.sock is reachable",))
    assert "docker.sock" in rows["claw.approvals.bypass"].detail


def test_a_safe_default_is_written_and_comments_stay(tmp_path: Path, disk: RealDisk) -> None:
    state = state_of(tmp_path)
    state.config.write_text('{ // mine\n  logging: { redactSensitive: "off" } }\n')
    state.config.chmod(0o600)
    assert [words for words in fix(subject_of(state, {}, disk), disk) if "redactSensitive" in words]
    text = state.config.read_text()
    assert "// mine" in text and '"tools"' in text
    assert "logging.redact_off" not in found(state, disk)


def test_a_check_that_fails_keeps_nobody_else_from_looking(tmp_path: Path, disk: RealDisk) -> None:
    def broken(_: object) -> list[Finding]:
        raise RuntimeError("broken")

    audit = Audit()
    audit.add("one", broken)
    audit.add("two", lambda _: [Finding("x", Severity.INFO, "", "")])
    rows = audit.run(subject_of(state_of(tmp_path), {}, disk))
    assert [row.check for row in rows] == ["claw.audit.one_failed", "x"]
    with pytest.raises(ValueError, match="two audits"):
        audit.add("one", broken)


def test_report(tmp_path: Path, disk: RealDisk) -> None:
    """The shape of gateway digest §6.6; no secret in it."""
    state = state_of(tmp_path, {"gateway": {"auth": {"token": "sh0rt-secret"}}})
    told = report(subject_of(state, {}, disk), 7)
    assert told["ts"] == 7 and told["summary"] == {"critical": 0, "warn": 1, "info": 1}
    rows: Any = told["findings"]
    assert rows[0]["checkId"] == "gateway.token_too_short"
    assert "sh0rt-secret" not in json.dumps(told)
