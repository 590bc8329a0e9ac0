"""What a configuration has spent per record and per person, and what that covers. Every result carries one of these."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from statistics import median_high
from typing import Any

from sensorsim.accounting.composition import Covers, Spent, Use
from sensorsim.training.config import Config

REPRODUCIBLE = "nothing: the noise was drawn from a seed, so it is reproducible, so not private"
PRIVATE_MAXIMA = "nothing: columns were divided by private maxima"
CLEAN_RELEASE = (
    "; as printed, it is the clean record that is released, though the sensor delivers one with the environment's noise"
)

PUBLIC_PERSONS = "; whose a record is, and how many a person has, is taken as public"
PUBLIC_GAPS = ", and so is which rows have an empty cell: they were left out"


@dataclass(frozen=True)
class Statement:
    """Epsilon and delta of one record, and of all records of one person, against their replacement by any others."""

    nominal_epsilon: float | None
    spent_epsilon: float | None  # None: no bound
    delta: float
    covers: str
    covers_short: str
    reproducible: bool  # drawn from a seed: the epsilon is that of the same run with secret noise
    with_secret_noise: str  # what that would cover, in short
    trust: str  # `local`: raw records stay on the body; `central`: the hospital reads them; `none`: and adds no noise
    settings: str  # `tuned`, `as printed` or `given`
    why: str  # how the epsilon comes about
    epsilon_person_median: float | None = None  # of the person with the median number of training records
    epsilon_person_most: float | None = None  # and of the one with the most
    records_per_person_median: int | None = None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def statement(
    config: Config,
    n: int,
    normalise: str = "ranges",
    records_per_person: Sequence[int] | Any = (),
    dropped: int = 0,
) -> Statement:
    """The statement of a checked configuration that is trained from data.

    `records_per_person` are the training records of every person; `dropped`, the rows left out for a missing cell.
    """
    mechanism = config.object
    use = mechanism.use_of(config, n)
    found = mechanism.spend(use)
    bounded = math.isfinite(found.epsilon) and normalise != "max"
    would = found.covers if bounded else Covers.NOTHING
    seeded = config.seed is not None
    plain = Statement(
        nominal_epsilon=config.epsilon,
        spent_epsilon=found.epsilon if bounded else None,
        delta=found.delta,
        covers=_covers(config, found, normalise, dropped),
        covers_short=(Covers.NOTHING if seeded else would).value,
        reproducible=seeded,
        with_secret_noise=would.value,
        trust=mechanism.trust,
        settings=config.settings,
        why=found.why,
    )
    return replace(plain, **_of_persons(config, use, sorted(map(int, records_per_person)), bounded))


def _covers(config: Config, found: Spent, normalise: str, dropped: int) -> str:
    """In full, with what takes the epsilon away."""
    if not config.object.private:
        return found.covers.sentence
    if not math.isfinite(found.epsilon):
        return f"{Covers.NOTHING.sentence}: {found.why}"
    if normalise == "max":
        return PRIVATE_MAXIMA
    covers = found.covers.sentence
    if config.sampling == "poisson":
        covers += f"; {found.why}"
    if config.object.releases and config.sigma and config.release_sees == "clean":
        covers += CLEAN_RELEASE
    covers += PUBLIC_PERSONS + (PUBLIC_GAPS if dropped else "")  # users and who is held out follow from these
    return f"{REPRODUCIBLE}. With secret noise: {covers}" if config.seed is not None else covers


def _of_persons(config: Config, use: Use, records: list[int], bounded: bool) -> dict[str, Any]:
    """What persons spend. Epsilon grows with a person's records, so the median person's is that of the median count."""
    if not records:
        return {}
    middle, most = median_high(records), records[-1]
    asked = {middle, most} if bounded else set()
    spent = {many: config.object.spend(replace(use, records=many)).epsilon for many in asked}
    kept = {many: epsilon for many, epsilon in spent.items() if math.isfinite(epsilon)}
    return {
        "epsilon_person_median": kept.get(middle),
        "epsilon_person_most": kept.get(most),
        "records_per_person_median": middle,
    }
