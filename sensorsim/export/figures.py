"""The figure of the machine level: stacked bars per class and level."""

from sensorsim.cost.plot import HATCHES, figure_for, save
from sensorsim.export.decode import CLASSES
from sensorsim.export.levels import MachineReport


def plot_levels(report: MachineReport, path: str) -> None:
    """For every mechanism and core three bars: paper, kernel, machine; each bar is stacked by class."""
    figure, axes = figure_for(path)
    bars: list[tuple[str, dict[str, float]]] = []
    for case in report.cases:
        head = f"{case.mechanism}, {case.cpu}\n"
        if case.paper is not None:
            bars.append((head + "paper", {"all": case.paper}))
        bars += [(head + "kernel", case.kernel.costs), (head + "machine", case.machine.costs)]
    names = [name for name in ("all", *CLASSES) if any(parts.get(name) for _, parts in bars)]
    below = [0.0] * len(bars)
    for k, name in enumerate(names):
        heights = [parts.get(name, 0.0) for _, parts in bars]
        grey = str(0.3 + 0.6 * k / len(names))
        label = "printed, not split" if name == "all" else name
        axes.bar(
            range(len(bars)), heights, bottom=below, label=label, color=grey, edgecolor="black", hatch=HATCHES[k % 7]
        )
        below = [low + height for low, height in zip(below, heights, strict=True)]
    axes.set_xticks(range(len(bars)), [title for title, _ in bars], rotation=90, fontsize=6)
    axes.set_ylabel(f"cost of a record, {' or '.join(dict.fromkeys(case.unit for case in report.cases))}")
    axes.set_title(f"n = {report.n}, l = {report.l} · {report.compiler}, -O2", fontsize=9)
    axes.legend(fontsize=7, ncols=2)
    save(figure, path)
