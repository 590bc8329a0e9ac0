"""The statistics of an audit: lower bounds on epsilon from events, chi-square tests, and what an interim look runs.

If an event has probability p under one input and q under another, epsilon is at least log(p/q). The observed rates
bound p from below and q from above (Clopper-Pearson), each with its own error probability. The event is chosen on other
draws than those that it is measured on, so the choice does not bias it. Chi-square tests ask whether values follow a
known distribution, and whether two columns are independent.
"""

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaincinv, chdtrc, chndtr

from sensorsim.auditing.cell_counts import GROUPS, LOW, Cells, Counts, LearnedEvent, Pairs
from sensorsim.auditing.packet_source import Source, input_pairs

Array = np.ndarray[Any, Any]
EXPECTED = 50.0  # draws that a group of cells should have in a chi-square test
FEW_GROUPS = 256
SCALES, STEP = 3, LOW.bit_length() - 1  # single cells, cells without their low bits, quarters of the range
POOLED = "a value, whichever field"


class Bound(NamedTuple):
    """A lower bound of epsilon, and the rates of its event under the likelier input and the other."""

    epsilon: float
    rates: tuple[float, float]


NOTHING = Bound(0.0, (0.0, 0.0))


def bound(hits: int, trials: int, misses: int, others: int, error: float) -> Bound:
    """Return the bound of an event that happened `hits` times under one input and `misses` times under another."""
    low, high = at_least(hits, trials, error), at_most(misses, others, error)
    if low <= high:
        return NOTHING
    return Bound(math.log(low / high), (hits / trials, misses / others))


def at_least(hits: int, trials: int, error: float) -> float:
    """Return the Clopper–Pearson lower bound: the probability is lower with probability `error` at most."""
    return float(betaincinv(hits, trials - hits + 1, error)) if hits else 0.0


def at_most(hits: int, trials: int, error: float) -> float:
    """Return the Clopper–Pearson upper bound: the probability is higher with probability `error` at most."""
    return float(betaincinv(hits + 1, trials - hits, 1 - error)) if hits < trials else 1.0


def best_bound(choose: Array, test: Array, scales: int, step: int, error: float) -> Bound:
    """Return the largest bound over sets of cells: rows are the two inputs, columns the cells.

    It measures 2·scales events, each with this error: at each scale cells are merged in runs, 1, 2^step, 4^step … long.
    """
    best = NOTHING
    places = np.flatnonzero(choose.any(axis=0) | test.any(axis=0))
    coarse, again = (counts[:, places].astype(np.int64) for counts in (choose, test))
    for scale in range(scales):
        if scale:
            runs = places >> step
            first = np.flatnonzero(np.diff(runs, prepend=-1))
            places = runs[first]
            coarse, again = (np.add.reduceat(counts, first, axis=1) for counts in (coarse, again))
        sums = again.sum(axis=1)
        if not sums.all():
            return NOTHING
        for likelier in (0, 1):
            event = _best_event(coarse[likelier], coarse[1 - likelier])
            hits, misses = (int(again[which][event].sum()) for which in (likelier, 1 - likelier))
            best = max(best, bound(hits, int(sums[likelier]), misses, int(sums[1 - likelier]), error))
    return best


def _best_event(p: Array, q: Array) -> Array:
    """Return the cells, largest likelihood ratio first, up to where their approximate bound is largest."""
    cells = np.flatnonzero(p)
    order = cells[np.argsort((q[cells] + 0.5) / (p[cells] + 0.5), kind="stable")]
    hits, misses = np.cumsum(p[order]), np.cumsum(q[order])
    low = hits - 5 * np.sqrt(hits)
    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.where(low > 0, np.log(low / (misses + 5 * np.sqrt(misses) + 12)), -np.inf)
    return order[: int(np.argmax(score)) + 1] if len(order) else order


