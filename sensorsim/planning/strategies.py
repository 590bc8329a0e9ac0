"""Compare three ways to spend one budget on a period of T records, by accuracy and by what an observer can tell.

    time sampling   one record of the period, by a public schedule; one release with the whole epsilon
    every record    a release for each record, each with epsilon/T
    memoised        a value is rounded to one of L public levels; the first time that a level comes up it is released
                    with the whole epsilon, and that release is sent again for as long as the level lasts (as RAPPOR's
                    permanent answers, Erlingsson, Pihur and Korolova 2014)

All are simulated through the kernels. Each release is of one feature, picked at random; a memoising device picks once.

Accuracy. The people change once, in the middle of the period, from x = a to x = b, both uniform in 0 … 1. The estimand
is the mean of x over people and records. A device adds n·(value - m) for the feature that it released, less its own
mean: the spread of that over devices, over the root of their number, is the standard error.

The observer sees all packets of one device, knows the table and the schedule, and decides by the likelihood ratio,
which is optimal, whether its person went from x = 0 to x = 1 or stayed at 0, in every feature. The advantage is the
true less the false positive rate. A proved epsilon bounds it by (e^epsilon - 1)/(e^epsilon + 1).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Decimal
from functools import lru_cache
from typing import Any

import numpy as np

from sensorsim._util.errors import InputError
from sensorsim.hospital.confidence import law_of
from sensorsim.kernels import schedule
from sensorsim.noise.batch_release import release_records, sampled_records
from sensorsim.noise.certificate import certify
from sensorsim.noise.noise_table import READY_EPSILONS, NoiseTable, budget_of, certified, make_table, ready_table
from sensorsim.planning.deployment import given

ONE = 1 << 15  # x of 1
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
    """Accuracy and privacy of one way to spend the budget; errors are shares of the range of a feature."""

    name: str
    releases: int  # that a device draws in a period, at most
    packets: int  # that it sends
    epsilon_release: float  # as certified
    epsilon_person: float  # proved for a person and period, at most
    proves: str
    standard_error: float  # of the mean of a feature over the period, measured
    standard_error_expected: float  # in closed form, for the people that were simulated
    rounding: float  # largest bias of a value
    advantage: float  # of an observer who looks for a change, measured
    advantage_low: float
    advantage_high: float
    bound: float | None  # of the advantage, proved; None: nothing is proved of when values change


@dataclass(frozen=True)
class Setting:
    """Parameters of the simulation. `a` and `b` are x of (device, feature) in Q15, before and after the change."""

    features: int
    records: int
    devices: int
    levels: int
    seed: int
    a: Any
    b: Any

    @property
    def simulated(self) -> int:
        """Return the number of simulated devices."""
        return len(self.a)

    @property
    def later(self) -> float:
        """Return the share of the records after the change."""
        return (self.records - self.records // 2) / self.records

    @property
    def device_means(self) -> Any:
        """Return the mean of each device and feature over the period."""
        return ((1 - self.later) * self.a + self.later * self.b) / ONE

    @property
    def mean(self) -> Any:
        """Return the mean of each feature over devices."""
        return self.device_means.mean(axis=0)

    def contributions(self, picked: Any, values: Any) -> Any:
        """Return what each device adds to each feature: n·(value - m) for the one that it released."""

        added = np.zeros((self.simulated, self.features))
        added[np.arange(self.simulated), picked] = self.features * (values - self.mean[picked])
        return added


def compare(
    epsilon: Decimal | float | str,
    features: int = 1,
    records: int = 30,
    devices: int = 5_000,
    levels: int = 4,
    seed: int = 1,
    table: NoiseTable | None = None,
) -> tuple[Strategy, ...]:
    """Compare the three for a budget of `epsilon` per person and period of `records` records.

    `table` may be a ready rows table of the whole epsilon that releases one feature.
    """
    known = {"features": (features, 1), "records": (records, 2), "devices": (devices, 2), "levels": (levels, 2)}
    for name, (value, least) in known.items():
        if type(value) is not int or value < least:
            raise InputError(f"{name} is {value} for a comparison; give a whole number of {least} or more.")
    if levels > MOST_LEVELS or features * records > MOST_OF_A_DEVICE:
        raise InputError(
            f"{records} records of {features} features and {levels} levels are too many to compare; give at most "
            f"{MOST_OF_A_DEVICE} values a period and {MOST_LEVELS} levels."
        )
    budget = budget_of(epsilon)
    whole = table_of(budget, features) if table is None else table
    if not whole.symbols or (whole.features, whole.release) != (features, 1) or not certify(whole).holds(budget):
        raise InputError(
            f"the table is to be a rows table for 1 of {features} features with an epsilon of at most {budget}; leave "
            "it out, or make such a one."
        )
    part = table_of((budget / records).quantize(Decimal("1e-9"), rounding=ROUND_FLOOR), features)
    count = min(MOST_SIMULATED, max(LEAST_SIMULATED, MOST_CELLS // (records * features)))
    a, b = np.random.default_rng(seed).integers(0, ONE + 1, (2, count, features), dtype=np.uint16)
    setting = Setting(features, records, devices, levels, seed, a, b)
    return _time_sampling(setting, whole), _every_record(setting, part), _memoised(setting, whole)


@lru_cache(maxsize=16)
def table_of(epsilon: Decimal, features: int) -> NoiseTable:
    """Return a table for one feature of a record: a ready one where there is one, as its counts serve every n."""
    if str(epsilon.normalize()) in READY_EPSILONS:
        return certified(replace(ready_table(str(epsilon.normalize()), 1), features=features))
    return make_table("rows", epsilon, features, 1)


# ── the three ──


def _time_sampling(setting: Setting, table: NoiseTable) -> Strategy:
    after = due(setting, 0) >= setting.records // 2
    picked, values = release_one(np.where(after[:, None], setting.b, setting.a), table, setting.seed)
    noise, spread, between = _variances(setting, table)
    expected = setting.features * (noise + spread) - between

    def score(changed: int) -> Any:
        moved = due(setting, 1 + changed) >= setting.records // 2
        x = np.where(moved, changed * ONE, 0)
        return np.where(moved, _log_ratio(table)[_symbols(x, table, setting, 3 + changed)], 0.0)

    return _measure(setting, table, SAMPLED, (1, 1, 1), setting.contributions(picked, values), expected, score)


def _every_record(setting: Setting, table: NoiseTable) -> Strategy:
    total = np.zeros((setting.simulated, setting.features))
    late = setting.records - setting.records // 2
    for x, often, seed in ((setting.a, setting.records - late, 11), (setting.b, late, 12)):
        picked, values = release_one(np.repeat(x, often, axis=0), table, [setting.seed, seed])
        device = np.repeat(np.arange(setting.simulated), often)
        np.add.at(total, (device, picked), values - setting.mean[picked])
    added = setting.features * total / setting.records
    noise, spread, _ = _variances(setting, table)
    expected = (setting.features * noise + (setting.features - 1) * spread) / setting.records

    def score(changed: int) -> Any:
        x = np.full((setting.simulated, late), changed * ONE)
        return _log_ratio(table)[_symbols(x.ravel(), table, setting, 13 + changed)].reshape(x.shape).sum(axis=1)

    return _measure(setting, table, EVERY, (setting.records,) * 3, added, expected, score)


def _memoised(setting: Setting, table: NoiseTable) -> Strategy:
    """Release both levels of every device; where they are one level, the second release is the first."""
    rows, last = np.arange(setting.simulated), setting.levels - 1
    feature = np.random.default_rng([setting.seed, 21]).integers(0, setting.features, setting.simulated)
    levels = [np.rint(x.astype(float) * last / ONE).astype(int) for x in (setting.a, setting.b)]
    first, second = (np.rint(level[rows, feature] * ONE / last).astype(int) for level in levels)
    before = table.estimate(_symbols(first, table, setting, 22))
    after = np.where(first == second, before, table.estimate(_symbols(second, table, setting, 23)))
    added = setting.contributions(feature, (1 - setting.later) * before + setting.later * after)
    rounded = replace(setting, a=levels[0] * (ONE / last), b=levels[1] * (ONE / last))
    noises = [_noise_at(table, x) for x in (rounded.a, rounded.b)]
    weights = [np.where(levels[0] == levels[1], w, w**2) for w in (1 - setting.later, setting.later)]
    noise = float((weights[0] * noises[0] + weights[1] * noises[1]).mean())
    m, own, sent = setting.mean, setting.device_means, rounded.device_means
    expected = setting.features * (noise + ((sent - m) ** 2).mean()) - float((2 * (sent - m) * (own - m)).mean())
    expected += float(((own - m) ** 2).mean())

    def score(changed: int) -> Any:
        """Decide by equality: a person who stays sends one symbol, so two different ones prove a change."""
        start = _symbols(np.zeros_like(rows), table, setting, 24 + changed)
        end = _symbols(np.full_like(rows, ONE), table, setting, 26) if changed else start
        return np.where(start == end, -1.0, 1.0)

    most = min(setting.levels, setting.records)
    found = _measure(setting, table, MEMOISED, (most, setting.records, most), added, expected, score)
    return replace(found, proves=THE_VALUES, rounding=1 / (2 * last), bound=None)


def _measure(
    setting: Setting,
    table: NoiseTable,
    name: str,
    shape: tuple[int, int, int],
    added: Any,
    expected: float,
    score: Callable[[int], Any],
) -> Strategy:
    """Measure one strategy; `shape` is its releases, its packets and the releases that a person's epsilon composes."""
    releases, packets, composed = shape
    proved = given(certify(table).epsilon_record)
    person = float(proved * composed)
    errors = added - (setting.device_means - setting.mean)
    rates = [float((score(changed) > 0).mean()) for changed in (0, 1)]
    spread = ERRORS * math.sqrt(sum(rate * (1 - rate) for rate in rates) / setting.simulated)
    advantage = rates[1] - rates[0]
    measured, closed = (math.sqrt(value / setting.devices) for value in (float((errors**2).mean()), expected))
    limits = max(-1.0, advantage - spread), min(1.0, advantage + spread)
    known = name, releases, packets, float(proved), person, ALL_OF_IT
    return Strategy(*known, measured, closed, 0.0, advantage, *limits, math.tanh(person / 2))


