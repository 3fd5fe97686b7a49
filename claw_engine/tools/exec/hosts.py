"""Where a command runs: in the session's sandbox or on this machine. Pure.

Table of cases: OpenClaw 2026.2.26 (gateway digest §5.1), with one difference: outside a sandbox a
command always goes through the approvals, also when no host is configured. Fails closed.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from claw_engine.sandbox.box import Standing
from claw_engine.tools.base import ToolError


class Host(StrEnum):
    SANDBOX = "sandbox"
    GATEWAY = "gateway"
    NODE = "node"


class Where(Struct, frozen=True):
    """The answer. `unasked` is what elevated `full` means: the approvals are skipped."""

    host: Host
    unasked: bool = False


def where(args: Mapping[str, object], standing: Standing, configured: str | None) -> Where:
    """Raises ToolError, with what can be done, for a host that this call cannot have."""
    boxed = standing.box is not None
    default = standing.exec_host or configured
    asked = args.get("host")
    elevated = args.get("elevated")
    if elevated is True and standing.elevated == "off":
        raise ToolError(
            "exec: elevated is not allowed in this session. Leave it out; the operator can allow "
            "it (tools.elevated, /elevated)."
        )
    lifted = standing.elevated != "off" and elevated is not False
    if asked is not None and not lifted and default is not None and asked != default:
        raise ToolError(
            f"exec: host is {default} here, not {asked}. Leave host out, or set elevated if the "
            "operator allowed that."
        )
    wanted = Host(str(asked or default or (Host.SANDBOX if boxed else Host.GATEWAY)))
    if wanted is Host.NODE:
        raise ToolError("exec: there is no node to run commands on. Leave host out.")
    if lifted:
        return Where(Host.GATEWAY, unasked=standing.elevated == "full")
    if wanted is Host.SANDBOX and not boxed:
        raise ToolError(
            "exec: host sandbox was demanded, but this session has no sandbox, so nothing runs. "
            "The operator can switch it on (agents.defaults.sandbox.mode) or set tools.exec.host "
            "to gateway."
        )
    if wanted is Host.GATEWAY and boxed and default is None:
        raise ToolError(
            "exec: this session works in a sandbox. Leave host out, or set elevated if the "
            "operator allowed that."
        )
    return Where(wanted)
