"""A run from a file of `claw trace export`, served as a gateway would serve it: read-only, and
nothing outside the file is asked or touched."""

from __future__ import annotations

import asyncio
import difflib
import json
import math
import stat
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path

from claw_engine.client.base import ClientError
from claw_engine.errors import ClawError
from claw_engine.protocol.frames import ErrorShape, EventFrame
from claw_tui.store.store import RECORDED
from claw_tui.store.wire import Json, num, obj, objs, text

FORMAT, VERSION = "claw-trace", 1
MOST_BYTES = 500_000_000
"""A file larger than this is no run: it would fill the memory."""
LATEST_MS = 253_402_214_400_000
"""31 December 9999; a day is left for the zones east of Greenwich."""
MOMENTS = ("startedMs", "endedMs", "firstTokenMs", "ts")
AROUND = 60
"""Characters shown before and after a match."""


class NoRecording(ClawError):
    """The file is not there, cannot be read, or is no exported run."""


def load(path: Path) -> RecordedRun:
    """The run of a file. Raises NoRecording."""
    no_run = NoRecording(f"{path} is no exported run.", hint="claw trace export RUN makes one.")
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):  # reading a pipe would wait for ever
            raise no_run
        if about.st_size > MOST_BYTES:
            raise NoRecording(f"{path} is too large to be an exported run.")
        raw = json.loads(path.read_bytes(), parse_constant=_finite, parse_float=_finite)
    except OSError as error:
        raise NoRecording(f"{path} cannot be read: {error.strerror}.") from error
    except (RecursionError, OverflowError) as error:
        raise no_run from error
    except ValueError as error:
        raise NoRecording(f"{path} is no JSON.", hint="claw trace export RUN makes one.") from error
    data = obj(raw)
    if text(data, "format") != FORMAT or not text(obj(data.get("run")), "id"):
        raise no_run
    if not all(_possible(row) for row in _timed(data)):
        raise no_run
    if num(data, "version") > VERSION:
        raise NoRecording(
            f"{path} was written by a newer claw (format {num(data, 'version')}).",
            hint="Open it with that version.",
        )
    return RecordedRun(path.name, data)


def _finite(words: str) -> float:
    """Raises OverflowError: JSON itself knows no NaN, and a number that is too large is none."""
    value = float(words)
    if not math.isfinite(value):
        raise OverflowError(words)
    return value


def _timed(data: Json) -> Iterator[Json]:
    yield obj(data.get("run"))
    for name in ("calls", "tools", "events"):
        yield from objs(data.get(name))


def _possible(row: Json) -> bool:
    """Whether its times can be shown: ms since 1970, before the year 9999 ends anywhere."""
    return all(0 <= num(row, name) <= LATEST_MS for name in MOMENTS)


