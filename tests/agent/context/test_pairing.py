"""Whatever a transcript holds, what goes out satisfies a strict provider (TR-01, TR-03)."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from claw_engine.agent.context.guard import fit
from claw_engine.agent.context.hygiene import UNFINISHED, turns_of, wire_name
from claw_engine.agent.context.pairing import LOST_RESULT, repair
from claw_engine.messages import (
    AssistantMessage,
    Block,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
)
from claw_engine.models.base import Turn
from tests.agent.bench import check


@dataclass(frozen=True, slots=True)
class Entry:
    entry_id: str
    message: Message


def stored(*messages: Message) -> list[Entry]:
    return [Entry(f"e{n}", message) for n, message in enumerate(messages)]


def ready(*messages: Message) -> tuple[Turn, ...]:
    return repair(turns_of(stored(*messages)))


def user(text: str) -> UserMessage:
    return UserMessage((TextBlock(text),))


def call(*ids: str, stop: str = "toolUse", text: str = "") -> AssistantMessage:
    blocks: tuple[Block, ...] = tuple(ToolCallBlock(i, "tool", {}) for i in ids)
    return AssistantMessage((TextBlock(text), *blocks) if text else blocks, stop_reason=stop)


def result(id_: str, text: str = "out") -> ToolResultMessage:
    return ToolResultMessage(id_, "tool", (TextBlock(text),))


def shape(turns: tuple[Turn, ...]) -> list[str]:
    out = []
    for turn in turns:
        calls = "".join(f"+{c.id}" for c in turn.tool_calls)
        out.append(f"{turn.role}{calls}{turn.tool_call_id and ':' + turn.tool_call_id}")
    return out


def test_a_half_written_call_of_a_failed_answer_goes_with_its_result() -> None:
    turns = ready(user("go"), call("t1", stop="error"), result("t1"), user("hello?"))
    assert shape(turns) == ["user", "assistant", "user"]
    assert turns[1].parts[0].text == UNFINISHED["error"]
    assert check(turns) == []


def test_a_missing_result_is_stood_in_for() -> None:
    turns = ready(user("go"), call("t1", "t2"), result("t2"), user("and?"))
    assert shape(turns) == ["user", "assistant+t1+t2", "tool:t1", "tool:t2", "user"]
    assert turns[2].is_error
    assert turns[2].parts[0].text == LOST_RESULT


def test_results_move_behind_their_call_in_call_order() -> None:
    turns = ready(user("go"), call("a", "b"), result("b"), user("meanwhile"), result("a"))
    assert shape(turns) == ["user", "assistant+a+b", "tool:a", "tool:b", "user"]


def test_orphans_and_duplicates_go() -> None:
    turns = ready(result("x"), user("go"), call("a"), result("a", "1"), result("a", "2"))
    assert shape(turns) == ["user", "assistant+a", "tool:a"]
    assert turns[2].parts[0].text == "1"


def test_ids_that_a_server_uses_again_pair_with_the_nearest_call() -> None:
    turns = ready(
        user("go"), call("0"), result("0", "first"), call("0"), result("0", "second"), user("?")
    )
    assert [t.parts[0].text for t in turns if t.role == "tool"] == ["first", "second"]
    assert check(turns) == []


def test_neighbours_of_one_speaker_are_merged_and_empty_ones_dropped() -> None:
    turns = ready(user("a"), AssistantMessage((TextBlock(" "),)), user("b"), user(""))
    assert shape(turns) == ["user"]
    assert [part.text for part in turns[0].parts] == ["a", "b"]


def test_a_trim_between_call_and_result_never_parts_them() -> None:
    # 12 messages; the large assistant text makes the cut fall between a call and its result.
    messages: list[Message] = []
    for n in range(3):
        messages += [user(f"q{n}"), call(f"t{n}", text="word " * 8_000), result(f"t{n}")]
        messages += [call(text="ok", stop="stop")]
    turns = turns_of(stored(*messages))
    for cut in range(len(turns)):
        assert check(repair(turns[cut:])) == []
    fitted = fit(turns, 16_000)
    assert fitted.left_out > 0
    out = repair(fitted.turns)
    assert check(out) == []
    assert out[0].role == "user"


TEXTS = st.sampled_from(["", " ", "words", "more words"])
IDS = st.sampled_from(["", "a", "b", "c"])
BLOCKS = st.one_of(
    st.builds(TextBlock, TEXTS),
    st.builds(ThinkingBlock, TEXTS),
    st.builds(ToolCallBlock, IDS, st.sampled_from(["tool", "", "bad name!"]), st.just({})),
)
CONTENT = st.lists(BLOCKS, max_size=4).map(tuple)
MESSAGES = st.one_of(
    st.builds(UserMessage, st.lists(st.builds(TextBlock, TEXTS), max_size=2).map(tuple)),
    st.builds(
        AssistantMessage,
        CONTENT,
        stop_reason=st.sampled_from(["stop", "toolUse", "error", "aborted", "length"]),
    ),
    st.builds(
        ToolResultMessage, IDS, st.just("tool"), st.builds(TextBlock, TEXTS).map(lambda b: (b,))
    ),
)


@given(st.lists(MESSAGES, max_size=12), st.integers(0, 12))
def test_any_transcript_cut_anywhere_goes_out_well_formed(
    messages: list[Message], cut: int
) -> None:
    turns = repair(turns_of(stored(*messages))[cut:])
    assert check(turns) == []
    ids = [part.id for turn in turns for part in (*turn.parts, *turn.reasoning)]
    ids += [c.arguments.id for turn in turns for c in turn.tool_calls]
    assert len(set(ids)) == len(ids)
    assert repair(turns) == turns


def test_wire_names_fit_every_provider() -> None:
    assert wire_name("read file!") == "read_file_"
    assert wire_name("") == "unknown"
    assert len(wire_name("x" * 100)) == 64