# ── releases through the kernels ──


def due(setting: Setting, period: int) -> Any:
    """Return the record of a period that each device releases."""
    from sensorsim.language.numba_backend.compile import outer

    run, slots = outer(schedule.due), setting.records
    devices = range(setting.simulated)
    return np.array([next(s for s in range(slots) if run(serial, period, s, slots, 1)) for serial in devices])


def release_one(x: Any, table: NoiseTable, seed: Any) -> tuple[Any, Any]:
    """Release one feature of each row; return which, and its unbiased value."""

    if x.shape[1] == 1:
        return np.zeros(len(x), int), table.estimate(release_records(x, table, seed)[:, 0])
    picked, y = sampled_records(x, table, seed)
    return picked[:, 0].astype(int), table.estimate(y[:, 0])


def _symbols(x: Any, table: NoiseTable, setting: Setting, call: int) -> Any:
    """Release each x once, as records of one feature."""

    return release_records(x.astype(np.uint16)[:, None], table, [setting.seed, call])[:, 0]


# ── closed forms ──


def _log_ratio(table: NoiseTable) -> Any:
    """Return the log-likelihood ratio of every symbol at x = 1 against x = 0."""
    least, most = (table.distribution(x)[1].astype(float) for x in (0, ONE))
    return np.log(most / least)


def _noise_at(table: NoiseTable, x: Any) -> Any:
    """Return the variance of the unbiased value at x; its second moment is linear between the knots of a rows table."""

    law = law_of(table)
    share = np.asarray(x, float) / ONE
    return np.interp(share, law.x, law.chance @ law.values**2) - share**2


def _variances(setting: Setting, table: NoiseTable) -> tuple[float, float, float]:
    """Return the variance of the noise, of x over devices and records, and of the devices' means; over all features."""
    own, m = setting.device_means, setting.mean
    parts = ((1 - setting.later, setting.a), (setting.later, setting.b))
    noise = sum(weight * _noise_at(table, x).mean() for weight, x in parts)
    spread = sum(weight * ((x / ONE - m) ** 2).mean() for weight, x in parts)
    return float(noise), float(spread), float(((own - m) ** 2).mean())
