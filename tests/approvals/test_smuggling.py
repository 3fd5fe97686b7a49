"""Commands that carry another command. On a machine where every program lies in a folder that only
root writes, under the widest rules there are and with every safe bin: none of them runs unasked.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from claw_engine.approvals.arguments import exactly
from claw_engine.approvals.evaluate import Answer, Verdict, evaluate
from claw_engine.approvals.fsview import FileId, RealFs
from claw_engine.approvals.policy import ExecPolicy, Rule
from claw_engine.approvals.safe_bins import PROFILES, SafeBins
from tests.approvals.conftest import Box


class Trusted(RealFs):
    """Everything is the system's own, so that no command asks for that reason alone."""

    def is_system(self, file: FileId) -> bool:
        return True

    def writable(self, file: FileId) -> bool:
        return False

    def writable_folder(self, path: str) -> bool:
        return False


PLAIN = ["ls", "cat", "echo", "uname", "printf", "true", "id", "date", "stat", "test", "expr"]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(tmp_path_factory.mktemp("machine").resolve())


class Machine:
    """Every program that a command names is there."""

    def __init__(self, root: Path) -> None:
        self.box = Box(root)
        for name in ("bin", "work", "home"):
            (root / name).mkdir()
        for name in (*PLAIN, *PROFILES):
            self.program(name)

    def program(self, name: str, text: str = "\x7fELF") -> Path:
        path = self.box.bin / name
        return path if path.exists() else self.box.program(f"bin/{name}", text)

    def decide(self, command: str, *rules: Rule) -> Verdict:
        policy = ExecPolicy(
            rules=(Rule("all", "*"), Rule("deep", f"{self.box.root}/**"), *rules),
            safe_bins=SafeBins(PROFILES, (str(self.box.bin), "/usr/bin", "/bin")),
        )
        env = {**self.box.env, "PATH": str(self.box.bin)}
        return evaluate(command, str(self.box.cwd), env, policy, Trusted())

    def not_asked(self, commands: Iterable[str], *rules: Rule) -> list[str]:
        """Those that would run, or whose question gives no reason."""
        found = [(command, self.decide(command, *rules)) for command in commands]
        return [
            command
            for command, verdict in found
            if verdict.verdict is not Answer.ASK or verdict.enforced_argv or not verdict.reasons
        ]


@pytest.mark.parametrize("command", ["uname -a", "echo 'a;b' | sort -u && cat x", "expr 1 + 1"])
def test_the_rules_are_as_wide_as_they_seem(machine: Machine, command: str) -> None:
    assert machine.decide(command).verdict is Answer.ALLOW


