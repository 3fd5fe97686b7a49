"""What must hold of a state directory after the engine came to rest and stopped.

Reads files only; every sentence it returns is a broken promise.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.soak.truth import Sent, Truth

ANSWERED = frozenset({"stop", "length"})
Json = dict[str, Any]


def check(
    state: Path, truth: Truth, *, failures_allowed: bool = False, speechless: bool = False
) -> list[str]:
    """Broken promises. `failures_allowed`: a run may also have ended with a told error;
    `speechless`: who mended a file may have died before it could say so."""
    found = list(truth.problems)
    found += _files(state, speechless)
    turns = list(_turns(state))
    found += _messages(turns, truth, failures_allowed)
    found += _commands(truth)
    found += _approvals(state, truth)
    found += _journal(state)
    return found


# -- files -----------------------------------------------------------------------------------------


def _files(state: Path, speechless: bool) -> Iterator[str]:
    log = "\n".join(path.read_text(errors="replace") for path in state.glob("logs/*.log"))
    for path in sorted(state.rglob("*.jsonl")):
        data = path.read_bytes()
        if data and not data.endswith(b"\n"):
            yield f"{path.name} ends in half a line"
        said = ("skipped unreadable lines", "NUL bytes of a power loss")
        told = any(f"{path.name}: {words}" in log for words in said)
        for number, line in enumerate(data.split(b"\n")[:-1], 1):
            if not _object(line) and not told:
                yield f"{path.name} line {number} is unreadable: {line[:60]!r}"
    for index in state.glob("agents/*/sessions/sessions.json"):
        try:
            store = json.loads(index.read_bytes())
        except ValueError as error:
            yield f"sessions.json does not parse: {error}"
            continue
        named = {entry.get("sessionFile") for entry in store.values()}
        for file in index.parent.glob("*.jsonl"):
            if file.name not in named:
                yield f"transcript {file.name} is in no index"
    for folder in (state / "inbox", *state.glob("agents/*/sessions")):
        for path in folder.glob("*.tmp"):
            yield f"{path.name} was left over"
    if speechless:
        return
    for path in state.rglob("*"):
        aside = any(mark in path.name for mark in (".torn-", ".bak-", ".broken-"))
        if aside and path.suffix != ".tmp" and path.name not in log:
            yield f"{path.name} was set aside without a word"


def _object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def read_lines(path: Path) -> list[Json]:
    """The readable lines of a file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_bytes().splitlines() if _object(line)]


# -- conversation ----------------------------------------------------------------------------------


class Turn:
    """A user message of ours and everything up to the next one."""

    def __init__(self, session: str, run_id: str, text: str) -> None:
        self.session = session
        self.run_id = run_id
        self.text = text
        self.after: list[Json] = []

    def stops(self) -> list[str]:
        """How its assistant messages ended, tool rounds left out."""
        said = [m["stopReason"] for m in self.messages("assistant")]
        return [stop for stop in said if stop != "toolUse"]

    def messages(self, role: str) -> list[Json]:
        inner = [line["message"] for line in self.after if line["type"] == "message"]
        return [message for message in inner if message["role"] == role]

    def open_calls(self) -> list[str]:
        """Ids of tool calls without a result, and of results without a call."""
        calls: Counter[str] = Counter()
        for message in self.messages("assistant"):
            calls.update(b["id"] for b in message["content"] if b["type"] == "toolCall")
        calls.subtract(m["toolCallId"] for m in self.messages("toolResult"))
        return [call for call, count in calls.items() if count]


def _turns(state: Path) -> Iterator[Turn]:
    for index in state.glob("agents/*/sessions/sessions.json"):
        try:
            store = json.loads(index.read_bytes())
        except ValueError:
            continue
        for key, entry in store.items():
            turn: Turn | None = None
            for line in read_lines(index.parent / str(entry.get("sessionFile"))):
                message = line.get("message") or {}
                if message.get("role") == "user":
                    text = "".join(b.get("text", "") for b in message["content"])
                    turn = Turn(key.rsplit(":", 1)[-1], str(message.get("runId")), text)
                    yield turn
                elif turn is not None:
                    turn.after.append(line)


