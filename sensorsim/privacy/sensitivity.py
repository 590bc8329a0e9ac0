"""Sensitivities: what the paper prints, the bound that its argument gives, what holds, and why they differ.

x lies in [0, 1]; a is the expansion point, n the features, C the clipping norm, c the stabilization constant, l the
hidden units. Each has up to three functions:

* `…_printed`: as printed, so that the paper can be replicated;
* the plain name: the bound that the printed argument gives where its slips are put right, 2·max over x of a norm;
* `…_distance`: the sensitivity itself, the largest L1 distance of what two records release.

P1 … P12 number the points of its privacy part that do not hold as printed, each explained where it stands.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

JOINT_RELEASE_FACTOR = math.sqrt(2)
"""P1: alpha2 and alpha3 each with Lap(Delta/(sqrt2*eps)) cost sqrt2*eps together: sums of Laplace are not Laplace."""


@dataclass(frozen=True)
class Sensitivity:
    """One row: printed, the bound that the argument gives, the sensitivity, and the reason for the differences."""

    name: str
    formula: str
    printed: float
    bound: float
    sensitivity: float
    why: str


def sigmoid(a: float) -> float:
    return 1 / (1 + math.exp(-a)) if a >= 0 else math.exp(a) / (1 + math.exp(a))


def softplus(a: float) -> float:
    return max(a, 0.0) + math.log1p(math.exp(-abs(a)))


def spof(n: int = 14) -> float:
    """3n/2, L1, of alpha2 and alpha3 at a = 0. Printed, bound and distance alike: alpha2 moves by 1, alpha3 by 1/2."""
    return 1.5 * n


def release(n: int = 14) -> float:
    """n: only alpha2 needs noise, since alpha3 is -alpha2/2 by post-processing, or the public constant 1/8."""
    return float(n)


def spof_term_printed(a: float) -> float:
    """The last line printed for Delta_SPOF(i): 4.6931 at a = 0, least (4.0348) at a = 0.9057."""
    s = sigmoid(a)
    return softplus(a) + 2 * (softplus(-a) / softplus(a) + 2 * s * (1 - s) + s)


def spof_term(a: float) -> float:
    """P8: 2*max over x of the six absolute derivatives; linear in x, so at x = 0 or 1. 2.8863 at a = 0, its minimum."""
    s = sigmoid(a)
    return 2 * max(softplus(a) + s, softplus(-a) + 1 - s) + 2 * s * (1 - s)


def spof_term_distance(a: float) -> float:
    """The six derivatives are x or 1 - x times a number each, so they move by |x - x'| times the sum of the numbers.

    The bound takes twice the larger of the numbers' two halves, this takes both: the same at a = 0 alone.
    """
    s = sigmoid(a)
    return softplus(a) + softplus(-a) + 1 + 2 * s * (1 - s)


def coefficients_distance(a: float) -> float:
    """Of the three printed coefficients of (z - a)^r: softplus(a) - a·x, sigma(a) - x, (2x - 1)·sigma'(a).

    Each is the sum of two of the six derivatives, so it moves by less than they do: 3/2 at a = 0.
    """
    s = sigmoid(a)
    return abs(a) + 1 + 2 * s * (1 - s)


def stabilized_printed(c_j: float, n: int = 14) -> float:
    """Delta + n*c_j*(c_j/2 + 2), c_j = c·h_j. P2: h_j is private, so a noise scale made from it tells about x."""
    return spof(n) + n * c_j * (c_j / 2 + 2)


def stabilized(c: float, l: int = 7, n: int = 14) -> float:
    """P2: the same with the public bound c_j <= c*l (each of l hidden units is at most 1)."""
    return stabilized_printed(c * l, n)


def stabilized_distance(c: float, l: int = 7, n: int = 14, constant: bool = False) -> float:
    """Of the stabilized alpha2 and alpha3: the coefficients of z and z² in alpha2·(z + c_j) + alpha3·(z + c_j)².

    With alpha3 = -alpha2/2 the linear one is alpha2·(1 - c_j), not the printed alpha2·(1 + 2c_j). Two records with
    alpha2 = 1/2 and -1/2 and the same c_j are furthest apart: |1 - c_j| + 1/2 a feature, largest at c_j = 0 or at c·l,
    which weights approach. `constant` adds the term without z, alpha2·(c_j - c_j²/2); no gradient reads it.
    """
    most = c * l
    linear = max(1.0, most**2 / 2 - 1) if constant else max(1.0, most - 1)
    return n * (linear + 0.5)


def typical_c_j(c: float = 2.5, l: int = 7) -> float:
    """P3: hidden units near 1/2 give c_j = c*l/2 = 8.75, so the printed bound is 802 against 21: 38 times the noise."""
    return c * l / 2


def dpsgd_term_printed(a: float) -> float:
    """2·sigma(a) per feature where no gradient is clipped."""
    return 2 * sigmoid(a)


def dpsgd_term(a: float) -> float:
    """P7: 2·max(sigma(a), sigma(-a)): sigma(a) - x is largest at x = 0 or x = 1, whichever side a is on."""
    return 2 * max(sigmoid(a), sigmoid(-a))


def dpsgd_unclipped_printed(a: float = 0.0, n: int = 14) -> float:
    return n * dpsgd_term_printed(a)


def dpsgd_unclipped(n: int = 14) -> float:
    """n, for every a: the difference of two gradients is x' - x, which the triangle inequality of P7 overstates."""
    return float(n)