STARTERS = [
    # options, files and scripts of programs that start others
    "env -S 'sh -c id'", "env -iS 'id'", "env --split-string='sh -c id'", "env -vS id", "env - id",
    "env A=b id", "env -- id", "env -u PATH id", "env -C / id", "env --chdir=/ id",
    "env --default-signal=INT id", "env --argv0=sh id", "env -a sh busybox",
    "busybox id", "busybox sh -c id", "busybox find . -exec id {} +", "toybox xargs id",
    "busybox.static ash -c id", "coreutils --coreutils-prog=env id", "sbase-box sh",
    "git -c core.pager=id -p log", "git -c alias.x='!id' x", "git --exec-path=/tmp/x status",
    "git --git-dir=x log", "git -C x status", "git clone 'ext::sh -c id'", "git grep -Oid x",
    "git bisect run id", "git submodule foreach id", "git rebase -x id", "git-shell -c id",
    "tar -cf x y --checkpoint=1 --checkpoint-action=exec=id", "tar tf x -vIid",
    "tar tf x --use-compress=id", "tar tf x -T list", "tar tf host:x", "gtar -I id -tf x",
    "find . -exec id {} +", "find . -execdir id ';'", "find . -ok id ';'", "find -files0-from x",
    "fd -x id", "fd -Hx id", "fdfind . -X id",
    "xargs id", "xargs -a x id", "parallel id", "gxargs id",
    "ssh -o ProxyCommand=id x", "ssh -oProxyCommand=id x", "ssh -F x y", "scp -S id x y:",
    "sftp -D id", "rsync -e id x y:", "ssh-keygen -D ./x.so", "ssh-agent id", "ssh-add -s x.so",
    "awk 'BEGIN{system(\"id\")}'", "gawk -l x", "mawk 'BEGIN{print|\"id\"}'", "goawk x", "mlr x",
    "sed 1e", "sed -n '1s/x/id/e'", "sed -f x", "gsed 1e", "rg --pre id x", "ugrep --filter=id x",
    "sort --compress-program=id", "sort --compress-prog id", "sort -uo x",
    "python3 -c 1", "python3-dbg -c 1", "python3.13t -c 1", "pypy3-c x", "perl -e 1", "ruby -e 1",
    "x86_64-linux-gnu-python3.12 x", "node18-bin -e 1", "bash5-static -c id", "sqlite3-static x",
    "nice sh -c id", "nice -n 5 python3 x", "nice -5 id", "timeout 5 sh -c id", "timeout -v5 id",
    "timeout -- 5 id", "stdbuf -oL sh -c id", "stdbuf --output L id", "nohup sh x", "nohup -- id",
    "setsid id", "setsid -w sh", "flock x -c id", "flock x id", "watch id", "watch -x id",
    "script -c id", "script -qec id /dev/null", "ionice -c3 id", "chrt -r 1 id", "taskset 1 id",
    "unshare -r id", "nsenter -t 1 id", "chroot / id", "setpriv --reuid=0 id", "prlimit id",
    "strace id", "ltrace id", "gdb -ex '!id'", "perf record id", "valgrind id", "expect -c x",
    "qemu-x86_64-static ./x", "wine x", "box64 x", "proot id", "fakeroot id", "firejail id",
    "aa-exec -p x id", "grc id", "chronic id", "xterm -e id", "kitty id", "direnv exec . id",
    "sudo id", "sudo-rs id", "doas id", "su -c id", "su-rs", "run0 id", "pkexec id", "ksu",
    "systemd-run id", "systemctl --user start x", "at now", "batch", "crontab x", "docker run x",
    "make -f x", "make --eval='x:;id'", "cmake -P x", "ninja", "npm run x", "npx x", "pip wheel x",
    "gcc -wrapper id x.c", "gcc -B. x.c", "ld -plugin x.so", "nm --plugin=x.so", "ar x",
    "vim -c '!id'", "vim.tiny x", "gvim x", "nvim-qt x", "ed x", "less x", "more x", "man -P id x",
    "zip x y -TT id -T", "unzip x", "7z x", "cpio -o --rsh-command=id", "dpkg --pre-invoke=id -i x",
    "curl -K x", "wget --use-askpass=id x", "openssl engine ./x.so", "nmap --script=x", "nc -e x",
    "socat - exec:id", "tcpdump -z id -G 1 -w x", "rpmquery --eval '%(id)'", "exiftool -config x",
    "jjs", "cowsay -f x", "facter x", "crash", "top", "ld.so ./x", "ld-linux-x86-64.so.2 ./x",
    "msgfilter -i x id", "run-parts x", "start-stop-daemon -Sx id", "split --filter=id x",
    "csplit x", "xdg-open x", "logrotate x", "ip netns exec x id", "tc -b x", "bpftrace -e x",
    "install -s --strip-program=./x a b", "sdiff --diff-program=./x a b", "diff3 --diff-program=x",
    "rename 's/x/`id`/e' y", "patch -p1", "updatedb --findoptions='-exec id ;'", "pipesz -- id",
    "svnlook diff --diff-cmd id x", "yt-dlp --exec id x", "bison -S x y", "protoc --plugin=x y",
    "mbuffer -A id", "dcfldd 'of:=id'", "chromium --gpu-launcher=id", "sox '|id' x", "x86_64 id",
    "systemd-dissect --with x id", "coredumpctl debug --debugger=id", "exim -be '${run{id}}'",
    "claw approvals approve x", "claw-tui", "openclaw x",
]  # fmt: skip


