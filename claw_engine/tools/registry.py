"""The tools an agent has, by name: what the model is told about them and what it may pass.

Specs are byte-for-byte the same in every request, so that a provider's prompt cache holds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from claw_engine.models.base import ToolSpec
from claw_engine.parts import Part, PartKind
from claw_engine.sandbox.boxes import Boxes
from claw_engine.sandbox.keeper import Keeper
from claw_engine.tools import schema
from claw_engine.tools.base import Tool, ToolError
from claw_engine.tools.exec.confine import Confinement
from claw_engine.tools.exec.table import ProcessTable
from claw_engine.tools.exec.tool import ExecTool
from claw_engine.tools.files import Locks, file_tools
from claw_engine.tools.patch.tool import PatchTool
from claw_engine.tools.policy.names import ALIASES as TOOL_ALIASES
from claw_engine.tools.policy.names import Present, Vocabulary
from claw_engine.tools.policy.pipeline import Step, doubts, verdicts
from claw_engine.tools.policy.steps import Circumstances, steps_of
from claw_engine.tools.policy.view import PolicyView
from claw_engine.tools.process.tool import ProcessTool

if TYPE_CHECKING:
    from claw_engine.config.settings import Settings

ALIASES: Mapping[str, str] = {
    "file_path": "path",
    "filePath": "path",
    "old_string": "oldText",
    "old_text": "oldText",
    "new_string": "newText",
    "new_text": "newText",
    "cmd": "command",
    "cwd": "workdir",
    "session_id": "sessionId",
    "yield_ms": "yieldMs",
}
"""Other models' names for our parameters; each counts where the tool has that parameter."""

_KEPT_SETS = 64
"""Sets of tools, and policies of runs, that are remembered."""


class ToolRegistry:
    """The given tools in the given order.

    Raises ValueError for two of one name, in any case, and for a name that is another tool's
    alias: nothing may stand in for a tool that somebody allowed.
    """

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            if tool.name.lower() in (name.lower() for name in self._tools):
                raise ValueError(f"two tools named {tool.name}")
            if tool.name.lower() in TOOL_ALIASES:
                other = TOOL_ALIASES[tool.name.lower()]
                raise ValueError(f"{tool.name} is another name of the tool {other}")
            self._tools[tool.name] = tool
        self._specs = tuple(_spec(tool) for tool in self._tools.values())
        self._sets: dict[frozenset[str], tuple[ToolSpec, ...]] = {frozenset(): self._specs}
        self._views: dict[tuple[int, Circumstances], tuple[Settings, PolicyView]] = {}
        self._words = Vocabulary(tuple(map(_present, self._tools.values())))

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def specs(self) -> tuple[ToolSpec, ...]:
        """What the model is told: JSON text with stable key order, one part a tool."""
        return self._specs

    def without(self, names: frozenset[str]) -> tuple[ToolSpec, ...]:
        """The specs of all tools but these; the same tuple for the same names."""
        known = self._sets.get(names)
        if known is None:
            if len(self._sets) >= _KEPT_SETS:
                self._sets = {frozenset(): self._specs}
            known = tuple(spec for spec in self._specs if spec.name not in names)
            self._sets[names] = known
        return known

    def under(self, settings: Settings, there: Circumstances) -> PolicyView:
        """The tools that the policy leaves a run in these circumstances."""
        known = self._views.get((id(settings), there))
        if known is not None:
            return known[1]
        if len(self._views) >= _KEPT_SETS:
            self._views.clear()
        steps = steps_of(settings, there)
        decided = verdicts(steps, self._words, owner=there.owner)
        view = PolicyView(self, decided, doubts(steps, self._words))
        # The settings are kept so that their id() cannot be reused.
        self._views[id(settings), there] = (settings, view)
        return view

    def explain(
        self, settings: Settings, there: Circumstances
    ) -> tuple[tuple[Step, ...], Vocabulary]:
        """The steps and the words they are read with, for whoever explains them."""
        return steps_of(settings, there), self._words

    def get(self, name: str) -> Tool:
        """The tool of this name (case and `bash` for `exec` forgiven).

        Raises ToolError, which lists the tools there are.
        """
        wanted = name.strip()
        for candidate in (wanted, wanted.lower(), TOOL_ALIASES.get(wanted.lower(), "")):
            if candidate in self._tools:
                return self._tools[candidate]
        import difflib  # only for a name that is wrong

        near = difflib.get_close_matches(wanted.lower(), self._tools, n=1)
        guess = f" Did you mean {near[0]}?" if near else ""
        raise ToolError(
            f"There is no tool named {name!r}.{guess} Available tools: {', '.join(self._tools)}."
        )

    def validate(self, tool: Tool, args: object) -> Mapping[str, object]:
        """The arguments, checked and converted.

        Raises ToolError: which parameter, what was given, what is expected, and a call that works.
        """
        if not isinstance(args, Mapping):
            raise ToolError(
                f"{tool.name}: the arguments must be an object, got {schema.shown(args)}. "
                f"Example: {_example(tool)}"
            )
        checked = schema.check(tool.parameters, args, ALIASES)
        if checked.problems:
            problems = " ".join(checked.problems)
            raise ToolError(
                f"{tool.name}: {problems} Supply correct parameters before retrying. "
                f"Example: {_example(tool)}"
            )
        return checked.arguments


def default_tools(
    processes: ProcessTable | None = None,
    keeper: Keeper | None = None,
    boxes: Boxes | None = None,
) -> tuple[Tool, ...]:
    """Files, exec, apply_patch; with a table of background commands also process.

    `keeper` confines the commands, `boxes` are the sandboxes of sessions.
    """
    command = ExecTool(processes=processes, confinement=Confinement(keeper, boxes))
    locks: Locks = WeakValueDictionary()
    files: tuple[Tool, ...] = (*file_tools(locks), PatchTool(locks))
    if processes is None:
        return (*files, command)
    return (*files, command, ProcessTool(processes))


def _present(tool: Tool) -> Present:
    owner_only = getattr(tool, "owner_only", False) is True
    return Present(tool.name, str(getattr(tool, "plugin", "")), owner_only)


def _spec(tool: Tool) -> ToolSpec:
    shape = {
        "name": tool.name,
        "description": tool.description,
        "parameters": schema.without_examples(tool.parameters),
    }
    text = json.dumps(shape, ensure_ascii=False, separators=(",", ":"))
    source = f"tool:{tool.name}"
    return ToolSpec(Part(source, PartKind.TOOL, source, text, tool.name))


def _example(tool: Tool) -> str:
    return json.dumps(schema.example(tool.parameters), ensure_ascii=False)
