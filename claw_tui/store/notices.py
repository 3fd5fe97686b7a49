"""What the engine and the console said: the newest is a toast, a sticky one stands until it is
cleared. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from claw_tui.store.wire import Json, flag, num, text

KEPT = 200
INTERRUPTED = "runs-interrupted"
"""Code of the notice that runs wait for a decision after a restart."""
PERMISSION = "permission-mode"
"""Code of the notices about the permission mode."""
SHUTDOWN = "shutdown"
"""Code of our own words about an engine that leaves; true until it is back."""


class Notice(Struct, frozen=True):
    code: str
    level: str
    title: str
    text: str = ""
    hint: str = ""
    sticky: bool = False
    ts_ms: int = 0

    @property
    def passing(self) -> bool:
        """Whether it is said once and may leave: an error and what stands may not."""
        return not self.sticky and self.level != "error" and self.code != SHUTDOWN


def notice_from(raw: Json) -> Notice:
    return Notice(
        text(raw, "code"),
        text(raw, "level", "info"),
        text(raw, "title"),
        text(raw, "text"),
        text(raw, "hint"),
        flag(raw, "sticky"),
        num(raw, "ts"),
    )


def added(known: Sequence[Notice], notice: Notice) -> list[Notice]:
    """With one more: a newer one of a code replaces what stood, "clear" only takes it away."""
    clear = notice.level == "clear"
    kept = [
        old
        for old in known
        if not (notice.code and (old.sticky or clear) and old.code == notice.code)
    ]
    return kept[-KEPT:] if clear else [*kept, notice][-KEPT:]


def restated(known: Sequence[Notice], standing: Sequence[Notice]) -> list[Notice]:
    """After a `status`: its list is the whole truth about what the engine lets stand."""
    now = {notice.code: notice for notice in standing}
    kept = [old for old in known if not (old.sticky and old.code) or now.get(old.code) == old]
    return [*kept, *(new for new in standing if new not in kept)][-KEPT:]


def standing(known: Sequence[Notice]) -> list[Notice]:
    """What stands, oldest first."""
    return [notice for notice in known if notice.sticky]
