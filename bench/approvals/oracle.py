"""What another parser, mvdan's shfmt, says of a command: all of its programs, or why it is not one.

Independent of the engine: its own reading of quotes, wrappers and safe bins. Many commands go to
one shfmt process, apart by marker commands whose place in the syntax tree is checked.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.approvals.world import EXACT, SAFE, Machine
from claw_engine.approvals import wordlist

Json = dict[str, object]
MARK = "claw_mark"
DIALECTS = ("posix", "bash")
_UNSAFE = {
    "sort": r"-[a-zA-Z]*[oT].*|--(?:comp|ou|fi|te|ra).*|\+.*",
    "grep": r"-[a-zA-Z]*[frRdD].*|--(?:fi|rec|der|dir|dev|exclude-f).*",
    "wc": r"--f.*", "tail": r"-[a-z]*[fF].*|--f.*|--r.*",
}  # fmt: skip
_OPERANDS = {"tr": 2, "grep": 1}


class Refused(Exception):
    """The command is more than allowed programs with literal words."""


def shfmt() -> str | None:
    """The program, from the environment of this Python or from PATH."""
    beside = Path(sys.executable).with_name("shfmt")
    return str(beside) if beside.exists() else shutil.which("shfmt")


def trees(commands: Sequence[str], dialect: str) -> list[list[Json] | None]:
    """The statements of each command; None where it does not parse on its own."""
    text, offsets = b"", []
    for number, command in enumerate(commands):
        offsets.append(len(text))
        text += f"{MARK} {number}\n".encode() + command.encode() + b"\n"
    offsets.append(len(text))
    text += f"{MARK} {len(commands)}\n".encode()
    whole = _parse(text, dialect)
    split = _split(whole, offsets) if whole is not None else None
    if split is not None:
        return list(split)
    if len(commands) == 1:
        return [_parse(commands[0].encode(), dialect)]
    half = len(commands) // 2
    return trees(commands[:half], dialect) + trees(commands[half:], dialect)


def _parse(text: bytes, dialect: str) -> list[Json] | None:
    program = shfmt()
    assert program is not None
    done = subprocess.run(
        [program, "--to-json", "-ln", dialect], input=text, capture_output=True, check=False
    )
    if done.returncode:
        return None
    tree = json.loads(done.stdout)
    if tree.get("Last"):  # comments at the end
        raise Refused("a comment")
    return list(tree.get("Stmts") or [])


def _split(statements: list[Json], offsets: list[int]) -> list[list[Json]] | None:
    """The statements between the markers; None when a marker is not where it was written."""
    out: list[list[Json]] = []
    marks = iter(offsets)
    following = next(marks)
    for statement in statements:
        at = statement["Pos"]["Offset"]  # type: ignore[index]  # positions are objects
        if at == following:
            out.append([])
            following = next(marks, -1)
        elif not out or (following >= 0 and at > following):
            return None
        else:
            out[-1].append(statement)
    if len(out) != len(offsets) or out[-1]:
        return None
    return out[:-1]


def programs(statements: Iterable[Json], machine: Machine) -> list[list[str]]:
    """The argv of every command in them. Raises Refused when anything else is there."""
    found: list[list[str]] = []
    for statement in statements:
        _statement(statement, found)
    if not found:
        raise Refused("nothing to run")
    for argv in found:
        _allowed(argv, machine)
    return found


def _statement(statement: Json, found: list[list[str]]) -> None:
    for field in ("Negated", "Background", "Coprocess", "Disown"):
        if statement.get(field):
            raise Refused(field)
    if statement.get("Redirs"):
        raise Refused("a redirection")
    if statement.get("Comments"):
        raise Refused("a comment")
    command = statement.get("Cmd")
    if not isinstance(command, dict):
        raise Refused("no command")
    if command["Type"] == "BinaryCmd":
        if command["Op"] not in ("&&", "||", "|"):
            raise Refused(str(command["Op"]))
        _statement(command["X"], found)
        _statement(command["Y"], found)
    elif command["Type"] == "CallExpr":
        if command.get("Assigns"):
            raise Refused("an assignment")
        found.append([_word(word) for word in command.get("Args") or []])
    else:
        raise Refused(command["Type"])


def _word(word: Json) -> str:
    parts = word["Parts"]
    assert isinstance(parts, list)
    text = ""
    for number, part in enumerate(parts):
        match part["Type"]:
            case "Lit":
                text += _literal(part["Value"], first=number == 0)
            case "SglQuoted" if not part.get("Dollar"):
                text += part.get("Value", "")
            case "DblQuoted" if not part.get("Dollar"):
                for inner in part.get("Parts") or []:
                    if inner["Type"] != "Lit":
                        raise Refused(inner["Type"])
                    text += re.sub(r'\\([$`"\\])', r"\1", inner["Value"])
            case other:
                raise Refused(str(other))
    return text


def _literal(raw: str, *, first: bool) -> str:
    if first and raw.startswith("~"):
        raise Refused("a tilde")
    out, at = "", 0
    while at < len(raw):
        if raw[at] == "\\":
            at += 1
            if raw[at : at + 1] in ("", "\n"):
                raise Refused("a line continuation")
        elif raw[at] in "*?[" or (raw[at] in "{}" and raw not in ("{}",)):
            raise Refused("a pattern")
        out += raw[at]
        at += 1
    return out


def _allowed(argv: list[str], machine: Machine) -> None:
    """Whether tables of this file's own allow it. Raises Refused."""
    words = list(argv)
    for _ in range(5):
        name = words[0] if words else ""
        if name.rsplit("/", 1)[-1] not in machine.wrappers:
            break
        words = _behind(name.rsplit("/", 1)[-1], words[1:])
    if not words:
        raise Refused("no program")
    name = words[0].rsplit("/", 1)[-1]
    if name not in machine.programs:
        raise Refused(f"{words[0]} is not allowed")
    if "/" in words[0] and str(Path(machine.cwd, words[0]).resolve()) != machine.programs[name]:
        raise Refused(f"{words[0]} is another file")
    if name in EXACT and tuple(words[1:]) not in EXACT[name]:
        raise Refused(f"{name} with other arguments")
    if name in SAFE:
        _safe(name, words[1:])