def test_a_program_that_starts_others_asks(machine: Machine) -> None:
    for command in STARTERS:
        machine.program(command.split()[0])
    assert machine.not_asked(STARTERS) == []


def test_always_is_not_offered_for_any_of_them(machine: Machine) -> None:
    env = {**machine.box.env, "PATH": str(machine.box.bin)}
    offered = []
    for command in STARTERS:
        machine.program(command.split()[0])
        verdict = evaluate(command, str(machine.box.cwd), env, ExecPolicy(), Trusted())
        if verdict.always.patterns:
            offered.append(command)
    assert offered == []


SYNTAX = [
    # what a shell makes of the text; all the words are those of plain programs
    "uname$IFS-a", "uname${IFS}-a", "cat${IFS%?}x", "IFS=,; cat,x", "cat $IFS",
    "$'uname'", "$'\\x75name'", "echo $'a\\'; id #'", "echo $\"a\"", "echo \"$'x'\"; $'id'",
    "un\\\name", "uname \\\n-a", "echo x\\\n; id", "echo \"a\\\nb\"", "uname \\\r\n-a",
    "uname\r\nid", "uname\rid", "uname\x00id", "uname -a\x00", "echo \x0cid", "echo a\x0bid",
    "echo\u00a0id", "uname\u2003-a", "echo\u3000a", "uname\u200b", "echo \u2028id",
    "echo x\u2029id", "echo \u202eid", "uname \ufeff", "echo \U000e0041", "echo \x85id",
    "! uname", "~root/uname", "~/uname", "~+/uname", "cat ~root/x",
    "cat ~-", "echo a:~/b=~", "{uname,-a}", "ls {-a,/}", "echo {1..9}", "ls -{a,l}", "l{s,} x",
    "ls *", "cat -*", "cat ./*", "ls ?", "cat [a-z]", "echo [!x]", "/bin/una?e", "./*",
    "cat <<E\n$(id)\nE", "cat <<'E'\nx\nE", "nice cat <<E\n`id`\nE", "timeout 5 cat <<-E\n\tx\n\tE",
    "cat <<<x", "env cat <<< $(id)", "cat < x", "uname > x", "uname >> x", "uname 2>&1", "uname>x",
    "uname >&2", "uname &> x", "uname <> x", "uname >| x", "uname 3< x", "uname {fd}> x",
    "uname() { id; }; uname", "uname () { id; }", "function uname { id; }", "f() (id); f",
    "alias uname=id; uname", "alias uname=id\nuname", "unalias -a; uname", "command -p uname",
    "command uname", "command -v uname; id", "exec -a x uname", "exec uname", "coproc uname",
    "coproc x { uname; }", "eval uname", "eval 'id'", ". ./x", "source x", "builtin echo",
    "cat <(id)", "cat >(id)", "echo $(id)", "echo `id`", "echo \"$(id)\"", "echo \"`id`\"",
    "echo ${x:-$(id)}", "echo ${x@P}", "echo $((a[$(id)]))", "echo $[1+1]", "((a[0]=1))",
    "let x=1", "[[ -v a[$(id)] ]]", "[ x ]", "test x -o x > y", "printf -v x y; $x", "echo $_",
    "echo $0", "$0 -c id", "$SHELL", "\"$SHELL\" -c id", "$BASH", "${0}", "$1", "$@", "echo $-",
    "A=1 uname", "A= uname", "A+=1 uname", "A[1]=1 uname", "PATH=. uname", "LD_PRELOAD=x uname",
    "A=$(id)", "A=1", "A=1 B=2 uname", "uname & id", "uname &", "uname & ", "uname |& id",
    "uname ;; id", "uname; ; id", "&& uname", "uname ||", "| uname", "(uname)", "{ uname; }",
    "if uname; then id; fi", "while uname; do id; done", "for x in y; do id; done",
    "case x in x) id;; esac", "select x in y; do id; done", "until id; do id; done", "time uname",
    "time -p uname", "uname # x", "uname #", "#uname", "#!/bin/sh\nuname", "uname\nid",
    "uname\n\n\nid", "uname;\nid", "uname &&\nid", "'uname", "\"uname", "uname '", "uname \\",
    "echo $\"", "''", "'' uname", "\"\" -a", "cd /; uname", "cd x && uname", "pushd x",
    "export A=1; uname", "set -x; uname", "set -- x; uname", "unset PATH; uname", "trap id EXIT",
    "hash -p /x uname; uname", "enable -n echo; echo", "shopt -s x; uname", "ulimit -n 1; uname",
    "umask 0; uname", "read x", "exit", "return", "break", ": x", "type uname", "getopts x y",
    "jobs -x id", "fc -s", "bind -x x", "complete -C id uname", "mapfile -C id x", "wait", "times",
]  # fmt: skip


