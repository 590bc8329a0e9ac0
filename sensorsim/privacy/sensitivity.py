"""Sensitivities: what the paper prints, what holds, and why they differ.

x lies in [0, 1]; a is the expansion point, n the features, C the clipping norm, c the stabilization constant, l the
hidden units. Printed ones are built as printed, so that the paper can be replicated; the others are what noise must
be scaled to. P1 … P12 number the points of its privacy part that do not hold as printed, each explained where it
stands.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

JOINT_RELEASE_FACTOR = math.sqrt(2)
"""P1: alpha2 and alpha3 each with Lap(Delta/(sqrt2*eps)) cost sqrt2*eps together: sums of Laplace are not Laplace."""


@dataclass(frozen=True)
class Sensitivity:
    """One row: the printed and the true value, and the reason for the difference."""

    name: str
    formula: str
    printed: float
    true: float
    why: str


def sigmoid(a: float) -> float:
    return 1 / (1 + math.exp(-a)) if a >= 0 else math.exp(a) / (1 + math.exp(a))


def softplus(a: float) -> float:
    return max(a, 0.0) + math.log1p(math.exp(-abs(a)))


def spof(n: int = 14) -> float:
    """3n/2, L1, of alpha2 and alpha3 at a = 0. Printed and true alike: alpha2 moves by 1, alpha3 by 1/2."""
    return 1.5 * n


def exact(n: int = 14) -> float:
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


def stabilized_printed(c_j: float, n: int = 14) -> float:
    """Delta + n*c_j*(c_j/2 + 2), c_j = c·h_j. P2: h_j is private, so a noise scale made from it tells about x."""
    return spof(n) + n * c_j * (c_j / 2 + 2)


def stabilized(c: float, l: int = 7, n: int = 14) -> float:
    """P2: the same with the public bound c_j <= c*l (each of l hidden units is at most 1)."""
    return stabilized_printed(c * l, n)


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


def largest_gradient_norm(a: float = 0.0, n: int = 14) -> float:
    """No gradient is longer, so a larger C never clips: sqrt(n)·max(sigma(a), sigma(-a))."""
    return math.sqrt(n) * max(sigmoid(a), sigmoid(-a))


def dpsgd(C: float, n: int = 14) -> float:
    """What holds for a given C: clipping shortens sigma(a) - x towards 0, so no component ever moves by more than 1."""
    return min(dpsgd_unclipped(n), dpsgd_clipped(C, n))


def noisy_inputs_printed(b: Sequence[float], n: int = 14) -> float:
    """b_j·3n/2, b_j the sum over the l hidden units. P9: without noise every b is 1 and the sum is l, not 1."""
    return sum(b) * spof(n)


def noisy_inputs(b_j: float, n: int = 14) -> float:
    """P12: alpha2 scales with b_j, alpha3 with b_j² (printed: both with b_j)."""
    return n * (abs(b_j) + b_j**2 / 2)


def table(a: float = 0.0, n: int = 14, C: float = 4.0, c: float = 2.5, l: int = 7) -> list[Sensitivity]:
    """Every sensitivity, printed beside true."""
    c_j = typical_c_j(c, l)
    never = "; here n is less, and holds" if dpsgd(C, n) < dpsgd_clipped(C, n) else ""
    rows = [
        ("SPOF, per feature at a", "Delta_SPOF(i)", spof_term_printed(a), spof_term(a)),
        ("SPOF, at a = 0", "3n/2", spof(n), spof(n)),
        ("SPOF, one release", "3n/2", spof(n), exact(n)),
        ("SPOF, stabilized", f"3n/2 + n·c_j(c_j/2+2), c_j = {c_j:g}", stabilized_printed(c_j, n), stabilized(c, l, n)),
        ("SPOF, noisy inputs, noise 0", "b_j·3n/2", noisy_inputs_printed([1.0] * l, n), noisy_inputs(1.0, n)),
        ("DP-SGD, per feature at a", "2·sigma(a)", dpsgd_term_printed(a), dpsgd_term(a)),
        ("DP-SGD, unclipped", "2n·sigma(a)", dpsgd_unclipped_printed(a, n), dpsgd_unclipped(n)),
        ("DP-SGD, clipped", "2nC", dpsgd_clipped_printed(C, n), dpsgd_clipped(C, n)),
    ]
    reasons = [
        "the printed last line follows from a slip of algebra before it; the true minimum is at a = 0",
        "alike; but both coefficients at Lap(Delta/(√2·eps)) cost √2·eps together",
        "alpha3 = -alpha2/2 follows from alpha2 by post-processing: n",
        f"c_j = c·h_j is private, so a scale made from it tells about x; the public bound is c·l = {c * l:g}",
        "without noise the printed b_j sums to l, not to 1; and alpha3 scales with b_j²",
        "the larger of sigma(a) and sigma(-a); the same where a >= 0",
        "two gradients differ by x' - x, whatever a is: n",
        "an L2 norm of C is an L1 norm of C·√n at most: 2C·√n" + never,
    ]
    return [Sensitivity(*row, why) for row, why in zip(rows, reasons, strict=True)]
