"""The tools of one run: what the policy left, and a refusal that names the rule for the rest.

The model never hears of a tool that was taken away; a call of one is refused all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from claw_engine.models.base import ToolSpec
from claw_engine.tools.base import Tool, ToolError
from claw_engine.tools.policy.names import normal
from claw_engine.tools.policy.pipeline import Doubt, Verdict


class Shelf(Protocol):
    """All tools there are."""

    def specs(self) -> tuple[ToolSpec, ...]: ...
    def without(self, names: frozenset[str]) -> tuple[ToolSpec, ...]: ...
    def get(self, name: str) -> Tool: ...
    def validate(self, tool: Tool, args: object) -> Mapping[str, object]: ...


class PolicyView:
    """A run's tool box. `verdicts` has one entry for every tool of the shelf."""

    def __init__(
        self, shelf: Shelf, verdicts: tuple[Verdict, ...], doubts: tuple[Doubt, ...] = ()
    ) -> None:
        self._shelf = shelf
        self.verdicts = verdicts
        self.doubts = doubts
        self._refused = {normal(v.tool): v for v in verdicts if not v.allowed}
        self._specs = shelf.without(frozenset(v.tool for v in verdicts if not v.allowed))
        self._offered = frozenset(normal(spec.name) for spec in self._specs)

    def __iter__(self) -> Iterator[Tool]:
        return (self._shelf.get(spec.name) for spec in self._specs)

    def specs(self) -> tuple[ToolSpec, ...]:
        """What the model is told; the same tuple for the same set of tools."""
        return self._specs

    def get(self, name: str) -> Tool:
        """The tool of this name.

        Raises ToolError: for one that was taken away with the rule, else with the names there are.
        """
        wanted = name.strip()
        plain = normal(wanted)
        refused = self._refused.get(plain)
        if refused is None and plain not in self._offered:
            names = ", ".join(spec.name for spec in self._specs) or "none"
            raise ToolError(f"There is no tool named {wanted!r}. Available tools: {names}.")
        if refused is not None:
            raise ToolError(f"{refused.sentence()} Nothing was done.")
        return self._shelf.get(wanted)

    def validate(self, tool: Tool, args: object) -> Mapping[str, object]:
        """As the registry does. Raises ToolError."""
        return self._shelf.validate(tool, args)
