"""The file tools: read, write, edit. Free inside the workspace, asked for outside, never the state.

Each call is decided about (guard), asked for when it must be (permission), then done on exactly
the file that was decided about (fileio). A path that changes meanwhile is asked for anew, once.
"""

from __future__ import annotations

import asyncio
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from weakref import WeakValueDictionary

from msgspec import Struct

from claw_engine.approvals.model import ApprovalKind
from claw_engine.sandbox.box import WorkspaceAccess
from claw_engine.tools import fileio
from claw_engine.tools.base import ToolContext, ToolError, ToolResult
from claw_engine.tools.edits import EditRefused, replace_once
from claw_engine.tools.guard import (
    Access,
    Guard,
    PathChanged,
    PathRefused,
    Target,
    folder_of,
)
from claw_engine.tools.permission import (
    FileQuestion,
    Leave,
    ask_operator,
    file_ask,
    leave_outside,
    policy_of,
    refusal,
    refuse_in_look,
)

_SHOWN_CHARS = 4000
"""Characters of new content on an approval card; its length and hash stand beside it."""

Locks = WeakValueDictionary[Path, asyncio.Lock]
"""One lock a real path, so that parallel edits of one file keep each other's work."""


class _Call(Struct, frozen=True):
    """One call while it is worked on."""

    args: Mapping[str, object]
    ctx: ToolContext
    guard: Guard
    target: Target

    def text(self, name: str) -> str:
        return str(self.args[name])

    def current(self) -> Target:
        """The target as it is now, under the file's lock.

        In the workspace another call of this turn may have replaced the file; one that was asked
        about stays what it was.
        """
        if self.target.access is Access.ASK:
            return self.target
        target = self.guard.decide(self.target.given)
        if target.access is not self.target.access or target.real != self.target.real:
            raise PathChanged(f"{target.given} leads somewhere else now.")
        return target


class FileTool(ABC):
    """What the three have in common: decide, ask if needed, act, ask anew after a change."""

    name: str
    summary: str
    description: str
    parameters: Mapping[str, object]
    kind: ApprovalKind

    def __init__(self, locks: Locks | None = None) -> None:
        self._locks: Locks = locks if locks is not None else WeakValueDictionary()

    async def run(self, args: Mapping[str, object], ctx: ToolContext) -> ToolResult:
        """Do it. Raises ToolError with a sentence the model can act on."""
        box = ctx.standing.box
        given = str(args["path"]) if box is None else box.outside(str(args["path"]))
        if self.kind is not ApprovalKind.READ:
            refuse_in_look(ctx, f"{self.name} {given}")
            if box is not None and box.access is WorkspaceAccess.READ:
                raise ToolError(f"{self.name}: files are read-only in this sandbox.")
        folder = self._readable(given, ctx) if self.kind is ApprovalKind.READ else None
        guard = Guard(folder or ctx.workspace, ctx.state_dir.root)
        changed = False
        while True:
            try:
                target = await asyncio.to_thread(guard.decide, given)
                call = _Call(args, ctx, guard, target)
                sha256: str | None = None
                if target.access is Access.ASK:
                    if self.kind is not ApprovalKind.READ:
                        sha256 = await asyncio.to_thread(fileio.digest, guard, target)
                    refused = await self._permit(call, sha256, changed=changed)
                    if refused is not None:
                        return refused
                return await self._act(call, sha256)
            except PathChanged as change:
                if changed:
                    raise ToolError(f"{change} It keeps changing; nothing was done.") from change
                changed = True
            except (PathRefused, fileio.FileProblem, EditRefused) as problem:
                raise ToolError(str(problem)) from problem
            except OSError as error:
                reason = error.strerror or str(error)
                raise ToolError(f"{self.name} {given}: {reason}.") from error

    def _readable(self, given: str, ctx: ToolContext) -> Path | None:
        """The folder beside the workspace that holds it and may be read, if there is one."""
        box = ctx.standing.box
        if box is not None:
            return Path(box.agent_workspace) if box.shows(given) else None
        return folder_of(given, ctx.readable) if ctx.readable else None

    async def _permit(self, call: _Call, sha256: str | None, *, changed: bool) -> ToolResult | None:
        """None when it may be done; else the result that says why not."""
        ctx, target = call.ctx, call.target
        if (box := ctx.standing.box) is not None:
            raise ToolError(f"{target.given} is outside the sandbox ({box.workdir}).")
        if ctx.settings.tools.fs.workspace_only:
            raise ToolError(f"{target.given} is {target.why} ({ctx.workspace}).")
        policy = await policy_of(ctx)
        match leave_outside(policy):
            case Leave.ALLOW:
                return None
            case Leave.DENY:
                raise ToolError(f"{target.given} is {target.why} and the policy allows no more.")
            case Leave.ASK:
                pass
        if self.kind is not ApprovalKind.WRITE and target.identity is None:
            raise ToolError(f"{target.given} does not exist.")
        text, reasons = self._question(call)
        question = FileQuestion(self.kind, target, text, reasons, sha256)
        outcome = await ask_operator(ctx, file_ask(ctx, question, policy, changed=changed))
        if outcome.allowed:
            return None
        return refusal(outcome, f"{self.name} {target.given}")

    @abstractmethod
    def _question(self, call: _Call) -> tuple[str, tuple[str, ...]]:
        """The text on the card and further reasons."""

    @abstractmethod
    async def _act(self, call: _Call, sha256: str | None) -> ToolResult:
        """Do what was decided; `sha256` is the content that was approved, if it was asked for."""

    async def _locked(self, path: Path, work: Callable[[], ToolResult]) -> ToolResult:
        async with workspace_lock(self._locks, path):
            return await asyncio.to_thread(work)


