"""`claw`: reads the command line, imports the one verb it needs, words failures.

Exit codes: 0 done, 1 the engine refused or a run failed, 2 wrong usage or no engine,
130 interrupted.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import sys
from collections.abc import Callable, Sequence

from claw_engine import __version__
from claw_engine.cli.output import OutputFailed, flush, say_error, tidy_streams
from claw_engine.errors import ClawError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

VERBS = {
    ("gateway", "run"): "gateway_run",
    ("gateway", "start"): "gateway_start",
    ("gateway", "stop"): "gateway_stop",
    ("gateway", "restart"): "gateway_stop",
    ("gateway", "status"): "gateway_status",
    ("gateway", "health"): "health",
    ("gateway", "call"): "call",
    ("logs", ""): "logs",
    **{("sessions", action): "sessions" for action in ("", "list", "show", "reset", "delete")},
    **{("config", action): "config" for action in ("get", "set", "validate", "file")},
    **{
        ("devices", action): "devices"
        for action in ("", "list", "approve", "reject", "remove", "rotate", "revoke")
    },
    ("status", ""): "status",
    ("health", ""): "health",
    ("agent", ""): "agent",
    ("call", ""): "call",
    ("doctor", ""): "doctor",
    ("mode", ""): "mode",
    ("security", "audit"): "security",
    **{("sandbox", action): "sandbox" for action in ("", "list", "explain", "recreate")},
    **{
        ("approvals", action): "approvals"
        for action in ("", "list", "show", "approve", "allow", "deny")
    },
    ("approvals", "history"): "approvals_history",
    ("approvals", "rules"): "approvals_rules",
    ("approvals", "undo"): "approvals_rules",
    ("approvals", "explain"): "approvals_explain",
    **{("skills", action): "skills" for action in ("", "list", "info", "enable", "disable")},
    ("prompt", "show"): "prompt",
    ("prompt", "diff"): "prompt",
    **{("trace", action): "trace" for action in ("list", "show", "export")},
    ("usage", ""): "usage",
    ("tools", "list"): "tools",
    ("tools", "explain"): "tools",
    **{
        ("lanes", action): "lanes"
        for action in ("", "status", "pause", "resume", "width", "drop", "move")
    },
}

MODES = ("look", "guarded", "workspace", "full")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; returns the exit code."""
    start = argparse.Namespace(state_dir=None, json=False)
    given = sys.argv[1:] if argv is None else argv
    args = build_parser(given).parse_args(given, start)
    tidy_streams()
    verb = VERBS[args.verb, getattr(args, "action", None) or ""]
    # What an import makes lives on; looking for garbage in it costs a twentieth of the start.
    # An engine switches the collector on when it is ready, the other verbs end before it matters.
    gc.disable()
    module = importlib.import_module(f"claw_engine.cli.{verb}")
    try:
        try:
            code: int = module.run(args)
            flush()
        except OutputFailed:
            raise
        except ClawError as error:
            return say_error(error, as_json=args.json)
    except OutputFailed as error:
        _mute()
        return say_error(error, as_json=False)
    except BrokenPipeError:
        # The reader went away (`claw … | head`): nothing more to say, also not at exit.
        _mute()
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        gc.enable()
    return code


