"""What the rehearsal model says and does: verbs read from a request, answered by a fixed script.

Pure: the same request gives the same script. Nothing here is intelligent, and it says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct

from claw_engine.models.base import Request, Turn
from claw_engine.parts import PartKind
from claw_engine.patterns import late
from claw_engine.protocol.names import LOST_CALL, RESUME_NOTE

DEFAULT_RATE = 50.0  # tokens per second of `long`
MAX_TOKENS = 1_000_000


class Speak(Struct, frozen=True):
    """Text, word by word; `reasoning` marks thinking aloud."""

    text: str
    reasoning: bool = False


class Call(Struct, frozen=True):
    """One tool call; the calls of a script are made in parallel."""

    tool: str
    arguments: Mapping[str, object]


class Long(Struct, frozen=True):
    """`tokens` words at `rate` tokens per second."""

    tokens: int
    rate: float


class Fail(Struct, frozen=True):
    """Break in the way of `mode`: 401, 429, 500, cut or slow."""

    mode: str


Step: TypeAlias = Speak | Call | Long | Fail

FAIL_MODES = ("401", "429", "500", "cut", "slow")

HELP = """I am the rehearsal model: a fixed script, not an AI. I act on these words:
run: CMD - ask to run one command, then say what came out
tools: CMD || CMD - several commands in parallel
read: PATH - read a file
write: PATH TEXT - write a file
think: TEXT - reasoning, then text
long: N [RATE] - N tokens at RATE tokens per second
fail: 401|429|500|cut|slow - fail like a provider
For a real model set a key or a base URL (see docs/models.md)."""

UNTRUSTED = (
    "I am the rehearsal model: a fixed script, not an AI. "
    "I act only on messages typed at the console or with `claw agent`."
)

AGAIN = "The engine was restarted before I was done; I take my script up again."
NOT_AGAIN = (
    "The engine was restarted while a call of mine was going on. Nobody knows what it did, and a "
    "script cannot look: I do not repeat it. Send your message again if you want it repeated."
)

# OpenClaw stamps user text with `[Mon 2026-11-30 08:46 UTC] `.
_STAMP = late(r"^\[[A-Z][a-z]{2} \d{4}-\d{2}-\d{2} \d{2}:\d{2}[^\]\n]*\]\s*")
_VERB = late(r"^(run|tools|read|write|think|long|fail)(?:\s*:\s*|\s+)(.+)$", re.I | re.S)
_PATH_AND_TEXT = late(r"""^(?:"([^"]+)"|'([^']+)'|(\S+))\s+(.+)$""", re.S)
_LONG = late(r"^(\d+)(?:\s+(\d+(?:\.\d+)?))?(?:\s*/s)?$")
_NO_OUTPUT = "(no output)"  # what an empty result reads as on its way to a model
_SHOWN_LINES = 3
_SHOWN_CHARS = 200
_MARKS = late(r"\A\[\[outside [^\n]*\n|\n\[\[/outside [0-9a-f]+\]\]\Z")


def script(request: Request) -> tuple[Step, ...]:
    """The steps for a request: the newest user turn's verb, or a report on its tool results."""
    newest = _newest_user(request.turns)
    if newest < 0:
        return (Speak(HELP),)
    after = request.turns[newest + 1 :]
    if any(turn.role == "tool" for turn in after):
        return (Speak(_report(after)),)
    if not request.trusted_origin:
        return (Speak(UNTRUSTED),)
    typed = _user_text(request.turns[newest])
    steps = _verb(typed.removeprefix(RESUME_NOTE).strip())
    if typed.startswith(RESUME_NOTE):
        if _lost_a_call(request.turns[:newest]):
            return (Speak(NOT_AGAIN),)
        steps = (Speak(AGAIN), *steps)
    return _only_offered(steps, {tool.name for tool in request.tools})


def _newest_user(turns: tuple[Turn, ...]) -> int:
    return next((i for i in range(len(turns) - 1, -1, -1) if turns[i].role == "user"), -1)


def _lost_a_call(before: tuple[Turn, ...]) -> bool:
    """Whether a call of the newest round was cut short with the engine."""
    for turn in reversed(before):
        if turn.role == "user":
            return False
        if turn.role == "tool" and any(LOST_CALL in part.text for part in turn.parts):
            return True
    return False


