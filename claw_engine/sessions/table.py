"""The entries of one agent in memory, by canonical key, with the text each was read from. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct, field

from claw_engine.sessions.entry import SessionEntry
from claw_engine.sessions.errors import InvalidSessionKey
from claw_engine.sessions.keys import canonical, is_canonical
from claw_engine.sessions.patches import Patch, difference
from claw_engine.sessions.store_file import Record


class Table(Struct):
    """`kept` are members that are not ours to understand: written back verbatim."""

    agent_id: str
    records: dict[str, Record] = field(default_factory=dict)
    kept: list[Record] = field(default_factory=list)

    def get(self, key: str) -> SessionEntry | None:
        record = self.records.get(key)
        return record.entry if record is not None else None

    def entries(self) -> Iterator[SessionEntry]:
        """All entries, in file order."""
        return (record.entry for record in self.records.values() if record.entry is not None)

    def adopt(self, record: Record) -> None:
        """Take a member of the file. Of one key in several spellings the newest wins."""
        key = record.key
        if not is_canonical(key):
            try:
                key = canonical(key, self.agent_id).text
            except InvalidSessionKey:
                key = ""
        if not key or record.entry is None:
            self.kept.append(record)
            return
        if record.key != key:
            record.entry = SessionEntry(key, record.entry.raw)
        rival = self.records.get(key)
        if rival is not None and rival.entry is not None and rival.key != record.key:
            if rival.entry.updated_at >= (record.entry or rival.entry).updated_at:
                record, rival = rival, record
            self.kept.append(rival)
        self.records[key] = record

    def put(self, entry: SessionEntry) -> Patch:
        """Replace an entry; what has changed."""
        old = self.records.get(entry.key)
        if old is not None and old.key != entry.key:  # heal a mixed-case key with its rivals
            self.kept = [r for r in self.kept if r.key.lower() != entry.key]
        was = (old.was or old) if old is not None else None
        self.records[entry.key] = Record(entry.key, entry, was=was)
        return difference(old.entry if old is not None else None, entry)

    def remove(self, key: str, at: int) -> Patch:
        """Take an entry out, and every other spelling of its key."""
        self.records.pop(key, None)
        self.kept = [r for r in self.kept if r.key.lower() != key]
        return Patch(key, at, deleted=True)

    def apply(self, patches: Mapping[str, Patch], *, newest_wins: bool = False) -> None:
        """Bring changes back in; with `newest_wins` not over an entry that was changed later."""
        for patch in patches.values():
            old = self.get(patch.key)
            if newest_wins and old is not None and old.updated_at > patch.at:
                continue
            new = patch.applied(old)
            if new is None:
                self.remove(patch.key, patch.at)
            elif old is None or new.raw != old.raw:
                self.put(new)

    def in_file_order(self) -> tuple[Record, ...]:
        return (*self.records.values(), *self.kept)


def newest_first(entries: Iterable[SessionEntry]) -> list[SessionEntry]:
    return sorted(entries, key=lambda entry: (-entry.updated_at, entry.key))
