"""Sensitivities that the paper prints beside those that hold: a table with reasons, a figure, and the claims."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from sensorsim.accounting import sensitivities as s
from sensorsim.paper.recompute import CONSTANT, C, Found, L, N, agrees, claim, derived_verdict, verdict_over

APPENDIX = "Appendix on sensitivities"
OPTIMUM = "Appendix on optimising sensitivities"


@dataclass(frozen=True)
class Sensitivity:
    """One row: printed, the bound that the argument gives, the sensitivity, and the reason for the differences."""

    name: str
    formula: str
    printed: float
    bound: float
    sensitivity: float
    why: str


def sensitivity_table(a: float = 0.0, n: int = 14, C: float = 4.0, c: float = 2.5, l: int = 7) -> list[Sensitivity]:
    """Return every sensitivity: printed, bound, what holds."""
    c_j = s.typical_c_j(c, l)
    noisy = s.noisy_inputs(1.0, n)
    with_constant = s.stabilized_distance(c, l, n, constant=True)
    clipped = "here no gradient is longer than C" if s.never_clips(n, C, a) else "here some gradients are longer than C"
    return [
        Sensitivity(
            *("SPOF, per feature at a", "Delta_SPOF(i)"),
            *(s.spof_term_printed(a), s.spof_term(a), s.spof_term_distance(a)),
            "the printed last line follows from a slip of algebra; the least bound is at a = 0. The distance is of the "
            f"six derivatives; the three coefficients that they sum to move by {s.coefficients_distance(a):.4g}",
        ),
        Sensitivity(
            *("SPOF, at a = 0", "3n/2", s.spof(n), s.spof(n), s.spof(n)),
            "alike; but both coefficients at Lap(Delta/(√2·eps)) cost √2·eps together",
        ),
        Sensitivity(
            *("SPOF, one release", "3n/2", s.spof(n), s.release(n), s.release(n)),
            "alpha3 = -alpha2/2 follows from alpha2 by post-processing: n",
        ),
        Sensitivity(
            *("SPOF, stabilized", f"3n/2 + n·c_j(c_j/2+2), c_j = {c_j:g}"),
            *(s.stabilized_printed(c_j, n), s.stabilized(c, l, n), s.stabilized_distance(c, l, n)),
            f"c_j = c·h_j is private, so a scale made from it tells about x; the bound takes c·l = {c * l:g}. It keeps "
            "the printed alpha2·(1 + 2c_j), which is alpha2·(1 - c_j), and the term without z, which no gradient "
            f"reads: with that term {with_constant:g}. alpha2 and alpha3 alone, with c_j left in z: {s.spof(n):g}",
        ),
        Sensitivity(
            *("SPOF, noisy inputs, noise 0", "b_j·3n/2", s.noisy_inputs_printed([1.0] * l, n), noisy, noisy),
            "without noise the printed b_j sums to l, not to 1; and alpha3 scales with b_j²",
        ),
        Sensitivity(
            *("DP-SGD, per feature at a", "2·sigma(a)", s.dpsgd_term_printed(a), s.dpsgd_term(a), s.dpsgd_unclipped(1)),
            "the bound takes the larger of sigma(a) and sigma(-a); two gradients differ by x' - x: 1 for every a",
        ),
        Sensitivity(
            *("DP-SGD, unclipped", "2n·sigma(a)"),
            *(s.dpsgd_unclipped_printed(a, n), n * s.dpsgd_term(a), s.dpsgd_unclipped(n)),
            "the row above, n times",
        ),
        Sensitivity(
            *("DP-SGD, clipped", "2nC", s.dpsgd_clipped_printed(C, n), s.dpsgd_clipped(C, n), s.dpsgd(C, n, a)),
            "an L2 norm of C is an L1 norm of C·√n at most: 2C·√n; and no component moves by more than 1: n at most; "
            + clipped,
        ),
    ]


def sensitivity_figure(C: float = 4.0, n: int = 14) -> Any:
    """Draw the paper's figure: per-feature sensitivities against the expansion point a; printed, bound and true."""
    import numpy as np

    from sensorsim.noise.noise_figures import BLUE, GREY, RED, canvas

    marks = {BLUE: "^", RED: "o", GREY: "None"}  # red and blue are one grey in print
    figure, (axis,) = canvas(1, width=8.5)
    a = np.linspace(-3, 3, 601)
    families: dict[str, tuple[str, list[Callable[[float], float]]]] = {
        "SPOF": (RED, [s.spof_term_printed, s.spof_term, s.spof_term_distance]),
        "DP-SGD unclipped": (BLUE, [s.dpsgd_term_printed, s.dpsgd_term, lambda a: 1.0]),
        f"DP-SGD clipped, C = {C:g}, n = {n}": (
            GREY,
            [
                lambda a: s.dpsgd_clipped_printed(C, n) / n,
                lambda a: s.dpsgd_clipped(C, n) / n,
                lambda a: s.dpsgd(C, n, a) / n,
            ],
        ),
    }
    kinds = {"printed": "--", "bound": ":", "sensitivity": "-"}
    for family, (colour, curves) in families.items():
        for curve, (kind, line) in zip(curves, kinds.items(), strict=True):
            width = 4 if colour == BLUE and line == "-" else 1.5  # the grey line may lie on it, and both must show
            heights = [curve(float(x)) for x in a]
            look = {"color": colour, "linewidth": width, "marker": marks[colour], "markevery": 60, "markersize": 5}
            axis.plot(a, heights, line, label=f"{family}, {kind}", **look)
    axis.set(xlabel="expansion point a", ylabel="L1 sensitivity per feature", ylim=(0, max(12, 2.2 * C)))
    caption = (
        "printed by the paper, bound by its argument put right, and the sensitivity that holds; computed, x in [0, 1]"
    )
    figure.suptitle(caption, fontsize=9)
    axis.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


