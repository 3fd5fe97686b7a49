"""Replays a recorded conversation with a real gateway against ours, over a real WebSocket.

What the recorded client sent is sent again, signed with a key of our own over our nonce, once we
have said what the real gateway had said by then; what came back is laid beside the recording.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

Frame = dict[str, Any]

TOKEN = "capture-token-0123456789abcdef"  # the recording's own
WAIT_S = 8.0
ALL_SCOPES = ["operator.read", "operator.write", "operator.admin", "operator.approvals",
              "operator.pairing"]  # fmt: skip

_NOISE = {"health", "presence", "tick", "lanes", "sessions.changed", "notice", "trace",
          "session.message", "shutdown", "device.pair.requested"}  # fmt: skip
"""Events that come when they come, at theirs and at ours."""


class Device:
    """A device key that signs handshakes."""

    def __init__(self) -> None:
        self._key = Ed25519PrivateKey.generate()
        raw = self._key.public_key().public_bytes_raw()
        self.id = hashlib.sha256(raw).hexdigest()
        self.public = _b64(raw)

    def proof(self, params: Mapping[str, Any], nonce: str, ts: int, version: str = "v3") -> Frame:
        auth, client = params.get("auth") or {}, params["client"]
        fields = [
            version, self.id, client["id"], client["mode"], params.get("role", "operator"),
            ",".join(params.get("scopes", [])), str(ts),
            auth.get("token") or auth.get("deviceToken") or "", nonce,
        ]  # fmt: skip
        if version == "v3":
            fields += [client["platform"].lower(), client.get("deviceFamily", "").lower()]
        signature = self._key.sign("|".join(fields).encode())
        return {"id": self.id, "publicKey": self.public, "signature": _b64(signature),
                "signedAt": ts, "nonce": nonce}  # fmt: skip


class Player:
    """One connection that sends recorded frames and keeps what we answer."""

    def __init__(self, ws: ClientConnection, device: Device) -> None:
        self.ws = ws
        self.device = device
        self.got: list[Frame] = []
        self.close: tuple[int, str] | None = None
        self._news = asyncio.Event()
        self._ids: dict[str, str] = {}
        self._task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        try:
            async for text in self.ws:
                self.got.append(json.loads(text))
                self._news.set()
        except ConnectionClosed:
            pass
        self.close = (self.ws.close_code or 0, self.ws.close_reason or "")
        self._news.set()

    async def until(self, test: Any) -> None:
        """Wait until `test()` holds."""
        async with asyncio.timeout(WAIT_S):
            while not test():
                self._news.clear()
                await self._news.wait()

    async def challenge(self) -> Frame:
        await self.until(lambda: self.got)
        payload: Frame = self.got[0]["payload"]
        return payload

    async def hello(self, protocol: int, **changes: Any) -> Frame:
        """Shake hands as the recording's client did; the answer."""
        params: Frame = {
            "minProtocol": protocol, "maxProtocol": protocol,
            "client": {"id": "cli", "version": "0.0.1-capture", "platform": "linux", "mode": "cli"},
            "role": "operator", "scopes": ALL_SCOPES, "caps": ["tool-events", "approvals"],
            "auth": {"token": TOKEN}, **changes,
        }  # fmt: skip
        challenge = await self.challenge()
        if params.get("device", True):
            params["device"] = self.device.proof(params, challenge["nonce"], challenge["ts"])
        else:
            del params["device"]
        await self.send({"type": "req", "id": "hello", "method": "connect", "params": params})
        await self.until(lambda: self.close or len(self.responses("hello")) == 1)
        return self.responses("hello")[0]

    async def send(self, frame: object) -> None:
        raw = frame.get("raw") if isinstance(frame, dict) else None
        with contextlib.suppress(ConnectionClosed):  # the end of it is kept
            await self.ws.send(raw if isinstance(raw, str) else json.dumps(frame))

    async def call(self, method: str, params: Frame | None = None, id_: str = "") -> Frame:
        """The last answer of a request with one answer."""
        id_ = id_ or f"{method}-{len(self.got)}"
        await self.send({"type": "req", "id": id_, "method": method, "params": params or {}})
        await self.until(lambda: self.close or self.responses(id_))
        return self.responses(id_)[-1]

    def responses(self, id_: str) -> list[Frame]:
        return [f for f in self.got if f.get("type") == "res" and f.get("id") == id_]

    async def play(self, frames: list[Frame]) -> None:
        """Send what the recording sent, each when we have caught up with it."""
        for number, entry in enumerate(frames):
            frame = entry["frame"]
            if entry["dir"] != "send":
                continue
            await self._caught_up(frames[:number])
            await self.send(await self._adapted(frame))
        await self._caught_up(frames)

    async def _caught_up(self, before: list[Frame]) -> None:
        runs = keys_of(before)
        received = [e["frame"] for e in before if e["dir"] == "recv"]
        wanted = Counter(f["id"] for f in received if f.get("type") == "res")
        marks = set(marks_of(received, runs))
        await self.until(lambda: self.close or all(
            len(self.responses(id_)) >= count for id_, count in wanted.items()
        ))  # fmt: skip
        await self.until(lambda: self.close or {m[:3] for m in marks_of(self.got, runs)} >= {
            m[:3] for m in marks if m[0] == "exec.approval.requested" or "assistant" in m
        })  # fmt: skip
        self._learn_ids(received)
        if any(e["dir"] == "close" and e["frame"]["code"] != 1000 for e in before):
            await self.until(lambda: self.close)

    def _learn_ids(self, received: list[Frame]) -> None:
        """An approval that a run asked for has an id of ours."""
        theirs = [f["payload"]["id"] for f in received if f.get("event") == _REQUESTED]
        ours = [f["payload"]["id"] for f in self.got if f.get("event") == _REQUESTED]
        self._ids.update(zip(theirs, ours, strict=False))

    async def _adapted(self, frame: Any) -> Any:
        if not isinstance(frame, dict) or "method" not in frame:
            return frame
        params = dict(frame.get("params") or {})
        if frame["method"] == "connect" and isinstance(params.get("device"), dict):
            challenge = await self.challenge()
            broken = params["device"]["signature"].endswith("AAAA")
            proof = self.device.proof(params, challenge["nonce"], challenge["ts"])
            if broken:
                proof["signature"] = proof["signature"][:-5] + "AAAAA"
            params["device"] = proof
        if params.get("id") in self._ids:
            params["id"] = self._ids[params["id"]]
        return {**frame, "params": params} if "params" in frame else frame

    async def end(self) -> None:
        await self.ws.close()
        await self._task