def interrupted_ids(turns: Sequence[Turn]) -> Counter[str]:
    """How often each run was marked interrupted."""
    return Counter(
        line["data"]["runId"]
        for turn in turns
        for line in turn.after
        if line["type"] == "custom" and line["customType"] == "claw:interrupted"
    )


def _messages(turns: Sequence[Turn], truth: Truth, failures_allowed: bool) -> Iterator[str]:
    by_id: dict[str, list[Turn]] = {}
    for turn in turns:
        by_id.setdefault(turn.run_id, []).append(turn)
    marked = interrupted_ids(turns)
    for message in truth.sent.values():
        own = by_id.pop(message.id, [])
        if message.id in truth.acked and not own:
            yield f"{message.id} was acknowledged and is in no transcript"
        if len(own) > 1:
            yield f"{message.id} is in the transcripts {len(own)} times"
        for turn in own:
            yield from _turn(turn, message, marked[message.id], truth, failures_allowed)
    for stranger in by_id:
        yield f"a user turn {stranger} that nobody sent"


def _turn(
    turn: Turn, message: Sent, marks: int, truth: Truth, failures_allowed: bool
) -> Iterator[str]:
    name, stops = message.id, turn.stops()
    if turn.session != message.session or not turn.text.endswith(message.text):
        yield f"{name} stands in {turn.session} as {turn.text[:60]!r}"
    answers = sum(stop in ANSWERED for stop in stops)
    failed = stops.count("error")
    if answers > 1:
        yield f"{name} was answered {answers} times"
    if marks > 1:
        yield f"{name} was marked interrupted {marks} times"
    if answers and marks:
        yield f"{name} was answered and marked interrupted"
    if marks and "aborted" not in stops:
        yield f"{name} is marked interrupted and its turn does not say so"
    if failed and not failures_allowed:
        yield f"{name} failed: {[m.get('errorMessage') for m in turn.messages('assistant')]}"
    if not answers and not marks and not (failures_allowed and (failed or "aborted" in stops)):
        yield f"{name} was neither answered nor marked interrupted ({stops})"
    if truth.told_end.get(name) == "done" and not answers:
        yield f"{name} was told as done and its answer is gone ({stops})"
    if open_calls := turn.open_calls():
        yield f"{name} has tool calls and results that do not match: {open_calls}"


# -- commands and approvals ------------------------------------------------------------------------


def _commands(truth: Truth) -> Iterator[str]:
    lines = truth.counter.read_text().splitlines() if truth.counter.exists() else []
    for token, count in Counter(lines).items():
        if count > 1:
            yield f"the command of {token} ran {count} times"
        if token not in truth.allowed:
            yield f"the command of {token} ran and nobody allowed it"


def _approvals(state: Path, truth: Truth) -> Iterator[str]:
    closed: dict[str, Json] = {}
    opened: list[str] = []
    for line in read_lines(state / "approvals" / "requests.jsonl"):
        if line["type"] == "requested":
            opened.append(line["id"])
        elif line["type"] in ("resolved", "expired"):
            if line["id"] in closed:
                yield f"approval {line['id']} was closed twice"
            closed[line["id"]] = line
    for approval_id in opened:
        if approval_id not in closed:
            yield f"approval {approval_id} is still open after a restart"
    for approval_id in truth.asked:
        if approval_id not in opened:
            yield f"approval {approval_id} was shown and is not in the journal"
    reasons = {line["reason"] for line in closed.values() if line["type"] == "expired"}
    for reason in reasons - {"restart", "shutdown", "cancelled"}:
        yield f"an approval expired with reason {reason!r}"


def _journal(state: Path) -> Iterator[str]:
    pending: set[str] = set()
    for line in read_lines(state / "inbox" / "journal.jsonl"):
        match line["kind"]:
            case "accepted":
                pending.add(line["id"])
            case "done" | "failed" | "aborted" | "interrupted":
                pending.discard(line["id"])
    for message_id in pending:
        yield f"{message_id} is still open in the journal"
