"""The settings of one generation: immutable, composed from the sections.

A run pins the object it started with; a reload makes a new one. Nothing here reads a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from claw_engine.config.problems import KeyPath, ProblemKind
from claw_engine.config.sections.agents import AgentsSettings
from claw_engine.config.sections.approvals import (
    ApprovalsSettings,
    Durability,
    PermissionMode,
    ResumePolicy,
    TraceSettings,
)
from claw_engine.config.sections.base import Section
from claw_engine.config.sections.bindings import BindingsSettings
from claw_engine.config.sections.budgets import BudgetsSettings
from claw_engine.config.sections.commands import CommandsSettings
from claw_engine.config.sections.cron import CronSettings
from claw_engine.config.sections.gateway import GatewaySettings
from claw_engine.config.sections.logging import LoggingSettings
from claw_engine.config.sections.messages import MessagesSettings
from claw_engine.config.sections.models import ModelsSettings
from claw_engine.config.sections.session import SessionSettings
from claw_engine.config.sections.skills import SkillsSettings
from claw_engine.config.sections.tools import ToolsSettings
from claw_engine.config.variables import Finding
from claw_engine.shapes import Faults, read

S = TypeVar("S", bound=Section)


class Settings(Struct, frozen=True):
    """Everything the engine reads from configuration.

    `raw` is the file as written, includes merged, references unresolved, unknown keys kept;
    `resolved` the same with references resolved (holds secrets). `env` is the environment with
    the `.env` file and the `env` block under it. `resolved_env_names` are the variables that
    `${VAR}` references used, without ordinary ones like HOME: children must not see them, nor
    any value of `secret_values`. None of the mappings may be changed;
    most of them hold secrets, so none prints.
    """

    generation: int = 0
    gateway: GatewaySettings = field(default_factory=GatewaySettings)
    agents: AgentsSettings = field(default_factory=AgentsSettings)
    bindings: BindingsSettings = field(default_factory=BindingsSettings)
    models: ModelsSettings = field(default_factory=ModelsSettings)
    tools: ToolsSettings = field(default_factory=ToolsSettings)
    session: SessionSettings = field(default_factory=SessionSettings)
    messages: MessagesSettings = field(default_factory=MessagesSettings)
    logging: LoggingSettings = field(default_factory=LoggingSettings)
    cron: CronSettings = field(default_factory=CronSettings)
    commands: CommandsSettings = field(default_factory=CommandsSettings)
    skills: SkillsSettings = field(default_factory=SkillsSettings)
    approvals: ApprovalsSettings = field(default_factory=ApprovalsSettings)
    permission_mode: PermissionMode = "guarded"
    resume: ResumePolicy = "ask"
    durability: Durability = "power"
    trace: TraceSettings = field(default_factory=TraceSettings)
    budgets: BudgetsSettings = field(default_factory=BudgetsSettings)
    raw: Mapping[str, object] = field(default_factory=dict)
    resolved: Mapping[str, object] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    resolved_env_names: frozenset[str] = frozenset()
    secret_values: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        return f"Settings(generation={self.generation})"


class Sections(Struct):
    """Validates the sections of one resolved configuration and gathers what is wrong."""

    resolved: Mapping[str, object]
    findings: list[Finding] = field(default_factory=list)
    hidden: frozenset[str] = frozenset()
    """Values of variables: no message repeats one."""

    def read(self, name: str, kind: type[S]) -> S:
        """The section, or its defaults when it is absent or wrong (then it is a finding)."""
        if name not in self.resolved:
            return kind()
        try:
            return read(kind, self.resolved[name])
        except Faults as faults:
            from claw_engine.config.explain import explain  # only when something is wrong

            listed = isinstance(self.resolved[name], list | tuple)  # read as an object's field
            for path, message in explain(faults.all, name, self.hidden):
                steps = path[1:] if listed else path
                self.findings.append(Finding(ProblemKind.WRONG_TYPE, (name, *steps), message))
            return kind()


def with_unusable(models: ModelsSettings, findings: list[Finding]) -> ModelsSettings:
    """Mark each provider that lost a value to a missing variable as unusable, saying why."""
    reasons = {
        str(finding.path[2]): finding
        for finding in reversed(findings)
        if finding.path[:2] == ("models", "providers") and _is_needed(finding.path)
    }
    providers = {
        name: replace(provider, unusable=_reason(reasons[name])) if name in reasons else provider
        for name, provider in models.providers.items()
    }
    return replace(models, providers=providers) if reasons else models


def _is_needed(path: KeyPath) -> bool:
    return len(path) > 3


def _reason(finding: Finding) -> str:
    where = ".".join(str(step) for step in finding.path[3:])
    return f"{where}: {finding.message}"
