"""What `claw-tui --url` asks before a secret leaves this computer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from websockets.asyncio.server import ServerConnection, serve

from claw_engine.client.base import ClientError
from claw_engine.client.gateways import parse_address
from claw_engine.client.websocket import AuthNeeded, NoGateway
from claw_tui.remote import NotConfirmed, Wish, attach, forget, gateways
from tests.client.test_websocket import TOKEN, gateway


class Person:
    """Answers questions from a list, and remembers them."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def __call__(self, question: str) -> str:
        self.asked.append(question)
        return self.answers.pop(0)


def env(root: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(root / "laptop"), **more}


async def test_the_token_is_asked_for_once(tmp_path: Path) -> None:
    async with gateway(tmp_path) as (_, where):
        person, secret = Person(), Person("wrong", TOKEN)
        client = await attach(Wish(where.url), env(tmp_path), person, secret)
        await client.close()
        assert len(secret.asked) == 2 and where.netloc in secret.asked[0]
        assert [words.startswith("That was not accepted") for words in secret.asked] == [0, 1]
        client = await attach(Wish(where.url), env(tmp_path), person, secret)
        await client.close()
        assert len(secret.asked) == 2 and not person.asked


async def test_a_wrong_token_of_the_command_line_is_not_asked_about(tmp_path: Path) -> None:
    async with gateway(tmp_path) as (_, where):
        with pytest.raises(AuthNeeded):
            await attach(Wish(where.url, token="wrong"), env(tmp_path), Person(), Person())


@pytest.mark.parametrize(("answer", "sent"), [("y", True), ("", False), ("n", False)])
async def test_a_token_of_the_environment_goes_to_a_new_gateway_only_when_asked(
    tmp_path: Path, answer: str, sent: bool
) -> None:
    async with gateway(tmp_path) as (_, where):
        person, secret = Person(answer), Person("")
        environment = env(tmp_path, CLAW_GATEWAY_TOKEN=TOKEN)
        if sent:
            client = await attach(Wish(where.url), environment, person, secret)
            await client.close()
        else:
            with pytest.raises(AuthNeeded):
                await attach(Wish(where.url), environment, person, secret)
        assert "not seen before" in person.asked[0]
        assert gateways(environment).known(where) is sent


async def test_an_open_line_is_said(tmp_path: Path) -> None:
    """192.0.2.0/24 is for documentation: nothing is sent there, for the answer is no."""
    person = Person("n")
    with pytest.raises(NotConfirmed):
        await attach(Wish("ws://192.0.2.1", token="t"), env(tmp_path), person, Person())
    assert "not encrypted" in person.asked[0]


async def test_nobody_there(tmp_path: Path) -> None:
    with pytest.raises(NoGateway):
        await attach(Wish("ws://127.0.0.1:1", token="t"), env(tmp_path), Person(), Person())


def test_forgetting(tmp_path: Path) -> None:
    gateways(env(tmp_path)).remember(parse_address("nas"), "t")
    assert "are forgotten" in forget("nas", env(tmp_path))
    assert "Nothing was kept" in forget("nas", env(tmp_path))


def test_secrets_do_not_print() -> None:
    assert "hush" not in repr(Wish("ws://nas", token="hush", password="hush"))


async def test_a_gateway_that_is_starting_is_waited_for(tmp_path: Path) -> None:
    """OpenClaw 2026.9.6 answers for half a minute before it is ready."""
    starting = {"code": "UNAVAILABLE", "message": "gateway starting; retry shortly",
                "retryable": True, "retryAfterMs": 100}  # fmt: skip
    errors = [starting, starting, {"code": "INVALID_REQUEST", "message": "enough"}]

    async def answer(socket: ServerConnection) -> None:
        challenge = {"nonce": "n", "ts": 1}
        await socket.send(
            json.dumps({"type": "event", "event": "connect.challenge", "payload": challenge})
        )
        asked = json.loads(await socket.recv())
        await socket.send(
            json.dumps({"type": "res", "id": asked["id"], "ok": False, "error": errors.pop(0)})
        )
        await socket.close(1013, "gateway starting")

    said: list[str] = []
    async with serve(answer, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        wish = Wish(f"ws://127.0.0.1:{port}", token=TOKEN)
        with pytest.raises(ClientError, match="enough"):
            await attach(wish, env(tmp_path), Person(), Person(), said.append)
    assert not errors and len(said) == 1 and "starting" in said[0]
