"""Which agent answers which conversation: the list `bindings`, in the order of the file."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from claw_engine.config.sections.base import Names, Section

Text = Annotated[str, Meta(min_length=1)]


class PeerMatch(Section, frozen=True):
    """A conversation partner; `dm` is an older name of `direct`. Half of one never matches."""

    kind: Literal["direct", "group", "channel", "dm"] | None = None
    id: str = ""


class BindingMatch(Section, frozen=True, kw_only=True):
    """Every stated field must hold. `account_id` None = the default account only, `*` = any."""

    channel: Text
    account_id: str | None = None
    peer: PeerMatch | None = None
    guild_id: str | None = None
    team_id: str | None = None
    roles: Names = ()


class BindingEntry(Section, frozen=True, kw_only=True):
    agent_id: Text
    match: BindingMatch


class BindingsSettings(Section, frozen=True):
    """The whole list; `items` keeps the order of the file."""

    items: tuple[BindingEntry, ...] = ()

    @classmethod
    def before(cls, value: object) -> object:
        return {"items": value} if isinstance(value, list | tuple) else value