def dpsgd_clipped_printed(C: float, n: int = 14) -> float:
    return 2 * n * C


def dpsgd_clipped(C: float, n: int = 14) -> float:
    """P6: an L2 norm of at most C is an L1 norm of at most C·sqrt(n)."""
    return 2 * C * math.sqrt(n)


def dpsgd(C: float, n: int = 14, a: float = 0.0) -> float:
    """What holds for a given C: the largest L1 distance of two clipped gradients. min(n, 2C·sqrt(n)) at a = 0.

    A gradient lies in the box [-sigma(-a), sigma(a)]^n, and clipping maps the box onto its part in the ball of radius
    C. Two points u and v of that part are furthest apart where u - v has k plus signs, for the best k. Either then has
    the largest L1 norm that k sides sigma(a) and n - k sides sigma(-a) allow, or the reverse. That norm is concave in
    k, so the best k is n/2.
    """
    k = n // 2
    return _largest_norm(k, n, C, a) + _largest_norm(n - k, n, C, a)


def _largest_norm(k: int, n: int, C: float, a: float) -> float:
    """The largest sum of n numbers with squares that sum to C² at most, k of them up to sigma(a), others to sigma(-a).

    All the same if that is allowed; otherwise the lower side is reached, and what is left of C² goes to the others.
    """
    (low, lows), (high, highs) = sorted([(sigmoid(a), k), (sigmoid(-a), n - k)])
    if low * math.sqrt(n) >= C:
        return C * math.sqrt(n)
    left = C**2 - lows * low**2
    return lows * low + min(highs * high, math.sqrt(highs * left))


def largest_gradient_norm(a: float = 0.0, n: int = 14) -> float:
    """The longest gradient: sqrt(n)·max(sigma(a), sigma(-a))."""
    return math.sqrt(n) * max(sigmoid(a), sigmoid(-a))


def never_clips(n: int, C: float, a: float = 0.0, anywhere: bool = False) -> bool:
    """Whether no gradient is longer than C: at the expansion point a, or `anywhere`, as at the prediction z.

    sigma(z) comes as near to 0 and to 1 as one likes, so anywhere the norm comes near sqrt(n).
    """
    return (math.sqrt(n) if anywhere else largest_gradient_norm(a, n)) <= C


