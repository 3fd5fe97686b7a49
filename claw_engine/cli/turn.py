"""One turn as lines on stderr: tools as they start and end, and who waits for what."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from claw_engine.cli.output import command_line, note, one_line
from claw_engine.cli.status import duration, number, part

Json = Mapping[str, object]


class TurnPrinter:
    """Feed it the trace events of a run; others are passed over."""

    def __init__(self, run_id: str, state_dir: Path) -> None:
        self.run_id = run_id
        self._state_dir = state_dir
        self._calls: dict[str, str] = {}

    def feed(self, event: str, payload: object) -> None:
        """One event of the gateway."""
        if event != "trace" or not isinstance(payload, Mapping):
            return
        if payload.get("runId") != self.run_id:
            return
        data = part(payload, "data")
        match payload.get("kind"):
            case "run.queued" if data.get("waitingBehind"):
                note("queued: another run of this session goes first")
            case "run.started" if data.get("isAI") is False:
                note(f"model: {data.get('model')} (not an AI)")
            case "tool.started":
                self._started(data)
            case "tool.waiting":
                self._waiting(payload, data)
            case "tool.decided":
                reason = f" ({one_line(str(data['reason']))})" if data.get("reason") else ""
                note(f"decided: {data.get('decision') or 'nobody answered'}{reason}")
            case "tool.ended":
                self._ended(data)
            case "retry":
                note(f"retry in {duration(number(data, 'delayMs'))}: {data.get('reason')}")
            case "notice":
                note(f"{data.get('level')}: {one_line(str(data.get('text')))}")
            case _:
                pass

    def _started(self, data: Json) -> None:
        args = part(data, "args")
        told = args.get("command") or args.get("path") or json.dumps(dict(args))
        text = f"{data.get('name')} {command_line(str(told), 160)}"
        self._calls[str(data.get("toolCallId"))] = text
        note(f"tool: {text}")

    def _waiting(self, payload: Json, data: Json) -> None:
        approval = str(data.get("approvalId"))[:8]
        left = duration(number(data, "expiresAtMs") - number(payload, "ts"))
        text = self._calls.get(str(data.get("toolCallId")), "a tool")
        note(f"waiting for approval {approval} ({left}): {text}")
        for verb in ("approve", "deny"):
            note(f"  claw approvals {verb} {approval} --state-dir {self._state_dir}")

    def _ended(self, data: Json) -> None:
        code = data.get("exitCode")
        exit_text = f", exit {code}" if code is not None else ""
        seconds = number(data, "durationMs") / 1000
        note(f"tool: {data.get('name')} {data.get('status')}{exit_text}, {seconds:.1f} s")
