"""One object that says what would happen to a command and why: the card's and `explain`'s.

Reads the rules file and looks at programs; knows no engine, no broker and no configuration.
"""

from __future__ import annotations

from collections.abc import Mapping

from claw_engine.approvals.evaluate import Verdict
from claw_engine.approvals.model import always_to_wire, segments_to_wire


def to_json(verdict: Verdict) -> dict[str, object]:
    """`verdict` (allow, ask, deny), `reasons`, `segments` (argv, resolved, rule, why, risks), what
    would run (`runs`, None = the text is handed to a shell), and what "always" would store."""
    runs = verdict.enforced_argv or verdict.literal_argv
    return {
        "verdict": verdict.verdict.value,
        "reasons": list(verdict.reasons),
        "segments": segments_to_wire(verdict.segments),
        "redirections": list(verdict.redirections),
        "runs": list(runs) if runs else None,
        "always": always_to_wire(verdict.always),
    }


def lines(told: Mapping[str, object]) -> list[str]:
    """The same for a terminal; words are as they are, so the caller makes them printable."""
    out = [f"{told['verdict']}"]
    out += [f"  because {reason}" for reason in _texts(told, "reasons")]
    segments = told["segments"]
    assert isinstance(segments, list)
    for segment in segments:
        argv = " ".join(f"[{word}]" for word in segment["argv"])
        out.append(f"  {argv or segment['text']}")
        out.append(f"    program  {segment['resolved'] or 'none found'}")
        out.append(f"    rule     {segment['rule'] or 'none'} ({segment['why']})")
        out += [f"    risk     {risk}" for risk in segment["risks"]]
    out += [f"  redirects {text}" for text in _texts(told, "redirections")]
    always = told["always"]
    assert isinstance(always, dict)
    if always["patterns"]:
        out.append("  always would store " + ", ".join(always["patterns"]))
        out += [f"    {note}" for note in always["notes"]]
    else:
        out.append(f"  no always: {always['refusal']}")
    return out


def _texts(told: Mapping[str, object], key: str) -> list[str]:
    value = told[key]
    assert isinstance(value, list)
    return [str(text) for text in value]
