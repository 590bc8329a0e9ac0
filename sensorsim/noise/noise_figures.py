"""Figures of noise tables. matplotlib is imported when one is drawn."""

import io
import os
from fractions import Fraction
from typing import Any

import numpy as np

from sensorsim.noise.baseline import Peers, baseline_sds, error_of_mean, error_of_mean_laplace, mostly_unclamped
from sensorsim.noise.noise_table import ready_table

BLUE, RED, GREY, LIGHT = "#1f5fa8", "#c0392b", "#888888", "#d0d0d0"
PAPER = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"}  # behind text
MOST_NEEDED = 3.2  # upper limit of the axis of records


def stairs_figure(table: Any) -> Any:
    """Draw three panels: the noise against Laplace, the privacy loss of every output, the atoms at the ends."""
    figure, axes = canvas(3, width=12)
    outputs, from_0, from_1 = _pair(table.on_coarse_lattice())
    stair = 2.0 ** (table.stair_bits - table.frac_bits)
    values, share = _shares(table, stair)
    axes[0].bar(values[1:-1], share[1:-1], width=stair, color=BLUE, label="table")
    ends_look = {"color": RED, "hatch": "///", "edgecolor": "white"}
    axes[0].bar(values[[0, -1]], share[[0, -1]], width=stair, label="ends, always clamped", **ends_look)
    _against_laplace(axes[0], float(table.scale))
    _loss_panel(axes[1], float(table.share), outputs, from_0, from_1, "-")
    _atoms_panel(axes[2], from_0, from_1)
    figure.suptitle(f"stairs table, {table.entries} entries, {table.promise()}")
    return figure


def samples_figure(table: Any) -> Any:
    """Draw three panels: the noise against Laplace, the privacy loss of every output, the support mismatch."""
    figure, axes = canvas(3, width=12)
    outputs, from_0, from_1 = _pair(table)
    step, scale = 2.0**-table.frac_bits, float(table.scale)
    values, share = _shares(table, step)
    shown = abs(values) < scale / 40  # at full width the gaps between lattice points would not show
    axes[0].vlines(values[shown], 0, share[shown], color=BLUE, linewidth=0.5, label="table, near 0")
    _against_laplace(axes[0], scale)
    _loss_panel(axes[1], 1 / scale, outputs, from_0, from_1, ".")
    if table.limit is None:
        mismatch = from_0[from_1 == 0].sum() / from_0.sum(), from_1[from_0 == 0].sum() / from_0.sum()
        _bars(axes[2], {"output that the other\ninput cannot give": mismatch}, "holes")
    else:
        _atoms_panel(axes[2], from_0, from_1)
    figure.suptitle(f"{table.kind} table, {table.entries} entries, {table.promise()}")
    return figure


def rows_figure(table: Any) -> Any:
    """Draw three panels: probability of each symbol against x, its largest privacy loss, sd of the estimate."""
    from matplotlib import colormaps

    figure, axes = canvas(3, width=13)
    rows = table.rows
    every, total = np.array(rows.all_counts()), 1 << table.count_bits
    x = np.linspace(0, 1, rows.knots)
    shades = [colormaps["viridis"](s / max(1, rows.symbols - 1)) for s in range(rows.symbols)]
    axes[0].stackplot(x, every.T / total, colors=shades, edgecolor="white", linewidth=0.6)
    for s in range(rows.symbols):
        widest = int(np.argmax(every[:, s]))
        middle = (every[widest, :s].sum() + every[widest, s] / 2) / total
        place = min(max(x[widest], 0.04), 0.96)
        if every[widest, s] / total > 0.03:
            axes[0].annotate(str(s), (place, middle), ha="center", va="center", fontsize=8, bbox=PAPER)
    axes[0].set(title="probability of each symbol", xlabel="x", ylabel="probability", xlim=(0, 1), ylim=(0, 1))
    loss = np.log(every.max(0) / every.min(0))
    axes[1].bar(range(rows.symbols), loss, color=shades)
    axes[1].axhline(float(table.share), color="black", linewidth=1, linestyle="--", label="allowed")
    axes[1].set(title="largest privacy loss, any x against any other", xlabel="symbol", ylabel="log likelihood ratio")
    axes[1].set_ylim(0, 1.2 * float(table.share))
    _legend(axes[1])
    fine = [Fraction(k, 256) for k in range(257)]
    known = (("hybrid_sd", "hybrid", "-."), ("laplace_sd", "Laplace", ":"), ("best_known_sd", "best known", "--"))
    sds = baseline_sds(float(table.share))
    for key, name, line in sorted(known, key=lambda level: -(sds[level[0]] or 0.0)):
        if sds[key] is not None:
            axes[2].axhline(sds[key], color="black", linewidth=1, linestyle=line, label=name)
    axes[2].plot([float(v) for v in fine], [float(rows.variance(v)) ** 0.5 for v in fine], color=BLUE, label="rows")
    axes[2].set(title="standard deviation of the estimate", xlabel="x", ylabel="in ranges of x", xlim=(0, 1))
    axes[2].set_ylim(bottom=0)
    _legend(axes[2])
    shape = f"{rows.knots} knots × {rows.symbols} symbols"
    figure.suptitle(f"rows table, {shape}, {table.table_bytes} bytes, {table.promise()}")
    return figure