def _behind(name: str, words: list[str]) -> list[str]:
    patterns = {
        "env": r"", "nohup": r"", "nice": r"(?:-n\0[+-]?\d+\0)?",
        "stdbuf": r"(?:(?:-[ioe]\w+|--\w+=\w+)\0)*",
        "timeout": r"(?:(?:--\w[\w-]*|-v|-k\0[\d.]+[smhd]?|-s\0[A-Z0-9]+)\0)*[\d.]+[smhd]?\0",
    }  # fmt: skip
    text = "".join(word + "\0" for word in words)
    found = re.match(patterns[name], text)
    if found is None:
        raise Refused(f"{name} with other options")
    rest = text[found.end() :].split("\0")[:-1]
    if rest and (rest[0].startswith("-") or (name == "env" and "=" in rest[0])):
        raise Refused(f"{name} with other options")
    return rest


def _safe(name: str, words: list[str]) -> None:
    operands, takes = 0, False
    for word in words:
        if takes:
            takes = False
        elif word.startswith("-") and word != "-":
            if re.fullmatch(_UNSAFE.get(name, r"(?!)"), word):
                raise Refused(f"{name} {word}")
            takes = word in _VALUED and (name, word) not in _ALONE
        elif word != "-":
            operands += 1
    if operands > _OPERANDS.get(name, 0):
        raise Refused(f"{name} with a file")


_VALUED = wordlist.words(
    "-k -t -S -n -c -d -f -A -B -C -e -m -w -s -b --lines --bytes --key --fields --delimiter "
    "--field-separator --regexp --max-count --characters --skip-fields --sleep-interval"
)
"""Options that may take the next word as their value."""

_ALONE = {
    (name, f"-{letter}")
    for name, letters in {
        "sort": "ncdfmsb", "grep": "ncwsb", "wc": "cmw", "tr": "dcsC", "uniq": "cd", "cut": "ns",
    }.items()
    for letter in letters
}  # fmt: skip
"""Options that take a value elsewhere, and stand alone here."""
