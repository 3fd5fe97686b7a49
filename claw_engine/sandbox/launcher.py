"""Confines itself with Landlock, then becomes the command. Started as a program of its own:

    python -I -S launcher.py [--no-network] [--keep-caps] RULE… -- COMMAND…

Standard library only, and little of it. A rule is `r:PATH` (read), `w:PATH` (write), `h:PATH`
(neither); the longest path wins. Landlock can only allow: "all but" is made by allowing the
siblings. A directory with something protected in it can be listed but takes no new entries.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

CREATE, ADD, RESTRICT = 444, 445, 446
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
MAKE_CHAR, MAKE_BLOCK, TRUNCATE, IOCTL_DEV = 1 << 6, 1 << 11, 1 << 14, 1 << 15
FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
READ = EXECUTE | READ_FILE | READ_DIR
RIGHTS_BY_ABI = (0, 13, 14, 15, 15, 16)
"""Number of file rights that ABI 1, 2, … knows (linux/landlock.h)."""

DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx")
KEPT_CAPABILITIES = (0, 1, 3, 4, 5, 6, 7, 10)
"""chown, dac_override, fowner, fsetid, kill, setgid, setuid, net_bind_service."""

PR_SET_NO_NEW_PRIVS, PR_CAPBSET_DROP = 38, 24
CANNOT = 125
"""Exit code when the command could not be confined; then it does not run."""

MANY = 20_000
"""Entries of one directory that are allowed one by one; the rest stays closed."""

_libc = ctypes.CDLL(None, use_errno=True)


def abi() -> int:
    """Landlock's version here; 0 or less where there is none."""
    return int(_libc.syscall(ctypes.c_long(CREATE), None, ctypes.c_size_t(0), ctypes.c_uint(1)))


class Ruleset:
    """All that is allowed; `enforce` makes it hold for this process and its children."""

    def __init__(self, version: int, network: bool) -> None:
        self.known = (1 << RIGHTS_BY_ABI[min(version, len(RIGHTS_BY_ABI) - 1)]) - 1
        net = 0b11 if version >= 4 and not network else 0
        scoped = 0b11 if version >= 6 else 0
        size = 24 if version >= 6 else 16 if version >= 4 else 8
        attr = struct.pack("=QQQ", self.known, net, scoped)[:size]
        self._fd = _checked(_libc.syscall(
            ctypes.c_long(CREATE), attr, ctypes.c_size_t(size), ctypes.c_uint(0)
        ))  # fmt: skip

    def allow(self, path: str, rights: int) -> None:
        """Allow `rights` at and below `path`; what cannot be opened stays closed."""
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            return
        try:
            if not os.path.isdir(path):  # noqa: PTH112 - pathlib costs 10 ms at start
                rights &= FILE_RIGHTS
            attr = struct.pack("=Qi", rights & self.known, fd)
            _libc.syscall(ctypes.c_long(ADD), ctypes.c_int(self._fd), ctypes.c_int(1), attr,
                          ctypes.c_uint(0))  # fmt: skip
        finally:
            os.close(fd)

    def enforce(self) -> None:
        """Raises OSError."""
        _checked(_libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        _checked(_libc.syscall(
            ctypes.c_long(RESTRICT), ctypes.c_int(self._fd), ctypes.c_uint(0)
        ))  # fmt: skip
        os.close(self._fd)


def grant(ruleset: Ruleset, rules: dict[str, str], path: str, inherited: str) -> None:
    """Allow what `rules` say at and below `path`."""
    letter = rules.get(path, inherited)
    prefix = path.rstrip("/") + "/"
    below = [rule for rule in rules if rule.startswith(prefix) and rule != path]
    order = "hrw"
    if all(order.index(rules[rule]) >= order.index(letter) for rule in below):
        if letter != "h":
            write = ruleset.known & ~(MAKE_CHAR | MAKE_BLOCK)
            ruleset.allow(path, READ if letter == "r" else write)
        for rule in below:
            if rules[rule] != letter and rule in rules:
                grant(ruleset, {r: rules[r] for r in below}, rule, letter)
        return
    ruleset.allow(path, READ_DIR)
    try:
        names = os.listdir(path)[:MANY]  # noqa: PTH208 - pathlib costs 10 ms at start
    except OSError:
        # Not to be listed: at least what is named is reached.
        names = list({rule[len(prefix) :].split("/", 1)[0] for rule in below})
    for name in names:
        child = prefix + name
        if not os.path.islink(child):  # noqa: PTH114 - a link is followed to where rules hold
            grant(ruleset, rules, child, letter)


def drop_capabilities() -> None:
    """Root keeps only what work with files needs. Raises OSError."""
    for number in range(64):
        if number not in KEPT_CAPABILITIES:
            _libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0)
    mask = sum(1 << number for number in KEPT_CAPABILITIES)
    header = struct.pack("=Ii", 0x20080522, 0)
    data = struct.pack("=IIIIII", mask, mask, 0, 0, 0, 0)
    _checked(_libc.capset(header, data))


def _checked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def main(arguments: list[str]) -> int:
    split = arguments.index("--")
    options, command = arguments[:split], arguments[split + 1 :]
    rules = {text[2:]: text[0] for text in options if text[1:2] == ":"}
    try:
        version = abi()
        if version < 1:
            raise OSError("this kernel has no Landlock")
        ruleset = Ruleset(version, "--no-network" not in options)
        grant(ruleset, {**rules, "/dev": "h"}, "/", "r")
        for name in DEVICES:
            ruleset.allow(f"/dev/{name}", WRITE_FILE | READ_FILE | IOCTL_DEV)
        ruleset.allow("/dev/shm", ruleset.known & ~(MAKE_CHAR | MAKE_BLOCK))
        if os.isatty(0):
            ruleset.allow(os.ttyname(0), WRITE_FILE | READ_FILE | IOCTL_DEV)
        if os.geteuid() == 0:
            drop_capabilities()
        ruleset.enforce()
    except OSError as error:
        os.write(2, f"not confined, so not run: {error}\n".encode())
        return CANNOT
    try:
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        return 127 if isinstance(error, FileNotFoundError) else 126


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
