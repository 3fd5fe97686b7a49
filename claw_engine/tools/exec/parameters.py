"""What the model may pass to exec, as a JSON schema (names: OpenClaw 2026.2.26)."""

from __future__ import annotations

from collections.abc import Mapping

PARAMETERS: Mapping[str, object] = {
    "type": "object",
    "properties": {
        "command": {
            "type": "string",
            "description": "Command for /bin/sh",
            "examples": ["ls -la"],
        },
        "workdir": {
            "type": "string",
            "description": "Directory to run in (default: the workspace)",
        },
        "env": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "description": "Further environment variables",
        },
        "timeout": {
            "type": "number",
            "minimum": 1,
            "maximum": 86400,
            "description": "Seconds until it is stopped (default 1800; none when background "
            "or yieldMs is given)",
        },
        "background": {
            "type": "boolean",
            "description": "Move to the background at once; input can be written to it",
        },
        "yieldMs": {
            "type": "number",
            "description": "Milliseconds until it moves to the background, 10 to 120000 "
            "(default 10000)",
        },
        "pty": {
            "type": "boolean",
            "description": "Run on a pseudo-terminal, for programs that insist on one",
        },
        "host": {"enum": ["sandbox", "gateway", "node"], "description": "Leave it out"},
        "elevated": {
            "type": "boolean",
            "description": "Outside the sandbox, where the operator allowed that",
        },
    },
    "required": ["command"],
}
