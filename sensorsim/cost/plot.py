"""Figures of costs. matplotlib is imported here and nowhere else in this package."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sensorsim.cost.record import WholeRecord
from sensorsim.cost.record_cost import PARTS
from sensorsim.cost.report import CostReport
from sensorsim.drawing import picture
from sensorsim.errors import InputError
from sensorsim.files import write_whole

FORMATS = ("svg", "png", "pdf")
HATCHES = ("", "//", "..", "xx", "\\\\", "oo", "++")  # steps must be told apart in grey print too


def plot_report(report: CostReport, path: str) -> None:
    """Write the figure of a report."""
    check_path(path)
    save(report_figure(report), path)


def report_figure(report: CostReport) -> Any:
    """Above, the steps of every mechanism, printed and executed; below, whole records and what the core takes of them.

    Arithmetic is a hundredth of a record: no axis shows both, so it has one of its own.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 9), layout="constrained")
    grid = figure.add_gridspec(2, 2)
    _draw_steps(report, figure.add_subplot(grid[0, :]))
    _draw_record(report.record, figure.add_subplot(grid[1, 0]), PARTS, "a whole record")
    _draw_record(report.record, figure.add_subplot(grid[1, 1]), PARTS[:2], "arithmetic and random words alone")
    return figure


def _draw_steps(report: CostReport, axes: Any) -> None:
    bars = [
        (f"{cost.mechanism.title}{', printed' if name == 'printed' else ''}", view)
        for cost in report.mechanisms.values()
        for name, view in cost.views()
        if name != "symbolic"
    ]
    steps = list(dict.fromkeys(step for _, view in bars for step in view.steps))
    heights = {
        step: [float(view.steps[step].cost.typical) if step in view.steps else 0.0 for _, view in bars]
        for step in steps
    }
    _stack(axes, heights)
    axes.set_xticks(range(len(bars)), [title for title, _ in bars], rotation=45, ha="right", fontsize=7)
    axes.set_ylabel(f"cost of a record, {report.pricing.unit}")
    sign = "signed" if report.pricing.signed else "unsigned"
    axes.set_title(
        f"n = {report.n}, l = {report.l} · {report.pricing.cpu.title} · {sign} {report.pricing.width}-bit · "
        f"{report.pricing.accounting} accounting",
        fontsize=9,
    )
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))


def _draw_record(record: WholeRecord, axes: Any, parts: Sequence[str], what: str) -> None:
    costs = list(record.costs.values())
    heights = {name: [(cost.parts[name].nJ or 0.0) / 1000 for cost in costs] for name in parts}
    _stack(axes, heights)
    axes.set_xticks(range(len(costs)), [cost.title for cost in costs], rotation=45, ha="right", fontsize=7)
    axes.set_ylabel("energy of a record, µJ")
    title = f"{what} · {record.chip.name} · {record.choices.random}"
    if "on air" in parts:
        title += f" · {record.radio.radio}" + ("" if record.store else " · memory not known")
    axes.set_title(title, fontsize=9)
    axes.set_ylim(top=1.25 * axes.get_ylim()[1])  # room for the legend
    axes.legend(fontsize=8, loc="upper right", ncols=2)


def _stack(axes: Any, heights: Mapping[str, Sequence[float]]) -> None:
    """Bars on top of each other, told apart in grey print too; what is zero everywhere is left out."""
    shown = {name: values for name, values in heights.items() if any(values)}
    below = [0.0] * len(next(iter(heights.values())))
    for k, (name, values) in enumerate(shown.items()):
        grey = str(0.25 + 0.6 * k / len(shown))
        hatch = HATCHES[k % len(HATCHES)]
        axes.bar(range(len(values)), values, bottom=below, label=name, color=grey, edgecolor="black", hatch=hatch)
        below = [low + value for low, value in zip(below, values, strict=True)]


def plot_sweep(rows: list[dict[str, Any]], name: str, report: CostReport, path: str) -> None:
    """Lines of every total against n or l."""
    figure, axes = figure_for(path)
    columns = [column for column in rows[0] if column.endswith(("_printed", "_derived"))]
    styles = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1)))
    for column, style in zip(columns, styles * 3, strict=False):
        values = [row[column] for row in rows]
        axes.plot([row[name] for row in rows], values, linestyle=style, label=column.replace("_", " "))
    axes.set_xlabel("features of a record, n" if name == "n" else "hidden units, l")
    axes.set_ylabel(f"cost of a record, {report.pricing.unit}")
    axes.set_title(
        f"{report.pricing.cpu.title} · {report.pricing.width}-bit · {report.pricing.accounting} accounting", fontsize=9
    )
    axes.legend(fontsize=8)
    axes.grid(alpha=0.3)
    save(figure, path)


def check_path(path: str) -> None:
    """Refuse a path that cannot become a figure, before anything is computed."""
    target = Path(path)
    if target.suffix.lstrip(".").lower() not in FORMATS:
        raise InputError(f"{path} is not a figure; give a name that ends in {', '.join('.' + f for f in FORMATS)}.")
    if not target.parent.is_dir():
        raise InputError(
            f"cannot write {path}: there is no folder {target.parent}; make it first or give another path."
        )


def figure_for(path: str) -> tuple[Any, Any]:
    check_path(path)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    return figure, figure.add_subplot()


def save(figure: Any, path: str) -> None:
    write_whole(path, picture(figure, Path(path).suffix.lstrip(".").lower(), 150))
