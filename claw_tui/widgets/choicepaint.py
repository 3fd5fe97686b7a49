"""What a page with choices shows: a line each, and below it all that the chosen one opens. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from rich.style import Style
from textual.strip import Strip

from claw_tui.store.approval import Approval, Offer
from claw_tui.store.sanitize import line, reveal, reveal_line
from claw_tui.widgets.cells import Span, clip, spans, wrap
from claw_tui.widgets.ink import Ink

SPANS = {
    "minutes": "{} min, this session",
    "session": "until this session begins anew, 12 h at most",
    "lasting": "for good, every session of this agent",
}


class Choice(Struct, frozen=True):
    """`name` is stable and goes into the arming rule's subject; `opens` is shown as it is."""

    name: str
    label: str
    words: str
    """The sentence of what it opens."""
    opens: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    danger: bool = False


def choice_lines(
    head: str, choices: Sequence[Choice], index: int, width: int, ink: Ink
) -> list[Strip]:
    """The list with its cursor, then the sentence, what it opens and its notes."""
    out = [spans([(f" {text}", ink("muted"))]) for text in wrap(head, width - 2)] if head else []
    for number, choice in enumerate(choices):
        here = number == index
        pen = ink("text", "b") if here else ink("muted")
        mark: Span = ("▌" if here else " ", ink("key"))
        out.append(spans([mark, (clip(line(choice.label), width - 2), pen)]))
    chosen = choices[index]
    out.append(spans([]))
    pen = ink("bad", "b") if chosen.danger else ink("text")
    out += [spans([(f" {text}", pen)]) for text in wrap(line(chosen.words), width - 2)]
    for text in chosen.opens:
        out += [
            spans([("   ", Style.null()), (part, ink("warn", "b"))])
            for part in wrap(reveal(text), width - 4)
        ]
    for note in chosen.notes:
        out += [spans([(f" {part}", ink("muted"))]) for part in wrap(line(note), width - 2)]
    return out


def grant_choices(card: Approval) -> list[Choice]:
    """What `w` can make of a request, the narrowest first; the rule comes last."""
    out = [_grant(card, offer) for offer in card.offers]
    if card.always.patterns:
        out.append(_rule(card))
    return out


def grant_params(card: Approval, name: str) -> dict[str, object]:
    """A choice as `exec.approval.resolve` takes it."""
    if name == "rule":
        return {"decision": "allow-always"}
    offer = next(offer for offer in card.offers if _name(offer) == name)
    grant: dict[str, object] = {"covers": offer.covers, "span": offer.span}
    if offer.minutes:
        grant["minutes"] = offer.minutes
    return {"decision": "allow-once", "grant": grant}


def _name(offer: Offer) -> str:
    return f"{offer.covers}-{offer.span}"


def _grant(card: Approval, offer: Offer) -> Choice:
    exact = offer.covers == "exact"
    what = "this command" if exact else "any arguments"
    how_long = SPANS.get(offer.span, offer.span).format(offer.minutes)
    return Choice(
        _name(offer),
        f"{what:<14} {how_long}",
        f"Without asking: {offer.words}.",
        (card.command,) if exact else card.always.opens(),
        card.always.notes if not exact else (),
    )


def _rule(card: Approval) -> Choice:
    matches = card.always.matches
    if matches:
        head = f"Of the last 100 commands this would have let {len(matches)} run:"
        seen = (head, *(f"  {clip(reveal_line(text), 100)}" for text in matches))
    else:
        seen = ("None of the last 100 commands would have matched.",)
    return Choice(
        "rule",
        f"{'a rule':<14} for good, every session of this agent",
        f"From now on these run without asking, for agent {card.agent}:",
        card.always.opens(),
        (*card.always.notes, *seen),
    )
