"""One connection as the rest of the gateway sees it: who it is, what it wants, its outbox.

It must not know whether a socket or the console's own process is behind it.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from claw_engine.gateway.outbox import Outbox
from claw_engine.gateway.wire_events import Audience, WireEvent
from claw_engine.protocol.names import Scope, allows

CAP_TOOLS = "tool-events"
CAP_TRACE = "trace"
CAP_SCOPED = "session-scoped-events"

_SHOWS_APPROVALS = frozenset(
    {"openclaw-control-ui", "openclaw-macos", "openclaw-ios", "openclaw-android"}
)
"""Clients that need no capability to get approval requests under protocol 4."""


class Identity(Struct, frozen=True):
    """What a client said of itself and what it was granted.

    A `confined` client descends from one of our own runs: it may ask for `health`, nothing else.
    `protocol` was negotiated; `scope_names` are the scopes in the order they were asked for;
    `method` is how it proved itself (door, token, password, device-token, none, trusted-proxy).
    `remote_ip` is empty at the door and in this process.
    """

    client_id: str
    mode: str
    version: str = ""
    scopes: frozenset[Scope] = frozenset()
    caps: frozenset[str] = frozenset()
    confined: bool = False
    protocol: int = 3
    role: str = "operator"
    scope_names: tuple[str, ...] = ()
    method: str = "door"
    device_id: str = ""
    device_token: str = ""
    token_issued_ms: int = 0
    remote_ip: str = ""
    display_name: str = ""
    platform: str = ""
    device_family: str = ""
    model_identifier: str = ""
    instance_id: str = ""


class Peer:
    """A connected client."""

    def __init__(self, conn_id: str, identity: Identity, outbox: Outbox) -> None:
        self.conn_id = conn_id
        self.identity = identity
        self.outbox = outbox
        self._changed: Callable[[], None] = lambda: None
        self._trace_all = False
        self._trace_sessions: set[str] = set()
        self._runs: set[str] = set()
        self._all_sessions = False
        self._sessions: set[str] = set()
        self._scoped = CAP_SCOPED in identity.caps
        self._four = identity.protocol >= 4
        self._always = _always(identity)

    def watch(self, changed: Callable[[], None]) -> None:
        """Call `changed` whenever what it follows changes."""
        self._changed = changed

    @property
    def follows_trace(self) -> bool:
        """Whether it follows the trace of anything."""
        return self._trace_all or bool(self._trace_sessions)

    def follow_trace(self, session_key: str | None) -> None:
        """Follow the trace of one session, or of all (None)."""
        if session_key is None:
            self._trace_all = True
        else:
            self._trace_sessions.add(session_key)
        self._changed()

    def unfollow_trace(self) -> None:
        self._trace_all = False
        self._trace_sessions.clear()
        self._changed()

    @property
    def follows_sessions(self) -> bool:
        """Whether it follows what happens to any session."""
        return self._all_sessions or bool(self._sessions)

    def follow_sessions(self, *, on: bool) -> None:
        """Follow every session's changes and messages, or no longer."""
        self._all_sessions = on
        self._changed()

    def follow_session(self, session_key: str, *, on: bool) -> None:
        """Follow the messages of one session, or no longer."""
        if on:
            self._sessions.add(session_key)
        else:
            self._sessions.discard(session_key)
        self._changed()

    def started(self, run_id: str) -> None:
        """The client started this run: its tool events go there too."""
        self._runs.add(run_id)

    def _elsewhere(self, event: WireEvent) -> bool:
        """Whether it tells of a run in a session that the client does not follow."""
        key = event.session_key
        return event.name in ("agent", "chat") and bool(key) and key not in self._sessions

    def forget_run(self, run_id: str) -> None:
        self._runs.discard(run_id)

    def wants(self, event: WireEvent) -> bool:
        if event.only4 and not self._four:
            return False
        if self._scoped and self._elsewhere(event):
            return False
        if event.audience in self._always:
            return True
        if self.identity.confined:
            return False
        match event.audience:
            case Audience.TRACE:
                return self._trace_all or event.session_key in self._trace_sessions
            case Audience.SESSIONS:
                return self._all_sessions and CAP_TRACE not in self.identity.caps
            case Audience.MESSAGES:
                return self._all_sessions or event.session_key in self._sessions
            case Audience.RUN_TOOLS:
                return CAP_TOOLS in self.identity.caps and event.run_id in self._runs
            case _:
                return False


def _always(who: Identity) -> tuple[Audience, ...]:
    """The audiences that a client belongs to by what it is. Asked for each event and client, so no
    set: to hash a member of an enumeration takes longer than to look at five."""
    if who.confined:
        return ()
    reads, traces = allows(who.scopes, Scope.READ), CAP_TRACE in who.caps
    belongs = {
        Audience.ALL: reads,
        Audience.APPROVERS: approves(who),
        Audience.PAIRERS: allows(who.scopes, Scope.PAIRING),
        Audience.KEYS: reads and (who.protocol < 4 or traces),
        Audience.TOKEN_STREAM: reads and not traces,
    }
    return tuple(audience for audience, yes in belongs.items() if yes)


def approves(who: Identity) -> bool:
    """Whether a client is a route for approvals of commands (protocol digest §4).

    Under protocol 3 the scope is enough; under 4 the client must also say that it shows them.
    """
    if who.confined or not allows(who.scopes, Scope.APPROVALS):
        return False
    if who.protocol < 4:
        return True
    return who.client_id in _SHOWS_APPROVALS or bool(who.caps & {"approvals", "exec-approvals"})
