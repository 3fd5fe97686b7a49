"""Which earlier commands a rule would have let through: what "always" would have meant so far.

Pure, over the questions that were asked; it looks at what each part resolved to at that time.
"""

from __future__ import annotations

from claw_engine.approvals.model import ApprovalAsk


def matched_by(ask: ApprovalAsk, patterns: tuple[str, ...]) -> bool:
    """Whether rules for `patterns` (real paths), with those that already held, cover `ask`."""
    if not ask.segments or ask.redirections:
        return False
    offered = bool(ask.always.patterns)  # it was plain enough to be offered
    return offered and all(
        segment.rule is not None or segment.resolved in patterns for segment in ask.segments
    )
