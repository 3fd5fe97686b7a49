"""Which earlier commands a rule would have let through: what "always" would have meant so far.

Pure, over the questions that were asked; it looks at what each part resolved to at that time.
"""

from __future__ import annotations

from claw_engine.approvals.model import ApprovalAsk


def matched_by(ask: ApprovalAsk, patterns: tuple[str, ...]) -> bool:
    """Whether rules for `patterns` (real paths, or the words of a rule for exact arguments), with
    those that already held, cover `ask`."""
    if not ask.segments or ask.redirections:
        return False
    offered = bool(ask.always.patterns)  # it was plain enough to be offered
    return offered and all(
        segment.rule is not None
        or segment.resolved in patterns
        or _exactly(ask, segment.resolved, patterns)
        for segment in ask.segments
    )


def _exactly(ask: ApprovalAsk, resolved: str | None, patterns: tuple[str, ...]) -> bool:
    """Whether all that was offered for this program, with its arguments, is among `patterns`."""
    labels = [label for label, (real, _) in ask.always.arguments.items() if real == resolved]
    return bool(labels) and all(label in patterns for label in labels)
