"""Small requests and readers for the model tests."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing

from claw_engine.models.base import (
    Encoded,
    Model,
    ModelEvent,
    ModelRef,
    Request,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    ToolSpec,
    Turn,
    WireToolCall,
)
from claw_engine.parts import Part, PartKind

SECRET = "sk-test-0123456789abcdef"


def ref(base_url: str = "http://127.0.0.1:9/v1", **changes: object) -> ModelRef:
    values: dict[str, object] = {
        "provider": "fake",
        "id": "fake-1",
        "api": "openai-completions",
        "base_url": base_url,
        "api_key": SECRET,
    }
    return ModelRef(**(values | changes))  # type: ignore[arg-type]  # keyword table of a test


def part(text: str, kind: PartKind = PartKind.USER, id_: str = "") -> Part:
    return Part(id=id_ or f"{kind}:{text[:8]}", kind=kind, source="test", text=text)


def user(text: str, id_: str = "u1") -> Turn:
    return Turn("user", (part(text, PartKind.USER, id_),))


def assistant(
    text: str = "",
    *,
    reasoning: str = "",
    calls: Iterable[tuple[str, str, str]] = (),
    id_: str = "a1",
) -> Turn:
    return Turn(
        "assistant",
        (part(text, PartKind.ASSISTANT, id_),) if text else (),
        reasoning=(part(reasoning, PartKind.REASONING, id_ + "r"),) if reasoning else (),
        tool_calls=tuple(
            WireToolCall(call_id, name, part(arguments, PartKind.TOOL_CALL, f"{call_id}:args"))
            for call_id, name, arguments in calls
        ),
    )


def result(call_id: str, text: str, *, is_error: bool = False) -> Turn:
    return Turn(
        "tool",
        (part(text, PartKind.TOOL_RESULT, f"{call_id}:result"),),
        tool_call_id=call_id,
        is_error=is_error,
    )


def tool(name: str) -> ToolSpec:
    body = {"name": name, "description": f"{name} – 工具", "parameters": {"type": "object"}}
    text = json.dumps(body, ensure_ascii=False)
    return ToolSpec(Part(f"tool:{name}", PartKind.TOOL, "test", text, name))


def request(
    *turns: Turn,
    model: ModelRef | None = None,
    tools: Iterable[ToolSpec] = (),
    system: Iterable[str] = ("You are a test.",),
    trusted: bool = True,
    **changes: object,
) -> Request:
    parts = tuple(part(text, PartKind.SECTION, f"s{index}") for index, text in enumerate(system))
    return Request(
        model=model or ref(),
        system=parts,
        tools=tuple(tools),
        turns=turns or (user("hello"),),
        trusted_origin=trusted,
        **changes,  # type: ignore[arg-type]  # keyword table of a test
    )


async def ask(model: Model, req: Request, encoded: Encoded | None = None) -> list[ModelEvent]:
    """All events of one call."""
    events: AsyncIterator[ModelEvent] = model.stream(encoded or model.encode(req), req)
    async with aclosing(events) as closing:  # type: ignore[type-var]  # ours are generators
        return [event async for event in closing]


def text_of(events: Iterable[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def calls_of(events: Iterable[ModelEvent]) -> list[tuple[str, str, str]]:
    """(id, name, arguments) in order of index."""
    calls: dict[int, list[str]] = {}
    for event in events:
        match event:
            case ToolCallStart(index, id_, name):
                calls[index] = [id_, name, ""]
            case ToolCallDelta(index, arguments):
                calls[index][2] += arguments
    return [(c[0], c[1], c[2]) for _, c in sorted(calls.items())]
