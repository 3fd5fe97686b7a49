"""Key names become the bytes that xterm sends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_engine.tools.process.keys import (
    NAMES,
    PASTE_BEGIN,
    PASTE_END,
    UnknownKey,
    encode,
    encode_all,
    from_hex,
    pasted,
)

TABLE = [
    ("a", b"a"), ("ä", "ä".encode()), ("-", b"-"), ("^", b"^"),
    ("Enter", b"\r"), ("enter", b"\r"), ("Tab", b"\t"), ("Escape", b"\x1b"), ("Space", b" "),
    ("BSpace", b"\x7f"), ("BTab", b"\x1b[Z"), ("S-Tab", b"\x1b[Z"),
    ("Up", b"\x1b[A"), ("Left", b"\x1b[D"), ("Home", b"\x1b[H"), ("End", b"\x1b[F"),
    ("PageUp", b"\x1b[5~"), ("NPage", b"\x1b[6~"), ("Delete", b"\x1b[3~"), ("DC", b"\x1b[3~"),
    ("F1", b"\x1bOP"), ("F5", b"\x1b[15~"), ("F12", b"\x1b[24~"),
    ("C-c", b"\x03"), ("C-C", b"\x03"), ("c-c", b"\x03"), ("^C", b"\x03"), ("^[", b"\x1b"),
    ("C-d", b"\x04"), ("C-Space", b"\0"), ("C-@", b"\0"), ("C-\\", b"\x1c"), ("C-?", b"\x7f"),
    ("M-x", b"\x1bx"), ("M-C-c", b"\x1b\x03"), ("C-M-c", b"\x1b\x03"), ("M-Enter", b"\x1b\r"),
    ("S-a", b"A"), ("C-Up", b"\x1b[1;5A"), ("S-Up", b"\x1b[1;2A"), ("M-Left", b"\x1b[1;3D"),
    ("C-S-Right", b"\x1b[1;6C"), ("C-Delete", b"\x1b[3;5~"), ("S-F1", b"\x1b[1;2P"),
    ("C--", None), ("Entr", None), ("hello", None), ("", None), ("C-", None), ("C-hello", None),
    ("C-ä", None), ("F13", None),
]  # fmt: skip


@pytest.mark.parametrize(("key", "data"), TABLE)
def test_names(key: str, data: bytes | None) -> None:
    if data is None:
        with pytest.raises(UnknownKey):
            encode(key)
    else:
        assert encode(key) == data


def test_a_near_name_is_offered() -> None:
    with pytest.raises(UnknownKey, match="Did you mean Enter"):
        encode("Entr")
    with pytest.raises(UnknownKey, match="literal"):
        encode("git status")


def test_full_screen_programs_get_the_other_cursor_keys() -> None:
    assert encode("Up", application=True) == b"\x1bOA"
    assert encode("C-Up", application=True) == b"\x1b[1;5A"


def test_a_pipe_has_no_carriage_return() -> None:
    assert encode("Enter", terminal=False) == b"\n"
    assert pasted("a\nb", terminal=False, bracketed=True) == b"a\nb"


@given(
    st.sampled_from(NAMES),
    st.lists(st.sampled_from(["C-", "M-", "S-"]), unique=True, max_size=3),
    st.booleans(),
)
def test_every_name_takes_every_modifier_in_any_order_and_case(
    name: str, modifiers: list[str], upper: bool
) -> None:
    key = "".join(modifiers) + (name.upper() if upper else name)
    assert encode(key) == encode("".join(reversed(modifiers)) + name) != b""


@given(st.text(max_size=12))
def test_any_text_is_a_key_or_refused(text: str) -> None:
    try:
        data = encode(text)
    except (UnknownKey, UnicodeEncodeError):
        return
    assert data


@given(st.lists(st.sampled_from(["a", "Enter", "C-c", "Up"])))
def test_keys_come_in_order(keys: list[str]) -> None:
    assert encode_all(keys) == b"".join(encode(key) for key in keys)


@given(st.binary(min_size=1, max_size=20), st.sampled_from(["", "0x"]))
def test_hex_round_trip(data: bytes, prefix: str) -> None:
    assert from_hex([f"{prefix}{byte:02x}" for byte in data]) == data
    assert from_hex([data.hex().upper()]) == data


@pytest.mark.parametrize("piece", ["", "1", "0x", "zz", "1b5"])
def test_what_is_not_hex_is_refused(piece: str) -> None:
    with pytest.raises(UnknownKey):
        from_hex([piece])


MARKS = st.sampled_from([PASTE_BEGIN, PASTE_END, "\x1b[20", "1~", "\x1b", "a", "\n"])


@given(st.lists(MARKS, max_size=20).map("".join))
def test_pasted_text_cannot_end_its_own_bracket(text: str) -> None:
    data = pasted(text, terminal=True, bracketed=True).decode()
    assert data.startswith(PASTE_BEGIN) and data.endswith(PASTE_END)
    inner = data[len(PASTE_BEGIN) : -len(PASTE_END)]
    assert PASTE_END not in inner and PASTE_BEGIN not in inner
    assert "\n" not in inner
    # Nor may it join with the closing mark into an earlier one.
    assert data.index(PASTE_END, len(PASTE_BEGIN)) == len(data) - len(PASTE_END)
