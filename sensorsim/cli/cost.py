"""`sensorsim cost`."""

from typing import Any

import click

from sensorsim.cli.output import emit, format_option
from sensorsim.cost.report import ACCOUNTINGS, METRICS, CostReport, cost
from sensorsim.errors import InputError
from sensorsim.kernels.formats import N


@click.command()
@click.option("--n", default=14, show_default=True, help="Features of a record.")
@click.option("--l", default=7, show_default=True, help="Hidden units of the encoder.")
@click.option("--m", default=1, show_default=True, help="Users, one encoder each.")
@click.option(
    "--cpu", help="Processor; `sensorsim cpus` lists them. At machine level several, with commas.  [default: k7]"
)
@click.option(
    "--width", type=click.Choice(["8", "16", "32"]), help="Operand width in bits.  [default: 8 on k7, else 32]"
)
@click.option("--signed/--unsigned", default=False, show_default=True, help="Signedness of the operands.")
@click.option(
    "--accounting",
    type=click.Choice(ACCOUNTINGS),
    default="paper",
    show_default=True,
    help="paper: price what the paper prices; full: price every operation.",
)
@click.option(
    "--variant",
    type=click.Choice(["paper", "lean", "all"]),
    default="all",
    show_default=True,
    help="paper: as printed; lean: what a firmware engineer would ship.",
)
@click.option("--metric", type=click.Choice(METRICS), help="What to count.  [default: the processor table's unit]")
@click.option("--chip", help="A chip, for energy; `sensorsim cpus` lists them.")
@click.option(
    "--level",
    type=click.Choice(["kernel", "machine"]),
    default="kernel",
    show_default=True,
    help="machine: compile the kernels, run the machine code and set it beside the other levels.",
)
@click.option("--battery-mah", type=float, help="At machine level with --chip: records that a battery pays for.")
@click.option("--sweep", metavar="n=1:256", help="A range of n or l: one row for each value.")
@click.option("--plot", metavar="FILE", help="Draw the costs into an .svg, .png or .pdf file.")
@format_option
def command(
    sweep: str | None,
    plot: str | None,
    fmt: str,
    width: str | None,
    level: str,
    battery_mah: float | None,
    **choices: Any,
) -> None:
    """What a private record costs on a sensor's processor.

    Counts the operations of SPOF and DP-SGD three ways (printed by the paper, derived from the kernels' source,
    executed) and prices them from the processor's table.

    Example: sensorsim cost --n 14 --l 7 --cpu cortex-m4 --accounting full
    """
    choices["width"] = int(width) if width else None
    if plot:
        from sensorsim.cost.plot import check_path

        check_path(plot)
    if level == "machine":
        _machine(sweep, plot, fmt, battery_mah, choices)
        return
    if battery_mah is not None:
        raise InputError("--battery-mah is for --level machine with --chip; add them.")
    if sweep:
        _sweep(sweep, plot, fmt, choices)
        return
    report = cost(**choices)
    if plot:
        from sensorsim.cost.plot import plot_report

        plot_report(report, plot)
    emit(fmt, lambda: _text(report), report.to_dict, report.rows)


def _machine(sweep: str | None, plot: str | None, fmt: str, battery_mah: float | None, choices: dict[str, Any]) -> None:
    from sensorsim.cli.cost_machine import machine_text
    from sensorsim.export.levels import machine_cost

    fixed = {"m": 1, "width": None, "signed": False, "accounting": "paper", "metric": None}
    if sweep or any(choices[name] != value for name, value in fixed.items()):
        raise InputError("--level machine takes --n, --l, --cpu, --variant, --chip, --battery-mah and --plot only.")
    cpus = [name.strip() for name in (choices["cpu"] or "").split(",") if name.strip()]
    report = machine_cost(choices["n"], choices["l"], cpus, choices["variant"], choices["chip"], battery_mah)
    if plot:
        from sensorsim.export.figures import plot_levels

        plot_levels(report, plot)
    emit(fmt, lambda: machine_text(report), report.to_dict, report.rows)


def _text(report: CostReport) -> str:
    from sensorsim.cost.text import cost_text

    return cost_text(report)


def _sweep(text: str, plot: str | None, fmt: str, choices: dict[str, Any]) -> None:
    from sensorsim.cost.compare import sweep

    name, values = _range(text)

    def make(n: int, l: int) -> CostReport:
        return cost(**{**choices, "n": n, "l": l})

    rows = sweep(make, name, values, choices["n"], choices["l"])
    if not rows:
        raise InputError(f"--sweep {text} leaves no case with l <= n; widen it or change --n or --l.")
    left_out = len(values) - len(rows)
    if left_out:
        click.echo(f"{left_out} values left out: l would be larger than n.", err=True)
    report = make(rows[0]["n"], rows[0]["l"])
    if plot:
        from sensorsim.cost.plot import plot_sweep

        plot_sweep(rows, name, report, plot)
    of_one_case = ("n", "l", "mechanisms", "sensor_release", "saving_percent", "saving_percent_executed")
    head = {key: value for key, value in report.to_dict().items() if key not in of_one_case}
    emit(fmt, lambda: _aligned(rows, report), lambda: {**head, "rows": rows}, lambda: rows)


def _range(text: str) -> tuple[str, range]:
    name, _, bounds = text.partition("=")
    first, _, last = bounds.partition(":")
    if name not in ("n", "l") or not first.isdecimal() or not last.isdecimal() or not 1 <= int(first) <= int(last):
        raise InputError(f"--sweep {text} is not a range; give n=FIRST:LAST or l=FIRST:LAST with 1 <= FIRST <= LAST.")
    if int(last) > N.hi:
        raise InputError(f"--sweep {text} goes past {N.hi}, the largest {name} of the kernels; end it there.")
    return name, range(int(first), int(last) + 1)


def _aligned(rows: list[dict[str, Any]], report: CostReport) -> str:
    from sensorsim.cost.text import heading, notes, number

    titles = [name.replace("_", " ") for name in rows[0]]
    shown = [[f"{v:.2f}" if k == "saving_percent" else number(v) for k, v in row.items()] for row in rows]
    widths = [max(len(t), *(len(line[i]) for line in shown)) for i, t in enumerate(titles)]
    lines = [heading(report)[1], "  ".join(t.rjust(w) for t, w in zip(titles, widths, strict=True))]
    lines += ["  ".join(cell.rjust(w) for cell, w in zip(line, widths, strict=True)) for line in shown]
    return "\n".join(lines + notes(report))
