"""L1 sensitivities: what the paper prints, the bound that its argument gives, and what holds.

x lies in [0, 1]; a is the expansion point, n the features, C the clipping norm, c the stabilization constant, l the
hidden units. Each has up to three functions:

* `…_printed`: as printed, so that the paper can be replicated;
* the plain name: the bound that the printed argument gives once its errors are corrected, 2·max over x of a norm;
* `…_distance`: the sensitivity itself, the largest L1 distance between the releases of two records.

P1 … P12 number the points of its privacy part that do not hold as printed, each explained at its function.
"""

import math
from collections.abc import Sequence

JOINT_RELEASE_FACTOR = math.sqrt(2)
"""P1: alpha2 and alpha3 each with Lap(Delta/(sqrt2*eps)) cost sqrt2*eps together: sums of Laplace are not Laplace."""


def sigmoid(a: float) -> float:
    return 1 / (1 + math.exp(-a)) if a >= 0 else math.exp(a) / (1 + math.exp(a))


def softplus(a: float) -> float:
    return max(a, 0.0) + math.log1p(math.exp(-abs(a)))


def spof(n: int = 14) -> float:
    """Return 3n/2, of alpha2 and alpha3 at a = 0: printed, bound and distance. alpha2 moves by 1, alpha3 by 1/2."""
    return 1.5 * n


def release(n: int = 14) -> float:
    """Return n: only alpha2 needs noise, since alpha3 is -alpha2/2 by post-processing, or the public constant 1/8."""
    return float(n)


def spof_term_printed(a: float) -> float:
    """Return the last line printed for Delta_SPOF(i): 4.6931 at a = 0, least (4.0348) at a = 0.9057."""
    s = sigmoid(a)
    return softplus(a) + 2 * (softplus(-a) / softplus(a) + 2 * s * (1 - s) + s)


def spof_term(a: float) -> float:
    """Return the bound of P8: 2*max over x of the six absolute derivatives, at x = 0 or 1. Least at a = 0: 2.8863."""
    s = sigmoid(a)
    return 2 * max(softplus(a) + s, softplus(-a) + 1 - s) + 2 * s * (1 - s)


def spof_term_distance(a: float) -> float:
    """Return the largest L1 distance of the six derivatives of two records, each x or 1 - x times a number.

    They move by |x - x'| times the sum of the numbers; the bound takes twice the larger half of that sum.
    """
    s = sigmoid(a)
    return softplus(a) + softplus(-a) + 1 + 2 * s * (1 - s)


def coefficients_distance(a: float) -> float:
    """Return the distance of the three printed coefficients of (z - a)^r: 3/2 at a = 0.

    They are softplus(a) - a·x, sigma(a) - x and (2x - 1)·sigma'(a), each the sum of two of the six derivatives.
    """
    s = sigmoid(a)
    return abs(a) + 1 + 2 * s * (1 - s)


def stabilized_printed(c_j: float, n: int = 14) -> float:
    """Return Delta + n*c_j*(c_j/2 + 2), c_j = c·h_j. P2: h_j is private, so a noise scale made from it leaks x."""
    return spof(n) + n * c_j * (c_j / 2 + 2)


def stabilized(c: float, l: int = 7, n: int = 14) -> float:
    """Return the bound of P2: as printed, with the public bound c_j <= c*l (each of l hidden units is at most 1)."""
    return stabilized_printed(c * l, n)


def stabilized_distance(c: float, l: int = 7, n: int = 14, constant: bool = False) -> float:
    """Return the distance of the stabilized alpha2 and alpha3.

    They are the coefficients of z and z² in alpha2·(z + c_j) + alpha3·(z + c_j)². With alpha3 = -alpha2/2 the
    linear one is alpha2·(1 - c_j), not the printed alpha2·(1 + 2c_j). Two records with
    alpha2 = 1/2 and -1/2 and the same c_j are furthest apart: |1 - c_j| + 1/2 a feature, largest at c_j = 0 or at c·l,
    which weights approach. `constant` adds the term without z, alpha2·(c_j - c_j²/2); no gradient reads it.
    """
    most = c * l
    linear = max(1.0, most**2 / 2 - 1) if constant else max(1.0, most - 1)
    return n * (linear + 0.5)


