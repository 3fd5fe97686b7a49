"""`/context`: what the model is told before the talk, and how much of the window it takes.

Shows the report of the session's last run, else an estimate of the next. Pure but for that.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from claw_engine.agent.briefing import Speaker
from claw_engine.agent.options import options
from claw_engine.agent.ports import REPORT_FIELD
from claw_engine.inbox.commands import CommandCall
from claw_engine.inbox.overrides import message_for, settings_for
from claw_engine.inbox.ports import DispatchDeps
from claw_engine.sessions.entry import SessionEntry

CHARS_PER_TOKEN = 4
"""As rough as it is everywhere in these reports; the prompt view counts better."""
_SKILLS, _TOOLS, _TOP = 20, 30, 30

_TOKENS = ("totalTokens", "inputTokens", "outputTokens", "contextTokens")

Json = Mapping[str, object]
USAGE = (
    "/context list: what the system prompt is made of\n"
    "/context detail: also the largest skills and tools\n"
    "/context json: all figures for a program"
)


async def answer(deps: DispatchDeps, call: CommandCall) -> str:
    """What `/context` says. Raises ClawError, OSError."""
    word = (call.args.split() or [""])[0].lower()
    if word not in ("list", "show", "detail", "deep", "json"):
        return USAGE
    entry = deps.sessions.get(call.session_key)
    report = await _report(deps, call, entry)
    tokens = _tokens(entry)
    if word == "json":
        return json.dumps({"report": report, "session": tokens}, ensure_ascii=False, indent=2)
    return context_text(report, tokens, detail=word in ("detail", "deep"))


async def _report(deps: DispatchDeps, call: CommandCall, entry: SessionEntry | None) -> Json:
    known = entry.raw.get(REPORT_FIELD) if entry is not None else None
    if isinstance(known, Mapping) and known.get("source") == "run":
        return known
    message, settings = message_for(call.message, entry), settings_for(deps.settings(), entry)
    agent = deps.agent
    chosen = options(settings, message.agent_id, agent.deps.state_dir, message)
    speaker = Speaker(message.session_key, message.agent_id, message.source, message.extra)
    now = deps.world.clock.now_ms()
    ref = agent.deps.models.resolve(settings)
    report = await agent.briefer.estimate(settings, chosen, ref, speaker, now)
    return {**report, "sessionId": entry.session_id if entry is not None else ""}


def _tokens(entry: SessionEntry | None) -> Json:
    return {name: entry.number(name) if entry is not None else None for name in _TOKENS}


def context_text(report: Json, tokens: Json, *, detail: bool = False) -> str:
    """The report in lines."""
    prompt, tools, skills = (_map(report.get(n)) for n in ("systemPrompt", "tools", "skills"))
    sandbox = _map(report.get("sandbox"))
    files = _rows(report.get("injectedWorkspaceFiles"))
    told = "the last run" if report.get("source") == "run" else "an estimate of the next run"
    project, rest = (_chars(prompt.get(f"{n}ContextChars")) for n in ("project", "nonProject"))
    lines = [
        f"Context of {report.get('sessionKey')} ({told})",
        f"Model: {report.get('provider')}/{report.get('model')}",
        f"Workspace: {report.get('workspaceDir')}",
        f"Limits: {_n(report.get('bootstrapMaxChars'))} characters a file, "
        f"{_n(report.get('bootstrapTotalMaxChars'))} all files",
        f"Sandbox: mode {sandbox.get('mode')}, {'' if sandbox.get('sandboxed') else 'not '}in use",
        f"System prompt: {_chars(prompt.get('chars'))} = project context {project} + rest {rest}",
        *_cut_warning(files, report),
        "Workspace files:",
        *(f"- {_file(row)}" for row in files),
    ]
    entries = _rows(skills.get("entries"))
    lines.append(f"Skills: {_chars(skills.get('promptChars'))}, {len(entries)} listed")
    lines += _names(entries, _SKILLS)
    entries = _rows(tools.get("entries"))
    lines.append(
        f"Tools: list {_chars(tools.get('listChars'))}, schemas {_chars(tools.get('schemaChars'))}"
    )
    lines += _names(entries, _TOOLS)
    if detail:
        lines += _detail(_rows(skills.get("entries")), entries)
    total, window = tokens.get("totalTokens"), tokens.get("contextTokens")
    if total is not None:
        lines.append(f"Session: {_n(total)} tokens of {_n(window) if window else 'unknown'}")
    return "\n".join(lines)


def _detail(skills: Sequence[Json], tools: Sequence[Json]) -> list[str]:
    lines: list[str] = []
    for title, rows, field, unit in (
        ("Largest skills", skills, "blockChars", _chars),
        ("Largest tool schemas", tools, "schemaChars", _chars),
        ("Longest tool descriptions", tools, "summaryChars", _chars),
        ("Most parameters", tools, "propertiesCount", _n),
    ):
        lines += _largest(title, rows, field, unit)
    return lines


def _largest(
    title: str, rows: Sequence[Json], field: str, unit: Callable[[object], str]
) -> list[str]:
    sized = sorted((-_int(row.get(field)), str(row.get("name"))) for row in rows)
    if not sized:
        return []
    shown = [f"- {name}: {unit(-size)}" for size, name in sized[:_TOP]]
    more = len(sized) - len(shown)
    return [f"{title}:", *shown, *([f"- and {more} more"] if more else [])]


def _cut_warning(files: Sequence[Json], report: Json) -> list[str]:
    cut = [row for row in files if row.get("truncated")]
    if not cut:
        return []
    most = _int(report.get("bootstrapMaxChars"))
    alone = [row for row in cut if _int(row.get("rawChars")) > most]
    why = "longer than a file may be" if alone else "more than all files together may have"
    setting = "bootstrapMaxChars" if alone else "bootstrapTotalMaxChars"
    names = ", ".join(str(row.get("name")) for row in cut)
    return [f"⚠ Cut: {names} ({why}). Shorten it, or raise agents.defaults.{setting}."]


def _file(row: Json) -> str:
    word = "missing" if row.get("missing") else "cut" if row.get("truncated") else "whole"
    raw, injected = _chars(row.get("rawChars")), _chars(row.get("injectedChars"))
    return f"{row.get('name')}: {word}, {raw} on the disk, {injected} in the prompt"


def _names(rows: Sequence[Json], most: int) -> list[str]:
    names = [str(row.get("name")) for row in rows[:most]]
    if len(rows) > most:
        names.append(f"and {len(rows) - most} more")
    return [f"- {', '.join(names)}"] if names else []


def _chars(value: object) -> str:
    size = _int(value)
    return f"{size:,} chars (~{-(-size // CHARS_PER_TOKEN):,} tok)"


def _n(value: object) -> str:
    return f"{_int(value):,}"


def _int(value: object) -> int:
    return value if isinstance(value, int) else 0


def _map(value: object) -> Json:
    return value if isinstance(value, Mapping) else {}


def _rows(value: object) -> list[Json]:
    rows = value if isinstance(value, list | tuple) else ()
    return [row for row in rows if isinstance(row, Mapping)]
