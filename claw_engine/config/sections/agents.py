"""Settings of agents: model choice, workspace, prompt budgets, concurrency."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, field

from claw_engine.config.sections.base import Count, Names, Section
from claw_engine.config.sections.box import BoxSettings
from claw_engine.config.sections.toolpolicy import AgentTools
from claw_engine.shapes import Before

Thinking = Literal["off", "minimal", "low", "medium", "high", "xhigh"]
Elevated = Literal["off", "on", "ask", "full"]


class ModelChoice(Section, frozen=True):
    """`primary` is `provider/model`; None when the file names none."""

    primary: str | None = None
    fallbacks: Names = ()


def _model_choice(value: object) -> object:
    return {"primary": value} if isinstance(value, str) else value


Choice = Annotated[ModelChoice, Before(_model_choice)]


class ModelEntry(Section, frozen=True):
    """One entry of `agents.defaults.models`: an alias and request parameters."""

    alias: str | None = None
    params: dict[str, Any] = field(default_factory=dict)  # free-form by the file format


class SubagentDefaults(Section, frozen=True):
    max_concurrent: Count = 8
    max_spawn_depth: Count = 1


class AgentDefaults(Section, frozen=True):
    """`agents.defaults`. Times in seconds, budgets in characters."""

    model: Choice = ModelChoice()
    models: dict[str, ModelEntry] = field(default_factory=dict)
    workspace: str | None = None
    skip_bootstrap: bool = False
    bootstrap_max_chars: Count = 20_000
    bootstrap_total_max_chars: Count = 150_000
    user_timezone: str | None = None
    context_tokens: Count | None = None
    thinking_default: Thinking | None = None
    timeout_seconds: Count = 600
    max_concurrent: Count = 4
    subagents: SubagentDefaults = SubagentDefaults()
    sandbox: BoxSettings = BoxSettings()
    elevated_default: Elevated = "off"


class AgentIdentity(Section, frozen=True):
    name: str | None = None
    theme: str | None = None
    emoji: str | None = None


class AgentSubagents(Section, frozen=True):
    """`allow_agents` None means: only the agent itself; `*` in it means any."""

    allow_agents: Names | None = None


class AgentEntry(Section, frozen=True, kw_only=True):
    """One item of `agents.list`; None means: as in the defaults."""

    id: Annotated[str, Meta(min_length=1)]
    default: bool = False
    name: str | None = None
    workspace: str | None = None
    agent_dir: str | None = None
    model: Choice | None = None
    skills: Names | None = None
    subagents: AgentSubagents = AgentSubagents()
    identity: AgentIdentity = AgentIdentity()
    sandbox: BoxSettings | None = None
    tools: AgentTools = AgentTools()


class AgentsSettings(Section, frozen=True):
    defaults: AgentDefaults = AgentDefaults()
    list: tuple[AgentEntry, ...] = ()
