"""The status line as data: segments with shorter forms, given up in a fixed order until the
line fits. The waiting approvals, the mode full and the connection are never given up. Pure."""

from __future__ import annotations

from msgspec import Struct

from claw_tui.store.sanitize import line
from claw_tui.store.sessions import short_key
from claw_tui.store.store import Link, Store
from claw_tui.store.words import clock, countdown

BYPASS_SHORT = "approvals can be bypassed"


class Seg(Struct):
    role: str
    forms: list[str]
    """Longest first; an empty form drops the segment."""
    level: int = 0
    """Which form is used."""

    @property
    def shown(self) -> str:
        return self.forms[self.level]


GIVE_UP = (
    "ctx",
    "model",
    "ctx",
    "bypass",
    "interrupted",
    "where",
    "where",
    "ctx",
    "waiting",
    "full",
    "runs",
    "model",
)
"""Whose next shorter form is taken first; the waiting approvals never go away."""


def segments(store: Store, now_ms: int, width: int, wide_bar: bool = False) -> list[Seg]:
    """The segments that fit `width` cells with two spaces between them."""
    segs = _all(store, now_ms, wide_bar)
    by_role = {seg.role: seg for seg in segs}
    given: list[Seg] = []
    for role in GIVE_UP:
        if _width(segs) <= width:
            break
        seg = by_role.get(role)
        if seg is not None and seg.level + 1 < len(seg.forms):
            seg.level += 1
            given.append(seg)
    for seg in reversed(given):  # what was given up in vain comes back
        level, seg.level = seg.level, max(0, seg.level - 1)
        if _width(segs) > width:
            seg.level = level
    return [seg for seg in segs if seg.shown]


def _width(segs: list[Seg]) -> int:
    from rich.cells import cell_len  # only this function measures

    boxed = ("paused", "full")  # drawn with a space on either side
    shown = [cell_len(seg.shown) + 2 * (seg.role in boxed) for seg in segs if seg.shown]
    return sum(shown) + 2 * max(0, len(shown) - 1)


def _all(store: Store, now_ms: int, wide_bar: bool) -> list[Seg]:
    engine = store.engine
    host = line(engine.host or "local")
    session = line(short_key(store.selected))
    out = [Seg("where", [f"{host}·{session}", _cut(f"{host}·{session}", 16), _cut(session, 8)])]
    out.append(_model(store))
    out.append(_permission(store, now_ms))
    if engine.bypass:
        out.append(Seg("bypass", [f"⚠ {BYPASS_SHORT}", "⚠ bypassable"]))
    percent = store.context_percent()
    if percent is not None:
        forms = [f"ctx {percent}%", f"{percent}%", ""]
        if wide_bar:
            filled = min(10, round(percent / 10))
            forms.insert(0, f"ctx {'▓' * filled}{'░' * (10 - filled)} {percent}%")
        out.append(Seg("ctx", forms))
    active, queued = store.lanes.active, store.lanes.queued
    if active or queued:
        busy = f"▶{active}" + (f" q{queued}" if queued else "")
        out.append(Seg("runs", [busy, ""]))
    waiting = len(store.queue.pending)
    if waiting:
        left = countdown(store.queue.shortest_ms(now_ms) or 0)
        out.append(Seg("waiting", [f"⏸ {waiting} wait {left} [a]", f"⏸{waiting} {left} [a]"]))
    if cut_short := len(store.interrupted):
        out.append(Seg("interrupted", [f"■ {cut_short} interrupted", f"■{cut_short}"]))
    out.append(_link(store))
    if store.lanes.paused:
        out.append(Seg("paused", ["PAUSED"]))
    return out


def _permission(store: Store, now_ms: int) -> Seg:
    """The mode; `full` in words that never go away, with the time it ends."""
    engine = store.engine
    if engine.permission != "full":
        return Seg("perm", [line(engine.permission)])
    until = clock(engine.full_until_ms)
    return Seg("full", [f"FULL: nothing asks until {until}" if until else "FULL: nothing asks",
                        f"FULL until {until}" if until else "FULL"])  # fmt: skip


def _model(store: Store) -> Seg:
    engine = store.engine
    name = line(engine.model) or "no model"
    short = line(engine.model.split("/")[-1]) if engine.is_ai else line(engine.model.split("/")[0])
    if engine.model_error:
        return Seg("model_error", [f"{_cut(short or 'model', 16)}: cannot be used"])
    if not engine.is_ai:
        return Seg("model", [f"{name} (not an AI)", f"{short} (not an AI)"])
    return Seg("model", [name, _cut(short, 24), _cut(short, 14)])


def _link(store: Store) -> Seg:
    match store.link:
        case Link.CONNECTED:
            return Seg("on", ["●"])
        case Link.CONNECTING:
            return Seg("off", ["◌ connecting"])
        case _:
            return Seg("off", ["○ connection lost"])


def _cut(text: str, cells: int) -> str:
    return text if len(text) <= cells else text[: cells - 1] + "…"
