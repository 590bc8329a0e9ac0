"""Round a designed table to whole counts: values on a lattice, limits of the columns, then each row by itself."""

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from sensorsim._util.errors import InputError
from sensorsim.noise.rows_counts import Rows
from sensorsim.noise.rows_program import Program

Limits = list[tuple[int, int]]  # of each column: its smallest and its largest count
# Values are multiples of 1/lattice on the range -1..1; the coarser, the easier exact means are for few counts.
_LATTICES = {1 << 16: (32, 64, 128, 192, 384, 512), 1 << 8: (4, 8, 16, 32)}
_REACH = 96  # how far the first of three cells may move to make the mean exact, in counts


def whole_table(program: Program, half: Sequence[float], e: Fraction, mirrored: bool) -> Rows | None:
    """Return the best table of whole counts near these positive values, of ratio at most e; None if none was found.

    Either the values are put on a lattice and every row is rounded with its mean exact; or the counts are rounded
    and the values follow. The first needs slack in the end rows, the second about as many symbols as knots.
    """
    import numpy as np

    if not half:
        return None
    values = np.array(half)
    tables = [] if program.symbols < 2 * program.rows - 2 else _near(program, values, None, e, mirrored)
    for lattice in _LATTICES[program.total]:
        steps = np.round(values * lattice)
        if program.solve(steps / lattice) is None:
            steps[-1] = np.ceil(values[-1] * lattice)  # the end rows need a value beyond the range
        tables += _near(program, steps / lattice, lattice, e, mirrored)
    return min(tables, key=Rows.worst_sd, default=None)


def _near(program: Program, half: Any, lattice: int | None, e: Fraction, mirrored: bool) -> list[Rows]:
    """Return tables for these values, if any: one, or if a count is a large step, the best near each start."""
    tables = []
    for minima in _minima(program, half, e):
        best = _table(program, half, lattice, e, mirrored, minima)
        if best and program.total > 1 << 8:
            return [best]
        while best:
            tables.append(best)
            nearby = [m for m in _neighbours(minima) if min(m) > 0]
            found = [(rows, m) for m in nearby if (rows := _table(program, half, lattice, e, mirrored, m))]
            best, minima = min(found, key=lambda pair: pair[0].worst_sd(), default=(tables[-1], minima))
            if best.worst_sd() >= tables[-1].worst_sd():
                break
    return tables


def _neighbours(minima: list[int]) -> list[list[int]]:
    """Return the minima with one column's smallest count moved by one."""
    return [
        [m + step * (s == column) for s, m in enumerate(minima)] for column in range(len(minima)) for step in (-1, 1)
    ]


def _minima(program: Program, half: Any, e: Fraction) -> Iterator[list[int]]:
    """Yield smallest counts of half the columns, the middle included, to try in order.

    Small ones are rounded one by one. If the end rows leave no choice, the real counts keep a margin from the limits:
    from e + 1 on, the limits of minima rounded down still enclose them.
    """
    if minima := program.whole_minima(half):
        yield minima
    for margin in (1, 2, int(e) + 2, 2 * int(e) + 8):
        if solution := program.solve(half, margin=margin):
            yield [max(1, int(m)) for m in solution.least]


