"""Design rows: find the smallest table whose worst variance is near the best known.

For given values the best counts are a linear program. The values are moved along its tangent, within a reach that
grows and shrinks with success. Then everything is rounded: the values to a lattice, the smallest count of every
column, and each row by itself, since rows are independent once the limits of the columns are fixed. A column's largest
count is the smallest one times a lower bound of exp(epsilon), rounded down: the certificate holds by construction.

In the program the range is -1..1, and everything is symmetric: row r backwards is the row of -x, the values are ±. So
only the rows of x <= 0 are unknown. Unknown are also the smallest count of each column and the worst variance, the
goal:

    least[s] <= counts[r][s] <= ratio*least[s],    sum_s counts = total,    sum_s counts*value = total*x(r),
    sum_s counts*value² <= total*(variance + x²)   on the knots and on a few mixtures of two neighbours.

Between two knots x is a mixture of them, its second moment a mixture of theirs: linear in the counts as well.
"""

import bisect
import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from sensorsim._util.errors import InputError
from sensorsim.noise.baseline import EPSILONS, best_known_sd, one_bit_sd
from sensorsim.noise.certificate import exp_bounds
from sensorsim.noise.kinds.rows_table import MOST_KNOTS, MOST_SYMBOLS, Rows

# Up to this epsilon, the worst sd over the best known. A margin is left to the documented 1.02, 1.04 and 1.10, since
# the best known is itself found by a program with finitely many knots.
GOALS = ((Fraction(8, 5), 1.018), (Fraction(16, 5), 1.037), (Fraction(8), 1.08))
COARSER = 1.03  # times that for counts out of 2^8
ONE_BIT_WITHIN = 1.01  # of the best: then a table is not worth its bytes
MOST_BYTES, MOST_LOOKUP_BYTES = 600, 9 * 256
MOST_EPSILON = GOALS[-1][0]  # no finer tables are made
# The top of a parabola between two of these is higher by (knot distance)²/256 at most.
MIXTURES = (0.0, 0.25, 0.5, 0.75)
# Values are multiples of 1/lattice on the range -1..1; the coarser, the easier exact means are for few counts.
_LATTICES = {1 << 16: (32, 64, 128, 192, 384, 512), 1 << 8: (4, 8, 16, 32)}
_REACH = 96  # how far the first of three cells may move to make the mean exact, in counts
_STEPS, _GAIN, _LEAST_REACH = 40, 5e-4, 1e-4  # of the search for values; gain and reach are relative
Limits = list[tuple[int, int]]  # of each column: its smallest and its largest count


def design(
    epsilon: Fraction,
    symbols: int | None = None,
    knots: int | None = None,
    bits: int = 16,
    most_bytes: int | None = None,
) -> Rows:
    """Design rows with ratio() <= exp(epsilon), proved in integers, as small as the goals allow; above 8 those for 8.

    `most_bytes` limits Rows.table_bytes: 600 unless given, 2304 for a look-up (bits = 8).
    """
    if epsilon <= 0:
        raise InputError(f"epsilon must be above 0, got {float(epsilon):g}; 0.1 to 8 is usual.")
    if bits not in (8, 16):
        raise InputError(f"counts are out of 2^16, or 2^8 for a look-up; got bits={bits}.")
    allowed = [2**j + 1 for j in range(6)]
    if knots is not None and knots not in allowed:
        raise InputError(f"{knots} knots have no exact rounding; give one of {', '.join(map(str, allowed))}.")
    if symbols is not None and not 2 <= symbols <= MOST_SYMBOLS:
        raise InputError(f"a table has 2 to {MOST_SYMBOLS} symbols, not {symbols}.")
    if knots is not None and symbols is not None and (knots == 2) != (symbols == 2):
        raise InputError(f"{knots} knots and {symbols} symbols do not go together: two of one need two of the other.")
    epsilon = min(epsilon, MOST_EPSILON)
    most = most_bytes if most_bytes is not None else MOST_LOOKUP_BYTES if bits == 8 else MOST_BYTES
    known, free = best_known_sd(float(epsilon)), knots is None and symbols is None
    # The smaller epsilon, the less more symbols gain: one bit is then near the best known.
    near = epsilon < EPSILONS[0] if known is None else one_bit_sd(float(epsilon)) <= ONE_BIT_WITHIN * known
    if knots == 2 or symbols == 2 or (free and near):
        return one_bit(epsilon, bits)
    goal = 0.0  # the best that fits, if there is no baseline
    if known is not None:
        goal = known * next(factor for limit, factor in GOALS if epsilon <= limit) * (COARSER if bits == 8 else 1)
    best: Rows | None = None
    for rows in _candidates(epsilon, goal, _groups(symbols, knots, bits, most), bits):
        if best is None or rows.worst_sd() < best.worst_sd():
            best = rows
        if best.worst_sd() <= goal:
            break
    if free and bits == 8:  # so coarse that more symbols may be worse, or impossible
        best = min([one_bit(epsilon, bits), *([best] if best else [])], key=Rows.worst_sd)
    if best is None:
        raise InputError(
            f"no table for epsilon {float(epsilon):g} with these symbols and knots, counts out of 2^{bits} and "
            f"{most} bytes was found; leave symbols and knots to the design, or allow more bytes."
        )
    return best


