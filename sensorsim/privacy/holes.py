"""The certificate of a table of samples: the delta that its holes leave, exact for one number, composed for all."""

from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sensorsim.privacy import pld
from sensorsim.privacy.certificate import EVERY_PAIR, THE_ENDS, Certificate
from sensorsim.privacy.rational import exp_bounds, log_above

if TYPE_CHECKING:
    from sensorsim.privacy.kinds.counted import CountedTable

_PAIR_WORK = 1 << 22  # runs of the table times pairs of inputs up to which every pair is examined


def certify_samples(table: "CountedTable") -> Certificate:
    """Delta of a record: alpha2 moves by up to D lattice steps, alpha3 (where it is released) by half as many."""
    values, counts = _runs(table)
    D = 1 << table.frac_bits
    spans = [D, D // 2][: table.coefficients]
    every = (D + 1) ** 2 * len(values) <= _PAIR_WORK
    shares = [Fraction(span, D) / table.scale for span in spans]
    pairs = [_pairs(values, counts, span, table.limit, every) for span in spans]
    ratio = _worst_ratio(pairs)
    delta_release = max(_exact_delta(p, q, share) for some, share in zip(pairs, shares, strict=True) for p, q in some)
    above, below = _composed(pairs, table.release, float(table.epsilon), every)
    release = None if ratio is None else log_above(ratio)
    record = None if release is None else release * table.release * table.coefficients
    return Certificate(
        ratio, release, record, _up(delta_release), _up(above), Decimal(repr(below)), EVERY_PAIR if every else THE_ENDS
    )


def _runs(table: "CountedTable") -> tuple[Any, Any]:
    import numpy as np

    return np.array([v for v, _ in table.counts]), np.array([c for _, c in table.counts])


def _pairs(values: Any, counts: Any, span: int, limit: int | None, every: bool) -> list[tuple[Any, Any]]:
    """Counts (p, q) over the outputs of two inputs, both orders: every pair, or only the two ends, which come last."""
    import numpy as np

    if every and limit is None:  # without a clamp only the difference matters
        inputs = [(0, d) for d in range(1, span + 1)]
    elif every:
        inputs = [(a, b) for a in range(span + 1) for b in range(a + 1, span + 1) if b - a < span] + [(0, span)]
    else:
        inputs = [(0, span)]
    found = []
    for a, b in inputs:
        outputs = np.concatenate([values + a - span // 2, values + b - span // 2])
        if limit is not None:
            outputs = np.clip(outputs, -limit, limit)
        cells, where = np.unique(outputs, return_inverse=True)
        p = np.bincount(where[: len(values)], counts, len(cells)).astype(np.int64)
        q = np.bincount(where[len(values) :], counts, len(cells)).astype(np.int64)
        found += [(p, q), (q, p)]
    return found


def _worst_ratio(pairs: list[list[tuple[Any, Any]]]) -> Fraction | None:
    worst = Fraction(1)
    for some in pairs:
        for p, q in some:
            if ((p > 0) & (q == 0)).any():
                return None
            at = (p[q > 0] / q[q > 0]).argmax()
            worst = max(worst, Fraction(int(p[q > 0][at]), int(q[q > 0][at])))
    return worst


def _exact_delta(p: Any, q: Any, epsilon: Fraction) -> Fraction:
    """Hockey-stick divergence in integers, with a lower bound of exp(epsilon), so never too small."""
    import numpy as np

    e = exp_bounds(epsilon)[0]
    distinct, times = np.unique(np.stack([p, q]), axis=1, return_counts=True)
    over = 0
    for a, b, k in zip(*distinct.tolist(), times.tolist(), strict=True):
        over += k * max(0, a * e.denominator - b * e.numerator)
    return Fraction(over, int(p.sum()) * e.denominator)


def _composed(pairs: list[list[tuple[Any, Any]]], times: int, epsilon: float, every: bool) -> tuple[float, float]:
    """Upper and lower bound of the record's delta."""
    import numpy as np

    span = max(
        float(abs(np.log(p[(p > 0) & (q > 0)] / q[(p > 0) & (q > 0)])).max(initial=1e-3)) for s in pairs for p, q in s
    )
    step = max(pld.step_for(span, times * len(pairs)), 1e-3 if every else 0.0)
    ends = []
    for way in (0, 1):  # x = 0 against x = 1, and the other way round: the two ends are the last pair
        # alpha3 falls where alpha2 rises
        parts = [(pld.from_counts(*some[-2 + (way + i) % 2], step), times) for i, some in enumerate(pairs)]
        ends.append(pld.compose(parts))
    below = max(end.delta_below(epsilon) for end in ends)
    if not every:
        return max(end.delta(epsilon) for end in ends), below
    return pld.compose([(pld.from_counts(*pld.dominating(some), step), times) for some in pairs]).delta(epsilon), below


def _up(x: Fraction | float) -> Decimal:
    """Twelve decimals, rounded up."""
    exact = Fraction(x)
    scaled = -(-exact.numerator * 10**12 // exact.denominator)
    return (Decimal(scaled) / 10**12).quantize(Decimal("1e-12"), rounding=ROUND_CEILING)