# ── claims ──


def minimum(function: Callable[[float], float]) -> tuple[float, float]:
    """Return the place and the value of the smallest sensitivity over a."""
    at = min((k / 10_000 for k in range(-30_000, 30_001)), key=lambda a: float(function(a)))
    return at, float(function(at))


@claim("sens-spof", f"{APPENDIX}, SPOF at a = 0", "the sensitivity of SPOF is 3n/2 = {}", "21")
def sens_spof(printed: str) -> Found:
    """largest L1 distance of alpha2 and alpha3 over pairs of x in 21 steps, in fractions, times n"""
    xs = [Fraction(k, 20) for k in range(21)]
    most = max(abs(x - y) + abs(x - y) / 2 for x, y in product(xs, xs))
    assert float(N * most) == s.spof(N)
    return f"{s.spof(N):g}", agrees(s.spof(N), printed)


@claim("sens-zero", f"{OPTIMUM}, eq. for Delta_SPOF(i)", "Delta_SPOF(i) is {} at a = 0", "4.6931")
def sens_zero(printed: str) -> Found:
    """the printed last line at a = 0, beside 2·max over x of the six absolute derivatives"""
    line, bound = s.spof_term_printed(0.0), s.spof_term(0.0)
    text = f"{line:.4f} by the last line; the line before it gives {bound:.4f}"
    return text, derived_verdict(agrees(line, printed), agrees(bound, printed))


@claim("sens-minimum", f"{OPTIMUM}, figure of sensitivities", "its minimum {} is at a = {}", "4.0348", "0.9057")
def sens_minimum(value: str, place: str) -> Found:
    """least value of the printed last line over a in -3 to 3 in steps of 0.0001, beside that of the line before it"""
    (at, low), (true_at, true_low) = minimum(s.spof_term_printed), minimum(s.spof_term)
    text = f"{low:.4f} at {at:.4f} by the last line; the line before it is least, {true_low:.4f}, at {true_at:g}"
    return text, derived_verdict(agrees(low, value) and agrees(at, place), agrees(true_at, place))


