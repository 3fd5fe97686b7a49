"""What both stories stand on: one state directory, the provider, both programs, the report."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Set
from dataclasses import dataclass
from pathlib import Path

from bench.interop import ours
from bench.interop.files import Look, chain_faults, first_added, leaf_of, look
from bench.interop.golden import Golden
from bench.interop.ours import Ours
from bench.interop.peer import Installed, RealGateway
from bench.interop.provider import Provider
from bench.interop.report import Report


@dataclass(frozen=True, slots=True)
class Stage:
    """`state` is the directory that changes hands."""

    state: Path
    work: Path
    port: int
    installed: Installed
    provider: Provider
    report: Report
    golden: Golden

    @contextlib.asynccontextmanager
    async def real(self, why: str) -> AsyncIterator[RealGateway]:
        """The real gateway on the directory."""
        async with self.installed.gateway(self.state, self.port) as gateway:
            self.report.step(f"real gateway up: {why}")
            yield gateway
        self.report.step("real gateway stopped (SIGTERM)")

    @contextlib.asynccontextmanager
    async def ours(self, why: str) -> AsyncIterator[Ours]:
        """Our engine on the directory."""
        async with ours.engine(self.state, self.work / "ours.err") as engine:
            self.report.step(f"our engine up: {why}")
            yield engine
        self.report.step("our engine stopped")

    def look(self) -> Look:
        return look(self.state)

    def untouched(self, what: str, before: Look, after: Look) -> None:
        """No transcript and no archive lost or changed a byte."""
        changed = [
            name
            for name, data in before.files.items()
            if ".jsonl" in name and not name.endswith(".lock") and after.files.get(name) != data
        ]
        self.report.check(
            f"{what}: every transcript and archive has its bytes", not changed, changed
        )

    def entries_kept(self, what: str, before: Look, after: Look) -> None:
        """Every session is in the index with the id and the fields it had."""
        lost = [
            f"{key}.{name}"
            for key, entry in before.index.items()
            for name in entry
            if name not in after.index.get(key, {})
        ]
        self.report.check(
            f"{what}: no session and no field is missing in sessions.json", not lost, lost
        )

    def only_changed(self, what: str, before: Look, after: Look, names: Set[str]) -> None:
        """No field of an index entry has another value, but those that a turn sets."""
        changed = [
            f"{key}.{name}"
            for key, entry in before.index.items()
            for name, value in entry.items()
            if name not in names and after.index.get(key, {}).get(name) != value
        ]
        self.report.check(f"{what}: no other field of sessions.json changed", not changed, changed)

    def appended(self, key: str, before: Look, after: Look, *, tree: bool = True) -> None:
        """The session's file is the old one and more, and the new lines follow its leaf."""
        old, new = before.transcript(key), after.transcript(key)
        report = self.report
        if not report.check(
            f"{key}: the old {len(old)} bytes stand, {len(new) - len(old)} are new",
            new.startswith(old) and len(new) > len(old),
            f"{len(old)} / {len(new)} bytes",
        ):
            return
        added, leaf = first_added(old, new), leaf_of(old)
        parent = added.get("parentId") if added is not None else None
        report.check(
            f"{key}: the first new entry follows the old leaf", parent == leaf, (parent, leaf)
        )
        if tree:
            faults = chain_faults(after.lines(key), leaf)
            report.check(f"{key}: one header, one tree, unique ids", not faults, faults)

    def remembered(self, key: str, asked: str, *earlier: str) -> None:
        """What reached the model with the message `asked` held the earlier words too."""
        heard = self.provider.heard(asked)
        missing = [words for words in earlier if words not in heard]
        self.report.check(f"{key}: the model was given what was said before", not missing, missing)
