"""The front door of the console: attach to the engine of a state directory, or be its engine.
The only place besides `__main__` that may import the engine."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from claw_engine.client.base import Client
    from claw_engine.engine import Engine
    from claw_tui.app import ClawApp

FIRST_FRAME_S = 5.0
"""What waits for the first frame waits no longer."""


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(
        prog="claw-tui",
        description="The operator's console: attaches to a running engine, or runs one itself.",
    )
    out.add_argument("--state-dir", metavar="DIR", help="state directory of the engine")
    out.add_argument("--url", metavar="URL", help="a gateway elsewhere: ws://nas:18789")
    out.add_argument("--token", default="", help="its token (asked for when it is needed)")
    out.add_argument("--password", default="", help="its password, if it has one")
    out.add_argument("--read-only", action="store_true", help="ask it for reading only")
    out.add_argument("--forget", action="store_true", help="forget what is kept about --url")
    out.add_argument("--theme", metavar="NAME", default="", help="claw-dark, claw-light, …")
    out.add_argument("--no-title", action="store_true", help="leave the window title alone")
    out.add_argument(
        "replay",
        nargs="*",
        metavar="replay FILE",
        help="show a run exported by `claw trace export`; needs no engine",
    )
    out.add_argument("--version", action="store_true", help="print the version and leave")
    return out


def main(argv: Sequence[str]) -> int:
    """Exit code: 0 left by the operator, 1 failed, 2 cannot start here, 128+n signal n."""
    args = parser().parse_args(argv)
    if args.version:
        from claw_engine import __version__

        sys.stdout.write(f"claw-tui {__version__}\n")
        return 0
    if args.forget:
        return _forget(args.url)
    if args.replay and (args.replay[0] != "replay" or len(args.replay) != 2):
        sys.stderr.write("claw-tui: what can be asked for is  replay FILE\n")
        return 2
    problem = unusable_terminal(os.environ, sys.stdin.isatty() and sys.stdout.isatty())
    if problem:
        sys.stderr.write(f"claw-tui: {problem}\n")
        return 2
    from claw_engine.client.state_choice import ChoiceNeeded, resolve_for_start
    from claw_engine.errors import ClawError
    from claw_tui.terminal.guard import terminal_restored

    try:
        if args.replay:
            with terminal_restored():
                return asyncio.run(run_file(Path(args.replay[1]), args))
        if args.url:
            with terminal_restored():
                return asyncio.run(run_remote(args))
        where = resolve_for_start(args.state_dir, os.environ, _ask, _say)
        with terminal_restored():
            return asyncio.run(run(where, args.theme, title=not args.no_title))
    except ChoiceNeeded as error:
        _say(f"claw-tui: {error.title}\n{error.hint}".rstrip())
        return 2
    except ClawError as error:
        _say(f"claw-tui: {error.title}\n{error.hint}".rstrip())
        return 1


def unusable_terminal(env: Mapping[str, str], is_tty: bool) -> str:
    """Why a full-screen console cannot be shown here; empty when it can."""
    if not is_tty:
        return "not a terminal; `claw agent --message TEXT` works without one"
    if env.get("TERM", "") in ("", "dumb", "unknown"):
        return "TERM says this terminal cannot draw; `claw agent --message TEXT` works on it"
    return ""


def locale_encoding(env: Mapping[str, str]) -> str:
    """The character set the user's locale names. Python itself cannot be asked: it turns the C
    locale into UTF-8 (PEP 538, 540) and leaves LC_CTYPE=C.UTF-8 behind. No locale at all is
    taken for UTF-8: what a container or a bare SSH login gives."""
    kind = env.get("LC_CTYPE", "")
    if kind == "C.UTF-8" and env.get("LANG", "") in ("C", "POSIX"):
        kind = ""
    name = env.get("LC_ALL") or kind or env.get("LANG") or "C.UTF-8"
    if name in ("C", "POSIX"):
        return "ascii"
    _, _, charset = name.partition(".")
    return charset.partition("@")[0] or "utf-8"


async def run(where: Path, theme: str, *, title: bool) -> int:
    """Attach if the door of `where` answers, else start the engine. Raises ClawError."""
    from claw_engine.client.door import NoEngine
    from claw_engine.client.remote import RemoteClient

    remote = RemoteClient(where)
    try:
        await remote.connect()
    except NoEngine:
        from claw_engine.engine import Engine

        settled = asyncio.Event()
        async with Engine(where, mode="embedded", listen=True, begin=settled) as engine:
            client = engine.local_client()
            await client.connect()
            code, ending = await show(
                client, theme, title=title, logs=engine_log(where), settled=settled.set
            )
            await after_console(engine, ending)
            return code
    return (await show(remote, theme, title=title, logs=own_log(where)))[0]


async def run_remote(args: argparse.Namespace) -> int:
    """The console of a gateway elsewhere. Raises ClawError before the screen is taken."""
    from claw_tui.remote import Wish, attach, logs_dir

    wish = Wish(args.url, args.token, args.password, args.read_only)
    client = await attach(wish, os.environ, _ask)
    logs = own_log(logs_dir(os.environ))
    shown = await show(client, args.theme, title=not args.no_title, logs=logs, local=False)
    return shown[0]


async def run_file(path: Path, args: argparse.Namespace) -> int:
    """The console of a run in a file. Raises ClawError before the screen is taken."""
    from claw_tui.recorded import load
    from claw_tui.remote import logs_dir

    client = load(path)
    logs = own_log(logs_dir(os.environ))
    title = not args.no_title
    shown = await show(
        client, args.theme, title=title, logs=logs, local=False, replay=client.run_id
    )
    return shown[0]


def _forget(url: str | None) -> int:
    from claw_engine.errors import ClawError
    from claw_tui.remote import forget

    try:
        _say(forget(url) if url else "claw-tui: --forget needs --url")
    except ClawError as error:
        _say(f"claw-tui: {error.title}\n{error.hint}".rstrip())
        return 1
    return 0 if url else 2


async def show(
    client: Client,
    theme: str,
    *,
    title: bool,
    logs: AbstractContextManager[Path],
    settled: Callable[[], None] = lambda: None,
    local: bool = True,
    replay: str = "",
) -> tuple[int, str]:
    """Run the console to its end: exit code, and `headless`, `lost` or `stop`.

    `logs` is entered only to tell of a crash, and names the file that will hold it. `settled` is
    called when the first screen stands, or some seconds after the start when there was none: a
    terminal that nobody reads keeps nobody waiting.
    """
    from claw_tui.lean import load_textual

    load_textual()  # before anything of ours imports it
    from claw_tui.app import ClawApp
    from claw_tui.terminal.detect import detect
    from claw_tui.terminal.signals import leaving_signals
    from claw_tui.themes import DEFAULT_ANSI

    facts = detect(os.environ, locale_encoding(os.environ))
    app = ClawApp(
        client,
        theme=theme or (DEFAULT_ANSI if facts.wants_ansi_theme else ""),
        mouse_motion=not facts.ssh,
        ascii_only=not facts.utf8,
        on_settled=settled,
        local=local,
        replay=replay,
    )
    asyncio.get_running_loop().call_later(FIRST_FRAME_S, settled)
    got: list[signal.Signals] = []

    def leave(number: signal.Signals) -> None:
        if app.away and number is signal.SIGINT:
            return  # ctrl+c was meant for the editor that has the terminal
        got.append(number)
        app.exit("lost" if number is signal.SIGHUP else "stop", return_code=128 + number)

    with leaving_signals(asyncio.get_running_loop(), leave):
        if title:
            _title("claw-tui")
        ending = await app.run_async()
    if title:
        _title("")
    if app.crash is not None:
        from claw_tui.store.sanitize import line

        with logs as file:
            logging.getLogger("claw_tui").error("the console broke", exc_info=app.crash)
        words = "".join(traceback.format_exception_only(app.crash)).strip()
        _say(f"claw-tui: the console broke: {line(words)[:300]}\nDetails: {file}")
    return app.return_code or 0, _ending(app, ending, bool(got))


@contextlib.contextmanager
def engine_log(where: Path) -> Iterator[Path]:
    """The log of an engine in this process: it is already being written."""
    from claw_engine.paths import StateDir

    yield StateDir(where).logs_dir / f"claw-{time.strftime('%Y-%m-%d')}.log"


@contextlib.contextmanager
def own_log(where: Path) -> Iterator[Path]:
    """The same file, written from beside an engine that runs elsewhere."""
    from claw_engine.logs import start_logs

    with engine_log(where) as file:
        logs = start_logs(file.parent)
        try:
            yield file
        finally:
            logs.close()


def _ending(app: ClawApp, chosen: str | None, signalled: bool) -> str:
    if app.lost_terminal and not signalled:
        return "lost"
    return chosen or "stop"


async def after_console(engine: Engine, ending: str) -> None:
    """What becomes of an embedded engine when its console is gone."""
    if ending == "stop":
        return
    loop = asyncio.get_running_loop()
    engine.mode = "headless"
    if ending == "lost":
        # Nobody is there to stop it: it goes on until nothing needs it.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        engine.stop("idle")
    else:
        _say(
            f"The engine goes on without a screen (pid {os.getpid()}). "
            "claw-tui in another terminal comes back to it, ctrl+c here stops it."
        )
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, engine.stop)
    await engine.wait_stopped()


def _title(words: str) -> None:
    """Set the window's title (OSC 2); an empty one gives it back to the shell."""
    sys.stdout.write(f"\x1b]2;{words}\x07")
    sys.stdout.flush()


def _ask(prompt: str) -> str:
    sys.stderr.write(prompt)
    sys.stderr.flush()
    return sys.stdin.readline() or "q"


def _say(line: str) -> None:
    try:
        sys.stderr.write(line.rstrip("\n") + "\n")
        sys.stderr.flush()
    except OSError:  # the terminal is gone; the log has it
        return
