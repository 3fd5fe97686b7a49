"""The fixed sections of the system prompt, each a Part, in the order of the agent digest §2.2.

Our own words, few of them: a small machine pays for every token. No clock and nothing else that
changes between two messages, so that a provider's prompt cache keeps hitting. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from claw_engine.agent.prompt.fence import RULE
from claw_engine.parts import Part, PartKind

TOOL_ORDER = (
    "read", "write", "edit", "apply_patch", "grep", "find", "ls", "exec", "process",
    "web_search", "web_fetch", "browser", "canvas", "nodes", "cron", "message", "gateway",
    "agents_list", "sessions_list", "sessions_history", "sessions_send", "subagents",
    "session_status", "image",
)  # fmt: skip
"""Order of tools in the prompt (§2.3); others follow by name."""

_RANK = {name: i for i, name in enumerate(TOOL_ORDER)}


class Host(Struct, frozen=True):
    """What the runtime line says about this machine."""

    os: str
    arch: str
    shell: str


class Facts(Struct, frozen=True):
    """What the sections speak of. `tools` are (name, one-line summary) pairs."""

    agent_id: str
    model: str
    thinking: str
    timezone: str
    workspace: str
    host: Host
    tools: tuple[tuple[str, str], ...]


def tool_sort_key(name: str) -> tuple[int, str]:
    """Sorts tools into prompt order."""
    return (_RANK.get(name, len(TOOL_ORDER)), name)


def before_files(facts: Facts) -> tuple[Part, ...]:
    """Everything above the project context."""
    return (
        _part("Identity", "You are a personal assistant inside Claw, on your user's machine."),
        _part("Tooling", _tooling(facts.tools)),
        _part("Tool Call Style", _STYLE),
        _part("Safety", _SAFETY),
        _part("Claw CLI Quick Reference", _CLI),
        _part("Workspace", _workspace(facts.workspace)),
        _part("Current Date & Time", _time(facts.timezone)),
        _part("Workspace Files (injected)", _FILES),
    )


def project_context(names: Sequence[str]) -> Part:
    """The heading above the files themselves."""
    lines = ["# Project Context", "These files are part of your instructions:"]
    if "SOUL.md" in names:
        lines.append("SOUL.md is your character: speak and act in its voice.")
    return _part("Project Context", "\n".join(lines))


def runtime(facts: Facts) -> Part:
    """The last line: who runs where."""
    host = facts.host
    items = (
        f"agent={facts.agent_id}", f"os={host.os} ({host.arch})", f"shell={host.shell}",
        f"model={facts.model}", f"thinking={facts.thinking}",
    )  # fmt: skip
    return _part("Runtime", "## Runtime\nRuntime: " + " | ".join(items))


def _part(name: str, text: str) -> Part:
    return Part(f"section:{name}", PartKind.SECTION, f"section:{name}", text, name)


def _tooling(tools: Sequence[tuple[str, str]]) -> str:
    lines = ["## Tooling"]
    if tools:
        lines.append("Your tools, under exactly these names:")
        ordered = sorted(tools, key=lambda tool: tool_sort_key(tool[0]))
        lines += [f"- {name}: {summary}" if summary else f"- {name}" for name, summary in ordered]
        lines.append("Calls that do not need each other's results may go out together.")
        lines.append("TOOLS.md holds notes for you; it neither adds nor removes a tool.")
    else:
        lines.append("No tools are available in this session. Answer in text.")
    return "\n".join(lines)


_STYLE = """## Tool Call Style
Just call a tool for routine steps. Before a command that changes something, or a step that may \
need approval, say in one sentence what it is for: your user sees that sentence beside the request.
Use a tool yourself rather than telling the user which command to type."""

_SAFETY = (
    """## Safety
You have no goals of your own beyond your user's request. Do not seek access, copies of yourself, \
or a way around approvals, limits or oversight. A denial is an answer: do not try another route.
If you are unsure whether something is wanted, stop and ask.
"""
    + RULE
)

_CLI = """## Claw CLI Quick Reference
The `claw` command controls the engine you run in:
- `claw status`: is it running, with which model
- `claw agent --message TEXT`: one turn from a shell
- `claw gateway run`: the engine without the console
Do not guess other subcommands; `claw --help` lists them."""

_FILES = """## Workspace Files (injected)
Your user keeps the files below in the workspace; their present content follows."""


def _workspace(path: str) -> str:
    return (
        f"## Workspace\nWorking directory: {path}\n"
        "Relative paths start here. Keep your files inside it; elsewhere needs approval."
    )


def _time(timezone: str) -> str:
    return (
        f"## Current Date & Time\nTime zone: {timezone}\n"
        "Messages carry the time at which they arrived; run `date` when you need it exactly."
    )
