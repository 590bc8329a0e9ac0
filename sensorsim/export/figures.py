"""The figure of the machine level: stacked bars per class and level."""

from typing import Any

from sensorsim.cost.plot import HATCHES, figure_for, save
from sensorsim.export.levels import Case, MachineReport
from sensorsim.machine.decode import CLASSES

PRINTED = "printed, not split"


def plot_levels(report: MachineReport, path: str) -> None:
    """One panel for each core, since units differ; in it three bars for each mechanism, stacked by class."""
    figure, _ = figure_for(path)
    figure.clear()
    cpus = list(dict.fromkeys(case.cpu for case in report.cases))
    figure.set_size_inches(2 + 4 * len(cpus), 5.5)
    panels = figure.subplots(1, len(cpus), squeeze=False)[0]
    for axes, cpu in zip(panels, cpus, strict=True):
        _panel(axes, [case for case in report.cases if case.cpu == cpu])
    handles = {
        label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="outside right upper", fontsize=8)
    figure.suptitle(f"n = {report.n}, l = {report.l} · {report.compiler}, {report.flags}", fontsize=9)
    save(figure, path)


def _panel(axes: Any, cases: list[Case]) -> None:
    from matplotlib import colormaps

    bars: list[tuple[str, dict[str, float]]] = []
    for case in cases:
        if case.paper is not None:
            bars.append((f"{case.mechanism}, paper", {PRINTED: case.paper}))
        bars += [(f"{case.mechanism}, kernel", case.kernel.costs), (f"{case.mechanism}, machine", case.machine.costs)]
    below = [0.0] * len(bars)
    for k, name in enumerate((PRINTED, *CLASSES)):
        heights = [parts.get(name, 0.0) for _, parts in bars]
        if any(heights):
            look = {"color": colormaps["tab20"](k), "edgecolor": "black", "hatch": HATCHES[k % len(HATCHES)]}
            axes.bar(range(len(bars)), heights, bottom=below, label=name, **look)
        below = [low + height for low, height in zip(below, heights, strict=True)]
    axes.set_xticks(range(len(bars)), [title for title, _ in bars], rotation=90, fontsize=7)
    axes.set_title(cases[0].cpu, fontsize=9)
    axes.set_ylabel(f"cost of a record, {cases[0].unit}", fontsize=8)
