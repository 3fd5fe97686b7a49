"""What holds for every test."""

from __future__ import annotations

import signal

# A suite started with `&` or nohup inherits ignored signals, and so would its tools' children.
for number, usual in (
    (signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL),
    (signal.SIGQUIT, signal.SIG_DFL),
):  # fmt: skip
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)
