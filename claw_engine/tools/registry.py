"""The tools an agent has, by name: what the model is told about them and what it may pass.

Specs are byte-for-byte the same in every request, so that a provider's prompt cache holds.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping

from claw_engine.models.base import ToolSpec
from claw_engine.parts import Part, PartKind
from claw_engine.sandbox.keeper import Keeper
from claw_engine.tools import schema
from claw_engine.tools.base import Tool, ToolError
from claw_engine.tools.exec.confine import Confinement
from claw_engine.tools.exec.table import ProcessTable
from claw_engine.tools.exec.tool import ExecTool
from claw_engine.tools.files import file_tools
from claw_engine.tools.process.tool import ProcessTool

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

TOOL_ALIASES: Mapping[str, str] = {"bash": "exec", "shell": "exec"}


class ToolRegistry:
    """The given tools in the given order. Raises ValueError for two of one name."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            if tool.name in self._tools:
                raise ValueError(f"two tools named {tool.name}")
            self._tools[tool.name] = tool
        self._specs = tuple(_spec(tool) for tool in self._tools.values())

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def specs(self) -> tuple[ToolSpec, ...]:
        """What the model is told: JSON text with stable key order, one part a tool."""
        return self._specs

    def get(self, name: str) -> Tool:
        """The tool of this name (case and `bash` for `exec` forgiven).

        Raises ToolError, which lists the tools there are.
        """
        wanted = name.strip()
        for candidate in (wanted, wanted.lower(), TOOL_ALIASES.get(wanted.lower(), "")):
            if candidate in self._tools:
                return self._tools[candidate]
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
    processes: ProcessTable | None = None, keeper: Keeper | None = None
) -> tuple[Tool, ...]:
    """read, write, edit and exec; with a table of background commands also process.

    `keeper` confines the commands.
    """
    command = ExecTool(processes=processes, confinement=Confinement(keeper))
    if processes is None:
        return (*file_tools(), command)
    return (*file_tools(), command, ProcessTool(processes))


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
