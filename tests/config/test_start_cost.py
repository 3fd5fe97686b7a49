from __future__ import annotations

import subprocess
import sys

import pytest

PRINT_LOADED = "import sys, importlib; importlib.import_module({!r}); print(*sys.modules)"


def loaded_by(module: str) -> set[str]:
    code = PRINT_LOADED.format(module)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        (
            "claw_engine.config.load",
            {"watchfiles", "difflib", *(f"claw_engine.config.{n}" for n in ("spans", "include"))},
        ),
        ("claw_engine.config.reload", {"watchfiles", "pydantic"}),
        ("claw_engine.config.redact", {"pydantic", "pyjson5"}),
        ("claw_engine.logs", {"pydantic", "claw_engine.config", "asyncio"}),
        ("claw_engine.watchdog", {"pydantic", "claw_engine.config"}),
    ],
)
def test_a_start_imports_only_what_it_needs(module: str, absent: set[str]) -> None:
    assert not loaded_by(module) & absent
