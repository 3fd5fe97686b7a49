"""The two stories: our console at a real gateway, and a real terminal client at ours."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

from bench.interop.peer import TOKEN, free_port
from bench.interop.provider import Provider
from bench.interop.report import Report
from bench.peers.places import (
    Peer,
    claw,
    our_console,
    our_gateway,
    real_gateway,
    their_terminal,
)
from bench.peers.screen import NotSeen, Screen
from bench.peers.tap import count, tap
from claw_engine.client.device import load_device
from claw_engine.client.gateways import Gateways, parse_address
from claw_engine.client.websocket import Secret, WebSocketClient

FIRST_S = 240.0
"""The first turn of a real gateway loads its plugins; on a busy machine that takes minutes."""


async def console_there(
    peer: Peer, work: Path, out: Path, cache: Path, provider: Provider, report: Report
) -> None:
    """List, send, stream, approve, always, abort, another client's words, a restarted gateway."""
    version = peer.read()
    report.step(f"our console at a gateway of OpenClaw {version} (protocol {peer.protocol})")
    home, log = work / f"gateway-{version}", out / f"console-at-{version}.frames.jsonl"
    log.unlink(missing_ok=True)
    port = free_port()
    async with (
        real_gateway(peer, home, provider, cache) as gateway,
        tap(port, f"ws://127.0.0.1:{gateway.port}", log) as url,
    ):
        mine = work / f"console-{version}"
        async with our_console(f"console-{peer.protocol}", url, mine, out) as screen:

            async def seen(what: str, *words: str, gone: str = "", s: float = 60) -> None:
                await _check(report, screen, what, words, gone, s)

            await seen("attached; the model is named", "fake/fake-1", "●", s=120)
            await screen.say("hello #say:whale")
            await seen("the message stands at once", "hello #say:whale", s=10)
            await seen("its answer came", "You said whale.", s=FIRST_S)
            await seen("the session is listed", "○")
            await screen.picture(f"console-at-{version}-1-chat")
            await screen.say("count #slow")
            await seen("words stream while it runs", "one two three", "streaming")
            await screen.picture(f"console-at-{version}-2-stream")
            await screen.key("C-c")
            await seen("ctrl+c stops it", "aborted", gone="streaming")
            await guard(peer, gateway.port, work)
            await screen.say("run it #exec:uname_-s")
            await seen("the request came", "waits", "uname -s", s=90)
            await screen.key("F2")
            await seen("the card", "RUN", "uname -s")
            await asyncio.sleep(1.5)
            await screen.picture(f"console-at-{version}-3-card")
            await screen.key("y")
            await seen("allowed once", "Decided", "once", gone="WHY")
            await asyncio.sleep(1)
            await screen.key("Escape")
            await seen("back at the conversation", "Sessions")
            if peer.protocol == 4:  # the run went on with what the command said
                await seen("the output came back to the run", "The tool said", "Linux")
            else:
                await seen("the run told of the request", "The tool said", "Approval required")
            await screen.picture(f"console-at-{version}-4-ran")
            await gateway.stop()
            await seen("the gateway's end is seen", gone="●", s=30)
            await screen.picture(f"console-at-{version}-5-lost")
            await gateway.start()
            await seen("attached again by itself", "●", s=120)
            await asyncio.sleep(1)
            await screen.key("i")
            await seen("typing again", "TYPE")
            await screen.say("again #say:dolphin")
            await seen("and it goes on", "You said dolphin.", s=FIRST_S)
            await screen.picture(f"console-at-{version}-6-again")
    report.step(f"frames: {json.dumps(count(log))}")


async def guard(peer: Peer, port: int, work: Path) -> None:
    """Makes the main session ask before it runs commands."""
    where = parse_address(f"ws://127.0.0.1:{port}")
    kept = work / "operator"
    client = WebSocketClient(
        where, load_device(kept / "device.json"), Gateways(kept / "gateways.json"), Secret(TOKEN)
    )
    await client.connect()
    how = (
        {"permissionMode": "guarded"}
        if peer.protocol == 4
        else {"execSecurity": "allowlist", "execAsk": "on-miss", "execHost": "gateway"}
    )
    await client.call("sessions.patch", {"key": "agent:main:main", **how})
    await client.close()


async def terminal_here(
    peer: Peer, work: Path, out: Path, cache: Path, provider: Provider, report: Report
) -> None:
    """Chat, stream, tool card, abort, an approval that waits, a restarted gateway."""
    version = peer.read()
    report.step(f"the terminal client of OpenClaw {version} at our gateway")
    home, log = work / f"ours-{version}", out / f"terminal-{version}.frames.jsonl"
    log.unlink(missing_ok=True)
    port = free_port()
    state = str(home / ".openclaw")
    async with (
        our_gateway(home, provider) as gateway,
        tap(port, f"ws://127.0.0.1:{gateway.port}", log) as url,
    ):
        mine = work / f"terminal-{version}"
        terminal = their_terminal(peer, f"tui-{peer.protocol}", url, mine, cache, out)
        async with terminal as screen:

            async def seen(what: str, *words: str, gone: str = "", s: float = 60) -> None:
                await _check(report, screen, what, words, gone, s)

            await seen("connected", "connected", "200k", gone="failed", s=240)
            await screen.say("hello #say:whale")
            await seen("chat", "You said whale.", "| idle")
            await screen.picture(f"terminal-{version}-1-chat")
            await screen.say("/verbose full")
            await seen("a session setting of its own is taken", "verbose", gone="failed")
            await asyncio.sleep(2)
            await screen.say("count #slow")
            await seen("words stream while it runs", "one two three", "streaming")
            await screen.picture(f"terminal-{version}-2-stream")
            await screen.key("Escape")
            await seen("escape aborts", "run aborted", gone="streaming")
            await screen.picture(f"terminal-{version}-3-aborted")
            await screen.say("read it #read:AGENTS.md")
            await seen("a tool card", "Read", "The tool said")
            await screen.picture(f"terminal-{version}-4-tool")
            await screen.say("run it #exec:uname_-s")
            waits = await _waiting(home, state)
            report.check("our gateway asks", bool(waits), waits)
            await seen("it waits and says so", "Let me see.", gone="failed")
            await screen.picture(f"terminal-{version}-5-waits")
            await screen.type("still alive")
            await seen("its keys work meanwhile", "still alive", s=10)
            for _ in "still alive":
                await screen.key("BSpace")
            await claw(home, "approvals", "--state-dir", state, "approve", waits)
            await seen("approved elsewhere, it goes on", "from exec]]", "Linux", "| idle")
            await screen.picture(f"terminal-{version}-6-approved")
            await gateway.stop()
            await seen("the gateway's end is seen", "disconnected")
            await gateway.start()
            await seen("it attaches again", "connected", gone="disconnected", s=90)
            await screen.say("again #say:dolphin")
            await seen("and goes on", "You said dolphin.")
            await screen.picture(f"terminal-{version}-7-again")
    report.step(f"frames: {json.dumps(count(log))}")


async def _waiting(home: Path, state: str) -> str:
    for _ in range(30):
        said = await claw(home, "approvals", "--state-dir", state, "list")
        if found := re.match(r"([0-9a-f]{8}) ", said):
            return found[1]
        await asyncio.sleep(1)
    return ""


async def _check(
    report: Report, screen: Screen, what: str, words: tuple[str, ...], gone: str, seconds: float
) -> None:
    try:
        await screen.see(*words, gone=gone, seconds=seconds)
    except NotSeen as error:
        report.check(what, False, str(error))
    else:
        report.check(what, True)