def records_figure(found: list[Peers], runs: int = 2000) -> Any:
    """Draw two panels: measured error of a mean against records, and records for the same error against epsilon."""
    figure, axes = canvas(2, width=12)
    _error_panel(axes[0], runs=runs)
    budgets = [row.epsilon for row in found]
    curves = (
        ("Laplace", "laplace_sd", GREY, ":", "x"),
        ("stairs, 1 in 10 clamped", "stairs_tenth_sd", BLUE, ":", "."),
        ("piecewise", "piecewise_sd", RED, ":", "^"),
        ("stairs", "stairs_sd", BLUE, "-.", "o"),
        ("hybrid", "hybrid_sd", RED, "--", "s"),
        ("one bit", "one_bit_sd", GREY, "--", "v"),
        ("rows", "rows_sd", BLUE, "-", "D"),
        ("best known", "best_known_sd", "black", "-", "None"),
    )
    for name, field, colour, line, marker in curves:
        needed = [((getattr(row, field) or float("nan")) / row.rows_sd) ** 2 for row in found]
        axes[1].plot(budgets, needed, line, color=colour, marker=marker, markersize=5, label=name)
    axes[1].set_xscale("log")
    axes[1].set_xticks(budgets, [f"{epsilon:g}" for epsilon in budgets])
    axes[1].minorticks_off()
    axes[1].set(xlabel="epsilon of one feature", ylabel="records for the same error, rows = 1", ylim=(0.8, MOST_NEEDED))
    axes[1].set_title(f"computed at the worst x, every estimate unbiased; cut at {MOST_NEEDED:g}")
    _legend(axes[1])
    for axis in axes:
        axis.grid(color="0.92", linewidth=0.6)
    return figure


