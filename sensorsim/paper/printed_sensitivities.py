"""The sensitivities that the paper prints beside those that hold: a table with reasons, and a figure."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sensorsim.accounting import sensitivities as s
from sensorsim.noise.noise_figures import BLUE, GREY, RED, canvas

MARKS = {BLUE: "^", RED: "o", GREY: "None"}  # red and blue are one grey in print


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
    return [*_spof_rows(a, n, c, l), *_dpsgd_rows(a, n, C)]


def _spof_rows(a: float, n: int, c: float, l: int) -> list[Sensitivity]:
    c_j = s.typical_c_j(c, l)
    noisy = s.noisy_inputs(1.0, n)
    with_constant = s.stabilized_distance(c, l, n, constant=True)
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
    ]


def _dpsgd_rows(a: float, n: int, C: float) -> list[Sensitivity]:
    clipped = "here no gradient is longer than C" if s.never_clips(n, C, a) else "here some gradients are longer than C"
    return [
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
            look = {"color": colour, "linewidth": width, "marker": MARKS[colour], "markevery": 60, "markersize": 5}
            axis.plot(a, heights, line, label=f"{family}, {kind}", **look)
    axis.set(xlabel="expansion point a", ylabel="L1 sensitivity per feature", ylim=(0, max(12, 2.2 * C)))
    caption = (
        "printed by the paper, bound by its argument put right, and the sensitivity that holds; computed, x in [0, 1]"
    )
    figure.suptitle(caption, fontsize=9)
    axis.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure
