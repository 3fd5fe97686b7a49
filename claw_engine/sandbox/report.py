"""What the sandbox room tells `claw doctor`: each backend, and every route left open."""

from __future__ import annotations

from collections.abc import Sequence

from claw_engine.probes import Found, Health
from claw_engine.sandbox.keeper import BYPASS, Keeper

_HINT = {
    "bwrap": "Install bubblewrap; unprivileged users also need user namespaces.",
    "landlock": "Needs Linux 5.13 or newer with Landlock switched on.",
}


async def look(keeper: Keeper) -> Sequence[Found]:
    """The rows of the sandbox room. Runs one confined command for each backend."""
    reports = await keeper.reports()
    rows = [
        _backend(name=report.name, chosen=report.chosen, available=report.probe.available,
                 reason=report.probe.reason)
        for report in reports if report.name != "none"
    ]  # fmt: skip
    warning = keeper.warning
    if warning is None:
        rows.append(Found("approvals", Health.OK, "no route around them is known to be open"))
        return rows
    if not keeper.confines:
        rows.append(Found("approvals", Health.FAIL, warning, "Make bwrap or landlock work."))
    chosen = next(report for report in reports if report.chosen)
    for route in chosen.probe.routes_left_open:
        where = f" ({route.path})" if route.path else ""
        said = f"{BYPASS}: {route.what}{where} is reachable"
        rows.append(Found("route", Health.WARN, said, _help(route.what)))
    return rows


def _backend(*, name: str, chosen: bool, available: bool, reason: str) -> Found:
    use = ", in use" if chosen else ", not needed" if available else ""
    if available:
        return Found(name, Health.OK, f"{reason}{use}")
    return Found(name, Health.WARN, f"does not work: {reason}", _HINT.get(name, ""))


def _help(what: str) -> str:
    if what.startswith("docker on port"):
        return "Close the port, or set tools.exec.confineNetwork to none."
    return "bwrap closes sockets; abstract ones need tools.exec.confineNetwork none."
