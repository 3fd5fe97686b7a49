"""Whether a skill may be used here and now, and if not, why not. Pure.

Rules: agent digest §7.3. Programs, variables and settings are asked for through what is handed in.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from claw_engine.skills.model import Found, Front, Requires, Source

if TYPE_CHECKING:
    from claw_engine.config.sections.skills import SkillsSettings


class Machine(Struct, frozen=True, eq=False):
    """`which` says whether a program is on the PATH of commands."""

    which: Callable[[str], bool]
    env: Mapping[str, str]
    resolved: Mapping[str, object]
    """The configuration."""
    os: str = sys.platform


class Verdict(Struct, frozen=True):
    """`reason` says why the model is not shown it, "" = it is."""

    found: Found
    reason: str = ""
    disabled: bool = False
    blocked: bool = False
    missing: Requires = Requires()
    shadowed: bool = False

    @property
    def eligible(self) -> bool:
        return self.found.front is not None and not (
            self.disabled or self.blocked or self.missing or self.shadowed
        )


def judged(
    found: Collection[Found],
    settings: SkillsSettings,
    machine: Machine,
    wanted: Collection[str] | None = None,
) -> tuple[Verdict, ...]:
    """A verdict on each, by name; `wanted` are the only ones an agent has, None = all.

    Of two with one name the later counts: `found` is in order of precedence.
    """
    winners = {one.name.casefold(): one for one in found if one.front is not None}
    out = []
    for one in found:
        front = one.front
        if front is None:
            out.append(Verdict(one, one.problem))
        elif (winner := winners[front.name.casefold()]) is not one:
            where = f"{winner.source.value} ({winner.path})"
            out.append(Verdict(one, f"another of that name counts: {where}", shadowed=True))
        else:
            out.append(_verdict(one, front, settings, machine, wanted))
    return tuple(sorted(out, key=lambda v: (v.found.name.casefold(), v.shadowed, v.found.path)))


def _verdict(
    found: Found,
    front: Front,
    settings: SkillsSettings,
    machine: Machine,
    wanted: Collection[str] | None,
) -> Verdict:
    entry = settings.entries.get(front.key)
    disabled = entry is not None and not entry.enabled
    allowed = settings.allow_bundled
    blocked = (
        found.source is Source.BUNDLED
        and allowed is not None
        and not {front.key, front.name} & set(allowed)
    )
    missing = missing_of(front, machine)
    if disabled:
        reason = f"switched off: skills.entries.{front.key}.enabled"
    elif blocked:
        reason = "not in skills.allowBundled"
    elif missing:
        reason = _sentence(missing)
    elif wanted is not None and front.name not in wanted:
        reason, blocked = "not among the agent's skills (agents.list[].skills)", True
    elif not front.for_model:
        reason = "the model is not to use it by itself (disable-model-invocation)"
    else:
        reason = ""
    return Verdict(found, reason, disabled, blocked, missing)


def missing_of(front: Front, machine: Machine) -> Requires:
    """What it needs and is not there; `always` needs only the right system."""
    needs = front.requires
    wrong_os = () if not needs.os or machine.os in needs.os else needs.os
    if front.always:
        return Requires(os=wrong_os)
    some = not needs.any_bins or any(map(machine.which, needs.any_bins))
    return Requires(
        tuple(name for name in needs.bins if not machine.which(name)),
        () if some else needs.any_bins,
        tuple(name for name in needs.env if not machine.env.get(name)),
        tuple(path for path in needs.config if not set_in(machine.resolved, path)),
        wrong_os,
    )


def set_in(resolved: Mapping[str, object], path: str) -> bool:
    """Whether the configuration has something there that is not empty, false or zero."""
    value: object = resolved
    for step in path.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    return bool(value)


def _sentence(missing: Requires) -> str:
    said = []
    if missing.os:
        said.append(f"it is for {' or '.join(missing.os)}")
    if missing.bins:
        said.append(f"missing programs: {', '.join(missing.bins)}")
    if missing.any_bins:
        said.append(f"none of these programs is here: {', '.join(missing.any_bins)}")
    if missing.env:
        said.append(f"not set: {', '.join(missing.env)}")
    if missing.config:
        said.append(f"not in the configuration: {', '.join(missing.config)}")
    return "; ".join(said)
