"""The third story: OpenClaw's control page in a real browser, at our gateway.

The page's files are served from here, as from any web server that the operator allows; the browser
is driven by page.mjs with the Playwright that OpenClaw brings along.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import http.server
import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

from bench.interop.peer import TOKEN, free_port
from bench.interop.provider import Provider
from bench.interop.report import Report
from bench.peers.places import Peer, our_gateway
from bench.peers.tap import count, tap

BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")


class _Files(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        """Every path that is no file is the page: it looks at the path itself."""
        if not Path(self.translate_path(self.path)).is_file():
            self.path = "/index.html"
        super().do_GET()


@contextlib.contextmanager
def _served(folder: Path) -> Iterator[str]:
    handler = functools.partial(_Files, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


async def page_here(
    peer: Peer, work: Path, out: Path, cache: Path, provider: Provider, report: Report
) -> None:
    """Connect, send, stream, stop, list sessions."""
    version = peer.read()
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        raise RuntimeError(f"no browser here: {', '.join(BROWSERS)}")
    shown = await asyncio.create_subprocess_exec(browser, "--version", stdout=-1)
    name = (await shown.communicate())[0].decode().strip()
    report.step(f"the control page of OpenClaw {version} in {name}, at our gateway")
    log = out / f"page-{version}.frames.jsonl"
    log.unlink(missing_ok=True)
    port = free_port()
    with _served(peer.package / "dist" / "control-ui") as page:
        home = work / f"gateway-{version}"
        async with (
            our_gateway(home, provider, {"controlUi": {"allowedOrigins": [page]}}) as gateway,
            tap(port, f"ws://127.0.0.1:{gateway.port}", log) as url,
        ):
            given = {
                "playwright": str(peer.package.parent / "playwright-core" / "index.js"),
                "browser": browser, "page": page, "gateway": url, "token": TOKEN,
                "out": str(out), "name": f"page-{version}",
            }  # fmt: skip
            driver = await asyncio.create_subprocess_exec(
                str(peer.node), str(Path(__file__).with_name("page.mjs")), json.dumps(given),
                stdout=asyncio.subprocess.PIPE, env=peer.env(work / "browser", cache),
            )  # fmt: skip
            lines, _ = await driver.communicate()
            for line in lines.decode().splitlines():
                row = json.loads(line)
                report.check(row["what"], row["ok"], row["detail"])
    report.step(f"frames: {json.dumps(count(log))}")
