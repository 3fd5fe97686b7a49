"""Makes the last check and becomes the command. Started as a program of its own:

    python -I -S pinned.py [--cwd DEV:INO:PATH] [--file DEV:INO:SHA256:PATH]… [--known PATH]…
        [--absent PATH]… [--at INDEX] -- COMMAND…

Standard library only, and little of it. What it has checked it hands on by descriptor, so that
nothing can be put in its place any more: a program is executed from the file that was read, a
script is read from a sealed copy. `--at` is the place of the program behind wrappers.
"""

from __future__ import annotations

import fcntl
import os
import signal
import stat
import sys

F_SETSIG = 10
"""Linux; Python has no name for it."""

CHANGED = 125
"""Exit code when something is not what was approved; then nothing runs."""

FULL = 16 * 1024 * 1024
EDGE = 1024 * 1024
"""As approvals.fsview identifies files."""

PARTIAL = "partial-"

PLAIN_LONG = ("--norc", "--noprofile", "--posix", "--login")
SHELL = "/bin/sh"
SHELLS = {"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "yash"}
READ_BY_OPTION = {"awk", "gawk", "mawk", "nawk", "sed", "jq"}
MAX_SCRIPTS = 4
"""A script may be run by a script, and so on; the kernel knows a limit too."""

PYTHON = (
    "import sys\n"
    "def run(fd, name):\n"
    "    import os\n"
    "    with open(fd, 'rb') as file:\n"
    "        code = compile(file.read(), name, 'exec', dont_inherit=True)\n"
    "    if not getattr(sys.flags, 'safe_path', False):\n"
    "        sys.path[0] = os.path.dirname(os.path.realpath(name))\n"
    "    return code, os.path.abspath(name)\n"
    "fd, name = int(sys.argv[1]), sys.argv[2]\n"
    "del sys.argv[:2]\n"
    "code, __file__ = run(fd, name)\n"
    "del run, fd, name, sys\n"
    "exec(code)\n"
)
"""Runs a script from a descriptor as if from its file: `__file__`, `sys.argv`, `sys.path[0]`."""


class Changed(Exception):
    """Something is not what was approved."""


class File:
    """A file that was opened and compared."""

    def __init__(self, path: str, dev: int, ino: int, digest: str) -> None:
        try:
            self.fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError as error:
            raise Changed(f"{path} cannot be opened any more ({error.strerror})") from None
        self.path = path
        info = os.fstat(self.fd)
        if not stat.S_ISREG(info.st_mode) or (info.st_dev, info.st_ino) != (dev, ino):
            raise Changed(f"{path} is another file now")
        self.held = _hold(self.fd, path)
        self.data, found = _read(self.fd, info)
        if found != digest:
            raise Changed(f"the content of {path} changed")

    def copy(self) -> int:
        """A descriptor of a sealed copy, or of the file itself where it is too large."""
        if self.data is None:
            return self.fd
        fd = os.memfd_create(os.path.basename(self.path)[:200], os.MFD_ALLOW_SEALING)  # noqa: PTH119
        view = memoryview(self.data)
        while view:
            view = view[os.write(fd, view) :]
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW
                    | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL)  # fmt: skip
        os.lseek(fd, 0, os.SEEK_SET)
        os.set_inheritable(fd, True)
        return fd


def _hold(fd: int, path: str) -> bool:
    """Keep writers out until the program has started; only the owner may, on most file systems."""
    try:
        fcntl.fcntl(fd, F_SETSIG, signal.SIGURG)  # by itself it does nothing; SIGIO would kill
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except BlockingIOError:
        raise Changed(f"{path} is being written to") from None
    except OSError:
        return False
    return True


def _read(fd: int, info: os.stat_result) -> tuple[bytes | None, str]:
    try:
        # hashlib costs 5 ms at start; it is the same function.
        from _sha2 import sha256  # type: ignore[import-not-found]  # Python 3.12 and later
    except ImportError:
        from hashlib import sha256
    if info.st_size <= FULL:
        data = b""
        while len(data) < info.st_size:
            piece = os.read(fd, info.st_size - len(data))
            if not piece:
                break
            data += piece
        return data, sha256(data).hexdigest()
    digest = sha256(f"{info.st_size} {info.st_mtime_ns} {info.st_ctime_ns}".encode())
    digest.update(os.pread(fd, EDGE, 0))
    digest.update(os.pread(fd, EDGE, info.st_size - EDGE))
    return None, PARTIAL + digest.hexdigest()


