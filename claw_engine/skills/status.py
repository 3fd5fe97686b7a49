"""A skill as `skills.status` tells it (gateway digest §1.11), with why not, in words. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from claw_engine.probes import Found, Health
from claw_engine.skills.gates import Verdict, set_in
from claw_engine.skills.model import Front, Requires, Source

_UNREAD = Front("", "", "")


def probed(agent_id: str, verdicts: Sequence[Verdict]) -> list[Found]:
    """For `claw doctor`: how many an agent has, and which files are none."""
    if not verdicts:
        return []
    usable = sum(not verdict.reason for verdict in verdicts)
    broken = [v.found.name for v in verdicts if v.found.front is None]
    text = f"Agent {agent_id}: {usable} of {len(verdicts)} skills are shown to the model."
    if not broken:
        return [Found("skills", Health.OK, text)]
    names = ", ".join(broken[:5]) + (" …" if len(broken) > 5 else "")
    return [Found("skills", Health.WARN, f"{text} Not read: {names}.", "claw skills says why.")]


def status_row(
    verdict: Verdict, listed: Collection[str], resolved: Mapping[str, object]
) -> dict[str, object]:
    """OpenClaw's fields; ours are `listed`, `reason` and `warnings`."""
    found = verdict.found
    front = found.front or _UNREAD
    row: dict[str, object] = {
        "name": found.name,
        "description": front.description,
        "source": found.source.value,
        "bundled": found.source is Source.BUNDLED,
        "filePath": found.path,
        "baseDir": found.folder,
        "skillKey": front.key or found.name,
        "always": front.always,
        "disabled": verdict.disabled,
        "blockedByAllowlist": verdict.blocked,
        "eligible": verdict.eligible,
        "requirements": front.requires.to_json(),
        "missing": (verdict.missing or Requires()).to_json(),
        "configChecks": [
            {"path": path, "satisfied": set_in(resolved, path)} for path in front.requires.config
        ],
        "install": [way.to_json() for way in front.install],
        "listed": not verdict.reason and front.name in listed,
        "reason": verdict.reason,
        "warnings": list(front.warnings),
    }
    more = {
        "primaryEnv": front.primary_env, "emoji": front.emoji, "homepage": front.homepage,
    }  # fmt: skip
    row |= {name: value for name, value in more.items() if value}
    if not verdict.reason and front.name not in listed:
        row["reason"] = "it does not fit into the list (skills.limits)"
    return row
