"""The question about a file outside the workspace."""

from __future__ import annotations

from claw_engine.approvals.asks import ask_for_file
from claw_engine.approvals.model import ApprovalAsk, ApprovalKind
from tests.approvals.conftest import Box


def make(box: Box, kind: ApprovalKind, path: str) -> ApprovalAsk:
    return ask_for_file(
        kind,
        path,
        workspace=str(box.cwd),
        agent_id="main",
        session_key="agent:main:main",
        run_id="r",
        tool_call_id="c",
        why="to look",
        fs=box.fs,
    )


def test_it_says_where_the_path_leads(box: Box) -> None:
    target = box.program("opt/secret")
    link = box.root / "opt/link"
    link.symlink_to(target)
    ask = make(box, ApprovalKind.READ, str(link))
    assert ask.command == f"read {link}"
    assert ask.reasons == (f"{link} is outside the workspace", f"it leads to {target}")
    assert ask.binding.files[0].real == str(target)
    assert ask.always.patterns == ()
    assert ask.always.refusal


def test_it_says_that_a_file_is_new(box: Box) -> None:
    ask = make(box, ApprovalKind.WRITE, str(box.root / "opt/new"))
    assert ask.reasons[-1] == "it does not exist yet"
