"""Estimates drawn to what each model's provider counts: measured / estimated of finished calls.

The median of the last few, so that one odd call moves nothing; bounded, and moved only when it
has really changed, so that what was worked out from it stays good. Kept in a small file.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from claw_engine.world import World

log = logging.getLogger("claw.usage")

LEAST, MOST = 0.5, 2.0
"""Bounds of a ratio: beyond them something else is wrong than our estimate."""
SAMPLES = 15
ENOUGH = 200
"""Estimated tokens under which a call says nothing about the ratio."""
CHANGE = 0.02
"""A smaller change of the ratio is not made."""
MODELS = 200
"""Models that are remembered."""


class Calibration:
    """Ratios by model name; `load` once, before they count. Loop thread only."""

    def __init__(self, world: World, path: Path) -> None:
        self._world = world
        self._path = path
        self._samples: dict[str, deque[float]] = {}
        self._ratios: dict[str, float] = {}
        self.loaded = False
        """Whether what earlier engines learnt is here."""

    def ratio(self, model: str) -> float:
        """By what an estimate for this model is multiplied; 1.0 until it was measured."""
        return self._ratios.get(model, 1.0)

    @property
    def ratios(self) -> Mapping[str, float]:
        """All that were measured."""
        return dict(self._ratios)

    def measured(self, model: str) -> bool:
        """Whether the ratio comes from this model's own calls."""
        return model in self._ratios

    def learn(self, model: str, estimated: int, counted: int) -> bool:
        """A finished call's input, estimated by us (ratio left out) and counted by its provider;
        whether the ratio moved."""
        if estimated < ENOUGH or counted <= 0:
            return False
        samples = self._samples.setdefault(model, deque(maxlen=SAMPLES))
        samples.append(min(MOST, max(LEAST, counted / estimated)))
        new = round(_median(samples), 3)
        old = self._ratios.get(model)
        if old is not None and abs(new / old - 1) < CHANGE:
            return False
        self._ratios[model] = new
        return True

    async def load(self) -> None:
        """Read what an earlier engine learnt. Never raises: a damaged file is learnt anew."""
        kept = await self._world.disk.run(self._read)
        self.loaded = True
        for model, samples in kept.items():
            known = [value for value in samples[-SAMPLES:] if LEAST <= value <= MOST]
            if known and model not in self._samples:
                self._samples[model] = deque(known, maxlen=SAMPLES)
                self._ratios[model] = round(_median(known), 3)

    async def save(self) -> None:
        """Write it down. Never raises."""
        names = sorted(self._samples, key=lambda name: name not in self._ratios)[-MODELS:]
        kept = {name: [round(v, 4) for v in self._samples[name]] for name in names}
        await self._world.disk.run(self._write, msgspec.json.encode(kept))

    def _read(self) -> Mapping[str, list[float]]:
        try:
            return msgspec.json.decode(
                self._world.disk.read_bytes(self._path), type=dict[str, list[float]]
            )
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError) as error:
            log.warning("%s is not read, token estimates start anew: %s", self._path, error)
            return {}

    def _write(self, data: bytes) -> None:
        try:
            self._world.disk.mkdir(self._path.parent)
            self._world.disk.replace(self._path, data)
        except OSError as error:
            log.warning("%s is not written: %s", self._path, error)


def _median(values: Iterable[float]) -> float:
    """Of an even number the upper one; the statistics module is no part of a start."""
    ordered = sorted(values)
    return ordered[len(ordered) // 2]
