from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_engine.inbox.ledger import Ledger, accepted_record, mark_record
from claw_engine.inbox.model import Accepted, InboundMessage, Mark, inbound_from_json

names = st.sampled_from("abcd")
steps = st.lists(
    st.tuples(names, st.none() | st.sampled_from(list(Mark))),
    max_size=30,
)


def message(name: str) -> InboundMessage:
    return InboundMessage(name, "agent:main:main", "main", f"text {name}", "console", 1)


def played(moves: list[tuple[str, Mark | None]]) -> tuple[Ledger, list[Mapping[str, object]]]:
    """A ledger after these steps (None = accept), and the records a journal would hold."""
    ledger, records = Ledger(), list[Mapping[str, object]]()
    for name, mark in moves:
        if mark is not None:
            records.append(mark_record(ledger.next_seq(), 5, name, mark, "why"))
            ledger.mark(name, mark)
        elif ledger.known(message(name)) is None:
            accepted = Accepted(ledger.next_seq(), 5, message(name))
            records.append(accepted_record(accepted))
            ledger.accept(accepted)
    return ledger, records


def state(ledger: Ledger) -> object:
    known = [ledger.known(message(name)) for name in "abcd"]
    ends = [(k.seq, k.ts, k.state) if k is not None else None for k in known]
    return ledger.not_started(), ledger.started(), ends, ledger.seq


def read(records: list[Mapping[str, object]]) -> Ledger:
    ledger = Ledger()
    for record in records:
        assert ledger.apply(json.loads(json.dumps(record)))
    return ledger


@given(steps)
def test_reading_the_records_gives_the_state_that_wrote_them(
    moves: list[tuple[str, Mark | None]],
) -> None:
    ledger, records = played(moves)
    assert state(read(records)) == state(ledger)


@given(steps)
def test_a_compacted_journal_means_the_same(moves: list[tuple[str, Mark | None]]) -> None:
    ledger, _ = played(moves)
    again = read(list(ledger.records(9)))
    assert state(again) == state(ledger)
    assert again.next_seq() == ledger.next_seq()


@given(steps)
def test_numbers_only_grow(moves: list[tuple[str, Mark | None]]) -> None:
    seqs = [record["seq"] for record in played(moves)[1]]
    assert seqs == sorted(set(seqs))


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"v": 1, "seq": "1", "kind": "accepted", "id": "a"},
        {"v": 1, "seq": 1, "kind": 7, "id": "a"},
        {"v": 0, "seq": 1, "kind": "done", "id": "a"},
        {"v": 1, "seq": 1, "kind": "done"},
        {"v": 1, "seq": 1, "kind": "accepted", "id": "a", "msg": "text"},
        {"v": 1, "seq": 1, "kind": "sideways", "id": "a"},
    ],
)
def test_a_record_that_makes_no_sense_is_refused(record: dict[str, object]) -> None:
    ledger = Ledger()
    assert not ledger.apply(record)
    assert ledger.not_started() == ()


@given(
    st.builds(
        InboundMessage,
        st.text(),
        st.text(),
        st.text(),
        st.text(),
        st.text(),
        st.integers(0),
        st.none() | st.text(),
        st.dictionaries(st.text(), st.text() | st.integers() | st.none(), max_size=3),
    )
)
def test_a_message_survives_its_record(sent: InboundMessage) -> None:
    raw = json.loads(json.dumps(sent.to_json()))
    assert inbound_from_json(sent.id, raw) == sent


def test_a_record_with_missing_fields_still_gives_a_message() -> None:
    assert inbound_from_json("r", {}) == InboundMessage("r", "", "", "", "", 0)
