"""Reading sessions: `sessions.list`, `.describe`, `.resolve`, `.preview`.

Parameters of both protocols in one closed schema; what is said of owners, projects and boards of
protocol 4 has nothing here to choose among: there is one user.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta

from claw_engine.errors import InvalidRequest
from claw_engine.gateway.peer import CAP_TRACE, Peer
from claw_engine.gateway.ports import GatewayParts
from claw_engine.gateway.session_rows import (
    default_agent,
    defaults4,
    model_defaults,
    session_index,
    session_row,
    session_rows,
)
from claw_engine.gateway.table import Call, Method, Payload, method
from claw_engine.gateway.translate4 import agent_of
from claw_engine.gateway.validate import Count, Millis, Params, Text
from claw_engine.protocol.names import Scope

LIMIT4 = 100
"""Rows of a list under protocol 4 that names no limit (protocol digest §2.3)."""
TITLE_CHARS = 60
PREVIEWED = 64
"""Keys of one `sessions.preview` that are looked at (gateway digest §1.11)."""

Row = dict[str, object]


class ListParams(Params, frozen=True, kw_only=True):
    """Filters; `None` chooses nothing. Times in minutes."""

    limit: Count | None = None
    offset: Millis | None = None
    search: str | None = None
    active_minutes: Count | None = None
    active_only: bool = False
    agent_id: Text | None = None
    label: Text | None = None
    spawned_by: Text | None = None
    archived: bool | Literal["all"] | None = None
    pinned: bool | None = None
    include_global: bool = False
    include_unknown: bool = False
    include_derived_titles: bool = False
    include_last_message: bool = False
    exclude_subagents: bool = False
    exclude_cron: bool = False
    exclude_system: bool = False
    configured_agents_only: bool = False
    sort_by: Literal["updatedAt", "lastInteractionAt", "activity"] = "updatedAt"
    require_last_interaction: bool = False
    include_activity_summary: bool = False
    project_id: str | None = None
    workspace_dir: str | None = None
    group: str | None = None
    board_face: str | None = None
    has_board: bool | None = None
    creator_id: str | None = None
    owner_id: str | None = None
    owner_first: bool = False
    involving_me: bool | None = None
    profile_relation: str | None = None
    involving_profile_id: str | None = None
    include_people: bool = False

    @property
    def plain(self) -> bool:
        """Whether every session of the usual kinds is wanted."""
        return not (
            self.search or self.active_minutes or self.active_only or self.agent_id or self.label
            or self.spawned_by or self.archived is not None or self.pinned is not None
            or self.exclude_subagents or self.exclude_cron or self.configured_agents_only
            or self.nowhere
        )  # fmt: skip

    @property
    def nowhere(self) -> bool:
        """Whether it asks for what no session has: a project, a group, a board."""
        return bool(self.project_id or self.group or self.board_face or self.has_board)


class DescribeParams(Params, frozen=True, kw_only=True):
    key: Text
    agent_id: Text | None = None
    include_derived_titles: bool = False
    include_last_message: bool = False


class ResolveParams(Params, frozen=True, kw_only=True):
    """One of `key`, `session_id`, `label`, `reference`; the others narrow."""

    key: Text | None = None
    session_id: Text | None = None
    label: Text | None = None
    reference: Text | None = None
    short_id: Text | None = None
    slug_hint: str | None = None
    agent_id: Text | None = None
    spawned_by: Text | None = None
    include_global: bool = False
    include_unknown: bool = False
    allow_missing: bool = False


class PreviewParams(Params, frozen=True, kw_only=True):
    """`max_chars` of one item."""

    keys: Annotated[list[Text], Meta(min_length=1)]
    limit: Count = 12
    max_chars: Annotated[int, Meta(ge=20)] = 240


def methods(parts: GatewayParts) -> tuple[Method, ...]:
    async def list_sessions(call: Call, params: ListParams) -> Payload:
        return await session_list(parts, call.peer, params)

    async def describe(call: Call, params: DescribeParams) -> Payload:
        row = session_row(parts, full_key(parts, params.key, params.agent_id))
        if row is not None and params.include_derived_titles:
            _title(row)
        return {"session": row}

    async def resolve(call: Call, params: ResolveParams) -> Payload:
        return await _resolved(parts, params, four=call.peer.identity.protocol >= 4)

    async def preview(call: Call, params: PreviewParams) -> Payload:
        previews = [await _preview(parts, key, params) for key in params.keys[:PREVIEWED]]
        return {"ts": parts.clock.now_ms(), "previews": previews}

    return (
        method("sessions.list", Scope.READ, ListParams, list_sessions),
        method("sessions.describe", Scope.READ, DescribeParams, describe),
        method("sessions.resolve", Scope.READ, ResolveParams, resolve),
        method("sessions.preview", Scope.READ, PreviewParams, preview),
    )


def full_key(parts: GatewayParts, key: str, agent_id: str | None) -> str:
    """The canonical key; a bare one means the named agent's. Raises ClawError."""
    if agent_id and not key.strip().lower().startswith("agent:") and key not in _BARE:
        return parts.sessions.canonical(f"agent:{agent_id}:{key}")
    return parts.sessions.canonical(key)


