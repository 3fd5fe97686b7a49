"""Short plain words for the card: what a command could do that one would regret.

Pure, and only words: nothing is decided by a risk note, and its absence proves nothing.
"""

from __future__ import annotations

import functools
import itertools
import posixpath
import re

from claw_engine.approvals.commandline import Parsed
from claw_engine.approvals.programs import Kind, classify
from claw_engine.approvals.shell import parse
from claw_engine.approvals.wordlist import words
from claw_engine.approvals.wrappers import base_name, unwrap
from claw_engine.patterns import late

_DOWNLOADERS = frozenset({"curl", "wget", "fetch", "aria2c"})
_DELETERS = frozenset({"rm", "rmdir", "unlink", "shred", "srm", "wipefs"})
_WRITERS = words("cp mv ln install tee dd touch mkdir truncate rsync tar unzip patch")
_PERMISSIONS = frozenset({"chmod", "chown", "chgrp", "setfacl", "chattr", "setcap"})
_KILLERS = frozenset({"kill", "pkill", "killall", "skill"})
_SYSTEM = words(
    "mkfs fdisk parted sfdisk mount umount swapoff shutdown reboot halt poweroff systemctl init "
    "iptables nft useradd userdel usermod passwd crontab visudo modprobe zfs zpool mdadm lvremove "
    "vgremove cryptsetup"
)
_TEXT_RUNNERS = frozenset({Kind.SHELL, Kind.INTERPRETER})
_STARTERS = frozenset({Kind.BLOCKED_WRAPPER, Kind.PRIVILEGE, Kind.MULTIPLEXER, Kind.WRAPPER})
_TELLING = _DELETERS | _DOWNLOADERS | _PERMISSIONS | _KILLERS | _SYSTEM | frozenset({"dd"})
_SECRET_NAMES = tuple(
    words(
        ".ssh .gnupg .aws .kube .netrc .pgpass .docker/config.json shadow .env id_rsa id_ed25519 "
        "id_ecdsa credentials credentials.json openclaw.json door.key exec-approvals.json "
        "auth-profiles.json environ"
    )
)
_SECRETS = late(f"(?:^|[/=])(?:{'|'.join(map(re.escape, _SECRET_NAMES))})(?:$|/)", re.MULTILINE)
_NAMED = _TELLING | _WRITERS | words("find git scp sftp nc ncat ssh eval source .")
"""All that a note is about."""
_DECODERS = frozenset({"base64", "xxd", "openssl", "printf", "uudecode", "base32"})


def command_risks(parsed: Parsed, workspace: str) -> list[tuple[str, ...]]:
    """Notes for each segment; paths outside `workspace` (absolute) are named as such."""
    extra = _redirection_risks(parsed.redirections, workspace)
    text = "\n".join(word for segment in parsed.segments for word in segment.argv)
    secrets = any(name in text for name in _SECRET_NAMES)
    found: list[tuple[str, ...]] = []
    for index, segment in enumerate(parsed.segments):
        if not secrets and segment.argv and _says_nothing(segment.argv[0]):
            found.append(extra)
            continue
        piped = index > 0 and parsed.operators[index - 1] in ("|", "|&")
        before = parsed.segments[index - 1].argv if piped else None
        notes = _notes(segment.argv, workspace, before, secrets=secrets)
        found.append(tuple(dict.fromkeys((*notes, *extra))) if notes or extra else ())
    return found


def _notes(
    argv: tuple[str, ...],
    workspace: str,
    piped_from: tuple[str, ...] | None = None,
    *,
    secrets: bool = True,
) -> list[str]:
    """Notes for one segment. `piped_from` is the argv whose output it reads; `secrets` is False
    when no word of the command holds the name of one."""
    if not argv:
        return []
    at = unwrap(argv).programs[-1]
    if _says_nothing(argv[at]):
        return _secret_notes(argv[at + 1 :]) if secrets else []
    name = base_name(argv[at])
    inner, kind = argv[at:], classify(name)
    return [
        *_by_name(name, kind, inner[1:]),
        *_by_pipe(kind, piped_from),
        *_by_paths(name, inner[1:], workspace),
        *_inside(kind, inner, workspace),
        *([] if name.isascii() else ["the program name has letters that are not ASCII"]),
    ]


@functools.lru_cache(maxsize=1024)
def _says_nothing(word: str) -> bool:
    """Whether a program gives nothing to note by its name, whatever its arguments."""
    name = base_name(word)
    return (
        classify(name) is Kind.PLAIN
        and name.isascii()
        and name not in _NAMED
        and name.split(".", 1)[0] not in _SYSTEM
    )


