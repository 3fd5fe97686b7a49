"""Direction A: we write a directory; the real program opens, appends, compacts and resets it."""

from __future__ import annotations

from typing import Any

from bench.interop.files import chain_faults
from bench.interop.peer import RealGateway
from bench.interop.provider import SUMMARY
from bench.interop.stage import Stage

MAIN = "agent:main:main"
SECOND = "agent:main:second"
STOPPED = "agent:main:stopped"
STOPPED_FIRST = "agent:main:stopped-first"
KILLED = "agent:main:killed"
KILLED_ASKING = "agent:main:killed-asking"
FAILED = "agent:main:failed"
LINES = "agent:main:lines"
LONG = "agent:main:long"
ALL = (MAIN, SECOND, STOPPED, STOPPED_FIRST, KILLED, KILLED_ASKING, FAILED, LINES, LONG)
LONG_TURNS = 26
"""Of 11,000 characters: the real one's history cuts texts at 12,000. Together they are more than
the 20,000 tokens it keeps out of a compaction, and than the 256 KB that we read whole."""


async def direction_a(stage: Stage) -> None:
    """The whole story; broken checks are in the report."""
    stage.report.part("A1. Our engine writes")
    await _write(stage)
    stage.report.part("A2. The real gateway opens, appends, compacts, resets")
    told, kept = await _real_takes_over(stage)
    stage.report.part("A3. Back to our engine")
    await _ours_again(stage, told, kept)
    stage.report.part("A4. And once more to the real one")
    await _real_again(stage)


async def _write(stage: Stage) -> None:
    report = stage.report
    async with stage.ours("a fresh directory") as ours:
        for text in ("hello #say:whale", "run it #exec:echo_hi", "note it #write:whales.md",
                     "read it #read:whales.md", "ponder #think", "aloud #inline",
                     "thanks #say:bye"):  # fmt: skip
            ended = await ours.turn(MAIN, text)
            report.check(f"{MAIN}: {text!r} is done", ended["status"] == "done", ended)
        for key in (SECOND, STOPPED, KILLED, FAILED, LINES):
            for number in (1, 2):
                await ours.turn(key, f"turn {number} of {key} #say:word{number}")
        for number in range(LONG_TURNS):
            await ours.turn(LONG, f"letter {number} please #long:11")
        for key in (STOPPED, STOPPED_FIRST):
            ended = await ours.aborted(key, "do not end #slow")
            report.check(f"{key}: a stopped run", ended["status"] == "aborted", ended)
        ended = await ours.turn(FAILED, "break #fail")
        report.check(f"{FAILED}: a run that fails", ended["status"] == "failed", ended)
        ended = await ours.allowed_for_good(MAIN, "where #exec:uname")
        report.check(f"{MAIN}: allow-always", ended["status"] == "done", ended)
        await ours.asking(KILLED_ASKING, "may I #exec:sleep_1")
        await ours.hanging(KILLED, "never ends #slow")
        await ours.kill()
    report.step(
        "(killed with SIGKILL: one run in the middle of an answer, one waiting for approval)"
    )
    async with stage.ours("recovery") as ours:
        ended = await ours.turn(LONG, "a letter after a restart #say:late")
        report.check(f"{LONG}: goes on", ended["status"] == "done", ended)
        history = await ours.history(KILLED)
        report.check(f"{KILLED}: the cut turn is there", len(history) >= 5, len(history))
        history = await ours.history(KILLED_ASKING)
        roles = [m["role"] for m in history]
        whole = ["user", "assistant", "toolResult", "assistant"]
        report.check(f"{KILLED_ASKING}: the open call has a result", roles == whole, roles)


