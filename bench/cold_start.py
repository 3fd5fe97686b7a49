"""What each import costs: ms of CPU and modules, in a fresh interpreter, best of five.

python -m bench.cold_start [MODULE ...]
"""

from __future__ import annotations

import json
import subprocess
import sys

MODULES = [
    "claw_engine",
    "claw_engine.client.sync",
    "claw_engine.client.remote",
    "claw_engine.config.load",
    "claw_engine.models.catalog",
    "claw_engine.engine",
    "textual.app",
    "claw_tui.app",
]

_PROBE = """
import json, sys, time
before = set(sys.modules)
start = time.process_time()
__import__(sys.argv[1])
ms = (time.process_time() - start) * 1000
print(json.dumps({"ms": ms, "modules": len(set(sys.modules) - before)}))
"""


def measure(module: str, runs: int = 5) -> tuple[float, int]:
    """Milliseconds of CPU (the best of `runs`) and how many modules the import adds."""
    best, count = float("inf"), 0
    for _ in range(runs):
        done = subprocess.run(
            [sys.executable, "-c", _PROBE, module], capture_output=True, check=True, text=True
        )
        facts = json.loads(done.stdout)
        best, count = min(best, facts["ms"]), facts["modules"]
    return best, count


def main() -> None:
    for module in sys.argv[1:] or MODULES:
        ms, count = measure(module)
        print(f"{module:32} {ms:7.1f} ms {count:5} modules")


if __name__ == "__main__":
    main()