class ReadTool(FileTool):
    """Show a text file, page by page."""

    name = "read"
    summary = "Read a text file"
    description = (
        "Read a text file. Relative paths are in the workspace. Shows at most 2000 lines or 50 KB; "
        "use offset (1-based line) and limit to read on. Files outside the workspace need the "
        "operator's approval."
    )
    parameters: Mapping[str, object] = {
        "type": "object",
        "properties": {
            "path": {
                "type": "string",
                "description": "File to read",
                "examples": ["notes.md"],
            },
            "offset": {
                "type": "integer",
                "minimum": 1,
                "description": "Line to start at (1-based)",
            },
            "limit": {"type": "integer", "minimum": 1, "description": "Most lines to show"},
        },
        "required": ["path"],
    }
    kind = ApprovalKind.READ

    def _question(self, call: _Call) -> tuple[str, tuple[str, ...]]:
        return f"read {_path(call)}", ()

    async def _act(self, call: _Call, sha256: str | None) -> ToolResult:
        offset = _whole(call.args.get("offset")) or 1
        limit = _whole(call.args.get("limit"))
        page = await asyncio.to_thread(fileio.read_page, call.guard, call.target, offset, limit)
        details = {"path": str(call.target.real), "firstLine": page.first, "lastLine": page.last}
        return ToolResult(page.text, details=details)


class WriteTool(FileTool):
    """Create a file or replace all of it."""

    name = "write"
    summary = "Create or overwrite a file"
    description = (
        "Write a whole file, creating missing directories; what was there is replaced. Use edit to "
        "change part of a file. Files outside the workspace need the operator's approval."
    )
    parameters: Mapping[str, object] = {
        "type": "object",
        "properties": {
            "path": {
                "type": "string",
                "description": "File to write",
                "examples": ["notes.md"],
            },
            "content": {
                "type": "string",
                "description": "The whole new text of the file",
                "examples": ["Hello\n"],
            },
        },
        "required": ["path", "content"],
    }
    kind = ApprovalKind.WRITE

    def _question(self, call: _Call) -> tuple[str, tuple[str, ...]]:
        content = call.text("content")
        verb = "replaces a file" if call.target.identity is not None else "creates a file"
        return f"write {_path(call)}\n{shown(content)}", (verb, measure(content))

    async def _act(self, call: _Call, sha256: str | None) -> ToolResult:
        data = _encode(call.text("content"))
        tag = call.ctx.world.ids.hex(8)

        def work() -> ToolResult:
            target = call.current()
            if target.access is Access.ASK:
                _still(call, sha256)
            written = fileio.write_whole(call.guard, target, data, tag)
            verb = "Created" if written.created else "Wrote"
            details = {"path": str(target.real), "bytes": written.size}
            return ToolResult(f"{verb} {target.given} ({written.size:,} bytes).", details=details)

        return await self._locked(call.target.real, work)


