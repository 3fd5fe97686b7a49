"""What is run and how it ended: the two values that travel between exec's parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from claw_engine.runs import AbortReason


class Job(Struct, frozen=True):
    """What to run and for whom. `timeout_s` None means no limit of its own.

    `stdin` gives it an input that can be written to, `terminal` a pseudo-terminal of its own.
    With `monitor` the first process only watches over the command, `stop` ends what it started
    elsewhere (see sandbox.base.Wrapped).
    """

    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    run_id: str
    call_id: str
    timeout_s: float | None
    stdin: bool = False
    terminal: bool = False
    monitor: bool = False
    stop: Sequence[str] = ()


class Ran(Struct, frozen=True):
    """How it ended. `returncode` is negative for a signal; `duration_ms` from start to end.

    `output` is the kept tail, `left_out` the characters before it. `left_running` and `escaped`
    name processes (pid and name) that still run. `stopped` is set when we stopped it, other than
    for its time limit; `warning` is for the model.
    """

    returncode: int
    output: str
    left_out: int
    duration_ms: int
    timed_out: bool = False
    stopped: bool = False
    aborted: AbortReason | None = None
    killed: int = 0
    left_running: tuple[str, ...] = ()
    escaped: tuple[str, ...] = ()
    warning: str = ""
