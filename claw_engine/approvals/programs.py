"""What kind of program a name stands for: pure tables, no file is looked at.

A program that runs whatever text, file or option it is given cannot be allowed "always": its rule
would allow everything. The tables err on the side of asking; they follow OpenClaw's wrapper and
shell lists and the well-known programs that can start others (editors, build tools, archivers…).
"""

from __future__ import annotations

import functools
import re
from enum import StrEnum

from claw_engine.approvals.wordlist import words


class Kind(StrEnum):
    """Why a program is special; PLAIN programs may be allowed by a rule."""

    PLAIN = "plain"
    WRAPPER = "wrapper"  # starts its arguments; we can look through the simple forms
    BLOCKED_WRAPPER = "blocked-wrapper"  # starts its arguments in a way we do not follow
    PRIVILEGE = "privilege"
    SHELL = "shell"
    MULTIPLEXER = "multiplexer"
    INTERPRETER = "interpreter"
    LAUNCHER = "launcher"  # has an option, a hook or a file format that starts programs
    BUILTIN = "builtin"  # part of the shell itself: there is no program to allow


WRAPPERS = frozenset(["env", "nice", "nohup", "stdbuf", "timeout"])
SHELLS = words(
    "sh bash dash ash zsh ksh mksh lksh pdksh yash rbash fish csh tcsh elvish nu xonsh cmd "
    "powershell pwsh"
)
MULTIPLEXERS = frozenset(["busybox", "toybox", "coreutils"])
_BLOCKED = words(
    "chrt ionice setsid taskset xargs parallel chroot unshare nsenter setpriv setarch linux32 "
    "linux64 strace ltrace gdb lldb perf valgrind watch script scriptreplay time entr flock "
    "expect unbuffer tmux screen bwrap firejail fakeroot proot dbus-run-session dbus-launch "
    "xvfb-run start-stop-daemon run-parts systemd-run at batch crontab numactl cgexec prlimit "
    "choom catchsegv setlock chpst softlimit daemonize runcon cpulimit timelimit torsocks "
    "proxychains proxychains4 faketime eatmydata schroot arch-chroot systemd-nspawn lxc-attach "
    "byobu dtach abduco libtool wine ssh-agent ldd"
)
_PRIVILEGE = words(
    "sudo sudoedit doas su pkexec runuser machinectl capsh gosu su-exec sg newgrp login"
)
_INTERPRETERS = words(
    "python pypy ipython perl raku ruby irb jruby node nodejs bun deno tsx ts-node npx bunx uvx "
    "php lua luajit tclsh wish awk gawk mawk nawk original-awk sed gsed r rscript julia ghci "
    "runghc groovy scala java jshell kotlin guile racket sbcl clisp ecl emacs osascript gjs qjs "
    "mujs erl elixir iex escript ocaml swift m4 bc dc octave gnuplot sqlite psql mysql mariadb "
    "mongosh redis-cli ld.so"
)
_LAUNCHERS = words(
    "find fd fdfind git hg svn bzr ssh scp sftp rsync mosh docker podman nerdctl kubectl helm "
    "make gmake bmake cmake ninja meson just task rake gradle mvn ant bazel cargo rustc go gcc "
    "g++ cc c++ clang ld npm pnpm yarn pip pipx uv poetry conda mamba gem bundle composer tar "
    "bsdtar cpio zip unzip 7z 7za vi vim view rvim nvim ex ed nano pico micro joe less more most "
    "man info pager nc ncat netcat socat telnet curl wget aria dpkg apt apt-get yum dnf rpm "
    "pacman apk snap flatpak nix nix-shell nix-env guix systemctl service journalctl openrc "
    "launchctl crond run-mailcap xdg-open open gtk-launch ip tc iptables ansible ansible-playbook "
    "terraform pulumi vagrant gpg openssl tcpdump tshark sort split csplit pr lp mail mutt rlwrap "
    "ctags pry puppet chef salt rg ag ack install-info ffmpeg-script latex pdflatex tex xelatex "
    "vimdiff ftp lftp smbclient nmap ssh-keygen logrotate busctl dbus-send bpftrace "
    "lualatex pandoc gs convert magick modprobe insmod mount umount chsh claw claw-tui openclaw"
)
_BUILTINS = words(
    "cd pushd popd dirs export unset set eval exec source . : command builtin alias unalias trap "
    "umask ulimit read readonly local declare typeset let shift return exit logout break continue "
    "wait jobs fg bg disown hash type getopts times enable shopt mapfile readarray suspend "
    "history fc bind complete compgen compopt caller"
)
_TABLE: dict[str, Kind] = {
    **dict.fromkeys(_LAUNCHERS, Kind.LAUNCHER),
    **dict.fromkeys(_INTERPRETERS, Kind.INTERPRETER),
    **dict.fromkeys(_BLOCKED, Kind.BLOCKED_WRAPPER),
    **dict.fromkeys(_PRIVILEGE, Kind.PRIVILEGE),
    **dict.fromkeys(MULTIPLEXERS, Kind.MULTIPLEXER),
    **dict.fromkeys(SHELLS, Kind.SHELL),
    **dict.fromkeys(WRAPPERS, Kind.WRAPPER),
}
# `bash-static`, `php-cgi`, `busybox-suid`: a name that begins like one of these is one of these.
_FAMILIES = frozenset({Kind.SHELL, Kind.INTERPRETER, Kind.MULTIPLEXER})
_COMPILERS = ("-gcc", "-g++", "-cpp", "-ld", "-clang", "-gdb")
_VERSION = re.compile(r"[-._]?\d[\d._]*[a-z]?$")

