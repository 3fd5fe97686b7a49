"""The fixed sections of the system prompt, each a Part, in the order of the agent digest §2.2.

Our own words, few of them: a small machine pays for every token. A section that speaks of an
engine appears only where that engine is. No clock and nothing else that changes between two
messages, so that a provider's prompt cache keeps hitting. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from claw_engine.agent.prompt import wording
from claw_engine.agent.prompt.facts import Boxed, Facts
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

PROJECT = "Project Context"
SKILLS, SKILLS_END = "Skills", "Skills (end)"


def tool_sort_key(name: str) -> tuple[int, str]:
    """Sorts tools into prompt order."""
    return (_RANK.get(name, len(TOOL_ORDER)), name)


def before_skills(facts: Facts) -> tuple[Part, ...]:
    """What stands above the list of skills."""
    if facts.mode == "none":
        return (section("Identity", wording.IDENTITY),)
    return (
        section("Identity", wording.IDENTITY),
        section("Tooling", _tooling(facts)),
        section("Tool Call Style", wording.STYLE),
        section("Safety", f"{wording.SAFETY}\n{RULE}"),
        section("Claw CLI Quick Reference", wording.CLI),
    )


def before_files(facts: Facts) -> tuple[Part, ...]:
    """What stands between the skills and the project context."""
    if facts.mode == "none":
        return ()
    full = facts.mode == "full"
    surface = facts.surface
    texts = (
        ("Memory Recall", _memory(facts) if full else ""),
        ("Self-Update", wording.SELF_UPDATE if full and facts.has("gateway") else ""),
        ("Model Aliases", _aliases(facts) if full else ""),
        ("Workspace", _workspace(facts.workspace)),
        ("Documentation", _docs(facts.host.docs) if full else ""),
        ("Sandbox", _sandbox(facts.box)),
        ("Authorized Senders", _owners(facts.owners) if full else ""),
        ("Current Date & Time", _time(facts)),
        ("Workspace Files (injected)", wording.FILES),
        ("Reply Tags", wording.REPLY_TAGS if full and surface.reply_tags else ""),
        ("Messaging", _messaging(facts) if full else ""),
        ("Voice (TTS)", f"## Voice (TTS)\n{surface.tts_hint}" if full and surface.tts_hint else ""),
        *_context(facts),
        ("Reactions", wording.REACTIONS.get(surface.reactions, "")),
        ("Reasoning Format", wording.REASONING if facts.reasoning_tags else ""),
    )
    return tuple(section(name, text) for name, text in texts if text)


def project_context(names: Sequence[str]) -> Part:
    """The heading above the files themselves."""
    lines = ["# Project Context", "These files are part of your instructions:"]
    if "SOUL.md" in names:
        lines.append("SOUL.md is your character: speak and act in its voice.")
    return section(PROJECT, "\n".join(lines))


def after_files(facts: Facts) -> tuple[Part, ...]:
    """What stands below the project context; the last line says who runs where."""
    if facts.mode == "none":
        return ()
    full = facts.mode == "full"
    texts = (
        ("Silent Replies", wording.SILENT if full and facts.surface.silent else ""),
        ("Heartbeats", _heartbeats(facts.heartbeat) if full else ""),
        ("Runtime", _runtime(facts)),
    )
    return tuple(section(name, text) for name, text in texts if text)


def skills_frame(warning: str = "") -> tuple[Part, Part]:
    """What opens and closes the list of skills; the list itself is the skills room's."""
    opening = f"{wording.SKILLS}\n{warning}" if warning else wording.SKILLS
    return (
        section(SKILLS, f"{opening}\n<available_skills>"),
        section(SKILLS_END, "</available_skills>"),
    )


@lru_cache(maxsize=256)
def section(name: str, text: str) -> Part:
    """One section; the same object for the same words, so that sizes are worked out once."""
    return Part(section_id(name), PartKind.SECTION, section_id(name), text, name)


def section_id(name: str) -> str:
    """The id of a section's part; a skill or a file may have its name, not its id."""
    return f"section:{name}"


def _tooling(facts: Facts) -> str:
    lines = ["## Tooling"]
    if not facts.tools:
        return "\n".join([*lines, "No tools are available in this session. Answer in text."])
    lines.append("Your tools, under exactly these names:")
    ordered = sorted(facts.tools, key=lambda tool: tool_sort_key(tool[0]))
    lines += [f"- {name}: {summary}" if summary else f"- {name}" for name, summary in ordered]
    lines.append("Calls that do not need each other's results may go out together.")
    if facts.has("process"):
        lines.append("Do not poll quickly: let exec (yieldMs) or process (timeout) do the waiting.")
    if facts.has("sessions_spawn"):
        lines.append(
            "Give long or separate work to sessions_spawn; its result comes by itself, so do not "
            "ask for it in a loop."
        )
    lines.append("TOOLS.md holds notes for you; it neither adds nor removes a tool.")
    return "\n".join(lines)