async def _real_takes_over(stage: Stage) -> tuple[dict[str, list[Any]], set[str]]:
    report, before = stage.report, stage.look()
    for key in ALL:
        faults = chain_faults(before.lines(key))
        report.check(f"{key}: we left one header, one tree", not faults, faults)
    async with stage.ours("to be asked for its histories") as ours:
        said = {key: await ours.history(key) for key in ALL}
    before = stage.look()
    stage.golden.shapes(before)
    async with stage.real("opens our directory") as real:
        rows = {row["key"]: row for row in (await real.call("sessions.list", {}))["sessions"]}
        for key in ALL:
            found = rows.get(key, {}).get("sessionId")
            report.check(
                f"{key}: listed with our id", found == before.index[key]["sessionId"], found
            )
            report.same_history(f"{key}: history equals ours", said[key], await real.history(key))
        stage.untouched("after looking", before, stage.look())
        rules = (await real.call("exec.approvals.get", {}))["file"]
        patterns = [rule["pattern"] for rule in rules["agents"]["main"]["allowlist"]]
        report.check(
            "exec-approvals.json: it reads our allow-always rule",
            any(pattern.endswith("/uname") for pattern in patterns),
            patterns,
        )

        for key in ALL:
            asked = f"and again, {key.split(':')[-1]}"
            answer = await real.turn(key, f"{asked} #say:appended")
            report.check(f"{key}: the real one answers", answer == "You said appended.", answer)
            first = next((w for _, w in _users(said[key])), "")
            stage.remembered(key, asked, first[:60])
            note = "previous agent run was aborted" in stage.provider.heard(asked)
            cut = key in (STOPPED, STOPPED_FIRST, KILLED, KILLED_ASKING)
            report.check(f"{key}: abortedLastRun is {str(cut).lower()} to it", note == cut, note)
        thoughts = stage.provider.thoughts("and again, main")
        report.check(f"{MAIN}: our thought goes back under its field", "ponder" in thoughts)
        after = stage.look()
        for key in ALL:
            stage.appended(key, before, after)
        stage.entries_kept("after a turn each", before, after)
        await _compact(stage, real)
        await _truncate(stage, real)
        await _reset(stage, real)
        told = {key: await real.history(key) for key in ALL}
        rows = {row["key"]: row for row in (await real.call("sessions.list", {}))["sessions"]}
    stage.golden.directory("taken-over", stage.look(), told, rows)
    return told, set(stage.look().files)


def _users(messages: list[Any]) -> list[tuple[str, str]]:
    return [
        (m["role"], m["content"][0]["text"])
        for m in messages
        if m["role"] == "user" and m["content"]
    ]


async def _compact(stage: Stage, real: RealGateway) -> None:
    report, before = stage.report, stage.look()
    answer = await real.turn(LONG, "/compact keep the whales")
    report.check(f"{LONG}: /compact compacts what we wrote", "Compacted" in answer, answer)
    after = stage.look()
    stage.appended(LONG, before, after)
    lines = after.lines(LONG)
    made = [line for line in lines if line["type"] == "compaction"]
    report.check(f"{LONG}: one compaction entry", len(made) == 1, len(made))
    if made:
        ids = {line.get("id") for line in lines}
        kept = made[0]["firstKeptEntryId"]
        report.check(f"{LONG}: it keeps from one of our entries on", kept in ids, kept)
        report.check(f"{LONG}: its summary came from the model", "whales" in made[0]["summary"], "")
    await real.turn(LONG, "after the compaction #say:short")
    heard = stage.provider.heard("after the compaction")
    report.check(
        f"{LONG}: the model now reads the summary instead of the first letter",
        SUMMARY[:40] in heard and "letter 0 please" not in heard,
    )


async def _truncate(stage: Stage, real: RealGateway) -> None:
    report, before = stage.report, stage.look()
    answer = await real.call("sessions.compact", {"key": LINES, "maxLines": 4})
    report.check(f"{LINES}: sessions.compact maxLines=4", answer.get("compacted") is True, answer)
    after = stage.look()
    report.check(
        f"{LINES}: the whole file is archived as .bak",
        after.archives(LINES, "bak") == [before.transcript(LINES)],
    )
    kept = after.transcript(LINES)
    report.check(
        f"{LINES}: our last 4 lines stand (the real one drops the header line here)",
        kept.splitlines() == before.transcript(LINES).splitlines()[-4:],
        len(kept.splitlines()),
    )


