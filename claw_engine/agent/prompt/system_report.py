"""What a system prompt is made of, in characters: OpenClaw's `systemPromptReport`.

Names and arithmetic: agent digest §2.5; the prompt is its parts joined by newlines, and what is not
project context is the rest. A report is made once and handed out until something changed.
"""

from __future__ import annotations

import json
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from claw_engine.agent.prompt.builder import Limits, SystemPrompt
from claw_engine.agent.prompt.sections import PROJECT, SKILLS, SKILLS_END, section_id
from claw_engine.models.base import ModelRef, ToolSpec
from claw_engine.parts import Part, PartKind

log = logging.getLogger("claw.agent")

Report = Mapping[str, object]

_KEPT = 128
_LISTED = "- "


class Told(Struct, frozen=True, eq=False):
    """Everything a report is about; equal objects make an equal report."""

    prompt: SystemPrompt
    specs: tuple[ToolSpec, ...]
    ref: ModelRef
    session_key: str
    workspace: str
    limits: Limits
    sandbox_mode: str = "off"
    sandboxed: bool = False


class ReportBook:
    """The last report of each session; loop thread only."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[Told, Report]] = OrderedDict()

    def of(self, told: Told, now_ms: Callable[[], int]) -> Report:
        """The report of a run; the same object as before while nothing changed."""
        known = self._known.get(told.session_key)
        if known is not None and _same(known[0], told):
            return known[1]
        if known is not None:
            _log_change(known[0], told)
        report = system_report(told, "run", now_ms())
        self._known[told.session_key] = (told, report)
        self._known.move_to_end(told.session_key)
        if len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return report


def system_report(told: Told, source: Literal["run", "estimate"], now_ms: int) -> Report:
    """The report. `sessionId` is filled in by whoever keeps it. Pure."""
    prompt = told.prompt
    chars = joined_chars(prompt.parts)
    project = project_chars(prompt)
    skills = [part for part in prompt.parts if part.kind is PartKind.SKILL]
    return {
        "source": source,
        "generatedAt": now_ms,
        "sessionId": "",
        "sessionKey": told.session_key,
        "provider": told.ref.provider,
        "model": told.ref.id,
        "workspaceDir": told.workspace,
        "bootstrapMaxChars": told.limits.per_file,
        "bootstrapTotalMaxChars": told.limits.total,
        "sandbox": {"mode": told.sandbox_mode, "sandboxed": told.sandboxed},
        "systemPrompt": {
            "chars": chars,
            "projectContextChars": project,
            "nonProjectContextChars": chars - project,
        },
        "injectedWorkspaceFiles": [
            {
                "name": one.file.name,
                "path": str(one.file.path),
                "missing": one.file.text is None,
                "rawChars": one.raw_chars,
                "injectedChars": one.injected_chars,
                "truncated": one.truncated,
            }
            for one in prompt.files
        ],
        "skills": {
            "promptChars": _skill_chars(prompt.parts),
            "entries": [{"name": part.name, "blockChars": len(part.text)} for part in skills],
        },
        "tools": _tools(prompt.parts, told.specs),
    }


def joined_chars(parts: Sequence[Part]) -> int:
    """Characters of parts with the newlines between them."""
    return sum(len(part.text) for part in parts) + max(0, len(parts) - 1)


def project_chars(prompt: SystemPrompt) -> int:
    """From the heading of the project context to what follows it, as OpenClaw cuts it out."""
    ids = [part.id for part in prompt.parts]
    if not prompt.files or section_id(PROJECT) not in ids:
        return 0
    start = ids.index(section_id(PROJECT))
    end = start + 1 + len(prompt.files)
    last = end == len(ids)
    return joined_chars(prompt.parts[start:end]) + (0 if last else 1)


def _skill_chars(parts: Sequence[Part]) -> int:
    ids = [part.id for part in parts]
    if section_id(SKILLS) not in ids:
        return 0
    start, end = ids.index(section_id(SKILLS)), ids.index(section_id(SKILLS_END))
    intro = parts[start].text.rindex("<available_skills>")
    return joined_chars(parts[start : end + 1]) - intro


def _tools(parts: Sequence[Part], specs: Sequence[ToolSpec]) -> Mapping[str, object]:
    tooling = next((part.text for part in parts if part.id == section_id("Tooling")), "")
    listed = [line for line in tooling.split("\n") if line.startswith(_LISTED)]
    entries = [_tool(spec) for spec in specs]
    return {
        "listChars": len("\n".join(listed)),
        "schemaChars": sum(int(str(entry["schemaChars"])) for entry in entries),
        "entries": entries,
    }


def _tool(spec: ToolSpec) -> Mapping[str, object]:
    shape = json.loads(spec.part.text)
    schema = shape.get("parameters")
    named = schema.get("properties") if isinstance(schema, dict) else None
    text = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    return {
        "name": spec.name,
        "summaryChars": len(str(shape.get("description", "")).strip()),
        "schemaChars": len(text),
        "propertiesCount": len(named) if isinstance(named, dict) else None,
    }


def _log_change(before: Told, now: Told) -> None:
    """Whoever wonders about a bill finds here what made a provider read everything anew."""
    from claw_engine.agent.prompt.prefix import first_change  # a change is rare

    old, new = ([spec.part for spec in t.specs] + list(t.prompt.parts) for t in (before, now))
    found = first_change(old, new)
    if found is not None:
        log.info("prompt changed: sessionKey=%s %s", now.session_key, found.sentence())


def _same(one: Told, other: Told) -> bool:
    """Prompts and lists of tools are the same objects while nothing changed in them."""
    return (
        one.prompt is other.prompt
        and one.specs is other.specs
        and (one.ref.provider, one.ref.id) == (other.ref.provider, other.ref.id)
        and (one.sandbox_mode, one.sandboxed) == (other.sandbox_mode, other.sandboxed)
    )