def _memory(facts: Facts) -> str:
    search, get = facts.has("memory_search"), facts.has("memory_get")
    if not (search or get):
        return ""
    if search:
        then = ", then memory_get for the lines you need" if get else ""
        how = f"memory_search first{then}"
    else:
        how = "look into MEMORY.md and memory/ with memory_get first"
    cite = wording.CITE if facts.citations else wording.NO_CITE
    return (
        "## Memory Recall\nBefore you answer about earlier work, decisions, dates, people, "
        f"preferences or tasks: {how}. Say so when you looked and are still unsure. {cite}"
    )


def _aliases(facts: Facts) -> str:
    if not facts.aliases:
        return ""
    lines = [f"- {alias}: {model}" for alias, model in facts.aliases]
    return "\n".join(["## Model Aliases", "Names your user may call models by:", *lines])


def _workspace(path: str) -> str:
    return (
        f"## Workspace\nWorking directory: {path}\n"
        "Relative paths start here. Keep your files inside it; elsewhere needs approval."
    )


def _docs(path: str) -> str:
    if not path:
        return ""
    return f"## Documentation\nHow Claw works stands in {path}: look there before you guess."


def _sandbox(box: Boxed | None) -> str:
    if box is None:
        return ""
    if box.broken:
        return f"## Sandbox\nThis session has a sandbox that does not work: {box.broken}."
    lines = [f"## Sandbox\nCommands run in a sandbox ({box.backend}); it works in {box.workdir}."]
    match box.access:
        case "rw":
            lines.append("That folder is the agent's workspace itself.")
        case "ro" if box.agent_files:
            lines.append(f"The agent's workspace can be read at {box.agent_files}, not written.")
        case _:
            lines.append("Nothing of the agent's workspace is in it.")
    if box.network == "none":
        lines.append("It has no network.")
    if box.elevated != "off":
        asks = "asks your user" if box.elevated == "ask" else "is not asked about"
        lines.append(f"exec leaves it for now and {asks}; elevated=false keeps a command inside.")
    return "\n".join(lines)


def _owners(owners: tuple[str, ...]) -> str:
    if not owners:
        return ""
    return f"## Authorized Senders\nYour user writes as: {', '.join(owners)}. Others are guests."


def _time(facts: Facts) -> str:
    lines = [f"## Current Date & Time\nTime zone: {facts.timezone}"]
    arrived = "Messages carry the time at which they arrived"
    if facts.has("session_status"):
        lines.append(f"{arrived}; session_status tells it exactly.")
    elif facts.has("exec"):
        lines.append(f"{arrived}; run `date` when you need it exactly.")
    else:
        lines.append(f"{arrived}.")
    return "\n".join(lines)


def _messaging(facts: Facts) -> str:
    """Nothing where a talk can only be answered: that needs no telling."""
    surface = facts.surface
    send, spawn = facts.has("sessions_send"), facts.has("sessions_spawn")
    subagents, message = facts.has("subagents"), facts.has("message")
    if not (send or spawn or subagents or message or surface.channel):
        return ""
    lines = ["## Messaging", wording.ROUTING]
    if send:
        lines.append("- Another session: sessions_send with its sessionKey and your message.")
    if subagents:
        lines.append("- Sub-agents: subagents lists, steers and stops them.")
    if send or spawn:
        lines.append(wording.SYSTEM_MESSAGE)
    if message:
        lines += ["### message tool", wording.MESSAGE_TOOL]
        if surface.channel:
            lines.append(f"- This talk is on {surface.channel}.")
        if surface.silent:
            lines.append(wording.MESSAGE_REPLY)
        if "inlinebuttons" in (name.lower() for name in surface.capabilities):
            lines.append(wording.BUTTONS)
    lines += [f"- {hint}" for hint in surface.hints]
    return "\n".join(lines)


def _context(facts: Facts) -> tuple[tuple[str, str], ...]:
    context = facts.surface.context
    if not context:
        return ()
    name = "Subagent Context" if facts.mode == "minimal" else "Group Chat Context"
    return ((name, f"## {name}\n{context}"),)


def _heartbeats(prompt: str) -> str:
    return f"## Heartbeats\nHeartbeat message: {prompt}\n{wording.HEARTBEATS}" if prompt else ""


def _runtime(facts: Facts) -> str:
    host, surface = facts.host, facts.surface
    items = [f"agent={facts.agent_id}"]
    if host.name:
        items.append(f"host={host.name}")
    items += [f"os={host.os} ({host.arch})", f"shell={host.shell}", f"model={facts.model}"]
    if facts.default_model and facts.default_model != facts.model:
        items.append(f"default_model={facts.default_model}")
    if surface.channel:
        items.append(f"channel={surface.channel}")
        items.append(f"capabilities={','.join(surface.capabilities) or 'none'}")
    items.append(f"thinking={facts.thinking}")
    if facts.reasoning:
        items.append(f"reasoning={facts.reasoning}")
    return "## Runtime\nRuntime: " + " | ".join(items)
