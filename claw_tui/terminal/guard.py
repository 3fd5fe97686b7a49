"""The last line: whatever happens, the shell gets its terminal back.

Textual restores the screen on an orderly end. This writes the same restore sequence once more
when the process leaves through an exception, straight to the descriptor.
"""

from __future__ import annotations

import contextlib
import os
import sys
import termios
from collections.abc import Iterator

RESTORE = (
    "\x1b[<u"  # kitty keys off
    "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l"  # mouse
    "\x1b[?1004l\x1b[?2004l\x1b[?2048l"  # focus, paste, in-band resize
    "\x1b[?2026l\x1b[?7h\x1b[?1049l\x1b[?25h\x1b[0m"
)


@contextlib.contextmanager
def terminal_restored() -> Iterator[None]:
    """Save the line settings, and put settings and screen back if the body raises."""
    stdin, stderr = sys.__stdin__, sys.__stderr__
    if stdin is None or stderr is None or not stdin.isatty():
        yield
        return
    saved = None
    with contextlib.suppress(termios.error, OSError):
        saved = termios.tcgetattr(stdin.fileno())
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            os.set_blocking(stderr.fileno(), False)
            os.write(stderr.fileno(), RESTORE.encode())
        with contextlib.suppress(OSError):
            os.set_blocking(stderr.fileno(), True)
        if saved is not None:
            with contextlib.suppress(termios.error, OSError):
                termios.tcsetattr(stdin.fileno(), termios.TCSANOW, saved)
        raise