def one_bit(epsilon: Fraction, bits: int = 16) -> Rows:
    """Return two rows of two symbols with the steepest slope for epsilon. If it is odd, the rows are one count off."""
    e, total = exp_bounds(epsilon)[0], 1 << bits
    slope = int(total * (e - 1) / (e + 1))
    while slope > 0:
        base = (total - slope) // 2
        if base and base + slope <= e * base and total - base <= e * (total - base - slope):
            return Rows(((total - base, base), (total - base - slope, base + slope)), bits)
        slope -= 1
    raise InputError(
        f"epsilon {float(epsilon):g} is too small for counts out of 2^{bits}; give {4 / total:.2g} or more, "
        "or release fewer features."
    )


def _groups(symbols: int | None, knots: int | None, bits: int, most: int) -> list[list[tuple[int, int]]]:
    """Return sizes (knots, symbols) that fit, smallest first, in one group for each number of knots.

    Three symbols are tried only on request, for one bit is as good. Only the finest tables are mirrored.
    """
    groups = []
    for k in (3, 5, 9, 17, 33) if knots is None else (knots,):
        wanted = range(4, min(k + 1, MOST_SYMBOLS) + 1) if symbols is None else (symbols,)
        stored = (k + 1) // 2 if k == MOST_KNOTS else k
        groups.append([(k, m) for m in wanted if stored * (256 if bits == 8 else 2 * (m - 1)) <= most])
    return [group for group in groups if group]


def _candidates(epsilon: Fraction, goal: float, groups: list[list[tuple[int, int]]], bits: int) -> Iterator[Rows]:
    """Yield tables to try: those within the goal before rounding, smallest first, and then the best that fits."""

    def rounded(knots: int, symbols: int) -> Rows | None:
        program = Program(float(exp_bounds(epsilon)[0]), knots, symbols, 1 << bits)
        half = _settled(epsilon, knots, symbols)[1]
        return whole_table(program, half, exp_bounds(epsilon)[0], mirrored=knots == MOST_KNOTS)

    for group in groups:
        if _settled(epsilon, *group[-1])[0] <= goal:
            enough = bisect.bisect_left(group, True, key=lambda size: _settled(epsilon, *size)[0] <= goal)
            yield from filter(None, (rounded(*size) for size in group[enough:]))
    largest = sorted((group[-1] for group in groups), key=lambda size: _settled(epsilon, *size)[0])
    yield from itertools.islice(filter(None, (rounded(*size) for size in largest)), 1)


@lru_cache(maxsize=256)
def _settled(epsilon: Fraction, knots: int, symbols: int) -> tuple[float, tuple[float, ...]]:
    """Return the worst standard deviation, range 1, and the positive values, range -1..1, before rounding."""
    program = Program(float(exp_bounds(epsilon)[0]), knots, symbols, 1 << 16)
    s = math.exp(float(epsilon) / 2)
    end = (s + 1) / (s - 1)
    even = np.arange(1 + symbols % 2, symbols, 2) / (symbols - 1)  # the positive ones of -1 .. 1
    found = []  # from evenly spread values, and from denser ones outside, to the end of the piecewise mechanism
    for power, beyond in ((1.0, 1.1), (0.85, 0.9), (0.85, 1.2), (0.5, 0.8)):
        variance, half = _descend(program, (1 + (end - 1) * beyond) * even**power)
        found.append((math.sqrt(variance) / 2, tuple(half.tolist())))
    return min(found)


