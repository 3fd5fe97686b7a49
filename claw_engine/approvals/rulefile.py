"""The text of exec-approvals.json as a value: read leniently, edit without losing anything.

Pure. Format: OpenClaw 2026.2.26 (`version`, `socket`, `defaults`, `agents.<id>.allowlist`), with
`argPattern` of 2026.9.6; ours is one more field of an entry, `contentHash`, which OpenClaw ignores.
Fields unknown here stay.
"""

from __future__ import annotations

import copy
import json
import uuid
from collections.abc import Iterator, Mapping
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from claw_engine.approvals.policy import Ask, ExecPolicy, Rule, Security

VERSION = 1
EVERY_AGENT = "*"
_NAMESPACE = uuid.UUID("6f1c0c52-2f6e-4b0a-9d0b-6d3f5d0a8e11")
_FIELDS = ("security", "ask", "askFallback")

Json = dict[str, object]


class RuleFile(Struct, frozen=True):
    """A parsed file. `problem` says why its text counts as empty; None when it was read."""

    data: Json
    problem: str | None = None

    def agents(self) -> dict[str, Json]:
        """The agents' sections by id."""
        return {k: cast(Json, v) for k, v in _object(self.data, "agents").items() if _is_object(v)}


def empty() -> RuleFile:
    """A file without any rule."""
    return RuleFile({"version": VERSION, "defaults": {}, "agents": {}})


def read(raw: bytes) -> RuleFile:
    """Parse a file's bytes. Bad JSON or another version counts as empty, with a `problem`."""
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError) as error:
        return replace(empty(), problem=f"is not valid JSON ({error})")
    if not isinstance(data, dict):
        return replace(empty(), problem="is not a JSON object")
    if data.get("version") != VERSION:
        return replace(empty(), problem=f"has version {data.get('version')!r} instead of {VERSION}")
    return RuleFile(_modernised(data))


def policy(file: RuleFile, agent_id: str, caller: ExecPolicy) -> ExecPolicy:
    """The policy of an agent: each field from the agent, else `*`, else defaults, else `caller`;
    the rules of `*` and of the agent together. A word that is none falls through to the next.
    """
    agents = file.agents()
    sections = (
        agents.get(agent_id, {}),
        agents.get(EVERY_AGENT, {}),
        _object(file.data, "defaults"),
    )
    found = {field: _first(field, sections) for field in _FIELDS}
    return ExecPolicy(
        Security(found["security"]) if found["security"] else caller.security,
        Ask(found["ask"]) if found["ask"] else caller.ask,
        Security(found["askFallback"]) if found["askFallback"] else caller.ask_fallback,
        tuple(r for r in rules(file) if r.agent_id in (agent_id, EVERY_AGENT)),
        caller.safe_bins,
    )


def rules(file: RuleFile) -> tuple[Rule, ...]:
    """All rules; those for every agent first."""
    found = [
        _rule(agent_id, entry) for agent_id, _, entry in _entries(file.data) if "pattern" in entry
    ]
    return tuple(sorted(found, key=lambda rule: rule.agent_id != EVERY_AGENT))


def with_rule(file: RuleFile, rule: Rule) -> RuleFile:
    """The file with one more rule; the agent's rule for the same is renewed instead."""
    data = copy.deepcopy(file.data)
    for agent_id, _, entry in _entries(data):
        same = (entry.get("pattern"), entry.get("argPattern")) == (rule.pattern, rule.arg_pattern)
        if agent_id == rule.agent_id and same:
            _write(entry, replace(rule, id=str(entry["id"])))
            return RuleFile(data)
    agents = cast(Json, data.setdefault("agents", {}))
    section = cast(Json, agents.setdefault(rule.agent_id, {}))
    added: Json = {"id": rule.id, "pattern": rule.pattern}
    if rule.arg_pattern is not None:
        added["argPattern"] = rule.arg_pattern
    _write(added, rule)
    cast(list[object], section.setdefault("allowlist", [])).append(added)
    return RuleFile(data)


