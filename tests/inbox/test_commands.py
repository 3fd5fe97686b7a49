"""Commands of the registry: parsing, who may, and that each has a real effect."""

from __future__ import annotations

import asyncio

import pytest

from claw_engine.config.sections.session import SessionSettings
from claw_engine.config.settings import Settings
from claw_engine.inbox.commands import Command, CommandCall, Commands, is_stop_command
from claw_engine.inbox.model import InboundMessage
from claw_engine.messages import UserMessage, text_of
from claw_engine.protocol.trace import TraceKind
from tests.agent.bench import MAIN, Bench, ScriptedModel, says
from tests.agent.conftest import MakeBench

END = TraceKind.RUN_ENDED


async def answer(b: Bench, text: str, **more: str) -> str:
    end = await b.until(END, await b.send(text, **more))
    return str(end.data["text"])


async def echo(call: CommandCall) -> str:
    return f"{call.name}|{call.args}"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("/echo", "/echo|"), ("/ECHO a b", "/echo|a b"), ("/echo: x", "/echo|x"),
        ("/echo:x", "/echo|x"), ("/echo@bot hi", "/echo|hi"),
        ("  /echo one\ntwo", "/echo|one\ntwo"),
        ("/e 1", "/echo|1"), ("/echoes", None), ("/echo/path", None), ("say /echo", None),
        ("/etc/passwd is what?", None),
    ],
)  # fmt: skip
async def test_parsing(text: str, found: str | None) -> None:
    commands = Commands()
    commands.register(Command("/echo", "says it", echo, ("/e",)))
    call = commands.find(InboundMessage("i", MAIN, "main", text, "console", 0))
    assert (await call[0].run(call[1]) if call else None) == found


def test_a_name_is_taken_once() -> None:
    commands = Commands()
    commands.register(Command("/echo", "says it", echo, ("/e",)))
    for name in ("/e", "/echo", "/stop", "plain"):
        with pytest.raises(ValueError, match="cannot"):
            commands.register(Command(name, "", echo))


@pytest.mark.parametrize(
    ("text", "stops"),
    [("/stop", True), (" /STOP ", True), ("/stop@bot", True), ("/stop:", True),
     ("/stop now", False), ("/stopp", False)],
)  # fmt: skip
def test_stop_command(text: str, stops: bool) -> None:
    assert is_stop_command(text) is stops


@pytest.mark.parametrize(
    ("text", "says_", "field", "value"),
    [
        ("/think high", "Thinking level set to high.", "thinkingLevel", "high"),
        ("/t off", "Thinking disabled.", "thinkingLevel", "off"),
        ("/thinking:med", "Thinking level set to medium.", "thinkingLevel", "medium"),
        ("/verbose full", "Verbose set to full.", "verboseLevel", "full"),
        ("/elev on", "Elevated on: commands run outside the sandbox and ask.", "elevatedLevel",
         "on"),
        ("/v off", "Verbose disabled.", "verboseLevel", "off"),
        ("/reasoning stream", "Reasoning streamed.", "reasoningLevel", "stream"),
        ("/model fake/one", "Model set to fake/one.", "modelOverride", "one"),
        ("/queue steer", "Queue mode set to steer.", "queueMode", "steer"),
    ],
)  # fmt: skip
async def test_each_writes_its_field(
    bench: MakeBench, text: str, says_: str, field: str, value: str
) -> None:
    b = await bench(ScriptedModel([]))
    said, _, where = (await answer(b, text)).partition("\n")
    assert said == says_
    assert bool(where) is (field in ("verboseLevel", "reasoningLevel"))  # nothing hides here
    entry = b.sessions.get(MAIN)
    assert entry is not None
    assert entry.raw[field] == value


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("/think", "Current thinking level: off."),
        ("/think loud", 'Unrecognized thinking level "loud". Valid levels: off, minimal'),
        ("/verbose", "Current verbose level: off."),
        ("/reasoning maybe", 'Unrecognized reasoning level "maybe".'),
        ("/model", "Model: fake/one (the default)."),
        ("/model 3", "A model is chosen by its name"),
        ("/model no/such", "There is no model no/such."),
        ("/queue blue", "Unrecognized queue option 'blue'"),
        ("/whoami", f"Channel: console\nSession: {MAIN}\nAgent: main"),
        ("/status", "Model: fake/one\n"),
    ],
)
async def test_bare_and_wrong_ones_change_nothing(bench: MakeBench, text: str, begins: str) -> None:
    b = await bench(ScriptedModel([]))
    assert (await answer(b, text)).startswith(begins)
    assert b.sessions.get(MAIN) is None


async def test_the_next_run_thinks_and_asks_as_the_session_says(bench: MakeBench) -> None:
    model = ScriptedModel([says("One."), says("Two.")])
    b = await bench(model)
    seen: list[str | None] = []
    source = b.agent.deps.models
    resolve = source.resolve

    def noted(settings: object) -> object:
        seen.append(settings.agents.defaults.model.primary)  # type: ignore[attr-defined]
        return resolve(settings)  # type: ignore[arg-type]

    source.resolve = noted  # type: ignore[method-assign, assignment]  # a spy on the source
    await answer(b, "/think high")
    await answer(b, "/model fake/one")
    await b.dispatcher.wait(await b.send("go"))
    assert model.requests[0].thinking == "high"
    assert seen[-1] == "fake/one"
    assert await answer(b, "/model default") == "Model reset to default (fake/one)."
    await b.dispatcher.wait(await b.send("again"))
    assert seen[-1] is None


async def test_new_stops_the_old_talk_tells_its_senders_and_begins_afresh(
    bench: MakeBench,
) -> None:
    model = ScriptedModel([says("Old."), [asyncio.Event()], says("Fresh.")])
    b = await bench(model)
    await b.dispatcher.wait(await b.send("remember"))
    await answer(b, "/think low")
    before = b.sessions.get(MAIN)
    run = await b.send("long")
    await b.until(TraceKind.CALL_STARTED, run)
    waiting = await b.send("behind it")
    fresh = await b.send("/new hello there")
    await b.until(END, waiting, status="aborted", stopReason="reset")
    await b.until(END, run, status="aborted", stopReason="reset")
    await b.until(END, fresh, text="Fresh.")
    after = b.sessions.get(MAIN)
    assert before is not None
    assert after is not None
    assert before.session_id != after.session_id
    assert after.text("thinkingLevel") == "low"
    users = [m for m in await b.messages() if isinstance(m, UserMessage)]
    assert [text_of(m).split("] ", 1)[1] for m in users] == ["hello there"]
    assert await answer(b, "/reset") == "New session started."
    assert await b.messages() == []


@pytest.mark.parametrize(
    ("text", "resets"),
    [
        ("/fresh", True), ("/FRESH", True), ("Start over", True), ("start over, please", False),
        ("/freshly", False), ("so /fresh", False),
    ],
)  # fmt: skip
async def test_a_trigger_of_the_configuration_begins_anew(
    bench: MakeBench, text: str, resets: bool
) -> None:
    session = SessionSettings(reset_triggers=("/new", "/fresh", "start over"))
    b = await bench(
        ScriptedModel([says("Old."), says("Words.")]), settings=Settings(session=session)
    )
    await b.dispatcher.wait(await b.send("remember"))
    said = await answer(b, text)
    assert (said == "New session started.") is resets
    assert bool(await b.messages()) is not resets


async def test_what_follows_a_trigger_is_for_the_model(bench: MakeBench) -> None:
    session = SessionSettings(reset_triggers=("start over",))
    b = await bench(
        ScriptedModel([says("Old."), says("Fresh.")]), settings=Settings(session=session)
    )
    await b.dispatcher.wait(await b.send("remember"))
    await b.until(END, await b.send("start over hello there"), text="Fresh.")
    users = [m for m in await b.messages() if isinstance(m, UserMessage)]
    assert [text_of(m).split("] ", 1)[1] for m in users] == ["hello there"]


async def test_new_takes_a_model_hint(bench: MakeBench) -> None:
    b = await bench(ScriptedModel([]))
    assert await answer(b, "/new fake/one") == "New session started. Model set to fake/one."
    entry = b.sessions.get(MAIN)
    assert entry is not None
    assert entry.text("modelOverride") == "one"


async def test_strangers_command_nothing_and_a_channel_can_vouch(bench: MakeBench) -> None:
    b = await bench(ScriptedModel([says("For the model.")]))
    stranger = await b.send("/think high", source="telegram")
    await b.until(END, stranger, text="For the model.")
    entry = b.sessions.get(MAIN)
    assert entry is not None
    assert "thinkingLevel" not in entry.raw
    vouched = InboundMessage(
        "v", MAIN, "main", "/think high", "telegram", 0, extra={"commandAuthorized": True}
    )
    assert (await b.dispatcher.submit(vouched)).status == "ended"
    assert (await b.dispatcher.submit(b.message("/whoami", source="gateway"))).status == "ended"


async def test_help_lists_them_all(bench: MakeBench) -> None:
    b = await bench(ScriptedModel([]))
    names = [line.split(":")[0] for line in (await answer(b, "/help")).splitlines()]
    assert names == sorted(
        ["/help", "/status", "/stop", "/new", "/reset", "/queue", "/think", "/reasoning",
         "/verbose", "/context", "/usage", "/elevated", "/model", "/whoami"]
    )  # fmt: skip