class RecordedRun:
    """A `Client` whose engine is a file."""

    def __init__(self, name: str, data: Json) -> None:
        self._name = name
        self.run = obj(data.get("run"))
        self._data = data
        self._calls = objs(data.get("calls"))
        self._texts = obj(data.get("texts"))
        self._methods: dict[str, Callable[[Json], Json]] = {
            "trace.list": lambda params: {"enabled": True, "runs": [self.run], "next": None},
            "trace.run": self._run,
            "trace.calls": lambda params: {"calls": self._calls[::-1], "next": None},
            "trace.call": self._call,
            "trace.part": self._part,
            "trace.search": self._search,
            "trace.compare": self._compare,
            "trace.subscribe": self._subscribe,
        }
        self._closed = asyncio.Event()

    @property
    def run_id(self) -> str:
        return text(self.run, "id")

    @property
    def session(self) -> str:
        return text(self.run, "sessionKey")

    # ── client ──────────────────────────────────────────────────────────────────────────────

    @property
    def connected(self) -> bool:
        return not self._closed.is_set()

    @property
    def hello(self) -> Mapping[str, object]:
        model = text(self.run, "model")
        return {
            "features": {"methods": sorted(self._methods), "events": []},
            "snapshot": {
                "host": self._name,
                "mode": RECORDED,
                "model": {"name": model, "isAI": not model.startswith("rehearsal/")},
                "permissionMode": "read-only",
            },
        }

    async def connect(self) -> Mapping[str, object]:
        return self.hello

    async def call(
        self,
        method: str,
        params: Mapping[str, object] | None = None,
        *,
        timeout: float | None = 30.0,
    ) -> dict[str, object]:
        answer = self._methods.get(method)
        if answer is None:
            raise _refused(f"{self._name} is a recorded run: it can only be read")
        if method in ("trace.compare", "trace.search"):  # nothing else takes time
            return dict(await asyncio.to_thread(answer, params or {}))
        return dict(answer(params or {}))

    async def events(self) -> AsyncIterator[EventFrame]:
        none: tuple[EventFrame, ...] = ()
        await self._closed.wait()
        for frame in none:
            yield frame

    async def close(self) -> None:
        self._closed.set()

    # ── methods ─────────────────────────────────────────────────────────────────────────────

    def _subscribe(self, params: Json) -> Json:
        """The run as one that has just ended: view 1 shows it like any other."""
        events = self._data.get("events")
        return {"live": [{"runId": self.run_id, "sessionKey": self.session, "events": events}]}

    def _run(self, params: Json) -> Json:
        return {name: self._data.get(name) for name in ("run", "calls", "tools", "events")}

    def _one(self, call_id: str) -> int:
        for place, call in enumerate(self._calls):
            if text(call, "id") == call_id:
                return place
        raise _refused(f"no call {call_id} is in {self._name}")

    def _call(self, params: Json) -> Json:
        if not self._calls:
            raise _refused(f"no call is in {self._name}")
        wanted = text(params, "callId")
        place = self._one(wanted) if wanted else len(self._calls) - 1
        call = self._calls[place]
        before = self._calls[place - 1] if place else None
        now, had = objs(call.get("parts")), objs(before.get("parts")) if before else []
        same = {(text(part, "id"), text(part, "hash")) for part in had}
        broke = next(
            (at for at, (a, b) in enumerate(zip(had, now, strict=False))
             if text(a, "hash") != text(b, "hash") and text(b, "hash")), None
        )  # fmt: skip
        parts = [
            {**part, "isNew": (text(part, "id"), text(part, "hash")) not in same} for part in now
        ]
        return {
            "call": call, "previous": before, "answer": call.get("answer"), "parts": parts,
            "bytes": num(call, "bodyBytes"), "tokens": num(call, "tokens"), "envelopeBytes": 0,
            "cacheBreak": broke, "growth": _growth(had, now) if before is not None else [],
        }  # fmt: skip

    def _text(self, part: Json) -> str:
        return text(self._texts, text(part, "hash"))

    def _part(self, params: Json) -> Json:
        call = self._calls[self._one(text(params, "callId"))]
        for part in objs(call.get("parts")):
            if text(part, "id") == text(params, "partId"):
                words, start = self._text(part), num(params, "offset")
                end = start + num(params, "limit", 65_536)
                return {**part, "chars": len(words), "offset": start, "text": words[start:end],
                        "redacted": False, "next": end if end < len(words) else None}  # fmt: skip
        raise _refused("no such part")

    def _search(self, params: Json) -> Json:
        wanted, limit = text(params, "text").lower(), num(params, "limit", 200)
        found: list[Json] = []
        total = 0
        parts = objs(self._calls[self._one(text(params, "callId"))].get("parts"))
        for place, part in enumerate(parts):
            words = self._text(part)
            low = words.lower()
            at = low.find(wanted) if wanted and len(low) == len(words) else -1
            while at >= 0:
                total, end = total + 1, at + len(wanted)
                if len(found) < limit:
                    found.append({
                        "partId": text(part, "id"), "index": place, "offset": at,
                        "before": words[max(0, at - AROUND) : at], "match": words[at:end],
                        "after": words[end : end + AROUND],
                    })  # fmt: skip
                at = low.find(wanted, end)
        return {"matches": found, "total": total, "parts": len(parts)}

    def _compare(self, params: Json) -> Json:
        a, b = (self._calls[self._one(text(params, name))] for name in ("a", "b"))
        old = {text(part, "id"): part for part in objs(a.get("parts"))}
        most = num(params, "lines", 2000)
        pairs: list[Json] = []
        for part in objs(b.get("parts")):
            was = old.pop(text(part, "id"), None)
            row: dict[str, object] = {"a": was, "b": part, "state": "added"}
            if was is not None:
                same = text(was, "hash") == text(part, "hash")
                row["state"] = "same" if same else "changed"
                if not same:
                    lines = _lines(self._text(was), self._text(part))
                    row["lines"], most = lines[: max(0, most)], most - len(lines)
            pairs.append(row)
        pairs += [{"a": part, "b": None, "state": "removed"} for part in old.values()]
        return {"a": a, "b": b, "parts": pairs, "truncated": most < 0,
                "tokens": num(b, "estimatedTokens") - num(a, "estimatedTokens"),
                "bytes": num(b, "bodyBytes") - num(a, "bodyBytes")}  # fmt: skip


def _lines(old: str, new: str) -> list[dict[str, str]]:
    found = list(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=3))[2:]
    return [
        {"op": "@", "text": ""} if row.startswith("@@") else {"op": row[:1], "text": row[1:]}
        for row in found
    ]


def _growth(before: list[Json], now: list[Json]) -> list[Json]:
    sums: dict[tuple[str, str, str], list[int]] = {}
    for sign, parts in ((-1, before), (1, now)):
        for part in parts:
            name = text(part, "name") or text(part, "source")
            total = sums.setdefault((text(part, "source"), text(part, "kind"), name), [0, 0])
            total[0] += sign * num(part, "tokens")
            total[1] += sign * num(part, "bytes")
    rows: list[Json] = [
        {"source": source, "kind": kind, "label": label, "tokens": tokens, "bytes": size}
        for (source, kind, label), (tokens, size) in sums.items()
        if tokens or size
    ]
    return sorted(rows, key=lambda row: -abs(num(row, "tokens")))


def _refused(words: str) -> ClientError:
    return ClientError(ErrorShape("INVALID_REQUEST", words))