def rarest(trials: int, claimed: float, error: float, confidence: float) -> float:
    """Return the smallest probability of an event that `trials` packets of each input can show with that confidence.

    At best the event never happens under the other input, whose rate is then at most 1 - error^(1/trials). It must
    happen so often, h times, that Clopper–Pearson puts its own rate above exp(claimed) times that; it does, with that
    confidence, only if its probability is betaincinv(h, trials - h + 1, confidence). A rarer event is beyond these
    draws; others may still be missed, if the audit did not learn which event to look at.
    """
    high = math.exp(min(claimed, 700.0)) * at_most(0, trials, error)
    least = 1 + bisect_left(range(1, trials + 1), True, key=lambda hits: at_least(hits, trials, error) > high)
    return 1.0 if least > trials else float(betaincinv(least, trials - least + 1, confidence))


# ---- chi-square tests


def chi_square(found: Array, expected: Array, least: float = EXPECTED) -> tuple[float, int]:
    """Return the statistic over groups of neighbouring cells, each with enough expected, and the number of groups."""
    found, expected = found[expected > 0], expected[expected > 0]
    level = ((np.cumsum(expected) - expected) * (1 / least)).astype(np.int64)
    first = np.flatnonzero(np.diff(level, prepend=-1) > 0)
    wanted, had = np.add.reduceat(expected, first), np.add.reduceat(found, first)
    small = wanted < least / 5  # a remainder that a large cell cut off
    if small.any():
        wanted = np.append(wanted[~small], wanted[small].sum())
        had = np.append(had[~small], had[small].sum())
    return float((np.square(had - wanted) / wanted).sum()), len(wanted)


def p_value(statistic: float, degrees: int, shift: float = 0.0) -> float:
    """Return the p-value of a statistic. `shift` is the noncentrality that known errors of the cells may cause."""
    if degrees < 1:
        return 1.0
    central = float(chdtrc(degrees, statistic))
    if shift <= 0 or central > 0.01:
        return central
    return max(central, float(1 - chndtr(statistic, degrees, shift)))


