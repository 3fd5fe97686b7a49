"""A request while it waits: the future its askers wait on, its timer, and its end in the making."""

from __future__ import annotations

import asyncio

from claw_engine.approvals.model import ApprovalRecord
from claw_engine.world import Timer


class Waiting:
    """Made on the loop. `end` is set while the end is being written: the first answer has won."""

    def __init__(self, record: ApprovalRecord) -> None:
        self.record = record
        loop = asyncio.get_running_loop()
        self.future: asyncio.Future[ApprovalRecord] = loop.create_future()
        self.timer: Timer | None = None
        self.end: ApprovalRecord | None = None
