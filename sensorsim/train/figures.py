"""The paper's data figures, redrawn from our own runs, and two of our own; readable in grey by line and marker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sensorsim.drawing import picture
from sensorsim.files import write_whole
from sensorsim.mechanisms import every, find
from sensorsim.train import noisy_inputs

FAR_BELOW = 4.0  # points under the lowest curve at which a trivial predictor would squeeze the figure
ACCURACY = "accuracy, 1 − MSE (%)"
Rows = list[dict[str, Any]]
Trivial = dict[float, dict[str, dict[str, Any]]]


def accuracy_against_c(rows: Rows, trivial: Trivial, path: Path) -> None:
    """Fig. 2 of the paper: spof over the stabilization constant, decoded without c and with it."""
    figure, axes = _canvas(1)
    axis = axes[0]
    for decoded, style, label in ((False, "-", "decoded without c"), (True, "--", "decoded with c")):
        part = sorted((row for row in rows if row["decode_c"] == decoded), key=lambda row: row["c"])
        if part:
            _line(
                axis,
                [row["c"] for row in part],
                part,
                style,
                "s" if decoded else "o",
                "black" if decoded else "#d55e00",
                label,
            )
    _trivial_lines(axis, trivial[rows[0]["sigma"]])
    axis.set(xlabel="stabilization constant c", ylabel=ACCURACY)
    axis.set_title(f"spof as printed, nominal ε = {rows[0]['nominal_epsilon']:g}")
    _finish(figure, axes, path)


def accuracy_against_epsilon(rows: Rows, trivial: Trivial, path: Path, spent: bool = False) -> None:
    """Fig. 3 of the paper (nominal), or our own against what a record really spends."""
    sigmas = sorted(trivial)
    figure, axes = _canvas(len(sigmas))
    for axis, sigma in zip(axes, sigmas, strict=True):
        for mechanism in every():
            part = [row for row in rows if row["mechanism"] == mechanism.name and row["sigma"] == sigma]
            if not mechanism.private:
                if part and part[0]["accuracy"] is not None:
                    axis.axhline(
                        part[0]["accuracy"], color=mechanism.style.colour, linewidth=1.6, label=mechanism.title
                    )
                continue
            if spent:
                part = [row for row in part if row["spent_epsilon"] is not None]
            place = "spent_epsilon" if spent else "nominal_epsilon"
            part = sorted((row for row in part if row["nominal_epsilon"] is not None), key=lambda row: row[place])
            if part:
                line, marker, colour = mechanism.style
                label = mechanism.title + (", fresh noise" if part[0]["redraw"] else "")
                _line(axis, [row[place] for row in part], part, line, marker, colour, label)
        _trivial_lines(axis, trivial[sigma])
        axis.set_xscale("log")
        ticks = sorted({row["nominal_epsilon"] for row in rows if row["nominal_epsilon"]})
        axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.minorticks_off()
        axis.set(title=f"environmental noise σ = {sigma:g}", ylabel=ACCURACY)
        axis.set_xlabel("ε really spent per record" if spent else "nominal ε per record")
        if spent:
            missing = sorted(
                {
                    row["mechanism"]
                    for row in rows
                    if row["sigma"] == sigma and row["nominal_epsilon"] and row["spent_epsilon"] is None
                }
            )
            if missing:
                axis.set_xlabel(f"ε really spent per record\n(no bound holds for {', '.join(missing)}: not shown)")
    _finish(figure, axes, path)


def accuracy_against_cost(rows: Rows, trivial: Trivial, costs: dict[str, float], unit: str, path: Path) -> None:
    """Our own: what a record costs on the body against what the model gets from it, over epsilon."""
    sigmas = sorted({row["sigma"] for row in rows})
    figure, axes = _canvas(len(sigmas))
    for axis, sigma in zip(axes, sigmas, strict=True):
        for name, cost in costs.items():
            part = [
                row
                for row in rows
                if row["mechanism"] == name and row["sigma"] == sigma and row["accuracy"] is not None
            ]
            part.sort(key=lambda row: row["nominal_epsilon"])
            if part:
                _, marker, colour = find(name).style
                heights = [row["accuracy"] for row in part]
                axis.plot([cost] * len(part), heights, "-", color=colour, linewidth=0.8)
                sizes = [18 + 14 * place for place in range(len(part))]
                axis.scatter(
                    [cost] * len(part),
                    heights,
                    s=sizes,
                    marker=marker,
                    facecolors="none",
                    edgecolors=colour,
                    label=f"{name} ({cost:g})",
                )
        axis.set_xscale("log")
        ticks = sorted(costs.values())
        axis.set_xticks(ticks, [f"{cost:g}" for cost in ticks], rotation=45)
        axis.minorticks_off()
        axis.set(title=f"environmental noise σ = {sigma:g}", xlabel=f"cost per record ({unit})", ylabel=ACCURACY)
        axis.margins(x=0.2)
        _trivial_lines(axis, trivial[sigma])
    unknown = sorted({row["mechanism"] for row in rows if row["nominal_epsilon"] is not None} - costs.keys())
    note = "larger marker: larger nominal ε" + (f"; no kernel to price for {', '.join(unknown)}" if unknown else "")
    _finish(figure, axes, path, note)


def density_of_b_max(path: Path, sigma: float = 1.0) -> None:
    """Fig. 4 of the paper: the density of b_max for several h; printed on the left, what holds on the right."""
    figure, axes = _canvas(2)
    for axis, printed in zip(axes, (True, False), strict=True):
        sd = noisy_inputs.spread(sigma, printed)
        for h, style in ((0.0, "-"), (0.01, "--"), (0.1, "-."), (0.5, ":")):
            axis.plot(*noisy_inputs.density_curve(h, sd, printed), style, label=f"h = {h:g}")
        axis.axvline(0, color="grey", linewidth=0.8)
        axis.text(
            -0.4, 0.97, "b = 1", color="0.4", transform=axis.get_xaxis_transform(), va="top", ha="right", fontsize=8
        )
        axis.set_yscale("log")
        axis.set(xlim=(-5, 45), ylim=(1e-3, 1e3), xlabel="log₁₀ of b_max", ylabel="density per decade")
        axis.set_title(f"{'as printed' if printed else 'what holds'}: deviation of Wᵀn {sd:.3g} at σ = {sigma:g}")
    _finish(figure, axes, path)


def probability_of_b_max(path: Path) -> None:
    """Fig. 5 of the paper: Pr[b_max <= 1] against sigma, the printed claim and what holds."""
    figure, axes = _canvas(1)
    axis = axes[0]
    sigmas = np.geomspace(0.05, 50, 61)
    axis.axhline(0.5, color="black", linestyle="--", label="printed claim for large σ: at least 0.5")
    curves = (
        ("-", True, noisy_inputs.DRAWS, "Pr[b_max ≤ 1], printed variance, 100 draws, h = 0"),
        ("-.", False, noisy_inputs.DRAWS, "the same with the variance that holds"),
        (":", False, 1, "one draw in place of 100"),
    )
    for style, printed, draws, label in curves:
        values = [noisy_inputs.probability_below_one(noisy_inputs.spread(sigma, printed), draws) for sigma in sigmas]
        axis.plot(sigmas, np.maximum(values, 1e-60), style, label=label)
    few = sigmas[::10]
    axis.plot(
        few,
        [max(noisy_inputs.share_below_one(sigma), 1e-60) for sigma in few],
        "ko",
        markersize=4,
        label=f"b_j itself, {noisy_inputs.SAMPLES:,} draws",
    )
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set(xlabel="environmental noise σ (in units of the normalised range)", ylabel="probability", ylim=(1e-40, 30))
    _finish(figure, axes, path)


def _line(axis: Any, places: list[float], rows: Rows, style: str, marker: str, colour: str, label: str) -> None:
    """A curve of means with its 95 % band; a cell with a diverged run is a cross at the bottom, not a mean."""
    kept = [(place, row) for place, row in zip(places, rows, strict=True) if row["accuracy"] is not None]
    lost = [place for place, row in zip(places, rows, strict=True) if row["accuracy"] is None]
    xs = [place for place, _ in kept]
    ys = np.array([row["accuracy"] for _, row in kept], dtype=float)
    half = [0.0 if row["accuracy_low"] is None else row["accuracy"] - row["accuracy_low"] for _, row in kept]
    axis.errorbar(xs, ys, yerr=half, linestyle=style, marker=marker, color=colour, markersize=5, capsize=2, label=label)
    if lost:
        axis.plot(
            lost,
            [0.02] * len(lost),
            "x",
            color=colour,
            transform=axis.get_xaxis_transform(),
            label=f"{label}: diverged",
        )


def _trivial_lines(axis: Any, found: dict[str, dict[str, Any]]) -> None:
    """The trivial predictors as thin grey lines, each named at the right edge; those far below, with their number."""
    low, high = axis.get_ylim()
    every = sorted((scores["accuracy"], name) for name, scores in found.items())
    shown = [(value, name) for value, name in every if value > low - FAR_BELOW]
    for row, (value, name) in enumerate(each for each in every if each not in shown):
        axis.annotate(
            f"↓ {name} {value:.1f}", (1.01, -0.05 - 0.05 * row), xycoords="axes fraction", fontsize=7, color="0.35"
        )
    low, high = min(low, shown[0][0] - 1), max(high, shown[-1][0] + 1)
    axis.set_ylim(low, high)
    gap = (high - low) * 0.038
    places = [value for value, _ in shown]
    for place in range(1, len(places)):  # push apart upward, then back down from the top edge
        places[place] = max(places[place], places[place - 1] + gap)
    places[-1] = min(places[-1], high)
    for place in range(len(places) - 2, -1, -1):
        places[place] = min(places[place], places[place + 1] - gap)
    for (value, name), height in zip(shown, places, strict=True):
        axis.axhline(value, color="0.6", linewidth=0.8, linestyle=(0, (1, 1.5)), zorder=0)
        axis.annotate(name, (1.01, height), xycoords=("axes fraction", "data"), fontsize=7, color="0.35", va="center")


def _canvas(panels: int) -> tuple[Any, list[Any]]:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, panels, figsize=(6.2 * panels, 4.6), squeeze=False)
    return figure, list(axes[0])


def _finish(figure: Any, axes: list[Any], path: Path, note: str = "") -> None:
    """One legend below all panels, so that it covers no data."""
    import matplotlib.pyplot as plt

    handles: dict[str, Any] = {}
    for axis in axes:
        axis.grid(color="0.92", linewidth=0.6)
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    columns = min(4 if len(axes) > 1 else 2, len(handles))
    rows = -(-len(handles) // columns)
    figure.tight_layout(rect=(0, 0.02 + 0.055 * rows + (0.04 if note else 0), 1, 1))
    figure.legend(
        handles.values(),
        handles.keys(),
        loc="lower center",
        ncols=columns,
        frameon=False,
        fontsize=8,
        title=note or None,
        title_fontsize=8,
    )
    drawn = picture(figure, "png", 140)
    plt.close(figure)
    write_whole(path, drawn)
