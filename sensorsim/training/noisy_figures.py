"""The paper's figures on noisy inputs, which need no training: the density of b_max, and how likely it is at most 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from sensorsim.training import noisy_inputs
from sensorsim.training.labels import Label, dark, write
from sensorsim.training.sheet import entitle, finish, sheet

LEAST = 1e-60  # a probability below is drawn here, under the axis
SHADES = {0.0: ("-", "black"), 0.01: ("--", "#0072b2"), 0.1: ("-.", "#d55e00"), 0.5: (":", "#117733")}
CURVES = (
    ("-", "#d55e00", True, noisy_inputs.DRAWS, "printed variance"),
    ("-.", "#0072b2", False, noisy_inputs.DRAWS, "variance that holds"),
    (":", "#117733", False, 1, "the same, one draw"),
)


def density_of_b_max(sigma: float = 1.0) -> Any:
    """Fig. 4 of the paper: the density of b_max for several h; printed on the left, what holds on the right."""
    figure, axes = sheet(2)
    for axis, printed in zip(axes, (True, False), strict=True):
        sd = noisy_inputs.spread(sigma, printed)
        axis.set_yscale("log")
        axis.set(xlim=(-5, 45), ylim=(1e-3, 1e3), xlabel="log₁₀ of b_max", ylabel="density per decade")
        for turn, (h, (line, colour)) in enumerate(SHADES.items()):
            places, density = noisy_inputs.density_curve(h, sd, printed)
            axis.plot(places, density, line, color=colour)
            top = int(np.argmax(density))
            _name(axis, f"h = {h:g}", float(places[top]), min(float(density[top]), 10 ** (1 + 0.5 * turn)), colour)
        axis.axvline(0, color="0.45", linewidth=0.8)
        axis.annotate("b = 1", (0, 2e-3), (-4, 0), textcoords="offset points", ha="right", fontsize=7.5, color="0.45")
        entitle(axis, f"{'as printed' if printed else 'what holds'}: deviation of Wᵀn {sd:.3g} at σ = {sigma:g}")
    note = f"Computed: the density of the largest of {noisy_inputs.DRAWS} draws, weights uniform in ±10. No data."
    return finish(figure, "The factor b_max of noisy inputs", note)


def _name(axis: Any, text: str, x: float, y: float, colour: str) -> None:
    """Right of the top of a curve; the spikes end above the panel and stand close, so their names have leaders."""
    axis.annotate(
        text,
        (x, y),
        (max(x + 1.5, 6.5), y * 1.25),
        fontsize=8.5,
        color=dark(colour),
        va="center",
        arrowprops={"arrowstyle": "-", "linewidth": 0.6, "color": colour, "shrinkA": 0, "shrinkB": 0},
    )


def probability_of_b_max() -> Any:
    """Fig. 5 of the paper: Pr[b_max <= 1] against sigma, the printed claim and what holds."""
    figure, (axis,) = sheet(1)
    sigmas = np.geomspace(0.05, 50, 61)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set(xlim=(0.045, 55), ylim=(1e-40, 1), ylabel="probability")
    axis.set_xlabel("environmental noise σ (in units of the normalised range)")
    labels = []
    for line, colour, printed, draws, name in CURVES:
        values = [noisy_inputs.probability_below_one(noisy_inputs.spread(sigma, printed), draws) for sigma in sigmas]
        axis.plot(sigmas, np.maximum(values, LEAST), line, color=colour)
        labels.append(Label(name, 55, max(values[-1], LEAST), colour))
    axis.axhline(0.5, color="black", linestyle="--")
    labels.append(Label("printed claim: ≥ 0.5", 55, 0.5, "black"))
    few = sigmas[::10]
    drawn = [max(noisy_inputs.share_below_one(sigma), LEAST) for sigma in few]
    axis.plot(few, drawn, "ko", markersize=4)
    labels.append(Label("● b_j itself, drawn", 55, drawn[-1], "black"))
    write(axis, labels, [])
    note = "Lines are computed, dots counted: weights are uniform in ±10, and x in 0 … 1. No data."
    entitle(axis, f"{noisy_inputs.DRAWS} draws, h = 0; dots: {noisy_inputs.SAMPLES:,} draws of b_j")
    return finish(figure, "Pr[b_max ≤ 1], claimed and true", note)