def _mute() -> None:
    """What is left in the buffer must not fail again when the process ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _formatter(prog: str) -> argparse.HelpFormatter:
    """The default one asks shutil for the width, for every argument, help or not: 8 ms."""
    columns = os.environ.get("COLUMNS", "")
    if not columns.isdigit():
        try:
            columns = str(os.get_terminal_size().columns)
        except OSError:
            columns = "80"
    return argparse.HelpFormatter(prog, width=max(40, int(columns) - 2))


class _Parser(argparse.ArgumentParser):
    def __init__(self, **kwargs: Any) -> None:  # argparse's own signature is this wide
        super().__init__(**{"formatter_class": _formatter, **kwargs})


class _Unnamed:
    """In place of the parser of a verb that is not on the command line: making each costs 0.5 ms.

    The verb is still known by name, for the help and for errors.
    """

    def add_argument(self, *args: object, **kwargs: object) -> Self:
        return self

    add_parser = add_subparsers = add_mutually_exclusive_group = add_argument


def build_parser(given: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """The whole command line; of verbs only those that `given` may name."""

    def made(**kwargs: Any) -> Any:  # what argparse hands to a parser, and one of two classes
        name = kwargs["prog"].rpartition(" ")[2]
        return _Parser(**kwargs) if given is None or name in given else _Unnamed()

    # Before the verb as well as after it: a later parser must not put its default over a value.
    common = _Parser(add_help=False, argument_default=argparse.SUPPRESS)
    common.add_argument(
        "--state-dir", metavar="DIR", type=_named, help="state directory of the engine"
    )
    common.add_argument("--json", action="store_true", default=argparse.SUPPRESS,
                        help="machine-readable output")  # fmt: skip
    parser = _Parser(
        prog="claw", description="Talk to a claw-tui engine, or run one without a console.",
        parents=[common],
    )  # fmt: skip
    parser.add_argument("--version", action="version", version=f"claw {__version__}")
    verbs = parser.add_subparsers(  # type: ignore[call-overload]  # it only calls parser_class
        dest="verb", required=True, metavar="VERB", prog="claw", parser_class=made
    )

    gateway = verbs.add_parser("gateway", parents=[common], help="the engine without a console")
    if given is None or "gateway" in given:
        _gateway(gateway, common)
    verbs.add_parser("status", parents=[common], help="what the engine is doing")
    verbs.add_parser("health", parents=[common], help="whether the engine answers")

    agent = verbs.add_parser("agent", parents=[common], help="one turn: message in, answer out")
    agent.add_argument("--message", "-m", required=True, help="the message; - reads stdin")
    agent.add_argument("--session", metavar="KEY", default="main", help="session key")

    call = verbs.add_parser("call", parents=[common], help="call any method of the gateway")
    call.add_argument("method", metavar="METHOD")
    call.add_argument("params", metavar="JSON", nargs="?", default="{}")

    doctor = verbs.add_parser("doctor", parents=[common], help="what works here and what does not")
    doctor.add_argument("--fix", action="store_true", help="mend what needs no decision")

    logs = verbs.add_parser("logs", parents=[common], help="the engine's log")
    logs.add_argument("--follow", "-f", action="store_true", help="go on as it grows")
    logs.add_argument("--limit", metavar="N", type=_lines, default=200, help="lines, 5000 at most")

    for name, words, fill in (
        ("skills", "instructions the model may read: list, info, enable, disable", _skills),
        ("sessions", "conversations: list, show, reset, delete", _sessions),
        ("config", "the configuration: get, set, validate, file", _elsewhere("config")),
        (
            "devices",
            "who may connect: list, approve, reject, rotate, revoke",
            _elsewhere("devices"),
        ),
        ("prompt", "a request to a model, part by part: show, diff", _elsewhere("prompt")),
        ("trace", "what runs did: list, show, export", _elsewhere("trace")),
        ("usage", "what calls to models cost, and the budgets", _elsewhere("usage")),
    ):
        verb = verbs.add_parser(name, parents=[common], help=words)
        if given is None or name in given:
            fill(verb, common)

    mode = verbs.add_parser("mode", parents=[common], help="the permission mode")
    mode.add_argument("name", metavar="NAME", nargs="?", choices=MODES, help=", ".join(MODES))
    mode.add_argument("--minutes", type=int, metavar="N", help="for full: how long, 60 at most")

    sandbox = verbs.add_parser("sandbox", parents=[common], help="the sandboxes of sessions")
    boxes = sandbox.add_subparsers(dest="action", metavar="ACTION", prog="claw sandbox")
    boxes.add_parser("list", parents=[common], help="the containers there are")
    explain = boxes.add_parser("explain", parents=[common], help="where commands run, and why")
    explain.add_argument("--session", metavar="KEY", default="main", help="session key")
    anew = boxes.add_parser("recreate", parents=[common], help="make containers anew")
    whose = anew.add_mutually_exclusive_group(required=True)
    whose.add_argument("--all", action="store_true", default=None, help="every one")
    whose.add_argument("--session", metavar="KEY", help="the session's")
    whose.add_argument("--agent", metavar="ID", help="the agent's")

    security = verbs.add_parser("security", parents=[common], help="who could do what here")
    looks = security.add_subparsers(
        dest="action", required=True, metavar="ACTION", prog="claw security"
    )
    audit = looks.add_parser("audit", parents=[common], help="look at files, settings and rules")
    audit.add_argument("--deep", action="store_true", help="also try the gateway")
    audit.add_argument("--fix", action="store_true", help="mend file modes and safe defaults")

    approvals = verbs.add_parser(
        "approvals", parents=[common], help="what waits for you, and your answers"
    )
    if given is None or "approvals" in given:
        _approvals(approvals, common)
    lanes = verbs.add_parser("lanes", parents=[common], help="what runs and waits; pause, widths")
    what = lanes.add_subparsers(dest="action", metavar="ACTION", prog="claw lanes")
    what.add_parser("status", parents=[common], help="what runs and waits")
    what.add_parser("pause", parents=[common], help="start nothing new")
    what.add_parser("resume", parents=[common], help="go on")
    width = what.add_parser("width", parents=[common], help="how many runs at once")
    width.add_argument("lane", metavar="LANE")
    width.add_argument("width", metavar="N", type=_width, help="a number, or default")
    drop = what.add_parser("drop", parents=[common], help="take a waiting message out")
    drop.add_argument("run", metavar="RUN")
    move = what.add_parser("move", parents=[common], help="another place for a waiting message")
    move.add_argument("run", metavar="RUN")
    move.add_argument("position", metavar="POS", type=int, help="0 is next")
    tools = verbs.add_parser("tools", parents=[common], help="which tools an agent has, and why")
    about = tools.add_subparsers(dest="action", required=True, metavar="ACTION", prog="claw tools")
    shown = about.add_parser("list", parents=[common], help="all tools, and what was taken away")
    one = about.add_parser("explain", parents=[common], help="the way of one tool")
    one.add_argument("name", metavar="NAME")
    for which in (shown, one):
        which.add_argument("--agent", metavar="ID", help="default: the session's, else main")
        which.add_argument("--session", metavar="KEY", help="default: the agent's main session")
    return parser


def _gateway(verb: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    actions = verb.add_subparsers(
        dest="action", required=True, metavar="ACTION", prog="claw gateway"
    )
    run = actions.add_parser("run", parents=[common], help="run until stopped")
    start = actions.add_parser("start", parents=[common], help="run in the background")
    for which in (run, start):
        which.add_argument(
            "--port", metavar="N", type=_port, help="the network port; 0 lets the system choose"
        )
    start.add_argument("--wait", metavar="S", type=_seconds, default=30, help="until it is ready")
    stop = actions.add_parser("stop", parents=[common], help="stop it")
    again = actions.add_parser("restart", parents=[common], help="restart it; what waits is kept")
    for which in (stop, again):
        which.add_argument(
            "--wait", metavar="S", type=_seconds, default=90, help="until it is done"
        )
    again.add_argument("--reason", default="", help="told to clients and in the log")
    status = actions.add_parser("status", parents=[common], help="whether it runs, and where")
    status.add_argument("--deep", action="store_true", help="also try the port and the probes")
    actions.add_parser("health", parents=[common], help="whether it answers")
    call = actions.add_parser("call", parents=[common], help="call any method")
    call.add_argument("method", metavar="METHOD")
    call.add_argument("params", metavar="JSON", nargs="?", default="{}")


def _sessions(verb: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    actions = verb.add_subparsers(dest="action", metavar="ACTION", prog="claw sessions")
    actions.add_parser("list", parents=[common], help="the newest first")
    show = actions.add_parser("show", parents=[common], help="one conversation")
    show.add_argument("key", metavar="KEY")
    show.add_argument("--limit", metavar="N", type=int, default=20, help="messages, 1000 at most")
    reset = actions.add_parser("reset", parents=[common], help="stop it and begin anew")
    reset.add_argument("key", metavar="KEY")
    delete = actions.add_parser("delete", parents=[common], help="take it off the list")
    delete.add_argument("key", metavar="KEY")
    delete.add_argument("--keep-transcript", action="store_true", help="leave the file in place")


def _skills(verb: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    actions = verb.add_subparsers(dest="action", metavar="ACTION", prog="claw skills")
    for name, words in (
        ("list", "all, and why the model is not shown one"), ("info", "all of one"),
        ("enable", "show it to the model"), ("disable", "do not"),
    ):  # fmt: skip
        one = actions.add_parser(name, parents=[common], help=words)
        if name != "list":
            one.add_argument("name", metavar="NAME")
        one.add_argument("--agent", metavar="ID", help="whose; default: the first agent's")


def _elsewhere(name: str) -> Callable[[argparse.ArgumentParser, argparse.ArgumentParser], None]:
    """The arguments of a verb that most command lines do not name."""

    def fill(verb: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
        getattr(importlib.import_module("claw_engine.cli.arguments"), name)(verb, common)

    return fill


def _approvals(verb: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    decide = verb.add_subparsers(dest="action", metavar="ACTION", prog="claw approvals")
    decide.add_parser("list", parents=[common], help="requests that wait")
    show = decide.add_parser("show", parents=[common], help="all of one request")
    show.add_argument("id", metavar="ID", help="the id or its beginning")
    allow = decide.add_parser("approve", aliases=["allow"], parents=[common],
                              help="allow requests")  # fmt: skip
    allow.add_argument("ids", metavar="ID", nargs="+", help="the id or its beginning")
    allow.add_argument("--always", action="store_true", help="and remember it as a rule")
    allow.add_argument("--for", metavar="TIME", dest="span", type=_span,
                       help="and the same later: 15m, session, or good")  # fmt: skip
    allow.add_argument("--programs", action="store_true",
                       help="with --for: its programs with any arguments")  # fmt: skip
    deny = decide.add_parser("deny", parents=[common], help="deny requests")
    deny.add_argument("ids", metavar="ID", nargs="+", help="the id or its beginning")
    deny.add_argument("--reason", default="", help="told to the model")
    past = decide.add_parser("history", parents=[common], help="what was decided, and what ran")
    past.add_argument("--limit", metavar="N", type=int, default=50, help="1000 at most")
    decide.add_parser("rules", parents=[common], help="what runs unasked")
    undo = decide.add_parser("undo", parents=[common], help="take a rule or a grant back")
    undo.add_argument("id", metavar="ID", help="the id or its beginning")
    explain = decide.add_parser(
        "explain", parents=[common], help="what would happen to a command, and why; runs nothing"
    )
    explain.add_argument("command", metavar="COMMAND", help="one word for the shell: quote it")
    explain.add_argument("--cwd", metavar="DIR", help="as if run there (default: the workspace)")
    explain.add_argument("--agent", metavar="ID", default="main", help="whose rules count")


def _named(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("the value is empty: name a directory")
    return text


def _span(text: str) -> dict[str, object]:
    """How long a grant holds, as the gateway takes it."""
    if text in ("session", "good"):
        return {"span": "session" if text == "session" else "lasting"}
    number = text.removesuffix("m")
    if not (number.isascii() and number.isdecimal() and 1 <= int(number) <= 1440):
        raise argparse.ArgumentTypeError(f"invalid time {text!r}: minutes (15m), session, or good")
    return {"span": "minutes", "minutes": int(number)}


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"invalid port {text!r}: a number from 0 to 65535")
    return int(text)


def _seconds(text: str) -> float:
    if not (text.isascii() and text.isdecimal() and len(text) < 6):
        raise argparse.ArgumentTypeError(f"invalid time {text!r}: whole seconds")
    return float(text)


def _lines(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= 5000):
        raise argparse.ArgumentTypeError(f"invalid number {text!r}: 1 to 5000 lines")
    return int(text)


def _width(text: str) -> int | None:
    if text == "default":
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text)):
        raise argparse.ArgumentTypeError(
            f"invalid width {text!r}: a whole number from 1, or default"
        )
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