def _descend(program: "Program", half: Any) -> tuple[float, Any]:
    """Move the values along the tangent while the variance falls."""
    at, reach = program.solve(half), 0.1 * half[-1]
    if at is None:
        return math.inf, half
    for _ in range(_STEPS):
        move = program.move(half, at.counts, reach)
        if move is None or move[1] > (1 - _GAIN) * at.variance or reach < _LEAST_REACH * half[-1]:
            break
        there = program.solve(move[0])
        if there is None or there.variance >= at.variance:
            reach /= 3
            continue
        if at.variance - there.variance > 0.5 * (at.variance - move[1]):
            reach *= 2
        half, at = move[0], there
    return at.variance, half


# ---- the linear program


class Solution(NamedTuple):
    """The solution for given values: rows of x <= 0, smallest counts of the columns, worst variance for range -1..1."""

    variance: float
    counts: Any
    least: Any


class Program:
    """The constraints that do not depend on the values: of a ratio, 3, 5, 9 … knots, the symbols and a total."""

    def __init__(
        self, ratio: float, knots: int, symbols: int, total: int, mixtures: tuple[float, ...] = MIXTURES
    ) -> None:
        from scipy import sparse

        self.symbols, self.total = symbols, total
        self.rows, self.pairs = (knots + 1) // 2, (symbols + 1) // 2  # a symbol and its mirror image share a column
        self.cells = self.rows * symbols
        self.x = -1 + np.arange(self.rows) * 2 / (knots - 1)
        column = np.minimum(np.arange(symbols), np.arange(symbols)[::-1])
        cell = np.arange(self.cells)
        counts = sparse.identity(self.cells)
        least = sparse.csr_array((np.ones(self.cells), (cell, np.tile(column, self.rows))))
        self._ratio = sparse.vstack([sparse.hstack([counts, -ratio * least]), sparse.hstack([-counts, least])])
        # one line for each x of the program: the shares of the rows that it mixes
        mixed = [(row, t) for row in range(self.rows - 1) for t in mixtures] + [(self.rows - 1, 0.0)]
        every = np.eye(self.rows + 1)[:, : self.rows]
        self._mixing = sparse.csr_array(np.array([(1 - t) * every[row] + t * every[row + 1] for row, t in mixed]))
        self._sums = sparse.kron(sparse.identity(self.rows), np.ones((1, symbols)))
        forwards = np.eye(symbols)[: symbols // 2]
        before = np.zeros((symbols // 2, self.cells - symbols))
        self._middle = sparse.csr_array(np.hstack([before, forwards - forwards[:, ::-1]]))  # the same backwards

    def values(self, half: Any) -> Any:
        """Return all values from the positive ones; an odd symbol has the value 0."""
        return np.concatenate([-half[::-1], np.zeros(self.symbols % 2), half])

    def solve(self, half: Any, least: Any = None, margin: int = 0) -> Solution | None:
        """Return the best counts for these values; `least` fixes the smallest counts of columns where it is not nan.

        Every count keeps a `margin` from both limits of its column, so that whole counts can be found there.
        """
        answer = self._run(half, None, 0.0, least, margin)
        if answer is None:
            return None
        counts = answer[: self.cells].reshape(self.rows, self.symbols)
        return Solution(float(answer[-1]) / self.total, counts, answer[self.cells : self.cells + self.pairs])

    def whole_minima(self, half: Any) -> list[int] | None:
        """Round the smallest count of every column, one after the other, the smaller first, to the better side."""
        at = self.solve(half)
        if at is None:
            return None
        settled = np.full(self.pairs, np.nan)
        for column in np.argsort(at.least, kind="stable"):
            options = []
            for whole in {max(1.0, np.floor(at.least[column])), max(1.0, np.ceil(at.least[column]))}:
                settled[column] = whole
                there = self.solve(half, settled)
                options += [(there.variance, whole, there)] if there else []
            if not options:
                return None
            _, settled[column], at = min(options, key=lambda option: option[:2])
        return [int(m) for m in settled]

    def move(self, half: Any, counts: Any, reach: float) -> tuple[Any, float] | None:
        """Return values moved by at most `reach`, and the variance that the tangent at these counts predicts."""
        answer = self._run(half, counts, reach, None, 0)
        if answer is None:
            return None
        moves = answer[self.cells + self.pairs : -1]
        return np.sort(np.abs(half + moves)), float(answer[-1]) / self.total

    def _run(self, half: Any, counts: Any, reach: float, least: Any, margin: int) -> Any:
        """Solve for, in this order: the cells, the smallest counts, the moves of the values if any, total*variance.

        The variance is in the units of the cells: the solver's tolerances are absolute.
        """
        from scipy import optimize, sparse

        moves, pairs, mixing = 0 if counts is None else len(half), self.pairs, self._mixing
        values, every = self.values(half), sparse.identity(self.rows)
        means, seconds = sparse.kron(every, values[None]), sparse.kron(every, values[None] ** 2)
        d_means = d_seconds = np.zeros((self.rows, moves))
        if moves:  # a value and its mirror image move together: the derivatives of both moments of each row
            up, down = counts[:, -moves:], counts[:, :moves][:, ::-1]
            d_means, d_seconds = up - down, 2 * half * (up + down)

        def line(cells: Any, least: Any = None, moved: Any = None, variance: Any = None) -> Any:
            blocks = zip((least, moved, variance), (pairs, moves, 1), strict=True)
            rest = [sparse.csr_array((cells.shape[0], width)) if part is None else part for part, width in blocks]
            return sparse.hstack([cells, *rest])

        ratio = sparse.hstack([self._ratio, sparse.csr_array((2 * self.cells, moves + 1))])
        variances = line(mixing @ seconds, None, mixing @ d_seconds, -np.ones((mixing.shape[0], 1)))
        upper = sparse.vstack([ratio, variances]).tocsc()
        equal = sparse.vstack([line(self._sums), line(means, None, d_means), line(self._middle)]).tocsc()
        limits = np.concatenate([np.full(2 * self.cells, -margin), self.total * (mixing @ self.x) ** 2])
        sums = np.full(self.rows, self.total)
        wanted = np.concatenate([sums, self.total * self.x, np.zeros(self._middle.shape[0])])
        size = self.cells + pairs + moves + 1
        low, high = np.zeros(size), np.full(size, np.inf)
        low[size - 1 - moves : size - 1], high[size - 1 - moves : size - 1] = -reach, reach
        if least is not None:
            columns = slice(self.cells, self.cells + pairs)
            low[columns], high[columns] = np.nan_to_num(least, nan=0.0), np.nan_to_num(least, nan=np.inf)
        goal, bounds = np.eye(1, size, size - 1)[0], np.stack([low, high], axis=1)
        return optimize.linprog(goal, upper, limits, equal, wanted, bounds, method="highs").x


# ---- rounding to whole counts: values on a lattice, limits of the columns, then each row by itself


def whole_table(program: Program, half: Sequence[float], e: Fraction, mirrored: bool) -> Rows | None:
    """Return the best table of whole counts near these positive values, of ratio at most e; None if none was found.

    Either the values are put on a lattice and every row is rounded with its mean exact, or the counts are rounded and
    the values follow, which takes about as many symbols as knots.
    """
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
            one_moved = itertools.product(range(len(minima)), (-1, 1))  # the smallest count of one column, by one
            nearby = [[m + step * (s == column) for s, m in enumerate(minima)] for column, step in one_moved]
            found = [(rows, m) for m in nearby if min(m) and (rows := _table(program, half, lattice, e, mirrored, m))]
            best, minima = min(found, key=lambda pair: pair[0].worst_sd(), default=(tables[-1], minima))
            if best.worst_sd() >= tables[-1].worst_sd():
                break
    return tables


def _minima(program: Program, half: Any, e: Fraction) -> Iterator[list[int]]:
    """Yield smallest counts of half the columns to try: rounded one by one, then with a margin from the limits."""
    if minima := program.whole_minima(half):
        yield minima
    for margin in (1, 2, int(e) + 2, 2 * int(e) + 8):
        if solution := program.solve(half, margin=margin):
            yield [max(1, int(m)) for m in solution.least]


def _table(
    program: Program, half: Any, lattice: int | None, e: Fraction, mirrored: bool, minima: list[int]
) -> Rows | None:
    """Return whole counts within the limits of their columns: unbiased for these values on a lattice, or just near."""
    from scipy.optimize import linprog

    limits = [(m, int(e * m)) for m in minima + minima[: program.symbols // 2][::-1]]
    values, total = program.values(half), program.total
    ends = np.array([np.ones(len(values)), values])
    stored: list[tuple[int, ...]] = []
    for x in program.x:
        # real counts of the smallest variance with the sum `total` and the mean x
        best = linprog(values**2, A_eq=ends, b_eq=[total, total * x], bounds=limits, method="highs").x
        row: tuple[int, ...] | None = None
        if best is not None and x == 0:
            row = middle_row(((best + best[::-1]) / 2).tolist(), limits, total)
        elif best is not None and lattice:
            steps = [round(v) for v in values * lattice]
            row = unbiased_row(best.tolist(), limits, total, steps, round(x * total * lattice))
        elif best is not None:
            row = nearest_row(best.tolist(), limits, total)
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
