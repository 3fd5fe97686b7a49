from __future__ import annotations

import json
import subprocess
import sys

import pytest

from claw_engine.parts import PartKind
from claw_engine.tools.base import ToolError
from claw_engine.tools.files import ReadTool
from claw_engine.tools.registry import ToolRegistry, default_tools


@pytest.fixture
def registry() -> ToolRegistry:
    return ToolRegistry(default_tools())


def test_specs_are_the_tools_in_order(registry: ToolRegistry) -> None:
    assert [spec.name for spec in registry.specs()] == [
        "read",
        "write",
        "edit",
        "apply_patch",
        "exec",
    ]
    for spec in registry.specs():
        shape = json.loads(spec.part.text)
        assert list(shape) == ["name", "description", "parameters"]
        assert shape["name"] == spec.name
        assert spec.part.kind is PartKind.TOOL
        assert "examples" not in spec.part.text
        assert set(shape["parameters"]["required"]) <= set(shape["parameters"]["properties"])


def test_specs_are_the_same_bytes_in_every_process(registry: ToolRegistry) -> None:
    program = (
        "from claw_engine.tools.registry import *\n"
        "print([s.part.text for s in ToolRegistry(default_tools()).specs()])"
    )
    texts = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    ]
    assert texts == [str([spec.part.text for spec in registry.specs()])] * 2


@pytest.mark.parametrize(
    ("name", "tool"), [("exec", "exec"), ("bash", "exec"), ("Read", "read"), (" edit ", "edit")]
)
def test_a_name_is_found_in_forgivable_spellings(
    registry: ToolRegistry, name: str, tool: str
) -> None:
    assert registry.get(name).name == tool


def test_an_unknown_tool_lists_what_there_is(registry: ToolRegistry) -> None:
    with pytest.raises(ToolError) as error:
        registry.get("raed")
    assert "no tool named 'raed'" in error.value.title
    assert "Did you mean read?" in error.value.title
    assert "read, write, edit, apply_patch, exec" in error.value.title


@pytest.mark.parametrize(
    ("tool", "args", "expected"),
    [
        ("read", {"file_path": "a", "offset": "3"}, {"path": "a", "offset": 3}),
        ("edit", {"path": "a", "old_string": "x", "new_string": ""}, None),
        ("exec", {"cmd": "ls", "cwd": "/tmp"}, {"command": "ls", "workdir": "/tmp"}),
        ("write", {"path": "a", "content": [{"type": "text", "text": "t"}]}, None),
    ],
)
def test_aliases_and_loose_types_are_accepted(
    registry: ToolRegistry, tool: str, args: dict[str, object], expected: dict[str, object] | None
) -> None:
    checked = registry.validate(registry.get(tool), args)
    if expected is not None:
        assert checked == expected


@pytest.mark.parametrize(
    ("tool", "args", "words"),
    [
        ("read", {}, ["read:", "path (path or file_path", 'Example: {"path": "notes.md"}']),
        ("edit", {"path": "a"}, ["oldText (oldText or old_string", "newText"]),
        ("exec", {"command": 5}, ["`command`", "expected a string", "got number 5", '"ls -la"']),
        ("exec", {"command": "ls", "raised": 1}, ["Unknown parameter `raised`", "timeout"]),
        ("exec", {"command": "ls", "timeout": 0}, ["`timeout`", "from 1 to 86400"]),
        ("exec", "ls", ["must be an object", 'string "ls"']),
        ("exec", ["ls"], ["must be an object"]),
    ],
)
def test_a_wrong_call_is_answered_with_what_to_change(
    registry: ToolRegistry, tool: str, args: object, words: list[str]
) -> None:
    with pytest.raises(ToolError) as error:
        registry.validate(registry.get(tool), args)
    for word in [*words, "Example:"]:
        assert word in error.value.title


def test_two_tools_of_one_name_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="two tools named read"):
        ToolRegistry([*default_tools(), *default_tools()])


@pytest.mark.parametrize("name", ["exec", "Exec", "bash", "shell", "apply-patch"])
def test_nothing_stands_in_for_a_built_in_tool(name: str) -> None:
    """TP-03: a foreign tool of a built-in's name or alias is refused."""

    class Foreign(ReadTool):
        plugin = "mcp"

    Foreign.name = name
    with pytest.raises(ValueError, match=r"named|another name"):
        ToolRegistry([*default_tools(), Foreign()])
