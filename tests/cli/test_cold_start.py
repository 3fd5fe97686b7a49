"""What a start loads, counted: modules, not milliseconds, so that a gain cannot be lost unseen.

A budget that is too small for a real need may be raised, with the reason in the commit.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {
    "aiosqlite", "annotated_types", "anyio", "cryptography", "croniter", "dataclasses", "difflib",
    "email", "httpx2", "importlib.resources", "multiprocessing", "pydantic", "pyjson5", "rich",
    "starlette", "tempfile", "textual", "uvicorn", "watchfiles", "websockets", "yaml", "zoneinfo",
}  # fmt: skip
"""None of these is needed before a client connects to an engine without a configuration file."""

CONFIGURED = {"pyjson5", "dataclasses", "zoneinfo"}
"""What reading a file costs on top."""

_ENGINE_READY = """
import asyncio, json, sys
from pathlib import Path
import claw_engine.cli.gateway_run
from claw_engine.engine import Engine

async def main():
    async with Engine(Path(sys.argv[1]), mode="headless", env={"PATH": "/usr/bin:/bin"}):
        print(json.dumps(sorted(sys.modules)))

asyncio.run(main())
"""


def ready_modules(state: Path) -> set[str]:
    """Everything that is loaded when the engine of `state` says that it is ready."""
    argv = [sys.executable, "-c", _ENGINE_READY, str(state)]
    done = subprocess.run(argv, capture_output=True, check=True, text=True)
    return set(json.loads(done.stdout))


def test_an_engine_is_ready_with_nothing_heavy_loaded(tmp_path: Path) -> None:
    loaded = ready_modules(tmp_path / "state")
    assert loaded & HEAVY == set()
    own = sum(name.startswith("claw_engine") for name in loaded)
    # The trace is noted from the first run on: recorder, its values, and the method family.
    assert own <= 390, f"{own} modules of ours: import at first use what a start does not need"


def test_a_configured_provider_costs_a_parser_and_no_more(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    provider = {"baseUrl": "http://127.0.0.1:9/v1", "apiKey": "k", "models": [{"id": "m"}]}
    config = {
        "models": {"providers": {"box": provider}},
        "agents": {"defaults": {"model": "box/m"}},
    }
    (state / "openclaw.json").write_text(json.dumps(config))
    assert ready_modules(state) & (HEAVY - CONFIGURED) == set()


@pytest.mark.parametrize(
    "verb",
    ["config", "devices", "gateway_start", "gateway_status", "gateway_stop", "logs", "sessions",
     "status", "health"],
)  # fmt: skip
def test_a_verb_that_only_asks_is_light(verb: str) -> None:
    code = (
        f"import json, sys\nimport claw_engine.cli.{verb}\nprint(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    loaded = set(json.loads(done.stdout))
    assert loaded & (HEAVY | {"asyncio", "ssl", "http.client", "claw_engine.engine"}) == set()
    others = {name for name in loaded if name.startswith("claw_engine.cli.")}
    shared = {"attach", "lock", "output", "status"}  # of `status` the words for times
    assert others <= {f"claw_engine.cli.{name}" for name in (verb, *shared)}


def test_patterns_are_not_compiled_by_importing() -> None:
    """Those with `late` cost nothing until used; the others are few."""
    code = (
        "import re, json, sys\n"
        "made = []\n"
        "compile_ = re._compile\n"
        "def counting(pattern, flags):\n"
        "    made.append(sys._getframe(2).f_globals.get('__name__', ''))\n"
        "    return compile_(pattern, flags)\n"
        "re._compile = counting\n"
        "import claw_engine.engine\n"
        "print(json.dumps([name for name in made if name.startswith('claw_')]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    ours = json.loads(done.stdout)
    assert len(ours) <= 30, sorted(ours)


@pytest.mark.parametrize("package", ["pydantic", "pydantic_core"])
def test_one_module_names_it(package: str) -> None:
    """HTTP bodies, loaded with the first of them. Sections and parameters are read by `shapes`: the
    models' library cost 0.2 s a start."""
    root = Path(__file__).parents[2]
    found = [
        path.name
        for folder in ("claw_engine", "claw_tui")
        for path in (root / folder).rglob("*.py")
        if f"import {package}" in (text := path.read_text()) or f"from {package} " in text
    ]
    assert found == (["bodies.py"] if package == "pydantic" else [])
