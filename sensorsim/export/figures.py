"""The figure of the machine level: stacked bars per class and level."""

from typing import Any

from sensorsim.cost.cost_text import format_number
from sensorsim.cost.plot import BAR
from sensorsim.drawing import check_figure, look, stacked_bars, write_figure
from sensorsim.export.levels import Case, MachineReport
from sensorsim.machine.decode import CLASSES

PRINTED = "printed, not split"


def plot_levels(report: MachineReport, path: str) -> None:
    """Write the figure of the levels."""
    check_figure(path)
    write_figure(levels_figure(report), path)


def levels_figure(report: MachineReport) -> Any:
    """One panel for each core, since units differ; in it three bars for each mechanism, stacked by class."""
    from matplotlib.figure import Figure

    cpus = list(dict.fromkeys(case.cpu for case in report.cases))
    bars = {cpu: _bars([case for case in report.cases if case.cpu == cpu]) for cpu in cpus}
    figure = Figure(figsize=(11, 1.6 + sum(0.8 + BAR * len(each) for each in bars.values())), layout="constrained")
    panels = figure.subplots(
        len(cpus), 1, squeeze=False, height_ratios=[0.8 + BAR * len(each) for each in bars.values()]
    )
    looks = {name: look(place) for place, name in enumerate((PRINTED, *CLASSES))}
    for axes, cpu in zip(panels[:, 0], cpus, strict=True):
        parts = {name: [each.get(name, 0.0) for _, each in bars[cpu]] for name in (PRINTED, *CLASSES)}
        stacked_bars(axes, [title for title, _ in bars[cpu]], parts, format_number, looks)
        unit = next(case.unit for case in report.cases if case.cpu == cpu)
        axes.set_xlabel(f"cost of a record on {cpu}, {unit}", fontsize=8)
    handles = {
        label: handle for axes in panels[:, 0] for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    ordered = [name for name in (PRINTED, *CLASSES) if name in handles]
    figure.legend([handles[name] for name in ordered], ordered, loc="outside right upper", fontsize=7, frameon=False)
    figure.suptitle(
        f"n = {report.n}, l = {report.l} · paper: the printed list, kernel: its operations, machine: instructions · "
        f"{report.compiler}",
        fontsize=8,
    )
    return figure


def _bars(cases: list[Case]) -> list[tuple[str, dict[str, float]]]:
    bars: list[tuple[str, dict[str, float]]] = []
    for case in cases:
        if case.paper is not None:
            bars.append((f"{case.mechanism}, paper", {PRINTED: case.paper}))
        bars += [(f"{case.mechanism}, kernel", case.kernel.costs), (f"{case.mechanism}, machine", case.machine.costs)]
    return bars
