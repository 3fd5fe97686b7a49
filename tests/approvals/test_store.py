"""exec-approvals.json: read as OpenClaw wrote it, written so that nothing is lost."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from claw_engine.approvals import rulefile
from claw_engine.approvals.errors import RulesError
from claw_engine.approvals.evaluate import Answer, RuleUse, evaluate
from claw_engine.approvals.policy import Ask, ExecPolicy, Rule, Security
from claw_engine.approvals.store import ExecApprovals
from claw_engine.world import World
from tests.approvals.conftest import Box
from tests.support.fakes import START_MS, FaultyDisk, fake_world

GOLDEN = Path(__file__).parents[1] / "golden" / "exec-approvals.json"


@pytest.fixture
def disk() -> FaultyDisk:
    return FaultyDisk()


@pytest.fixture
def world(disk: FaultyDisk) -> World:
    return fake_world(disk=disk)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "exec-approvals.json"


def make(world: World, path: Path, warnings: list[str] | None = None) -> ExecApprovals:
    warn = warnings.append if warnings is not None else None
    return ExecApprovals(world, path, warn=warn)


def put(path: Path, value: object) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))


def test_no_file_is_a_fresh_install(world: World, path: Path) -> None:
    policy = make(world, path).policy_for("main")
    assert policy == ExecPolicy(Security.ALLOWLIST, Ask.ON_MISS, Security.DENY, ())


async def test_a_real_file_is_read_and_survives_a_write(world: World, path: Path) -> None:
    put(path, GOLDEN.read_text())
    store = make(world, path)
    await store.load()
    assert path.read_bytes() == GOLDEN.read_bytes()  # reading changes nothing
    (rule,) = store.policy_for("main").rules
    assert (rule.id, rule.pattern) == ("db1cb15a-794a-4aa4-947f-952f93dd67a8", "/usr/bin/uname")
    assert rule.last_used_ms == 1796028515309
    await store.touch((RuleUse(rule, "/usr/bin/uname"),), "uname -a")
    golden, now = json.loads(GOLDEN.read_text()), json.loads(path.read_text())
    golden["agents"]["main"]["allowlist"][0].update(
        lastUsedAt=START_MS, lastUsedCommand="uname -a", lastResolvedPath="/usr/bin/uname"
    )
    assert now == golden
    assert path.read_text().startswith('{\n  "version": 1,\n  "socket": {\n')
    assert path.stat().st_mode & 0o777 == 0o600


async def test_unknown_fields_are_kept_everywhere(world: World, path: Path) -> None:
    entry = {"id": "a", "pattern": "/usr/bin/cat", "note": "mine"}
    data = {
        "version": 1,
        "x": [1],
        "defaults": {"autoAllowSkills": True, "y": 2},
        "agents": {"main": {"allowlist": [entry], "z": {"deep": None}}, "other": {"w": 1}},
    }
    put(path, data)
    store = make(world, path)
    added = await store.add_always("main", ("/usr/bin/uname",))
    now = json.loads(path.read_text())
    new = now["agents"]["main"]["allowlist"].pop()
    assert now == data
    assert new["id"] == added[0].id
    assert new["pattern"] == "/usr/bin/uname"
    assert new["lastUsedAt"] == START_MS


@pytest.mark.parametrize(
    ("text", "words"),
    [("{oops", "not valid JSON"), ("[]", "not a JSON object"), ('{"version": 2}', "version 2"),
     ("", "not valid JSON"), ("\xff", "JSON"), ("[" * 100_000, "JSON")],
)  # fmt: skip
async def test_a_damaged_file_allows_nothing_and_is_moved_aside_only_by_a_write(
    world: World, path: Path, text: str, words: str
) -> None:
    put(path, text)
    before = path.read_bytes()
    warnings: list[str] = []
    store = make(world, path, warnings)
    await store.load()
    assert store.policy_for("main").rules == ()
    assert path.read_bytes() == before
    assert len(warnings) == 1
    assert words in warnings[0]
    await store.add_always("main", ("/usr/bin/uname",))
    (aside,) = path.parent.glob("*.bad-*")
    assert aside.read_bytes() == before
    assert [r.pattern for r in store.rules()] == ["/usr/bin/uname"]


async def test_warnings_arrive_on_the_loop_from_whatever_thread(world: World, path: Path) -> None:
    put(path, "{oops")
    threads: list[int] = []
    store = ExecApprovals(world, path, warn=lambda _: threads.append(threading.get_ident()))
    await store.load()
    await world.disk.run(store.policy_for, "main")
    assert threads == [threading.get_ident()]


async def test_an_edit_from_outside_counts_at_once(world: World, path: Path) -> None:
    store = make(world, path)
    await store.add_always("main", ("/usr/bin/uname",))
    put(path, {"version": 1, "agents": {"main": {"security": "deny"}}})
    policy = store.policy_for("main")
    assert (policy.security, policy.rules) == (Security.DENY, ())
    path.unlink()
    assert store.policy_for("main").security is Security.ALLOWLIST


async def test_a_write_keeps_what_was_edited_from_outside(world: World, path: Path) -> None:
    store = make(world, path)
    await store.add_always("main", ("/usr/bin/uname",))
    data = json.loads(path.read_text())
    data["agents"]["main"]["ask"] = "always"
    put(path, data)
    await store.add_always("main", ("/usr/bin/cat",))
    policy = store.policy_for("main")
    assert policy.ask is Ask.ALWAYS
    assert [r.pattern for r in policy.rules] == ["/usr/bin/uname", "/usr/bin/cat"]


def test_fields_resolve_agent_then_every_agent_then_defaults_then_caller() -> None:
    file = rulefile.read(
        json.dumps(
            {
                "version": 1,
                "defaults": {"security": "full", "ask": "off", "askFallback": "full"},
                "agents": {
                    "*": {"ask": "always", "allowlist": [{"pattern": "/all"}]},
                    "main": {"security": "deny", "ask": "sometimes", "allowlist": ["/mine"]},
                },
            }
        ).encode()
    )
    policy = rulefile.policy(file, "main", ExecPolicy())
    assert (policy.security, policy.ask, policy.ask_fallback) == ("deny", "always", "full")
    assert [(r.agent_id, r.pattern) for r in policy.rules] == [("*", "/all"), ("main", "/mine")]
    other = rulefile.policy(file, "other", ExecPolicy())
    assert (other.security, [r.pattern for r in other.rules]) == ("full", ["/all"])
    nothing = rulefile.policy(rulefile.empty(), "x", ExecPolicy(Security.DENY))
    assert nothing.security is Security.DENY


def test_older_forms_are_understood() -> None:
    legacy = {"ask": "off", "allowlist": ["/a", {"pattern": "/b"}]}
    main = {"allowlist": [{"id": "c", "pattern": "/c"}, 7]}
    raw = {"version": 1, "agents": {"default": legacy, "main": main}}
    first, second = (rulefile.rules(rulefile.read(json.dumps(raw).encode())) for _ in range(2))
    assert [r.pattern for r in first] == ["/c", "/a", "/b"]
    assert all(r.id for r in first)
    assert first == second
    assert {r.agent_id for r in first} == {"main"}


@pytest.mark.parametrize(
    "data",
    [{"version": 1, "agents": []}, {"version": 1, "agents": {"main": []}},
     {"version": 1, "agents": {"main": {"allowlist": {}}}}, {"version": 1, "defaults": 3},
     {"version": 1, "agents": {"main": {"allowlist": [None, {"nopattern": 1}]}}}],
)  # fmt: skip
async def test_nonsense_inside_is_passed_over(world: World, path: Path, data: object) -> None:
    put(path, data)
    assert make(world, path).policy_for("main").rules == ()


async def test_undo_takes_a_rule_back(world: World, path: Path) -> None:
    store = make(world, path)
    one, two = await store.add_always("main", ("/usr/bin/uname", "/usr/bin/cat"))
    assert await store.remove(one.id) == one
    assert [r.id for r in store.rules()] == [two.id]
    assert await store.remove(one.id) is None


async def test_the_same_pattern_is_one_rule(world: World, path: Path) -> None:
    store = make(world, path)
    (first,) = await store.add_always("main", ("/usr/bin/uname",))
    (second,) = await store.add_always("main", ("/usr/bin/uname",))
    assert first.id == second.id
    assert len(store.rules()) == 1


async def test_a_rule_is_stored_by_real_path_and_bound_to_content(
    world: World, path: Path, box: Box
) -> None:
    """AP-05, the whole way: allow the symlink, re-point it, run again."""
    real = box.program("opt/rg-14/rg")
    link = box.bin / "rg"
    link.symlink_to(real)
    store = make(world, path)
    (rule,) = await store.add_always("main", (str(link),))
    assert (rule.pattern, rule.content_hash) == (str(real), box.hash(real))

    def decide() -> Answer:
        policy = store.policy_for("main")
        return evaluate("rg -n x", str(box.cwd), box.env, policy, store.fs).verdict

    assert decide() is Answer.ALLOW
    other = box.program("opt/other/rg", "#!/bin/sh\necho other\n")
    link.unlink()
    link.symlink_to(other)
    assert decide() is Answer.ASK


async def test_a_hand_made_rule_is_bound_to_the_content_seen_first(
    world: World, path: Path, box: Box
) -> None:
    tool = box.program("bin/mytool")
    put(
        path, {"version": 1, "agents": {"main": {"allowlist": [{"id": "h", "pattern": str(tool)}]}}}
    )
    await make(world, path).load()
    tool.write_text("#!/bin/sh\necho other\n")
    (rule,) = make(world, path).policy_for("main").rules  # as after a restart
    assert rule.content_hash is not None
    assert rule.content_hash != box.hash(tool)


async def test_a_full_disk_is_an_error_and_changes_nothing(
    world: World, path: Path, disk: FaultyDisk
) -> None:
    store = make(world, path)
    await store.add_always("main", ("/usr/bin/uname",))
    before = path.read_bytes()
    disk.fail_next()
    with pytest.raises(RulesError):
        await store.add_always("main", ("/usr/bin/cat",))
    assert path.read_bytes() == before
    assert [r.pattern for r in store.rules()] == ["/usr/bin/uname"]


@pytest.mark.skipif(os.getuid() == 0, reason="root reads everything")
def test_an_unreadable_file_allows_nothing(world: World, path: Path) -> None:
    put(path, GOLDEN.read_text())
    path.chmod(0)
    warnings: list[str] = []
    assert make(world, path, warnings).policy_for("main").rules == ()
    assert warnings


def test_the_stricter_of_two_policies_wins() -> None:
    policy = ExecPolicy(Security.FULL, Ask.OFF, rules=(Rule("a", "/a"),))
    tight = policy.tightened("allowlist", "on-miss")
    assert (tight.security, tight.ask, tight.rules) == ("allowlist", "on-miss", policy.rules)
    assert tight.tightened("full", "off") == tight
    assert tight.tightened(None, None) == tight
    with pytest.raises(ValueError, match="sometimes"):
        policy.tightened(None, "sometimes")
