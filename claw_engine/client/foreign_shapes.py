"""OpenClaw's answers in our shapes, protocol 3 and 4 alike. Pure.

Both are read leniently: what a gateway leaves out is left out here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

Json = Mapping[str, object]


def status(hello: Json, defaults: Json, host: str) -> dict[str, object]:
    """Our `status`, as far as `hello-ok` and the defaults of `sessions.list` tell."""
    server = _obj(hello, "server")
    names = [_text(defaults, "modelProvider"), _text(defaults, "model")]
    model: dict[str, object] = {"name": "/".join(n for n in names if n), "isAI": True}
    window = defaults.get("contextTokens")
    if isinstance(window, int):
        model["contextWindow"] = window
    version = _text(server, "version")
    if version in ("", "dev"):  # what 2026.2.26 says of itself
        version = f"(protocol {hello.get('protocol')})"
    return {
        "version": version,
        "host": host,
        "mode": "remote",
        "model": model,
        "permissionMode": f"OpenClaw {version}".strip(),
    }


def session_rows(answer: Json, active: Callable[[str], str]) -> dict[str, object]:
    """`sessions.list`; `active` names the run of a session that is known to be going on."""
    rows = answer.get("sessions")
    found = rows if isinstance(rows, list) else []
    out = [_row(row, active) for row in found if isinstance(row, dict)]
    return {**answer, "sessions": out}


def _row(row: Json, active: Callable[[str], str]) -> dict[str, object]:
    key = _text(row, "key")
    run = active(key)
    running = bool(run) or row.get("hasActiveRun") is True
    provider, model = _text(row, "modelProvider"), _text(row, "model")
    title = _text(row, "displayName") or _text(row, "label") or _text(row, "derivedTitle")
    out = dict(row)
    out |= {"state": "running" if running else "idle", "activeRunId": run or None}
    if model:
        out["model"] = f"{provider}/{model}" if provider else model
    if title:
        out["displayName"] = title
    return out


def history(answer: Json, *, going: bool = False) -> dict[str, object]:
    """`chat.history`: every content a list of blocks, ids where ours stand.

    Protocol 3 does not say which run a message belongs to. Unless a run is `going` on, `whole`
    tells that the answer may replace what is known; else each turn would stand there twice.
    """
    rows = answer.get("messages")
    messages = [_message(m) for m in rows if isinstance(m, dict)] if isinstance(rows, list) else []
    named = any(_text(_obj(m, "__claw"), "runId") for m in messages)
    return {**answer, "messages": messages, "whole": not named and not going}


def _message(raw: Json) -> dict[str, object]:
    out = dict(raw)
    content = raw.get("content")
    if isinstance(content, str):  # protocol 4's users
        out["content"] = [{"type": "text", "text": content}]
    meta = _obj(raw, "__openclaw")
    mark = {name: meta[name] for name in ("id", "runId") if meta.get(name)}
    run_id, _, kind = _text(raw, "idempotencyKey").rpartition(":")
    if kind == "user" and run_id:  # protocol 4 names the run of a question only here
        mark.setdefault("runId", run_id)
    if mark:
        out["__claw"] = mark
    return out


def approvals(answer: Json) -> dict[str, object]:
    """`exec.approval.list`: protocol 4 answers with a bare list."""
    rows = answer.get("approvals", answer.get("items"))
    rows = rows if isinstance(rows, list) else []
    return {**answer, "approvals": [approval(row) for row in rows if isinstance(row, dict)]}


def approval(raw: Json) -> dict[str, object]:
    """A request; what always would allow, where the gateway takes that for an answer.

    OpenClaw's rule is the program's path and nothing else. Protocol 3 takes it always, protocol 4
    says so for each request.
    """
    request = dict(_obj(raw, "request"))
    allowed = request.get("allowedDecisions", ["allow-always"])
    path = _text(request, "resolvedPath")
    if "always" not in request and path and isinstance(allowed, list) and "allow-always" in allowed:
        notes = ["the gateway's rule: this program, with any arguments"]
        request["always"] = {"patterns": [path], "notes": notes}
    return {**raw, "request": request}


def _obj(raw: Json, name: str) -> Json:
    value = raw.get(name)
    return value if isinstance(value, dict) else {}


def _text(raw: Json, name: str) -> str:
    value = raw.get(name)
    return value if isinstance(value, str) else ""
