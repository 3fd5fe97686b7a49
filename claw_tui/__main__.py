"""`python -m claw_tui` and the `claw-tui` script."""

from __future__ import annotations

import sys


def main() -> None:
    from claw_tui.cli import main as run  # after this module, so that --version stays instant

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
