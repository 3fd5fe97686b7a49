"""`agent` and `agent.wait`: one turn with its result, in two answers."""

from __future__ import annotations

from collections.abc import Mapping

from claw_engine.errors import ClawError, InvalidRequest
from claw_engine.gateway.idempotency import AnswerCache
from claw_engine.gateway.methods.chat import clean_message, source_of
from claw_engine.gateway.methods.sessions import full_key
from claw_engine.gateway.ports import GatewayParts, RunReport, Submission
from claw_engine.gateway.session_rows import MAIN, session_row
from claw_engine.gateway.table import Call, Method, Payload, method
from claw_engine.gateway.validate import AgentParams, AgentWaitParams
from claw_engine.protocol.names import Scope


class RunFailed(ClawError):
    """The turn ended without an answer; `details` hold run id and status."""


def methods(parts: GatewayParts) -> tuple[Method, ...]:
    answers = AnswerCache(parts.clock)

    async def agent(call: Call, params: AgentParams) -> Payload:
        key = full_key(parts, params.session_key or MAIN, params.agent_id)
        text = clean_message(params.message)
        run_id = params.idempotency_key
        accepted_key = f"agent:{run_id}"

        async def submit() -> Payload:
            if parts.intake.known(run_id) is None:
                call.peer.started(run_id)
                source = source_of(call.peer)
                await parts.intake.submit(
                    Submission(run_id, key, text, source, params.thinking, params.timeout)
                )
            now = parts.clock.now_ms()
            return {"runId": run_id, "status": "accepted", "acceptedAt": now}

        call.accept(await answers.once(accepted_key, submit))
        report = await parts.intake.wait(run_id, None)
        if report is None:
            raise InvalidRequest(f"unknown run: {run_id}")
        return _final(report, session_row(parts, key) or {})

    async def wait(call: Call, params: AgentWaitParams) -> Payload:
        if parts.intake.known(params.run_id) is None:
            raise InvalidRequest(f"unknown run: {params.run_id}")
        report = await parts.intake.wait(params.run_id, params.timeout_ms / 1000)
        if report is None:
            return {"runId": params.run_id, "status": "timeout"}
        out: dict[str, object] = {
            "runId": params.run_id,
            "status": "ok" if report.status == "done" else "error",
            "startedAt": report.started_ms,
            "endedAt": report.ended_ms,
        }
        if report.status != "done":
            out["error"] = " ".join(filter(None, _why(report)))
        return out

    return (
        method("agent", Scope.WRITE, AgentParams, agent),
        method("agent.wait", Scope.WRITE, AgentWaitParams, wait),
    )


def _final(report: RunReport, row: Mapping[str, object]) -> Payload:
    """The second answer; `row` is the session's. Raises RunFailed unless the run was done."""
    if report.status != "done":
        title, hint = _why(report)
        raise RunFailed(title, hint=hint, details={"runId": report.run_id, "status": report.status})
    usage = dict(report.usage) if report.usage is not None else None
    payloads = [{"text": report.text, "mediaUrl": None}] if report.text else []
    return {
        "runId": report.run_id,
        "status": "ok",
        "summary": "completed",
        "result": {
            "payloads": payloads,
            "meta": {
                "durationMs": report.duration_ms,
                "usage": usage,
                "agentMeta": {
                    "sessionId": row.get("sessionId"),
                    "provider": row.get("modelProvider"),
                    "model": row.get("model"),
                    "usage": usage,
                },
                "aborted": False,
                "stopReason": report.stop_reason,
                "toolCalls": [dict(tool_call) for tool_call in report.tool_calls],
            },
        },
    }


def _why(report: RunReport) -> tuple[str, str]:
    return report.error or (f"The run was {report.status}.", "")
