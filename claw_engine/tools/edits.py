"""The exact, unique replacement behind the `edit` tool, as a pure function over text.

Knows nothing of files: line ends and a byte order mark are handled here because they decide what
matches, opening and writing are not.
"""

from __future__ import annotations

from msgspec import Struct

BOM = "\ufeff"
_LISTED = 10
_SEARCH_LINES = 4000
"""Lines compared for a near match: a bound on work, not on what can be edited."""


class Edited(Struct, frozen=True):
    """The new text of the whole file and the 1-based line where the replacement starts."""

    text: str
    line: int


class EditRefused(ValueError):
    """No single place to edit; the message tells the model what to change in its call."""


def replace_once(original: str, old: str, new: str) -> Edited:
    """Replace the only occurrence of `old` by `new`.

    The file's own line ends and byte order mark are kept: `old` and `new` may use either kind of
    line end. Raises EditRefused for no match, several matches, an empty `old`, or no change.
    """
    if old == "":
        raise EditRefused("oldText is empty. Give the exact text to replace, or use write.")
    if old == new:
        raise EditRefused("oldText and newText are the same: nothing would change.")
    mark = BOM if original.startswith(BOM) else ""
    body = original[len(mark) :]
    found = _find(body, old.removeprefix(BOM), new.removeprefix(BOM))
    if found is None:
        raise EditRefused(_no_match(body, old))
    needle, replacement, places = found
    if len(places) > 1:
        lines = [str(_line_of(body, place)) for place in places[:_LISTED]]
        more = f" and {len(places) - _LISTED} more" if len(places) > _LISTED else ""
        raise EditRefused(
            f"oldText occurs {len(places)} times (lines {', '.join(lines)}{more}); it must occur "
            "once. Add surrounding lines to oldText so that it names one place."
        )
    place = places[0]
    edited = body[:place] + replacement + body[place + len(needle) :]
    return Edited(mark + edited, _line_of(body, place))


def _find(body: str, old: str, new: str) -> tuple[str, str, list[int]] | None:
    """The spelling of `old` that occurs, `new` with the same line ends, and the places."""
    crlf = "\r\n" in body
    candidates = [(old, new)]
    if crlf:
        candidates = [(old, _to_crlf(new)), (_to_crlf(old), _to_crlf(new))]
    elif "\r\n" in old:
        candidates.append((old.replace("\r\n", "\n"), new.replace("\r\n", "\n")))
    for needle, replacement in candidates:
        places = _places(body, needle)
        if places:
            # A single-line match in a mixed file keeps the line ends the model wrote.
            return needle, replacement, places
    return None


def _to_crlf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _places(body: str, needle: str) -> list[int]:
    """Where `needle` starts, overlapping occurrences included."""
    places: list[int] = []
    at = body.find(needle)
    while at >= 0:
        places.append(at)
        at = body.find(needle, at + 1)
    return places


def _line_of(body: str, place: int) -> int:
    return body.count("\n", 0, place) + 1


def _no_match(body: str, old: str) -> str:
    wanted = [line for line in old.splitlines() if line.strip()]
    lines = body.splitlines()
    head = "oldText was not found in the file."
    if not wanted:
        return f"{head} It is only white space."
    first = wanted[0].strip()
    same = [number for number, line in enumerate(lines, 1) if line.strip() == first]
    if same:
        listed = ", ".join(str(number) for number in same[:_LISTED])
        return (
            f"{head} Its first line occurs at line {listed}, but the text there differs (check "
            "white space and the lines after it). Read those lines and copy them exactly."
        )
    pool = [line.strip() for line in lines[:_SEARCH_LINES]]
    import difflib  # only for a name that is wrong

    near = difflib.get_close_matches(first, pool, n=1, cutoff=0.7)
    if near:
        number = pool.index(near[0]) + 1
        return f"{head} The nearest line is {number}: {near[0][:120]!r}. Read the file again."
    return f"{head} Read the file again and copy the text exactly, white space included."
