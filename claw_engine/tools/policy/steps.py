"""The steps of one run, from its settings and circumstances. Pure.

Where a value comes from is the configuration's business (gateway digest §6.2, §6.4, §6.5 of the
agent digest); what a list does is the pipeline's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from claw_engine.sessions.keys import normalise_agent_id
from claw_engine.tools.policy.groups import GroupRules
from claw_engine.tools.policy.names import normal, profile_tools
from claw_engine.tools.policy.pipeline import Step

if TYPE_CHECKING:
    from claw_engine.config.sections.toolpolicy import AgentTools, PolicySettings, ToolLists
    from claw_engine.config.settings import Settings

CHANNELS = (
    "telegram", "whatsapp", "discord", "irc", "googlechat", "slack", "signal", "imessage",
    "bluebubbles", "msteams", "matrix", "feishu", "zalo", "wechat", "webchat", "voice-call",
)  # fmt: skip
SANDBOX_ALLOW = (
    "exec", "process", "read", "write", "edit", "apply_patch", "image", "sessions_list",
    "sessions_history", "sessions_send", "sessions_spawn", "subagents", "session_status",
)  # fmt: skip
SANDBOX_DENY = ("browser", "canvas", "nodes", "cron", "gateway", *CHANNELS)
SUBAGENT_DENY = (
    "gateway", "agents_list", "whatsapp_login", "session_status", "cron", "memory_search",
    "memory_get", "sessions_send",
)  # fmt: skip
LEAF_DENY = ("sessions_list", "sessions_history", "sessions_spawn")
"""Also denied to a sub-agent that may have none of its own."""

PATCH_PROVIDERS = frozenset({"openai", "openai-codex"})
"""Providers whose models write the patch format well (gateway digest §5.12)."""


class Circumstances(Struct, frozen=True):
    """What the policy depends on besides the settings."""

    agent_id: str
    provider: str = ""
    model: str = ""
    owner: bool = True
    sandboxed: bool = False
    depth: int = 0
    """0 for a conversation, 1 for a sub-agent's, and so on."""
    group: GroupRules | None = None


def steps_of(settings: Settings, there: Circumstances) -> tuple[Step, ...]:
    """All steps that apply, in order; a scope without lists is no step."""
    return tuple(_steps(settings, there))


def agent_tools(settings: Settings, agent_id: str) -> tuple[str, AgentTools] | None:
    """Place and tool settings of an agent that is listed."""
    wanted = normalise_agent_id(agent_id)
    for entry in settings.agents.list:
        if normalise_agent_id(entry.id) == wanted:
            return f"agents.list[{entry.id}].tools", entry.tools
    return None


def _steps(settings: Settings, there: Circumstances) -> Iterator[Step]:
    tools = settings.tools
    found = agent_tools(settings, there.agent_id)
    where, own = found if found is not None else ("", None)
    gate = _patch_gate(settings, there)
    if gate is not None:
        yield gate
    shared = ("tools.byProvider", _provider_entry(tools.by_provider, there))
    special = (f"{where}.byProvider", _provider_entry(own.by_provider, there) if own else None)
    yield from _profile("profile", ("tools", tools), (where, own))
    yield from _profile("provider profile", _placed(shared), _placed(special))
    yield from _lists("global", "tools", tools)
    yield from _lists("global provider", *_placed(shared))
    yield from _lists("agent", where, own)
    yield from _lists("agent provider", *_placed(special))
    if there.group is not None:
        group = there.group
        yield Step("group", group.source, with_extra(group.allow, group.also_allow), group.deny)
    if there.sandboxed:
        yield _sandbox(tools.sandbox.tools, own.sandbox.tools if own else None, where)
    if there.depth > 0:
        leaf = there.depth >= settings.agents.defaults.subagents.max_spawn_depth
        yield _subagent(tools.subagents.tools, leaf=leaf)


_Entry = tuple[str, "PolicySettings"] | None


def _provider_entry(table: Mapping[str, PolicySettings], there: Circumstances) -> _Entry:
    """The entry of `provider/model`, else of the provider; keys in any case."""
    provider, model = there.provider.strip().lower(), there.model.strip().lower()
    plain = {key.strip().lower(): key for key in table}
    for wanted in (f"{provider}/{model}", model if "/" in model else "", provider):
        if wanted and wanted in plain:
            key = plain[wanted]
            return key, table[key]
    return None