def _user_text(turn: Turn) -> str:
    """What the person typed last.

    Parts of other kinds (injected context) are not theirs, and a turn may have been merged with an
    older message that was never answered: only the parts of the newest source count.
    """
    typed = [part for part in turn.parts if part.kind is PartKind.USER]
    newest = "\n".join(part.text for part in typed if part.source == typed[-1].source)
    return _STAMP.sub("", newest.strip()).strip()


def _verb(text: str) -> tuple[Step, ...]:
    match = _VERB.match(text)
    if match is None:
        return (Speak(HELP),)
    rest = match[2].strip()
    match match[1].lower():
        case "run":
            why = f"I will run `{rest}` as you asked, to see its real output."
            return (Speak(why), _exec(rest))
        case "tools":
            commands = [command for piece in rest.split("||") if (command := piece.strip())]
            if not commands:
                return (Speak(HELP),)
            return (
                Speak(f"I will run these {len(commands)} commands side by side, as you asked."),
                *map(_exec, commands),
            )
        case "read":
            path = rest.strip("\"'")
            return (Speak(f"I will read {path} as you asked."), Call("read", {"path": path}))
        case "write":
            return _write(rest)
        case "think":
            return (
                Speak(rest, reasoning=True),
                Speak("I have thought about it, as far as a script can."),
            )
        case "long":
            return _long(rest)
        case _:
            mode = rest.lower()
            return (Fail(mode),) if mode in FAIL_MODES else (Speak(HELP),)


def _exec(command: str) -> Call:
    return Call("exec", {"command": command})


def _write(rest: str) -> tuple[Step, ...]:
    match = _PATH_AND_TEXT.match(rest)
    if match is None:
        return (Speak("To write I need a path and a text: `write: PATH TEXT`."),)
    path = match[1] or match[2] or match[3]
    return (
        Speak(f"I will write {len(match[4])} characters to {path} as you asked."),
        Call("write", {"path": path, "content": match[4]}),
    )


def _long(rest: str) -> tuple[Step, ...]:
    match = _LONG.match(rest)
    if match is None or len(match[1]) > 9:
        return (Speak("I need a number: `long: N [RATE]`, such as `long: 200 50`."),)
    rate = float(match[2]) if match[2] else DEFAULT_RATE
    return (Long(min(int(match[1]), MAX_TOKENS), rate),)


def _only_offered(steps: tuple[Step, ...], offered: set[str]) -> tuple[Step, ...]:
    """The steps, or a sentence in their place when they need a tool that is not on offer."""
    missing = sorted({s.tool for s in steps if isinstance(s, Call) and s.tool not in offered})
    if not missing:
        return steps
    names = ", ".join(f"`{name}`" for name in missing)
    return (Speak(f"That needs the tool {names}, which is not offered to me in this run."),)


def _report(turns: tuple[Turn, ...]) -> str:
    """One sentence for each call of the newest round, about its real result."""
    last = max((i for i, turn in enumerate(turns) if turn.tool_calls), default=-1)
    results = {turn.tool_call_id: turn for turn in turns[last + 1 :] if turn.role == "tool"}
    calls = turns[last].tool_calls if last >= 0 else ()
    lines = [
        _sentence(_label(call.name, call.arguments.text), results.pop(call.id))
        for call in calls
        if call.id in results
    ]
    lines += [_sentence("The tool", turn) for turn in results.values()]
    return "\n".join(lines) if lines else HELP


def _label(tool: str, arguments: str) -> str:
    try:
        values = json.loads(arguments)
    except ValueError:
        values = {}
    subject = values.get("command") or values.get("path") if isinstance(values, dict) else None
    if not isinstance(subject, str):
        return f"The tool {tool}"
    return f"`{subject}`" if tool == "exec" else f"{tool} {subject}"


def _sentence(label: str, turn: Turn) -> str:
    # The engine's marks around a result are not the tool's words.
    text = _MARKS.sub("", "\n".join(part.text for part in turn.parts)).strip()
    lines = [] if text == _NO_OUTPUT else text.splitlines()
    excerpt = " / ".join(line.strip() for line in lines[:_SHOWN_LINES] if line.strip())
    if len(excerpt) > _SHOWN_CHARS:
        excerpt = excerpt[:_SHOWN_CHARS] + "…"
    if turn.is_error:
        return f"{label} did not succeed: {excerpt or 'no reason was given'}"
    if not lines:
        return f"{label} finished and printed nothing."
    count = "1 line" if len(lines) == 1 else f"{len(lines)} lines"
    more = " …" if len(lines) > _SHOWN_LINES else ""
    return f"{label} gave {count}: {excerpt}{more}"
