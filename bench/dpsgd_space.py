"""What bench/search_dpsgd.py chooses from: settings by chance, and the neighbourhood of one."""

from __future__ import annotations

import math
import random
from typing import NamedTuple

EPOCHS = (1, 2, 3, 5, 10, 30, 100, 300, 1000)
DRAWN_EPOCHS = EPOCHS[:-1]  # by chance; a thousand only from the best of 300
SHARES = (1.0, 0.25)  # of a user's records in a batch
BOUNDS = (0.01, 0.03, 0.1, 0.3, 1.0)  # C, by chance
FARTHEST = (0.003, 100.0)  # how far plain descent may walk: rate times C times epochs. Adam: a tenth, without C
FACTORS = (3.0, 2.0, 1.4)  # by which numbers go up and down: coarse, then fine


class Setting(NamedTuple):
    """A row of the table."""

    batch_share: float
    lr: float
    C: float
    epochs: int
    optimiser: str
    start: str
    schedule: str
    loss: str


STAY = Setting(1.0, 1e-6, 0.01, 1, "sgd", "data-free", "constant", "cross-entropy")


def by_chance(chance: random.Random, mechanism: str) -> Setting:
    """Any setting that walks neither nowhere nor without end."""
    optimiser, epochs, C = chance.choice(("adam", "sgd")), chance.choice(DRAWN_EPOCHS), chance.choice(BOUNDS)
    low, high = map(math.log, FARTHEST)
    far = math.exp(chance.uniform(low, high))
    return Setting(
        chance.choice(SHARES),
        rounded(far / (10 * epochs) if optimiser == "adam" else far / (C * epochs)),
        C,
        epochs,
        optimiser,
        chance.choice(("data-free", "data-free", "random")),
        chance.choice(("constant", "linear")),
        chance.choice(("cross-entropy", "squared")) if mechanism == "dpsgd-weights" else "cross-entropy",
    )


def neighbours(one: Setting, factor: float, mechanism: str) -> list[Setting]:
    """Every number up and down, some together so that the way stays as long, and every choice the other way."""
    place = min(range(len(EPOCHS)), key=lambda place: abs(math.log(EPOCHS[place] / one.epochs)))
    fewer, more = EPOCHS[max(place - 1, 0)], EPOCHS[min(place + 1, len(EPOCHS) - 1)]
    changes: list[dict[str, object]] = [
        {"lr": rounded(one.lr * factor)},
        {"lr": rounded(one.lr / factor)},
        {"C": rounded(one.C * factor)},
        {"C": rounded(one.C / factor)},
        {"C": rounded(one.C * factor), "lr": rounded(one.lr / factor)},
        {"C": rounded(one.C / factor), "lr": rounded(one.lr * factor)},
        {"schedule": other(one.schedule, "constant", "linear")},
        *({"epochs": epochs} for epochs in (fewer, more)),
        *({"epochs": epochs, "lr": rounded(one.lr * one.epochs / epochs)} for epochs in (fewer, more)),
    ]
    if factor == FACTORS[0]:
        changes += [
            {"start": other(one.start, "random", "data-free")},
            {"batch_share": SHARES[1] if one.batch_share == SHARES[0] else SHARES[0]},
        ]
        if mechanism == "dpsgd-weights":
            changes.append({"loss": other(one.loss, "cross-entropy", "squared")})
    return [one._replace(**change) for change in changes]  # type: ignore[arg-type]


def other(now: str, first: str, second: str) -> str:
    return second if now == first else first


def rounded(number: float) -> float:
    return float(f"{number:.2g}")
