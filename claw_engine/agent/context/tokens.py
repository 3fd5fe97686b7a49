"""Token estimates without a tokenizer: within a tenth on prose, code, JSON and Chinese.

Pure and cheap: the text becomes one letter a character that says its class, and neighbours are
counted. Knows no model: what a provider counts corrects the estimate elsewhere (usage room).
"""

from __future__ import annotations

CHARS_PER_TOKEN = 4
"""Latin text and code: about four characters a token. For sizes of files, not for estimates."""

SAMPLE_OVER = 16_384
"""Characters above which a text is judged by slices: 64 of them, spread evenly."""
_SLICES = 64

WEIGHTS: dict[str, float] = {
    "aA": 0.76, "AAA": 0.62, "Aa": 0.35, "0a": 0.24, "0A": 0.32, "a0": 0.22, "A0": 0.34,
    "..": 0.5, " .": 0.92, "a.": 0.54, "0.": 0.81, "n.": 0.92, "A.": 0.61, "T.": 0.91, "an": 1.3,
    "0n": 0.94, ".n": 0.0, " n": 0.5, "nn": 0.36, "n  ": 0.73, "a  ": 0.96, ".  ": 0.92,
    "0  ": 0.9, "TT": 0.42, "T0": 0.96, " 0": 0.51, "L": 1.26, "G": 0.47, "Y": 0.38, "R": 0.43,
    "I": 0.52, "O": 0.8, "P": 0.83, "K": 0.76, "C": 0.77, "H": 0.82, "F": 0.8, "E": 1.98,
    "~ a": 0.98, "~.a": 0.74, "~na": 1.09, "~Ta": 0.97, "~0a": 0.56, "~aaaaaaa": 0.53,
    "~aaaaaaaaaaaa": 0.52, "000": 0.94, "0": 1.4, "text": 0.53,
}  # fmt: skip
"""Tokens that each occurrence of a pattern costs. Fitted to o200k by `tests.support.fit_tokens`
(ridge regression on the ten texts of tests/golden/tokens/calibrating); run it to fit anew.

Classes: a lower, A upper, 0 digit, `.` punctuation, space, T tab, n newline; by the first byte of
its UTF-8: L Latin with accents, G Greek, Y Cyrillic, R Arabic and Hebrew, I Indic and Thai, O other
scripts, P general punctuation and symbols, K kana and CJK punctuation, C Han, H hangul, F full
width, E emoji. In lower-case patterns after `~` both cases count as `a`."""


def _classes() -> bytes:
    table = bytearray(b"O" * 256)
    for code in range(128):
        char = chr(code)
        table[code] = ord(
            "a" if char.islower() else "A" if char.isupper() else "0" if char.isdigit()
            else "n" if char in "\n\r\v\f" else "T" if char == "\t" else " " if char == " "
            else "."
        )  # fmt: skip
    for first, last, name in (
        (0xC2, 0xCC, "L"), (0xCD, 0xCF, "G"), (0xD0, 0xD3, "Y"), (0xD4, 0xDF, "R"),
        (0xE0, 0xE0, "I"), (0xE2, 0xE2, "P"), (0xE3, 0xE3, "K"), (0xE4, 0xE9, "C"),
        (0xEA, 0xED, "H"), (0xEF, 0xEF, "F"), (0xF0, 0xF7, "E"),
    ):  # fmt: skip
        table[first : last + 1] = name.encode() * (last + 1 - first)
    return bytes(table)


_CLASSES = _classes()
_CONTINUATION = bytes(range(0x80, 0xC0))
_FOLD = bytes.maketrans(b"A", b"a")
_NAMES = tuple(bytes([code]) for code in sorted(set(_CLASSES)))
_Row = tuple[bytes, tuple[bytes, ...], float]
"""A pattern, the classes that it needs, and what it costs."""


def counts(text: str) -> dict[str, int]:
    """How often each pattern of the table occurs: what the fit works on."""
    plain, folded = _views(text)
    found = {name: (folded if name[0] == "~" else plain).count(_pattern(name)) for name in WEIGHTS}
    found["000"], found["0"] = _digits(plain)
    found["text"] = 1
    return found


def estimate(text: str) -> int:
    """Tokens that `text` is likely to cost; 0 only for the empty string."""
    if not text:
        return 0
    size = len(text)
    if size <= SAMPLE_OVER:
        return max(1, round(_tokens(text)))
    width, step = SAMPLE_OVER // _SLICES, size / _SLICES
    sample = "".join([text[(at := int(n * step)) : at + width] for n in range(_SLICES)])
    return round(_tokens(sample) * size / len(sample))


def _tokens(text: str) -> float:
    plain, folded = _views(text)
    there = {name for name in _NAMES if name in plain}
    total = _TEXT
    for pattern, needs, weight in _PLAIN:
        if there.issuperset(needs):
            total += weight * plain.count(pattern)
    for pattern, needs, weight in _FOLDED:
        if there.issuperset(needs):
            total += weight * folded.count(pattern)
    if b"0" in there:
        threes, rest = _digits(plain)
        total += _THREE * threes + _REST * rest
    return total


def _views(text: str) -> tuple[bytes, bytes]:
    plain = text.encode("utf-8", "surrogatepass").translate(_CLASSES, _CONTINUATION)
    return plain, plain.translate(_FOLD)


def _digits(plain: bytes) -> tuple[int, int]:
    """Groups of three digits, and what is left over at the end of numbers."""
    rest = plain.replace(b"000", b"")
    return (len(plain) - len(rest)) // 3, rest.count(b"0") - rest.count(b"00")


def _pattern(name: str) -> bytes:
    return name.lstrip("~").encode()


def _rows(folded: bool) -> tuple[_Row, ...]:
    out = []
    for name, weight in WEIGHTS.items():
        if weight and name not in _OWN and (name[0] == "~") == folded:
            pattern = _pattern(name)
            # Folded, an `a` may be an upper-case letter: it cannot be looked for in `there`.
            needs = {bytes([code]) for code in pattern if not folded or code != ord("a")}
            out.append((pattern, tuple(needs), weight))
    return tuple(out)


_OWN = frozenset({"000", "0", "text"})
_THREE, _REST, _TEXT = (WEIGHTS.get(name, 1.0) for name in ("000", "0", "text"))
_PLAIN, _FOLDED = _rows(False), _rows(True)