def independence(joint: Array) -> tuple[Array, Array, Array]:
    """Return statistic, degrees of freedom and p-value for each table of counts, an array of tables × rows × columns.

    If a table has too few counts for its cells, rows and columns are merged two by two.
    """
    statistic, degrees, p, enough = _independence(joint)
    if joint.shape[1] > 2 and not enough.all():
        thin = ~enough
        tables, rows, columns = joint[thin].shape
        coarse = joint[thin].reshape(tables, rows // 2, 2, columns // 2, 2).sum(axis=(2, 4))
        for fine, merged in zip((statistic, degrees, p), independence(coarse), strict=True):
            np.place(fine, thin, merged)
    return statistic, degrees, p


def _independence(joint: Array) -> tuple[Array, Array, Array, Array]:
    """Test independence without merging cells, and say whether there are enough counts for that.

    Rows and columns so rare that their cells would expect less than EXPECTED are left out.
    """
    total = joint.sum(axis=(1, 2))
    occupied = [(joint.sum(axis=axis) > 0).sum(axis=1) for axis in (1, 2)]
    needed = np.maximum(np.sqrt(EXPECTED * total), 1)[:, None]
    rows, columns = joint.sum(axis=2) >= needed, joint.sum(axis=1) >= needed
    kept = joint * rows[:, :, None] * columns[:, None, :]
    by_row, by_column, sums = kept.sum(axis=2), kept.sum(axis=1), kept.sum(axis=(1, 2))
    wanted = by_row[:, :, None] * (by_column / np.maximum(sums, 1)[:, None])[:, None, :]
    statistic = (np.square(kept - wanted) / np.where(wanted > 0, wanted, 1)).sum(axis=(1, 2))
    degrees = np.maximum(rows.sum(axis=1) - 1, 0) * np.maximum(columns.sum(axis=1) - 1, 0)
    p = np.where(degrees > 0, chdtrc(np.maximum(degrees, 1), statistic), 1.0)
    return statistic, degrees, p, total >= 2 * EXPECTED * occupied[0] * occupied[1]


# ---- an interim look


class Event(NamedTuple):
    """The most revealing event: with the requested confidence it costs more than `bound`."""

    of: str
    inputs: tuple[str, str]  # the likelier first, if the bound is above 0
    bound: float
    claimed: float
    rates: tuple[float, float]

    @property
    def leaks(self) -> bool:
        return self.bound > self.claimed

    def numbers(self) -> dict[str, float]:
        rates = {"rate_likelier": self.rates[0], "rate_other": self.rates[1]}
        return {"epsilon_claimed": self.claimed, "epsilon_bound": self.bound, **rates}

    def to_dict(self) -> dict[str, Any]:
        return {"of": self.of, "inputs": list(self.inputs), **self.numbers()}


class Check(NamedTuple):
    """The worst chi-square test of its kind. `p_value` is multiplied by `tests`, their number."""

    of: str
    input: str
    chi_square: float
    degrees: int
    p_value: float
    tests: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Return the test for JSON, which has no infinity."""
        return self._asdict() | {"chi_square": self.chi_square if math.isfinite(self.chi_square) else None}


@dataclass(frozen=True)
class Look:
    """An interim look: the draws so far, and what they show."""

    draws: int
    packets: int
    distribution: Check | None  # None: no distribution is known to compare with
    dependence: Check | None  # None: nothing need be independent
    event: Event
    allowed: float  # a p-value below this rejects: the share of this look in the error probability

    @property
    def matches(self) -> bool:
        return self.distribution is None or self.distribution.p_value >= self.allowed

    @property
    def independent(self) -> bool:
        return self.dependence is None or self.dependence.p_value >= self.allowed

    @property
    def passed(self) -> bool:
        return self.matches and self.independent and not self.event.leaks

    @property
    def tests(self) -> dict[str, Check | None]:
        return {"distribution": self.distribution, "dependence": self.dependence}

    def verdicts(self) -> dict[str, bool]:
        found = {"matches": self.matches, "independent": self.independent, "leaks": self.event.leaks}
        return found | {"passed": self.passed}

    def to_dict(self) -> dict[str, Any]:
        found = {name: test and test.to_dict() for name, test in self.tests.items()}
        counts = {"draws": self.draws, "packets": self.packets, "p_allowed": self.allowed}
        return counts | found | {"event": self.event.to_dict()} | self.verdicts()


class Counted:
    """All counts by input: `seen` in the batches before, `fresh` in the last one."""

    source: Source
    cells: Cells
    pairs: Pairs
    seen: list[Counts]
    fresh: list[Counts]
    seen_values: Array  # inputs × values, of all pooled columns together
    fresh_values: Array
    expected: list[list[Any]]  # probabilities of the cells by input and column; None if unknown
    expected_values: list[Any]  # and of the pooled values by input
    learned: list[tuple[tuple[int, int], LearnedEvent]]
    scores: "list[Array]"  # for each learned event, its two inputs × the intervals between cuts
    packets: int

    @property
    def pooled(self) -> bool:
        return len(self.cells.pooled) > 0


def interim_look(counted: Counted, share: float) -> Look:
    """Run all tests once; `share` of the error probability is for this look."""

    def excess(event: Event) -> tuple[float, float]:  # the largest leak first, then what comes nearest to its claim
        over = event.bound - event.claimed if event.leaks else 0.0
        return over, event.bound / event.claimed if event.claimed else 0.0

    allowed, source = share / 3, counted.source
    event = max(_events(counted, allowed / (2 * count_events(counted))), key=excess)
    tests = _worst(_distributions(counted)), _worst(_dependences(counted))
    return Look(counted.packets * source.per_record, counted.packets, *tests, event, allowed)


def _worst(found: Iterator[tuple[int, Check]]) -> Check | None:
    """Return the test with the smallest p-value, multiplied by the number of tests; None if there are none."""
    tests = list(found)
    if not tests:
        return None
    worst = min((test for _, test in tests), key=lambda test: test.p_value)
    count = sum(number for number, _ in tests)
    return worst._replace(p_value=min(1.0, worst.p_value * count), tests=count)


def _distributions(counted: Counted) -> Iterator[tuple[int, Check]]:
    """Test every column at every input, and all values of an input together; yield (1, test)."""
    source, cells = counted.source, counted.cells
    for number, one in enumerate(source.inputs):
        found = counted.seen[number].cells + counted.fresh[number].cells
        for column, field in enumerate(source.fields):
            wanted = counted.expected[number][column]
            if wanted is not None:
                yield 1, _compare(found[column], wanted, EXPECTED, field.slack, field.name, one.name)
        wanted = counted.expected_values[number]
        if wanted is not None:
            values = counted.seen_values[number].astype(float) + counted.fresh_values[number]
            slack = max(source.fields[c].slack for c in cells.pooled)
            few = max(EXPECTED, values.sum() / FEW_GROUPS)
            for least in (EXPECTED, few):  # the lowest bits show in fine groups, a small shift of many draws in few
                yield 1, _compare(values, wanted, least, slack, POOLED, one.name)


def _compare(found: Array, wanted: Array, least: float, slack: float, of: str, name: str) -> Check:
    total = found.sum()
    if found[wanted == 0].any():
        return Check(of, name, math.inf, 0, 0.0)  # an impossible value
    statistic, groups = chi_square(found, wanted * total, least)
    return Check(of, name, statistic, groups - 1, p_value(statistic, groups - 1, total * slack**2))


def _dependences(counted: Counted) -> Iterator[tuple[int, Check]]:
    """Test every pair of columns at every input, by size and by low bits; yield (tests, the worst) of each group."""
    source, pairs = counted.source, counted.pairs
    if source.independent is None:
        return
    names = [field.name for field in source.fields]
    inside = len(pairs.within)
    for number, one in enumerate(source.inputs):
        joint = counted.seen[number].joint + counted.fresh[number].joint
        first = 0 if source.independent(one.record) else inside
        for lot, kind in ((0, ""), (1, "the low bits of ")):
            for start, end in ((first, inside), (inside, pairs.tables)):
                if start >= end:
                    continue
                tables = joint[lot, start:end].reshape(-1, GROUPS, GROUPS)
                statistic, degrees, p = independence(tables)
                at = int(np.argmin(p))
                of = kind + pairs.name(start + at, names)
                yield end - start, Check(of, one.name, float(statistic[at]), int(degrees[at]), float(p[at]))


def count_events(counted: Counted) -> int:
    """Return the number of events that a look measures."""
    of_cells = len(counted.source.fields) + counted.pooled
    pairs = len(input_pairs(counted.source.inputs))
    fixed = pairs * 2 * SCALES * of_cells + (2 * counted.cells.bits if counted.pooled else 0)
    return fixed + sum(2 * len(event.cuts) for _, event in counted.learned)


def _events(counted: Counted, error: float) -> Iterator[Event]:
    """Yield the best event of each kind; `error` is that of each bound."""
    source, pooled = counted.source, counted.cells.pooled

    def event(of: str, pair: tuple[int, int], best: Bound, claimed: float) -> Event:
        names = source.inputs[pair[0]].name, source.inputs[pair[1]].name
        return Event(of, names, best.epsilon, claimed, best.rates)

    for pair in input_pairs(source.inputs):
        seen, fresh = (np.stack([counts[i].cells for i in pair]) for counts in (counted.seen, counted.fresh))
        for column, field in enumerate(source.fields):
            best = best_bound(seen[:, column], fresh[:, column], SCALES, STEP, error)
            yield event(field.name, pair, best, field.cost)
        if counted.pooled:
            share = max(source.fields[c].cost for c in pooled)
            best = best_bound(seen[:, pooled].sum(axis=1), fresh[:, pooled].sum(axis=1), SCALES, STEP, error)
            yield event(POOLED, pair, best, share)
            if pair == (0, 1):  # value by value only for the ends: slow, and the others have cells
                values = counted.seen_values[list(pair)], counted.fresh_values[list(pair)]
                yield event(POOLED, pair, best_bound(*values, counted.cells.bits, 1, error), share)
    for (pair, learned), scores in zip(counted.learned, counted.scores, strict=True):
        (one, two), found = scores.sum(axis=1).tolist(), [NOTHING]
        for low_one, low_two in scores.cumsum(axis=1)[:, :-1].T.tolist() if one and two else ():
            found.append(bound(one - low_one, one, two - low_two, two, error))  # at or above the cut
            found.append(bound(low_two, two, low_one, one, error))  # below it
        name = learned.name([field.name for field in source.fields])
        yield event(name, pair, max(found), learned.window * source.claimed)
