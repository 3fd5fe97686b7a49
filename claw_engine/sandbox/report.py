"""What the sandbox room tells `claw doctor`: each backend, and every route left open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from claw_engine.probes import Found, Health
from claw_engine.sandbox.box import Backend
from claw_engine.sandbox.boxes import Boxes
from claw_engine.sandbox.keeper import BYPASS, Keeper

if TYPE_CHECKING:
    from claw_engine.config.sections.box import BoxSettings

_LIMITS = "A control group that this user may write makes limits possible (systemd Delegate=yes)."
_IMAGE = "Install docker or podman and make the image (docs/sandbox.md), or set sandbox.backend."
_HINT = {
    "bwrap": "Install bubblewrap; unprivileged users also need user namespaces.",
    "landlock": "Needs Linux 5.13 or newer with Landlock switched on.",
}


async def look(
    keeper: Keeper,
    boxes: Boxes | None = None,
    agents: Callable[[], Mapping[str, BoxSettings]] = dict,
) -> Sequence[Found]:
    """The rows of the sandbox room. Runs one confined command for each backend.

    `agents` are the sandbox settings of each agent; without `boxes` none is looked at.
    """
    rows = await _confinement(keeper)
    rows += [
        Found("limits", Health.WARN, f"not limited: {what}", _LIMITS)
        for what in keeper.limits.missing
    ]
    return rows + (await _boxes(boxes, agents()) if boxes is not None else [])


async def _boxes(boxes: Boxes, agents: Mapping[str, BoxSettings]) -> list[Found]:
    """Whether each agent's sandbox can be had, and what the container program says."""
    rows, used = [], [wanted for wanted in agents.values() if wanted.mode != "off"]
    for wanted in used[:1] or list(agents.values())[:1]:
        probe = await boxes.probe(Backend.DOCKER, wanted)
        needed = any(one.backend in ("auto", "docker") for one in used)
        said = probe.reason if probe.available else f"cannot be used: {probe.reason}"
        health = Health.WARN if needed and not probe.available else Health.OK
        said = said if used else f"{said} (no sandbox wanted)"
        rows.append(Found("docker", health, said, _IMAGE))
    for agent, wanted in agents.items():
        if wanted.mode == "off":
            continue
        name, reasons = f"agent {agent}", []
        chosen = tuple(Backend) if wanted.backend == "auto" else (Backend(wanted.backend),)
        for backend in chosen:
            probe = await boxes.probe(backend, wanted)
            if probe.available:
                text = f"sandbox ({wanted.mode}) works in {backend.value}: {probe.reason}"
                rows.append(Found(name, Health.OK, text))
                break
            reasons.append(f"{backend.value}: {probe.reason}")
        else:
            text = f"no sandbox can be had, so its commands do not run ({'; '.join(reasons)})"
            rows.append(Found(name, Health.FAIL, text, _IMAGE))
    return rows


async def _confinement(keeper: Keeper) -> list[Found]:
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
