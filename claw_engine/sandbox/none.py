"""No confinement: the command runs as the user, with all that the user can reach."""

from __future__ import annotations

from claw_engine.sandbox.base import Plan, Route, Wrapped


class Unconfined:
    name = "none"

    def wrap(self, plan: Plan) -> Wrapped:
        return Wrapped(plan.argv, plan.env)

    def closes(self, route: Route, *, network: bool) -> bool:
        return False
