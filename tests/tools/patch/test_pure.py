"""The patch format: reading it, and what it makes of a text."""

from __future__ import annotations

import difflib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_engine.tools.patch.apply import apply
from claw_engine.tools.patch.parse import (
    AddFile,
    DeleteFile,
    PatchRefused,
    UpdateFile,
    parse,
)


def patch(*lines: str) -> str:
    return "\n".join(("*** Begin Patch", *lines, "*** End Patch"))


def changed(original: str, *lines: str) -> str:
    (operation,) = parse(patch("*** Update File: a", *lines))
    assert isinstance(operation, UpdateFile)
    return apply(original, operation.chunks, "a")


def test_all_kinds_of_operations_are_read_in_order() -> None:
    found = parse(
        patch(
            "*** Add File: new/a.txt", "+one", "+", "+two",
            "*** Delete File: b.txt",
            "*** Update File: c.txt", "*** Move to: d.txt", "@@ def f():", " x", "-y", "+z",
            "*** End of File",
        )
    )  # fmt: skip
    assert found[0] == AddFile("new/a.txt", ["one", "", "two"])
    assert found[1] == DeleteFile("b.txt")
    update = found[2]
    assert isinstance(update, UpdateFile)
    assert (update.path, update.move_to) == ("c.txt", "d.txt")
    (chunk,) = update.chunks
    assert (chunk.anchor, chunk.old, chunk.at_end) == ("def f():", ["x", "y"], True)
    assert chunk.lines == [(" ", "x"), ("-", "y"), ("+", "z")]


@pytest.mark.parametrize(
    "wrapped",
    [
        "<<'EOF'\n{}\nEOF",
        "<<EOF\n{}\nEOF\n",
        "apply_patch <<'PATCH'\n{}\nPATCH",
        "\n\n{}\n\n",
        "{}\r\n",
    ],
)
def test_a_wrapper_around_the_patch_is_forgiven(wrapped: str) -> None:
    inner = patch("*** Delete File: a")
    assert parse(wrapped.format(inner)) == [DeleteFile("a")]
    assert parse(wrapped.format(inner.replace("\n", "\r\n"))) == [DeleteFile("a")]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "must begin"),
        ("*** Begin Patch", "must end"),
        ("*** Begin Patch\n*** End Patch", "changes no file"),
        (patch("*** Add File:  ", "+x"), "Line 2 of the patch names no file"),
        (patch("*** Add File: a", "x"), "Line 3 of the patch: each line of a new file"),
        (patch("*** Delete File: a", "-x"), "Line 3 of the patch: nothing may follow"),
        (patch("*** Frobnicate: a"), "Line 2 of the patch is not understood"),
        (patch("*** Update File: a"), "no chunk"),
        (patch("*** Update File: a", "@@"), "is empty"),
        (patch("*** Update File: a", "@@ x"), "is empty"),
        (patch("*** Update File: a", "@@", "?x"), "Line 4 of the patch must begin with"),
        (patch("*** Update File: a", "*** Move to: "), "names no file to move to"),
        (patch("*** Update File: a", "*** End of File"), "no chunk before"),
        (patch("*** Update File: a", "@@", " x", "*** Move to: b"), "Line 5 of the patch must"),
    ],
)
def test_what_cannot_be_read_names_its_line(text: str, word: str) -> None:
    with pytest.raises(PatchRefused, match="(?s).*" + word.replace("?", "[?]")):
        parse(text)


