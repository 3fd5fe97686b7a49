"""Which model is meant, and the object that speaks to it.

Configuration first, then the environment; the rehearsal model only when neither names anything. A
model that is named but cannot be used is an error, never a rehearsal. Knows no agent.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from claw_engine.models import openai, resolve
from claw_engine.models.base import Model, ModelConfigError, ModelRef
from claw_engine.models.codecs.openai_chat import TurnMemos
from claw_engine.models.openai import OpenAIChatModel
from claw_engine.models.rehearsal import API as REHEARSAL_API
from claw_engine.models.rehearsal import REHEARSAL, RehearsalModel
from claw_engine.models.rules import LearnedRule, RuleBook
from claw_engine.models.transport import Transport
from claw_engine.net.http import HttpTimeouts
from claw_engine.world import World

if TYPE_CHECKING:
    from claw_engine.config.settings import Settings


class Models:
    """All models of one engine. Shares HTTP clients and learned rules; `aclose` at the end."""

    def __init__(self, world: World, *, timeouts: HttpTimeouts | None = None) -> None:
        self._world = world
        self._transport = Transport(world.clock, timeouts)
        self._rules = RuleBook()
        self._memos = TurnMemos()
        self._default: tuple[Settings, ModelRef] | None = None

    def resolve(self, settings: Settings) -> ModelRef:
        """The default model. Raises ModelConfigError when the named one cannot be used."""
        known = self._default
        if known is None or known[0] is not settings:
            known = self._default = (settings, resolve.default_model(settings))
        return known[1]

    def named(self, settings: Settings, name: str) -> ModelRef:
        """The model `provider/id`. Raises ModelConfigError when it cannot be used."""
        return resolve.named_model(settings, name)

    def model(self, ref: ModelRef) -> Model:
        """The object that encodes for and streams from `ref`. Raises ModelConfigError."""
        match ref.api:
            case openai.API:
                resolve.require_web_address(ref.base_url or "", ref.provider)
                return OpenAIChatModel(ref, self._world, self._transport, self._rules, self._memos)
            case api if api == REHEARSAL_API:
                return RehearsalModel(self._world.clock, ref, self._memos)
            case _:
                raise resolve.unspoken_api(ref.provider, ref.api)

    def list(self, settings: Settings) -> list[ModelRef]:
        """Every usable model: the default first, those of the configuration, the rehearsal."""
        refs: list[ModelRef] = []
        with contextlib.suppress(ModelConfigError):  # a list shows what can be used
            refs.append(self.resolve(settings))
        refs += resolve.configured_models(settings)
        refs.append(REHEARSAL)
        return list({ref.name: ref for ref in reversed(refs)}.values())[::-1]

    def learned_rules(self) -> tuple[LearnedRule, ...]:
        """What providers' refusals taught us since start, oldest first."""
        return self._rules.learned()

    async def warm_up(self, ref: ModelRef) -> None:
        """Load what the first call needs ahead of it, off the loop. Never raises."""
        if ref.api == openai.API and ref.base_url:
            with contextlib.suppress(Exception):  # the first call says what is wrong
                await self._transport.warm_up(ref.base_url)

    async def aclose(self) -> None:
        """Close all connections."""
        await asyncio.shield(self._transport.aclose())
