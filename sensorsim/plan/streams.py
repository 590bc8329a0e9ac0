"""Three ways to spend one budget on a period of T records, and what each of them lets others see.

    time sampling   one record of the period, by a public schedule; one release with the whole epsilon
    every record    a release for each record, each with epsilon/T
    memoised        a value is rounded to one of L public levels; the first time that a level comes up it is released
                    with the whole epsilon, and that release is sent again for as long as the level lasts (as RAPPOR's
                    permanent answers, Erlingsson, Pihur and Korolova 2014)

All are simulated through the kernels of the releases and of the schedule. Of n features each release is of one, picked
by a random word; a device that memoises picks once.

Accuracy. The people change once, in the middle of the period: x is a before and b after, both uniform in 0 … 1. What is
estimated is the mean of x over these people and records. A device adds n·(value - m) for the feature that it released,
less its own mean: the spread of that over devices, over the root of their number, is the standard error.

What shows. Somebody who sees all packets of one device, and knows the table and the schedule, says whether its person
went from x = 0 to x = 1 in the middle of the period or stayed at 0, in every feature. The likelihood ratio decides,
which nobody can better (Neyman and Pearson); the advantage is its rate of hits less its rate of false alarms. A proved
epsilon allows no more than (e^epsilon - 1)/(e^epsilon + 1).
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from decimal import ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING, Any

from sensorsim.errors import InputError
from sensorsim.noise.certificate import certify
from sensorsim.noise.noise_table import budget_of
from sensorsim.plan.streams_draws import (
    ONE,
    Setting,
    due,
    less_own,
    log_ratio,
    means,
    noise_at,
    only,
    released,
    spreads,
    symbols,
    table_of,
)

if TYPE_CHECKING:
    from sensorsim.noise.noise_table import NoiseTable

LEAST_SIMULATED, MOST_SIMULATED, MOST_CELLS = 1_000, 20_000, 1 << 21  # devices; values of all their records
MOST_OF_A_DEVICE = 1 << 15  # values of the records of a period
MOST_LEVELS = 64
ERRORS = 1.96  # standard errors on either side of an advantage: 95 %
ALL_OF_IT = "all that a device sends in a period has this epsilon, when values change included"
THE_VALUES = (
    "each level that a person comes to costs its epsilon again, and this is that of all levels, for the values alone: "
    "when they change is in the open, and no epsilon holds for that"
)
SAMPLED, EVERY, MEMOISED = "time sampling", "every record", "memoised"


@dataclass(frozen=True)
class Strategy:
    """What one way of spending the budget gives and shows; errors are shares of the range of a feature."""

    name: str
    releases: int  # that a device draws in a period, at most
    packets: int  # that it sends
    epsilon_release: float  # as certified
    epsilon_person: float  # proved of a person and period, at most
    proves: str
    standard_error: float  # of the mean of a feature over the period, measured
    standard_error_expected: float  # the same in closed form, for the people that were simulated
    rounding: float  # by how much a value may be off for good, at most
    advantage: float  # of who looks for a change, measured
    advantage_low: float
    advantage_high: float
    bound: float | None  # what the proof allows of it; None: nothing is proved of when values change

    def row(self) -> dict[str, Any]:
        return asdict(self)

    to_dict = row


def compare(
    epsilon: Decimal | float | str,
    features: int = 1,
    records: int = 30,
    devices: int = 5_000,
    levels: int = 4,
    seed: int = 1,
    table: "NoiseTable | None" = None,
) -> tuple[Strategy, ...]:
    """The three, for a budget of `epsilon` per person and period of so many records, and a fleet of so many devices.

    `table` is a rows table of the whole epsilon that releases one feature, where one is at hand.
    """
    _check(features, records, devices, levels)
    import numpy as np

    budget = budget_of(epsilon)
    share = (budget / records).quantize(Decimal("1e-9"), rounding=ROUND_FLOOR)
    whole, part = _whole(table, budget, features), table_of(share, features)
    count = min(MOST_SIMULATED, max(LEAST_SIMULATED, MOST_CELLS // (records * features)))
    a, b = np.random.default_rng(seed).integers(0, ONE + 1, (2, count, features), dtype=np.uint16)
    setting = Setting(features, records, devices, levels, seed, a, b)
    return _time_sampling(setting, whole), _every_record(setting, part), _memoised(setting, whole)


def _check(features: int, records: int, devices: int, levels: int) -> None:
    given = {"features": (features, 1), "records": (records, 2), "devices": (devices, 2), "levels": (levels, 2)}
    for name, (value, least) in given.items():
        if type(value) is not int or value < least:
            raise InputError(f"{name} is {value} for a comparison; give a whole number of {least} or more.")
    if levels > MOST_LEVELS or features * records > MOST_OF_A_DEVICE:
        raise InputError(
            f"{records} records of {features} features and {levels} levels are too many to compare; give at most "
            f"{MOST_OF_A_DEVICE} values a period and {MOST_LEVELS} levels."
        )


def _whole(given: "NoiseTable | None", budget: Decimal, features: int) -> "NoiseTable":
    if given is None:
        return table_of(budget, features)
    if not given.symbols or (given.features, given.release) != (features, 1) or not certify(given).holds(budget):
        raise InputError(
            f"the table is to be a rows table for 1 of {features} features with an epsilon of at most {budget}; leave "
            "it out, or make such a one."
        )
    return given


def _time_sampling(setting: Setting, table: "NoiseTable") -> Strategy:
    import numpy as np

    after = due(setting, 0) >= setting.records // 2
    picked, values = released(np.where(after[:, None], setting.b, setting.a), table, setting.seed)
    noise, spread, between = spreads(setting, table)
    expected = setting.features * (noise + spread) - between

    def seen(changed: int) -> Any:
        moved = due(setting, 1 + changed) >= setting.records // 2
        x = np.where(moved, changed * ONE, 0)
        return np.where(moved, log_ratio(table)[symbols(x, table, setting, 3 + changed)], 0.0)

    errors = less_own(setting, only(setting, picked, values))
    return _told(setting, table, SAMPLED, (1, 1, 1), ALL_OF_IT, errors, expected, seen)


def _every_record(setting: Setting, table: "NoiseTable") -> Strategy:
    import numpy as np

    total = np.zeros((setting.simulated, setting.features))
    late = setting.records - setting.records // 2
    for x, often, seed in ((setting.a, setting.records - late, 11), (setting.b, late, 12)):
        picked, values = released(np.repeat(x, often, axis=0), table, [setting.seed, seed])
        device = np.repeat(np.arange(setting.simulated), often)
        np.add.at(total, (device, picked), values - means(setting).mean(axis=0)[picked])
    added = setting.features * total / setting.records
    noise, spread, _ = spreads(setting, table)
    expected = (setting.features * noise + (setting.features - 1) * spread) / setting.records

    def seen(changed: int) -> Any:
        x = np.full((setting.simulated, late), changed * ONE)
        return log_ratio(table)[symbols(x.ravel(), table, setting, 13 + changed)].reshape(x.shape).sum(axis=1)

    shape = setting.records, setting.records, setting.records
    return _told(setting, table, EVERY, shape, ALL_OF_IT, less_own(setting, added), expected, seen)


def _memoised(setting: Setting, table: "NoiseTable") -> Strategy:
    """A device's releases of both of its levels; where they are one level, the second is the first."""
    import numpy as np

    rows, last = np.arange(setting.simulated), setting.levels - 1
    feature = np.random.default_rng([setting.seed, 21]).integers(0, setting.features, setting.simulated)
    levels = [np.rint(x.astype(float) * last / ONE).astype(int) for x in (setting.a, setting.b)]
    first, second = (np.rint(level[rows, feature] * ONE / last).astype(int) for level in levels)
    before = table.estimate(symbols(first, table, setting, 22))
    after = np.where(first == second, before, table.estimate(symbols(second, table, setting, 23)))
    added = only(setting, feature, (1 - setting.later) * before + setting.later * after)
    rounded = replace(setting, a=levels[0] * (ONE / last), b=levels[1] * (ONE / last))
    same = levels[0] == levels[1]
    noises = [noise_at(table, x) for x in (rounded.a, rounded.b)]
    weights = [np.where(same, w, w**2) for w in (1 - setting.later, setting.later)]
    noise = float((weights[0] * noises[0] + weights[1] * noises[1]).mean())
    m, own, sent = means(setting).mean(axis=0), means(setting), means(rounded)
    expected = setting.features * (noise + ((sent - m) ** 2).mean()) - float((2 * (sent - m) * (own - m)).mean())
    expected += float(((own - m) ** 2).mean())

    def seen(changed: int) -> Any:
        """A person who stays sends one symbol; two different ones are proof, two equal ones speak against a change."""
        start = symbols(np.zeros_like(rows), table, setting, 24 + changed)
        end = symbols(np.full_like(rows, ONE), table, setting, 26) if changed else start
        return np.where(start == end, -1.0, 1.0)

    most = min(setting.levels, setting.records)
    shape = most, setting.records, most
    told = _told(setting, table, MEMOISED, shape, THE_VALUES, less_own(setting, added), expected, seen)
    return replace(told, rounding=1 / (2 * last), bound=None)


def _told(
    setting: Setting,
    table: "NoiseTable",
    name: str,
    shape: tuple[int, int, int],
    proves: str,
    errors: Any,
    expected: float,
    seen: Callable[[int], Any],
) -> Strategy:
    """One strategy; `shape` is its releases, its packets and how many releases a person's epsilon is of."""
    releases, packets, composed = shape
    proved = certify(table).epsilon_record
    assert proved is not None
    person = float(proved * composed)
    rates = [float((seen(changed) > 0).mean()) for changed in (0, 1)]
    spread = ERRORS * math.sqrt(sum(rate * (1 - rate) for rate in rates) / setting.simulated)
    advantage = rates[1] - rates[0]
    measured, closed = (math.sqrt(value / setting.devices) for value in (float((errors**2).mean()), expected))
    limits = max(-1.0, advantage - spread), min(1.0, advantage + spread)
    known = name, releases, packets, float(proved), person, proves
    return Strategy(*known, measured, closed, 0.0, advantage, *limits, math.tanh(person / 2))