_SENTENCES: dict[Kind, str] = {
    Kind.WRAPPER: "{name} starts another program; allow that program instead",
    Kind.BLOCKED_WRAPPER: "{name} starts another program in a way that cannot be followed, so a "
    "rule for it would allow everything",
    Kind.PRIVILEGE: "{name} runs commands with other rights, so it asks every time",
    Kind.SHELL: "{name} is a shell: it runs any text it is given, so it cannot be trusted for ever",
    Kind.MULTIPLEXER: "{name} is many programs in one file, a shell among them, so a rule for it "
    "would allow everything",
    Kind.INTERPRETER: "{name} is an interpreter: it runs any program text it is given, so it "
    "cannot be trusted for ever",
    Kind.LAUNCHER: "{name} can start other programs through its options or files, so a rule for it "
    "with any arguments would allow everything",
    Kind.BUILTIN: "{name} is part of the shell, there is no program file that a rule could name",
}


@functools.lru_cache(maxsize=1024)
def classify(name: str) -> Kind:
    """The kind of a program by its file name (no directory). Versions and case do not matter.

    A word of the shell itself is PLAIN here, see `is_builtin`: only the command word counts.
    """
    lowered = name.lower().removesuffix(".exe")
    if lowered.startswith(("ld-linux", "ld-musl", "ld.so", "ld64.so")):
        return Kind.INTERPRETER
    for form in _forms(lowered):
        kind = _TABLE.get(form)
        if kind is not None:
            return kind
    if lowered.endswith(_COMPILERS) or _VERSION.sub("", lowered).endswith(_COMPILERS):
        return Kind.LAUNCHER  # x86_64-linux-gnu-gcc-12
    kind = _TABLE.get(re.split(r"[-_]", lowered, maxsplit=1)[0], Kind.PLAIN)
    return kind if kind in _FAMILIES or lowered.startswith("git-") else Kind.PLAIN


def is_builtin(word: str) -> bool:
    """Whether the shell itself carries this word out and changes its own state by it."""
    return word in _BUILTINS


def refusal(kind: Kind, name: str) -> str | None:
    """Why a program of this kind cannot be allowed for ever; None when it can."""
    sentence = _SENTENCES.get(kind)
    return sentence.format(name=name) if sentence else None


def _forms(name: str) -> tuple[str, ...]:
    """`python3.11` is also python, `vim.basic` vim, `gcc-12` gcc."""
    bare = _VERSION.sub("", name) or name
    first = bare.split(".", maxsplit=1)[0]
    return tuple(dict.fromkeys((name, bare, first, _VERSION.sub("", first))))
