"""Where a command runs: every case of the table (gateway digest §5.1), and elevated."""

from __future__ import annotations

from typing import Any

import pytest

from claw_engine.config.sections.box import BoxSettings, ElevatedSettings
from claw_engine.sandbox.box import Box, Standing, WorkspaceAccess
from claw_engine.shapes import read
from claw_engine.tools.base import ToolError
from claw_engine.tools.elevated import level
from claw_engine.tools.exec.hosts import where

BOX = Box("k", "n", "main", WorkspaceAccess.NONE, "/b", "/w", BoxSettings())

TABLE: list[tuple[dict[str, Any], bool, str, str | None, str]] = [
    # arguments, in a box, elevated, configured host -> host, or a word of the refusal
    ({}, False, "off", None, "gateway"),
    ({}, True, "off", None, "sandbox"),
    ({}, True, "off", "gateway", "gateway"),
    ({}, True, "off", "sandbox", "sandbox"),
    ({}, False, "off", "sandbox", "no sandbox"),
    ({"host": "sandbox"}, False, "off", None, "no sandbox"),
    ({"host": "sandbox"}, True, "off", None, "sandbox"),
    ({"host": "gateway"}, True, "off", None, "works in a sandbox"),
    ({"host": "gateway"}, False, "off", None, "gateway"),
    ({"host": "gateway"}, True, "off", "sandbox", "host is sandbox here"),
    ({"host": "sandbox"}, True, "off", "gateway", "host is gateway here"),
    ({"host": "node"}, False, "off", None, "no node"),
    ({}, False, "off", "node", "no node"),
    ({"elevated": True}, True, "off", None, "not allowed"),
    ({"elevated": True}, False, "off", None, "not allowed"),
    ({"elevated": True}, True, "ask", None, "gateway"),
    ({"elevated": True}, True, "ask", "sandbox", "gateway"),
    ({}, True, "ask", None, "gateway"),
    ({"elevated": False}, True, "ask", None, "sandbox"),
    ({}, True, "full", None, "gateway unasked"),
    ({"elevated": False}, True, "full", None, "sandbox"),
    ({"host": "node"}, True, "full", None, "no node"),
]


@pytest.mark.parametrize(("args", "boxed", "elevated", "configured", "wanted"), TABLE)
def test_table(
    args: dict[str, Any], boxed: bool, elevated: str, configured: str | None, wanted: str
) -> None:
    standing = Standing(BOX if boxed else None, elevated)
    try:
        found = where(args, standing, configured)
    except ToolError as refused:
        assert wanted in refused.title
    else:
        assert f"{found.host}{' unasked' if found.unasked else ''}" == wanted


def test_the_sessions_own_word_counts_before_the_configuration() -> None:
    assert where({}, Standing(BOX, "off", "sandbox"), "gateway").host == "sandbox"


ELEVATED: list[tuple[dict[str, Any], str, str, dict[str, Any], str]] = [
    # settings, the session's word, source, what is known of the sender -> level
    ({}, "off", "console", {}, "off"),
    ({}, "on", "console", {}, "ask"),
    ({}, "ask", "cli", {}, "ask"),
    ({}, "full", "console", {}, "full"),
    ({"enabled": False}, "full", "console", {}, "off"),
    ({}, "on", "discord", {"senderId": "7"}, "off"),
    ({"allowFrom": {"discord": [7]}}, "on", "discord", {"senderId": "7"}, "ask"),
    ({"allowFrom": {"discord": ["id:7"]}}, "on", "discord", {"senderId": "8"}, "off"),
    ({"allowFrom": {"discord": ["*"]}}, "full", "discord", {}, "full"),
    ({"allowFrom": {"telegram": ["*"]}}, "on", "discord", {}, "off"),
    # A name can be chosen by anyone: only an entry that says so means one.
    ({"allowFrom": {"discord": ["eve"]}}, "on", "discord", {"senderName": "eve"}, "off"),
    ({"allowFrom": {"discord": ["name:eve"]}}, "on", "discord", {"senderName": "Eve"}, "ask"),
    ({"allowFrom": {"discord": ["username:@eve"]}}, "on", "discord", {"senderUsername": "eve"},
     "ask"),
    ({"allowFrom": {"discord": [""]}}, "on", "discord", {"senderId": ""}, "off"),
    ({}, "nonsense", "console", {}, "off"),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "chosen", "source", "extra", "wanted"), ELEVATED)
def test_who_is_elevated(
    settings: dict[str, Any], chosen: str, source: str, extra: dict[str, Any], wanted: str
) -> None:
    found = level(read(ElevatedSettings, settings), chosen=chosen, source=source, extra=extra)
    assert found == wanted


def test_words_from_outside_never_leave_the_sandbox() -> None:
    """SE-07: a mail that asks for elevated commands, in a session where the operator has them."""
    extra = {"externalContent": "mail"}
    settings = read(ElevatedSettings, {"allowFrom": {"hook": ["*"]}})
    for source in ("console", "hook"):
        assert level(settings, chosen="full", source=source, extra=extra) == "off"
