"""Request → the bytes of an OpenAI chat-completions call, with a span for every byte. Pure.

A part's text stands in the body once, at its span. Text that is no valid Unicode cannot travel:
a lone surrogate is sent as U+FFFD (see `wire_text`). Knows no network.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from json import JSONEncoder
from typing import TypeAlias

from claw_engine.models.arguments import is_json_object
from claw_engine.models.base import (
    Encoded,
    ModelRef,
    Piece,
    Request,
    Span,
    ToolSpec,
    Turn,
    WireToolCall,
)
from claw_engine.models.rules import ReasoningReplay, ThinkingField, WireRules
from claw_engine.parts import Part

# Sent for a message that was saved without its reasoning when the provider insists on the field.
REASONING_PLACEHOLDER = "(the reasoning of this step was not kept)"
# Strict servers refuse an empty message; these are glue, not parts.
_EMPTY = {"user": "(empty message)", "assistant": "(no text)", "tool": "(no output)"}

FIXED = 16
"""System messages and lists of tools that a memo keeps."""

_Known: TypeAlias = tuple[object, Piece]

_encode_json = JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

# Effort values that OpenAI's and OpenRouter's APIs accept.
_EFFORTS = frozenset({"minimal", "low", "medium", "high", "xhigh"})


def wire_text(text: str) -> str:
    """`text` as it can travel: surrogate pairs joined, lone surrogates replaced by U+FFFD."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


class TurnMemo:
    """Encoded turns of earlier requests, by identity: a conversation is encoded once.

    One for each set of wire rules; bounded, and emptied when full.
    """

    def __init__(self, rules: WireRules, limit: int = 4096) -> None:
        self.rules = rules
        self._limit = limit
        # What was encoded is kept so that its id() cannot be used again.
        self._known: dict[int, _Known] = {}
        self._fixed: dict[int, _Known] = {}

    def turn(self, turn: Turn) -> Piece:
        """One message."""
        known = self._known.get(id(turn))
        if known is None:
            writer = _Writer()
            _turn(writer, turn, self.rules)
            calls = tuple(call.arguments for call in turn.tool_calls)
            piece = writer.finish((*turn.reasoning, *turn.parts, *calls))
            known = _keep(self._known, self._limit, turn, piece)
        return known[1]

    def turns(self, turns: Iterable[Turn]) -> list[Piece]:
        """All messages, a comma behind each; nearly all of a talk is known."""
        out: list[Piece] = []
        for turn in turns:
            known = self._known.get(id(turn))
            out.append(known[1] if known is not None else self.turn(turn))
            out.append(_COMMA)
        return out

    def system(self, parts: tuple[Part, ...]) -> Piece:
        """The system message, which is one object while nothing changed."""
        known = self._fixed.get(id(parts))
        if known is None:
            writer = _Writer()
            _system(writer, parts)
            known = _keep(self._fixed, FIXED, parts, writer.finish(parts))
        return known[1]

    def tools(self, specs: tuple[ToolSpec, ...]) -> Piece:
        """The list of tools."""
        known = self._fixed.get(id(specs))
        if known is None:
            writer = _Writer()
            _tools(writer, specs)
            piece = writer.finish(tuple(spec.part for spec in specs))
            known = _keep(self._fixed, FIXED, specs, piece)
        return known[1]


def _keep(memo: dict[int, _Known], limit: int, what: object, piece: Piece) -> _Known:
    if len(memo) >= limit:
        memo.clear()
    known = memo[id(what)] = (what, piece)
    return known


class TurnMemos:
    """A memo for each set of rules in use; shared by all models of an engine."""

    def __init__(self) -> None:
        self._memos: dict[WireRules, TurnMemo] = {}

    def under(self, rules: WireRules) -> TurnMemo:
        """The memo of these rules."""
        memo = self._memos.get(rules)
        if memo is None:
            memo = self._memos[rules] = TurnMemo(rules)
        return memo


def encode(
    request: Request,
    rules: WireRules,
    headers: Mapping[str, str],
    memo: TurnMemo | None = None,
) -> Encoded:
    """The exact body for `request`; spans are sorted, disjoint and cover it all.

    Keys and their order follow OpenClaw 2026.2.26's request (`store` is never sent). `memo` must
    have been made for the same rules.
    """
    memo = memo or TurnMemo(rules)
    head = '{"model":' + _encode_json(request.model.id) + ',"messages":['
    pieces = [Piece(_bytes(head))]
    if request.system:
        pieces += (memo.system(request.system), _COMMA)
    pieces += memo.turns(request.turns)
    if len(pieces) > 1:
        pieces.pop()  # the comma after the last message
    middle = '],"stream":true,"stream_options":{"include_usage":true}'
    limit = request.max_tokens or request.model.max_tokens
    if limit:
        middle += f',"{rules.max_tokens_field}":{limit}'
    for key, value in _thinking(request, rules).items():
        middle += f',"{key}":{_encode_json(value)}'
    pieces.append(Piece(_bytes(middle)))
    if request.tools:
        pieces.append(memo.tools(request.tools))
    pieces.append(_END)
    body = b"".join([piece.data for piece in pieces])
    return Encoded(body, tuple(pieces), chat_url(request.model), headers)


