"""POST /tools/invoke: one tool call under the policy of a session (gateway digest §1.12)."""

from __future__ import annotations

from collections.abc import Mapping

from claw_engine.config.sections.gateway import HttpTools
from claw_engine.errors import ClawError
from claw_engine.gateway.ports import GatewayParts
from claw_engine.gateway.tool_port import ToolAnswer, ToolInvocation
from claw_engine.gateway.web.http import HttpError, HttpRequest, Send, answer
from claw_engine.gateway.web.reading import tool_request
from claw_engine.protocol.names import DEFAULT_SESSION

MAX_BODY = 2 * 1024 * 1024

DENIED = (
    "sessions_spawn", "sessions_send", "cron", "gateway", "nodes", "whatsapp_login",
)  # fmt: skip
"""Tools that reach beyond one call; OpenClaw denies them here too, and so do we `nodes`."""

_STATUS = {"ok": 200, "error": 400, "bad_input": 400, "denied": 403, "not_found": 404}
_KIND = {"error": "tool_error", "bad_input": "tool_error", "denied": "forbidden",
         "not_found": "not_found"}  # fmt: skip


async def handle(parts: GatewayParts, rules: HttpTools, request: HttpRequest, send: Send) -> None:
    """Answer one call. The caller is known already. Raises HttpError, ClientGone."""
    asked = await tool_request(await request.body(MAX_BODY))
    if parts.tools is None:
        raise _refused(ToolAnswer("not_found", f"There is no tool named {asked.tool!r} here."))
    try:
        session = parts.sessions.canonical(asked.session_key or DEFAULT_SESSION)
        call = ToolInvocation(
            f"http-{parts.ids.uuid()}", asked.tool, asked.args or {}, session,
            asked.action or "", denied_here(rules),
        )  # fmt: skip
        done = await request.or_gone(parts.tools.invoke(call))
    except ClawError as error:
        raise _refused(ToolAnswer("error", error.sentence())) from None
    if done.status != "ok":
        raise _refused(done)
    result: dict[str, object] = {"content": [{"type": "text", "text": done.text}]}
    if done.details:
        result["details"] = dict(done.details)
    await answer(send, 200, {"ok": True, "result": result})


def denied_here(rules: HttpTools) -> Mapping[str, str]:
    """Tools that may not be called this way, and the rule that says so."""
    allowed = {name.lower() for name in rules.allow}
    found = {name: "the default list of POST /tools/invoke (gateway.tools.allow takes one out)"
             for name in DENIED if name not in allowed}  # fmt: skip
    return found | {name.lower(): "gateway.tools.deny" for name in rules.deny}


def _refused(done: ToolAnswer) -> HttpError:
    error = {"type": _KIND[done.status], "message": done.text}
    return HttpError(_STATUS[done.status], {"ok": False, "error": error})
