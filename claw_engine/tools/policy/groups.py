"""Tool lists of a group chat, from `channels.<channel>.groups.<id>.tools`. Pure.

Channels are not validated by the settings: what is not a list of names there shuts everything, as
a rule that cannot be read must not allow more than was meant.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from claw_engine.sessions.keys import SessionKey

_MAPS = ("groups", "channels")
"""Where channels keep their group chats; Slack and Discord call them channels."""


class GroupRules(Struct, frozen=True):
    """Lists for one group chat, or one sender in it."""

    source: str
    allow: tuple[str, ...] | None = None
    also_allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()


def group_rules(
    resolved: Mapping[str, object], key: SessionKey, sender: str = ""
) -> GroupRules | None:
    """The lists for the group chat of `key`, a sender's own ones first; None without any."""
    tokens = key.rest.split(":")
    if len(tokens) < 3 or tokens[1] not in ("group", "channel"):
        return None
    channel, chat = tokens[0], tokens[2]
    settings = _under(_under(resolved, "channels"), channel)
    for name in _MAPS:
        chats = _under(settings, name)
        for id_ in (chat, "*"):
            entry = _under(chats, id_)
            if entry:
                place = f"channels.{channel}.{name}.{id_}"
                found = _of_entry(entry, place, sender)
                if found is not None:
                    return found
    return None


def _of_entry(entry: Mapping[str, object], place: str, sender: str) -> GroupRules | None:
    senders = {_plain(name): value for name, value in _under(entry, "toolsBySender").items()}
    wanted = _plain(sender)
    for id_ in (wanted, "*"):
        if id_ and id_ in senders:
            return _read(senders[id_], f"{place}.toolsBySender[{id_}]")
    return _read(entry["tools"], f"{place}.tools") if "tools" in entry else None


def _read(value: object, source: str) -> GroupRules:
    lists: dict[str, tuple[str, ...] | None] = {}
    for name in ("allow", "alsoAllow", "deny"):
        given = value.get(name) if isinstance(value, Mapping) else 0
        if given is not None and not (
            isinstance(given, list | tuple) and all(isinstance(one, str) for one in given)
        ):
            return GroupRules(f"{source} (cannot be read)", deny=("*",))
        lists[name] = None if given is None else tuple(given)
    return GroupRules(source, lists["allow"], lists["alsoAllow"], lists["deny"] or ())


def _under(value: Mapping[str, object], key: str) -> Mapping[str, object]:
    """The object at a key, in any case; empty when there is none."""
    for name, inner in value.items():
        if _plain(name) == _plain(key) and isinstance(inner, Mapping):
            return {str(k): v for k, v in inner.items()}
    return {}


def _plain(name: str) -> str:
    return name.strip().lower().lstrip("@")
