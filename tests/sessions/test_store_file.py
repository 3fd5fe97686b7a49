from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_engine.sessions.entry import SessionEntry
from claw_engine.sessions.store_file import BrokenStore, Record, decode, render, scan

GOLDEN = Path(__file__).parents[1] / "golden/state/agents/main/sessions/sessions.json"

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
stores = st.dictionaries(st.text(), st.dictionaries(st.text(), values, max_size=4), max_size=5)


def records(data: bytes) -> list[Record]:
    return [record for record, _ in scan(decode(data))]


def test_the_captured_file_comes_back_byte_for_byte() -> None:
    data = GOLDEN.read_bytes()
    assert render(records(data)) == data


def test_one_changed_entry_leaves_every_other_byte_alone() -> None:
    data = GOLDEN.read_bytes()
    read = records(data)
    entry = read[1].entry
    assert entry is not None
    read[1] = Record(read[1].key, entry.replace(updatedAt=1, label=None))
    changed = render(read)
    expected = json.loads(data)
    expected[read[1].key]["updatedAt"] = 1
    expected[read[1].key].pop("label", None)
    assert changed == json.dumps(expected, indent=2, ensure_ascii=False).encode()


@given(stores, st.sampled_from([None, 2, "\t"]))
def test_any_layout_is_read_and_keeps_its_bytes(
    store: dict[str, dict[str, object]], indent: int | str | None
) -> None:
    data = json.dumps(store, indent=indent).encode()
    read = records(data)
    assert {r.key: dict(r.entry.raw) if r.entry else None for r in read} == store
    assert json.loads(render(read)) == store


@given(stores.filter(bool), st.data())
def test_a_cut_file_gives_its_whole_entries(
    store: dict[str, dict[str, object]], draw: st.DataObject
) -> None:
    data = json.dumps(store, indent=2).encode()
    cut = draw.draw(st.integers(0, len(data) - 1))
    seen: list[Record] = []
    with pytest.raises(BrokenStore):
        seen.extend(record for record, _ in scan(data[:cut].decode()))
    it = scan(data[:cut].decode())
    whole: dict[str, object] = {}
    with pytest.raises(BrokenStore):
        while True:
            record, _ = next(it)
            whole[record.key] = dict(record.entry.raw) if record.entry else None
    assert whole.items() <= store.items()


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "{",
        "[]",
        "null",
        "\0" * 64,
        '{"a":1',
        '{"a":1}x',
        "{1:2}",
        '{"a" 1}',
        '{"a":1,}',
        '{"a":{"b":}}',
    ],
)
def test_what_is_no_object_is_broken(text: str) -> None:
    with pytest.raises(BrokenStore):
        list(scan(text))


def test_a_bom_and_trailing_nul_are_read_over_and_bad_bytes_survive() -> None:
    assert [r.key for r in records(b'\xef\xbb\xbf{"a": {}}')] == ["a"]
    assert [r.key for r in records(b'{"a": {}}\n\0\0')] == ["a"]
    odd = b'{\n  "a": {\n    "name": "\xff"\n  }\n}'
    assert render(records(odd)) == odd


def test_members_that_are_no_entries_are_kept() -> None:
    data = b'{\n  "a": null,\n  "b": [\n    1\n  ]\n}'
    assert [r.entry for r in records(data)] == [None, None]
    assert render(records(data)) == data


def test_an_entry_keeps_fields_it_does_not_know() -> None:
    entry = SessionEntry("k", {"sessionId": "a", "strange": {"x": 1}})
    changed = entry.replace(model="m")
    assert changed.raw == {"sessionId": "a", "strange": {"x": 1}, "model": "m"}
    assert entry.raw == {"sessionId": "a", "strange": {"x": 1}}
