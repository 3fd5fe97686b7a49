"""Puts a streamed answer together. Appends only: work per event never grows with the answer."""

from __future__ import annotations

from msgspec import Struct, field

from claw_engine.agent.context.hygiene import wire_name
from claw_engine.messages import Block, TextBlock, ThinkingBlock, ToolCallBlock, Usage
from claw_engine.models.arguments import parse_arguments
from claw_engine.models.base import (
    Finished,
    ModelEvent,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    UsageSeen,
)
from claw_engine.models.markup import MarkupFilter
from claw_engine.world import Ids

CUT_CALL = "The answer hit its length limit before the arguments of this call were complete."


class _Call(Struct):
    id: str
    name: str
    arguments: list[str] = field(default_factory=list)


class Collector:
    """One answer while it arrives. `take` returns what may be shown of an event.

    Tool markup written as text is held back (`saw_markup`), case PR-03.
    """

    __slots__ = (
        "_calls",
        "_filter",
        "_reasoning",
        "_reasoning_name",
        "_text",
        "stop_reason",
        "usage",
    )

    def __init__(self) -> None:
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._reasoning_name = ""
        self._calls: dict[int, _Call] = {}
        self._filter = MarkupFilter()
        self.usage: Usage | None = None
        self.stop_reason = ""

    @property
    def saw_markup(self) -> bool:
        return self._filter.found

    @property
    def text(self) -> str:
        return "".join(self._text)

    @property
    def produced(self) -> str:
        """Everything the model wrote so far, for whoever estimates what it cost."""
        calls = [call.name + "".join(call.arguments) for call in self._calls.values()]
        return "".join((*self._text, *self._reasoning, *calls))

    @property
    def reasoning(self) -> str:
        return "".join(self._reasoning)

    def take(self, event: ModelEvent) -> tuple[str, str]:
        """Adds an event; returns (text, reasoning) that became visible."""
        match event:
            case TextDelta(text):
                return self._show(self._filter.feed(text)), ""
            case ReasoningDelta(text, name):
                self._reasoning.append(text)
                self._reasoning_name = self._reasoning_name or name
                return "", text
            case ToolCallStart(index, id_, name):
                known = self._calls.setdefault(index, _Call(id_, name))
                # Some servers repeat id and name in every chunk, others send them late.
                known.id, known.name = known.id or id_, known.name or name
            case ToolCallDelta(index, arguments):
                self._calls.setdefault(index, _Call("", "")).arguments.append(arguments)
            case UsageSeen(usage):
                self.usage = usage
            case Finished(stop_reason):
                self.stop_reason = stop_reason
                return self._show(self._filter.flush()), ""
        return "", ""

    def blocks(self, calls: tuple[ToolCallBlock, ...] = ()) -> tuple[Block, ...]:
        """Content of the message to keep: thoughts, text, then the given calls."""
        blocks: list[Block] = []
        if reasoning := self.reasoning:
            # OpenClaw replays a thought under the wire field that its signature names.
            blocks.append(ThinkingBlock(reasoning, self._reasoning_name or None))
        if (text := self.text).strip():
            blocks.append(TextBlock(text))
        return (*blocks, *calls)

    def raw_calls(self) -> tuple[dict[str, str], ...]:
        """The calls as they came, also incomplete ones: id, name and the arguments' text."""
        return tuple(
            {"id": call.id, "name": call.name, "arguments": "".join(call.arguments)}
            for _, call in sorted(self._calls.items())
        )

    def tool_calls(self, ids: Ids) -> tuple[ToolCallBlock, ...]:
        """The calls of a finished answer, with ids that differ from each other."""
        out: list[ToolCallBlock] = []
        seen: set[str] = set()
        for index in sorted(self._calls):
            call = self._calls[index]
            id_ = call.id if call.id and call.id not in seen else f"call_{ids.hex(12)}"
            seen.add(id_)
            raw = "".join(call.arguments)
            arguments, problem = parse_arguments(raw)
            if self.stop_reason == "length" and not raw.strip():
                arguments, problem = None, CUT_CALL
            out.append(ToolCallBlock(id_, wire_name(call.name), arguments or {}, problem or None))
        return tuple(out)

    def _show(self, text: str) -> str:
        if text:
            self._text.append(text)
        return text