@pytest.mark.parametrize(
    ("original", "lines", "expected"),
    [
        ("a\nb\nc\n", ["@@", " a", "-b", "+B", " c"], "a\nB\nc\n"),
        ("a\nb\nc\n", ["-b", "+B"], "a\nB\nc\n"),
        ("a\nb\nc", ["@@", "-c", "+C"], "a\nb\nC"),
        ("a\r\nb\r\n", ["@@", "-b", "+B", "+C"], "a\r\nB\r\nC\r\n"),
        ("\ufeffa\nb\n", ["@@", "-a", "+A"], "\ufeffA\nb\n"),
        ("x\nf:\nx\n", ["@@ f:", "-x", "+y"], "x\nf:\ny\n"),
        ("c1\n f\n x\nc2\n f\n x\n", ["@@ c2", "@@  f", "- x", "+ y"],
         "c1\n f\n x\nc2\n f\n y\n"),
        ("x\ny\nx\n", ["@@", "-x", "+z", "*** End of File"], "x\ny\nz\n"),
        ("a\n", ["@@", "+b"], "a\nb\n"),
        ("", ["@@", "+b"], "b\n"),
        ("f:\nend\n", ["@@ f:", "+  x"], "f:\n  x\nend\n"),
        ("a  \nb\n", ["@@", " a", "-b", "+B"], "a  \nB\n"),
        ("\ta\nb\n", ["@@", " a", "-b", "+B"], "\ta\nB\n"),
        ("a\n\nb\n", ["@@", " a", "", "-b", "+B"], "a\n\nB\n"),
        ("a\nb\n", ["@@", "-b", "+B", "", ""], "a\nB\n"),
        ("1\n2\n3\n4\n", ["@@", "-1", "+one", "@@", "-4", "+four"], "one\n2\n3\nfour\n"),
        ("a\nb\n", ["@@", "-a", "-b"], ""),
    ],
)  # fmt: skip
def test_chunks_change_the_one_place_they_name(
    original: str, lines: list[str], expected: str
) -> None:
    assert changed(original, *lines) == expected


@pytest.mark.parametrize(
    ("original", "lines", "word"),
    [
        ("x\ny\nx\n", ["@@", "-x", "+z"], r"fits in 2 places \(lines 1, 3\)"),
        ("a\n", ["@@", "-b", "+B"], "no line 'b'"),
        ("a\nb\n", ["@@", " a", "-c", "+B"], "is at line 1 of the file"),
        ("a\nb\n", ["@@ q", "-a", "+B"], "no line 'q'"),
        ("a\nb\n", ["@@", "-b", "+B", "@@", "-a", "+A"], "below the chunk before it"),
        ("a\nb\n", ["@@", "-a", "+A", "*** End of File"], "fits nowhere"),
    ],
)
def test_a_chunk_that_names_no_single_place_is_refused(
    original: str, lines: list[str], word: str
) -> None:
    with pytest.raises(PatchRefused, match=word):
        changed(original, *lines)


LINES = st.lists(st.text("abc \t", max_size=4), max_size=12)


@given(LINES, LINES)
def test_a_patch_made_from_two_texts_gives_the_second_or_is_refused(
    old: list[str], new: list[str]
) -> None:
    """Chunks with all the lines around them: never another text, whatever repeats."""
    before, after = ("".join(f"{line}\n" for line in lines) for lines in (old, new))
    chunk = [line for line in difflib.ndiff(old, new) if line[0] != "?"]
    if not old or old == new:
        return
    lines = [f"{line[0]}{line[2:]}" for line in chunk]
    assert changed(before, "@@", *lines, "*** End of File") == after


@given(st.lists(st.text("abcdefgh", min_size=3, max_size=6), min_size=1, max_size=30, unique=True),
       st.data())  # fmt: skip
def test_small_chunks_between_unique_lines_all_land(lines: list[str], data: st.DataObject) -> None:
    new = [data.draw(st.sampled_from([line, line.upper(), ""])) for line in lines]
    chunks: list[str] = []
    for before, (old, now) in zip([None, *lines], zip(lines, new, strict=True), strict=False):
        if old != now:
            chunks += ["@@" if before is None else f"@@ {before}", f"-{old}"]
            chunks += [f"+{now}"] if now else []
    if not chunks:
        return
    # Neighbouring anchors may have been changed by the chunk before: then it is refused, no more.
    original = "".join(f"{line}\n" for line in lines)
    expected = "".join(f"{line}\n" for line in new if line)
    neighbours = any(a != b and c != d for (a, b), (c, d) in pairwise(zip(lines, new, strict=True)))
    try:
        assert changed(original, *chunks) == expected
    except PatchRefused:
        assert neighbours


@given(st.text("*@ +-abEF\n", max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    for candidate in (text, patch(text), patch("*** Update File: a", text)):
        try:
            operations = parse(candidate)
        except PatchRefused:
            continue
        assert operations
