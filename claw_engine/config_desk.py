"""The configuration for clients: shown with secrets hidden, changed with secrets put back.

As OpenClaw 2026.2.26 has it (gateway digest §1.11, §2.1); the file keeps its comments.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from claw_engine.config.load import BaseMoved, ConfigStore, Refused, Reloaded
from claw_engine.config.parse import Document, SyntaxProblem, parse
from claw_engine.config.problems import Problem
from claw_engine.config.read import Reading
from claw_engine.config.redact import Redactor
from claw_engine.config.settings import Settings
from claw_engine.errors import InvalidRequest


class ConfigDesk:
    """`settle` is told what came of a write; its flag says whether it may cause a restart."""

    def __init__(
        self, store: ConfigStore, settle: Callable[[Reloaded, bool], None] | None = None
    ) -> None:
        self._store = store
        self._settle = settle

    @property
    def path(self) -> Path:
        return self._store.path

    async def snapshot(self) -> Mapping[str, object]:
        """The `config.get` payload: the file as it is now, in force or not."""
        reading = await self._store.look()
        # A large file takes longer than the loop may wait.
        return await asyncio.to_thread(self._shown, reading, self._store.loaded)

    def _shown(self, reading: Reading, in_force: Settings | None) -> Mapping[str, object]:
        from claw_engine.config.veil import veiled  # only for whoever asks

        settings = reading.settings or in_force or Settings()
        redactor = _redactor(settings)
        shown = _sayable(redactor.config(settings.raw))
        problems = reading.problems
        raw: str | None = ""
        if reading.present:
            try:
                raw = veiled(reading.text, redactor)
            except SyntaxProblem:
                raw = redactor.text(reading.text)
        return {
            "path": str(self.path),
            "exists": reading.present,
            "raw": raw if reading.present else None,
            "valid": reading.settings is not None,
            "config": shown,
            "parsed": shown,
            "hash": reading.raw_hash,
            "generation": in_force.generation if in_force is not None else 0,
            "issues": [issue(p, redactor) for p in problems if p.fatal],
            "warnings": [issue(p, redactor) for p in problems if not p.fatal],
            "legacyIssues": [],
        }

    async def replace(
        self, raw: str, base_hash: str | None, *, restarts: bool
    ) -> Mapping[str, object]:
        """The whole file anew; its configuration, redacted. Raises InvalidRequest, ConfigError."""
        from claw_engine.config.veil import unveiled, with_comments

        def make(now: Reading) -> str:
            settings = now.settings or self._store.settings
            return with_comments(unveiled(raw, settings.raw), now.text, _redactor(settings))

        return await self._write(make, base_hash, restarts)

    async def patch(
        self, raw: str, base_hash: str | None, *, restarts: bool
    ) -> Mapping[str, object]:
        """A patch merged into the file; the whole, redacted. Raises as `replace`."""
        from claw_engine.config.merge import merged, rewritten
        from claw_engine.config.veil import unveiled

        def make(now: Reading) -> str:
            change = parse(Document("patch", raw))
            old = parse(Document(str(self._store.path), now.text))
            new = merged(old, change)
            assert isinstance(new, dict)  # an object merged into an object
            text = rewritten(now.text or "{}\n", old, new)
            return unveiled(text, (now.settings or self._store.settings).raw)

        return await self._write(make, base_hash, restarts)

    async def _write(
        self, make: Callable[[Reading], str], base_hash: str | None, restarts: bool
    ) -> Mapping[str, object]:
        from claw_engine.config.edit import EditError
        from claw_engine.config.redact import MarkerError
        from claw_engine.config.spans import ScanError

        redactor = _redactor(self._store.settings)
        try:
            outcome = await self._store.write(make, base_hash)
        except BaseMoved as error:
            what = "changed since last load" if error.given else "base hash required"
            raise InvalidRequest(
                f"config {what}; re-run config.get and retry", hint="Send its hash as baseHash."
            ) from error
        except Refused as error:
            raise _invalid([p for p in error.problems if p.fatal], redactor) from error
        except SyntaxProblem as error:
            raise _invalid([error.problem], redactor) from error
        except (MarkerError, EditError, ScanError) as error:
            raise InvalidRequest(
                f"invalid config: {error}",
                details={"issues": [{"path": "", "message": str(error)}]},
            ) from error
        if self._settle is not None:
            self._settle(outcome, restarts)
        now = await self._store.look()
        settings = now.settings or outcome.loaded.settings
        shown = await asyncio.to_thread(lambda: _sayable(_redactor(settings).config(settings.raw)))
        assert isinstance(shown, dict)  # an object in, an object out
        return shown


def issue(problem: Problem, redactor: Redactor) -> dict[str, object]:
    """One finding as the wire has it."""
    path = ".".join(str(step) for step in problem.path)
    return {"path": path, "message": redactor.text(problem.sentence())}


def _invalid(problems: Sequence[Problem], redactor: Redactor) -> InvalidRequest:
    issues = [issue(problem, redactor) for problem in problems]
    hint = str(issues[0]["message"]) if issues else ""
    return InvalidRequest("invalid config", hint=hint, details={"issues": issues})


def _redactor(settings: Settings) -> Redactor:
    return Redactor.from_settings(settings, settings.logging.redact_patterns)


def _sayable(value: object) -> object:
    """The same without numbers that JSON cannot say: JSON5's `Infinity` is shown as a word."""
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case Mapping():
            return {key: _sayable(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_sayable(inner) for inner in value]
    return value
