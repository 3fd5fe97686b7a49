"""Generates command lines: plain ones that rules cover, and attacks of every family we know.

Deterministic: a case is a function of seed and number. Knows no policy and no parser.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.approvals.world import EXACT, OWN, RULED

CHARS = "abcxyzABZ0189_-+=.,:%@/é ü中"
TRICKY = ";|&<>()$`*?[]{}~#!^\\\"'\n\t "
SAFE_USES = {
    "sort": ["", "-u", "-rn", "-k 2", "-k2,2n", "-t : -k1", "--reverse", "--key=2", "-"],
    "grep": ["foo", "-c foo", "-e foo -e bar", "-vn foo", "-A 2 foo", "--count x", "-5 x"],
    "head": ["", "-n 5", "-5", "-c10", "--lines=3", "-q -n 1 -"],
    "tail": ["", "-n +5", "-5", "--lines=3"],
    "wc": ["", "-l", "-lw", "--bytes"],
    "tr": ["a-z A-Z", "-d x", "-s ' '", "-cd '[:alpha:]'"],
    "cut": ["-d: -f1", "-c 1-5", "-f 2 --output-delimiter=,", "-b1"],
    "uniq": ["", "-c", "-du", "-f 1", "--count"],
}
OPTIONS = ["-a", "-l", "-la", "-n", "--all", "-1", "-s", "--color=never", "-h", "+%s"]
WRAPS = ["nice ", "nice -n 5 ", "env ", "nohup ", "timeout 5 ", "timeout -k 1 -s KILL 5s ",
         "stdbuf -oL ", "stdbuf -o0 -e0 ", "nice env "]  # fmt: skip
JOINS = [" && ", " || ", " | ", "; ", "&&", "|", ";"]


def _lines(name: str) -> list[str]:
    text = Path(__file__).with_name(name).read_text("ascii")
    return [line.encode().decode("unicode_escape") for line in text.splitlines()[1:]]


FRAGMENTS = _lines("fragments.txt")
ATTACKS = _lines("attacks.txt")


@dataclass(frozen=True, slots=True)
class Case:
    """A command; `plain` says that rules cover all of it and nothing in it is unusual."""

    text: str
    plain: bool


def case(seed: int, number: int) -> Case:
    """The command of this number."""
    rng = random.Random(f"{seed}:{number}")
    if rng.random() < 0.45:
        return Case(plain(rng), True)
    kind = rng.random()
    if kind < 0.35:
        text = attack(rng)
    elif kind < 0.8:
        text = mutated(rng, plain(rng) if rng.random() < 0.8 else attack(rng))
    else:
        text = soup(rng)
    if rng.random() < 0.3:
        one, other = text, plain(rng)
        text = rng.choice(JOINS).join([one, other] if rng.random() < 0.5 else [other, one])
    return Case(text, False)


def plain(rng: random.Random) -> str:
    """One to four covered programs."""
    count = rng.choice([1, 1, 1, 1, 2, 2, 3, 4])
    text = _command(rng, first=True)
    for _ in range(count - 1):
        text += rng.choice(JOINS) + _command(rng, first=False)
    return (" " * rng.choice([0, 0, 0, 1, 3])) + text + rng.choice(["", "", "", " ", ";", "\n"])


def attack(rng: random.Random) -> str:
    command = plain(rng).strip().rstrip(";")
    text = rng.choice(ATTACKS)
    return text.format(c=command, q="'id'", long="x" * rng.choice([5000, 70_000]))


def mutated(rng: random.Random, text: str) -> str:
    """Between one and three changes at random places."""
    for _ in range(rng.choice([1, 1, 2, 3])):
        at = rng.randrange(len(text) + 1)
        text = rng.choice(_CHANGES)(rng, text, at)
    return text


def soup(rng: random.Random) -> str:
    pieces: Sequence[str] = [
        *FRAGMENTS,
        *TRICKY,
        *RULED,
        *WRAPS,
        "id",
        "sh",
        "-c",
        " ",
        " ",
        " ",
        "x",
    ]
    return "".join(rng.choice(pieces) for _ in range(rng.randrange(1, 14)))


_CHANGES: list[Callable[[random.Random, str, int], str]] = [
    lambda rng, text, at: text[:at] + rng.choice(FRAGMENTS) + text[at:],
    lambda rng, text, at: text[:at] + " " + rng.choice(FRAGMENTS) + " " + text[at:],
    lambda rng, text, at: text + rng.choice(FRAGMENTS),
    lambda rng, text, at: rng.choice(FRAGMENTS) + text,
    lambda rng, text, at: text[:at] + rng.choice(TRICKY) + text[at:],
    lambda rng, text, at: text[:at] + text[at + 1 :],
    lambda rng, text, at: text[:at] + rng.choice(TRICKY) + text[at + 1 :],
    lambda rng, text, at: text[:at] + chr(rng.randrange(1, 0x3000)) + text[at:],
    lambda rng, text, at: text[:at] + text[: rng.randrange(len(text) + 1)] + text[at:],
]


def _command(rng: random.Random, *, first: bool) -> str:
    wrap = rng.choice(WRAPS) if rng.random() < 0.12 else ""
    kind = rng.random()
    if kind < 0.25 and not first:
        name = rng.choice(list(SAFE_USES))
        return f"{wrap}{name} {rng.choice(SAFE_USES[name])}".rstrip()
    if kind > 0.95:
        name = rng.choice(list(EXACT))
        exact = rng.choice(EXACT[name])
        return wrap + " ".join([name, *(quoted(rng, word) for word in exact)])
    name = rng.choice([*RULED, *OWN])
    if rng.random() < 0.1 and name in RULED:
        name = rng.choice([f"/usr/bin/{name}", f"'{name}'", f'"{name}"', f"\\{name}"])
    words = [_word(rng) for _ in range(rng.choice([0, 0, 1, 1, 2, 3, 8]))]
    return wrap + rng.choice([" ", "  ", "\t"]).join([name, *words])


def _word(rng: random.Random) -> str:
    if rng.random() < 0.3:
        return rng.choice(OPTIONS)
    letters = CHARS if rng.random() < 0.7 else CHARS + TRICKY
    return quoted(rng, "".join(rng.choice(letters) for _ in range(rng.randrange(0, 9))))


def quoted(rng: random.Random, word: str) -> str:
    """The word as a shell reads it back, in one of the usual ways or a mixture."""
    way = rng.random()
    simple = word and all((c.isalnum() and c.isascii()) or c in "_-+.,:%@/" for c in word)
    if simple and way < 0.5:
        return word
    if way < 0.7:
        return "'" + word.replace("'", "'\\''") + "'"
    if way < 0.9 and "\n" not in word:
        return '"' + "".join("\\" + c if c in '$`"\\' else c for c in word) + '"'
    if "\n" in word or not word:
        return "'" + word.replace("'", "'\\''") + "'"
    if way < 0.95:
        return "".join(c if c.isalnum() or c in "_-./" else "\\" + c for c in word)
    half = len(word) // 2
    return quoted(rng, word[:half]) + quoted(rng, word[half:])