async def session_list(parts: GatewayParts, peer: Peer, params: ListParams) -> Payload:
    """The answer of `sessions.list`."""
    four = peer.identity.protocol >= 4
    ours = CAP_TRACE in peer.identity.caps
    limit = params.limit or (LIMIT4 if four and not ours else None)
    start = params.offset or 0
    # After every turn a terminal client asks for the newest one: the others are not looked into.
    few = params.plain and limit is not None and params.sort_by != "activity"
    rows = await session_rows(parts, start + (limit or 0) + len(_BARE) if few else None)
    now = parts.clock.now_ms()
    wanted = [row for row in rows if ours or _usual(row, params)]
    if not params.plain:
        wanted = [row for row in wanted if _wanted(parts, row, params, now)]
    if params.sort_by == "activity":
        wanted.sort(key=lambda row: not row["hasActiveRun"])
    shown = wanted[start:] if limit is None else wanted[start : start + limit]
    if params.include_derived_titles:
        shown = [dict(row) for row in shown]
        for row in shown:
            _title(row)
    end = start + len(shown)
    total = await _count(parts, params, ours=ours) if few else len(wanted)
    out: dict[str, object] = {
        "ts": now,
        "path": parts.edits.store_path(default_agent(parts)) if parts.edits is not None else "",
        "count": len(shown),
        "totalCount": total,
        "limitApplied": limit,
        "nextOffset": end if end < total else None,
        "hasMore": end < total,
        "owners": [],
        "defaults": defaults4(parts) if four else model_defaults(parts),
        "sessions": shown,
    }
    return out


_BARE = ("global", "unknown")


async def _count(parts: GatewayParts, params: ListParams, *, ours: bool) -> int:
    """How many sessions a list without filters has; runs of cron jobs are hidden."""
    return sum(
        1 for key, _ in await session_index(parts)
        if not (":cron:" in key and ":run:" in key) and (ours or _usual({"key": key}, params))
    )  # fmt: skip


def _usual(row: Row, params: ListParams) -> bool:
    if row["key"] == "global":
        return params.include_global
    return row["key"] != "unknown" or params.include_unknown


def _wanted(parts: GatewayParts, row: Row, params: ListParams, now: int) -> bool:
    key, tail = str(row["key"]), f":{str(row['key']).partition(':')[2]}"
    since = now - (params.active_minutes or 0) * 60_000
    return not (
        params.nowhere
        or (params.search and not _matches(row, params.search.casefold()))
        or (params.active_minutes and int(str(row["updatedAt"])) < since)
        or (params.active_only and not row["hasActiveRun"])
        or (params.agent_id and row["agentId"] != params.agent_id.strip().lower())
        or (params.label and row.get("label") != params.label)
        or (params.spawned_by and row.get("spawnedBy") != params.spawned_by)
        or (params.archived in (True, False)
            and bool(row.get("archived")) is not params.archived)
        or (params.pinned is not None and bool(row.get("pinned")) is not params.pinned)
        or (params.exclude_subagents and ":subagent:" in tail)
        or (params.exclude_cron and ":cron:" in tail)
        or (params.configured_agents_only and not _configured(parts, agent_of(key)))
    )  # fmt: skip