def chat_url(ref: ModelRef) -> str:
    """Where the request goes; accepts a base URL pasted with the path already on it."""
    base = (ref.base_url or "").rstrip("/")
    return base if base.endswith("/chat/completions") else f"{base}/chat/completions"


def _system(writer: _Writer, parts: tuple[Part, ...]) -> None:
    writer.glue('{"role":"system","content":')
    writer.string(parts)
    writer.glue("}")


def _tools(writer: _Writer, specs: tuple[ToolSpec, ...]) -> None:
    writer.glue(',"tools":[')
    for index, tool in enumerate(specs):
        writer.glue(("," if index else "") + '{"type":"function","function":')
        writer.raw(tool.part)
        writer.glue("}")
    writer.glue("]")


def _turn(writer: _Writer, turn: Turn, rules: WireRules) -> None:
    writer.glue('{"role":"' + turn.role + '"')
    if turn.role == "tool":
        writer.glue(',"tool_call_id":' + _encode_json(turn.tool_call_id))
    writer.glue(',"content":')
    if turn.tool_calls and not any(part.text for part in turn.parts):
        writer.glue("null")
    else:
        writer.string(turn.parts, empty=_EMPTY[turn.role])
    if turn.role == "assistant":
        _reasoning(writer, turn, rules)
        _tool_calls(writer, turn.tool_calls)
    writer.glue("}")


def _reasoning(writer: _Writer, turn: Turn, rules: WireRules) -> None:
    wanted = rules.replay is ReasoningReplay.ALWAYS or (
        rules.replay is ReasoningReplay.TOOL_CALLS and bool(turn.tool_calls)
    )
    if wanted:
        writer.glue(f',"{rules.reasoning_field}":')
        writer.string(turn.reasoning, empty=REASONING_PLACEHOLDER)


def _tool_calls(writer: _Writer, calls: tuple[WireToolCall, ...]) -> None:
    if not calls:
        return
    writer.glue(',"tool_calls":[')
    for index, call in enumerate(calls):
        writer.glue(
            ("," if index else "")
            + '{"id":'
            + _encode_json(call.id)
            + ',"type":"function","function":{"name":'
            + _encode_json(call.name)
            + ',"arguments":'
        )
        if is_json_object(call.arguments.text):
            writer.string((call.arguments,))
        else:
            writer.glue('"{}"')
        writer.glue("}}")
    writer.glue("]")


def _thinking(request: Request, rules: WireRules) -> dict[str, object]:
    if not request.model.reasoning:
        return {}
    level = request.thinking
    match rules.thinking:
        case ThinkingField.TOGGLE:
            return {"thinking": {"type": "disabled" if level == "off" else "enabled"}}
        case ThinkingField.EFFORT if level in _EFFORTS:
            return {"reasoning_effort": level}
        case ThinkingField.NESTED_EFFORT if level in _EFFORTS:
            return {"reasoning": {"effort": level}}
        case _:
            return {}


class _Writer:
    """Collects the bytes of one piece and notes where each part stands."""

    __slots__ = ("_chunks", "_position", "_spans")

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._spans: list[Span] = []
        self._position = 0

    def glue(self, text: str) -> None:
        self._put(text)

    def string(self, parts: Iterable[Part], *, empty: str = "") -> None:
        """One JSON string of all parts, joined by a newline; `empty` when they hold no text."""
        self._put('"')
        anything = False
        for index, part in enumerate(parts):
            if index:
                self._put("\\n")
            anything = anything or part.text != ""
            self._part(part.id, _encode_json(part.text)[1:-1], json_string=True)
        self._put(_encode_json(empty)[1:] if empty and not anything else '"')

    def raw(self, part: Part) -> None:
        """A part whose text is JSON already."""
        self._part(part.id, part.text, json_string=False)

    def finish(self, parts: tuple[Part, ...]) -> Piece:
        """What was written, made from `parts`."""
        return Piece(b"".join(self._chunks), tuple(self._spans), parts)

    def _part(self, part_id: str, text: str, *, json_string: bool) -> None:
        start = self._position
        self._put(text)
        self._spans.append(
            Span(part_id, start, self._position, "json-string" if json_string else "raw")
        )

    def _put(self, text: str) -> None:
        data = _bytes(text)
        self._chunks.append(data)
        self._position += len(data)


def _bytes(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:  # rare; escaping leaves surrogates as they are
        return wire_text(text).encode("utf-8")


_COMMA, _END = Piece(b","), Piece(b"}")