def _placed(found: tuple[str, _Entry]) -> tuple[str, PolicySettings | None]:
    place, entry = found
    return (place, None) if entry is None else (f"{place}[{entry[0]}]", entry[1])


def _profile(
    name: str,
    shared: tuple[str, PolicySettings | None],
    own: tuple[str, PolicySettings | None],
) -> Iterator[Step]:
    """The agent's profile, else the shared one, with the extras of the nearer scope."""
    chosen = next(((w, p.profile) for w, p in (own, shared) if p is not None and p.profile), None)
    if chosen is None:
        return
    place, profile = chosen
    allow = profile_tools(str(profile))
    if not allow:
        return
    extras = next((p.also_allow for _, p in (own, shared) if p is not None and p.also_allow), ())
    yield Step(name, f"{place}.profile={profile}", (*allow, *(extras or ())))


def _lists(name: str, source: str, lists: ToolLists | None) -> Iterator[Step]:
    if lists is None:
        return
    allow, deny = with_extra(lists.allow, lists.also_allow), lists.deny or ()
    if allow or deny:
        yield Step(name, source, allow, deny)


def with_extra(allow: tuple[str, ...] | None, extra: tuple[str, ...] | None) -> tuple[str, ...]:
    """Allow list with its additions; additions alone mean everything and them."""
    if not extra:
        return allow or ()
    return (*(allow or ("*",)), *extra)


def _sandbox(shared: ToolLists, own: ToolLists | None, where: str) -> Step:
    sources = [(f"{where}.sandbox.tools", own), ("tools.sandbox.tools", shared)]
    given = [(place, lists) for place, lists in sources if lists is not None]
    allow = next((lists.allow for _, lists in given if lists.allow is not None), None)
    deny = next((lists.deny for _, lists in given if lists.deny is not None), None)
    extra = next((lists.also_allow for _, lists in given if lists.also_allow is not None), None)
    stated = any(lists.allow or lists.deny or lists.also_allow for _, lists in given)
    source = next(
        (place for place, lists in given if lists.allow or lists.deny or lists.also_allow),
        "tools.sandbox.tools",
    )
    base = SANDBOX_ALLOW if allow is None else allow
    # What somebody adds on purpose is not taken away by a default.
    wanted = {normal(name) for name in (*(allow or ()), *(extra or ()))}
    denied = deny if deny is not None else tuple(n for n in SANDBOX_DENY if n not in wanted)
    return Step(
        "sandbox", source if stated else f"{source} (defaults)",
        (*base, *(extra or ())) if base else (), denied, lenient=False,
    )  # fmt: skip


def _subagent(lists: ToolLists, *, leaf: bool) -> Step:
    lifted = {normal(name) for name in (*(lists.allow or ()), *(lists.also_allow or ()))}
    base = (*SUBAGENT_DENY, *(LEAF_DENY if leaf else ()))
    deny = (*(name for name in base if name not in lifted), *(lists.deny or ()))
    allow = lists.allow or ()
    if allow:
        allow = (*allow, *(lists.also_allow or ()))
    return Step("subagent", "tools.subagents.tools", allow, deny, lenient=False)


def _patch_gate(settings: Settings, there: Circumstances) -> Step | None:
    """`apply_patch` has a switch of its own, and is for models that know its format."""
    patch = settings.tools.exec.apply_patch
    source = "tools.exec.applyPatch"
    if not patch.enabled:
        why = "tools.exec.applyPatch.enabled is not set"
    elif there.provider.strip().lower() not in PATCH_PROVIDERS:
        why = f"it is for models of OpenAI, not of {there.provider or 'an unknown provider'}"
    elif not _model_listed(patch.allow_models, there):
        why = f"tools.exec.applyPatch.allowModels does not name {there.model}"
    else:
        return None
    return Step("switch", source, shut=(("apply_patch", why),))


def _model_listed(listed: tuple[str, ...], there: Circumstances) -> bool:
    names = {name.strip().lower() for name in listed if name.strip()}
    model = there.model.strip().lower()
    return not names or model in names or f"{there.provider.strip().lower()}/{model}" in names
