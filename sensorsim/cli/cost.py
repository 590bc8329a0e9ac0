"""`sensorsim cost`."""

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any

import click

from sensorsim._util import progress
from sensorsim._util.errors import InputError
from sensorsim._util.terminal import columns
from sensorsim.calls import listed
from sensorsim.cli.choices import CHIP, CPUS, FIGURE, RADIO
from sensorsim.cli.defaults import options_of
from sensorsim.cli.locking import Locks, lock_options, settle_cost, settle_machine
from sensorsim.cli.output import emit, format_option, refuse_idle
from sensorsim.costing.cost_report import ACCOUNTINGS, METRICS, CostReport, cost
from sensorsim.costing.record_energy import SOURCES
from sensorsim.kernels.formats import N

if TYPE_CHECKING:
    from sensorsim.costing.record_energy import WholeRecord
    from sensorsim.machine.machine_cost import MachineReport

SWEPT = ("spof_", "dpsgd_", "saving_", "sensor_")  # columns of a sweep that are shown
FITTING = 3  # columns of leaner kernels in 80 characters
option = options_of(cost)


@click.command()
@option("--n", help="Features of a record.")
@option("--l", help="Hidden units of the encoder.")
@option("--m", help="Users, one encoder each.")
@option(
    "--cpu",
    type=CPUS,
    help="Processor; `sensorsim cpus` lists them, or FILE.csv, a table of your own. At machine level several, with "
    "commas.  [default: k7]",
)
@option("--width", type=click.Choice(["8", "16", "32"]), help="Operand width in bits.  [default: 8 on k7, else 32]")
@option("--signed/--unsigned", help="Signedness of the operands.")
@option(
    "--accounting",
    type=click.Choice(ACCOUNTINGS),
    help="paper: price what the paper prices; full: price every operation.",
)
@option(
    "--variant",
    type=click.Choice(["paper", "lean", "all"]),
    help="paper: as printed; lean: what a firmware engineer would ship.",
)
@option("--metric", type=click.Choice(METRICS), help="What to count.  [default: the processor table's unit]")
@option("--chip", type=CHIP, help="A chip, for energy; `sensorsim cpus` lists them, or FILE.csv with your own.")
@option(
    "--random",
    type=click.Choice(SOURCES),
    help="Where a record's random words come from, in whole blocks; trng: the chip's own generator.",
)
@option("--radio", type=RADIO, help="What sends it: ble-2m, ble-coded-s8, 802154, lora-sf7 …")
@option("--records-per-day", type=float, help="For the energy of a day.")
@click.option(
    "--level",
    type=click.Choice(["kernel", "machine"]),
    default="kernel",
    show_default=True,
    help="machine: compile the kernels, run the machine code and set it beside the other levels.",
)
@option("--battery-mah", type=float, help="Also whole records that a battery pays for.")
@click.option("--sweep", metavar="n=1:256", help="A range of n or l: one row for each value.")
@click.option("--plot", type=FIGURE, help="Draw the costs into an .svg, .png or .pdf file.")
@lock_options("cost")
@format_option
def command(
    locks: Locks,
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
    executed) and prices them from the processor's table. Below it a whole record in microjoules on a chip: arithmetic,
    random words, the journal, the packet on the air.

    Example: sensorsim cost --n 14 --l 7 --cpu cortex-m4 --accounting full
    """
    choices["width"] = int(width) if width else None
    if level == "machine":
        _machine(locks, sweep, plot, fmt, battery_mah, choices)
        return
    if sweep:
        _sweep(sweep, plot, fmt, battery_mah, choices)
        return
    with _no_collection():
        report = _with_battery(cost(**choices), battery_mah)
        assert report.record  # what no chip or radio can do is refused in every format
        settle_cost(locks, report, choices)
        if plot:
            from sensorsim.costing.plot import plot_report

            plot_report(report, plot)
        emit(fmt, lambda: _text(report), report.to_dict, report.rows)


def _with_battery(report: CostReport, battery_mah: float | None) -> CostReport:
    from dataclasses import replace

    if battery_mah is None:
        return report
    return replace(report, choices=report.choices._replace(battery_mah=battery_mah))


@contextmanager
def _no_collection() -> Iterator[None]:
    """Reading kernels makes many small objects that all stay: to look for garbage among them takes a quarter longer.

    Nor is it looked for at the end of the process, which frees all at once.
    """
    was_on = gc.isenabled()
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _machine(
    locks: Locks, sweep: str | None, plot: str | None, fmt: str, battery_mah: float | None, choices: dict[str, Any]
) -> None:
    from sensorsim.cli.cost_machine import machine_text
    from sensorsim.codegen.sensor_package import default_sensor_costs
    from sensorsim.costing.cost_text import LEFT_OUT, fold_all, record_panel
    from sensorsim.costing.record_energy import Choices, resolve_choices
    from sensorsim.machine.machine_cost import machine_cost

    fixed = {"m": 1, "width": None, "signed": False, "accounting": "paper", "metric": None}
    if sweep or any(choices[name] != value for name, value in fixed.items()):
        raise InputError(
            "--level machine takes --n, --l, --cpu, --variant, --chip, --random, --radio, --records-per-day, "
            "--battery-mah and --plot only."
        )
    if battery_mah is not None and choices["chip"] is None:
        raise InputError("--battery-mah at machine level needs --chip; add it.")
    asked = Choices(*({**choices, "battery_mah": battery_mah}[name] for name in Choices._fields))
    if asked.chip is None and asked != Choices():
        raise InputError("--random, --radio and --records-per-day at machine level need a chip; give --chip.")
    if asked.chip is not None:
        resolve_choices(asked, "")  # a wrong one is told before anything is compiled
    cpus = listed(choices["cpu"] or "")
    with progress.step("running machine code"):
        sizes, chip = (choices["n"], choices["l"]), choices["chip"]
        report = machine_cost(*sizes, cpus, choices["variant"], chip, default_sensor_costs)
    kernel_level = _with_battery(cost(**{**choices, "cpu": None}), battery_mah) if asked.chip else None
    whole = report  # words and sensor are compiled too, also where the report leaves them out
    if kernel_level and choices["variant"] != "all":
        with progress.step("running machine code"):
            whole = machine_cost(*sizes, cpus, "all", chip, default_sensor_costs)
    record = _machine_record(whole, kernel_level) if kernel_level else None
    if plot:
        from sensorsim.machine.machine_cost import plot_levels

        plot_levels(report, plot)
    more = {"record": record.to_dict()} if record else {}
    settle_machine(locks, report.to_dict() | more)
    panel = (
        ["", *record_panel(record, kernel_level.saving(), columns()), *fold_all([LEFT_OUT], columns())]
        if record and kernel_level
        else []
    )
    emit(
        fmt, lambda: "\n".join([machine_text(report, columns()), *panel]), lambda: report.to_dict() | more, report.rows
    )


def _machine_record(report: "MachineReport", kernel_level: CostReport) -> "WholeRecord":
    """The whole record from the cycles of the compiled code."""
    from sensorsim.costing.record_energy import SENSOR, price_whole_record

    cycles = {case.mechanism: case.machine.total for case in report.cases}
    for sensor in report.sensor:
        for call in sensor.calls:
            if call.call == "release" and call.cost is not None:
                cycles[SENSOR] = call.cost
    return price_whole_record(kernel_level, cycles=cycles)


def _text(report: CostReport) -> str:
    from sensorsim.costing.cost_text import cost_text

    return cost_text(report, columns())


def _sweep(text: str, plot: str | None, fmt: str, battery_mah: float | None, choices: dict[str, Any]) -> None:
    from sensorsim.costing.cost_report import sweep

    if battery_mah is not None or choices["records_per_day"] != 1:
        raise InputError("--sweep has the µJ of one record: leave --records-per-day and --battery-mah out.")
    name, values = _range(text)
    refuse_idle((name,), f"--sweep {text} goes over {name}")
    refuse_idle(("m",), "--sweep counts one record of one user")
    tried = [{"n": choices["n"], "l": choices["l"], name: value} for value in values]
    cases = [(at["n"], at["l"]) for at in tried if at["l"] <= at["n"]]  # no encoder has more hidden units than features
    if not cases:
        raise InputError(f"--sweep {text} leaves no case with l <= n; widen it or change --n or --l.")
    left_out = len(values) - len(cases)
    if left_out:
        click.echo(f"{left_out} values left out: l would be larger than n.", err=True)
    report = cost(**{**choices, "n": cases[0][0], "l": cases[0][1], "most": 0})  # nothing of it is run
    rows = list(_told(sweep(report, cases), len(cases)))
    if plot:
        from sensorsim.costing.plot import plot_sweep

        plot_sweep(rows, name, report, plot)
    of_one_case = {"n", "l", "mechanisms", "sensor_release", "record", "published"}
    of_one_case |= {"printed_by_operands", "break_even_division"}
    whole_report = report.to_dict().items()
    head = {key: value for key, value in whole_report if key not in of_one_case and not key.startswith("saving_")}
    whole = report.record.to_dict()
    of_records = {key: whole[key] for key in ("chip", "radio", "radio_of", "random")}
    emit(
        fmt,
        lambda: _aligned(rows, report, name),
        lambda: {**head, "whole_record": of_records, "rows": rows},
        lambda: rows,
    )


def _told(rows: Iterator[dict[str, Any]], count: int) -> Iterator[dict[str, Any]]:
    """The same rows; where they take long, how many are done, on stderr."""
    told = monotonic()
    for done, row in enumerate(rows, 1):
        if monotonic() - told > progress.SECONDS_OF_SILENCE:
            click.echo(f"{done} of {count} values", err=True)
            told = monotonic()
        yield row


def _range(text: str) -> tuple[str, range]:
    name, _, bounds = text.partition("=")
    first, _, last = bounds.partition(":")
    if name not in ("n", "l") or not first.isdecimal() or not last.isdecimal() or not 1 <= int(first) <= int(last):
        raise InputError(f"--sweep {text} is not a range; give n=FIRST:LAST or l=FIRST:LAST with 1 <= FIRST <= LAST.")
    if int(last) > N.hi:
        raise InputError(f"--sweep {text} goes past {N.hi}, the largest {name} of the kernels; end it there.")
    return name, range(int(first), int(last) + 1)


def _aligned(rows: list[dict[str, Any]], report: CostReport, name: str) -> str:
    """The paper's two mechanisms and whole records; of the lean ones, where they are alone, as many as fit."""
    from sensorsim.costing.cost_text import describe_record, fold_all, format_number, format_short, heading, notes

    def cell(key: str, value: Any) -> str:
        return (
            format_short(value)
            if key.endswith("_uJ")
            else f"{value:.2f}"
            if key == "saving_percent"
            else format_number(value)
        )

    chosen = [key for key in rows[0] if key == name or key.startswith(SWEPT)]
    chosen += [] if "spof_printed" in rows[0] else [key for key in rows[0] if key.endswith("_derived")][:FITTING]
    heads = [key.replace("uJ", "µJ").rpartition("_") for key in chosen]  # a line above the other: they are long
    shown = [[head for head, _, _ in heads], [end for _, _, end in heads]]
    shown += [[cell(key, row[key]) for key in chosen] for row in rows]
    widths = [max(len(line[i]) for line in shown) for i in range(len(chosen))]
    lines = fold_all([heading(report)[1], f"µJ: a whole record on {describe_record(report.record)}"], columns())
    lines += ["  ".join(c.rjust(w) for c, w in zip(line, widths, strict=True)) for line in shown]
    more = " All other kernels: --format csv or json." if len(chosen) < len(rows[0]) - 1 else ""
    return "\n".join([*lines, *filter(None, [more]), *fold_all(notes(report), columns())])
