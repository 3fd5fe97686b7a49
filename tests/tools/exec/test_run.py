"""Real processes: what a child gets, and that nothing of it stays behind."""

from __future__ import annotations

import asyncio
import os
import resource
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from claw_engine.runs import AbortReason, AbortScope
from claw_engine.tools.exec.job import Job, Ran
from claw_engine.tools.exec.processes import look
from claw_engine.tools.exec.run import run
from claw_engine.tools.exec.running import start
from claw_engine.world import World, real_world

ENV = {"PATH": os.environ.get("PATH", os.defpath)}

RUN = f"run-of-bench-{os.getpid()}"


class Bench:
    """Runs shell text for one run; live output wakes whoever waits for a word of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.world: World = real_world()
        self.scope = AbortScope()
        self.live = ""
        self._news = asyncio.Event()

    def emit(self, text: str) -> None:
        self.live += text
        self._news.set()

    async def said(self, word: str) -> None:
        async with asyncio.timeout(10):
            while word not in self.live:
                self._news.clear()
                await self._news.wait()

    async def sh(self, text: str, *, timeout: float | None = 30, call: str = "c-1") -> Ran:
        job = replace(self.job(text), timeout_s=timeout, call_id=call)
        return await run(self.world, job, self.scope, self.emit)

    def job(self, text: str, *, stdin: bool = False, terminal: bool = False) -> Job:
        argv = ("/bin/sh", "-c", text)
        return Job(argv, str(self.folder), ENV, RUN, "c-1", 30, stdin, terminal)

    def pid(self, name: str) -> int:
        return int((self.folder / name).read_text())


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(tmp_path)
    yield made


async def test_output_and_exit_code(bench: Bench) -> None:
    ran = await bench.sh("echo out; echo err >&2; exit 3")
    assert (ran.returncode, ran.output) == (3, "out\nerr\n")
    assert bench.live == "out\nerr\n"
    assert not ran.timed_out and ran.aborted is None and ran.left_running == ()


async def test_the_child_leads_its_own_session_without_terminal_or_input(bench: Bench) -> None:
    ran = await bench.sh("cat /proc/$$/stat; read x || echo eof; : < /dev/tty || true")
    fields = ran.output.splitlines()[0].rpartition(")")[2].split()
    session, tty = int(fields[3]), int(fields[4])
    assert session == int(ran.output.split()[0])
    assert session != os.getsid(0)
    assert tty == 0
    assert "eof" in ran.output


async def test_the_child_has_only_the_given_environment_and_its_marks(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    ran = await bench.sh("env")
    names = {line.partition("=")[0] for line in ran.output.splitlines()} - {"_", "SHLVL"}
    assert names == {"PATH", "PWD", "CLAW_RUN_ID", "CLAW_CALL_ID"}
    assert f"CLAW_RUN_ID={RUN}" in ran.output


async def test_a_missing_program_raises(bench: Bench) -> None:
    job = Job(("/no/such/program",), str(bench.folder), ENV, RUN, "c-1", 5)
    with pytest.raises(FileNotFoundError):
        await run(bench.world, job, bench.scope, bench.emit)


CHILDREN = {
    "grandchild": "sh -c 'sleep 60 & echo $! > pid; wait' &",
    "own session": "setsid nohup sleep 60 >/dev/null 2>&1 & sleep 0.2; echo $! > pid;",
    "double fork": "(setsid sh -c 'echo $$ > pid; exec sleep 60' &) ; sleep 0.2;",
    "ignores TERM": "sh -c 'trap \"\" TERM; echo $$ > pid; while :; do sleep 0.05; done' &",
    "cleared env in the group": "env -i sleep 60 & echo $! > pid;",
}


@pytest.mark.parametrize("child", CHILDREN.values(), ids=CHILDREN.keys())
async def test_a_time_limit_leaves_no_process(bench: Bench, child: str) -> None:
    ran = await bench.sh(f"{child} sleep 0.1; echo ready; sleep 60", timeout=1)
    assert ran.timed_out
    assert ran.escaped == ()
    assert look(bench.pid("pid")) is None


@pytest.mark.parametrize("child", CHILDREN.values(), ids=CHILDREN.keys())
async def test_cancelling_leaves_no_process_and_is_raised_again(bench: Bench, child: str) -> None:
    task = asyncio.create_task(bench.sh(f"{child} sleep 0.1; echo ready; sleep 60"))
    await bench.said("ready")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert look(bench.pid("pid")) is None


async def test_an_impatient_second_cancel_does_not_cut_the_clean_up_short(bench: Bench) -> None:
    child = CHILDREN["ignores TERM"]
    task = asyncio.create_task(bench.sh(f"{child} sleep 0.1; echo ready; sleep 60"))
    await bench.said("ready")
    for _ in range(5):
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert look(bench.pid("pid")) is None


async def test_cancelling_while_starting_leaves_no_process(bench: Bench) -> None:
    task = asyncio.create_task(bench.sh("echo $$ > pid; sleep 60"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    if (bench.folder / "pid").exists():
        assert look(bench.pid("pid")) is None


async def test_an_aborted_scope_ends_the_command(bench: Bench) -> None:
    task = asyncio.create_task(bench.sh("echo ready; sleep 60"))
    await bench.said("ready")
    bench.scope.abort(AbortReason.USER)
    ran = await task
    assert ran.aborted is AbortReason.USER
    assert not ran.timed_out


async def test_a_child_that_ignores_term_is_killed_after_300_ms(bench: Bench) -> None:
    ran = await bench.sh("trap '' TERM; echo ready; while :; do sleep 0.05; done", timeout=0.5)
    assert ran.returncode == -9
    assert ran.killed >= 1
    assert ran.duration_ms < 5000  # its limit is 500 ms; it would go on for ever


async def test_one_calls_limit_spares_another_call_of_the_run(bench: Bench) -> None:
    other = asyncio.create_task(bench.sh("echo ready; sleep 1.2; echo survived", call="c-2"))
    await bench.said("ready")
    assert (await bench.sh("sleep 60", timeout=0.2)).timed_out
    assert "survived" in (await other).output


async def test_an_escaped_descendant_is_reported(bench: Bench) -> None:
    script = "env -i setsid sh -c 'echo $$ > pid; exec sleep 30' & sleep 0.6; echo ready; sleep 60"
    ran = await bench.sh(script, timeout=1.2)
    pid = bench.pid("pid")
    assert ran.escaped == (f"{pid} (sleep)",)
    os.kill(pid, 9)


async def test_a_background_child_does_not_hold_the_call_and_is_named(bench: Bench) -> None:
    ran = await bench.sh("sleep 30 & echo $! > pid; echo done")
    assert ran.output == "done\n"
    assert ran.left_running == (f"{bench.pid('pid')} (sleep)",)
    os.kill(bench.pid("pid"), 9)


async def test_what_dies_with_its_monitor_is_not_called_left_running(bench: Bench) -> None:
    # As under bwrap: the monitor ends, and a moment later the kernel has ended the rest.
    job = replace(bench.job("sleep 0.1 > /dev/null 2>&1 & echo done"), monitor=True)
    ran = await run(bench.world, job, bench.scope, bench.emit)
    assert (ran.output, ran.left_running) == ("done\n", ())


async def test_output_written_at_the_very_end_is_not_lost(bench: Bench) -> None:
    for _ in range(10):
        ran = await bench.sh("printf 'x%.0s' $(seq 1000); printf end")
        assert ran.output.endswith("xend")


async def test_a_flood_neither_grows_memory_nor_starves_the_loop(bench: Bench) -> None:
    lags: list[float] = []

    async def measure() -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.005)
            lags.append(time.monotonic() - before - 0.005)

    meter = asyncio.create_task(measure())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ran = await bench.sh("yes 0123456789abcdef | head -c 100000000; echo; echo end", timeout=100)
    meter.cancel()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert ran.output.endswith("end\n")
    assert len(ran.output) == 200_000
    assert ran.left_out == 100_000_000 + len("\nend\n") - 200_000
    assert grown < 30_000  # KB
    assert sorted(lags)[len(lags) // 2] < 0.05
    assert len(bench.live) < 4_000_000


async def test_no_descriptor_or_task_is_left(bench: Bench) -> None:
    await bench.sh("true")
    before = set(fds())
    tasks = asyncio.all_tasks()
    await bench.sh("echo x")
    await bench.sh("sleep 60", timeout=0.1)
    for job in (bench.job("cat", stdin=True), bench.job("cat", terminal=True)):
        running = await start(bench.world, job, bench.emit)
        await running.write(b"x\n")
        running.close_input()
        assert (await running.wait()).returncode == 0
    assert set(fds()) - before == set()
    assert asyncio.all_tasks() == tasks


def fds() -> list[str]:
    links: list[str] = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            links.append(str(entry.readlink()))
        except OSError:
            continue
    kinds = ("pidfd", "pipe:", "/dev/pt", "socket:")
    return [link for link in links if any(kind in link for kind in kinds)]