def with_changed(file: RuleFile, rule: Rule) -> RuleFile:
    """The file with the rule of this id brought up to date; the same file when it has none."""
    data = copy.deepcopy(file.data)
    for _, _, entry in _entries(data):
        if entry.get("id") == rule.id:
            _write(entry, rule)
    return RuleFile(data)


def without_rule(file: RuleFile, rule_id: str) -> RuleFile:
    """The file without the rule of this id."""
    data = copy.deepcopy(file.data)
    for _, entries, entry in list(_entries(data)):
        if entry.get("id") == rule_id:
            entries.remove(entry)
    return RuleFile(data)


def _modernised(data: Json) -> Json:
    """Older forms in today's: `agents.default` is main, an entry may be a bare text, ids exist.

    The id of an entry that has none is derived from its place, so it is the same at each reading.
    """
    data = copy.deepcopy(data)
    agents = data.get("agents")
    if not isinstance(agents, dict):
        return data
    legacy = agents.pop("default", None)
    if isinstance(legacy, dict):
        main = agents.setdefault("main", {})
        old = legacy.pop("allowlist", None)
        if isinstance(main, dict):
            if isinstance(old, list):
                main["allowlist"] = [*_list(main), *old]
            for key, value in legacy.items():
                main.setdefault(key, value)
    for agent_id, section in agents.items():
        if not isinstance(section, dict) or "allowlist" not in section:
            continue
        entries: list[object] = []
        for entry in _list(section):
            item: object = {"pattern": entry} if isinstance(entry, str) else entry
            if isinstance(item, dict) and not isinstance(item.get("id"), str):
                name = f"{agent_id}\n{item.get('pattern')}"
                if "argPattern" in item:
                    name += f"\n{item['argPattern']}"
                item = {"id": str(uuid.uuid5(_NAMESPACE, name)), **item}
            entries.append(item)
        section["allowlist"] = entries
    return data


def _entries(data: Json) -> Iterator[tuple[str, list[object], Json]]:
    for agent_id, section in _object(data, "agents").items():
        if _is_object(section):
            entries = _list(cast(Json, section))
            for entry in entries:
                if _is_object(entry):
                    yield agent_id, entries, cast(Json, entry)


def _rule(agent_id: str, entry: Json) -> Rule:
    used = entry.get("lastUsedAt")
    return Rule(
        id=str(entry.get("id", "")),
        pattern=str(entry["pattern"]).strip(),
        content_hash=_text(entry, "contentHash"),
        last_used_ms=int(used) if isinstance(used, int | float) else None,
        last_command=_text(entry, "lastUsedCommand"),
        last_resolved=_text(entry, "lastResolvedPath"),
        agent_id=agent_id,
        # Any other type than text must not widen the rule: it then matches nothing.
        arg_pattern=(_text(entry, "argPattern") or "") if "argPattern" in entry else None,
    )


def _write(entry: Json, rule: Rule) -> None:
    values: Mapping[str, object | None] = {
        "lastUsedAt": rule.last_used_ms,
        "lastUsedCommand": rule.last_command,
        "lastResolvedPath": rule.last_resolved,
        "contentHash": rule.content_hash,
    }
    entry.update({key: value for key, value in values.items() if value is not None})


def _first(field: str, sections: tuple[Json, ...]) -> str | None:
    allowed = tuple(Ask) if field == "ask" else tuple(Security)
    for section in sections:
        value = section.get(field)
        if isinstance(value, str) and value in allowed:
            return value
    return None


def _object(data: Json, key: str) -> Json:
    value = data.get(key)
    return value if isinstance(value, dict) else {}


def _list(section: Json) -> list[object]:
    value = section.get("allowlist")
    return value if isinstance(value, list) else []


def _text(entry: Json, key: str) -> str | None:
    value = entry.get(key)
    return value if isinstance(value, str) else None


def _is_object(value: object) -> bool:
    return isinstance(value, dict)
