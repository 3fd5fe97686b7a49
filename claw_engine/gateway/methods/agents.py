"""`agents.list`, `agent.identity.get`, `agents.files.*`: who there is and what shapes them."""

from __future__ import annotations

from claw_engine.gateway.client_ports import AgentFile, AgentInfo, AgentsPort
from claw_engine.gateway.ports import GatewayParts
from claw_engine.gateway.table import Call, Method, Payload, method
from claw_engine.gateway.translate4 import agent_of
from claw_engine.gateway.validate import NoParams, Params, Text
from claw_engine.protocol.names import Scope

MAIN_KEY = "main"


class IdentityParams(Params, frozen=True, kw_only=True):
    agent_id: Text | None = None
    session_key: Text | None = None


class FilesParams(Params, frozen=True, kw_only=True):
    agent_id: Text


class FileParams(Params, frozen=True, kw_only=True):
    agent_id: Text
    name: Text


class FileSetParams(Params, frozen=True, kw_only=True):
    agent_id: Text
    name: Text
    content: str


def methods(parts: GatewayParts) -> tuple[Method, ...]:
    """Nothing without agents behind the gateway."""
    agents = parts.agents
    return () if agents is None else (*_who(parts, agents), *_files(agents))


def _who(parts: GatewayParts, agents: AgentsPort) -> tuple[Method, ...]:
    async def list_agents(call: Call, params: NoParams) -> Payload:
        fallback = str(parts.models.current().get("name") or "")
        return {
            "defaultId": agents.default_id,
            "mainKey": MAIN_KEY,
            "scope": "global" if agents.global_scope else "per-sender",
            "ownership": "sole",
            "selectionRequired": False,
            "agents": [_row(agent, fallback) for agent in agents.rows()],
        }

    async def identity(call: Call, params: IdentityParams) -> Payload:
        wanted = params.agent_id
        if wanted is None and params.session_key is not None:
            wanted = agent_of(parts.sessions.canonical(params.session_key))
        found = agents.get(wanted or agents.default_id)
        named = {"name": found.name, **found.identity}
        return {"agentId": found.id, **{k: v for k, v in named.items() if v and k != "theme"}}

    return (
        method("agents.list", Scope.READ, NoParams, list_agents),
        method("agent.identity.get", Scope.READ, IdentityParams, identity),
    )


def _row(agent: AgentInfo, fallback: str) -> dict[str, object]:
    model: dict[str, object] = {"primary": agent.model or fallback}
    if agent.fallbacks:
        model["fallbacks"] = list(agent.fallbacks)
    row: dict[str, object] = {
        "id": agent.id,
        "kind": "agent",
        "workspace": agent.workspace,
        "model": model,
        "thinkingDefault": agent.thinking,
    }
    if agent.name:
        row["name"] = agent.name
    if agent.identity:
        row["identity"] = dict(agent.identity)
    return row


def _files(agents: AgentsPort) -> tuple[Method, ...]:
    async def list_files(call: Call, params: FilesParams) -> Payload:
        found = await agents.files(params.agent_id)
        return {**_where(agents, params.agent_id), "files": [_file(file) for file in found]}

    async def get(call: Call, params: FileParams) -> Payload:
        file = await agents.read_file(params.agent_id, params.name)
        return {**_where(agents, params.agent_id), "file": _file(file)}

    async def put(call: Call, params: FileSetParams) -> Payload:
        file = await agents.write_file(params.agent_id, params.name, params.content)
        return {"ok": True, **_where(agents, params.agent_id), "file": _file(file)}

    return (
        method("agents.files.list", Scope.READ, FilesParams, list_files),
        method("agents.files.get", Scope.READ, FileParams, get),
        method("agents.files.set", Scope.ADMIN, FileSetParams, put),
    )


def _where(agents: AgentsPort, agent_id: str) -> dict[str, object]:
    found = agents.get(agent_id)
    return {"agentId": found.id, "workspace": found.workspace}


def _file(file: AgentFile) -> dict[str, object]:
    more = {"size": file.size, "updatedAtMs": file.updated_ms, "content": file.content}
    return {
        "name": file.name,
        "path": file.path,
        "missing": file.size is None,
        **{name: value for name, value in more.items() if value is not None},
    }