def _table(
    program: Program, half: Any, lattice: int | None, e: Fraction, mirrored: bool, minima: list[int]
) -> Rows | None:
    """Return whole counts within the limits of their columns: unbiased for these values on a lattice, or just near."""
    limits = [(m, int(e * m)) for m in minima + minima[: program.symbols // 2][::-1]]
    values, total = program.values(half), program.total
    stored: list[tuple[int, ...]] = []
    for x in program.x:
        wanted, row = best_row(values, limits, total, x), None
        if wanted and x == 0:
            row = middle_row(wanted, limits, total)
        elif wanted and lattice:
            row = unbiased_row(wanted, limits, total, [round(v) for v in values * lattice], round(x * total * lattice))
        elif wanted:
            row = nearest_row(wanted, limits, total)
        if row is None:
            return None
        stored.append(row)
    backwards = [] if mirrored else [row[::-1] for row in stored[-2::-1]]
    rows = Rows((*stored, *backwards), total.bit_length() - 1, mirrored)
    try:
        rows.values()
    except InputError:  # the rounded rows happen to contradict each other
        return None
    return rows


def best_row(values: Any, limits: Limits, total: int, x: float) -> list[float] | None:
    """Return real counts of the smallest variance with the sum `total` and the mean x; None if the limits forbid it."""
    import numpy as np
    from scipy.optimize import linprog

    ends = [np.ones(len(values)), values]
    answer = linprog(values**2, A_eq=np.array(ends), b_eq=[total, total * x], bounds=limits, method="highs")
    if answer.x is None:
        return None
    counts: list[float] = (answer.x if x else (answer.x + answer.x[::-1]) / 2).tolist()
    return counts


def middle_row(wanted: list[float], limits: Limits, total: int) -> tuple[int, ...] | None:
    """Round to a symmetric row with the sum `total`: for any symmetric values its mean is 0."""
    half = len(wanted) // 2
    if len(wanted) % 2 == 0:
        side = nearest_row(wanted[:half], limits[:half], total // 2)
        return side and side + side[::-1]
    for middle in (round(wanted[half]) + d for d in (0, 1, -1)):
        if limits[half][0] <= middle <= limits[half][1] and (total - middle) % 2 == 0:
            side = nearest_row(wanted[:half], limits[:half], (total - middle) // 2)
            return side and (*side, middle, *side[::-1])
    return None


def nearest_row(wanted: list[float], limits: Limits, total: int) -> tuple[int, ...] | None:
    """Round to a row with the sum `total` and any mean; None if the limits forbid it."""
    counts = _floor(wanted, limits)
    left = total - sum(counts)
    step = 1 if left > 0 else -1
    order = sorted(range(len(counts)), key=lambda s: (step * (counts[s] - wanted[s]), s))
    for s in itertools.islice(itertools.cycle(order), 4 * len(counts)):
        if left and limits[s][0] <= counts[s] + step <= limits[s][1]:
            counts[s] += step
            left -= step
    return None if left else tuple(counts)


def unbiased_row(
    wanted: list[float], limits: Limits, total: int, steps: list[int], mean: int
) -> tuple[int, ...] | None:
    """Round to a row with the sum `total` and the sum of counts*steps `mean`; None if none was found.

    Three cells are moved: the first by up to _REACH counts, the other two by what the two sums then require. Of all
    that fit, take the move with the smallest second moment.
    """
    import numpy as np

    counts = _floor(wanted, limits)
    left, short = total - sum(counts), mean - sum(c * v for c, v in zip(counts, steps, strict=True))
    values, slack = np.array(steps), np.array(limits) - np.array(counts)[:, None]
    triples = [(i, j, l) for i, j, l in itertools.combinations(range(len(steps)), 3) if steps[j] != steps[l]]
    i, j, l = (np.array(cells)[:, None] for cells in zip(*triples, strict=True))
    # a + b + c = left and a·v_i + b·v_j + c·v_l = short, solved for c, then b
    a = np.arange(-_REACH, _REACH + 1)[None]
    c, rest = np.divmod(short - a * values[i] - (left - a) * values[j], values[l] - values[j])
    b = left - a - c
    fits = rest == 0
    for cell, move in ((i, a), (j, b), (l, c)):
        fits &= (slack[cell, 0] <= move) & (move <= slack[cell, 1])
    if not fits.any():
        return None
    second = a * values[i] ** 2 + b * values[j] ** 2 + c * values[l] ** 2
    triple, at = np.unravel_index(np.where(fits, second, np.iinfo(np.int64).max).argmin(), fits.shape)
    for cell, move in ((i, a[0, at]), (j, b[triple, at]), (l, c[triple, at])):
        counts[int(cell[triple, 0])] += int(move)
    return tuple(counts)


def _floor(wanted: list[float], limits: Limits) -> list[int]:
    return [min(max(math.floor(w), low), high) for w, (low, high) in zip(wanted, limits, strict=True)]
