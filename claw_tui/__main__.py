"""`python -m claw_tui` and the `claw-tui` script."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    from claw_tui.cli import main as run  # after this module, so that --version stays instant

    # What an import makes lives on; looking for garbage in it costs a twentieth of the start.
    # The application switches the collector on after its first paint.
    gc.disable()
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