async def _reset(stage: Stage, real: RealGateway) -> None:
    report, before = stage.report, stage.look()
    answer = await real.call("sessions.reset", {"key": SECOND})
    old, new = before.index[SECOND]["sessionId"], answer["entry"]["sessionId"]
    report.check(f"{SECOND}: sessions.reset gives a new id", old != new, new)
    after = stage.look()
    report.check(
        f"{SECOND}: our transcript is archived as .reset, byte for byte",
        after.archives_of(old, "reset") == [before.transcript(SECOND)],
    )
    await real.turn(SECOND, "a new page #say:fresh")
    heard = stage.provider.heard("a new page")
    report.check(f"{SECOND}: the new session begins empty", "turn 1 of" not in heard)


async def _ours_again(stage: Stage, told: dict[str, list[Any]], kept: set[str]) -> None:
    report, before = stage.report, stage.look()
    async with stage.ours("opens what the real one made of it") as ours:
        rows = {r["key"]: r for r in (await ours.call("sessions.list", {}))["sessions"]}
        report.check("all sessions are listed", set(ALL) <= set(rows), sorted(rows))
        for key in ALL:
            history = await ours.history(key)
            shown = [m for m in told[key] if m["role"] != "system"]  # its mark for a compaction
            report.same_history(f"{key}: history equals the real one's", history, shown)
        for key in ALL:
            asked = f"home again, {key.split(':')[-1]}"
            ended = await ours.turn(key, f"{asked} #say:home")
            report.check(f"{key}: our engine answers", ended["status"] == "done", ended)
        heard = stage.provider.heard("home again, long")
        report.check(
            f"{LONG}: our engine reads the real one's compaction as a model must",
            SUMMARY[:40] in heard and "letter 0 please" not in heard
            and "after the compaction" in heard,
        )  # fmt: skip
    async with stage.ours("writes to the long file without reading it whole") as ours:
        await ours.turn(LONG, "unseen #say:blind")
        stage.remembered(LONG, "unseen", "home again", SUMMARY[:40])
    after = stage.look()
    for key in ALL:
        if key != LINES:
            stage.appended(key, before, after)
    ids = [line["id"] for line in after.lines(LONG)[-2:]]
    report.check(f"{LONG}: ids of a half-read file are long ones", {16} == set(map(len, ids)), ids)
    faults = chain_faults(after.lines(LINES)[:1])
    report.check(f"{LINES}: the lost header is given back", not faults, faults)
    old = before.transcript(LINES)
    report.check(
        f"{LINES}: the file without a header is kept beside it",
        any(data == old for name, data in after.files.items() if ".bak-" in name),
    )
    stage.entries_kept("after a turn each", before, after)
    lost = sorted(n for n in kept - set(after.files) if not n.endswith((".lock", ".tmp")))
    report.check("no file of the real one's is gone", not lost, lost)


async def _real_again(stage: Stage) -> None:
    report = stage.report
    async with stage.ours("to be asked for its histories") as ours:
        said = {key: await ours.history(key) for key in ALL}
    before = stage.look()
    async with stage.real("the last word") as real:
        for key in ALL:
            shown = [m for m in await real.history(key) if m["role"] != "system"]
            report.same_history(f"{key}: history equals ours", said[key], shown)
            asked = f"last word, {key.split(':')[-1]}"
            await real.turn(key, f"{asked} #say:end")
            stage.remembered(key, asked, "home again")
            note = stage.provider.heard(asked).count("previous agent run was aborted")
            cut = key in (STOPPED, STOPPED_FIRST, KILLED, KILLED_ASKING)
            report.check(f"{key}: it takes no later run for an aborted one", note == cut, note)
        for key in ALL:
            stage.appended(key, before, stage.look(), tree=key != LINES)
