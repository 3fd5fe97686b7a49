"""What the sections of a system prompt speak of, as plain values. Knows no wording."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Mode = Literal["full", "minimal", "none"]
"""How much a prompt says (agent digest §2.1)."""


Elevated = Literal["off", "ask", "full"]
"""Whether commands of a sandboxed session may run outside of it."""


class Host(Struct, frozen=True):
    """What the runtime line says about this machine; `docs` is the folder of our own manual."""

    os: str
    arch: str
    shell: str
    name: str = ""
    docs: str = ""


class Boxed(Struct, frozen=True):
    """A sandbox as its commands see it. `agent_files` is where the agent's workspace can be read,
    "" = nowhere; `broken` says why nothing runs in it."""

    backend: str
    workdir: str
    access: Literal["none", "ro", "rw"]
    agent_files: str = ""
    network: str = ""
    elevated: Elevated = "off"
    broken: str = ""


class Surface(Struct, frozen=True):
    """Where the talk is held and what can be done there; a channel tells it.

    `context` is what else belongs to it (a group's introduction, a channel's own instructions).
    The flags say that somebody acts on what the model then writes.
    """

    channel: str = ""
    capabilities: tuple[str, ...] = ()
    reply_tags: bool = False
    silent: bool = False
    reactions: Literal["", "minimal", "extensive"] = ""
    tts_hint: str = ""
    hints: tuple[str, ...] = ()
    context: str = ""


NOWHERE = Surface()

INBOUND_FIELD = "inbound"
"""Field of a message's `extra`: what the place it came from tells about it (inbound.py)."""


class Facts(Struct, frozen=True):
    """What the sections speak of. `tools` are (name, one-line summary) pairs, `aliases` (alias,
    provider/model) pairs, `owners` as they are shown; `heartbeat` is the message of a heartbeat,
    "" = there is none; `citations` may the agent name the files it remembers from."""

    agent_id: str
    model: str
    thinking: str
    timezone: str
    workspace: str
    host: Host
    tools: tuple[tuple[str, str], ...]
    mode: Mode = "full"
    default_model: str = ""
    reasoning: str = ""
    aliases: tuple[tuple[str, str], ...] = ()
    owners: tuple[str, ...] = ()
    box: Boxed | None = None
    surface: Surface = NOWHERE
    reasoning_tags: bool = False
    heartbeat: str = ""
    citations: bool = True

    def has(self, *names: str) -> bool:
        """Whether one of these tools is there."""
        return any(name in names for name, _ in self.tools)


def mode_of(session_key: str) -> Mode:
    """How much the prompt of a session says: sub-agents get the short one."""
    return "minimal" if ":subagent:" in session_key else "full"


def needs_reasoning_tags(provider: str) -> bool:
    """Providers whose models write their thoughts into the answer (agent digest §2.2)."""
    return provider in _TAGGED or "minimax" in provider


_TAGGED = frozenset({"google", "google-gemini-cli", "google-generative-ai"})
