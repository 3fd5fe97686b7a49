from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_engine.sessions import fields
from claw_engine.sessions.entry import SessionEntry
from claw_engine.sessions.fields import Fields
from claw_engine.sessions.store_file import (
    NotLaidOut,
    Record,
    decode,
    pieces,
    render,
    scan,
    scan_laid_out,
)
from claw_engine.sessions.table import Table

CAPTURED = Path(__file__).parents[1] / "golden/state-full/sessions.json"

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
entries = st.dictionaries(st.text(max_size=6), values, max_size=5)
stores = st.dictionaries(st.text(), entries, max_size=5)


def laid_out(store: object, *, ascii_only: bool = False) -> bytes:
    return json.dumps(store, indent=2, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")


def text_of(entry: object) -> bytes:
    """An entry as it stands inside a laid out file."""
    return laid_out(entry).replace(b"\n", b"\n  ")


def test_the_captured_store_is_found_entry_by_entry_and_comes_back() -> None:
    data = CAPTURED.read_bytes()
    records = [record for record, _ in scan_laid_out(data)]
    assert render(records) == data
    assert b"".join(pieces(records)) == data
    strict = [record for record, _ in scan(decode(data))]
    assert [(r.key, r.rendered()) for r in records] == [(r.key, r.text) for r in strict]
    for lazy, whole in zip(records, strict, strict=True):
        assert lazy.entry is not None
        assert whole.entry is not None
        assert dict(lazy.entry.raw) == whole.entry.raw


@pytest.mark.parametrize("key", list(json.loads(CAPTURED.read_bytes())))
def test_one_updated_field_leaves_every_other_byte_alone(key: str) -> None:
    data = CAPTURED.read_bytes()
    table = Table("main")
    for record, _ in scan_laid_out(data):
        table.adopt(record)
    entry = table.get(key)
    assert entry is not None
    table.put(entry.replace(totalTokens=4242))
    expected = json.loads(data)
    expected[key]["totalTokens"] = 4242
    assert render(table.in_file_order()) == laid_out(expected)
    table.put(entry)
    assert render(table.in_file_order()) == data


def test_odd_spellings_in_an_updated_entry_keep_their_bytes() -> None:
    odd = (
        b'{\n    "sessionId": "a",\n    "n": 1.50e3,\n    "big": 12345678901234567890123,\n'
        b'    "u": "\\u00e9\\/",\n    "bad": "\xff",\n    "deep": [ 1,2 ]\n  }'
    )
    data = b'{\n  "agent:main:main": ' + odd + b"\n}"
    table = Table("main")
    for record, _ in scan_laid_out(data):
        table.adopt(record)
    entry = table.get("agent:main:main")
    assert entry is not None
    table.put(entry.replace(sessionId="b"))
    assert render(table.in_file_order()) == data.replace(b'"sessionId": "a"', b'"sessionId": "b"')


@given(stores.filter(bool))
def test_a_laid_out_file_is_found_without_parsing(store: dict[str, dict[str, object]]) -> None:
    for ascii_only in (True, False):
        try:
            data = laid_out(store, ascii_only=ascii_only)
            data.decode()
        except UnicodeError:
            continue
        records = [record for record, _ in scan_laid_out(data)]
        assert {r.key: dict(r.entry.raw) if r.entry else None for r in records} == store
        assert render(records) == render([Record(r.key, r.entry, r.text) for r in records])


@given(stores, st.sampled_from([None, 1, 4, "\t"]))
def test_any_other_layout_is_left_to_the_parser(
    store: dict[str, dict[str, object]], indent: int | str | None
) -> None:
    data = json.dumps(store, indent=indent).encode()
    try:
        found = [record for record, _ in scan_laid_out(data)]
    except NotLaidOut:
        return
    assert {r.key: dict(r.entry.raw) if r.entry else None for r in found} == store


@given(entries.filter(bool), st.text(max_size=6))
def test_a_field_is_the_same_parsed_alone_or_with_all(entry: dict[str, object], other: str) -> None:
    data = json.dumps(entry, indent=2).replace("\n", "\n  ").encode()
    for name in (*entry, other):
        alone, whole = Fields(data), Fields(data)
        dict(whole)
        assert alone.get(name, "none") == whole.get(name, "none") == entry.get(name, "none")
        assert (name in Fields(data)) is (name in entry)
    assert Fields(data) == entry
    assert len(Fields(data)) == len(entry)


@given(entries, entries)
def test_a_change_is_rendered_as_what_it_means(
    old: dict[str, object], new: dict[str, object]
) -> None:
    mixed = {**old, **new}
    text = json.dumps(old, indent=2).replace("\n", "\n  ").encode()
    assert json.loads(fields.render(mixed, old, text)) == mixed


def test_a_damaged_entry_keeps_what_can_be_read() -> None:
    text = b'{\n    "sessionId": "a1",\n    "updatedAt": 7,\n    "x": {{,\n    "label": "L"\n  }'
    entry = SessionEntry("k", Fields(text))
    assert (entry.session_id, entry.updated_at, entry.text("label")) == ("a1", 7, "L")
    assert dict(entry.raw) == {"sessionId": "a1", "updatedAt": 7, "label": "L"}


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{}", b'{"a": {}}', b'{\n  "a": {}', b'{\n  "a": {}\n}x', b'{\n  "a" {}\n}',
        b'{\n  "a": {"b": 1}\n}', b'{\n  "a": {},\n  b: {}\n}', b'{\n  "a": \0{}\n}',
    ],
)  # fmt: skip
def test_what_looks_different_is_not_guessed_at(data: bytes) -> None:
    with pytest.raises(NotLaidOut):
        list(scan_laid_out(data))


def test_members_that_are_no_entries_are_kept() -> None:
    data = b'{\n  "a": null,\n  "b": [\n    1\n  ],\n  "c": {}\n}'
    records = [record for record, _ in scan_laid_out(data)]
    assert [r.entry is None for r in records] == [True, True, False]
    assert render(records) == data
