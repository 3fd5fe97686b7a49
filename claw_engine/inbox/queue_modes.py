"""What happens to a message that arrives while its session is busy: pure decisions, no clock.

Modes, settings and their order of precedence, the bounded queue of one session and what it says to
the model. Knows no run, no disk and no task. Rules: gateway digest §4.2-4.3.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Generic, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

T = TypeVar("T")

SUMMARY_CHARS = 160
"""Length of the line that stays of a summarised message."""
COLLECT_TITLE = "[Queued messages while agent was busy]"


class QueueMode(StrEnum):
    """What a message does that arrives during a run."""

    COLLECT = "collect"
    FOLLOWUP = "followup"
    STEER = "steer"
    STEER_BACKLOG = "steer-backlog"
    INTERRUPT = "interrupt"


class Drop(StrEnum):
    """What goes when a queue is full."""

    OLD = "old"
    NEW = "new"
    SUMMARIZE = "summarize"


_ALIASES: Mapping[str, QueueMode] = {
    **{mode.value: mode for mode in QueueMode},
    "coalesce": QueueMode.COLLECT,
    "follow-up": QueueMode.FOLLOWUP,
    "follow-ups": QueueMode.FOLLOWUP,
    "followups": QueueMode.FOLLOWUP,
    "steering": QueueMode.STEER,
    "queue": QueueMode.STEER,
    "queued": QueueMode.STEER,
    "steer+backlog": QueueMode.STEER_BACKLOG,
    "steer_backlog": QueueMode.STEER_BACKLOG,
    "interrupts": QueueMode.INTERRUPT,
    "abort": QueueMode.INTERRUPT,
}


def mode_of(word: str) -> QueueMode | None:
    """The mode a word names, aliases included."""
    return _ALIASES.get(word.strip().lower())


def drop_of(word: str) -> Drop | None:
    """The drop policy a word names."""
    word = word.strip().lower()
    if word == "summarise":
        return Drop.SUMMARIZE
    return next((drop for drop in Drop if drop.value == word), None)


class QueueRules(Struct, frozen=True):
    """In force for one message. `debounce_ms` in ms, `cap` in messages."""

    mode: QueueMode = QueueMode.COLLECT
    debounce_ms: int = 1000
    cap: int = 20
    drop: Drop = Drop.SUMMARIZE


class QueueOverride(Struct, frozen=True):
    """Settings that somebody gave for a session or a message; None leaves what is below."""

    mode: QueueMode | None = None
    debounce_ms: int | None = None
    cap: int | None = None
    drop: Drop | None = None

    def over(self, rules: QueueRules) -> QueueRules:
        """`rules` with what is given here."""
        given = {
            name: value
            for name in ("mode", "debounce_ms", "cap", "drop")
            if (value := getattr(self, name)) is not None
        }
        return replace(rules, **given) if given else rules

    @property
    def empty(self) -> bool:
        return self == QueueOverride()


class Action(StrEnum):
    """What to do with a message that is on disk."""

    RUN = "run"
    ENQUEUE = "enqueue"
    STEER = "steer"
    STEER_AND_ENQUEUE = "steer_and_enqueue"
    INTERRUPT = "interrupt"


def decide(mode: QueueMode, *, busy: bool, steerable: bool) -> Action:
    """`busy`: a run or queued messages go first; `steerable`: a run takes words right now."""
    if not busy:
        return Action.RUN
    match mode:
        case QueueMode.INTERRUPT:
            return Action.INTERRUPT
        case QueueMode.STEER if steerable:
            return Action.STEER
        case QueueMode.STEER_BACKLOG if steerable:
            return Action.STEER_AND_ENQUEUE
        case _:
            return Action.ENQUEUE


class Batch(Struct, Generic[T], frozen=True):
    """What one run answers: whole messages, and those of which only a line is left."""

    items: tuple[T, ...]
    summarized: tuple[T, ...] = ()
    lost: int = 0
    """How many went before those without leaving a line."""

    @property
    def members(self) -> tuple[T, ...]:
        """Everything that this run answers, oldest first."""
        return (*self.summarized, *self.items)


class Pushed(Struct, Generic[T], frozen=True):
    """What a push did to the queue: `dropped` get no answer, `summarized` only a line of one."""

    dropped: tuple[T, ...] = ()
    summarized: tuple[T, ...] = ()


class _Item(Struct, Generic[T]):
    value: T
    route: Hashable
    text: str


class FollowUps(Struct, Generic[T]):
    """The waiting messages of one session. The rules of the newest message hold for all."""

    rules: QueueRules = field(default_factory=QueueRules)
    last_ms: int = 0
    """When the newest one came; wall ms."""
    _items: list[_Item[T]] = field(default_factory=list)
    _lines: list[_Item[T]] = field(default_factory=list)
    _lost: int = 0

    def __bool__(self) -> bool:
        return bool(self._items or self._lines)

    @property
    def values(self) -> tuple[T, ...]:
        """Everything that waits, in the order of its turn."""
        return tuple(item.value for item in (*self._lines, *self._items))

    @property
    def full(self) -> bool:
        return len(self._items) >= self.rules.cap

    def refuses(self, rules: QueueRules) -> bool:
        """Whether a newcomer under these rules must be sent away."""
        return rules.drop is Drop.NEW and len(self._items) >= rules.cap

    def push(
        self, value: T, text: str, route: Hashable, rules: QueueRules, now_ms: int,
        *, force: bool = False,
    ) -> Pushed[T]:  # fmt: skip
        """Append; what the cap pushes out is returned. `force` takes it whatever the cap says."""
        self.rules, self.last_ms = rules, now_ms
        if not force and self.refuses(rules):
            return Pushed(dropped=(value,))
        self._items.append(_Item(value, route, text))
        out: list[T] = []
        shortened: list[T] = []
        while not force and len(self._items) > rules.cap:
            oldest = self._items.pop(0)
            if rules.drop is Drop.SUMMARIZE:
                self._lines.append(oldest)
                shortened.append(oldest.value)
            else:
                out.append(oldest.value)
        while len(self._lines) > rules.cap:
            out.append(self._lines.pop(0).value)
            self._lost += 1
        return Pushed(tuple(out), tuple(shortened))

    def remove(self, value: T) -> bool:
        """Take one out; False if it is not here."""
        for items in (self._items, self._lines):
            for item in items:
                if item.value is value:
                    items.remove(item)
                    return True
        return False

    def move(self, value: T, position: int) -> bool:
        """Give a whole message another place (0 = next); False if it is not among them."""
        found = next((item for item in self._items if item.value is value), None)
        if found is None:
            return False
        self._items.remove(found)
        self._items.insert(max(0, min(position, len(self._items))), found)
        return True

    def due_ms(self, now_ms: int) -> int:
        """How long to wait until the talk has been quiet for the debounce time; ms."""
        return max(0, self.last_ms + self.rules.debounce_ms - now_ms)

    def take(self) -> Batch[T] | None:
        """What the next run answers; None when nothing waits.

        Collected: everything in one run, unless it came by different routes. Else one by one; then
        what is left of dropped messages is a turn of its own.
        """
        if not self:
            return None
        lines = tuple(item.value for item in self._lines)
        collect = self.rules.mode is QueueMode.COLLECT
        routes = {item.route for item in (*self._lines, *self._items)}
        if collect and len(routes) == 1:
            taken, self._items = self._items, []
        elif lines:
            taken = []
        else:
            taken = [self._items.pop(0)]
        batch = Batch(tuple(item.value for item in taken), lines, self._lost if lines else 0)
        self._lines, self._lost = [], 0
        return batch

    def put_back(self, values: Iterable[tuple[T, str, Hashable]]) -> None:
        """What could not be answered after all goes first again, in the given order."""
        self._items[:0] = [_Item(value, route, text) for value, text, route in values]


def overflow_text(texts: Sequence[str], lost: int = 0) -> str:
    """What the model reads of messages that the cap pushed out; empty if there are none."""
    if not texts:
        return ""
    lines = "\n".join(f"- {one_line(text)}" for text in texts)
    count = len(texts) + lost
    return f"[Queue overflow] Dropped {count} message(s) due to cap.\nSummary:\n{lines}"


def one_line(text: str) -> str:
    """What stays of a summarised message."""
    line = " ".join(text.split())
    return line if len(line) <= SUMMARY_CHARS else line[: SUMMARY_CHARS - 1].rstrip() + "…"


def batch_text(texts: Sequence[str], overflow: str = "") -> str:
    """What the model reads for a batch. A lone message stays as it was written."""
    if not texts:
        return overflow
    if len(texts) == 1 and not overflow:
        return texts[0]
    blocks = [COLLECT_TITLE, *([overflow] if overflow else [])]
    blocks += [f"---\nQueued #{number}\n{text}" for number, text in enumerate(texts, start=1)]
    return "\n\n".join(blocks)
