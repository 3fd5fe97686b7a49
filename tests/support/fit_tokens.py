"""Fits the weights of the token estimator anew: `python -m tests.support.fit_tokens`.

Ridge regression of o200k's counts on the estimator's patterns, over pieces of the ten calibrating
texts, no weight below zero, drawn a little to what one would expect by hand (`EXPECTED`). It prints
the table for claw_engine/agent/context/tokens.py and the error on the texts that it did not see.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from claw_engine.agent.context import tokens
from tests.support.tokenizer import real

TEXTS = Path(__file__).parent.parent / "golden" / "tokens"
PIECE = 600
"""Characters of a piece: small enough that a text gives many equations."""
PULL = 0.02
"""How strongly weights are drawn to what is expected."""
ROUNDS = 400

EXPECTED = {
    "aA": 0.6, "AAA": 0.8, "Aa": 0.1, "0a": 0.3, "0A": 0.3, "a0": 0.3, "A0": 0.3,
    "..": 0.5, " .": 0.7, "a.": 0.6, "0.": 0.6, "n.": 0.6, "A.": 0.6, "T.": 0.9,
    "an": 0.9, "0n": 0.9, ".n": 0.2, " n": 0.5, "nn": 0.3,
    "n  ": 0.9, "a  ": 0.9, ".  ": 0.9, "0  ": 0.9, "TT": 0.4, "T0": 0.9, " 0": 0.5,
    "L": 0.6, "G": 0.45, "Y": 0.3, "R": 0.4, "I": 0.5, "O": 0.8, "P": 1.0, "K": 0.6, "C": 0.7,
    "H": 0.7, "F": 0.8, "E": 2.0,
    "~ a": 1.0, "~.a": 0.6, "~na": 1.0, "~Ta": 1.0, "~0a": 0.6, "~aaaaaaa": 0.2,
    "~aaaaaaaaaaaa": 0.5,
    "000": 1.0, "0": 1.0, "text": 0.5,
}  # fmt: skip
"""A text's own constant is `text`; `000` and `0` are groups of three digits and what is left."""


@cache
def texts(folder: str) -> Mapping[str, str]:
    """The texts of a folder by name."""
    return {
        path.stem: path.read_text(encoding="utf-8")
        for path in sorted((TEXTS / folder).glob("*.txt"))
    }


def fit() -> dict[str, float]:
    """The weights."""
    tokens.WEIGHTS.update(dict.fromkeys(EXPECTED, 0.0))
    names = list(EXPECTED)
    rows: list[tuple[list[int], int, float]] = []
    for text in texts("calibrating").values():
        pieces = [text[at : at + PIECE] for at in range(0, len(text), PIECE)]
        weighted = [(piece, 1 / len(pieces)) for piece in pieces if len(piece) > 50]
        for piece, weight in [*weighted, (text, 9.0)]:
            found, wanted = tokens.counts(piece), real(piece)
            rows.append(([found[name] for name in names], wanted, weight / wanted**2))
    return dict(zip(names, _descend(rows, list(EXPECTED.values())), strict=True))


def _descend(rows: list[tuple[list[int], int, float]], expected: list[float]) -> list[float]:
    """Coordinate descent: each weight in turn takes the value that is best for all others."""
    found = list(expected)
    columns = [[row[j] for row, _, _ in rows] for j in range(len(found))]
    weights = [weight for _, _, weight in rows]
    scale = [sum(w * x * x for w, x in zip(weights, c, strict=True)) for c in columns]
    pull = PULL * sum(scale) / len(scale)
    miss = [y - sum(a * b for a, b in zip(row, found, strict=True)) for row, y, _ in rows]
    for _ in range(ROUNDS):
        for j, column in enumerate(columns):
            gain = sum(w * x * r for w, x, r in zip(weights, column, miss, strict=True) if x)
            step = (gain + pull * (expected[j] - found[j])) / (scale[j] + pull)
            new = max(0.0, found[j] + step)
            if new != found[j]:
                miss = [r - (new - found[j]) * x for r, x in zip(miss, column, strict=True)]
                found[j] = new
    return found


def main() -> None:
    """Print the table, and how far it is off."""
    weights = {name: round(weight, 2) for name, weight in fit().items()}
    line = "   "
    for name, weight in weights.items():
        entry = f" {json.dumps(name)}: {weight},"
        if len(line) + len(entry) > 98:
            print(line)
            line = "   "
        line += entry
    print(line)
    for folder in ("calibrating", "checking"):
        for name, text in texts(folder).items():
            found = tokens.counts(text)
            guess = sum(weights[key] * found[key] for key in weights)
            print(f"{folder:<12} {name:<16} {100 * (guess / real(text) - 1):+.1f} %")


if __name__ == "__main__":
    main()
