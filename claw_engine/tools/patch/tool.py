"""`apply_patch`: several files changed by one patch, all of them or none.

The same guard, approval and limits as write and edit; one question for everything that lies
outside the workspace. Whether a run has this tool is the policy's business.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from weakref import WeakValueDictionary

from msgspec import Struct
from msgspec.structs import replace

from claw_engine.approvals.model import ApprovalKind, BoundFile
from claw_engine.tools import fileio
from claw_engine.tools.base import ToolContext, ToolError, ToolResult
from claw_engine.tools.files import Locks, measure, printable, shown, workspace_lock
from claw_engine.tools.guard import Access, Guard, PathChanged, PathRefused, Target
from claw_engine.tools.patch.apply import apply
from claw_engine.tools.patch.commit import Change, commit
from claw_engine.tools.patch.parse import (
    AddFile,
    DeleteFile,
    Operation,
    PatchRefused,
    UpdateFile,
    parse,
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

MOST_FILES = 200
"""Files one patch may touch."""


class _Item(Struct, frozen=True):
    """One operation with the files it means; `sha256` of what was there when it was asked for."""

    operation: Operation
    target: Target
    moved: Target | None = None
    sha256: str | None = None

    @property
    def targets(self) -> tuple[Target, ...]:
        return (self.target,) if self.moved is None else (self.target, self.moved)


class PatchTool:
    """Shares its locks with write and edit."""

    name = "apply_patch"
    summary = "Change several files with one patch"
    description = (
        "Apply a patch to files, all of it or nothing. Format: '*** Begin Patch', then for each "
        "file '*** Add File: PATH' (lines begin with +), '*** Delete File: PATH', or '*** Update "
        "File: PATH' (optionally '*** Move to: PATH') with chunks of lines that begin with a space "
        "(kept), - or +, each chunk optionally under '@@ LINE ABOVE IT'; then '*** End Patch'. "
        "Give three kept lines around each change. Relative paths are in the workspace."
    )
    parameters: Mapping[str, object] = {
        "type": "object",
        "properties": {
            "input": {
                "type": "string",
                "description": "The whole patch",
                "examples": ["*** Begin Patch\n*** Add File: a.txt\n+Hello\n*** End Patch\n"],
            }
        },
        "required": ["input"],
    }

    def __init__(self, locks: Locks | None = None) -> None:
        self._locks: Locks = locks if locks is not None else WeakValueDictionary()

    async def run(self, args: Mapping[str, object], ctx: ToolContext) -> ToolResult:
        """Do it. Raises ToolError with a sentence the model can act on."""
        refuse_in_look(ctx, self.name)
        text = str(args["input"])
        guard = Guard(ctx.workspace, ctx.state_dir.root)
        changed = False
        while True:
            try:
                operations = await asyncio.to_thread(parse, text)
                items = await asyncio.to_thread(_decided, operations, guard, ctx)
                refused = await self._permit(items, text, ctx, changed=changed)
                if refused is not None:
                    return refused
                return await self._act(items, guard, ctx)
            except PathChanged as change:
                if changed:
                    raise ToolError(f"{change} It keeps changing; nothing was done.") from change
                changed = True
            except (PathRefused, PatchRefused, fileio.FileProblem) as problem:
                raise ToolError(f"{problem} Nothing was changed.") from problem
            except OSError as error:
                reason = error.strerror or str(error)
                raise ToolError(f"{self.name}: {reason}. Nothing was changed.") from error

    async def _permit(
        self, items: Sequence[_Item], text: str, ctx: ToolContext, *, changed: bool
    ) -> ToolResult | None:
        """None when it may be done; else the result that says why not."""
        outside = [t for item in items for t in item.targets if t.access is Access.ASK]
        if not outside:
            return None
        names = ", ".join(printable(target.real) for target in outside)
        if (box := ctx.standing.box) is not None:
            raise ToolError(f"{names}: outside the sandbox ({box.workdir}). Nothing was changed.")
        tools = ctx.settings.tools
        if tools.exec.apply_patch.workspace_only or tools.fs.workspace_only:
            raise ToolError(
                f"{names}: outside the workspace ({ctx.workspace}). Nothing was changed."
            )
        policy = await policy_of(ctx)
        match leave_outside(policy):
            case Leave.ALLOW:
                return None
            case Leave.DENY:
                raise ToolError(
                    f"{names}: outside the workspace, and the policy allows no more. "
                    "Nothing was changed."
                )
            case Leave.ASK:
                pass
        reasons = (*(_reason(item) for item in items), measure(text))
        question = FileQuestion(ApprovalKind.EDIT, outside[0], shown(text), reasons, None)
        ask = file_ask(ctx, question, policy, changed=changed)
        bound = tuple(_bound(item, t) for item in items for t in item.targets)
        ask = replace(ask, binding=replace(ask.binding, files=bound))
        outcome = await ask_operator(ctx, ask)
        return None if outcome.allowed else refusal(outcome, f"{self.name} ({names})")

    async def _act(self, items: Sequence[_Item], guard: Guard, ctx: ToolContext) -> ToolResult:
        tag = ctx.world.ids.hex(8)
        real = sorted({target.real for item in items for target in item.targets})
        async with contextlib.AsyncExitStack() as held:
            # In one order everywhere, so that two patches never wait for each other.
            for path in real:
                await held.enter_async_context(workspace_lock(self._locks, path))
            return await asyncio.to_thread(_carry_out, items, guard, tag)


def _decided(operations: Sequence[Operation], guard: Guard, ctx: ToolContext) -> list[_Item]:
    """Raises PathRefused, PatchRefused for a file that is named twice or too many files."""
    if len(operations) > MOST_FILES:
        raise PatchRefused(f"The patch touches more than {MOST_FILES} files; split it.")
    items: list[_Item] = []
    seen: set[Path] = set()
    for operation in operations:
        target = guard.decide(_given(operation.path, ctx))
        moved: Target | None = None
        if isinstance(operation, UpdateFile) and operation.move_to is not None:
            moved = guard.decide(_given(operation.move_to, ctx))
        sha256 = fileio.digest(guard, target) if target.access is Access.ASK else None
        item = _Item(operation, target, moved, sha256)
        for one in item.targets:
            if one.real in seen:
                raise PatchRefused(f"{one.given}: the patch names this file twice.")
            seen.add(one.real)
        items.append(item)
    return items


def _given(path: str, ctx: ToolContext) -> str:
    box = ctx.standing.box
    return path if box is None else box.outside(path)


def _carry_out(items: Sequence[_Item], guard: Guard, tag: str) -> ToolResult:
    changes = [change for item in items for change in _changes(item, guard)]
    commit(guard, changes, tag)
    summary: dict[str, list[str]] = {"added": [], "modified": [], "deleted": []}
    lines = ["Success. Updated the following files:"]
    for item in items:
        match item.operation:
            case AddFile(path=path):
                kind, letter = "added", "A"
            case DeleteFile(path=path):
                kind, letter = "deleted", "D"
            case UpdateFile(path=path, move_to=move_to):
                kind, letter = "modified", "M"
                path = move_to or path
        summary[kind].append(path)
        lines.append(f"{letter} {path}")
    return ToolResult("\n".join(lines), details={"summary": summary})


def _changes(item: _Item, guard: Guard) -> list[Change]:
    target = _current(item.target, guard)
    operation = item.operation
    match operation:
        case AddFile(path=path, lines=lines):
            if target.identity is not None:
                raise PatchRefused(f"{path} exists already: use '*** Update File:' for it.")
            return [Change(target, _encoded("".join(f"{line}\n" for line in lines)), None)]
        case DeleteFile():
            _read(item, target, guard)
            return [Change(target, None, target.identity)]
        case UpdateFile(path=path, chunks=chunks):
            data, like = _read(item, target, guard)
            try:
                text = data.decode("utf-8")
            except UnicodeDecodeError:
                raise PatchRefused(f"{path} is not UTF-8 text.") from None
            new = _encoded(apply(text, chunks, path))
            if item.moved is None:
                return [Change(target, new, target.identity, like)]
            moved = _current(item.moved, guard)
            if moved.identity is not None:
                raise PatchRefused(f"{moved.given} exists already: nothing is moved over it.")
            return [Change(moved, new, None, like), Change(target, None, target.identity)]


def _current(target: Target, guard: Guard) -> Target:
    """The target as it is now; what was asked about must be what it was."""
    if target.access is Access.ASK:
        return target
    now = guard.decide(target.given)
    if now.access is not target.access or now.real != target.real:
        raise PathChanged(f"{target.given} leads somewhere else now.")
    return now


def _read(item: _Item, target: Target, guard: Guard) -> tuple[bytes, os.stat_result]:
    """Content and facts of a file that must be there. Raises FileProblem, PathChanged, OSError."""
    data = fileio.read_whole(guard, target)
    if target.access is Access.ASK and hashlib.sha256(data).hexdigest() != item.sha256:
        raise PathChanged(f"{target.given} has other content than when it was approved.")
    with guard.open_read(target) as fd:
        return data, os.fstat(fd)


def _encoded(text: str) -> bytes:
    # A lone surrogate (half of a JSON escape pair) has no UTF-8 form.
    data = text.encode("utf-8", errors="replace")
    if len(data) > fileio.EDIT_BYTES:
        raise PatchRefused("A file would have more than 10 MB.")
    return data


def _reason(item: _Item) -> str:
    verb = {AddFile: "adds", DeleteFile: "deletes", UpdateFile: "changes"}[type(item.operation)]
    where = "" if item.target.access is Access.FREE else " (outside the workspace)"
    text = f"{verb} {printable(item.target.real)}{where}"
    if item.moved is not None:
        where = "" if item.moved.access is Access.FREE else " (outside the workspace)"
        text += f", moves it to {printable(item.moved.real)}{where}"
    return text


def _bound(item: _Item, target: Target) -> BoundFile:
    dev, ino = target.identity or (0, 0)
    sha256 = item.sha256 if target is item.target else None
    return BoundFile(target.given, str(target.real), sha256, dev, ino)
