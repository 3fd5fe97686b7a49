"""Key names as tmux has them, and the bytes a terminal sends for them.

Pure. Sequences are xterm's; modifiers follow its `1;N` form. Knows no process.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from claw_engine.patterns import late

_NAMED: Mapping[str, str] = {
    "enter": "\r",
    "return": "\r",
    "tab": "\t",
    "escape": "\x1b",
    "esc": "\x1b",
    "space": " ",
    "bspace": "\x7f",
    "backspace": "\x7f",
    "btab": "\x1b[Z",
}
_CURSOR: Mapping[str, str] = {
    "up": "A", "down": "B", "right": "C", "left": "D", "end": "F", "home": "H",
    "f1": "P", "f2": "Q", "f3": "R", "f4": "S",
}  # fmt: skip
_TILDE: Mapping[str, int] = {
    "insert": 2, "ic": 2, "delete": 3, "dc": 3,
    "pageup": 5, "pgup": 5, "ppage": 5, "pagedown": 6, "pgdn": 6, "npage": 6,
    "f5": 15, "f6": 17, "f7": 18, "f8": 19, "f9": 20, "f10": 21, "f11": 23, "f12": 24,
}  # fmt: skip
NAMES: tuple[str, ...] = (*_NAMED, *_CURSOR, *_TILDE)
"""Every name, in lower case; case does not count."""

_MODIFIERS = late(r"(?:[CMS]-(?=.))*", re.IGNORECASE | re.DOTALL)
_HEX = late(r"(?:0x)?(?P<pairs>(?:[0-9a-f]{2})+)", re.IGNORECASE)
PASTE_BEGIN, PASTE_END = "\x1b[200~", "\x1b[201~"


class UnknownKey(ValueError):
    """Not a key; the message names a near one or says how text is sent."""


def encode(key: str, *, terminal: bool = True, application: bool = False) -> bytes:
    """What one key sends. Without a `terminal` Enter is a line feed.

    `application` is the form of the cursor keys that full-screen programs ask for. Raises
    UnknownKey.
    """
    if len(key) == 1:
        return key.encode()
    if len(key) == 2 and key[0] == "^":
        key = f"C-{key[1]}"
    found = _MODIFIERS.match(key)
    prefix = found[0].upper() if found is not None else ""
    base = key[len(prefix) :]
    shift, meta, control = "S-" in prefix, "M-" in prefix, "C-" in prefix
    name = base.lower()
    number = 1 + shift + 2 * meta + 4 * control
    if name in _CURSOR:
        letter = _CURSOR[name]
        if number > 1:
            return f"\x1b[1;{number}{letter}".encode()
        ss3 = letter in "PQRS" or application
        return f"\x1b{'O' if ss3 else '['}{letter}".encode()
    if name in _TILDE:
        modifier = f";{number}" if number > 1 else ""
        return f"\x1b[{_TILDE[name]}{modifier}~".encode()
    if name == "tab" and shift:
        text = _NAMED["btab"]
    elif name in _NAMED:
        text = _NAMED[name]
    elif len(base) == 1:
        text = base.upper() if shift else base
    else:
        raise UnknownKey(_advice(key))
    if control:
        text = _control(text, key)
    if text == "\r" and not terminal:
        text = "\n"
    return (f"\x1b{text}" if meta else text).encode()


def encode_all(keys: Iterable[str], *, terminal: bool = True, application: bool = False) -> bytes:
    """All keys in order. Raises UnknownKey before any byte of them is used."""
    return b"".join(encode(key, terminal=terminal, application=application) for key in keys)


def from_hex(pieces: Iterable[str]) -> bytes:
    """Bytes written as `1b`, `0x0d` or `1b5b41`. Raises UnknownKey."""
    data = b""
    for piece in pieces:
        found = _HEX.fullmatch(piece.strip())
        if found is None:
            raise UnknownKey(f"{piece!r} is not a byte in hex, such as 1b or 0x0d.")
        data += bytes.fromhex(found["pairs"])
    return data


def pasted(text: str, *, terminal: bool, bracketed: bool) -> bytes:
    """Text as a terminal pastes it: lines end with CR, and nothing in it can end the bracket."""
    if not terminal:
        return text.encode()
    text = text.replace("\r\n", "\r").replace("\n", "\r")
    if bracketed:
        # Taking one out may join the rest into another.
        while PASTE_END in text or PASTE_BEGIN in text:
            text = text.replace(PASTE_END, "").replace(PASTE_BEGIN, "")
        text = f"{PASTE_BEGIN}{text}{PASTE_END}"
    return text.encode()


def _control(text: str, key: str) -> str:
    if text in (" ", "@"):
        return "\0"
    if text == "?":
        return "\x7f"
    upper = text.upper()
    if len(upper) == 1 and "A" <= upper <= "_":
        return chr(ord(upper) & 0x1F)
    if text in ("\r", "\t", "\x1b", "\x7f", _NAMED["btab"]):
        return text  # a terminal has no other byte for these
    raise UnknownKey(f"{key!r}: there is no control character for {text!r}.")


def _advice(key: str) -> str:
    import difflib  # only for a name that is wrong

    near = difflib.get_close_matches(key.lower(), NAMES, n=1)
    guess = f" Did you mean {near[0].capitalize()}?" if near else ""
    return (
        f"{key!r} is not a key.{guess} Keys are single characters, Enter, Tab, Escape, Up, F1 …, "
        "with C-, M- or S- before them; text goes into `literal`."
    )
