"""`claw usage`: what calls to models cost, by day, session, model or cause; where budgets stand."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING

from claw_engine.cli.attach import client
from claw_engine.cli.output import one_line, say, say_json
from claw_engine.cli.status import items, number, part

if TYPE_CHECKING:
    from claw_engine.client.sync import SyncClient

Json = Mapping[str, object]


def run(args: Namespace) -> int:
    params: dict[str, object] = {"by": args.by, "days": args.days}
    session = args.session or "main"  # the one whose budget is shown
    if args.session:
        params["sessionKey"] = session
    with client(args) as engine:
        found = engine.call("usage.totals", params)
        status = engine.call("usage.status", {"sessionKey": session})
        rehearsed = "" if number(part(found, "totals"), "calls") else _rehearsal(engine)
    budgets = items(status, "budgets")
    if args.json:
        say_json({**found, "budgets": budgets})
        return 0
    _show(found, args.by, rehearsed)
    for budget in budgets:
        whose = f"session {session}" if budget.get("scope") == "session" else "day"
        say(f"budget of the {whose}: {budget.get('text')}, "
            f"then {budget.get('action')} ({budget.get('setting')})")  # fmt: skip
    return 0


def _rehearsal(engine: SyncClient) -> str:
    """The name of the default model if it is the rehearsal one, whose calls nobody counts."""
    status = engine.hello.get("snapshot")
    if not isinstance(status, dict) or "model" not in status:
        status = engine.call("status")
    model = part(status, "model")
    return str(model.get("name")) if model.get("isAI") is False else ""


def _show(found: Json, by: str, rehearsed: str) -> None:
    rows = items(found, "rows")
    if by == "day":
        rows = [row for row in rows if number(row, "calls")]
    say(f"{found.get('startDate')} to {found.get('endDate')}, by {by}")
    if not rows and rehearsed:
        say(f"No call is counted: calls of the rehearsal model ({rehearsed}) cost nothing.")
    elif not rows:
        say("No call to a model was made.")
    else:
        _table([*rows, {**part(found, "totals"), "name": "all"}], by)
        _doubts(part(found, "totals"))


def _table(rows: list[Json], by: str) -> None:
    names = [one_line(str(row.get("name")), 44) for row in rows]
    width = max(len(by), *map(len, names))
    say(f"{by:<{width}}  {'calls':>7}  {'input':>13}  {'cached':>13}  {'output':>11}  {'cost':>11}")
    for name, row in zip(names, rows, strict=True):
        taken = number(row, "input") + number(row, "cacheRead") + number(row, "cacheWrite")
        mark = "~" if number(row, "estimatedCalls") else ""
        say(
            f"{name:<{width}}  {number(row, 'calls'):>7,}  {mark + format(taken, ','):>13}  "
            f"{number(row, 'cacheRead'):>13,}  {mark + format(number(row, 'output'), ','):>11}  "
            f"{_money(row):>11}"
        )


def _money(row: Json) -> str:
    """A dash where no price is known, a `>` where some are not."""
    unknown, calls = number(row, "missingCostEntries"), number(row, "calls")
    if calls and unknown == calls:
        return "-"
    cost = row.get("totalCost")
    amount = float(cost) if isinstance(cost, int | float) else 0.0
    return f"{'>' if unknown else ''}${amount:.4f}" if amount < 1 else (
        f"{'>' if unknown else ''}${amount:,.2f}"
    )  # fmt: skip


def _doubts(totals: Json) -> None:
    estimated, unknown = number(totals, "estimatedCalls"), number(totals, "missingCostEntries")
    if estimated:
        say(f"~ {estimated:,} of the calls were not counted by their provider: tokens estimated.")
    if unknown:
        say(f"- {unknown:,} have no known price: see models.providers.ID.models[].cost.")