class EditTool(FileTool):
    """Replace one exact piece of a file."""

    name = "edit"
    summary = "Replace an exact piece of a file"
    description = (
        "Replace oldText, which must occur exactly once in the file (white space included), by "
        "newText. Files outside the workspace need the operator's approval."
    )
    parameters: Mapping[str, object] = {
        "type": "object",
        "properties": {
            "path": {
                "type": "string",
                "description": "File to change",
                "examples": ["notes.md"],
            },
            "oldText": {
                "type": "string",
                "description": "Exact text to replace; must occur once",
                "examples": ["old line"],
            },
            "newText": {
                "type": "string",
                "description": "Text to put there; may be empty",
                "examples": ["new line"],
            },
        },
        "required": ["path", "oldText", "newText"],
    }
    kind = ApprovalKind.EDIT

    def _question(self, call: _Call) -> tuple[str, tuple[str, ...]]:
        old, new = call.text("oldText"), call.text("newText")
        text = f"edit {_path(call)}\n--- replace\n{shown(old)}\n+++ by\n{shown(new)}"
        return text, (f"old {measure(old)}", f"new {measure(new)}")

    async def _act(self, call: _Call, sha256: str | None) -> ToolResult:
        tag = call.ctx.world.ids.hex(8)

        def work() -> ToolResult:
            target = call.current()
            data = fileio.read_whole(call.guard, target)
            if target.access is Access.ASK and hashlib.sha256(data).hexdigest() != sha256:
                raise PathChanged(f"{target.given} has other content than when it was approved.")
            try:
                original = data.decode("utf-8")
            except UnicodeDecodeError:
                raise fileio.FileProblem(
                    f"{target.given} is not UTF-8 text; edit it with a command."
                ) from None
            edited = replace_once(original, call.text("oldText"), call.text("newText"))
            fileio.write_whole(call.guard, target, _encode(edited.text), tag)
            details = {"path": str(target.real), "firstChangedLine": edited.line}
            return ToolResult(f"Edited {target.given} at line {edited.line}.", details=details)

        return await self._locked(call.target.real, work)


def file_tools(locks: Locks | None = None) -> tuple[FileTool, ...]:
    """read, write and edit; the last two share their locks."""
    shared: Locks = locks if locks is not None else WeakValueDictionary()
    return (ReadTool(), WriteTool(shared), EditTool(shared))


def workspace_lock(locks: Locks, path: Path) -> asyncio.Lock:
    """The lock of a real path; it lives as long as somebody holds or awaits it."""
    lock = locks.get(path)
    if lock is None:
        lock = locks[path] = asyncio.Lock()
    return lock


def printable(path: Path) -> str:
    """A path for the card; one with line breaks or invisible characters is escaped."""
    text = str(path)
    return text if text.isprintable() else ascii(text)


def _path(call: _Call) -> str:
    return printable(call.target.real)


def _still(call: _Call, sha256: str | None) -> None:
    """Raises PathChanged when the content to be replaced is not the one that was approved."""
    if call.target.identity is not None and fileio.digest(call.guard, call.target) != sha256:
        raise PathChanged(f"{call.target.given} has other content than when it was approved.")


def _encode(text: str) -> bytes:
    # A lone surrogate (half of a JSON escape pair) has no UTF-8 form.
    return text.encode("utf-8", errors="replace")


def shown(text: str) -> str:
    """A text for the card, cut where it is too long for one."""
    if len(text) <= _SHOWN_CHARS:
        return text
    return f"{text[:_SHOWN_CHARS]}\n[… {len(text) - _SHOWN_CHARS:,} more characters …]"


def measure(text: str) -> str:
    """Size and hash of a text, for the card."""
    data = _encode(text)
    return f"text: {len(data):,} bytes, sha256 {hashlib.sha256(data).hexdigest()}"


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None
