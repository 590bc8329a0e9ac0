"""The figures of the privacy commands. matplotlib is imported when one is drawn."""

import os
from pathlib import Path
from typing import Any

from sensorsim.errors import InputError
from sensorsim.privacy import sensitivity
from sensorsim.privacy.outputs import on_coarse_lattice, pair_counts
from sensorsim.privacy.tables import NoiseTable

BLUE, RED, GREY = "#1f5fa8", "#c0392b", "#888888"


def draw_table(table: NoiseTable, path: str | os.PathLike[str]) -> None:
    """Three panels: the noise against Laplace, the privacy loss of every output, the atoms at the ends or the holes."""
    figure, axes = _canvas(3, path, width=12)
    outputs, from_0, from_1 = pair_counts(on_coarse_lattice(table))
    _noise_panel(axes[0], table)
    _loss_panel(axes[1], table, outputs, from_0, from_1)
    _ends_panel(axes[2], table, from_0, from_1)
    figure.suptitle(f"{table.kind} table, {table.entries} entries, epsilon {table.epsilon} per record")
    _save(figure, path)


def draw_sensitivity(path: str | os.PathLike[str], C: float = 4.0, n: int = 14) -> None:
    """The paper's figure: per-feature sensitivities against the expansion point a, printed and true."""
    import numpy as np

    figure, (axis,) = _canvas(1, path, width=7)
    a = np.linspace(-3, 3, 601)
    curves = (
        (sensitivity.spof_term_printed, "SPOF, printed", RED, "--"),
        (sensitivity.spof_term, "SPOF, true bound", RED, "-"),
        (sensitivity.dpsgd_term_printed, "DP-SGD unclipped, printed", BLUE, "--"),
        (sensitivity.dpsgd_term, "DP-SGD unclipped, true bound", BLUE, "-"),
    )
    for curve, label, colour, line in curves:
        axis.plot(a, [curve(float(x)) for x in a], line, color=colour, label=label)
    axis.axhline(2 * C, color=GREY, linestyle="--", label=f"DP-SGD clipped at C = {C:g}, printed")
    true = sensitivity.dpsgd_clipped(C, n) / n
    axis.axhline(true, color=GREY, linestyle="-", label=f"DP-SGD clipped, true bound 2C/√n, n = {n}")
    axis.set(xlabel="expansion point a", ylabel="sensitivity per feature", ylim=(0, max(12, 2.2 * C)))
    axis.legend(frameon=False, fontsize=8)
    _save(figure, path)


def _noise_panel(axis: Any, table: NoiseTable) -> None:
    import numpy as np

    stair = 2.0 ** (table.stair_bits - table.frac_bits)
    values = np.array([v for v, _ in table.counts]) * stair
    share = np.array([c for _, c in table.counts]) / table.entries / stair
    scale = float(table.scale)
    if table.kind == "stairs":
        axis.bar(values[1:-1], share[1:-1], width=stair, color=BLUE, label="table")
        axis.bar(values[[0, -1]], share[[0, -1]], width=stair, color=RED, label="ends, always clamped")
    else:
        shown = abs(values) < scale / 40  # at full width the holes between lattice points would not be seen
        axis.vlines(values[shown], 0, share[shown], color=BLUE, linewidth=0.5, label="table, near 0")
    low, high = axis.get_xlim()
    grid = np.linspace(low, high, 401)
    axis.plot(grid, np.exp(-abs(grid) / scale) / (2 * scale), color="black", linewidth=1, label="Laplace")
    axis.set(title="noise against Laplace", xlabel="noise, in ranges of x", ylabel="density")
    axis.legend(frameon=False, fontsize=8)


def _loss_panel(axis: Any, table: NoiseTable, outputs: Any, from_0: Any, from_1: Any) -> None:
    import numpy as np

    seen, both = (from_0 > 0) | (from_1 > 0), (from_0 > 0) & (from_1 > 0)
    loss = np.log(from_0[both] / from_1[both])
    allowed = 1 / float(table.scale)
    top = max(2 * allowed, 1.2 * float(abs(loss).max(initial=0)))
    line = "-" if table.kind == "stairs" else "."
    axis.plot(outputs[both], loss, line, color=BLUE, markersize=1, label="loss of an output")
    tells = seen & ~both
    if tells.any():
        axis.plot(
            outputs[tells], np.where(from_0[tells] > 0, top, -top), "|", color=RED, markersize=6, label="gives x away"
        )
    for sign in (1, -1):
        axis.axhline(sign * allowed, color="black", linewidth=1, linestyle="--", label="allowed" if sign > 0 else None)
    axis.set(title="privacy loss, x = 0 against x = 1", xlabel="output, in ranges of x", ylabel="log likelihood ratio")
    axis.set_ylim(-1.3 * top, 2 * top)  # room for the legend
    axis.legend(frameon=False, fontsize=8, loc="upper right")


def _ends_panel(axis: Any, table: NoiseTable, from_0: Any, from_1: Any) -> None:
    total = from_0.sum()
    if table.limit is not None:
        bars = {"lower end": (from_0[0], from_1[0]), "upper end": (from_0[-1], from_1[-1])}
        title = "atoms at the ends"
    else:
        one_way = (from_0[from_1 == 0].sum(), from_1[from_0 == 0].sum())
        bars = {"output that the other\ninput cannot give": one_way}
        title = "holes"
    for i, (x, colour) in enumerate((("x = 0", BLUE), ("x = 1", GREY))):
        heights = [pair[i] / total for pair in bars.values()]
        places = [k + (i - 0.5) * 0.3 for k in range(len(bars))]
        axis.bar(places, heights, width=0.3, color=colour, label=x)
        for place, height in zip(places, heights, strict=True):
            axis.annotate(f"{height:.3f}", (place, height), ha="center", va="bottom", fontsize=8)
    axis.set_xticks(range(len(bars)), list(bars))
    axis.set(title=title, ylabel="probability", xlim=(-0.6, len(bars) - 0.4))
    axis.margins(y=0.15)
    axis.legend(frameon=False, fontsize=8)


def _canvas(panels: int, path: str | os.PathLike[str], width: float) -> tuple[Any, Any]:
    if Path(path).suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InputError(f"cannot draw to {path}; give a file name that ends in .png, .svg or .pdf.")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, 4), layout="constrained")
    return figure, [figure.add_subplot(1, panels, i + 1) for i in range(panels)]


def _save(figure: Any, path: str | os.PathLike[str]) -> None:
    from sensorsim.drawing import picture
    from sensorsim.files import write_whole

    form = Path(path).suffix[1:].lower()
    drawn = picture(figure, form, 120)
    write_whole(path, _few_colours(drawn) if form == "png" else drawn)


def _few_colours(png: bytes) -> bytes:
    """The same picture in 64 colours, which are enough for lines and letters, in a third of the bytes."""
    import io

    from PIL import Image

    smaller = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").quantize(64).save(smaller, "png", optimize=True)
    return smaller.getvalue()
