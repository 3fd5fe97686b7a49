"""What the operator decides about requests, and the small pages that lead there. Every decision
has passed the arming rule before it gets here, or passes it on one of these pages."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING

from claw_tui.store.rules import rules_from
from claw_tui.store.sanitize import line
from claw_tui.store.store import Pane
from claw_tui.store.wire import Json, flag, obj, objs, text
from claw_tui.terminal.display import PaintingApp

if TYPE_CHECKING:
    from claw_tui.armed import Gatekeeper
    from claw_tui.link import LinkTask
    from claw_tui.screens.approvals import ApprovalsScreen
    from claw_tui.screens.page import Page
    from claw_tui.store.store import Store
    from claw_tui.widgets.host import UiClock
    from claw_tui.widgets.ink import Ink


class Deciding(PaintingApp[str]):
    store: Store
    link: LinkTask
    keeper: Gatekeeper
    clock: UiClock
    ink: Ink

    @property
    def page(self) -> Page:
        """The full-size view on top, whatever small page lies over it."""
        raise NotImplementedError

    async def action_view(self, view: str) -> None:
        """Show one of the nine views."""
        raise NotImplementedError

    def refuse(self, why: str) -> None:
        """Say why a key did nothing."""
        raise NotImplementedError

    def go(self, work: Callable[[], Coroutine[object, object, None]]) -> None:
        """Run a command beside the message loop, so that no key waits for the engine."""
        raise NotImplementedError

    def prompt_filter(self, needle: str, take: Callable[[str], None]) -> None:
        """Ask for a filter, starting with `needle`."""
        from claw_tui.screens.ask import Prompt  # lazily, like all pages here: start-up cost

        def done(typed: str | None) -> None:
            if typed is not None:
                take(typed.strip())

        self.push_screen(Prompt("Filter", needle, "! inverts · empty: all · esc back"), done)

    async def on_approvals_screen_wanted(self, message: ApprovalsScreen.Wanted) -> None:
        deciding = message.verb in ("allow", "deny", "reason", "always")
        ids = self._sealed(message.card) if deciding else []
        match message.verb:
            case "later":
                await self.action_view("1")
            case "allow":
                self.go(lambda: self.resolve(ids, {"decision": "allow-once"}))
            case "deny":
                self.go(lambda: self.resolve(ids, {"decision": "deny"}))
            case "reason":
                self._deny_with_reason(ids)
            case "always":
                self._always_page(message.card, ids)
            case "batch":
                self._batch_page()
            case "undo":
                self.go(lambda: self.take_back(message.card))
            case _:
                self._queue_filter()

    def _sealed(self, card_id: str) -> list[str]:
        """The requests on a card that is being decided; later ones open a card of their own."""
        card = self.store.queue.cards.get(card_id)
        if card is None:
            return []
        card.sealed = True
        return card.ids

    async def resolve(self, ids: Sequence[str], answer: Mapping[str, object]) -> None:
        """One answer to all requests of a card. What somebody else was faster with is said."""
        ids = [one for one in ids if one in self.store.queue.pending]
        self.store.queue.mine.update(ids)
        if len(ids) > 1 and "exec.approval.resolveMany" in self.store.engine.methods:
            params = {"ids": ids, **answer}
            found = await self.link.call("exec.approval.resolveMany", params)
            rows = objs(found.get("results")) if found is not None else []
        else:
            rows = []
            for one in ids:
                found = await self.link.call("exec.approval.resolve", {"id": one, **answer})
                if found is not None:
                    rows.append({"id": one, "ok": True, **found})
        for row in rows:
            if flag(row, "ok"):
                self.store.queue.resolved(_decided(row, text(row, "id"), answer))
            else:
                problem = text(obj(row.get("error")), "message")
                self.store.notice("error", f"exec.approval.resolve: {problem}")
        left = set(ids) - {text(row, "id") for row in rows if flag(row, "ok")}
        self.store.queue.mine -= left
        newest = self.store.notices[-1] if self.store.notices else None
        if left and newest is not None and newest.level == "error":
            self.refuse(newest.title)  # the queue has no toast line, and the card still stands
        if left or not ids:
            self.keeper.again()
        self.store.mark(*Pane)

    async def take_back(self, rule_id: str) -> None:
        """Remove a standing rule, and say which one it was."""
        answer = await self.link.call("exec.approvals.remove", {"id": rule_id})
        if answer is not None:
            gone = rules_from({name: [answer.get(name[:-1])] for name in ("rules", "grants")})
            for rule in gone:
                self.store.notice(
                    "info",
                    f"{'grant' if rule.grant else 'rule'} removed: {rule.label}",
                    hint=f"agent {rule.agent} is asked again",
                )
        left = await self.link.call("exec.approvals.rules")
        if left is not None:
            self.store.set_rules(left)

    def _deny_with_reason(self, ids: list[str]) -> None:
        from claw_tui.screens.ask import Prompt

        def done(reason: str | None) -> None:
            if reason is None:
                self.keeper.again()
                self.store.mark(*Pane)
            else:
                answer = {"decision": "deny", "reason": reason.strip()}
                self.go(lambda: self.resolve(ids, answer))

        self.push_screen(
            Prompt(
                "Deny, because…  (the model reads this)",
                hint="enter deny · esc back",
                needed="write a reason, or esc and n to deny",
            ),
            done,
        )

    def _always_page(self, card_id: str, ids: list[str]) -> None:
        from claw_tui.screens.choose import ChoicePage
        from claw_tui.widgets.choicepaint import grant_choices, grant_params

        card = self.store.queue.cards.get(card_id)
        if card is None:
            return
        item = card.head
        choices = grant_choices(item)
        refusal = item.always.refusal
        head = f"No rule: {line(refusal)}." if refusal and choices else ""

        def done(yes: bool | None) -> None:
            if yes:
                answer = grant_params(item, page.chosen)
                self.go(lambda: self.resolve(ids, answer))

        page = ChoicePage(f"always:{card.subject}", "Allow more than once?", choices, head=head)
        self.push_screen(page, done)

    def _batch_page(self) -> None:
        from claw_tui.screens.ask import ArmedPage
        from claw_tui.widgets.cardpaint import batch_lines

        queue = self.store.queue
        cards = [card for card in queue.ordered() if card.id in queue.marked]
        ids = [one for card in cards for one in self._sealed(card.id)]

        def done(yes: bool | None) -> None:
            if yes:
                self.go(lambda: self.resolve(ids, {"decision": "allow-once"}))

        subject = "batch:" + ",".join(ids)
        self.push_screen(
            ArmedPage(
                subject,
                f"{len(ids)} marked requests",
                lambda width: batch_lines(cards, width, self.ink),
            ),
            done,
        )

    def _queue_filter(self) -> None:
        from claw_tui.screens.approvals import ApprovalsScreen

        page = self.page
        if isinstance(page, ApprovalsScreen):
            self.prompt_filter(page.needle, page.filter)


def _decided(row: Json, card: str, answer: Mapping[str, object]) -> Json:
    """The record of the answer, or what we know of it from a gateway that returns none."""
    record = row.get("record")
    if isinstance(record, dict):
        return record
    reason = text(answer, "reason")
    return {"id": card, "decision": answer["decision"], "reason": reason, "resolvedBy": "you"}
