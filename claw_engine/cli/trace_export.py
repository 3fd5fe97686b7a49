"""`claw trace export`: a run as a file that stands alone, or as OpenTelemetry spans.

Through the engine texts come redacted. With --raw the store's own files are read, with nothing
hidden and every body byte for byte: that needs the same user and no engine.
"""

from __future__ import annotations

import json
import os
import sys
import time
from argparse import Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING

from claw_engine.cli.attach import client, state_dir
from claw_engine.cli.output import note, say
from claw_engine.cli.status import items
from claw_engine.errors import ClawError

if TYPE_CHECKING:
    from claw_engine.client.sync import SyncClient

Json = dict[str, object]

FORMAT, VERSION = "claw-trace", 1
POST_S = 30.0
"""Seconds that a collector may take."""


class ExportFailed(ClawError):
    """The file or the collector did not take it."""

    exit_code = 1


def export(args: Namespace) -> int:
    """Write the run, or send it."""
    run = _raw(args) if args.raw else _redacted(args)
    if args.otlp:
        from claw_engine.trace.otlp import spans  # only for whoever wants it

        _send(args.otlp, json.dumps(spans(run), ensure_ascii=False).encode("utf-8", "replace"))
        return 0
    record = run["run"]
    assert isinstance(record, Mapping)
    target = args.out or f"trace-{_plain(str(record.get('id')))}.json"
    data = json.dumps(run, ensure_ascii=False, indent=1).encode("utf-8", "surrogatepass")
    if target == "-":
        sys.stdout.buffer.write(data + b"\n")
        return 0
    _write(target, data)
    say(f"{target}: {len(data)} bytes, readable for you only.")
    return 0


def _redacted(args: Namespace) -> Json:
    with client(args) as engine:
        run_id = args.run
        if run_id is None:
            newest = items(engine.call("trace.list", {"limit": 1}), "runs")
            run_id = next((row.get("id") for row in newest), None)
            if run_id is None:
                raise ExportFailed("No run is in the trace.")
        found = engine.call("trace.run", {"runId": run_id})
        texts: Json = {}
        calls = [_call(engine, str(row.get("id")), texts) for row in items(found, "calls")]
        return _file(False, {**found, "calls": calls, "texts": texts})


def _call(engine: SyncClient, call_id: str, texts: Json) -> Json:
    """One call with its parts; their texts, each once, go into `texts` under their hash."""
    found = engine.call("trace.call", {"callId": call_id})
    parts = items(found, "parts")
    for row in parts:
        digest = str(row.get("hash"))
        if not digest or digest in texts:
            continue
        pieces, offset = [], 0
        while isinstance(offset, int):
            page = engine.call(
                "trace.part",
                {"callId": call_id, "partId": row.get("id"), "offset": offset, "limit": 1_000_000},
            )
            pieces.append(str(page.get("text")))
            offset = page.get("next")  # type: ignore[assignment]  # None ends it
        texts[digest] = "".join(pieces)
    call = found.get("call")
    assert isinstance(call, Mapping)
    return {**call, "answer": found.get("answer"), "parts": list(parts)}


def _raw(args: Namespace) -> Json:
    # Only here: through an engine the verb needs no database.
    from claw_engine.paths import StateDir
    from claw_engine.storage.sqlite import read_only
    from claw_engine.trace import contents, reader
    from claw_engine.trace.records import wire
    from claw_engine.trace.views import view

    path = StateDir(state_dir(args)).trace_db
    db = read_only(path)
    try:
        run_id = args.run
        if run_id is None:
            rows, _ = reader.runs(db, None, 1, None)
            if not rows:
                raise ExportFailed("No run is in the trace.")
            run_id = rows[0].id
        n, row = reader.run(db, run_id)
        steps = reader.events(db, n, row)
        texts: Json = {}
        calls: list[Json] = []
        records, _ = reader.calls(db, run_id=run_id, limit=100_000)
        for record in reversed(records):
            found = reader.call(db, record.id)
            known = contents.contents(db, found)
            new = [part for part in known.parts if part.hash.hex() not in texts]
            texts.update((part.hash.hex(), text) for part, text in contents.texts(db, new))
            calls.append({
                **wire(record),
                "answer": wire(reader.answer(db, found)),
                "parts": [wire(part) for part in view(known, None).parts],
                "body": contents.body(db, found).decode("utf-8"),
            })  # fmt: skip
        return _file(True, {
            "run": wire(row), "calls": calls, "texts": texts,
            "tools": [wire(tool) for tool in reader.tools(steps, row)],
            "events": [step.to_json() for step in steps],
        })  # fmt: skip
    finally:
        db.close()


def _file(raw: bool, found: Json) -> Json:
    head: Json = {"format": FORMAT, "version": VERSION, "raw": raw}
    return {**head, "exportedAtMs": int(time.time() * 1000), **found}


def _write(target: str, data: bytes) -> None:
    try:
        # Made anew: a file that is there may be open to others.
        temporary = f"{target}.{os.getpid()}.tmp"
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(data)
        os.replace(temporary, target)  # noqa: PTH105 - pathlib is not loaded here
    except OSError as error:
        raise ExportFailed(f"Cannot write {target}: {error.strerror or error}.") from error


def _send(url: str, data: bytes) -> None:
    import http.client  # only for whoever sends
    import urllib.error
    import urllib.request

    if not url.startswith(("http://", "https://")):
        raise ExportFailed(f"{url} is no HTTP address.", hint="http://localhost:4318 for example.")
    where = url if url.rstrip("/").endswith("/v1/traces") else f"{url.rstrip('/')}/v1/traces"
    asked = urllib.request.Request(where, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(asked, timeout=POST_S) as answer:
            said = answer.read(65536)
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        raise ExportFailed(f"{where} did not take the spans: {error}.") from error
    rejected = _rejected(said)
    if rejected:
        raise ExportFailed(f"{where} took only some of the spans: {rejected}.")
    note(f"claw: sent to {where}")


def _rejected(said: bytes) -> str:
    """What a collector says it left out."""
    try:
        found = json.loads(said or b"{}").get("partialSuccess") or {}
    except (ValueError, AttributeError):
        return ""
    many = int(found.get("rejectedSpans") or 0)
    return f"{many} rejected, {found.get('errorMessage') or 'no reason given'}" if many else ""


def _plain(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in name)[:80]
