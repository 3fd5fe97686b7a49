"""The approval queue as the console sees it: pending requests in order of arrival, folded into
cards, a short history, and what the operator has viewed and marked. Decides nothing by itself.

Nothing here that is asked for each frame costs more with a longer queue."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from msgspec import Struct, field
from msgspec.structs import replace

from claw_tui.store.approval import Approval, approval_from, ran_from
from claw_tui.store.wire import EMPTY, Json, obj, text

HISTORY = 200
"""Decided requests kept for view 8."""


class Card(Struct):
    """Requests that look the same, as one row and one card. `joined` counts all that ever came
    in; a sealed card takes no more: what is decided is what was counted."""

    id: str
    picture: Approval
    members: dict[str, Approval] = field(default_factory=dict)
    joined: int = 0
    sealed: bool = False

    @property
    def head(self) -> Approval:
        """The member that waits longest; the bare picture once all have left."""
        return next(iter(self.members.values()), self.picture)

    @property
    def count(self) -> int:
        return len(self.members)

    @property
    def ids(self) -> list[str]:
        return list(self.members)

    @property
    def subject(self) -> str:
        """What the arming rule knows this card by: another one after a request has joined."""
        return self.id if self.joined == 1 else f"{self.id}\N{MULTIPLICATION SIGN}{self.joined}"


class Queue(Struct):
    pending: dict[str, Approval] = field(default_factory=dict)
    cards: dict[str, Card] = field(default_factory=dict)
    """Cards by the id of their first request, the oldest first."""
    history: list[Approval] = field(default_factory=list)
    viewed: set[str] = field(default_factory=set)
    marked: set[str] = field(default_factory=set)
    rung: set[str] = field(default_factory=set)
    mine: set[str] = field(default_factory=set)
    """Requests this console has answered."""
    grouped: bool = False
    """Whether the list goes by agent and program instead of by age."""
    armed: Callable[[str], bool] = lambda subject: False
    """Whether a key may decide about this subject at this moment."""
    _card_of: dict[str, str] = field(default_factory=dict)
    _open: dict[Approval, str] = field(default_factory=dict)
    _due: list[tuple[int, str]] = field(default_factory=list)
    _listed: dict[str, list[Card]] = field(default_factory=dict)
    _places: dict[str, int] = field(default_factory=dict)
    _placed: str | None = None

    # ── what the engine tells ───────────────────────────────────────────────────────────────

    def requested(self, raw: Json) -> bool:
        """Take a new request; True when the bell has not rung for it yet."""
        approval = approval_from(raw)
        if not approval.id:
            return False
        known = self._card_of.get(approval.id)
        self.pending[approval.id] = approval
        if known is not None:
            self.cards[known].members[approval.id] = approval
        else:
            self._put(approval)
        if approval.expires_ms:
            heapq.heappush(self._due, (approval.expires_ms, approval.id))
        first = approval.id not in self.rung
        self.rung.add(approval.id)
        return first

    def resolved(self, raw: Json) -> Approval | None:
        """A decision or an expiry: the request leaves the queue. Returns what left it."""
        record = obj(raw.get("record")) or raw
        known = self._take(text(record, "id"))
        if known is None and not record.get("request"):
            return None
        done = approval_from(record if record.get("request") else _joined(known, record))
        if any(old.id == done.id for old in self.history[:HISTORY]):
            return known  # the answer to our own call and its event say the same
        self.history.insert(0, done)
        del self.history[HISTORY:]
        return known

    def ran(self, raw: Json) -> None:
        """What a decided request did is known now."""
        for index, old in enumerate(self.history):
            if old.id == text(raw, "id"):
                self.history[index] = replace(old, ran=ran_from(obj(raw.get("ran"))))
                return

    def replace(self, records: list[Json]) -> bool:
        """The whole list, after a (re)connection; True when something new is in it."""
        fresh = False
        for name in list(self.pending):
            self._take(name, forget=False)
        for raw in sorted(records, key=_age):
            if text(raw, "status", "pending") == "pending":
                fresh = self.requested(raw) or fresh
        self.marked &= set(self.cards)
        self.viewed &= set(self.cards)
        return fresh

    def replace_history(self, records: list[Json]) -> None:
        done = [approval_from(raw) for raw in records]
        done = [a for a in done if a.status != "pending"]
        self.history = sorted(done, key=lambda a: a.decided_ms or a.expires_ms, reverse=True)
        del self.history[HISTORY:]

    # ── reading ─────────────────────────────────────────────────────────────────────────────

    def ordered(self, needle: str = "") -> list[Card]:
        """Cards, oldest first (or by group), optionally only those whose command, session or
        agent has `needle`. The list is shared: read it only."""
        found = self._listed.get(needle)
        if found is None:
            low = needle.lower()
            found = [c for c in self.cards.values() if not low or low in _words(c.picture)]
            if self.grouped:
                found.sort(key=_group)
            self._listed = {"": self._listed[""]} if "" in self._listed else {}
            self._listed[needle] = found
            self._placed = None
        return found

    def place(self, card_id: str, needle: str = "") -> int | None:
        """Where a card stands in `ordered(needle)`; None when it is not there."""
        rows = self.ordered(needle)
        if self._placed != needle:
            self._places = {card.id: place for place, card in enumerate(rows)}
            self._placed = needle
        return self._places.get(card_id)

    def first(self) -> Card | None:
        """The card that waits longest."""
        return next(iter(self.cards.values()), None)

    def shortest_ms(self, now_ms: int) -> int | None:
        """How long the request that expires next still waits."""
        self._tidy()
        return max(0, self._due[0][0] - now_ms) if self._due else None

    def overdue(self, now_ms: int) -> list[Approval]:
        """Requests whose time is over."""
        out = []
        self._tidy()
        while self._due and self._due[0][0] <= now_ms:
            out.append(self.pending[heapq.heappop(self._due)[1]])
            self._tidy()
        return out

    def group(self, on: bool) -> None:
        """List by agent and program, or by age."""
        self.grouped = on
        self._listed.clear()

    def mark(self, card_id: str) -> str:
        """Toggle a mark; returns why not, or nothing."""
        card = self.cards.get(card_id)
        if card is None:
            return "it is no longer waiting"
        if card_id in self.marked:
            self.marked.discard(card_id)
            return ""
        if card.picture.dangerous:
            return "this one names a risk: it is decided alone"
        if card_id not in self.viewed:
            return "look at the card first"
        self.marked.add(card_id)
        return ""

    # ── inside ──────────────────────────────────────────────────────────────────────────────

    def _put(self, approval: Approval) -> None:
        picture = approval.picture()
        card = self.cards.get(self._open.get(picture, ""))
        if card is not None and not card.sealed and self.armed(card.subject):
            card.sealed = True  # counted already: the next key decides exactly these
        if card is None or card.sealed:
            card = self.cards[approval.id] = Card(approval.id, picture)
            self._open[picture] = approval.id
            self._listed.clear()
        card.members[approval.id] = approval
        card.joined += 1
        self._card_of[approval.id] = card.id

    def _take(self, approval_id: str, *, forget: bool = True) -> Approval | None:
        known = self.pending.pop(approval_id, None)
        card = self.cards.get(self._card_of.pop(approval_id, ""))
        if card is None:
            return known
        card.members.pop(approval_id, None)
        if not card.members:
            del self.cards[card.id]
            if self._open.get(card.picture) == card.id:
                del self._open[card.picture]
            if forget:
                self.marked.discard(card.id)
                self.viewed.discard(card.id)
            self._listed.clear()
        return known

    def _tidy(self) -> None:
        while self._due:
            expires, approval_id = self._due[0]
            known = self.pending.get(approval_id)
            if known is not None and known.expires_ms == expires:
                return
            heapq.heappop(self._due)


def _age(raw: Json) -> tuple[int, str]:
    created = raw.get("createdAtMs")
    return (created if isinstance(created, int) else 0, text(raw, "id"))


def _group(card: Card) -> tuple[str, str, bool]:
    """Agent, then program; what names a risk comes after the rest of its program."""
    picture = card.picture
    first = picture.segments[0] if picture.segments else None
    program = (first.resolved or first.text) if first is not None else picture.command
    return picture.agent or picture.client, program, picture.dangerous


def _words(picture: Approval) -> str:
    return f"{picture.command} {picture.session} {picture.agent}".lower()


def _joined(known: Approval | None, record: Json) -> Json:
    if known is None:
        return record
    request: dict[str, object] = {
        "kind": known.kind,
        "command": known.command,
        "cwd": known.cwd,
        "host": known.host,
        "agentId": known.agent,
        "sessionKey": known.session,
        "why": known.why,
    }
    base: dict[str, object] = {
        "createdAtMs": known.created_ms,
        "expiresAtMs": known.expires_ms,
        "status": "resolved",
    }
    return {**base, **(record or EMPTY), "request": request}