@claim("sens-gap", f"{OPTIMUM}, figure of sensitivities", "a = 0 is {} % above the minimum", "16.3")
def sens_gap(printed: str) -> Found:
    """the two values above; and the same of the line before the last"""

    def gap(function: Callable[[float], float]) -> float:
        return 100 * (float(function(0.0)) / minimum(function)[1] - 1)

    line, bound = gap(s.spof_term_printed), gap(s.spof_term)
    text = f"{line:.1f} % by the last line, {bound:.1f} % by the line before it"
    return text, derived_verdict(agrees(line, printed), agrees(bound, printed))


@claim("sens-near", f"{APPENDIX}, SPOF", "the sensitivity is near its minimum at a = 0, at most {} % above it", "16.3")
def sens_near(printed: str) -> Found:
    """least value over a of 2·max over x of the six absolute derivatives"""
    at, low = minimum(s.spof_term)
    text = f"least at a = {at:g}: {low:.4f}, and {s.spof_term(0.0):.4f} at a = 0"
    return text, 100 * (s.spof_term(0.0) / low - 1) <= float(printed)


@claim("sens-sgd-term", f"{OPTIMUM}, eq. for Delta_SGD(1)(i)", "Delta_SGD(1)(i) = 2e^a/(1 + e^a)")
def sens_sgd_term() -> Found:
    """2·max over x of |sigma(a) - x| at a = -2, -1, 0, 1, 2"""
    points = (-2.0, -1.0, 0.0, 1.0, 2.0)
    bound = {a: 2 * max(abs(s.sigmoid(a) - x) for x in (0.0, 1.0)) for a in points}
    same = {a: math.isclose(value, s.dpsgd_term_printed(a)) for a, value in bound.items()}
    text = ", ".join(f"a = {a:g}: {value:.3f}, printed {s.dpsgd_term_printed(a):.3f}" for a, value in bound.items())
    return f"{text}; the sensitivity is {s.dpsgd_unclipped(1):g} for every a", verdict_over(same.values())


@claim("sens-sgd-n", f"{APPENDIX}, DP-SGD", "Delta_SGD = n = {} where nothing is clipped, at a = 0", "14")
def sens_sgd_n(printed: str) -> Found:
    """largest L1 distance of two gradients, which is that of two records"""
    found = s.dpsgd_unclipped(N)
    return f"{found:g}, for every a", agrees(found, printed)


@claim("sens-sgd-clipped", f"{APPENDIX}, DP-SGD", "Delta_SGD = 2nC = {} where it is clipped, C = 4", "112")
def sens_sgd_clipped(printed: str) -> Found:
    """an L2 norm of at most C is an L1 norm of at most C·sqrt(n); and the largest distance of two clipped gradients at
    n = 14"""
    bound, true = s.dpsgd_clipped(C, N), s.dpsgd(C, N)
    text = f"2C·sqrt(n) = {bound:.1f} bounds it; the sensitivity at C = 4 is {true:g}"
    return text, agrees(true, printed)


@claim("sens-sgd-clips", "Section on the DP-WBAN", "the norm of the gradient is often larger than C = 4")
def sens_sgd_clips() -> Found:
    """largest norm of sigma(z) - x over z and x in 0 to 1: below sqrt(n)"""
    never = s.never_clips(N, C, anywhere=True)
    return f"below sqrt({N}) = {math.sqrt(N):.3f} for every record and every z", not never


@claim("sens-lower", "Introduction; figure of sensitivities", "SPOF can have a lower sensitivity than DP-SGD")
def sens_lower() -> Found:
    """the L1 sensitivity of both at n = 14, a = 0, for C from 0.25 to 16"""
    clips = [2.0**k for k in range(-2, 5)]
    found = {c: s.dpsgd(c, N) for c in clips}
    text = f"SPOF {s.spof(N):g}; DP-SGD " + ", ".join(f"{value:.3g} at C = {c:g}" for c, value in found.items())
    return text, any(s.spof(N) < value for value in found.values())


