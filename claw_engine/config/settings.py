"""The settings of one generation: immutable, composed from the sections.

A run pins the object it started with; a reload makes a new one. Nothing here reads a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from msgspec import Struct, field
from pydantic import ValidationError

from claw_engine.config.problems import KeyPath, ProblemKind
from claw_engine.config.sections.agents import AgentsSettings
from claw_engine.config.sections.approvals import (
    ApprovalsSettings,
    Durability,
    PermissionMode,
    ResumePolicy,
)
from claw_engine.config.sections.base import Section
from claw_engine.config.sections.bindings import BindingsSettings
from claw_engine.config.sections.cron import CronSettings
from claw_engine.config.sections.gateway import GatewaySettings
from claw_engine.config.sections.logging import LoggingSettings
from claw_engine.config.sections.messages import MessagesSettings
from claw_engine.config.sections.models import ModelsSettings
from claw_engine.config.sections.session import SessionSettings
from claw_engine.config.sections.tools import ToolsSettings
from claw_engine.config.variables import Finding

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
    gateway: GatewaySettings = field(default_factory=GatewaySettings.model_construct)
    agents: AgentsSettings = field(default_factory=AgentsSettings.model_construct)
    bindings: BindingsSettings = field(default_factory=BindingsSettings.model_construct)
    models: ModelsSettings = field(default_factory=ModelsSettings.model_construct)
    tools: ToolsSettings = field(default_factory=ToolsSettings.model_construct)
    session: SessionSettings = field(default_factory=SessionSettings.model_construct)
    messages: MessagesSettings = field(default_factory=MessagesSettings.model_construct)
    logging: LoggingSettings = field(default_factory=LoggingSettings.model_construct)
    cron: CronSettings = field(default_factory=CronSettings.model_construct)
    approvals: ApprovalsSettings = field(default_factory=ApprovalsSettings.model_construct)
    permission_mode: PermissionMode = "guarded"
    resume: ResumePolicy = "ask"
    durability: Durability = "power"
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
            return kind.model_construct()
        try:
            return kind.model_validate(self.resolved[name])
        except ValidationError as error:
            from claw_engine.config.explain import explain  # only when something is wrong

            for path, message in explain(error, name, self.hidden):
                self.findings.append(Finding(ProblemKind.WRONG_TYPE, (name, *path), message))
            return kind.model_construct()


def with_unusable(models: ModelsSettings, findings: list[Finding]) -> ModelsSettings:
    """Mark each provider that lost a value to a missing variable as unusable, saying why."""
    reasons = {
        str(finding.path[2]): finding
        for finding in reversed(findings)
        if finding.path[:2] == ("models", "providers") and _is_needed(finding.path)
    }
    providers = {
        name: provider.model_copy(update={"unusable": _reason(reasons[name])})
        if name in reasons
        else provider
        for name, provider in models.providers.items()
    }
    return models.model_copy(update={"providers": providers}) if reasons else models


def _is_needed(path: KeyPath) -> bool:
    return len(path) > 3


def _reason(finding: Finding) -> str:
    where = ".".join(str(step) for step in finding.path[3:])
    return f"{where}: {finding.message}"
