"""Certificates: what a noise table protects, proved in integers.

Neighbours are any two records. A rows or stairs table has delta = 0 and the epsilon of its worst likelihood ratio,
exactly. A naive or quantile table has a support mismatch: outputs that one input can give and another cannot. Its
certificate is the delta that remains at the nominal epsilon, exact for one number and composed over the record by
privacy-loss distributions. No floating-point number decides whether a table is private.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sensorsim.accounting.composition import CELLS, compose, dominating, from_counts, prove
from sensorsim.accounting.composition import format_epsilon as format_epsilon
from sensorsim.accounting.composition import format_epsilon_column as format_epsilon_column

if TYPE_CHECKING:
    from sensorsim.noise.kinds.sample_table import CountedTable
    from sensorsim.noise.noise_table import NoiseTable

EVERY_PAIR = "every pair of records"
THE_ENDS = "every feature 0 against every feature 1"

BITS = 192  # the bounds of exp lie within 2^-180 of each other for exponents up to 64
_GUARD = 64
_PAIR_WORK = 1 << 22  # values of the table times pairs of inputs up to which every pair is examined


@dataclass(frozen=True)
class Certificate:
    """Bounds that hold for the neighbours named; None is an unbounded loss."""

    ratio: Fraction | None  # largest likelihood ratio of one noisy number
    epsilon_release: Decimal | None  # its logarithm, rounded up
    epsilon_record: Decimal | None  # with delta = 0, over all that is released of a record, rounded up
    delta_release: Decimal  # of one number at its share of the nominal epsilon, rounded up
    delta_record: Decimal  # of a record at the nominal epsilon, an upper bound
    delta_record_below: Decimal  # and a lower bound: between them lies the discretisation error
    neighbours: str

    def holds(self, epsilon: Decimal, delta: Decimal = Decimal(0)) -> bool:
        """Return whether a record is (epsilon, delta)-private. Every bound is on the safe side."""
        pure = self.epsilon_record is not None and self.epsilon_record <= epsilon
        return self.neighbours == EVERY_PAIR and (pure or self.delta_record <= delta)


def certify(table: "NoiseTable") -> Certificate:
    """Prove what a table protects, from its counts alone; once for each table."""
    found: Certificate = prove(table)
    return found


def pure_certificate(ratio: Fraction | None, epsilon: Decimal, release: int) -> Certificate:
    """Make the certificate of the largest likelihood ratio over all inputs and outputs of one value; None: no bound."""
    zero, one = Decimal(0), Decimal(1)
    if ratio is None:
        return Certificate(None, None, None, one, one, zero, EVERY_PAIR)
    within = ratio <= exp_bounds(Fraction(epsilon) / release)[0]
    of_one = log_above(ratio)
    record = of_one * release
    if within:  # the sum of rounded logarithms may pass the budget by its last digit where the exact one does not
        record = min(record, epsilon)
    delta = zero if record <= epsilon else one  # a pure bound above the budget gives no delta there
    return Certificate(ratio, of_one, record, delta, delta, zero, EVERY_PAIR)


# ---- exp and log in rational numbers


def exp_bounds(x: Fraction) -> tuple[Fraction, Fraction]:
    """Return bounds of e^x, x >= 0, below and above: the Taylor series of x/2^k, rounded outwards, squared k times."""
    halvings = max(0, math.ceil(x).bit_length())
    bits = BITS + _GUARD + 2 * halvings
    one = 1 << bits
    scaled = x / (1 << halvings) * one  # at most one
    low, high = _series(math.floor(scaled), one, up=False), _series(math.ceil(scaled), one, up=True)
    for _ in range(halvings):
        low = (low * low) >> bits
        high = -(-(high * high) >> bits)
    return Fraction(low, one), Fraction(high, one)


def log_above(ratio: Fraction, digits: int = 12) -> Decimal:
    """Return a decimal of `digits` places whose exponential is proved to be at least `ratio` (ratio >= 1)."""
    step = Decimal(1).scaleb(-digits)
    guess = Decimal(math.log(ratio.numerator) - math.log(ratio.denominator)) - 4 * step
    candidate = max(Decimal(0), guess.quantize(step, rounding=ROUND_CEILING))
    while exp_bounds(Fraction(candidate))[0] < ratio:
        candidate += step
    return candidate


def _series(x: int, one: int, up: bool) -> int:
    """Sum x^k/k! in fixed point: rounded down and truncated, or rounded up with a bound of the remainder."""
    total, term, k = one, one, 0
    while term > 1:
        k += 1
        term = -(-term * x // (one * k)) if up else term * x // (one * k)
        total += term
    return total + 2 * term if up else total  # for x <= 1 the remainder is less than twice its first term


# ---- tables of samples: the delta of their support mismatch


def certify_samples(table: "CountedTable") -> Certificate:
    """Bound the delta of a record: alpha2 moves by up to D lattice steps, alpha3 (if released) by half as many."""
    import numpy as np

    values, counts = (np.array(column) for column in zip(*table.counts, strict=True))
    D = 1 << table.frac_bits
    spans = [D, D // 2][: table.coefficients]
    every = (D + 1) ** 2 * len(values) <= _PAIR_WORK
    pairs = [list(_output_pairs(values, counts, span, table.limit, every)) for span in spans]
    ratio: Fraction | None = Fraction(1)
    for p, q in (pair for some in pairs for pair in some):
        if ratio is None or ((p > 0) & (q == 0)).any():
            ratio = None  # an output that only one of the two inputs can give
        else:
            at = (p[q > 0] / q[q > 0]).argmax()
            ratio = max(ratio, Fraction(int(p[q > 0][at]), int(q[q > 0][at])))
    shares = [Fraction(span, D) / table.scale for span in spans]
    delta_release = max(_exact_delta(p, q, share) for some, share in zip(pairs, shares, strict=True) for p, q in some)
    above, below = _composed_delta(pairs, table.release, float(table.epsilon), every)
    release = None if ratio is None else log_above(ratio)
    record = None if release is None else release * table.release * table.coefficients
    deltas = _round_up(delta_release), _round_up(Fraction(above)), Decimal(repr(below))
    return Certificate(ratio, release, record, *deltas, EVERY_PAIR if every else THE_ENDS)


def _output_pairs(values: Any, counts: Any, span: int, limit: int | None, every: bool) -> Iterator[tuple[Any, Any]]:
    """Yield counts (p, q) over the outputs of two inputs, in both orders; the two ends of the range come last."""
    import numpy as np

    inputs = [(0, span)]
    if every and limit is None:  # without a clamp only the difference matters
        inputs = [(0, d) for d in range(1, span + 1)]
    elif every:
        inputs = [(a, b) for a in range(span + 1) for b in range(a + 1, span + 1) if b - a < span] + inputs
    for a, b in inputs:
        outputs = np.concatenate([values + a - span // 2, values + b - span // 2])
        if limit is not None:
            outputs = np.clip(outputs, -limit, limit)
        cells, where = np.unique(outputs, return_inverse=True)
        halves = where[: len(values)], where[len(values) :]
        p, q = (np.bincount(half, counts, len(cells)).astype(np.int64) for half in halves)
        yield p, q
        yield q, p


def _exact_delta(p: Any, q: Any, epsilon: Fraction) -> Fraction:
    """Return the hockey-stick divergence in integers, with a lower bound of exp(epsilon): never too small."""
    import numpy as np

    e = exp_bounds(epsilon)[0]
    distinct, times = np.unique(np.stack([p, q]), axis=1, return_counts=True)
    lots = zip(*distinct.tolist(), times.tolist(), strict=True)
    over = sum(k * max(0, a * e.denominator - b * e.numerator) for a, b, k in lots)
    return Fraction(over, int(p.sum()) * e.denominator)


def _composed_delta(pairs: list[list[tuple[Any, Any]]], times: int, epsilon: float, every: bool) -> tuple[float, float]:
    """Return an upper and a lower bound of the record's delta."""
    import numpy as np

    finite = [(p[both], q[both]) for some in pairs for p, q in some for both in [(p > 0) & (q > 0)]]
    span = max(float(abs(np.log(p / q)).max(initial=1e-3)) for p, q in finite)
    step = max(2 * span * times * len(pairs) / CELLS, 1e-6, 1e-3 if every else 0.0)
    # x = 0 against x = 1, and the reverse: the two ends are the last pair. alpha3 falls where alpha2 rises.
    ends = [
        compose([(from_counts(*some[-2 + (order + i) % 2], step), times) for i, some in enumerate(pairs)])
        for order in (0, 1)
    ]
    below = max(end.delta_below(epsilon) for end in ends)
    if not every:
        return max(end.delta(epsilon) for end in ends), below
    return compose([(from_counts(*dominating(some), step), times) for some in pairs]).delta(epsilon), below


def _round_up(exact: Fraction) -> Decimal:
    """Round up to twelve decimals."""
    scaled = -(-exact.numerator * 10**12 // exact.denominator)
    return (Decimal(scaled) / 10**12).quantize(Decimal("1e-12"), rounding=ROUND_CEILING)
