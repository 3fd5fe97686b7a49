"""The process tool: looks after the commands that exec left in the background.

A session sees its own commands only. Starting and stopping is exec's business; here is what the
model may ask of them and what it is told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from claw_engine.tools.base import ToolContext, ToolError, ToolResult
from claw_engine.tools.exec.background import Background
from claw_engine.tools.exec.results import exit_fields
from claw_engine.tools.exec.table import ProcessTable
from claw_engine.tools.permission import refuse_in_look
from claw_engine.tools.process import keys
from claw_engine.tools.process.window import window

MAX_POLL_MS = 120_000
"""Longest wait of one poll (gateway digest §5.3)."""

WRITE_S = 10.0
"""How long a program may take to make room for its input."""

_ACTIONS = (
    "list", "poll", "log", "write", "send-keys", "submit", "paste", "kill", "clear", "remove",
)  # fmt: skip
_INPUT = frozenset({"write", "send-keys", "submit", "paste"})
"""Actions that make a command do something."""


class ProcessTool:
    """Look after commands in the background."""

    name = "process"
    summary = "Look after background commands (poll, log, input, kill)"
    description = (
        "Look after commands that exec left in the background: list; poll (new output, waits up to "
        "timeout ms for the end); log (any lines); write, send-keys, submit, paste (input); kill; "
        "clear (forget an ended one); remove (kill and forget)."
    )
    parameters: Mapping[str, object] = {
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": list(_ACTIONS), "description": "What to do"},
            "sessionId": {
                "type": "string",
                "description": "Name of the command, as exec gave it (all actions but list)",
            },
            "timeout": {
                "type": "number",
                "minimum": 0,
                "description": "poll: milliseconds to wait for the end, at most 120000",
            },
            "offset": {"type": "integer", "minimum": 0, "description": "log: lines to skip"},
            "limit": {"type": "integer", "minimum": 1, "description": "log: most lines to show"},
            "data": {"type": "string", "description": "write: text for its input"},
            "eof": {"type": "boolean", "description": "write: end its input afterwards"},
            "keys": {
                "type": "array",
                "items": {"type": "string"},
                "description": "send-keys: names as in tmux (Enter, C-c, Up, M-x, F1)",
            },
            "hex": {
                "type": "array",
                "items": {"type": "string"},
                "description": "send-keys: bytes in hex",
            },
            "literal": {"type": "string", "description": "send-keys: text, sent before the keys"},
            "text": {"type": "string", "description": "paste: the text"},
            "bracketed": {
                "type": "boolean",
                "description": "paste: mark it as pasted (default: if the program asked for it)",
            },
        },
        "required": ["action"],
    }

    def __init__(self, table: ProcessTable) -> None:
        self._table = table

    async def run(self, args: Mapping[str, object], ctx: ToolContext) -> ToolResult:
        """Do it. Raises ToolError for a call that cannot be done as asked."""
        action = str(args["action"])
        if action == "list":
            return self._list(ctx)
        if action in _INPUT:
            refuse_in_look(ctx, f"process {action}")
        entry = self._entry(args, ctx)
        if isinstance(entry, ToolResult):
            return entry
        match action:
            case "poll":
                return await _poll(entry, _number(args, "timeout"), ctx)
            case "log":
                return _log(entry, args)
            case "kill":
                return await self._kill(entry)
            case "clear":
                return self._clear(entry)
            case "remove":
                result = await self._kill(entry)
                self._table.drop(entry)
                return ToolResult(f"{result.text} Its output is gone.", details=result.details)
            case _:
                return await _input(entry, action, args, ctx)

    def _entry(self, args: Mapping[str, object], ctx: ToolContext) -> Background | ToolResult:
        wanted = str(args.get("sessionId", "")).strip()
        if not wanted:
            raise ToolError(f"process: sessionId is required for {args['action']}.")
        entry = self._table.get(ctx.session_key, wanted)
        if entry is not None:
            return entry
        known = ", ".join(entry.id for entry in self._table.of_session(ctx.session_key))
        there = f"There are: {known}." if known else "There is none."
        return ToolResult(
            f"No session found for {wanted}. {there}",
            is_error=True,
            details={"status": "failed", "sessionId": wanted},
        )

    def _list(self, ctx: ToolContext) -> ToolResult:
        now = ctx.world.clock.now_ms()
        entries = self._table.of_session(ctx.session_key)
        lines = [
            f"{entry.id} {entry.status} {_duration(entry.duration_ms(now))} :: {entry.label}"
            for entry in entries
        ]
        text = "\n".join(lines) or "No command is or was in the background."
        return ToolResult(text, details={"sessions": [entry.fields(now) for entry in entries]})

    async def _kill(self, entry: Background) -> ToolResult:
        if entry.ended:
            text = f"{entry.id} has ended before. {entry.ending}"
        else:
            await self._table.kill(entry, "process tool")
            text = f"Stopped {entry.id} (pid {entry.running.pid}). {entry.ending}"
        return ToolResult(text, details=_state(entry))

    def _clear(self, entry: Background) -> ToolResult:
        if not entry.ended:
            raise ToolError(
                f"process: {entry.id} still runs; kill it first, or use remove for both."
            )
        self._table.drop(entry)
        return ToolResult(f"{entry.id} is forgotten.", details=_state(entry))


async def _poll(entry: Background, timeout_ms: float, ctx: ToolContext) -> ToolResult:
    if timeout_ms > 0 and not entry.ended:
        seconds = min(timeout_ms, MAX_POLL_MS) / 1000
        waits = [
            asyncio.ensure_future(entry.running.wait()),
            asyncio.ensure_future(ctx.world.clock.sleep(seconds)),
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
    output, retry_ms = entry.drain()
    details = _state(entry)
    ending = entry.ending
    if retry_ms is not None:
        details["retryInMs"] = retry_ms
        if not output:
            ending += f" Nothing new; look again in {retry_ms // 1000} s."
    text = output.rstrip("\n") if output.strip() else "(no new output)"
    return ToolResult(f"{text}\n\n{ending}", details=details)


def _log(entry: Background, args: Mapping[str, object]) -> ToolResult:
    offset = int(_number(args, "offset")) if "offset" in args else None
    limit = int(_number(args, "limit")) if "limit" in args else None
    tail = entry.running.tail
    kept = tail.text()
    shown = window(kept, offset, limit)
    notes = []
    if tail.left_out:
        notes.append(f"[… {tail.left_out:,} characters before these lines were dropped …]")
    notes += [shown.text if kept else "(no output)", shown.note]
    details = {
        **_state(entry),
        "totalLines": shown.total,
        "totalChars": len(kept) + tail.left_out,
        "truncated": bool(tail.left_out) or shown.count < shown.total,
    }
    return ToolResult("\n".join(note for note in notes if note), details=details)


async def _input(
    entry: Background, action: str, args: Mapping[str, object], ctx: ToolContext
) -> ToolResult:
    if entry.ended:
        raise ToolError(f"process: {entry.id} takes no input any more. {entry.ending}")
    try:
        data = _bytes(entry, action, args)
    except keys.UnknownKey as unknown:
        raise ToolError(f"process: {unknown}") from unknown
    except UnicodeEncodeError:
        raise ToolError("process: the text is not valid Unicode (half a surrogate pair).") from None
    eof = action == "write" and args.get("eof") is True
    if not data and not eof:
        raise ToolError(f"process: {action} has nothing to send. {_NEEDS[action]}")
    if data:
        await _send(entry, data, ctx)
    if eof:
        entry.running.close_input()
    said = f"Sent {len(data)} byte{'' if len(data) == 1 else 's'} to {entry.id}"
    if eof:
        said += " and ended its input" if data else ": its input has ended"
    if action == "send-keys" and entry.running.terminal is None:
        said += ". It has no terminal: keys arrive as plain bytes, C-c does not interrupt it"
    return ToolResult(f"{said}.", details=_state(entry))


_NEEDS: Mapping[str, str] = {
    "write": "Give data, or eof.",
    "send-keys": "Give keys, hex or literal.",
    "paste": "Give text.",
    "submit": "",
}


def _bytes(entry: Background, action: str, args: Mapping[str, object]) -> bytes:
    screen = entry.running.terminal
    terminal = screen is not None
    application = screen is not None and screen.application_keys
    match action:
        case "write":
            return str(args.get("data", "")).encode()
        case "submit":
            return keys.encode("Enter", terminal=terminal)
        case "paste":
            asked = screen is not None and screen.bracketed_paste
            bracketed = args.get("bracketed", asked) is True
            text = str(args.get("text", args.get("data", "")))
            return keys.pasted(text, terminal=terminal, bracketed=bracketed) if text else b""
        case _:
            return (
                str(args.get("literal", "")).encode()
                + keys.from_hex(_texts(args, "hex"))
                + keys.encode_all(_texts(args, "keys"), terminal=terminal, application=application)
            )


async def _send(entry: Background, data: bytes, ctx: ToolContext) -> None:
    writing = asyncio.ensure_future(entry.running.write(data))
    late = asyncio.ensure_future(ctx.world.clock.sleep(WRITE_S))
    try:
        await asyncio.wait({writing, late}, return_when=asyncio.FIRST_COMPLETED)
        if not writing.done():
            raise ToolError(
                f"process: {entry.id} does not read its input; not all of it was taken within "
                f"{WRITE_S:g} s."
            )
        writing.result()
    except OSError as error:
        raise ToolError(
            f"process: {entry.id} takes no input (it has ended it, or was started without: use "
            "background or pty with exec)."
        ) from error
    finally:
        for task in (writing, late):
            task.cancel()


def _state(entry: Background) -> dict[str, object]:
    ran = entry.running.ran
    return {
        "status": entry.status,
        "sessionId": entry.id,
        "name": entry.label,
        "tail": entry.tail,
        **(exit_fields(ran) if ran is not None else {}),
    }


def _number(args: Mapping[str, object], name: str) -> float:
    value = args.get(name)
    return value if isinstance(value, (int, float)) else 0


def _texts(args: Mapping[str, object], name: str) -> Sequence[str]:
    value = args.get(name)
    return [str(item) for item in value] if isinstance(value, list) else []


def _duration(ms: int) -> str:
    seconds = ms // 1000
    if seconds < 60:
        return f"{seconds}s"
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m" if hours else f"{minutes}m{seconds:02d}s"
