"""How the tables of this room are written: names in one string, one set of words."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """The words of a text, split at blanks."""
    return frozenset(text.split())
