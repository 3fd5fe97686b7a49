"""Which agent and which session a message belongs to. Pure; knows no channel and no run.

Key forms and the tiers of bindings: OpenClaw 2026.2.26 (gateway digest §3.1, §3.2). `broadcast`
(one message to several agents) is not done here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from claw_engine.paths import StateDir
from claw_engine.sessions.keyforms import direct_key, group_key, main_key
from claw_engine.sessions.keys import (
    MAIN,
    SessionKey,
    canonical,
    normalise_account_id,
    normalise_agent_id,
)

if TYPE_CHECKING:
    from claw_engine.config.sections.bindings import BindingEntry
    from claw_engine.config.settings import Settings

ANY = "*"
"""An account pattern that every account meets."""


class MatchedBy(StrEnum):
    """Why this agent was chosen; the order is the order of the tiers."""

    PEER = "binding.peer"
    PEER_PARENT = "binding.peer.parent"
    GUILD_ROLES = "binding.guild+roles"
    GUILD = "binding.guild"
    TEAM = "binding.team"
    ACCOUNT = "binding.account"
    CHANNEL = "binding.channel"
    DEFAULT = "default"


class Peer(Struct, frozen=True):
    """A conversation partner: `kind` is direct, group or channel (`dm` = direct)."""

    kind: str
    id: str

    @property
    def normal(self) -> Peer:
        kind = self.kind.strip().lower()
        return Peer("direct" if kind == "dm" else kind, self.id.strip())


class Origin(Struct, frozen=True):
    """Where a message came from, as the channel tells it."""

    channel: str
    account_id: str = ""
    peer: Peer | None = None
    parent_peer: Peer | None = None
    guild_id: str = ""
    team_id: str = ""
    role_ids: Sequence[str] = ()


class Binding(Struct, frozen=True):
    """One rule; empty fields are not stated. `account` "" = the default account, `*` = any.

    `peer_broken` means that a peer was stated but not in full: such a rule never matches.
    """

    agent_id: str
    channel: str
    account: str = ""
    peer: Peer | None = None
    peer_broken: bool = False
    guild_id: str = ""
    team_id: str = ""
    roles: frozenset[str] = frozenset()


class Route(Struct, frozen=True):
    """The answer: whose session it is and why."""

    agent_id: str
    channel: str
    account_id: str
    session_key: SessionKey
    main_session_key: SessionKey
    matched_by: MatchedBy


class Routes(Struct, frozen=True):
    """Everything routing depends on, taken from one generation of the settings."""

    agents: tuple[str, ...] = ()
    default_agent: str = MAIN
    bindings: tuple[Binding, ...] = ()
    dm_scope: str = MAIN
    identity_links: Mapping[str, Sequence[str]] = field(default_factory=dict)
    global_scope: bool = False

    def request_key(self, key: str) -> SessionKey:
        """The session a client means by `key`. Raises InvalidSessionKey."""
        found = canonical(key, self.default_agent)
        if self.global_scope and found.is_main:
            return main_key(found.agent_id, global_scope=True)
        return found

    def route(self, origin: Origin) -> Route:
        """Where a message goes. Raises InvalidSessionKey for ids that no key can carry."""
        channel = origin.channel.strip().lower()
        account = normalise_account_id(origin.account_id)
        wanted, matched_by = self._match(origin, channel, account)
        agent = self._known(wanted)
        main = main_key(agent, global_scope=self.global_scope)
        return Route(agent, channel, account, self._key(agent, channel, account, origin.peer),
                     main, matched_by)  # fmt: skip

    def _known(self, agent_id: str) -> str:
        agent = normalise_agent_id(agent_id)
        return agent if not self.agents or agent in self.agents else self.default_agent

    def _key(self, agent: str, channel: str, account: str, peer: Peer | None) -> SessionKey:
        if self.global_scope:
            return main_key(agent, global_scope=True)
        if peer is None:
            return main_key(agent)
        peer = peer.normal
        if peer.kind != "direct":
            return group_key(agent, channel, peer.kind, peer.id)
        who = linked(self.identity_links, channel, peer.id) if self.dm_scope != MAIN else peer.id
        return direct_key(agent, channel, account, who, self.dm_scope)

    def _match(self, origin: Origin, channel: str, account: str) -> tuple[str, MatchedBy]:
        candidates = [b for b in self.bindings if _reaches(b, channel, account)]
        peer = origin.peer.normal if origin.peer is not None else None
        parent = origin.parent_peer.normal if origin.parent_peer is not None else None
        for tier in MatchedBy:
            scope = parent if tier is MatchedBy.PEER_PARENT else peer
            if tier is MatchedBy.PEER_PARENT and (parent is None or not parent.id):
                continue
            for binding in candidates:
                if _in_tier(binding, tier) and _holds(binding, origin, scope):
                    return binding.agent_id, tier
        return self.default_agent, MatchedBy.DEFAULT


def linked(links: Mapping[str, Sequence[str]], channel: str, peer_id: str) -> str:
    """The canonical name of a peer, or its id: the first name that lists it wins (any case)."""
    wanted = {peer_id.strip().lower(), f"{channel}:{peer_id}".strip().lower()}
    for name, ids in links.items():
        if name.strip() and any(one.strip().lower() in wanted for one in ids if one.strip()):
            return name.strip()
    return peer_id


def routes_of(settings: Settings) -> Routes:
    """The routing of one configuration."""
    listed = [(normalise_agent_id(entry.id), entry.default) for entry in settings.agents.list]
    chosen = next((agent for agent, default in listed if default), None)
    session = settings.session
    return Routes(
        agents=tuple(dict.fromkeys(agent for agent, _ in listed)),
        default_agent=chosen or (listed[0][0] if listed else MAIN),
        bindings=tuple(map(_binding, settings.bindings.items)),
        dm_scope=session.dm_scope,
        identity_links=session.identity_links,
        global_scope=session.scope == "global",
    )


def workspace_of(settings: Settings, state_dir: StateDir, agent_id: str) -> Path:
    """The working folder of an agent: its own, else for the default agent the one in
    `agents.defaults`, else a folder of its own inside the state directory."""
    agent = normalise_agent_id(agent_id)
    own = next((e for e in settings.agents.list if normalise_agent_id(e.id) == agent), None)
    folder = own.workspace if own is not None else None
    if not folder and agent == routes_of(settings).default_agent:
        folder = settings.agents.defaults.workspace or str(state_dir.workspace(MAIN))
    path = Path(folder).expanduser() if folder else state_dir.workspace(agent)
    return path if path.is_absolute() else state_dir.root / path


def _binding(entry: BindingEntry) -> Binding:
    match = entry.match
    stated = match.peer
    whole = stated is not None and stated.kind is not None and bool(stated.id.strip())
    account = (match.account_id or "").strip()
    return Binding(
        agent_id=entry.agent_id,
        channel=match.channel.strip().lower(),
        account=account,
        peer=Peer(stated.kind or "", stated.id).normal if whole and stated is not None else None,
        peer_broken=stated is not None and not whole,
        guild_id=(match.guild_id or "").strip(),
        team_id=(match.team_id or "").strip(),
        roles=frozenset(match.roles),
    )


def _reaches(binding: Binding, channel: str, account: str) -> bool:
    if binding.channel != channel or binding.peer_broken:
        return False
    return binding.account == ANY or normalise_account_id(binding.account) == account


def _in_tier(binding: Binding, tier: MatchedBy) -> bool:
    match tier:
        case MatchedBy.PEER | MatchedBy.PEER_PARENT:
            return binding.peer is not None
        case MatchedBy.GUILD_ROLES:
            return bool(binding.guild_id and binding.roles)
        case MatchedBy.GUILD:
            return bool(binding.guild_id) and not binding.roles
        case MatchedBy.TEAM:
            return bool(binding.team_id)
        case MatchedBy.ACCOUNT:
            return binding.account != ANY
        case MatchedBy.CHANNEL:
            return binding.account == ANY
        case MatchedBy.DEFAULT:
            return False


def _holds(binding: Binding, origin: Origin, peer: Peer | None) -> bool:
    """Whether every constraint that the binding states is met."""
    return (
        (binding.peer is None or binding.peer == peer)
        and (not binding.guild_id or binding.guild_id == origin.guild_id.strip())
        and (not binding.team_id or binding.team_id == origin.team_id.strip())
        and (not binding.roles or not binding.roles.isdisjoint(origin.role_ids))
    )
