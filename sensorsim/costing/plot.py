"""Draw figures of costs. matplotlib is imported here and nowhere else in this package."""

from collections.abc import Sequence
from typing import Any

from sensorsim._util.drawing import apart, stacked_bars
from sensorsim.costing.cost_report import CostReport
from sensorsim.costing.cost_text import format_number, format_short, sizes
from sensorsim.costing.record_energy import PARTS, WholeRecord

SMALL, USUAL = 7, 9  # sizes of letters
TO_ITS_END = {"arrowstyle": "-", "color": "0.6", "linewidth": 0.6, "shrinkA": 1, "shrinkB": 0, "relpos": (0, 0.5)}
BAR = 0.2  # inches that a bar takes
STYLES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1)))
LETTER = 0.022  # of the height of a sweep's axis: two names have to be so far apart


def report_figure(report: CostReport) -> Any:
    """Draw the steps of every mechanism, printed and executed, above whole records and the core's share of them.

    Arithmetic is a hundredth of a record: no axis shows both, so it has one of its own.
    """
    from matplotlib.figure import Figure

    bars, records = len(_bars(report)), len(report.record.costs)
    figure: Any = Figure(figsize=(11, 2.6 + BAR * (bars + records)), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=(1.1 + BAR * bars, 1.5 + BAR * records))
    _draw_steps(report, above.add_subplot())
    left, right = below.subplots(1, 2, sharey=True)
    _draw_record(report.record, left, PARTS, "a whole record")
    _draw_record(report.record, right, PARTS[:2], "of it arithmetic and random words alone")
    right.tick_params(axis="y", labelleft=False)
    return figure


def _bars(report: CostReport) -> list[tuple[str, Any]]:
    """Return the title and the view of every bar: as printed where there is a list, and as counted."""
    made = []
    for cost in report.mechanisms.values():
        if cost.printed is not None:
            made.append((f"{cost.mechanism.title}, printed", cost.printed))
        made.append((cost.mechanism.title, cost.counted))
    return made


def _draw_steps(report: CostReport, axes: Any) -> None:
    bars = _bars(report)
    steps = merge_orders([list(view.steps) for _, view in bars])
    parts = {
        step: [float(view.steps[step].cost.typical) if step in view.steps else 0.0 for _, view in bars]
        for step in steps
    }
    stacked_bars(axes, [title for title, _ in bars], parts, format_number)
    axes.set_xlabel(f"cost of a record, {report.pricing.unit}, step by step", fontsize=8)
    sign = "signed" if report.pricing.signed else "unsigned"
    how = "executed" if report.executed else "derived from the source"
    axes.set_title(
        f"{sizes(report.n, report.l)} · {report.pricing.cpu.title} · {sign} "
        f"{report.pricing.width}-bit · {report.pricing.accounting} accounting · {how} where not printed",
        fontsize=USUAL,
    )
    axes.legend(
        fontsize=SMALL, loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, title="from left to right",
        title_fontsize=SMALL,
    )  # fmt: skip


def merge_orders(orders: Sequence[Sequence[str]]) -> list[str]:
    """Merge orders of names; a new name goes before the next of its own order that is known, else last."""
    found: list[str] = []
    for order in orders:
        place = len(found)
        for name in reversed(order):
            if name in found:
                place = found.index(name)
            else:
                found.insert(place, name)
    return found


def _draw_record(record: WholeRecord, axes: Any, parts: Sequence[str], what: str) -> None:
    costs = list(record.costs.values())
    energies = {name: [(cost.parts[name].nJ or 0.0) / 1000 for cost in costs] for name in parts}
    stacked_bars(axes, [cost.title for cost in costs], energies, format_short)
    axes.set_xlabel("energy of a record, µJ", fontsize=8)
    title = f"{what} · {record.chip.name} · {record.choices.random}"
    if "on air" in parts:
        title += f" · {record.radio.radio}" + ("" if record.store else " · memory not known")
    axes.set_title(title, fontsize=USUAL)
    axes.legend(fontsize=SMALL, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=4, frameon=False)


def sweep_figure(rows: list[dict[str, Any]], name: str, report: CostReport) -> Any:
    """Draw every total against n or l with its name at its end; the paper's mechanisms in black."""
    from matplotlib.figure import Figure

    columns = [column for column in rows[0] if column.endswith(("_printed", "_derived"))]
    figure = Figure(figsize=(9, 6), layout="constrained")
    axes = figure.add_subplot()
    at = [row[name] for row in rows]
    for column, style in zip(columns, STYLES * len(columns), strict=False):
        color, linewidth = ("black", 1.6) if column.partition("_")[0] in ("spof", "dpsgd") else ("0.5", 1.0)
        marker = "o" if len(rows) == 1 else "None"
        values = [row[column] for row in rows]
        axes.plot(at, values, linestyle=style, color=color, linewidth=linewidth, marker=marker)
    if min(row[column] for row in rows for column in columns) > 0:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    if len(rows) > 1:
        axes.set_xlim(at[0], at[-1])
        near = 0.06 * (at[-1] - at[0])
        inner = [tick for tick in axes.get_xticks() if at[0] + near < tick < at[-1] - near]
        axes.set_xticks([at[0], *inner, at[-1]])
    _name_ends(axes, rows[-1], columns)
    other = "l" if name == "n" else "n"
    axes.set_xlabel("features of a record, n" if name == "n" else "hidden units, l")
    axes.set_ylabel(f"cost of a record, {report.pricing.unit}")
    axes.set_title(
        f"{other} = {rows[0][other]} · {report.pricing.cpu.title} · {report.pricing.width}-bit · "
        f"{report.pricing.accounting} accounting · derived from the sources, printed: the paper's list",
        fontsize=USUAL,
    )
    axes.grid(color="0.9", linewidth=0.6)
    return figure


def _name_ends(axes: Any, last: dict[str, Any], columns: Sequence[str]) -> None:
    """Write the name of each line beside its end, moved until no two overlap, with a thin line to the end."""
    low, high = axes.get_ylim()
    to_axis = axes.transData + axes.transAxes.inverted()
    ordered = sorted(columns, key=lambda column: float(last[column]))
    heights = [float(to_axis.transform((1, last[column]))[1]) for column in ordered]
    for column, height, place in zip(ordered, heights, apart(heights, LETTER * 1.4, 0.0, 1.0), strict=True):
        said = f"{column.replace('_', ' ')} {last[column]:,.6g}"
        axes.annotate(
            said, (1, height), (1.03, place), xycoords="axes fraction", textcoords="axes fraction", va="center",
            fontsize=SMALL, arrowprops=TO_ITS_END,
        )  # fmt: skip
    axes.set_ylim(low, high)
