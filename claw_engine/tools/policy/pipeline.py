"""Which tools a run has: every step can only take tools away, and says by which entry. Pure.

Order and meaning of the steps: gateway digest §6.2. A list denies first; an empty or missing allow
list allows all; `apply_patch` goes with `exec`. Knows no settings and no run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from claw_engine.tools.policy.names import OWNER_ONLY, Present, Vocabulary, matches, normal

OWNER_RULE = "only the owner may use it"


class Step(Struct, frozen=True):
    """One scope's lists. `source` is the place in the configuration.

    `allow` empty = everything. `lenient`: an allow list that names no tool of our own is left out,
    so that a list of plugin names does not take all others away. `shut` names tools that this
    step takes away for a reason of its own, in words.
    """

    name: str
    source: str
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    lenient: bool = True
    shut: tuple[tuple[str, str], ...] = ()


class Verdict(Struct, frozen=True):
    """What became of one tool; `step`, `source` and `rule` say what took it away ("" = nothing)."""

    tool: str
    allowed: bool
    step: str = ""
    source: str = ""
    rule: str = ""

    def sentence(self) -> str:
        """For the model and the operator, naming the rule."""
        if self.allowed:
            return f"The tool {self.tool} is available."
        return (
            f"The tool {self.tool} is not available here: {self.rule} "
            f"({self.step} step, {self.source})."
        )


class Doubt(Struct, frozen=True):
    """An entry that does not do what its writer hoped."""

    source: str
    entry: str
    text: str


def decide(tool: Present, steps: Iterable[Step], words: Vocabulary, *, owner: bool) -> Verdict:
    """The verdict for one tool: the first step that takes it away decides."""
    name = normal(tool.name)
    for step in steps:
        rule = refuses(step, name, words)
        if rule is not None:
            return Verdict(tool.name, False, step.name, step.source, rule)
    if not owner and (tool.owner_only or name in OWNER_ONLY):
        return Verdict(tool.name, False, "owner", "owner-only tools", OWNER_RULE)
    return Verdict(tool.name, True)


def verdicts(steps: Sequence[Step], words: Vocabulary, *, owner: bool) -> tuple[Verdict, ...]:
    """One verdict for each tool that exists, in their order."""
    return tuple(decide(tool, steps, words, owner=owner) for tool in words.present)


def refuses(step: Step, name: str, words: Vocabulary) -> str | None:
    """Why this step takes a tool away, or None; `name` is normal."""
    for shut, why in step.shut:
        if shut == name:
            return why
    for entry in step.deny:
        if _hits(entry, name, words):
            return f"deny has {entry!r}"
    allow = effective_allow(step, words)
    if not allow or any(_hits(entry, name, words) for entry in allow):
        return None
    if name == "apply_patch" and any(_hits(entry, "exec", words) for entry in allow):
        return None
    return f"allow ({', '.join(allow[:6])}{', …' if len(allow) > 6 else ''}) does not name it"


def effective_allow(step: Step, words: Vocabulary) -> tuple[str, ...]:
    """The allow list that counts: none when a lenient step's names no tool of our own."""
    if step.lenient and not any(words.means_core(entry) for entry in step.allow):
        return ()
    return step.allow


def _hits(entry: str, name: str, words: Vocabulary) -> bool:
    return any(matches(pattern, name) for pattern in words.expand(entry))


def doubts(steps: Iterable[Step], words: Vocabulary) -> tuple[Doubt, ...]:
    """Entries without an effect, and allow lists that are left out. For the operator."""
    found: list[Doubt] = []
    for step in steps:
        for entry in (*step.allow, *step.deny):
            text = _doubt(entry, words)
            if text is not None:
                found.append(Doubt(step.source, entry, text))
        if step.allow and not effective_allow(step, words):
            text = "the allow list names none of the engine's own tools, so it is not applied"
            found.append(Doubt(step.source, ", ".join(step.allow), text))
    return tuple(dict.fromkeys(found))


def _doubt(entry: str, words: Vocabulary) -> str | None:
    name = normal(entry)
    if words.known(name):
        return None
    if name.startswith("group:"):
        return "there is no such group of tools"
    if ":" in name or " " in name or "/" in name:
        return (
            "lists name tools, not commands, so this entry does nothing: rules about commands "
            "belong in exec-approvals.json"
        )
    from difflib import get_close_matches  # only for a mistake

    near = get_close_matches(name, sorted(words.core()), n=1, cutoff=0.7)
    guess = f"; did you mean {near[0]}?" if near else ""
    return f"no tool has this name here{guess}"
