"""The tree inside a transcript: entries by id, the path from the root to the leaf. Pure.

The leaf is the last line, or an entry that was branched to. What the model sees begins at the
newest compaction on the path: its summary, the entries it kept, and everything after it.
"""

from __future__ import annotations

from claw_engine.messages import text_of
from claw_engine.sessions.entries import Entry, StoredMessage, stored


class Tree:
    """Grows at the end; the path to the leaf is kept up to date.

    A `partial` tree holds the end of a file only: its path begins where the file was cut.
    """

    def __init__(self, *, partial: bool = False) -> None:
        self._partial = partial
        self._by_id: dict[str, Entry] = {}
        self._before: dict[str, str | None] = {}  # the line before: stands in for a lost parent
        self._last: str | None = None  # the leaf
        self._line: str | None = None  # the last line
        self._path: list[Entry] | None = []
        self._context: list[StoredMessage] | None = []
        self._history: list[StoredMessage] | None = []

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, entry_id: object) -> bool:
        return entry_id in self._by_id

    @property
    def leaf_id(self) -> str | None:
        """Id of the entry that the next one follows; None while empty."""
        return self._last

    def add(self, entry: Entry) -> None:
        """Append an entry; it becomes the leaf."""
        grows = self._path is not None and entry.parent_id == self._last
        if entry.id in self._by_id:  # a repeated id: the later line counts, order as it is now
            grows = False
        self._by_id[entry.id] = entry
        self._before[entry.id] = self._line if self._line != entry.id else None
        self._last = self._line = entry.id
        if grows and self._path is not None:
            self._path.append(entry)
            self._follow(entry)
        else:
            self._path = self._context = self._history = None

    def move_leaf(self, entry_id: str | None) -> None:
        """Continue behind another entry (None: a new root). Raises KeyError."""
        if entry_id is not None and entry_id not in self._by_id:
            raise KeyError(entry_id)
        if entry_id != self._last:
            self._last = entry_id
            self._path = self._context = self._history = None

    def _follow(self, entry: Entry) -> None:
        """Keep context and history up to date in O(1) while the talk only grows."""
        message = stored(entry)
        if entry.kind == "compaction":
            self._context = None
        elif self._context is not None and message is not None:
            self._context.append(message)
        if self._history is not None and message is not None and _shown(entry):
            self._history.append(message)

    def in_file_order(self) -> tuple[Entry, ...]:
        """Every entry of the file, branches included."""
        return tuple(self._by_id.values())

    def path(self) -> list[Entry]:
        """Entries from the root to the leaf."""
        if self._path is None:
            self._path = self._walk()
        return self._path

    def _walk(self) -> list[Entry]:
        path: list[Entry] = []
        seen: set[str] = set()
        at = self._last
        while at is not None and at not in seen:
            seen.add(at)
            entry = self._by_id[at]
            path.append(entry)
            parent = entry.parent_id
            if parent is not None and parent not in self._by_id:
                parent = None if self._partial else self._before[at]
            at = parent
        return path[::-1]

    def context_reaches(self, chars: int) -> bool:
        """Whether everything that a model reads is here, or its newest `chars` characters are."""
        if self.context_is_whole():
            return True
        for message in reversed(self.context()):
            chars -= len(text_of(message.message))
            if chars <= 0:
                return True
        return False

    def context_is_whole(self) -> bool:
        """Whether everything that a model reads is here; always true unless partial."""
        path = self.path()
        if not self._partial or (path and path[0].parent_id is None):
            return True
        at = _last_compaction(path)
        kept_id = path[at].data.get("firstKeptEntryId") if at is not None else None
        return at is not None and (not kept_id or any(e.id == kept_id for e in path[:at]))

    def context(self) -> tuple[StoredMessage, ...]:
        """What a model reads: summary first when the path was compacted."""
        if self._context is None:
            self._context = _messages(_compacted(self.path()))
        return tuple(self._context)

    def history(self) -> tuple[StoredMessage, ...]:
        """What a reader sees: every message on the path, and hidden inserts left out."""
        if self._history is None:
            self._history = _messages([entry for entry in self.path() if _shown(entry)])
        return tuple(self._history)

    def shown(self) -> int:
        """How many messages `history` holds."""
        return len(self._history if self._history is not None else self.history())


def _shown(entry: Entry) -> bool:
    return entry.kind == "message" or entry.data.get("display") is True


def _messages(entries: list[Entry]) -> list[StoredMessage]:
    return [message for message in map(stored, entries) if message is not None]


def _compacted(path: list[Entry]) -> list[Entry]:
    at = _last_compaction(path)
    if at is None:
        return path
    kept_id = path[at].data.get("firstKeptEntryId")
    start = next((i for i in range(at) if path[i].id == kept_id), at)
    kept = [entry for entry in path[start:at] if entry.kind != "compaction"]
    return [path[at], *kept, *path[at + 1 :]]


def _last_compaction(path: list[Entry]) -> int | None:
    return next((i for i in range(len(path) - 1, -1, -1) if path[i].kind == "compaction"), None)
