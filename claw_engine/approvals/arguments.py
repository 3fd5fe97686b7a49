"""What a rule says about arguments: OpenClaw's `argPattern`, and the narrow rules we offer.

Pure. A pattern is a regular expression over the arguments, each followed by a NUL when the pattern
contains one, else joined with blanks. Stricter than OpenClaw 2026.9.6, where it may match a part:
here the whole must match, and an argument with a blank in it never matches the second form.
"""

from __future__ import annotations

import functools
import re

from msgspec import Struct

from claw_engine.approvals.wordlist import words

MAX_PATTERN = 2000
MAX_ARGUMENTS = 8192
"""Characters; longer ones match nothing."""

_SEPARATOR = "\0"
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def matches(pattern: str, arguments: tuple[str, ...]) -> bool:
    """Whether a rule with this argument pattern covers these arguments."""
    compiled = _compiled(pattern)
    if compiled is None or sum(map(len, arguments)) > MAX_ARGUMENTS:
        return False
    if _SEPARATOR in pattern or "\\x00" in pattern or "\\u0000" in pattern:
        text = "".join(word + _SEPARATOR for word in arguments)
    elif any(not word or any(char.isspace() for char in word) for word in arguments):
        return False
    else:
        text = " ".join(arguments)
    return compiled.fullmatch(text) is not None


def exactly(arguments: tuple[str, ...]) -> str:
    """The pattern that matches these arguments and no others."""
    return "^" + "".join(re.escape(word) + _SEPARATOR for word in arguments) + "$"


def words_of(pattern: str) -> tuple[str, ...] | None:
    """The arguments of a pattern made by `exactly`; None for any other pattern."""
    if not (pattern.startswith("^") and pattern.endswith("$")):
        return None
    parts = pattern[1:-1].split(_SEPARATOR)
    if parts.pop() != "":
        return None
    found = tuple(_ESCAPED.sub(r"\1", part) for part in parts)
    return found if exactly(found) == pattern else None


@functools.lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    if not pattern or len(pattern) > MAX_PATTERN:
        return None
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return None


class Narrow(Struct, frozen=True):
    """When exact arguments of a launcher may be offered: the first is one of `verbs` (empty = any)
    and no option of `refused` occurs, nor the beginning of a long one, nor its letter behind
    another's dash. `still` is for the card; `local` says that a name with a colon in it is one of
    another machine."""

    verbs: frozenset[str]
    refused: frozenset[str]
    still: str
    local: bool = False

    def objects(self, word: str) -> bool:
        """Whether a word could be a refused option, in any way of writing it."""
        if self.local and ":" in word:
            return True
        if not word.startswith("-"):
            return word in self.refused
        option = word.split("=", 1)[0]
        name = option.lstrip("-")
        if any(bad.lstrip("-").startswith(name) for bad in self.refused if len(name) > 1):
            return True
        return not option.startswith("--") and any(f"-{letter}" in self.refused for letter in name)


def narrow(name: str, arguments: tuple[str, ...]) -> str | None:
    """What a rule for exactly these arguments of a launcher still means, in a sentence; None when
    even these arguments can start other programs, or nothing is known about the program."""
    known = _NARROW.get(name)
    if known is None or (known.verbs and not set(arguments[:1]) & known.verbs):
        return None
    options = arguments[1:] if known.verbs else arguments
    return None if any(map(known.objects, options)) else known.still


_GIT_RUNS = words(
    "-c --exec --ext-diff --textconv --output --open-files-in-pager -O --upload-pack "
    "--receive-pack --exec-path --config-env --show-signature --paginate --help"
)
_FIND_RUNS = words("-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls -files0-from")
_SORT_RUNS = words("-o -T --compress-program --output --files0-from --temporary-directory")
_SHOWS = "it only shows things"
_CONTAINERS = Narrow(
    words("ps images version inspect logs stats top port"),
    words(
        "-H -c --host --context --remote --url --connection --config --runtime --conmon "
        "--hooks-dir --network-cmd-path --root --runroot --module --storage-driver --storage-opt "
        "--tmpdir --identity --ssh"
    ),
    _SHOWS,
)
_NARROW: dict[str, Narrow] = {
    "git": Narrow(
        words(
            "status log diff show branch rev-parse ls-files ls-tree remote describe blame shortlog "
            "tag cat-file rev-list merge-base reflog name-rev for-each-ref count-objects"
        ),
        _GIT_RUNS,
        "git also obeys the configuration of the repository it is in, which can name programs",
    ),
    "find": Narrow(frozenset(), _FIND_RUNS, "it only searches"),
    "fd": Narrow(frozenset(), words("-x -X --exec --exec-batch"), "it only searches"),
    "sort": Narrow(frozenset(), _SORT_RUNS, "it only sorts"),
    "tar": Narrow(
        words("t tf tvf tzf tjf tJf -t -tf -tvf -tzf -tjf -tJf --list"),
        words("-I -F -T --use-compress-program --to-command --checkpoint-action --info-script "
              "--new-volume-script --rsh-command --rmt-command --files-from --index-file"),
        "it only lists", local=True,
    ),
    "systemctl": Narrow(
        words("status is-active is-enabled is-failed list-units list-timers show cat"),
        words("-H -M --host --machine"), _SHOWS,
    ),
    "docker": _CONTAINERS,
    "podman": _CONTAINERS,
    "apt": Narrow(words("list show search policy"), words("-o -c --option --config-file"), _SHOWS),
    "dpkg": Narrow(
        words("-l -L -S -s --list --listfiles --search --status"),
        words("--root --admindir --pre-invoke --post-invoke --status-logger --status-fd "
              "--command-fd"), _SHOWS,
    ),
    "journalctl": Narrow(
        words("-u -n -b -k -xe --unit --lines --boot --dmesg --no-pager --since"),
        words("-D -M --vacuum-size --vacuum-time --vacuum-files --rotate --flush --sync "
              "--setup-keys --directory --machine --file --root --image"), _SHOWS,
    ),
    "npm": Narrow(
        words("ls list view outdated root"),
        words("-C --prefix --script-shell --git --shell --editor --viewer --browser --userconfig "
              "--globalconfig --node-options --call"),
        "npm also obeys the .npmrc of the folder it is in, which can name programs",
    ),
    "pip": Narrow(
        words("list show freeze check"),
        words("--python --log --proxy --path --keyring-provider"), _SHOWS,
    ),
}  # fmt: skip
