"""`claw-tui --url`: what is asked before a secret leaves this computer, and the connection itself.

Asking happens on the plain terminal, before the screen is taken. Imports no widget.
"""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from claw_engine.client.base import ClientError
from claw_engine.client.device import load_device
from claw_engine.client.foreign import ForeignClient
from claw_engine.client.gateways import Address, Gateways, client_dir, parse_address
from claw_engine.client.trust import TlsUntrusted
from claw_engine.client.websocket import (
    UI_SCOPES,
    AuthNeeded,
    NoGateway,
    Secret,
    WebSocketClient,
)
from claw_engine.errors import ClawError
from claw_engine.protocol.names import Scope

TOKEN_ENV = ("CLAW_GATEWAY_TOKEN", "OPENCLAW_GATEWAY_TOKEN")
ATTEMPTS = 3
READY_S = 90.0
"""How long we wait for a gateway that answers but is still starting (OpenClaw 2026.9.6: 40 s)."""
AGAIN_S = 1.0

Ask = Callable[[str], str]


class NotConfirmed(ClawError):
    """The operator did not want to go on."""


class Wish(Struct, frozen=True):
    """What the command line says; secrets never print."""

    url: str
    token: str = ""
    password: str = ""
    read_only: bool = False

    def __repr__(self) -> str:
        return f"Wish({self.url!r})"


def gateways(env: Mapping[str, str]) -> Gateways:
    return Gateways(client_dir(env) / "gateways.json")


def logs_dir(env: Mapping[str, str]) -> Path:
    return client_dir(env)


async def attach(
    wish: Wish,
    env: Mapping[str, str],
    ask: Ask,
    secret_of: Ask = getpass.getpass,
    say: Callable[[str], None] = print,
) -> ForeignClient:
    """A connected client. Raises ClawError; NotConfirmed when a question was answered with no."""
    where = parse_address(wish.url)
    store = gateways(env)
    device = load_device(client_dir(env) / "device.json")
    scopes = (Scope.READ,) if wish.read_only else UI_SCOPES
    secret = _secret(wish, where, store, env, ask)
    for attempt in range(ATTEMPTS):
        client = ForeignClient(WebSocketClient(where, device, store, secret, scopes=scopes))
        try:
            await _connect(client, where, say)
        except TlsUntrusted as error:
            _trust(error, where, store, ask)
        except AuthNeeded as error:
            code = str((error.shape.details or {}).get("code", ""))
            if not code.startswith("AUTH_TOKEN") and not code.startswith("AUTH_DEVICE"):
                raise
            if attempt == ATTEMPTS - 1 or wish.token:
                raise
            _clear_of_listeners(where, store, ask)
            refused = "That was not accepted. " if secret.token else ""
            secret = Secret(token=secret_of(f"{refused}Token of {where.netloc}: ").strip())
            if not secret.token:
                raise
        else:
            return client
    raise NotConfirmed(f"There is no connection to {where.netloc}.")


async def _connect(client: ForeignClient, where: Address, say: Callable[[str], None]) -> None:
    """Connect; a gateway that says it is starting is asked again until it is ready."""
    told = False
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(READY_S):
            while True:
                try:
                    await client.connect()
                    return
                except ClientError as error:
                    if error.shape.code != "UNAVAILABLE" or not error.shape.retryable:
                        raise
                    if not told:
                        say(f"{where.netloc} is starting; waiting until it is ready …")
                        told = True
                    wait_ms = error.shape.retry_after_ms or AGAIN_S * 1000
                    await asyncio.sleep(min(2.0, max(0.1, wait_ms / 1000)))
    raise NoGateway(f"{where.netloc} answers, but is not ready after {READY_S:g} s.")


def _secret(
    wish: Wish, where: Address, store: Gateways, env: Mapping[str, str], ask: Ask
) -> Secret:
    """A secret from the environment goes to a gateway that is not known only when asked."""
    if wish.token or wish.password:
        _clear_of_listeners(where, store, ask)
        return Secret(wish.token, wish.password)
    if store.device_token(where):
        return Secret()
    name = next((n for n in TOKEN_ENV if env.get(n)), "")
    if not name:
        return Secret()
    if not store.known(where):
        words = f"{where.netloc} was not seen before. Send it the token of {name}? [y/N] "
        if not _yes(ask(words)):
            return Secret()
    _clear_of_listeners(where, store, ask)
    return Secret(token=env[name].strip())


def _clear_of_listeners(where: Address, store: Gateways, ask: Ask) -> None:
    """A token over plain ws:// to another computer can be read on the way: say so once."""
    if not where.in_the_clear or store.known(where):
        return
    words = (
        f"{where.url} is not encrypted: whoever listens on the way can read the token.\n"
        "Safer: wss://, or ssh -L 18789:127.0.0.1:18789 HOST and --url ws://127.0.0.1:18789.\n"
        "Send it all the same? [y/N] "
    )
    if not _yes(ask(words)):
        raise NotConfirmed("Nothing was sent.")


def _trust(error: TlsUntrusted, where: Address, store: Gateways, ask: Ask) -> None:
    if not error.pin:
        raise error
    grouped = " ".join(error.pin[i : i + 8] for i in range(0, len(error.pin), 8))
    words = f"{error.title}\nIts SHA-256 is {grouped}\nTrust this certificate from now on? [y/N] "
    if not _yes(ask(words)):
        raise error
    store.trust(where, error.pin)


def _yes(answer: str) -> bool:
    return answer.strip().lower() in ("y", "yes")


def forget(url: str, env: Mapping[str, str] = os.environ) -> str:
    """Drop what is kept about a gateway; a sentence about it."""
    where = parse_address(url)
    if gateways(env).forget(where):
        return f"The token and certificate kept for {where.key} are forgotten."
    return f"Nothing was kept for {where.key}."