def test_what_a_shell_would_make_more_of_asks(machine: Machine) -> None:
    assert machine.not_asked(SYNTAX) == []


LITERAL = [
    # odd, but each word is what it says: allowed, and handed over word for word
    ("echo '$(id)'", ("echo", "$(id)")),
    ("echo \\$\\(id\\)", ("echo", "$(id)")),
    ('echo "\\`id\\`"', ("echo", "`id`")),
    ("echo '!!'", ("echo", "!!")),
    ("echo a#b ", ("echo", "a#b")),
    ("echo $", ("echo", "$")),
    ("echo !! !x", ("echo", "!!", "!x")),
    ("echo a~b", ("echo", "a~b")),
    ("cat -- -x", ("cat", "--", "-x")),
    ("echo 'a\nid'", ("echo", "a\nid")),
    ("cat '-*'", ("cat", "-*")),
    ("'echo' \"a\"'b'c\\ d", ("echo", "abc d")),
]


@pytest.mark.parametrize(("command", "argv"), LITERAL)
def test_what_is_literal_is_handed_over_word_for_word(
    machine: Machine, command: str, argv: tuple[str, ...]
) -> None:
    verdict = machine.decide(command)
    assert verdict.verdict is Answer.ALLOW
    assert verdict.enforced_argv == (str(machine.box.bin / argv[0]), *argv[1:])


LINES = ["#!/usr/bin/env -S sh -c", "#!/usr/bin/env A=1 sh", "#!/usr/bin/env --split-string=sh",
         "#!/nowhere/sh", "#!relative/sh"]  # fmt: skip


def test_a_first_line_that_is_not_followed_asks(machine: Machine) -> None:
    names = [f"tool{number}" for number in range(len(LINES))]
    for name, line in zip(names, LINES, strict=True):
        machine.program(name, f"{line}\n")
    assert machine.not_asked(names) == []


@pytest.mark.parametrize("target", ["python3", "bash", "busybox", "find", "sudo", "env", "xargs"])
def test_another_name_does_not_change_what_it_is(machine: Machine, target: str) -> None:
    real = machine.program(target)
    (machine.box.bin / f"x-{target}").symlink_to(real)
    forms = ("{} -c 1", "nice {} x", f"{machine.box.bin}/{{}} x", "true; {}", "timeout 5 {}")
    assert machine.not_asked(form.format(f"x-{target}") for form in forms) == []


OTHERS = [
    "git status; git push", "git status -s", "git -c core.fsmonitor=id status", "git status ''",
    "git 'status '", "git status\t-s", "env git push", "nice git -C x status", "git -- status",
    "GIT_DIR=x git status", "git status\\ ", "git stat\\us x", "./git status", "git status --",
]  # fmt: skip


def test_a_rule_for_exact_arguments_opens_nothing_else(machine: Machine) -> None:
    for name in ("git", "env", "nice"):
        machine.program(name)
    rule = Rule("g", str(machine.box.bin / "git"), arg_pattern=exactly(("status",)))
    assert machine.decide("git status", rule).verdict is Answer.ALLOW
    assert machine.decide("'git' s\\tatus", rule).verdict is Answer.ALLOW
    assert machine.not_asked(OTHERS, rule) == []
