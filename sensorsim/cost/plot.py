"""Figures of costs. matplotlib is imported here and nowhere else in this package."""

from pathlib import Path
from typing import Any

from sensorsim.cost.report import CostReport
from sensorsim.drawing import picture
from sensorsim.errors import InputError
from sensorsim.files import write_whole

FORMATS = ("svg", "png", "pdf")
HATCHES = ("", "//", "..", "xx", "\\\\", "oo", "++")  # steps must be told apart in grey print too


def plot_report(report: CostReport, path: str) -> None:
    """Bars of the steps of every mechanism, printed and executed beside each other."""
    figure, axes = figure_for(path)
    bars = [
        (f"{cost.mechanism.title}\n{'printed' if name == 'printed' else 'executed'}", view)
        for cost in report.mechanisms.values()
        for name, view in cost.views()
        if name != "symbolic"
    ]
    steps = list(dict.fromkeys(step for _, view in bars for step in view.steps))
    for k, step in enumerate(steps):
        heights = [view.steps[step].cost.typical if step in view.steps else 0 for _, view in bars]
        if not any(heights):
            continue
        below = [sum(view.steps[s].cost.typical for s in steps[:k] if s in view.steps) for _, view in bars]
        grey = str(0.25 + 0.6 * k / len(steps))
        axes.bar(
            range(len(bars)), heights, bottom=below, label=step, color=grey, edgecolor="black", hatch=HATCHES[k % 7]
        )
    axes.set_xticks(range(len(bars)), [title for title, _ in bars], rotation=30, ha="right", fontsize=8)
    axes.set_ylabel(f"cost of a record, {report.pricing.unit}")
    sign = "signed" if report.pricing.signed else "unsigned"
    axes.set_title(
        f"n = {report.n}, l = {report.l} · {report.pricing.cpu.title} · {sign} {report.pricing.width}-bit · "
        f"{report.pricing.accounting} accounting",
        fontsize=9,
    )
    axes.legend(fontsize=8)
    save(figure, path)


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