@claim("sens-constant", "Proposition on the stabilization constant", "Delta_hat = Delta + n·c_j(c_j/2 + 2)")
def sens_constant() -> Found:
    """the last line from the printed coefficients at c_j = 17.5, the public bound c·l; and the largest distance of the
    two coefficients with (1 - c_j)"""
    c_j = CONSTANT * L
    summed = c_j**2 * N / 2 + 2 * N * (0.5 * (1 + 2 * c_j) + 0.25)
    printed, true = s.stabilized_printed(c_j, N), s.stabilized_distance(CONSTANT, L, N)
    with_constant = s.stabilized_distance(CONSTANT, L, N, constant=True)
    text = (
        f"{printed:.2f} at c_j = {c_j:g}, {summed:.2f} by the lines before it; the sensitivity is {true:g}, with the "
    )
    follows, stands = math.isclose(summed, printed), math.isclose(true, printed)
    return f"{text}constant term {with_constant:g}", derived_verdict(follows, stands)


@claim("sens-noise", "Section on loss stabilization", "the constant makes the loss less sensitive to DP noise")
def sens_noise() -> Found:
    """noise over signal of the linear coefficient at c_j = c·l/2 = 8.75: the printed scale grows with Delta_hat, the
    coefficient with |1 - c_j|"""
    c_j = s.typical_c_j(CONSTANT, L)
    noise, signal = s.stabilized_printed(c_j, N) / s.spof(N), abs(1 - c_j)
    text = (
        f"{noise:.1f} times the noise ({s.stabilized_printed(c_j, N):.0f} against {s.spof(N):g}), {signal:g} times the "
    )
    return f"{text}signal: {noise / signal:.1f} times as much noise over signal", noise < signal


@claim("sens-one", "Algorithm 1, Step 5", "{} coefficients of each feature need noise", "2")
def sens_one(printed: str) -> Found:
    """coefficients of z and z² that move with x, when the second-order one is what the loss gives, by differences; and
    the sensitivity of those that do"""
    step, xs = 1e-3, (0.0, 0.5, 1.0)

    def value(x: float, z: float) -> float:
        return x * s.softplus(-z) + (1 - x) * s.softplus(z)

    linear = [(value(x, step) - value(x, -step)) / (2 * step) for x in xs]
    curved = [(value(x, step) + value(x, -step) - 2 * value(x, 0.0)) / (2 * step**2) for x in xs]
    moving = [name for name, each in (("alpha2", linear), ("alpha3", curved)) if max(each) - min(each) > step]
    text = f"{len(moving)}: {' and '.join(moving)}; the sensitivity of alpha2 alone is n = {s.release(N):g}"
    return text, agrees(len(moving), printed)


@claim("sens-figure", f"{OPTIMUM}, figure of sensitivities",
       "Delta_SGD(2)(i) = 2C = {} at C = 4 is well above Delta_SPOF(i) = {}", "8", "4.6931")  # fmt: skip
def sens_figure(clipped: str, spof: str) -> Found:
    """both as printed; and the largest change of one component of a clipped gradient, beside the bound of SPOF that its
    argument gives, at a = 0"""
    line, term = s.dpsgd_clipped_printed(C, 1), s.spof_term_printed(0.0)
    true, bound = min(2 * C, s.dpsgd_unclipped(1)), s.spof_term(0.0)
    text = (
        f"{line:g} and {term:.4f} as printed; a component moves by {true:g} at most, the bound of SPOF is {bound:.4f}"
    )
    follows = agrees(line, clipped) and agrees(term, spof) and line > term
    return text, derived_verdict(follows, true > bound)


@claim("sens-utility", f"{OPTIMUM}, end",
       "DP-SGD has a lower utility than SPOF where its noise depends only on Delta_SGD(1)(i)")  # fmt: skip
def sens_utility() -> Found:
    """noise scale of one number at the same epsilon and a = 0, by the printed terms and by the true sensitivities: the
    larger scale has the lower utility"""
    printed = s.dpsgd_term_printed(0.0), s.spof_term_printed(0.0)
    true = s.dpsgd_unclipped(N), s.spof(N)
    text = f"DP-SGD {printed[0]:g}, SPOF {printed[1]:.4f} as printed; of a record {true[0]:g} and {true[1]:g}"
    return text, verdict_over(sgd > spof for sgd, spof in (printed, true))
