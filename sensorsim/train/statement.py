"""What a configuration has spent per record, and what that covers. Every result carries one of these."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from sensorsim.privacy.spending import Covers
from sensorsim.train.config import Config

REPRODUCIBLE = "nothing: the noise was drawn from a seed, so it is reproducible, so not private"


@dataclass(frozen=True)
class Statement:
    """Epsilon and delta of one record, against its replacement by any other."""

    nominal_epsilon: float | None
    spent_epsilon: float | None  # None: no bound
    delta: float
    covers: str
    covers_short: str
    reproducible: bool  # drawn from a seed: the epsilon is that of the same run with secret noise
    with_secret_noise: str  # what that would cover, in short

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def statement(config: Config, n: int, normalise: str = "max") -> Statement:
    """The statement of a checked configuration."""
    mechanism = config.object
    found = mechanism.spend(mechanism.use_of(config, n))
    bounded = math.isfinite(found.epsilon)
    covers = found.covers.sentence
    would = found.covers if bounded else Covers.NOTHING
    if mechanism.private and not bounded:
        covers = f"{would.sentence}: {found.why}"
    if normalise == "max" and bounded:
        covers += "; not the column maxima that the data were divided by"
    seeded = config.seed is not None
    if seeded and bounded:
        covers = f"{REPRODUCIBLE}. With secret noise: {covers}"
    epsilon = found.epsilon if bounded else None
    holds = Covers.NOTHING if seeded else would
    return Statement(config.epsilon, epsilon, found.delta, covers, holds.value, seeded, would.value)
