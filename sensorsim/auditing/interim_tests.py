"""The tests of one interim look: expected distributions, independence, and lower bounds on epsilon by events."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sensorsim.auditing.audit_result import Check, Event, Look
from sensorsim.auditing.cell_counts import GROUPS, LOW, Cells, Counts, Expected, Pairs
from sensorsim.auditing.hypothesis_tests import (
    EXPECTED,
    NOTHING,
    Bound,
    best_bound,
    bound,
    chi_square,
    independence,
    p_value,
)
from sensorsim.auditing.learned_event import LearnedEvent
from sensorsim.auditing.packet_source import Source

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

FEW_GROUPS = 256
SCALES, STEP = 3, LOW.bit_length() - 1  # single cells, cells without their low bits, quarters of the range
POOLED = "a value, whichever field"


class Counted(NamedTuple):
    """All counts by input: `seen` in the batches before, `fresh` in the last one."""

    source: Source
    cells: Cells
    pairs: Pairs
    input_pairs: Sequence[tuple[int, int]]
    seen: Sequence[Counts]
    fresh: Sequence[Counts]
    seen_values: "Array"  # inputs × values, of all pooled columns together
    fresh_values: "Array"
    expected: Expected
    learned: Sequence[tuple[tuple[int, int], LearnedEvent]]
    scores: "Sequence[Array]"  # for each learned event, its two inputs × the intervals between cuts
    packets: int

    @property
    def pooled(self) -> bool:
        return len(self.cells.pooled) > 0


def interim_look(counted: Counted, share: float) -> Look:
    """Run all tests once; `share` of the error probability is for this look."""
    allowed = share / 3
    source = counted.source
    event = max(_events(counted, allowed / (2 * count_events(counted))), key=_excess)
    return Look(
        counted.packets * source.per_record,
        counted.packets,
        _worst(list(_distributions(counted))),
        _worst(list(_dependences(counted))) if source.independent is not None else None,
        event,
        allowed,
    )


def _excess(event: Event) -> tuple[float, float]:
    """Rank events: the largest leak first, then what comes nearest to its claim."""
    over = event.bound - event.claimed if event.leaks else 0.0
    return over, event.bound / event.claimed if event.claimed else 0.0


def _worst(tests: list[tuple[int, Check]]) -> Check | None:
    """Return the test with the smallest p-value, multiplied by the number of tests."""
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
        return Check(of, name, math.inf, 0, 0.0)  # an impossible value
    statistic, groups = chi_square(found, wanted * total, least)
    return Check(of, name, statistic, groups - 1, p_value(statistic, groups - 1, total * slack**2))


def _dependences(counted: Counted) -> Iterator[tuple[int, Check]]:
    """Test every pair of columns at every input, by size and by low bits; yield (tests, the worst) of each group."""
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
                of = kind + pairs.name(start + at, names)
                yield end - start, Check(of, one.name, float(statistic[at]), int(degrees[at]), float(p[at]))


def count_events(counted: Counted) -> int:
    """Return the number of events that a look measures."""
    of_cells = len(counted.source.fields) + counted.pooled
    fixed = len(counted.input_pairs) * 2 * SCALES * of_cells + (2 * counted.cells.bits if counted.pooled else 0)
    return fixed + sum(2 * len(event.cuts) for _, event in counted.learned)


def _events(counted: Counted, error: float) -> Iterator[Event]:
    """Yield the best event of each kind; `error` is that of each bound."""
    import numpy as np

    source, pooled = counted.source, counted.cells.pooled
    for pair in counted.input_pairs:
        names = source.inputs[pair[0]].name, source.inputs[pair[1]].name
        seen, fresh = (np.stack([counts[i].cells for i in pair]) for counts in (counted.seen, counted.fresh))
        for column, field in enumerate(source.fields):
            best = best_bound(seen[:, column], fresh[:, column], SCALES, STEP, error)
            yield _event(field.name, names, best, field.cost)
        if counted.pooled:
            share = max(source.fields[c].cost for c in pooled)
            best = best_bound(seen[:, pooled].sum(axis=1), fresh[:, pooled].sum(axis=1), SCALES, STEP, error)
            yield _event(POOLED, names, best, share)
            if pair == counted.input_pairs[0]:  # value by value only for the ends: slow, and the others have cells
                values = counted.seen_values[list(pair)], counted.fresh_values[list(pair)]
                yield _event(POOLED, names, best_bound(*values, counted.cells.bits, 1, error), share)
    for (pair, event), scores in zip(counted.learned, counted.scores, strict=True):
        names = source.inputs[pair[0]].name, source.inputs[pair[1]].name
        yield _event(_name(event, source), names, _best_cut(scores, error), event.window * source.claimed)


def _event(of: str, names: tuple[str, str], best: Bound, claimed: float) -> Event:
    return Event(of, names, best.epsilon, claimed, best.rates)


def _best_cut(scores: "Array", error: float) -> Bound:
    """Return the best bound of the events of a score: at or above a cut, or below it."""
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


def _name(event: LearnedEvent, source: Source) -> str:
    """Name the statistics that a learned event uses first."""
    names = [statistic.name([field.name for field in source.fields]) for statistic in event.statistics]
    of = "two packets that follow each other" if event.window == 2 else "a whole packet"
    return f"learnt from {of}, by {' and by '.join(list(dict.fromkeys(names))[:2])}"
