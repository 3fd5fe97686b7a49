"""Wide, joined and decomposed characters in a real terminal under two locales (TU-03).

Variants: LANG=C and LANG=C.UTF-8 with TERM=tmux-256color; ctrl+l after the screen was spoilt.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.e2e.consoles import BIN, plain_env, say
from tests.support.fake_openai import DONE, Raw, delta, text, usage
from tests.support.pty_driver import Terminal

pytestmark = pytest.mark.e2e

GLYPHS = [
    "├─ box",
    "warn ⚠\ufe0f end",
    "family 👨\u200d👩\u200d👧 end",
    "か\u3099 two",
    "ﾊﾝｶｸ half",
    "│ bar",
]
LINES = [f"{n:03} {GLYPHS[n % len(GLYPHS)]}  \n" for n in range(200)]


class Provider(BaseHTTPRequestHandler):
    """Streams the 200 lines, whatever is asked."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for step in (*text(*LINES), delta("stop"), usage(1, 200), DONE):
            data = step.data if isinstance(step, Raw) else json.dumps(step)
            self.wfile.write(f"data: {data}\n\n".encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # http.server's name
        """Nothing on stderr."""


@pytest.fixture
def provider() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()
    thread.join()


def straight(screen: str, uprights: str) -> bool:
    """The panes' borders stand in the same columns in every row of the panes."""
    rows = [cells(row) for row in screen.split("\n")[4:30]]
    return all(row[column] in uprights for row in rows for column in (0, 25, 26, 93))


def cells(row: str) -> list[str]:
    """One entry a cell; pyte gives a wide character one entry and an empty one."""
    out: list[str] = []
    for char in row:
        out += [char] + [""] * (cell_len(char) - 1)
    return out + [" "] * (120 - len(out))


@pytest.mark.parametrize("lang", ["C", "C.UTF-8"])
def test_borders_stay_and_ctrl_l_mends(tmp_path: Path, provider: str, lang: str) -> None:
    """TU-03: 200 streamed lines, the screen as pyte has it, then a spoilt screen and ctrl+l."""
    state = tmp_path / "state"
    state.mkdir()
    models = [{"id": "one", "name": "one"}]
    config = {
        "models": {"providers": {"fake": {"baseUrl": provider, "apiKey": "k", "models": models,
                                          "api": "openai-completions"}}},
        "agents": {"defaults": {"model": {"primary": "fake/one"}}},
    }  # fmt: skip
    (state / "openclaw.json").write_text(json.dumps(config))
    env = {**plain_env(tmp_path / "home"), "TERM": "tmux-256color", "LANG": lang}
    command = [str(BIN / "claw-tui"), "--state-dir", str(state)]
    with Terminal(command, size=(120, 40), env=env, clean_env=True) as terminal:
        terminal.wait_for("TYPE", 30)
        say(terminal, "glyphs, please")
        upright = "|" if lang == "C" else "│"

        def whole(screen: str) -> bool:
            return "199 " in screen and "#" * 5 not in screen and straight(screen, upright)

        terminal.wait_for(whole, 30)
        if lang == "C":
            assert terminal.text().isascii()
        terminal.spoil("#" * 90)
        assert not whole(terminal.text())
        terminal.send("\x0c")
        terminal.wait_for(whole)