def noisy_inputs_printed(b: Sequence[float], n: int = 14) -> float:
    """b_j·3n/2, b_j the sum over the l hidden units. P9: without noise every b is 1 and the sum is l, not 1."""
    return sum(b) * spof(n)


def noisy_inputs(b_j: float, n: int = 14) -> float:
    """P12: alpha2 scales with b_j, alpha3 with b_j² (printed: both with b_j). Bound and distance alike."""
    return n * (abs(b_j) + b_j**2 / 2)


def table(a: float = 0.0, n: int = 14, C: float = 4.0, c: float = 2.5, l: int = 7) -> list[Sensitivity]:
    """Every sensitivity: printed, bound, what holds."""
    return [*_spof_rows(a, n, c, l), *_dpsgd_rows(a, n, C)]


def _spof_rows(a: float, n: int, c: float, l: int) -> list[Sensitivity]:
    c_j = typical_c_j(c, l)
    noisy = noisy_inputs(1.0, n)
    with_constant = stabilized_distance(c, l, n, constant=True)
    return [
        Sensitivity(
            *("SPOF, per feature at a", "Delta_SPOF(i)"),
            *(spof_term_printed(a), spof_term(a), spof_term_distance(a)),
            "the printed last line follows from a slip of algebra; the least bound is at a = 0. The distance is of the "
            f"six derivatives; the three coefficients that they sum to move by {coefficients_distance(a):.4g}",
        ),
        Sensitivity(
            *("SPOF, at a = 0", "3n/2", spof(n), spof(n), spof(n)),
            "alike; but both coefficients at Lap(Delta/(√2·eps)) cost √2·eps together",
        ),
        Sensitivity(
            *("SPOF, one release", "3n/2", spof(n), release(n), release(n)),
            "alpha3 = -alpha2/2 follows from alpha2 by post-processing: n",
        ),
        Sensitivity(
            *("SPOF, stabilized", f"3n/2 + n·c_j(c_j/2+2), c_j = {c_j:g}"),
            *(stabilized_printed(c_j, n), stabilized(c, l, n), stabilized_distance(c, l, n)),
            f"c_j = c·h_j is private, so a scale made from it tells about x; the bound takes c·l = {c * l:g}. It keeps "
            "the printed alpha2·(1 + 2c_j), which is alpha2·(1 - c_j), and the term without z, which no gradient "
            f"reads: with that term {with_constant:g}. alpha2 and alpha3 alone, with c_j left in z: {spof(n):g}",
        ),
        Sensitivity(
            *("SPOF, noisy inputs, noise 0", "b_j·3n/2", noisy_inputs_printed([1.0] * l, n), noisy, noisy),
            "without noise the printed b_j sums to l, not to 1; and alpha3 scales with b_j²",
        ),
    ]


def _dpsgd_rows(a: float, n: int, C: float) -> list[Sensitivity]:
    clipped = "here no gradient is longer than C" if never_clips(n, C, a) else "here some gradients are longer than C"
    return [
        Sensitivity(
            *("DP-SGD, per feature at a", "2·sigma(a)", dpsgd_term_printed(a), dpsgd_term(a), dpsgd_unclipped(1)),
            "the bound takes the larger of sigma(a) and sigma(-a); two gradients differ by x' - x: 1 for every a",
        ),
        Sensitivity(
            *("DP-SGD, unclipped", "2n·sigma(a)"),
            *(dpsgd_unclipped_printed(a, n), n * dpsgd_term(a), dpsgd_unclipped(n)),
            "the row above, n times",
        ),
        Sensitivity(
            *("DP-SGD, clipped", "2nC", dpsgd_clipped_printed(C, n), dpsgd_clipped(C, n), dpsgd(C, n, a)),
            "an L2 norm of C is an L1 norm of C·√n at most: 2C·√n; and no component moves by more than 1: n at most; "
            + clipped,
        ),
    ]