def typical_c_j(c: float = 2.5, l: int = 7) -> float:
    """Return c*l/2, of hidden units near 1/2. P3: at 8.75 the printed bound is 802 against 21: 38 times the noise."""
    return c * l / 2


def dpsgd_term_printed(a: float) -> float:
    """Return 2·sigma(a) per feature, for gradients that are not clipped."""
    return 2 * sigmoid(a)


def dpsgd_term(a: float) -> float:
    """Return the bound of P7, 2·max(sigma(a), sigma(-a)): sigma(a) - x is largest at x = 0 or at x = 1."""
    return 2 * max(sigmoid(a), sigmoid(-a))


def dpsgd_unclipped_printed(a: float = 0.0, n: int = 14) -> float:
    return n * dpsgd_term_printed(a)


def dpsgd_unclipped(n: int = 14) -> float:
    """Return n, for every a: two gradients differ by x' - x, which the triangle inequality of P7 overstates."""
    return float(n)


def dpsgd_clipped_printed(C: float, n: int = 14) -> float:
    return 2 * n * C


def dpsgd_clipped(C: float, n: int = 14) -> float:
    """Return the bound of P6: an L2 norm of at most C is an L1 norm of at most C·sqrt(n)."""
    return 2 * C * math.sqrt(n)


def dpsgd(C: float, n: int = 14, a: float = 0.0) -> float:
    """Return the largest L1 distance of two gradients clipped to C: min(n, 2C·sqrt(n)) at a = 0.

    A gradient lies in the box [-sigma(-a), sigma(a)]^n, and clipping maps the box onto its part in the ball of radius
    C. Two points u and v of that part are furthest apart where u - v has k plus signs, for the best k. Either then has
    the largest L1 norm that k sides sigma(a) and n - k sides sigma(-a) allow, or the reverse. That norm is concave in
    k, so the best k is n/2.
    """
    k = n // 2
    return _largest_norm(k, n, C, a) + _largest_norm(n - k, n, C, a)


def _largest_norm(k: int, n: int, C: float, a: float) -> float:
    """Return the largest sum of n numbers with a sum of squares up to C², k of them up to sigma(a), n - k to sigma(-a).

    They are equal if allowed; otherwise the lower limit is reached, and the rest of C² goes to the others.
    """
    (low, lows), (high, highs) = sorted([(sigmoid(a), k), (sigmoid(-a), n - k)])
    if low * math.sqrt(n) >= C:
        return C * math.sqrt(n)
    left = C**2 - lows * low**2
    return lows * low + min(highs * high, math.sqrt(highs * left))


def largest_gradient_norm(a: float = 0.0, n: int = 14) -> float:
    """Return the norm of the longest gradient: sqrt(n)·max(sigma(a), sigma(-a))."""
    return math.sqrt(n) * max(sigmoid(a), sigmoid(-a))


def never_clips(n: int, C: float, a: float = 0.0, anywhere: bool = False) -> bool:
    """Return whether no gradient is longer than C: at the expansion point a, or `anywhere`, where sigma nears 1."""
    return (math.sqrt(n) if anywhere else largest_gradient_norm(a, n)) <= C


def noisy_inputs_printed(b: Sequence[float], n: int = 14) -> float:
    """Return b_j·3n/2, b_j the sum over the l hidden units. P9: without noise every b is 1 and the sum is l, not 1."""
    return sum(b) * spof(n)


def noisy_inputs(b_j: float, n: int = 14) -> float:
    """Return bound and distance of P12: alpha2 scales with b_j, alpha3 with b_j² (printed: both with b_j)."""
    return n * (abs(b_j) + b_j**2 / 2)
