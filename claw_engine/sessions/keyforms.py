"""The forms of session keys: one function for each kind of conversation. Pure.

Grammar: OpenClaw 2026.2.26 (gateway digest §3.1). All raise InvalidSessionKey for ids that no key
can carry (control characters, too long).
"""

from __future__ import annotations

from claw_engine.sessions.keys import MAIN, SessionKey, canonical

UNKNOWN = "unknown"
"""Stands in for a group without an id."""


def main_key(agent: str, *, global_scope: bool = False) -> SessionKey:
    """The main session of an agent, or the one session that all share."""
    return canonical("global", agent) if global_scope else _key(agent, MAIN)


def direct_key(agent: str, channel: str, account: str, peer: str, scope: str) -> SessionKey:
    """A direct talk under a `dmScope`; without a peer it is the main session."""
    peer = peer.strip()
    if not peer:
        return main_key(agent)
    match scope:
        case "per-peer":
            return _key(agent, "direct", peer)
        case "per-channel-peer":
            return _key(agent, channel, "direct", peer)
        case "per-account-channel-peer":
            return _key(agent, channel, account, "direct", peer)
        case _:
            return main_key(agent)


def group_key(agent: str, channel: str, kind: str, group: str) -> SessionKey:
    """A group (`kind` group) or a room (`kind` channel)."""
    return _key(agent, channel, kind, group.strip() or UNKNOWN)


def thread_key(base: SessionKey, thread: str) -> SessionKey:
    """A thread inside a conversation; without an id it is the conversation itself."""
    thread = thread.strip()
    return canonical(f"{base}:thread:{thread}", base.agent_id) if thread else base


def topic_key(base: SessionKey, topic: str) -> SessionKey:
    """A topic of a Telegram forum."""
    topic = topic.strip()
    return canonical(f"{base}:topic:{topic}", base.agent_id) if topic else base


def cron_key(agent: str, job: str, run: str = "") -> SessionKey:
    """An isolated job; with `run` (a session id) the hidden session of one run."""
    return _key(agent, "cron", job, *(("run", run) if run else ()))


def hook_key(agent: str, uuid: str) -> SessionKey:
    return _key(agent, "hook", uuid)


def subagent_key(parent: SessionKey, uuid: str) -> SessionKey:
    """A sub-agent of `parent`; inside a sub-agent's session the key nests."""
    inside = (parent.rest,) if parent.subagent_depth else ()
    return _key(parent.agent_id, *inside, "subagent", uuid)


def acp_key(agent: str, uuid: str) -> SessionKey:
    return _key(agent, "acp", uuid)


def http_key(agent: str, api: str, uuid: str, user: str = "") -> SessionKey:
    """A call of an HTTP interface (`api` openai or openresponses), by its user if it names one."""
    return _key(agent, f"{api}-user", user) if user else _key(agent, api, uuid)


def node_key(agent: str, node: str) -> SessionKey:
    return _key(agent, f"node-{node}")


def _key(agent: str, *parts: str) -> SessionKey:
    return canonical(f"agent:{agent}:{':'.join(parts)}", agent)
