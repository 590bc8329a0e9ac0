"""Design rows: find the smallest table whose worst variance is near the best known.

For given values the best counts are a linear program. The values are moved along its tangent, within a reach that
grows and shrinks with success. Then everything is rounded: the values to a lattice, the smallest count of every
column, and each row by itself, since rows are independent once the limits of the columns are fixed. A column's largest
count is the smallest one times a lower bound of exp(epsilon), rounded down: the certificate holds by construction.
"""

import bisect
import functools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from sensorsim._util.errors import InputError
from sensorsim.noise.baseline import EPSILONS, best_known_sd, one_bit_sd
from sensorsim.noise.certificate import exp_bounds
from sensorsim.noise.rows_counts import MOST_KNOTS, Rows
from sensorsim.noise.rows_program import Program
from sensorsim.noise.rows_rounding import whole_table

# Up to this epsilon, the worst sd over the best known. A margin is left to the documented 1.02, 1.04 and 1.10, since
# the best known is itself found by a program with finitely many knots.
GOALS = ((Fraction(8, 5), 1.018), (Fraction(16, 5), 1.037), (Fraction(8), 1.08))
COARSER = 1.03  # times that for counts out of 2^8
ONE_BIT_WITHIN = 1.01  # of the best: then a table is not worth its bytes
MOST_BYTES, MOST_LOOKUP_BYTES = 600, 9 * 256
MOST_SYMBOLS = 32
MOST_EPSILON = GOALS[-1][0]  # no finer tables are made
_STEPS, _GAIN, _LEAST_REACH = 40, 5e-4, 1e-4  # of the search for values; gain and reach are relative


def design(
    epsilon: Fraction,
    symbols: int | None = None,
    knots: int | None = None,
    bits: int = 16,
    most_bytes: int | None = None,
) -> Rows:
    """Design rows with ratio() <= exp(epsilon), proved in integers, as small as the goals allow.

    `most_bytes` limits Rows.table_bytes: 600 unless given, 2304 for a look-up (bits = 8). The table for an epsilon
    above 8 is that for 8.
    """
    _check(epsilon, symbols, knots, bits)
    epsilon = min(epsilon, MOST_EPSILON)
    most = most_bytes if most_bytes is not None else MOST_LOOKUP_BYTES if bits == 8 else MOST_BYTES
    if knots == 2 or symbols == 2 or (knots is None and symbols is None and _one_bit_suffices(epsilon)):
        return one_bit(epsilon, bits)
    best: Rows | None = None
    for rows in _candidates(epsilon, _groups(symbols, knots, bits, most), bits):
        if best is None or rows.worst_sd() < best.worst_sd():
            best = rows
        if best.worst_sd() <= _goal(epsilon, bits):
            break
    if knots is None and symbols is None and bits == 8:  # so coarse that more symbols may be worse, or impossible
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


def _check(epsilon: Fraction, symbols: int | None, knots: int | None, bits: int) -> None:
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


def _one_bit_suffices(epsilon: Fraction) -> bool:
    """Return whether one bit is near the best known: the smaller epsilon, the less more symbols gain."""
    known = best_known_sd(float(epsilon))
    return epsilon < EPSILONS[0] if known is None else one_bit_sd(float(epsilon)) <= ONE_BIT_WITHIN * known


def _goal(epsilon: Fraction, bits: int) -> float:
    """Return the goal for the worst standard deviation; 0, so the best that fits, if there is no baseline."""
    known = best_known_sd(float(epsilon))
    if known is None:
        return 0.0
    return known * next(factor for limit, factor in GOALS if epsilon <= limit) * (COARSER if bits == 8 else 1)


def _groups(symbols: int | None, knots: int | None, bits: int, most: int) -> list[list[tuple[int, int]]]:
    """Return sizes (knots, symbols) that fit, smallest first, in one group for each number of knots.

    Three symbols are tried only on request: where they are good, one bit is as good.
    """
    groups = []
    for k in (3, 5, 9, 17, 33) if knots is None else (knots,):
        wanted = range(4, min(k + 1, MOST_SYMBOLS) + 1) if symbols is None else (symbols,)
        stored = (k + 1) // 2 if _mirrored(k) else k
        groups.append([(k, m) for m in wanted if stored * (256 if bits == 8 else 2 * (m - 1)) <= most])
    return [group for group in groups if group]


def _mirrored(knots: int) -> bool:
    """Return whether a table is mirrored: only the finest ones are worth two instructions on the device."""
    return knots == MOST_KNOTS


def _candidates(epsilon: Fraction, groups: list[list[tuple[int, int]]], bits: int) -> Iterator[Rows]:
    """Yield tables to try: those within the goal before rounding, smallest first, and then the best that fits."""
    goal = _goal(epsilon, bits)
    for group in groups:
        if _settled(epsilon, *group[-1])[0] <= goal:
            enough = bisect.bisect_left(group, True, key=lambda size: _settled(epsilon, *size)[0] <= goal)
            for size in group[enough:]:
                yield from _rounded(epsilon, bits, *size)
    for size in sorted((group[-1] for group in groups), key=lambda size: _settled(epsilon, *size)[0]):
        tables = list(_rounded(epsilon, bits, *size))
        if tables:
            yield from tables
            return


@functools.lru_cache(maxsize=256)
def _settled(epsilon: Fraction, knots: int, symbols: int) -> tuple[float, tuple[float, ...]]:
    """Return the worst standard deviation, range 1, and the positive values, range -1..1, before rounding."""
    program = _program(epsilon, knots, symbols)
    found = [_descend(program, start) for start in _starts(float(epsilon), symbols)]
    return min(((math.sqrt(variance) / 2, tuple(half.tolist())) for variance, half in found), default=(math.inf, ()))


def _program(epsilon: Fraction, knots: int, symbols: int, bits: int = 16) -> Program:
    return Program(float(exp_bounds(epsilon)[0]), knots, symbols, 1 << bits)


def _starts(epsilon: float, symbols: int) -> Iterator[Any]:
    """Yield starts: evenly spread values, and denser ones outside, to the end of the piecewise mechanism."""
    import numpy as np

    s = math.exp(epsilon / 2)
    end = (s + 1) / (s - 1)
    even = np.arange(1 + symbols % 2, symbols, 2) / (symbols - 1)  # the positive ones of -1 .. 1
    for power, beyond in ((1.0, 1.1), (0.85, 0.9), (0.85, 1.2), (0.5, 0.8)):
        yield (1 + (end - 1) * beyond) * even**power


def _descend(program: Program, half: Any) -> tuple[float, Any]:
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


def _rounded(epsilon: Fraction, bits: int, knots: int, symbols: int) -> Iterator[Rows]:
    """Yield the best table of whole counts near the values found, if there is one."""
    half = _settled(epsilon, knots, symbols)[1]
    rows = whole_table(_program(epsilon, knots, symbols, bits), half, exp_bounds(epsilon)[0], _mirrored(knots))
    if rows:
        yield rows