class Command:
    """The words to run, and what of them was checked."""

    def __init__(self, cwd: str, files: dict[str, File], known: set[str]) -> None:
        self.cwd = cwd
        self.files = files
        self.known = known

    def file(self, word: str) -> File | None:
        """The checked file of a word; raises Changed when it names one that was not there."""
        path = os.path.join(self.cwd, word)  # noqa: PTH118 - text, as it was bound
        found = self.files.get(path)
        if found is None and path not in self.known and os.path.isfile(path):  # noqa: PTH113
            raise Changed(f"{path} was not there")
        return found

    def rewritten(self, words: list[str], depth: int = 0) -> tuple[File | None, list[str]]:
        """The file to execute (None = by its path) and its words."""
        program = self.files.get(words[0])
        if program is None and words[0] not in self.known:
            raise Changed(f"{words[0]} was not there")
        words = self._from_copies(words)
        line = _interpreter(program) if program else []
        if program and line and depth < MAX_SCRIPTS:
            return self.rewritten([*_found(line), *words], depth + 1)
        return program, words

    def _from_copies(self, words: list[str]) -> list[str]:
        """An interpreter's words, its script read from a copy; others' as they are."""
        names = {os.path.basename(path).rstrip("0123456789.-")  # noqa: PTH119 - text throughout
                 for path in (words[0], os.path.realpath(words[0]))}  # fmt: skip
        if names & READ_BY_OPTION:
            return [words[0], *self._by_option(words[1:])]
        at = next((i for i, word in enumerate(words) if i and word[:1] not in "-+"), 0)
        options = "".join(word[1:] for word in words[1:at] if word not in PLAIN_LONG)
        shell = bool(names & SHELLS) and not set("csoO-") & set(options)
        python = bool(names & {"python", "pypy"}) and set(options) <= set("uBEsSOIPqdv")
        script = self.file(words[at]) if at and (shell or python) else None
        if script is None:
            return words
        fd = script.copy()
        run = ["-c", PYTHON, str(fd)] if python else ["-c", f". /proc/self/fd/{fd}"]
        return [*words[:at], *run, *words[at:]]

    def _by_option(self, words: list[str]) -> list[str]:
        out = list(words)
        for at in range(1, len(words)):
            script = self.file(words[at]) if words[at - 1] in ("-f", "--file") else None
            if script is not None:
                out[at] = f"/proc/self/fd/{script.copy()}"
        return out


def _interpreter(program: File) -> list[str]:
    """The words of a script's first line; a text without one is for the shell, as usual."""
    data = program.data
    if data is None or data[:4] == b"\x7fELF":
        return []
    if not data.startswith(b"#!"):
        return [] if b"\0" in data[:256] else [SHELL]
    line = os.fsdecode(data[2:256].partition(b"\n")[0]).strip()
    return line.split(None, 1) or [SHELL]


def _found(line: list[str]) -> list[str]:
    """`env NAME` is looked up here, once, along PATH."""
    if os.path.basename(line[0]) != "env" or len(line) < 2 or line[1][:1] == "-":  # noqa: PTH119
        return line
    for folder in os.environ.get("PATH", os.defpath).split(":"):
        path = f"{folder}/{line[1]}"
        if os.access(path, os.X_OK) and os.path.isfile(path):  # noqa: PTH113
            return [path]
    return line


def _settle(cwd: str) -> str:
    """Enter the directory that was approved, by its identity; its path."""
    dev, ino, path = cwd.split(":", 2)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise Changed(f"the directory {path} cannot be opened ({error.strerror})") from None
    info = os.fstat(fd)
    if (info.st_dev, info.st_ino) != (int(dev), int(ino)):
        raise Changed(f"the directory {path} is another one now")
    os.fchdir(fd)
    os.close(fd)
    return path


def _run(arguments: list[str]) -> int:
    split = arguments.index("--")
    pairs = list(zip(arguments[:split:2], arguments[1:split:2], strict=True))
    command = arguments[split + 1 :]
    cwd, files = os.getcwd(), {}  # noqa: PTH109
    for option, value in pairs:
        if option == "--cwd":
            cwd = _settle(value)
        elif option == "--file":
            dev, ino, digest, path = value.split(":", 3)
            files[path] = File(path, int(dev), int(ino), digest)
        elif option == "--absent" and os.path.lexists(value):
            raise Changed(f"{value} was not there")
    at = int(next((value for option, value in pairs if option == "--at"), "0"))
    known = {SHELL, *(value for option, value in pairs if option == "--known")}
    target: int | str = command[0]
    words = command
    if at >= 0:  # else a shell makes something of the text
        program, tail = Command(cwd, files, known).rewritten(command[at:])
        words = [*command[:at], *tail]
        if at == 0:
            target = program.fd if program else words[0]
        elif program:
            words[at] = f"/proc/self/fd/{program.copy()}"
    os.execve(target, words, os.environ)
    return 0


def main(arguments: list[str]) -> int:
    try:
        return _run(arguments)
    except Changed as changed:
        said = f"Not run, because it changed since it was approved: {changed}.\n"
        os.write(2, said.encode("utf-8", "replace"))
        return CHANGED
    except OSError as error:
        os.write(2, f"{arguments[-1]}: {error.strerror}\n".encode("utf-8", "replace"))
        return 127 if isinstance(error, FileNotFoundError) else 126


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