def _configured(parts: GatewayParts, agent_id: str) -> bool:
    return parts.agents is None or any(row.id == agent_id for row in parts.agents.rows())


def _matches(row: Mapping[str, object], needle: str) -> bool:
    """Where a search looks: as OpenClaw does (gateway digest §1.11)."""
    fields = ("key", "sessionId", "displayName", "label", "subject")
    return any(needle in str(row.get(name) or "").casefold() for name in fields)


def _title(row: Row) -> None:
    """A name for the session, where something names it."""
    name = row.get("displayName") or row.get("subject") or row.get("lastMessagePreview")
    if name:
        text = str(name)
        row["derivedTitle"] = (
            text if len(text) <= TITLE_CHARS else f"{text[: TITLE_CHARS - 1].rstrip()}…"
        )


async def _resolved(parts: GatewayParts, params: ResolveParams, *, four: bool) -> Payload:
    wanted = {"key": params.key or params.reference, "sessionId": params.session_id,
              "label": params.label, "shortId": params.short_id}  # fmt: skip
    given = {name: value for name, value in wanted.items() if value}
    if len(given) != 1:
        which = "Provide" if not given else "Provide only"
        raise InvalidRequest(f"{which} one of key, sessionId or label")
    ((name, value),) = given.items()
    rows = [row for row in await session_rows(parts) if _narrowed(row, params)]
    if name == "key":
        key = full_key(parts, value, params.agent_id)
        found = [row for row in rows if row["key"] == key]
    elif name == "shortId":
        found = [row for row in rows if str(row.get("sessionId") or "").startswith(value)]
    else:
        found = [row for row in rows if row.get(name) == value]
    if len(found) > 1:
        keys = ", ".join(str(row["key"]) for row in found)
        raise InvalidRequest(f"Multiple sessions found with {name}: {value} ({keys})")
    if not found:
        if params.allow_missing:
            return {"ok": False}
        said = f"with {name}" if name in ("label", "sessionId", "shortId") else "found"
        raise InvalidRequest(
            f"No session found {said}: {value}" if said != "found" else f"No session found: {value}"
        )
    row = found[0]
    out: dict[str, object] = {"ok": True, "key": row["key"]}
    if four:
        out["agentId"] = row["agentId"]
        if row.get("displayName"):
            out["displayName"] = row["displayName"]
    return out


def _narrowed(row: Row, params: ResolveParams) -> bool:
    agent = params.agent_id.strip().lower() if params.agent_id else ""
    return (not agent or row["agentId"] == agent) and (
        not params.spawned_by or row.get("spawnedBy") == params.spawned_by
    )


async def _preview(parts: GatewayParts, key: str, params: PreviewParams) -> Row:
    full = parts.sessions.canonical(key)
    if parts.sessions.row(full) is None:
        return {"key": key, "status": "missing", "items": []}
    found = await parts.sessions.history(full, params.limit)
    items = [_item(message, params.max_chars) for message in found.messages]
    items = [item for item in items if item["text"]]
    return {"key": key, "status": "ok" if items else "empty", "items": items}


def _item(message: Mapping[str, object], max_chars: int) -> dict[str, str]:
    role, content = str(message.get("role")), message.get("content")
    blocks = content if isinstance(content, list) else []
    words = [str(b.get("text", "")) for b in blocks if isinstance(b, dict)]
    calls = [f"call {b.get('name')}" for b in blocks
             if isinstance(b, dict) and b.get("type") == "toolCall"]  # fmt: skip
    text = " ".join(" ".join(word for word in (*words, *calls) if word).split())
    cut = text if len(text) <= max_chars else f"{text[: max_chars - 1]}…"
    kind = {"toolResult": "tool", "user": "user", "assistant": "assistant", "system": "system"}
    return {"role": kind.get(role, "other"), "text": cut}
