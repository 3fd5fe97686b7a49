"""Answers questions about the policy: which tools there are, and which step decided about one.

The gateway's view of the tools, as plain JSON values. Decides nothing: the pipeline does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from claw_engine.errors import InvalidRequest
from claw_engine.sessions.keys import canonical, normalise_agent_id
from claw_engine.tools.base import Tool
from claw_engine.tools.policy.circumstances import circumstances
from claw_engine.tools.policy.names import (
    CATALOG,
    GROUP_LABELS,
    PROFILES,
    Vocabulary,
    catalog_order,
    normal,
)
from claw_engine.tools.policy.pipeline import Doubt, Step, Verdict, decide, doubts, refuses
from claw_engine.tools.policy.steps import Circumstances

if TYPE_CHECKING:
    from claw_engine.config.settings import Settings

_PROFILE_LABELS = {
    "minimal": "Minimal",
    "coding": "Coding",
    "messaging": "Messaging",
    "full": "Full",
}
_CATALOG = {known.id: known for known in CATALOG}

Row = Mapping[str, object]


Explained = Callable[["Settings", Circumstances], tuple[tuple[Step, ...], Vocabulary]]
"""The steps of a run and the words they are read with."""


class Answering(Struct, frozen=True):
    """What would answer in a session now: its settings, and the model ("" when none can)."""

    settings: Settings
    provider: str = ""
    model: str = ""


class ToolDesk:
    """`answering` finds the model of a session key."""

    def __init__(
        self, tools: Iterable[Tool], explained: Explained, answering: Callable[[str], Answering]
    ) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._explained = explained
        self._answering = answering

    def catalog(self, agent_id: str | None, *, plugins: bool = True) -> Row:
        """The tools of this engine by group (gateway digest §1.11, `tools.catalog`).

        Raises InvalidRequest for an agent that the configuration does not list.
        """
        agent, _ = self._session(agent_id, None)
        groups: list[Row] = []
        for group, label in GROUP_LABELS.items():
            ids = [known.id for known in CATALOG if known.group == group]
            rows = [self._entry(self._tools[id_], "") for id_ in ids if id_ in self._tools]
            if rows:
                groups.append({"id": group, "label": label, "source": "core", "tools": rows})
        if plugins:
            groups += self._plugin_groups()
        profiles = [{"id": name, "label": _PROFILE_LABELS[name]} for name in PROFILES]
        return {"agentId": agent, "profiles": profiles, "groups": groups}

    def explain(self, name: str | None, agent_id: str | None, session_key: str | None) -> Row:
        """Every tool's verdict, or one tool's way through all steps; and doubtful entries.

        Raises InvalidRequest for an unknown agent, session key or tool.
        """
        agent, key = self._session(agent_id, session_key)
        now = self._answering(key)
        there = circumstances(
            now.settings, key, agent, source="console", provider=now.provider, model=now.model
        )
        steps, words = self._explained(now.settings, there)
        chosen = [tool for tool in words.present if name is None or normal(name) == tool.name]
        if name is not None and not chosen:
            raise InvalidRequest(
                f"There is no tool named {name!r} in this engine.",
                hint=f"There are: {', '.join(catalog_order(self._tools))}.",
            )
        rows: list[Row] = []
        for tool in sorted(chosen, key=lambda t: catalog_order(self._tools).index(t.name)):
            verdict = decide(tool, steps, words, owner=there.owner)
            way = {} if name is None else {"steps": _way(tool.name, steps, words)}
            rows.append({**_verdict_row(verdict), **way})
        return {
            "agentId": agent,
            "profile": _profile(now.settings, agent),
            "sessionKey": key,
            "model": f"{now.provider}/{now.model}" if now.model else None,
            "sandboxed": there.sandboxed,
            "subagentDepth": there.depth,
            "tools": rows,
            "warnings": [
                {"source": doubt.source, "entry": doubt.entry, "text": doubt.text}
                for doubt in doubts(steps, words)
            ],
        }

    def doubts(self, agents: Iterable[str]) -> tuple[Doubt, ...]:
        """Doubtful entries that concern any of the agents."""
        found: list[Doubt] = []
        for agent in agents:
            key = f"agent:{agent}:main"
            now = self._answering(key)
            there = circumstances(now.settings, key, agent, provider=now.provider, model=now.model)
            found += doubts(*self._explained(now.settings, there))
        return tuple(dict.fromkeys(found))

    def _session(self, agent_id: str | None, session_key: str | None) -> tuple[str, str]:
        if session_key is not None:
            key = canonical(session_key, agent_id or "main")
            self._listed(key.agent_id)
            return key.agent_id, str(key)
        agent = normalise_agent_id(agent_id or "main")
        self._listed(agent)
        return agent, f"agent:{agent}:main"

    def _listed(self, agent: str) -> None:
        listed = [
            normalise_agent_id(entry.id)
            for entry in self._answering(f"agent:{agent}:main").settings.agents.list
        ]
        if listed and agent not in listed:
            raise InvalidRequest(
                f'unknown agent id "{agent}"', hint=f"agents.list names {', '.join(listed)}."
            )

    def _plugin_groups(self) -> Sequence[Row]:
        found: dict[str, list[Row]] = {}
        for tool in self._tools.values():
            plugin = str(getattr(tool, "plugin", ""))
            if plugin:
                found.setdefault(plugin, []).append(self._entry(tool, plugin))
        return [
            {"id": f"plugin:{id_}", "label": id_, "source": "plugin", "pluginId": id_,
             "tools": rows}
            for id_, rows in sorted(found.items())
        ]  # fmt: skip

    def _entry(self, tool: Tool, plugin: str) -> Row:
        known = _CATALOG.get(tool.name) if not plugin else None
        row: dict[str, object] = {
            "id": tool.name,
            "label": tool.name,
            "description": tool.summary,
            "source": "plugin" if plugin else "core",
            "defaultProfiles": list(known.profiles) if known is not None else [],
        }
        return {**row, "pluginId": plugin} if plugin else row


def _profile(settings: Settings, agent: str) -> str:
    """The profile that an agent's tools begin with."""
    listed = settings.agents.list
    own = next((e.tools.profile for e in listed if normalise_agent_id(e.id) == agent), None)
    return own or settings.tools.profile or "full"


def _verdict_row(verdict: Verdict) -> Row:
    return {
        "name": verdict.tool,
        "allowed": verdict.allowed,
        "step": verdict.step or None,
        "source": verdict.source or None,
        "rule": verdict.rule or None,
        "sentence": verdict.sentence(),
    }


def _way(name: str, steps: Sequence[Step], words: Vocabulary) -> Sequence[Row]:
    rows = []
    for step in steps:
        rule = refuses(step, normal(name), words)
        rows.append(
            {
                "step": step.name,
                "source": step.source,
                "allow": list(step.allow),
                "deny": list(step.deny),
                "passes": rule is None,
                "rule": rule,
            }
        )
    return rows
