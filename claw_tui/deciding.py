"""What the operator decides about requests, and the small pages that lead there. Every decision
has passed the arming rule before it gets here, or passes it on one of these pages."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING

from claw_tui.store.store import Pane
from claw_tui.store.wire import Json, obj, text
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
        match message.verb:
            case "later":
                await self.action_view("1")
            case "allow":
                self.go(lambda: self.resolve(message.card, "allow-once"))
            case "deny":
                self.go(lambda: self.resolve(message.card, "deny"))
            case "reason":
                self._deny_with_reason(message.card)
            case "always":
                self._always_page(message.card)
            case "batch":
                self._batch_page()
            case "undo":
                self.go(lambda: self.take_back(message.card))
            case _:
                self._queue_filter()

    async def resolve(self, card: str, decision: str, reason: str = "") -> None:
        params = {"id": card, "decision": decision}
        if reason:
            params["reason"] = reason
        answer = await self.link.call("exec.approval.resolve", params)
        if answer is None:
            self.keeper.again()
        else:
            self.store.queue.resolved(_decided(answer, card, decision, reason))
        self.store.mark(*Pane)

    async def take_back(self, rule_id: str) -> None:
        """Remove a standing rule, and say which one it was."""
        answer = await self.link.call("exec.approvals.remove", {"id": rule_id})
        if answer is not None:
            rule = obj(answer.get("rule"))
            self.store.notice(
                "info",
                f"rule removed: {text(rule, 'pattern')}",
                hint=f"agent {text(rule, 'agentId', 'main')} is asked again",
            )
        left = await self.link.call("exec.approvals.rules")
        if left is not None:
            self.store.set_rules(left)

    def _deny_with_reason(self, card: str) -> None:
        from claw_tui.screens.ask import Prompt

        def done(reason: str | None) -> None:
            if reason is None:
                self.keeper.again()
                self.store.mark(*Pane)
            else:
                self.go(lambda: self.resolve(card, "deny", reason.strip()))

        self.push_screen(
            Prompt(
                "Deny, because…  (the model reads this)",
                hint="enter deny · esc back",
                needed="write a reason, or esc and n to deny",
            ),
            done,
        )

    def _always_page(self, card_id: str) -> None:
        from claw_tui.screens.ask import ArmedPage
        from claw_tui.widgets.cardpaint import always_lines

        card = self.store.queue.pending.get(card_id)
        if card is None or card.always.refusal:
            return

        def done(yes: bool | None) -> None:
            if yes:
                self.go(lambda: self.resolve(card_id, "allow-always"))

        self.push_screen(
            ArmedPage(
                f"always:{card_id}",
                "Allow always?",
                lambda width: always_lines(card, width, self.ink),
            ),
            done,
        )

    def _batch_page(self) -> None:
        from claw_tui.screens.ask import ArmedPage
        from claw_tui.widgets.cardpaint import batch_lines

        queue = self.store.queue
        cards = [card for card in queue.ordered() if card.id in queue.marked]

        def done(yes: bool | None) -> None:
            for card in cards if yes else ():
                if card.id in queue.pending:
                    self.go(partial(self.resolve, card.id, "allow-once"))

        subject = "batch:" + ",".join(card.id for card in cards)
        self.push_screen(
            ArmedPage(
                subject,
                f"{len(cards)} marked requests",
                lambda width: batch_lines(cards, width, self.ink),
            ),
            done,
        )

    def _queue_filter(self) -> None:
        from claw_tui.screens.approvals import ApprovalsScreen

        page = self.page
        if isinstance(page, ApprovalsScreen):
            self.prompt_filter(page.needle, page.filter)


def _decided(answer: Json, card: str, decision: str, reason: str) -> Json:
    """The record of the answer, or what we know of it from a gateway that returns none."""
    record = answer.get("record")
    if isinstance(record, dict):
        return record
    return {"id": card, "decision": decision, "reason": reason, "resolvedBy": "you"}
