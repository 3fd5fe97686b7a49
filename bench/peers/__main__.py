"""Real peers on the wire (see docs/interop/README.md): `python -m bench.peers --help`."""

from __future__ import annotations

import argparse
import asyncio
import platform
import signal
import sys
import traceback
from pathlib import Path

from bench.interop.provider import Provider
from bench.interop.report import Report
from bench.peers.page import page_here
from bench.peers.places import Peer
from bench.peers.stories import console_there, terminal_here
from claw_engine import __version__

STORIES = {"console": console_there, "page": page_here, "terminal": terminal_here}


async def _run(args: argparse.Namespace) -> int:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    work, out = args.work.resolve(), args.out.resolve()
    peer = Peer(args.package.resolve(), args.node.resolve(), args.protocol)
    if (work / f"{args.story}-{args.protocol}").exists():
        sys.exit(f"{work} was used for this story already: choose another --work")
    (work / f"{args.story}-{args.protocol}").mkdir(parents=True)
    out.mkdir(parents=True, exist_ok=True)
    report = Report(work)
    report.part(f"{args.story}, OpenClaw {peer.read()}")
    node = await asyncio.create_subprocess_exec(
        str(peer.node), "-v", stdout=asyncio.subprocess.PIPE
    )
    version = (await node.communicate())[0].decode().strip()
    report.step(f"claw {__version__}, Python {platform.python_version()}; node {version}, tmux")
    cache = work / f"compile-cache-{args.protocol}" if args.cache is None else args.cache.resolve()
    async with Provider() as provider:
        try:
            await STORIES[args.story](peer, work, out, cache, provider, report)
        except Exception as error:
            traceback.print_exc()
            report.check("the story was told to its end", False, repr(error))
    (out / f"{args.story}-{peer.read()}.md").write_text(report.text() + "\n")
    return 1 if report.broken else 0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("story", choices=sorted(STORIES))
    parser.add_argument("--package", type=Path, required=True, help="node_modules/openclaw")
    parser.add_argument("--node", type=Path, required=True, help="the node that runs it")
    parser.add_argument("--protocol", type=int, choices=(3, 4), required=True)
    parser.add_argument("--work", type=Path, required=True, help="throw-away folder")
    parser.add_argument("--out", type=Path, required=True, help="screens, frames, report")
    parser.add_argument("--cache", type=Path, help="node's compile cache (default: in --work)")
    sys.exit(asyncio.run(_run(parser.parse_args())))


if __name__ == "__main__":
    main()
