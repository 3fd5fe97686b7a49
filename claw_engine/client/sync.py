"""A blocking client for the `claw` verbs: standard library only, quick to import.

Frames are plain dicts here: dataclasses and asyncio would cost more than the whole call.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from claw_engine.client.door import (
    MAX_REQUEST,
    TWO_ANSWERS,
    DoorRefused,
    NoEngine,
    RequestTooLarge,
    connect_params,
    open_socket,
    proof,
)
from claw_engine.errors import ClawError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike
    from types import TracebackType

SCOPES = ("operator.read", "operator.write", "operator.approvals", "operator.admin")

STRANGER = "What answers at the door does not speak the gateway protocol."

Frame = dict[str, object]


class CallFailed(ClawError):
    """The engine refused or failed; `wire_code` is its error code."""

    def __init__(self, error: Mapping[str, object]) -> None:
        details = error.get("details")
        found: Mapping[str, object] = details if isinstance(details, dict) else {}
        super().__init__(
            str(error.get("message", "the engine gave no reason")),
            hint=str(found.get("hint", "")),
            details=found,
        )
        self.wire_code = str(error.get("code", "UNAVAILABLE"))


class SyncClient:
    """Use as a context manager. All waits are in seconds; None waits for ever."""

    def __init__(
        self,
        state_dir: str | PathLike[str],
        *,
        timeout: float = 30.0,
        scopes: Sequence[str] = SCOPES,
        caps: Sequence[str] = ("trace",),
    ) -> None:
        self._state_dir = state_dir
        self._timeout = timeout
        self._scopes = scopes
        self._caps = caps
        self._buffer = b""
        self._events: deque[Frame] = deque()
        self._next_id = 0
        self.hello: Mapping[str, object] = {}

    def __enter__(self) -> SyncClient:
        self._sock = open_socket(self._state_dir, self._timeout)
        try:
            self._handshake()
        except BaseException:
            self._sock.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._sock.close()

    def call(
        self,
        method: str,
        params: Mapping[str, object] | None = None,
        *,
        timeout: float | None = None,
    ) -> dict[str, object]:
        """The payload of the (final) answer; events meanwhile are kept for `events`.

        Raises CallFailed, NoEngine.
        """
        self._sock.settimeout(self._timeout if timeout is None else timeout)
        request_id = self.send(method, params)
        while True:
            frame = self._read()
            if frame.get("type") == "event":
                self._events.append(frame)
            elif frame.get("id") == request_id and is_final(method, frame):
                return payload_of(frame)

    def send(self, method: str, params: Mapping[str, object] | None = None) -> str:
        """Ask without waiting; the id that the answer will carry."""
        self._next_id += 1
        request_id = str(self._next_id)
        frame_params = dict(params or {})
        frame = {"type": "req", "id": request_id, "method": method, "params": frame_params}
        line = json.dumps(frame, separators=(",", ":")).encode() + b"\n"
        if len(line) > MAX_REQUEST:
            raise RequestTooLarge("The message" if "message" in frame_params else "The request")
        try:
            self._sock.sendall(line)
        except OSError as error:
            raise self._lost(error) from None
        return request_id

    def frames(self) -> Iterator[Frame]:
        """Every event and answer as it comes, without a time limit. Raises NoEngine at the end."""
        self._sock.settimeout(None)
        while True:
            yield self._events.popleft() if self._events else self._read()

    def _handshake(self) -> None:
        challenge = self._read()
        payload = challenge.get("payload")
        nonce = payload.get("nonce") if isinstance(payload, dict) else None
        if challenge.get("event") != "connect.challenge" or not isinstance(nonce, str):
            raise DoorRefused(STRANGER)
        params = connect_params(
            proof(self._state_dir, nonce),
            client_id="cli", mode="cli", scopes=self._scopes, caps=self._caps,
        )  # fmt: skip
        self.hello = self.call("connect", params)

    def _read(self) -> Frame:
        while True:
            line, found, rest = self._buffer.partition(b"\n")
            if found:
                self._buffer = rest
                try:
                    frame = json.loads(line)
                except (ValueError, RecursionError):
                    raise DoorRefused(STRANGER) from None
                if isinstance(frame, dict):
                    return frame
                continue
            chunks = [self._buffer]
            self._buffer = b""
            while True:
                try:
                    chunk = self._sock.recv(1 << 16)
                except TimeoutError:
                    raise NoEngine(self._state_dir, "it does not answer in time") from None
                except OSError as error:
                    raise self._lost(error) from None
                if not chunk:
                    raise NoEngine(self._state_dir, "it closed the connection")
                chunks.append(chunk)
                if b"\n" in chunk:
                    break
            self._buffer = b"".join(chunks)

    def _lost(self, error: OSError) -> NoEngine:
        return NoEngine(self._state_dir, f"the connection broke: {error.strerror or error}")


def is_final(method: str, frame: Mapping[str, object]) -> bool:
    """False for the first of two answers."""
    payload = frame.get("payload")
    accepted = isinstance(payload, dict) and payload.get("status") == "accepted"
    return not (accepted and method in TWO_ANSWERS)


def payload_of(frame: Mapping[str, object]) -> dict[str, object]:
    """The payload of a response. Raises CallFailed."""
    if frame.get("ok") is not True:
        error = frame.get("error")
        raise CallFailed(error if isinstance(error, dict) else {})
    payload = frame.get("payload")
    return payload if isinstance(payload, dict) else {}
