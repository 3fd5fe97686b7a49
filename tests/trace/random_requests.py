"""Requests as they may come, from a seed: texts of all scripts, tools, calls, results, thoughts."""

from __future__ import annotations

import json
import random

from claw_engine.models.base import ModelRef, Request, ToolSpec, Turn, WireToolCall
from claw_engine.parts import Part, PartKind

_WORDS = (
    "look at the file again and say what changed since yesterday, please",
    "今天的天气怎么样?我们去看看那个文件里写了什么。",
    'def f(x: int) -> str:\n\treturn f"{x!r}\\n"\n',
    '{"a": [1, 2.5, null], "b": "\\"quoted\\""}',
    "Ünïcödé ünd Straße, naïve café – “quotes” … \u2028 line\u2029paragraph",
    "emoji 🦞🏳️‍🌈👩‍👩‍👧 and signs \x00\x07\x1b[31m\x7f",
    "C:\\path\\to\\x </script> <!-- & --> %s {0}",
    "\ud83e\udd9e joined late",  # a pair that came as two halves
    "lone \ud800 half",
    "\r\nwindows\r\n",
)


def text(rng: random.Random, low: int, high: int) -> str:
    """Between `low` and `high` characters, about."""
    wanted, out, have = rng.randint(low, high), [], 0
    while have < wanted:
        word = rng.choice(_WORDS)
        out.append(word)
        have += len(word)
    return " ".join(out)


def part(rng: random.Random, id_: str, kind: PartKind, low: int, high: int) -> Part:
    return Part(id_, kind, f"source of {id_}", text(rng, low, high), id_)


def request(seed: int, ref: ModelRef) -> Request:
    """One request of some ten to some hundred kilobytes, or a small one now and then."""
    rng = random.Random(seed)
    small = rng.random() < 0.05
    low, high = (0, 40) if small else (200, 4_000)
    system = tuple(
        part(rng, f"section:{n}", rng.choice((PartKind.SECTION, PartKind.FILE)), low, high)
        for n in range(rng.randint(0, 12))
    )
    tools = tuple(_tool(rng, n) for n in range(rng.randint(0, 8)))
    turns: list[Turn] = []
    for n in range(rng.randint(1, 12)):
        turns.append(Turn("user", (part(rng, f"u{n}", PartKind.USER, low, high),)))
        calls = tuple(
            WireToolCall(f"c{n}.{k}", "read", Part(
                f"c{n}.{k}:args", PartKind.TOOL_CALL, "call",
                json.dumps({"path": text(rng, 1, 60)}, ensure_ascii=rng.random() < 0.5),
            ))
            for k in range(rng.choice((0, 0, 1, 2)))
        )  # fmt: skip
        thoughts = (
            (part(rng, f"r{n}", PartKind.REASONING, low, high),) if rng.random() < 0.3 else ()
        )
        said = (part(rng, f"a{n}", PartKind.ASSISTANT, low, high),)
        turns.append(Turn("assistant", said, reasoning=thoughts, tool_calls=calls))
        turns += (
            Turn(
                "tool", (part(rng, f"{call.id}:out", PartKind.TOOL_RESULT, low, 3 * high),),
                tool_call_id=call.id,
            )
            for call in calls
        )  # fmt: skip
    return Request(
        ref, system, tools, tuple(turns), max_tokens=rng.choice((None, 1024)),
        thinking=rng.choice(("off", "low")), trusted_origin=True,
    )  # fmt: skip


def _tool(rng: random.Random, n: int) -> ToolSpec:
    shape = {
        "name": f"tool_{n}",
        "description": text(rng, 100, 900).encode("utf-8", "replace").decode(),
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
    }
    body = json.dumps(shape, ensure_ascii=False)
    return ToolSpec(Part(f"tool:{n}", PartKind.TOOL, "tool", body, f"tool_{n}"))