def _redirection_risks(redirections: tuple[str, ...], workspace: str) -> tuple[str, ...]:
    """Notes for the files that redirections write to."""
    targets = [r.split(" ", 1)[1].strip("'\"") for r in redirections if ">" in r and " " in r]
    outside = [t for t in targets if _outside(t, workspace) and t != "/dev/null"]
    return ("writes outside the workspace",) if outside else ()


def _by_name(name: str, kind: Kind, args: tuple[str, ...]) -> list[str]:
    notes: list[str] = []
    if name in _DELETERS:
        notes.append("deletes recursively" if _has_flag(args, "rR", "--recursive") else "deletes")
    if name == "find" and "-delete" in args:
        notes.append("deletes what it finds")
    if name == "git" and {"clean", "reset"} & set(args[:1]):
        notes.append("throws away uncommitted work")
    if name in _PERMISSIONS:
        notes.append("changes permissions")
    if name in _KILLERS:
        notes.append("stops other programs")
    if name in _DOWNLOADERS or name in ("scp", "sftp", "nc", "ncat", "ssh"):
        notes.append("talks to the network")
    if name.split(".", 1)[0] in _SYSTEM:
        notes.append("changes the system")
    if name == "dd" and any(arg.startswith("of=/dev/") for arg in args):
        notes.append("overwrites a device")
    if kind is Kind.PRIVILEGE:
        notes.append("runs with other rights")
    if kind in (Kind.SHELL, Kind.INTERPRETER, Kind.MULTIPLEXER) or name in ("eval", "source", "."):
        notes.append("runs program text")
    if kind is Kind.BLOCKED_WRAPPER:
        notes.append("starts another program")
    if name == "find" and any(a.startswith(("-exec", "-ok")) for a in args):
        notes.append("starts another program for each file")
    return notes


def _inside(kind: Kind, argv: tuple[str, ...], workspace: str) -> list[str]:
    """Notes for the commands that a wrapper, a shell or `find -exec` is given to start."""
    notes: list[str] = []
    if kind in (Kind.SHELL, Kind.MULTIPLEXER):
        for flag, text in itertools.pairwise(argv):
            if re.fullmatch(r"-[A-Za-z]*c[A-Za-z]*", flag):
                for segment in parse(text[:4096]).segments[:16]:
                    notes += _notes(segment.argv, workspace)
    if kind in _STARTERS or base_name(argv[0]) == "find":
        for index, word in enumerate(argv[1:64], 1):
            name = base_name(word)
            if name in _TELLING or classify(name) in _TEXT_RUNNERS:
                notes += _by_name(name, classify(name), argv[index + 1 :])
                notes += _by_paths(name, argv[index + 1 :], workspace)
    return notes


def _by_pipe(kind: Kind, piped_from: tuple[str, ...] | None) -> list[str]:
    if not piped_from or kind not in (Kind.SHELL, Kind.INTERPRETER, Kind.MULTIPLEXER):
        return []
    source = base_name(piped_from[unwrap(piped_from).programs[-1]])
    if source in _DOWNLOADERS:
        return ["runs a network download as a program"]
    return ["runs decoded text as a program" if source in _DECODERS else "runs what is piped in"]


def _secret_notes(args: tuple[str, ...]) -> list[str]:
    return ["touches secrets"] if _SECRETS.search("\n".join(args)) else []


def _by_paths(name: str, args: tuple[str, ...], workspace: str) -> list[str]:
    notes = _secret_notes(args)
    if name in _WRITERS | _DELETERS | _PERMISSIONS:
        values = (a.split("=", 1)[-1] for a in args if not a.startswith("-"))
        if any(_outside(value, workspace) for value in values):
            verb = "deletes" if name in _DELETERS else "writes"
            notes.append(f"{verb} outside the workspace")
    return notes


def _outside(path: str, workspace: str) -> bool:
    """Whether a path text leads out of the workspace (by text: a note, not a decision)."""
    if path.startswith("~") or path.startswith("$"):
        return True
    if not path.startswith("/") and ".." not in path.split("/"):
        return False
    full = posixpath.normpath(posixpath.join(workspace, path))
    root = workspace.rstrip("/")
    return not (full == root or full.startswith(root + "/"))


def _has_flag(args: tuple[str, ...], letters: str, long: str) -> bool:
    return any(
        arg == long or (re.fullmatch(r"-[A-Za-z]+", arg) and any(c in arg for c in letters))
        for arg in args
    )
