"""The paper's data figures, redrawn from our own runs, and our own. Functions return a figure; the caller saves it.

Lines carry their names at their ends, so that nobody hunts in a legend, and everything is readable in grey.

The factor b under environmental noise needs no training: b = e^D / (1 + (e^D - 1)·h) with D = Wᵀn normal. The paper
bounds b_j, the sum of l such factors, by b_max: l times the largest of |D| = 100 draws. Printed: D has variance
sigma²·‖W‖, and b ↦ y = e^D is inverted as b/(1 - h·b + h). What holds: variance sigma²·‖W‖², and y = b(1-h)/(1 - h·b).
Both have a closed distribution function; no Monte Carlo is needed for b_max.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from sensorsim.training import curves
from sensorsim.training.curves import (
    ACCURACY,
    R2,
    Curve,
    Label,
    Measure,
    Row,
    Scores,
    dark,
    entitle,
    finish,
    log_ticks,
    sheet,
    write_labels,
)

Trivial = dict[float, Scores]  # by sigma

# What stands on the x axis of accuracy_against_epsilon: the field of a row, and its title.
BUDGETS = {
    "nominal": ("nominal_epsilon", "nominal ε per record"),
    "spent": ("spent_epsilon", "ε really spent per record"),
    "person": ("epsilon_person_median", "ε of a person with all of their records (median person)"),
}
AS_STATED = "The ε of cells that were finished before are as the results file states them."
TRIVIAL_OF_RECORDS = ("PCA-", "column mean", "data-free map")  # how names begin that the headline shows

DRAWS, L, N = 100, 7, 14
SAMPLES = 5_000  # of b_j itself
WEIGHT_RANGE = 10.0  # the paper's example: W uniform in ±10
EXAMPLE_NORM = WEIGHT_RANGE * math.sqrt(N / 3)  # root mean square of ‖W‖
LEAST = 1e-60  # a probability below is drawn here, under the axis
SHADES = {0.0: ("-", "black"), 0.01: ("--", "#0072b2"), 0.1: ("-.", "#d55e00"), 0.5: (":", "#117733")}
B_MAX_CURVES = (
    ("-", "#d55e00", True, DRAWS, "printed variance"),
    ("-.", "#0072b2", False, DRAWS, "variance that holds"),
    (":", "#117733", False, 1, "the same, one draw"),
)


def accuracy_against_c(rows: Sequence[Row], trivial: Trivial) -> Any:
    """Draw Fig. 2 of the paper: spof over the stabilization constant, decoded without c and with it."""
    figure, (axis,) = sheet(1)
    found = []
    for decoded, word, line in ((False, "decoded without c", "--"), (True, "decoded with c", "-")):
        for curve in curves.curves_of([row for row in rows if row["decode_c"] == decoded], "c"):
            found.append(Curve(curve.mechanism, word, curve.places, curve.rows, line))
    places = [place for curve in found for place in curve.places]
    margin = 0.04 * (max(places) - min(places)) or 0.1
    axis.set_xlim(min(places) - margin, max(places) + margin)
    curves.draw(axis, ACCURACY, found, trivial[rows[0]["sigma"]])
    axis.set_xlabel("stabilization constant c")
    entitle(axis, _noise(rows[0]["sigma"]))
    return finish(figure, f"spof over its constant, nominal ε = {rows[0]['nominal_epsilon']:g}", _describe(rows))


def accuracy_against_epsilon(
    rows: Sequence[Row], trivial: Trivial, against: str = "nominal", measure: Measure = ACCURACY
) -> Any:
    """Draw Fig. 3 of the paper (nominal), or our own against what a record, or a person, really spends."""
    field, title = BUDGETS[against]
    figure, axes = sheet(len(trivial))
    for axis, sigma in zip(axes, sorted(trivial), strict=True):
        part = [row for row in rows if row["sigma"] == sigma]
        wanted = [row.get("nominal_epsilon") for row in part] if against != "person" else []
        _log_scale(axis, [row[field] for row in part if row.get(field)], wanted)
        flat = curves.curves_of([row | {"level": 1.0} for row in part if not row.get("nominal_epsilon")], "level")
        found = [Curve(curve.mechanism, curve.name, curves.LEVEL, curve.rows[:1]) for curve in flat]  # level lines
        found += curves.curves_of([row for row in part if row.get("nominal_epsilon")], field)
        failed = [row["mechanism"] for row in part if row.get("error") and row.get(field) is None]
        curves.draw(axis, measure, found, trivial[sigma], without=failed)
        ran = [row for row in part if row.get("nominal_epsilon") and not row.get("error")]
        missing = sorted({row["mechanism"] for row in ran if row.get(field) is None})
        axis.set_xlabel(title + (f"\nno bound holds for {', '.join(missing)}: not shown" if missing else ""))
        entitle(axis, _noise(sigma))
    what = "What the model reconstructs" if measure is ACCURACY else "R² of a record over the column mean"
    stated = f" {AS_STATED}" if against != "nominal" else ""  # the nominal ones are what was asked for
    return finish(figure, f"{what}, against the {title}", _describe(rows) + stated)


def accuracy_against_cost(rows: Sequence[Row], trivial: Trivial, costs: dict[str, float], unit: str) -> Any:
    """Draw what a record costs on the body against what the model gets from it; upwards along epsilon."""
    figure, axes = sheet(len(trivial))
    for axis, sigma in zip(axes, sorted(trivial), strict=True):
        part = [row | {"cost": costs.get(row["mechanism"])} for row in rows if row["sigma"] == sigma]
        _log_scale(axis, [min(costs.values()) / 1.4, max(costs.values()) * 1.4], [])
        columns = []  # of marks for each mechanism
        for curve in curves.curves_of([row for row in part if row.get("nominal_epsilon") is not None], "cost"):
            ordered = tuple(sorted(curve.rows, key=lambda row: row["nominal_epsilon"]))
            columns.append(Curve(curve.mechanism, f"{curve.name} ({curve.places[0]:g})", curve.places, ordered))
        curves.draw(axis, ACCURACY, columns, trivial[sigma], growing=True)
        axis.set_xlabel(f"cost of a record ({unit})")
        entitle(axis, _noise(sigma))
    unknown = sorted({row["mechanism"] for row in rows if row.get("nominal_epsilon") is not None} - costs.keys())
    note = "Larger mark: larger nominal ε" + (f"; no kernel to price for {', '.join(unknown)}." if unknown else ".")
    return finish(
        figure, "What a record costs on the body, and what the model gets from it", f"{note} {_describe(rows)}"
    )


def accuracy_against_records(rows: Sequence[Row], trivial: dict[tuple[str, int], Scores], epsilon: float) -> Any:
    """Draw how many people it takes: accuracy above, R² over the column mean below; a column for each set.

    Every row says `set`, `size` and `persons`; the trivial predictors stand under the same pair.
    """
    sets = list(dict.fromkeys(name for name, _ in trivial))
    figure, axes = sheet(len(sets), down=2)
    for place, name in enumerate(sets):
        part = [row for row in rows if row["set"] == name]
        sizes = sorted(size for other, size in trivial if other == name)
        names = [word for word in trivial[name, sizes[-1]] if word.startswith(TRIVIAL_OF_RECORDS)]
        scores = {word: tuple(trivial[name, size].get(word, {}) for size in sizes) for word in names}
        lines = [Curve("none", word, tuple(sizes), found) for word, found in scores.items()]
        for axis, measure in ((axes[place], ACCURACY), (axes[len(sets) + place], R2)):
            _log_scale(axis, sizes, [])
            curves.draw(axis, measure, curves.curves_of(part, "size"), {}, lines)
            axis.set_xticks(sizes, [_counted(size) for size in sizes])
        below = axes[len(sets) + place]
        people = {row["size"]: row["persons"] for row in part if row.get("persons")}
        said = {size: f"\n{_counted(people[size])} people" if size in people else "" for size in sizes}
        below.set_xticks(sizes, [_counted(size) + said[size] for size in sizes])
        below.set_xlabel("records that were released")
        entitle(axes[place], name)
        entitle(below, "the same, as R² of a record over the column mean")
    return finish(figure, f"How many records does it take? ε = {epsilon:g} for each", _describe(rows))


def _describe(rows: Sequence[Row]) -> str:
    """Describe the data, the runs and the bars. A row has its `data` and its `runs`."""
    data = " and ".join(dict.fromkeys(row["data"] for row in rows))
    runs = sorted({row["runs"] for row in rows})
    bars = "; pale bars: 95 % interval of that mean (Student's t)" if runs[-1] > 1 else ", so no intervals"
    many = " or ".join(f"{count:,}" for count in runs)
    return (
        f"Data: {data}. Each point: the mean of {many} run{'s' * (runs[-1] > 1)}{bars}. Dotted: untrained predictors."
    )


def _log_scale(axis: Any, places: Sequence[float], wanted: Sequence[float | None]) -> None:
    """Set a log axis over the places, with a margin at its ends, and ticks at the wanted ones."""
    axis.set_xscale("log")
    axis.minorticks_off()
    low, high = (min(places), max(places)) if places else (0.1, 10.0)
    margin = max((high / low) ** 0.03, 1.03)
    limits = low / margin, high * margin
    ticks = sorted({tick for tick in wanted if tick}) or log_ticks(*limits)
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_xlim(*limits)  # after the ticks, which would widen it


def _counted(size: int) -> str:
    return f"{size:,}".replace(",", "\u2009")


def _noise(sigma: float) -> str:
    return f"environmental noise σ = {sigma:g}"


# ── the factor b ──


def spread(sigma: float, printed: bool, norm: float = EXAMPLE_NORM) -> float:
    """Return the standard deviation of D = Wᵀn."""
    return sigma * math.sqrt(norm) if printed else sigma * norm


def density_curve(h: float, sd: float, printed: bool, points: int = 4001) -> tuple[np.ndarray, np.ndarray]:
    """Return log10(b_max) and its density per decade, along ln y = s: for h > 0 nearly all of it is close to l/h."""
    from scipy.special import log_ndtr

    s = np.linspace(-5 * sd, 8 * sd, points)
    # ln b = ln y - ln(1 + h(y-1)) in truth, ln y + ln(1+h) - ln(1 + h·y) by the printed inverse
    if printed:
        below = np.logaddexp(0, s + math.log(h)) if h else np.zeros(points)
        log_b, log_slope = s + math.log1p(h) - below, -below
    else:
        below = np.logaddexp(math.log1p(-h), s + math.log(h)) if h else np.zeros(points)
        log_b, log_slope = s - below, math.log1p(-h) - below
    log_density = math.log(DRAWS) - 0.5 * (s / sd) ** 2 - math.log(sd * math.sqrt(2 * math.pi))
    log_density += (DRAWS - 1) * log_ndtr(s / sd) - log_slope + math.log(math.log(10))
    return (log_b + math.log(L)) / math.log(10), np.exp(np.clip(log_density, -700, 700))


def probability_below_one(sd: float, draws: int = DRAWS) -> float:
    """Return Pr[b_max <= 1] at h = 0: Phi(ln(1/l)/sd)^draws."""
    from scipy.special import log_ndtr

    return float(np.exp(draws * log_ndtr(-math.log(L) / sd)))


def share_below_one(sigma: float, samples: int = SAMPLES, seed: int = 0) -> float:
    """Estimate Pr[b_j < 1] by drawing b_j itself: W uniform in ±10, x uniform in 0 … 1, n of deviation sigma."""
    rng = np.random.default_rng(seed)
    W = rng.uniform(-WEIGHT_RANGE, WEIGHT_RANGE, (samples, L, N))
    x, noise = rng.random((samples, N, 1)), sigma * rng.standard_normal((samples, N, 1))
    clean = (W @ x)[..., 0]
    ratio = np.exp(np.logaddexp(0, -clean) - np.logaddexp(0, -clean - (W @ noise)[..., 0]))
    return float((ratio.sum(axis=1) < 1).mean())


def density_of_b_max(sigma: float = 1.0) -> Any:
    """Draw Fig. 4 of the paper: the density of b_max for several h; printed on the left, what holds on the right."""
    figure, axes = sheet(2)
    for axis, printed in zip(axes, (True, False), strict=True):
        sd = spread(sigma, printed)
        axis.set_yscale("log")
        axis.set(xlim=(-5, 45), ylim=(1e-3, 1e3), xlabel="log₁₀ of b_max", ylabel="density per decade")
        for turn, (h, (line, colour)) in enumerate(SHADES.items()):
            places, density = density_curve(h, sd, printed)
            axis.plot(places, density, line, color=colour)
            top = int(np.argmax(density))
            x, y = float(places[top]), min(float(density[top]), 10 ** (1 + 0.5 * turn))
            # Right of the top of a curve; the spikes end above the panel and are close, so their names have leaders.
            arrow = {"arrowstyle": "-", "linewidth": 0.6, "color": colour, "shrinkA": 0, "shrinkB": 0}
            style = {"fontsize": 8.5, "color": dark(colour), "va": "center", "arrowprops": arrow}
            axis.annotate(f"h = {h:g}", (x, y), (max(x + 1.5, 6.5), y * 1.25), **style)
        axis.axvline(0, color="0.45", linewidth=0.8)
        axis.annotate("b = 1", (0, 2e-3), (-4, 0), textcoords="offset points", ha="right", fontsize=7.5, color="0.45")
        entitle(axis, f"{'as printed' if printed else 'what holds'}: deviation of Wᵀn {sd:.3g} at σ = {sigma:g}")
    note = f"Computed: the density of the largest of {DRAWS} draws, weights uniform in ±10. No data."
    return finish(figure, "The factor b_max of noisy inputs", note)


def probability_of_b_max() -> Any:
    """Draw Fig. 5 of the paper: Pr[b_max <= 1] against sigma, the printed claim and what holds."""
    figure, (axis,) = sheet(1)
    sigmas = np.geomspace(0.05, 50, 61)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set(xlim=(0.045, 55), ylim=(1e-40, 1), ylabel="probability")
    axis.set_xlabel("environmental noise σ (in units of the normalised range)")
    labels = []
    for line, colour, printed, draws, name in B_MAX_CURVES:
        values = [probability_below_one(spread(sigma, printed), draws) for sigma in sigmas]
        axis.plot(sigmas, np.maximum(values, LEAST), line, color=colour)
        labels.append(Label(name, 55, max(values[-1], LEAST), colour))
    axis.axhline(0.5, color="black", linestyle="--")
    labels.append(Label("printed claim: ≥ 0.5", 55, 0.5, "black"))
    few = sigmas[::10]
    drawn = [max(share_below_one(sigma), LEAST) for sigma in few]
    axis.plot(few, drawn, "ko", markersize=4)
    labels.append(Label("● b_j itself, drawn", 55, drawn[-1], "black"))
    write_labels(axis, labels)
    note = "Lines are computed, dots counted: weights are uniform in ±10, and x in 0 … 1. No data."
    entitle(axis, f"{DRAWS} draws, h = 0; dots: {SAMPLES:,} draws of b_j")
    return finish(figure, "Pr[b_max ≤ 1], claimed and true", note)
