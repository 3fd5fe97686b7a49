"""Direction B: the real program writes a directory; we open it, append, reset, and give it back."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from bench.interop.files import Look, spoken
from bench.interop.golden import ROW
from bench.interop.ours import NotStarted
from bench.interop.peer import PeerError, RealGateway
from bench.interop.provider import SUMMARY
from bench.interop.stage import Stage
from bench.interop.write_here import LONG_TURNS
from claw_engine.errors import ClawError

MAIN = "agent:main:main"
NAMED = "agent:main:named"
ABORTED = "agent:main:aborted"
STOPPED = "agent:main:stopped"
LINES = "agent:main:lines"
LONG = "agent:main:long"
RESET = "agent:main:reset"
SLASH = "agent:main:slash"
FAILED = "agent:main:failed"
DELETED = "agent:main:deleted"
UNAME = Path(shutil.which("uname") or "/usr/bin/uname").resolve()
ALL = (MAIN, NAMED, ABORTED, STOPPED, LINES, LONG, RESET, SLASH, FAILED)
FORKED = (ABORTED, STOPPED)
"""The real one writes the partial answer of an aborted first run under a header of its own, and
then the whole file again: two roots. Its history shows both, in the order of the file."""
SET_BY_A_TURN = frozenset(
    {"updatedAt", "abortedLastRun", "modelProvider", "model", "contextTokens", "inputTokens",
     "outputTokens", "cacheRead", "cacheWrite", "totalTokens", "totalTokensFresh", "sessionFile",
     "systemPromptReport"}
)  # fmt: skip


async def direction_b(stage: Stage) -> None:
    """The whole story; broken checks are in the report."""
    stage.report.part("B1. The real gateway writes")
    told, rows = await _write(stage)
    stage.golden.directory("theirs", stage.look(), told, rows)
    stage.report.part("B2. Our engine opens, appends, resets")
    said = await _ours_takes_over(stage, told, rows)
    stage.report.part("B3. Back to the real one")
    await _real_again(stage, said)


async def _write(stage: Stage) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    report = stage.report
    async with stage.real("a fresh directory") as real:
        for text in ("hello #say:whale", "run it #exec:echo_hi", "note it #write:whales.md",
                     "read it #read:whales.md", "ponder #think", "thanks #say:bye"):  # fmt: skip
            report.check(f"{MAIN}: {text!r}", bool(await real.turn(MAIN, text)))
        thoughts = stage.provider.thoughts("thanks")
        report.check(f"{MAIN}: its own thought goes back under its field", "ponder" in thoughts)
        for key in (NAMED, LINES, RESET, SLASH, FAILED, DELETED):
            for number in (1, 2):
                await real.turn(key, f"turn {number} of {key} #say:word{number}")
        await real.call("sessions.patch", {"key": NAMED, "label": "Whales", "thinkingLevel": "low"})
        for number in range(LONG_TURNS):
            await real.turn(LONG, f"letter {number} please #long:11")
        answer = await real.turn(LONG, "/compact keep the whales")
        report.check(f"{LONG}: /compact", "Compacted" in answer, answer)
        await real.turn(LONG, "after the compaction #say:short")
        try:
            await real.turn(FAILED, "break #fail")
        except PeerError as error:
            report.step(f"a failing model: {str(error)[-120:]}")
        rules = await real.call("exec.approvals.get", {})
        agents = {"main": {"allowlist": [{"pattern": str(UNAME)}]}}
        await real.call(
            "exec.approvals.set",
            {"file": {**rules["file"], "agents": agents}, "baseHash": rules.get("hash")},
        )
        await _cut(real, ABORTED, lambda: real.call("chat.abort", {"sessionKey": ABORTED}))
        await _cut(real, STOPPED, lambda: _not_meanwhile(stage, real))
        answer = await real.call("sessions.compact", {"key": LINES, "maxLines": 4})
        report.check(
            f"{LINES}: sessions.compact maxLines=4", answer.get("compacted") is True, answer
        )
        await _cut_and_gone_on(stage, real)
        await real.call("sessions.reset", {"key": RESET})
        await real.turn(RESET, "a new page #say:fresh")
        await real.turn(SLASH, "/new")
        deleted = await real.call("sessions.delete", {"key": DELETED})
        report.check(f"{DELETED}: sessions.delete", deleted.get("deleted") is True, deleted)
        told = {key: await real.history(key) for key in ALL}
        rows = {row["key"]: row for row in (await real.call("sessions.list", {}))["sessions"]}
    return told, rows


async def _cut_and_gone_on(stage: Stage, real: RealGateway) -> None:
    """What it does by itself to a file whose header it cut off: seen, not judged."""
    await real.call("sessions.compact", {"key": DELETED, "maxLines": 4})
    cut = stage.look().transcript(DELETED)
    await real.turn(DELETED, "what was before? #say:nothing")
    new = stage.look().transcript(DELETED)
    heard = "turn 2 of" in stage.provider.heard("what was before?")
    stage.report.step(
        f"{DELETED}: a turn of the real one on a file without header: the cut lines "
        f"{'stand' if cut in new else 'are gone'}, its model was "
        f"{'' if heard else 'not '}given them"
    )


async def _cut(real: RealGateway, key: str, stop: Any) -> None:
    """A run that is stopped while it answers."""
    run_id = await real.say(key, "do not end #slow")
    await real.event("chat", lambda p: p.get("runId") == run_id and p["state"] == "delta")
    await stop()
    await real.event("chat", lambda p: p.get("runId") == run_id and p["state"] == "aborted")
    await real.turn(key, "go on #say:on")


async def _not_meanwhile(stage: Stage, real: RealGateway) -> None:
    """While it answers it holds its lock, and our engine keeps away; then /stop."""
    locks = [name for name in stage.look().files if name.endswith(".jsonl.lock")]
    stage.report.check("while it answers, its transcript is locked", len(locks) == 1, locks)
    try:
        async with stage.ours("although the real one is at work"):
            refused = False
    except NotStarted:
        refused = True
    stage.report.check("our engine does not start on a directory in use", refused)
    await real.say(STOPPED, "/stop")


async def _ours_takes_over(
    stage: Stage, told: dict[str, list[Any]], rows: dict[str, Any]
) -> dict[str, list[Any]]:
    report, before = stage.report, stage.look()
    async with stage.ours("opens the real one's directory") as ours:
        listed = {r["key"]: r for r in (await ours.call("sessions.list", {}))["sessions"]}
        report.check("the same sessions are listed", set(listed) == set(rows), sorted(listed))
        for key in sorted(set(listed) & set(rows)):
            theirs = {name: rows[key].get(name) for name in ROW}
            here = {name: listed[key].get(name) for name in ROW}
            report.check(f"{key}: row ({', '.join(ROW)})", here == theirs, (here, theirs))
        stage.untouched("after listing", before, stage.look())
        for key in ALL:
            history = await ours.history(key)
            shown = [m for m in told[key] if m["role"] != "system"]
            if key in FORKED:
                left = [p for p in spoken(shown) if p not in spoken(history)]
                report.check(f"{key}: nothing it tells is missing in ours", not left, left)
                continue
            report.same_history(f"{key}: history equals the real one's", history, shown)
        looked = stage.look()
        stage.untouched("after reading", _without(before, LINES), looked)

        for key in ALL:
            asked = f"with us, {key.split(':')[-1]}"
            ended = await ours.turn(key, f"{asked} #say:home")
            report.check(f"{key}: our engine answers", ended["status"] == "done", ended)
        stage.remembered(MAIN, "with us, main", "hello #say:whale", "hi", "The blue whale", "bye")
        heard = stage.provider.heard("with us, long")
        report.check(
            f"{LONG}: the compacted past reaches the model as its summary",
            SUMMARY[:40] in heard and "letter 0 please" not in heard
            and "after the compaction" in heard,
        )  # fmt: skip
        stage.remembered(LINES, "with us, lines", "turn 2 of")
        after = stage.look()
        for key in ALL:
            if key != LINES:
                stage.appended(key, looked, after, tree=key not in (*FORKED, LINES))
        stage.entries_kept("after a turn each", before, after)
        stage.only_changed("after a turn each", before, after, SET_BY_A_TURN)
        count = ours.asked()
        await ours.turn(MAIN, "where #exec:uname")
        report.check(
            "a command the real one's rules allow is not asked about", ours.asked() == count
        )
        await ours.allowed_for_good(MAIN, "who #exec:id")
        await _reset(stage, ours)
        return {key: await ours.history(key) for key in ALL}


def _without(seen: Look, key: str) -> Look:
    """The look without a session's transcript (one that must be mended)."""
    name = f"{seen.index[key]['sessionId']}.jsonl"
    return Look({n: data for n, data in seen.files.items() if n != name}, seen.index)


async def _reset(stage: Stage, ours: Any) -> None:
    report, before = stage.report, stage.look()
    try:
        door = await ours.reset(RESET)
    except ClawError as error:
        report.check(f"{RESET}: our engine resets", False, error)
        return
    after = stage.look()
    old, new = before.index[RESET]["sessionId"], after.index[RESET]["sessionId"]
    if not report.check(f"{RESET}: our engine resets ({door})", old != new, new):
        return
    archived = after.archives_of(old, "reset")
    report.check(
        f"{RESET}: its transcript is archived as .reset, byte for byte",
        before.transcript(RESET) in archived,
    )
    await ours.turn(RESET, "our new page #say:fresh")


async def _real_again(stage: Stage, said: dict[str, list[Any]]) -> None:
    report, before = stage.report, stage.look()
    async with stage.real("opens its own directory after us") as real:
        rows = {row["key"]: row for row in (await real.call("sessions.list", {}))["sessions"]}
        report.check("the same sessions are listed", set(rows) >= set(ALL), sorted(rows))
        report.check("the label is there", rows[NAMED].get("label") == "Whales", rows[NAMED])
        for key in ALL:
            shown = [m for m in await real.history(key) if m["role"] != "system"]
            if key in FORKED:
                missing = [p for p in spoken(said[key]) if p not in spoken(shown)]
                report.check(f"{key}: nothing we tell is missing", not missing, missing)
            else:
                report.same_history(f"{key}: history equals ours", said[key], shown)
        stage.untouched("after looking", before, stage.look())
        rules = (await real.call("exec.approvals.get", {}))["file"]
        patterns = [rule["pattern"] for rule in rules["agents"]["main"]["allowlist"]]
        report.check(
            "exec-approvals.json: its own rule and ours are there",
            str(UNAME) in patterns and any(p.endswith("/id") for p in patterns),
            patterns,
        )
        for key in ALL:
            asked = f"back there, {key.split(':')[-1]}"
            try:
                answer = await real.turn(key, f"{asked} #say:end")
            except PeerError as error:
                answer = str(error)
            report.check(f"{key}: the real one answers", answer == "You said end.", answer)
            last = (
                "our new page"
                if any("our new page" in w for _, w in spoken(said[key]))
                else "with us"
            )
            stage.remembered(key, asked, last)
        after = stage.look()
        for key in ALL:
            stage.appended(key, before, after, tree=key not in (*FORKED, LINES))
        stage.entries_kept("after a turn each", before, after)
