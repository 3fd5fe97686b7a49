"""`python -m bench.interop --package DIR --node FILE --work DIR`: both directions, one report.

See docs/interop/README.md for how to install the real program. Exit code 1 = a check was broken.
"""

from __future__ import annotations

import argparse
import asyncio
import platform
import signal
import sys
import traceback
from pathlib import Path

from bench.interop.config import write_config
from bench.interop.golden import Golden
from bench.interop.peer import Installed, free_port
from bench.interop.provider import Provider
from bench.interop.report import Report
from bench.interop.stage import Stage
from bench.interop.write_here import direction_a
from bench.interop.write_there import direction_b
from claw_engine import __version__

STORIES = {"a": direction_a, "b": direction_b}


async def _run(args: argparse.Namespace) -> int:
    task = asyncio.current_task()
    assert task is not None
    # The gateway has a session of its own: it must not outlive us.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    work: Path = args.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    installed = Installed(args.package.resolve(), args.node.resolve())
    report = Report(work)
    golden = Golden(args.golden, work)
    report.part("Versions")
    report.step(f"real: openclaw {installed.version}; ours: claw {__version__}")
    report.step(f"Python {platform.python_version()}, {platform.system()} {platform.machine()}")
    for name in args.only:
        # The real one looks for exec-approvals.json in ~/.openclaw whatever its state directory.
        state = work / f"home-{name}" / ".openclaw"
        if state.exists():
            sys.exit(f"{state} exists: choose another --work, nothing is deleted here")
        port = free_port()
        async with Provider() as provider:
            write_config(state, provider.base_url, port, work)
            stage = Stage(state, work, port, installed, provider, report, golden)
            try:
                await STORIES[name](stage)
            except Exception as error:
                traceback.print_exc()
                report.check("the story was told to its end", False, repr(error))
    if args.transcript is not None:
        args.transcript.write_text(report.text() + "\n")
    print(f"{report.held} passed, {len(report.broken)} failed")
    return 1 if report.broken else 0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.interop", description=__doc__)
    parser.add_argument("--package", type=Path, required=True, help="node_modules/openclaw")
    parser.add_argument("--node", type=Path, required=True, help="a node >= 22.12")
    parser.add_argument("--work", type=Path, required=True, help="throw-away folder")
    parser.add_argument("--only", nargs="+", choices=sorted(STORIES), default=sorted(STORIES))
    parser.add_argument("--transcript", type=Path, help="file for the report")
    parser.add_argument("--golden", type=Path, help="new folder for samples for offline tests")
    sys.exit(asyncio.run(_run(parser.parse_args())))


if __name__ == "__main__":
    main()
