from __future__ import annotations

import re

import pytest

from claw_engine import patterns
from claw_engine.patterns import compile_next, late


def test_a_late_pattern_works_as_a_compiled_one() -> None:
    made, now = late(r"(?P<a>x)(y)?", re.I), re.compile(r"(?P<a>x)(y)?", re.I)
    text = "aXYbxc"
    assert made.sub("-", text) == now.sub("-", text)
    assert made.findall(text) == now.findall(text)
    assert [m.span() for m in made.finditer(text)] == [m.span() for m in now.finditer(text)]
    assert (made.pattern, made.flags, made.groups) == (now.pattern, now.flags, now.groups)
    assert made.fullmatch("xy") and made.match("x") and not made.search("b")
    assert made.split(text) == now.split(text)


def test_it_takes_bytes_too() -> None:
    assert late(rb"\x1b\[").sub(b"", b"\x1b[a") == b"a"


def test_a_wrong_pattern_is_an_error_at_its_first_use() -> None:
    made = late("(")
    patterns._waiting.remove(made)  # type: ignore[arg-type]  # it only looks like a pattern
    with pytest.raises(re.error):
        made.search("x")


def test_the_rest_is_compiled_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "_waiting", [])
    used, unused = late("used"), late("unused")
    assert used.search("used")
    assert compile_next()
    assert "search" in vars(unused)
    assert not compile_next()
