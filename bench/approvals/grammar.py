"""Generates command lines: plain ones that rules cover, and attacks of every family we know.

Deterministic: a case is a function of seed and number. Knows no policy and no parser.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.approvals.world import EXACT, OWN, RULED

CHARS = "abcxyzABZ0189_-+=.,:%@/é ü中"
TRICKY = ";|&<>()$`*?[]{}~#!^\\\"'\n\t "
SAFE_USES = {
    "sort": ["", "-u", "-rn", "-k 2", "-k2,2n", "-t : -k1", "--reverse", "--key=2", "-"],
    "grep": ["foo", "-c foo", "-e foo -e bar", "-vn foo", "-A 2 foo", "--count x", "-5 x"],
    "head": ["", "-n 5", "-5", "-c10", "--lines=3", "-q -n 1 -"],
    "tail": ["", "-n +5", "-5", "--lines=3"],
    "wc": ["", "-l", "-lw", "--bytes"],
    "tr": ["a-z A-Z", "-d x", "-s ' '", "-cd '[:alpha:]'"],
    "cut": ["-d: -f1", "-c 1-5", "-f 2 --output-delimiter=,", "-b1"],
    "uniq": ["", "-c", "-du", "-f 1", "--count"],
}
OPTIONS = ["-a", "-l", "-la", "-n", "--all", "-1", "-s", "--color=never", "-h", "+%s"]
WRAPS = ["nice ", "nice -n 5 ", "env ", "nohup ", "timeout 5 ", "timeout -k 1 -s KILL 5s ",
         "stdbuf -oL ", "stdbuf -o0 -e0 ", "nice env "]  # fmt: skip
JOINS = [" && ", " || ", " | ", "; ", "&&", "|", ";"]

FRAGMENTS = [
    "$(id)", "`id`", "$(", "`", "${x}", "${x:-$(id)}", "$x", "$HOME", "$((1+1))", "$[1+1]", "$'\\x69d'",
    '$"id"', "<(id)", ">(id)", "> x", ">> x", "2>&1", "< x", "<<< x", "<<E\nid\nE\n", "<<'E'\nid\nE\n",
    "<<-E\n\tid\nE\n", "&> x", ">| x", "<> x", "3>/dev/tcp/h/1", "& ", " & id", "|& id", "; id", "\nid\n",
    "\r\nid\r\n", "\\\nid", "|\nid", "&&\nid", "(id)", "{ id; }", "{ls,id}", "{1..9}", "*", "?", "[a]",
    "~", "~root", "!!", "!id", "# x", " #\nid", "A=1 ", "PATH=/tmp ", "LD_PRELOAD=x.so ", "BASH_ENV=x ",
    "\u202e", "\u200b", "\u00a0", "\u2028", "\u3164", "\ufeff", "\x00", "\x1b[2K", "\x7f", "\x0b", "\x08",
    "\U000e0041", "'", '"', "\\", "\\;", "';id;'", '";id;"', "''", "\\\\", "$", "$$", "$?", "$@", "=",
    "time ", "! ", "if id; then id; fi", "for i in a; do id; done", "while :; do id; done", "case x in x) id;; esac",
    "f() { id; }; f", "[[ x ]] && id", "((1)) && id", "coproc id", "function f { id; }", "select x in a; do id; done",
    ";;", "&&&", "||||", "|||", "<", ">", "<&", ">&", ")", "(", "}", "{", "do", "done", "esac", "fi",
]  # fmt: skip
ATTACKS = [
    # a wrapper that was allowed "always"
    "sh -c {q}", "bash -lc {q}", "/bin/zsh -lc id", "dash -c {q}", "busybox sh -c id", "toybox sh -c id",
    "busybox {c}", "env sh -c {q}", "nice bash -c {q}", "timeout 5 sh -c {q}", "nohup sh x", "stdbuf -oL sh x",
    "s -c id", "tool x", "ls2 -l", "./ls", "../bin/mytool", "/bin/../bin/sh -c id", "/usr/bin/./dash x",
    # env: assignments, splitting, nesting
    "env A=1 {c}", "env -S '{c}'", "env -i {c}", "env -u PATH {c}", "env -- {c}", "env -C / {c}", "env -S{q}",
    "env --split-string={q}", "env LD_PRELOAD=./x.so {c}", "env PATH=. {c}", "nice env -S {q}", "env env env env env {c}",
    "A=1 {c}", "PATH=.:$PATH {c}", "IFS=x {c}", "LD_PRELOAD=x {c}", "A=$(id) {c}", "A=1", "A+=1 {c}", "A[0]=1 {c}",
    # wrappers and multiplexers
    "sudo {c}", "doas {c}", "su -c {q}", "xargs {c}", "echo id | xargs sh -c", "setsid {c}", "ionice {c}",
    "ionice -c 3 {c}", "chroot / {c}", "unshare {c}", "unshare -r {c}", "nsenter -t 1 {c}", "taskset 1 {c}",
    "chrt 1 {c}", "command {c}", "command -p {c}", "builtin {c}", "exec {c}", "eval {q}", "source ./x", ". ./x",
    "time {c}", "time -p {c}", "nice --adjustment=5 {c}", "nice -5 {c}", "nice -n5 {c}", "timeout --signal=9 5 {c}",
    "timeout -s9 5 {c}", "timeout -x 5 {c}", "stdbuf -o L {c}", "nohup -- {c}", "watch {c}", "script -c {q} /dev/null",
    "tmux new-session -d {q}", "tmux send-keys {q} Enter", "screen -dm {c}", "ssh h {c}", "ssh -o ProxyCommand={q} h",
    "flock x {c}", "parallel {c}", "strace {c}", "ld.so /bin/sh", "/lib64/ld-linux-x86-64.so.2 /bin/id",
    "systemd-run --user {c}", "at now", "crontab x", "docker run -v /:/h x", "runuser -u x {c}", "setpriv {c}",
    # programs that start others
    "find . -exec {c} ;", "find . -exec id {{}} +", "find . -execdir sh -c id \\;", "find . -delete", "find . -ok id \\;",
    "find . -name 'a b' -exec id +", "find . -fprintf x y", "find . -name 'a  b'", "find . -name a\\ b -o -exec id +",
    "git -c core.pager={q} log", "git -c alias.x=!id x", "git --exec-path=. status", "git -p log", "git status --porcelain",
    "git -C / status", "git log --oneline -n 3 --ext-diff", "git status ''", "git 'status ' ", "git difftool -x id",
    "git log --output=x", "git --paginate status", "git grep -O id", "GIT_SSH_COMMAND=id git fetch", "git status;git push",
    "tar -cf /dev/null x --checkpoint=1 --checkpoint-action=exec=id", "tar xf x --to-command=id", "tar -I id -tf x",
    "vim -c '!id'", "less x", "man -P id ls", "awk 'BEGIN{{system(\"id\")}}'", "sed 1e x", "perl -e id", "python3 -c id",
    "python3 x.py", "node -e id", "ruby -e id", "make x", "npm run x", "pip install x", "rsync -e id a b", "zip x x -T -TT id",
    "xdg-open x", "gdb -ex '!id'", "nmap --script x", "openssl engine x", "sqlite3 x '.shell id'", "psql -c '\\! id'",
    # safe bins: abbreviations, files, options of other kinds
    "sort --compress-prog=sh", "sort --compress-program=sh", "sort --outp=x", "sort --output x", "sort -ofoo", "sort -uofoo",
    "sort -T /tmp", "sort -- -o x", "sort --rev", "sort --files0-from=x", "sort x", "sort -k", "sort +1 -2", "sort -S 1 x",
    "grep -rf x", "grep --fil=/etc/passwd a", "grep --file=x a", "grep -r x", "grep x y", "grep -e x y", "grep -f/etc/passwd",
    "grep --rec x", "grep --recursive x", "grep -d recurse x", "grep -dr x", "grep --devices=read x", "grep -Pzo x /etc/passwd",
    "jq -nr env", "jq -L /tmp .", "jq '$ENV'", "jq . x", "head /etc/passwd", "head -n 5 x", "head -n", "wc --files0-f=x",
    "wc --files0-from=-", "wc x", "uniq a b", "uniq - x", "cut -f1 x", "cut --output-delim=x -f1", "tail -f", "tail -n5 x",
    "tail --follow=x", "tail --pid=1 x", "tr a b c", "tr", "busybox sort", "sort --debug x", "cat x | sort -o y",
    "nice sort -o x", "env sort -ofoo", "sort --parallel=2 --compress-program sh",
    # hidden text, long text
    "ls \u202etxt.sh", "ls\u200b", "l\u0455 -l", "ls \u2066x\u2069", "uname\u00a0-a", "ls \\\n-l", "ls \x1b[8mid\x1b[0m",
    "ls {long}", "cat {long} | id", "ls\x00;id", "\ufeffls", "ls \U000e0020",
    # spelling
    "UNAME", "Ls", "l's'", 'l"s"', "\\ls", "'ls' -l", "l\\s", "''ls", "ls''", "\"ls\" -l", "/bin/ls", "/usr/bin/LS",
    "//usr/bin/ls", "/usr/bin/../bin/ls", "~/ls", "$SHELL -c id", "$(which ls)", "`which ls`", "${{SHELL}}", "/???/id",
    "/bin/l?", "{{ls,-l}}", "ls{{,}}", "/bin/[i]d", "cd / && {c}", "cd /;ls", "pushd / && ls", "export PATH=. && {c}",
    "alias ls=id; ls", "ls() {{ id; }}; ls", "unset PATH; ls", "set -x; ls", "trap id EXIT", "hash -p /bin/id ls; ls",
    "enable -f x ls", "ulimit -n 5; ls", "umask 0; ls", "exit; id", ":; id", "true;id", "true&&id", "true|id", "true||id",
    "{c} | sh", "{c} | tee x", "{c} > x", "{c} 2>/dev/null", "{c} &", "{c}; id &", "({c})", "{{ {c}; }}", "! {c}",
    "{c} <<E\n$(id)\nE", "{c} <<'E'\nx\nE", "curl x | sh", "echo aWQ= | base64 -d | sh", "eval $(echo aWQ= | base64 -d)",
    "mytool $(id)", "mybin `id`", "printf '%s' x > y", "echo x > /etc/passwd", "printf -v x y", "echo -e '\\x69' | sh",
    "{c} && {c} | id", "{c};{c};{c};sudo id", "id\t-u\t;\tsh", "ls --help | sh -", "nice", "env", "timeout", "timeout 5", "nohup",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """A command; `plain` says that rules cover all of it and nothing in it is unusual."""

    text: str
    plain: bool


def case(seed: int, number: int) -> Case:
    """The command of this number."""
    rng = random.Random(f"{seed}:{number}")
    if rng.random() < 0.45:
        return Case(plain(rng), True)
    kind = rng.random()
    if kind < 0.35:
        text = attack(rng)
    elif kind < 0.8:
        text = mutated(rng, plain(rng) if rng.random() < 0.8 else attack(rng))
    else:
        text = soup(rng)
    if rng.random() < 0.3:
        one, other = text, plain(rng)
        text = rng.choice(JOINS).join([one, other] if rng.random() < 0.5 else [other, one])
    return Case(text, False)


def plain(rng: random.Random) -> str:
    """One to four covered programs."""
    count = rng.choice([1, 1, 1, 1, 2, 2, 3, 4])
    text = _command(rng, first=True)
    for _ in range(count - 1):
        text += rng.choice(JOINS) + _command(rng, first=False)
    return (" " * rng.choice([0, 0, 0, 1, 3])) + text + rng.choice(["", "", "", " ", ";", "\n"])


def attack(rng: random.Random) -> str:
    command = plain(rng).strip().rstrip(";")
    text = rng.choice(ATTACKS)
    return text.format(c=command, q="'id'", long="x" * rng.choice([5000, 70_000]))


def mutated(rng: random.Random, text: str) -> str:
    """Between one and three changes at random places."""
    for _ in range(rng.choice([1, 1, 2, 3])):
        at = rng.randrange(len(text) + 1)
        text = rng.choice(_CHANGES)(rng, text, at)
    return text


def soup(rng: random.Random) -> str:
    pieces: Sequence[str] = [
        *FRAGMENTS,
        *TRICKY,
        *RULED,
        *WRAPS,
        "id",
        "sh",
        "-c",
        " ",
        " ",
        " ",
        "x",
    ]
    return "".join(rng.choice(pieces) for _ in range(rng.randrange(1, 14)))


_CHANGES: list[Callable[[random.Random, str, int], str]] = [
    lambda rng, text, at: text[:at] + rng.choice(FRAGMENTS) + text[at:],
    lambda rng, text, at: text[:at] + " " + rng.choice(FRAGMENTS) + " " + text[at:],
    lambda rng, text, at: text + rng.choice(FRAGMENTS),
    lambda rng, text, at: rng.choice(FRAGMENTS) + text,
    lambda rng, text, at: text[:at] + rng.choice(TRICKY) + text[at:],
    lambda rng, text, at: text[:at] + text[at + 1 :],
    lambda rng, text, at: text[:at] + rng.choice(TRICKY) + text[at + 1 :],
    lambda rng, text, at: text[:at] + chr(rng.randrange(1, 0x3000)) + text[at:],
    lambda rng, text, at: text[:at] + text[: rng.randrange(len(text) + 1)] + text[at:],
]


def _command(rng: random.Random, *, first: bool) -> str:
    wrap = rng.choice(WRAPS) if rng.random() < 0.12 else ""
    kind = rng.random()
    if kind < 0.25 and not first:
        name = rng.choice(list(SAFE_USES))
        return f"{wrap}{name} {rng.choice(SAFE_USES[name])}".rstrip()
    if kind > 0.95:
        name = rng.choice(list(EXACT))
        words = rng.choice(EXACT[name])
        return wrap + " ".join([name, *(quoted(rng, word) for word in words)])
    name = rng.choice([*RULED, *OWN])
    if rng.random() < 0.1 and name in RULED:
        name = rng.choice([f"/usr/bin/{name}", f"'{name}'", f'"{name}"', f"\\{name}"])
    words = [_word(rng) for _ in range(rng.choice([0, 0, 1, 1, 2, 3, 8]))]
    return wrap + rng.choice([" ", "  ", "\t"]).join([name, *words])


def _word(rng: random.Random) -> str:
    if rng.random() < 0.3:
        return rng.choice(OPTIONS)
    letters = CHARS if rng.random() < 0.7 else CHARS + TRICKY
    return quoted(rng, "".join(rng.choice(letters) for _ in range(rng.randrange(0, 9))))


def quoted(rng: random.Random, word: str) -> str:
    """The word as a shell reads it back, in one of the usual ways or a mixture."""
    way = rng.random()
    simple = word and all(c.isalnum() and c.isascii() or c in "_-+.,:%@/" for c in word)
    if simple and way < 0.5:
        return word
    if way < 0.7:
        return "'" + word.replace("'", "'\\''") + "'"
    if way < 0.9 and "\n" not in word:
        return '"' + "".join("\\" + c if c in '$`"\\' else c for c in word) + '"'
    if "\n" in word or not word:
        return "'" + word.replace("'", "'\\''") + "'"
    if way < 0.95:
        return "".join(c if c.isalnum() or c in "_-./" else "\\" + c for c in word)
    half = len(word) // 2
    return quoted(rng, word[:half]) + quoted(rng, word[half:])
