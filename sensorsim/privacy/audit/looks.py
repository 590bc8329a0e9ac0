"""One look at what was counted: are the distributions as expected, is anything dependent, what does an event cost?"""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sensorsim.privacy.audit.bounds import NOTHING, Bound, best_bound, bound
from sensorsim.privacy.audit.cells import GROUPS, LOW, Cells, Expected
from sensorsim.privacy.audit.chisquare import EXPECTED, chi_square, independence, p_value
from sensorsim.privacy.audit.learn import Learnt
from sensorsim.privacy.audit.result import Check, Event, Look
from sensorsim.privacy.audit.source import Source
from sensorsim.privacy.audit.tally import Counts, Pairs

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

FEW_GROUPS = 256
SCALES, STEP = 3, LOW.bit_length() - 1  # cells one by one, without their low bits, and in quarters of the range
POOLED = "a value, whichever field"


class Counted(NamedTuple):
    """Everything that was counted, by input: `seen` in the batches before, `fresh` in the last one."""

    source: Source
    cells: Cells
    pairs: Pairs
    told_apart: Sequence[tuple[int, int]]
    seen: Sequence[Counts]
    fresh: Sequence[Counts]
    seen_values: "Array"  # inputs × values, of all pooled columns together
    fresh_values: "Array"
    expected: Expected
    learnt: Sequence[tuple[tuple[int, int], Learnt]]
    scores: "Sequence[Array]"  # for each learnt event, its two inputs × between which cuts
    packets: int

    @property
    def pooled(self) -> bool:
        return len(self.cells.pooled) > 0


def look_at(counted: Counted, share: float) -> Look:
    """Look once; `share` of the error probability is for this look."""
    allowed = share / 3
    source = counted.source
    event = max(_events(counted, allowed / (2 * tests_of_events(counted))), key=_excess)
    return Look(
        counted.packets * source.per_record,
        counted.packets,
        _worst(list(_distributions(counted))),
        _worst(list(_dependences(counted))) if source.independent is not None else None,
        event,
        allowed,
    )


def _excess(event: Event) -> tuple[float, float]:
    """Leaks first, the largest of them; then what comes nearest to its claim."""
    over = event.bound - event.claimed if event.leaks else 0.0
    return over, event.bound / event.claimed if event.claimed else 0.0


def _worst(tests: list[tuple[int, Check]]) -> Check | None:
    """The test with the smallest p-value, times how many tests there were."""
    if not tests:
        return None
    worst = min((test for _, test in tests), key=lambda test: test.p_value)
    count = sum(number for number, _ in tests)
    return worst._replace(p_value=min(1.0, worst.p_value * count), tests=count)


def _distributions(counted: Counted) -> Iterator[tuple[int, Check]]:
    """Every column at every input, and all values of an input together, each with how many tests it stands for."""
    source, cells = counted.source, counted.cells
    for number, one in enumerate(source.inputs):
        found = counted.seen[number].cells + counted.fresh[number].cells
        for column, field in enumerate(source.fields):
            wanted = counted.expected.cells(number, column)
            if wanted is not None:
                yield 1, _compare(found[column], wanted, EXPECTED, field.slack, field.name, one.name)
        wanted = counted.expected.values(number) if counted.pooled else None
        if wanted is not None:
            values = counted.seen_values[number].astype(float) + counted.fresh_values[number]
            slack = max(source.fields[c].slack for c in cells.pooled)
            few = max(EXPECTED, values.sum() / FEW_GROUPS)
            for least in (EXPECTED, few):  # the lowest bits show in fine groups, a small shift of many draws in few
                yield 1, _compare(values, wanted, least, slack, POOLED, one.name)


def _compare(found: "Array", wanted: "Array", least: float, slack: float, of: str, name: str) -> Check:
    total = found.sum()
    if found[wanted == 0].any():
        return Check(of, name, math.inf, 0, 0.0)  # a value that cannot be
    statistic, groups = chi_square(found, wanted * total, least)
    return Check(of, name, statistic, groups - 1, p_value(statistic, groups - 1, total * slack**2))


def _dependences(counted: Counted) -> Iterator[tuple[int, Check]]:
    """Every pair of columns at every input, by size and by low bits: the worst of each lot, and how many they were."""
    import numpy as np

    source, pairs = counted.source, counted.pairs
    assert source.independent is not None
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
                of = kind + pairs.where(start + at, names)
                yield end - start, Check(of, one.name, float(statistic[at]), int(degrees[at]), float(p[at]))


def tests_of_events(counted: Counted) -> int:
    """How many events a look measures."""
    of_cells = len(counted.source.fields) + counted.pooled
    fixed = len(counted.told_apart) * 2 * SCALES * of_cells + (2 * counted.cells.bits if counted.pooled else 0)
    return fixed + sum(2 * len(event.cuts) for _, event in counted.learnt)


def _events(counted: Counted, error: float) -> Iterator[Event]:
    """What each kind of event proves; `error` is that of each bound."""
    import numpy as np

    source, pooled = counted.source, counted.cells.pooled
    for pair in counted.told_apart:
        names = source.inputs[pair[0]].name, source.inputs[pair[1]].name
        seen, fresh = (np.stack([counts[i].cells for i in pair]) for counts in (counted.seen, counted.fresh))
        for column, field in enumerate(source.fields):
            best = best_bound(seen[:, column], fresh[:, column], SCALES, STEP, error)
            yield _event(field.name, names, best, field.cost)
        if counted.pooled:
            share = max(source.fields[c].cost for c in pooled)
            best = best_bound(seen[:, pooled].sum(axis=1), fresh[:, pooled].sum(axis=1), SCALES, STEP, error)
            yield _event(POOLED, names, best, share)
            if pair == counted.told_apart[0]:  # value by value only the ends: it is slow, and the others have cells
                values = counted.seen_values[list(pair)], counted.fresh_values[list(pair)]
                yield _event(POOLED, names, best_bound(*values, counted.cells.bits, 1, error), share)
    for (pair, event), scores in zip(counted.learnt, counted.scores, strict=True):
        names = source.inputs[pair[0]].name, source.inputs[pair[1]].name
        yield _event(_name(event, source), names, _best_cut(scores, error), event.window * source.claimed)


def _event(of: str, names: tuple[str, str], best: Bound, claimed: float) -> Event:
    return Event(of, names, best.epsilon, claimed, best.rates)


def _best_cut(scores: "Array", error: float) -> Bound:
    """The best of the events that a score gives: at or above a cut, or below it, under either input."""
    sums = scores.sum(axis=1)
    if not sums.all():
        return NOTHING
    best = NOTHING
    for cut in range(1, scores.shape[1]):
        above, below = scores[:, cut:].sum(axis=1), scores[:, :cut].sum(axis=1)
        for counts, likelier in ((above, 0), (below, 1)):
            hits, misses = int(counts[likelier]), int(counts[1 - likelier])
            best = max(best, bound(hits, int(sums[likelier]), misses, int(sums[1 - likelier]), error))
    return best


def _name(event: Learnt, source: Source) -> str:
    """The looks that a learnt event rests on most: the first ones."""
    looks = [look.name([field.name for field in source.fields]) for look in event.looks]
    of = "two packets that follow each other" if event.window == 2 else "a whole packet"
    return f"learnt from {of}, by {' and by '.join(list(dict.fromkeys(looks))[:2])}"
