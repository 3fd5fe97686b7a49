"""Filters that may run unasked on what is piped into them: flag profiles, fail-closed, opt-in.

Pure: the words of one program call in, an objection out. A profile lists every option it lets
pass; what it does not list, an abbreviated long option too, asks. The list of programs and of
refused options follows OpenClaw 2026.2.26; that a flag must be listed to pass is ours.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct, field

from claw_engine.approvals.wordlist import words
from claw_engine.patterns import late

TRUSTED = ("/bin", "/usr/bin")
"""Directories in which a safe bin must lie, besides those that the configuration names."""

_PATHLIKE = late(r"(?:/|\.\.?(?:/|$)|~|[A-Za-z]:\\)")
# What a jq filter may not name: the environment (jq 1.6 reads `$ ENV` too), and files of its own.
_JQ_READS = late(r"(?<![A-Za-z0-9_])(?:env|import|include|input_filename|get_search_list"
                       r"|modulemeta|ENV|__prog\w*)(?![A-Za-z0-9_])")  # fmt: skip


class Profile(Struct, frozen=True):
    """What one program may be given. Options are written with their dashes.

    `flags` stand alone, `values` take so many words each; an option in `instead` gives what would
    be the first operand (grep's pattern). `text` says that operands are text, not names of files.
    """

    flags: frozenset[str] = frozenset()
    values: Mapping[str, int] = field(default_factory=dict)
    operands: tuple[int, int] = (0, 0)
    instead: frozenset[str] = frozenset()
    text: bool = False
    numbers: bool = False
    jq: bool = False


class SafeBins(Struct, frozen=True):
    """The programs the operator opted in. `ignored` are names that have no profile."""

    profiles: Mapping[str, Profile] = field(default_factory=dict)
    folders: tuple[str, ...] = TRUSTED
    ignored: tuple[str, ...] = ()

    def objection(self, name: str, folder: str, arguments: tuple[str, ...]) -> str | None:
        """Why this call is no safe use; None when it is one."""
        profile = self.profiles.get(name)
        if profile is None:
            return f"{name} is no safe bin"
        if folder not in self.folders:
            return f"{folder}/{name} is not in a trusted directory"
        return objection(name, arguments, profile)


def configured(
    names: Collection[str],
    folders: Collection[str] = (),
    profiles: Mapping[str, object] | None = None,
) -> SafeBins | None:
    """The safe bins of a configuration (`tools.exec.safeBins…`); None when there is none.

    A profile of the operator's replaces ours. Names without one are left out, and named.
    """
    own = {name: _own(value) for name, value in (profiles or {}).items()}
    known: dict[str, Profile | None] = {**PROFILES, **own}
    taken = {name: profile for name in names if (profile := known.get(name)) is not None}
    ignored = tuple(name for name in names if name not in taken)
    if not taken and not ignored:
        return None
    extra = tuple(folder.rstrip("/") for folder in folders if folder.startswith("/"))
    return SafeBins(taken, (*TRUSTED, *extra), ignored)


def objection(name: str, arguments: tuple[str, ...], profile: Profile) -> str | None:
    """Why these arguments are not covered by a profile; None when they are."""
    operands: list[str] = []
    given: set[str] = set()
    at, only_operands = 0, False
    while at < len(arguments):
        word = arguments[at]
        at += 1
        if only_operands or word == "-" or not word.startswith("-"):
            operands.append(word)
            continue
        if word == "--":
            only_operands = True
            continue
        option, attached = _option(word, profile)
        if option is None:
            return f"{name}: option {word} is not in its safe profile"
        given.add(option)
        wanted = profile.values.get(option, 0)
        taken = [attached] if attached is not None else []
        taken += arguments[at : at + wanted - len(taken)]
        at += wanted - (attached is not None) if wanted else 0
        if len(taken) < wanted:
            return f"{name}: option {option} lacks its value"
        if any(len(value) > 1 and _PATHLIKE.match(value) for value in taken):
            return f"{name}: the value of {option} looks like a path"
    return _operands(name, operands, given, profile)


def _option(word: str, profile: Profile) -> tuple[str | None, str | None]:
    """The option that takes a value (or the word itself) and its attached value.

    None when anything in the word is not listed. Long options count only in full.
    """
    if word in profile.flags:
        return word, None
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        return (name, value if equals else None) if name in profile.values else (None, None)
    if profile.numbers and word[1:].isdigit() and word.isascii():
        return word, None
    for index, letter in enumerate(word[1:], 1):
        if f"-{letter}" in profile.values:
            return f"-{letter}", word[index + 1 :] or None
        if f"-{letter}" not in profile.flags:
            return None, None
    return word, None


def _operands(name: str, operands: list[str], given: set[str], profile: Profile) -> str | None:
    low, high = profile.operands
    if given & profile.instead:
        low, high = 0, high - 1
    if high == 0:
        operands = [word for word in operands if word != "-"]
    if not low <= len(operands) <= high:
        if len(operands) > high:
            return f"{name} reads files here; only what is piped in is safe"
        return f"{name} needs {low} word(s) to be a safe use"
    if profile.jq and any(_JQ_READS.search(word) for word in operands):
        return f"{name}: this filter can read the environment or files"
    if not profile.text and any(
        _PATHLIKE.match(word) or set(word) & set("*?[]") for word in operands
    ):
        return f"{name}: {operands[0]} could name a file"
    return None


def _own(value: object) -> Profile | None:
    """A profile of the operator's; None when it makes no sense, and then it allows nothing.

    Fields: `minPositional`, `maxPositional`, `allowedValueFlags`, `deniedFlags` (OpenClaw) and
    ours, `allowedFlags`. A denied flag wins.
    """
    if not isinstance(value, Mapping):
        return None
    low, high = value.get("minPositional", 0), value.get("maxPositional", 0)
    lists = [value.get(k, ()) for k in ("allowedFlags", "allowedValueFlags", "deniedFlags")]
    if not all(isinstance(part, list | tuple) for part in lists):
        return None
    flags, values, denied = ({str(word) for word in part} for part in lists)
    if not isinstance(low, int) or not isinstance(high, int) or low > high:
        return None
    return Profile(
        frozenset(flags - denied - values), dict.fromkeys(values - denied, 1), (low, high)
    )


def _profile(
    flags: str, values: str, operands: tuple[int, int] = (0, 0), *, instead: str = "",
    text: bool = False, numbers: bool = False, jq: bool = False, two: str = "",
) -> Profile:  # fmt: skip
    """`flags` and `values`: short options as letters in the first word, then long ones."""

    def options(spec: str) -> list[str]:
        letters, _, names = spec.partition(" ")
        return [f"-{letter}" for letter in letters if letter != "."] + names.split()

    counts = {**dict.fromkeys(options(values), 1), **dict.fromkeys(two.split(), 2)}
    return Profile(frozenset(options(flags)), counts, operands, words(instead), text, numbers, jq)


PROFILES: dict[str, Profile] = {
    "jq": _profile(
        "crjaSMCsneR --compact-output --raw-output --join-output --ascii-output --sort-keys "
        "--monochrome-output --color-output --slurp --null-input --exit-status --raw-input --tab "
        "--seq --stream --unbuffered",
        ". --indent", (0, 1), text=True, jq=True, two="--arg --argjson",
    ),
    "cut": _profile(
        "nsz --complement --only-delimited --zero-terminated",
        "bcfd --bytes --characters --fields --delimiter --output-delimiter",
    ),
    "uniq": _profile(
        "cdDiuz --count --repeated --all-repeated --ignore-case --unique --zero-terminated --group",
        "fsw --skip-fields --skip-chars --check-chars",
    ),
    "head": _profile(
        "qvz --quiet --silent --verbose --zero-terminated", "nc --lines --bytes", numbers=True
    ),
    "tail": _profile(
        "qvz --quiet --silent --verbose --zero-terminated",
        "ncs --lines --bytes --sleep-interval --max-unchanged-stats --pid", numbers=True,
    ),
    "tr": _profile(
        "cCdst --complement --delete --squeeze-repeats --truncate-set1", ".", (1, 2), text=True
    ),
    "wc": _profile(
        "cmlLw --bytes --chars --lines --max-line-length --words", ". --total"
    ),
    "grep": _profile(
        "EFGPivwxclLqsobhHnaTzZU --extended-regexp --fixed-strings --basic-regexp --perl-regexp "
        "--ignore-case --no-ignore-case --invert-match --word-regexp --line-regexp --count "
        "--files-with-matches --files-without-match --quiet --silent --no-messages "
        "--only-matching --byte-offset --no-filename --with-filename --line-number --initial-tab "
        "--null --null-data --text --line-buffered --color --colour --color=auto --color=never "
        "--color=always",
        "emABC --regexp --max-count --after-context --before-context --context --binary-files "
        "--label", (1, 1), instead="-e --regexp", text=True, numbers=True,
    ),
    "sort": _profile(
        "bdfgiMhnRrVcCmsuz --ignore-leading-blanks --dictionary-order --ignore-case "
        "--general-numeric-sort --ignore-nonprinting --month-sort --human-numeric-sort "
        "--numeric-sort --random-sort --reverse --version-sort --check --merge --stable --unique "
        "--zero-terminated",
        "ktS --key --field-separator --buffer-size --parallel --batch-size --sort",
    ),
}  # fmt: skip
