"""The command lines of verbs with many arguments, each made when its verb is named."""

from __future__ import annotations

import argparse


def prompt(verb: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    """Of `claw prompt`."""
    actions = verb.add_subparsers(
        dest="action", required=True, metavar="ACTION", prog="claw prompt"
    )
    show = actions.add_parser("show", parents=[common], help="its parts in wire order")
    show.add_argument("call", metavar="CALL", nargs="?", help="RUN/call-N; default: the last")
    show.add_argument("--part", metavar="ID", help="the text of one part")
    diff = actions.add_parser("diff", parents=[common], help="what changed between two")
    diff.add_argument("a", metavar="CALL", nargs="?", help="default: the one before the last")
    diff.add_argument("b", metavar="CALL", nargs="?", help="default: the last, or the one named")
    for which in (show, diff):
        which.add_argument("--session", metavar="KEY", help="the last of this session")


def trace(verb: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    """Of `claw trace`."""
    actions = verb.add_subparsers(dest="action", required=True, metavar="ACTION", prog="claw trace")
    shown = actions.add_parser("list", parents=[common], help="runs, the newest first")
    shown.add_argument("--session", metavar="KEY", help="of one session")
    shown.add_argument("--limit", metavar="N", type=int, default=20, help="500 at most")
    show = actions.add_parser("show", parents=[common], help="one run: its calls and tools")
    out = actions.add_parser("export", parents=[common], help="one run as a file")
    for which in (show, out):
        which.add_argument("run", metavar="RUN", nargs="?", help="default: the last")
    out.add_argument("--out", metavar="FILE", help="default: trace-RUN.json; - writes to stdout")
    out.add_argument("--raw", action="store_true",
                     help="nothing hidden, bodies to the byte; reads the files")  # fmt: skip
    out.add_argument("--otlp", metavar="URL", help="send it as OpenTelemetry spans instead")


def devices(verb: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    """Of `claw devices`."""
    actions = verb.add_subparsers(dest="action", metavar="ACTION", prog="claw devices")
    actions.add_parser("list", parents=[common], help="paired devices, and those that ask")
    for name, words in (("approve", "let it in"), ("reject", "do not")):
        one = actions.add_parser(name, parents=[common], help=words)
        one.add_argument("id", metavar="REQUEST", help="the request, or the beginning of its id")
    out = actions.add_parser("remove", parents=[common], help="forget it, with its tokens")
    rotate = actions.add_parser("rotate", parents=[common], help="a new token for it, shown once")
    revoke = actions.add_parser("revoke", parents=[common], help="its token is good no more")
    for one in (out, rotate, revoke):
        one.add_argument("id", metavar="DEVICE", help="the device, or the beginning of its id")
    for one in (rotate, revoke):
        one.add_argument("--role", default="operator", help="operator or node")
    rotate.add_argument("--scope", dest="scopes", metavar="SCOPE", action="append",
                        help="what it may do; again for more")  # fmt: skip


def config(verb: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    """Of `claw config`."""
    actions = verb.add_subparsers(
        dest="action", required=True, metavar="ACTION", prog="claw config"
    )
    get = actions.add_parser("get", parents=[common], help="what the file says; secrets hidden")
    get.add_argument("path", metavar="PATH", nargs="?", default="", help="gateway.port; none: all")
    put = actions.add_parser("set", parents=[common], help="change one value; comments stay")
    put.add_argument("path", metavar="PATH", help="gateway.port, agents.list[0].model")
    put.add_argument("value", metavar="VALUE", help="JSON5, else a text; null takes the key out")
    actions.add_parser("validate", parents=[common], help="what is wrong, and where")
    actions.add_parser("file", parents=[common], help="where it is")


def usage(verb: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    """`claw usage`."""
    verb.add_argument("--days", metavar="N", type=_days, default=30, help="default 30")
    verb.add_argument(
        "--by", choices=("day", "session", "model", "cause", "agent"), default="day",
        help="default day",
    )  # fmt: skip
    verb.add_argument("--session", metavar="KEY", help="only this session")


def _days(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 5 and 1 <= int(text) <= 1100):
        raise argparse.ArgumentTypeError(f"invalid number {text!r}: 1 to 1100 days")
    return int(text)