_REQUESTED = "exec.approval.requested"


async def player(
    port: int, device: Device | None = None, *, name: str = "127.0.0.1", **kwargs: Any
) -> Player:
    """Connect to this host, calling it `name`."""
    ws = await connect(
        f"ws://{name}:{port}", host="127.0.0.1", port=port, max_size=None, compression=None,
        proxy=None, **kwargs,
    )  # fmt: skip
    return Player(ws, device or Device())


def recording(path: Path) -> Frame:
    found: Frame = json.loads(path.read_text())
    return found


def keys_of(frames: list[Frame]) -> set[str]:
    """The runs that the recorded client started."""
    sent = [e["frame"].get("params") or {} for e in frames
            if e["dir"] == "send" and isinstance(e["frame"], dict)]  # fmt: skip
    return {p["idempotencyKey"] for p in sent if "idempotencyKey" in p}


def marks_of(frames: list[Frame], runs: set[str]) -> Iterator[tuple[str, ...]]:
    """What happened, without numbers and words: neighbours that say the same are one.

    Of runs only those in `runs`: others went on beside the recording.
    """
    last: tuple[str, ...] = ()
    for frame in frames:
        event = frame.get("event")
        if event is None or event in _NOISE:
            continue
        payload = frame.get("payload") or {}
        if event in ("agent", "chat") and payload.get("runId") not in runs:
            continue
        data = payload.get("data") or {}
        if payload.get("stream") == "item" and data.get("kind") == "preamble":
            continue
        mark = (event, payload.get("stream") or payload.get("state") or "",
                data.get("phase") or payload.get("phase") or "")  # fmt: skip
        if mark in (("agent", "assistant", ""), ("chat", "delta", "")):
            mark = ("agent", "assistant", "text")
        if mark != last:
            yield mark
        last = mark


def missing(theirs: object, ours: object, absent: Mapping[str, str], path: str = "") -> list[str]:
    """Where ours lacks a field of theirs, or has another type there. Names in `absent` may lack."""
    if isinstance(theirs, dict):
        if not isinstance(ours, dict):
            return [f"{path}: {type(ours).__name__}, theirs an object"]
        out = []
        for key, value in theirs.items():
            if key in absent:
                continue
            here = f"{path}.{key}"
            if key not in ours:
                out.append(f"{here}: absent")
            else:
                out += missing(value, ours[key], absent, here)
        return out
    if isinstance(theirs, list):
        if not isinstance(ours, list):
            return [f"{path}: {type(ours).__name__}, theirs a list"]
        return missing(theirs[0], ours[0], absent, f"{path}[0]") if theirs and ours else []
    if theirs is None or ours is None:
        return []
    same = (
        isinstance(ours, int | float)
        if isinstance(theirs, int | float)
        else (type(ours) is type(theirs))
    )
    return [] if same else [f"{path}: {type(ours).__name__}, theirs {type(theirs).__name__}"]


def _b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