def _error_panel(axis: Any, epsilon: str = "1.6", x: float = 0.5, runs: int = 2000) -> None:
    """Draw the error that the kernels deliver at one epsilon: rows need half the records of stairs."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    records = [2**k for k in range(3, 10)]
    tables = (
        ("stairs, 1 in 10 clamped", mostly_unclamped(epsilon), ":", "."),
        ("stairs", ready_table(epsilon, 1, "stairs"), "-.", "o"),
        ("rows", ready_table(epsilon, 1), "-", "D"),
    )
    laplace = error_of_mean_laplace(float(epsilon), records, runs, seed=0)
    axis.plot(records, laplace, ":", color=GREY, marker="x", markersize=5, label="Laplace")
    for name, table, line, marker in tables:
        error = error_of_mean(table, records, runs, x, seed=0)
        axis.plot(records, error, line, color=BLUE, marker=marker, markersize=5, label=name)
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.set_xticks(records, [str(count) for count in records])
    axis.yaxis.set_minor_formatter(NullFormatter())
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda error, _: f"{error:g}"))
    axis.set(xlabel="released values", ylabel="error of their mean (root mean square, ranges of x)")
    axis.annotate(
        "", (records[3], laplace[4]), (records[4], laplace[4]), arrowprops={"arrowstyle": "->", "color": "black"}
    )
    axis.annotate("half the records", (records[4], laplace[4]), (4, 4), textcoords="offset points", fontsize=8)
    axis.set_title(f"measured, x = {x:g}, epsilon {epsilon}, {runs:,} runs")
    _legend(axis)


def _pair(table: Any) -> tuple[Any, Any, Any]:
    """Return outputs in units of the range, and the number of draws that give each at x = 0 and at x = 1."""
    D = 1 << table.frac_bits
    (values0, counts0), (values1, counts1) = table.distribution(0), table.distribution(D)
    values = np.union1d(values0, values1)
    both = np.zeros((2, len(values)), dtype=np.int64)
    both[0, np.searchsorted(values, values0)] = counts0
    both[1, np.searchsorted(values, values1)] = counts1
    return values / D, both[0], both[1]


def _shares(table: Any, width: float) -> tuple[Any, Any]:
    """Return the noise values in ranges of x, and their density."""
    values = np.array([v for v, _ in table.counts]) * width
    return values, np.array([c for _, c in table.counts]) / table.entries / width


def _against_laplace(axis: Any, scale: float) -> None:
    low, high = axis.get_xlim()
    grid = np.linspace(low, high, 401)
    axis.plot(grid, np.exp(-abs(grid) / scale) / (2 * scale), color="black", linewidth=1, label="Laplace")
    axis.set(title="noise against Laplace", xlabel="noise, in ranges of x", ylabel="density")
    axis.set_ylim(bottom=0)
    _legend(axis)


def _loss_panel(axis: Any, allowed: float, outputs: Any, from_0: Any, from_1: Any, line: str) -> None:
    seen, both = (from_0 > 0) | (from_1 > 0), (from_0 > 0) & (from_1 > 0)
    loss = np.log(from_0[both] / from_1[both])
    top = max(2 * allowed, 1.2 * float(abs(loss).max(initial=0)))
    axis.plot(outputs[both], loss, line, color=BLUE, markersize=2, label="loss of an output")
    one_only = seen & ~both
    if one_only.any():
        heights = np.where(from_0[one_only] > 0, top, -top)
        axis.plot(outputs[one_only], heights, "|", color=RED, markersize=6, label="gives x away")
    for sign in (1, -1):
        axis.axhline(sign * allowed, color="black", linewidth=1, linestyle="--", label="allowed" if sign > 0 else None)
    axis.set(title="privacy loss, x = 0 against x = 1", xlabel="output, in ranges of x", ylabel="log likelihood ratio")
    axis.set_ylim(-1.2 * top, 1.2 * top)
    _legend(axis)


def _atoms_panel(axis: Any, from_0: Any, from_1: Any) -> None:
    total = from_0.sum()
    ends = {"lower end": (from_0[0] / total, from_1[0] / total), "upper end": (from_0[-1] / total, from_1[-1] / total)}
    _bars(axis, ends, "atoms at the ends")


def _bars(axis: Any, pairs: dict[str, tuple[float, float]], title: str) -> None:
    """Draw probabilities at x = 0 and at x = 1 side by side."""
    for i, (x, look) in enumerate((("x = 0", {"color": BLUE}), ("x = 1", {"color": LIGHT, "hatch": "///"}))):
        heights = [pair[i] for pair in pairs.values()]
        places = [k + (i - 0.5) * 0.3 for k in range(len(pairs))]
        axis.bar(places, heights, width=0.3, edgecolor="black", linewidth=0.6, label=x, **look)
        for place, height in zip(places, heights, strict=True):
            axis.annotate(f"{height:.3f}", (place, height), ha="center", va="bottom", fontsize=8)
    axis.set_xticks(range(len(pairs)), list(pairs))
    axis.set(title=title, ylabel="probability", xlim=(-0.6, len(pairs) - 0.4))
    top = max(height for pair in pairs.values() for height in pair) or 1.0
    axis.set_ylim(0, 1.12 * top)  # room for the numbers above the bars
    axis.set_yticks([tick for tick in axis.get_yticks() if tick <= min(1.0, 1.12 * top)])
    _legend(axis)


def _legend(axis: Any) -> None:
    """Draw the legend under the panel, in drawing order."""
    shown = axis.get_legend_handles_labels()
    columns = min(len(shown[0]), 4)
    rows = -(-len(shown[0]) // columns)
    # matplotlib fills columns first: reorder to read row by row
    order = [i for column in range(columns) for row in range(rows) if (i := row * columns + column) < len(shown[0])]
    axis.legend(
        *([each[i] for i in order] for each in shown), frameon=False, fontsize=8, ncols=columns, loc="upper center",
        bbox_to_anchor=(0.5, -0.16), borderaxespad=0,
    )  # fmt: skip


def canvas(panels: int, width: float) -> tuple[Any, Any]:
    """Return a figure with panels side by side, and their axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, 4.6), layout="constrained")
    return figure, [figure.add_subplot(1, panels, i + 1) for i in range(panels)]


def save(figure: Any, path: str | os.PathLike[str]) -> None:
    """Write a figure; a .png in 64 colours."""
    from PIL import Image

    from sensorsim._util.drawing import picture
    from sensorsim._util.files import suffix_of, write_whole

    form = suffix_of(path, ".svg")[1:]
    drawn = picture(figure, form, 120)
    if form == "png":  # 64 colours are enough for lines and text, in a third of the bytes
        smaller = io.BytesIO()
        Image.open(io.BytesIO(drawn)).convert("RGB").quantize(64).save(smaller, "png", optimize=True)
        drawn = smaller.getvalue()
    write_whole(path, drawn)
