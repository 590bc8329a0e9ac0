"""`sensorsim cost`: what a private record costs, for one size, over a range of sizes, or as machine code."""

from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any

from sensorsim._util import progress
from sensorsim._util.errors import InputError
from sensorsim._util.option_kinds import CHIP, CPUS, RADIO, Choice, Flag, Kind, Number, Whole, split_names
from sensorsim._util.results import Listing
from sensorsim._util.terminal import columns, widest
from sensorsim.commands.declare import Also, Command, option, values_of
from sensorsim.costing.cost_report import ACCOUNTINGS, METRICS, CostReport, cost
from sensorsim.costing.pricing import MOST_EXECUTED
from sensorsim.costing.record_energy import SOURCES
from sensorsim.kernels.formats import N

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sensorsim.commands.lock_file import Taken
    from sensorsim.costing.record_energy import WholeRecord
    from sensorsim.machine.machine_cost import MachineReport

SWEPT = ("spof_", "dpsgd_", "saving_", "sensor_")  # columns of a sweep that are shown
FITTING = 3  # columns of leaner kernels in 80 characters
OF_ONE_CASE = {"n", "l", "mechanisms", "sensor_release", "record", "published", "printed_by_operands"}
OF_ONE_CASE |= {"break_even_division"}


class Range(Kind):
    """A range of n or l, as in n=1:256."""

    metavar = "n=1:256"

    def check(self, label: str, value: Any) -> str:
        text: str = super().check(label, value)
        name, _, bounds = text.partition("=")
        first, _, last = bounds.partition(":")
        if name not in ("n", "l") or not first.isdecimal() or not last.isdecimal() or not 1 <= int(first) <= int(last):
            allowed = "n=FIRST:LAST or l=FIRST:LAST with 1 <= FIRST <= LAST"
            raise InputError(f"{label} {text} is not a range; give {allowed}.")
        if int(last) > N.hi:
            raise InputError(f"{label} {text} goes past {N.hi}, the largest {name} of the kernels; end it there.")
        return text


def sweep_listing(report: CostReport, name: str, rows: list[dict[str, Any]]) -> Listing:
    """Return the costs of a record over a range of n or l, one row for each value; `report` is of the first."""

    def draw(title: str) -> "Figure":
        from sensorsim.costing.plot import sweep_figure

        figure: Figure = sweep_figure(rows, name, report)
        return figure

    record = report.record.to_dict()
    left_out = OF_ONE_CASE | {key for key in report.to_dict() if key.startswith("saving_")}
    head = {key: value for key, value in report.to_dict().items() if key not in left_out}
    of_records = {key: record[key] for key in ("chip", "radio", "radio_of", "random")}
    return Listing(
        f"cost of a record over {name}, {len(rows)} values; {report.pricing.cpu.title}",
        rows,
        {**head, "whole_record": of_records, "rows": rows},
        draw,
        {f"{name} = {row[name]}": f"{row['sensor_uJ']:.3g} µJ on the sensor" for row in rows[:FITTING]},
        lambda: sweep_text(report, name, rows),
    )


def sweep_text(report: CostReport, name: str, rows: list[dict[str, Any]]) -> str:
    """Show the paper's two mechanisms and whole records; of the lean ones alone, as many as fit."""
    from sensorsim.costing.cost_text import describe_record, fold_all, format_number, format_short, heading, notes

    def cell(key: str, value: Any) -> str:
        if key == "saving_percent":
            return f"{value:.2f}"
        return format_short(value) if key.endswith("_uJ") else format_number(value)

    chosen = [key for key in rows[0] if key == name or key.startswith(SWEPT)]
    chosen += [] if "spof_printed" in rows[0] else [key for key in rows[0] if key.endswith("_derived")][:FITTING]
    heads = [key.replace("uJ", "µJ").rpartition("_") for key in chosen]  # a line above the other: they are long
    shown = [[head for head, _, _ in heads], [end for _, _, end in heads]]
    shown += [[cell(key, row[key]) for key in chosen] for row in rows]
    widths = [widest(column) for column in zip(*shown, strict=True)]
    lines = fold_all([heading(report)[1], f"µJ: a whole record on {describe_record(report.record)}"], columns())
    lines += ["  ".join(c.rjust(w) for c, w in zip(line, widths, strict=True)) for line in shown]
    more = [" All other kernels: --format csv or json."] if len(chosen) < len(rows[0]) - 1 else []
    return "\n".join([*lines, *more, *fold_all(notes(report), columns())])


def machine_listing(report: "MachineReport", record: "WholeRecord | None", saving: float | None) -> Listing:
    """Return the cost of a record at three levels, and the whole record on a chip from cycles of compiled code."""

    def draw(_: str) -> "Figure":
        from sensorsim.machine.machine_cost import levels_figure

        figure: Figure = levels_figure(report)
        return figure

    def text() -> str:
        from sensorsim.commands.cost_machine import machine_text
        from sensorsim.costing.cost_text import LEFT_OUT, fold_all, record_panel

        width = columns()
        parts = [machine_text(report, width)]
        if record:
            parts += ["", *record_panel(record, saving, width), *fold_all([LEFT_OUT], width)]
        return "\n".join(parts)

    title = f"cost of a record as machine code, n = {report.n}, l = {report.l}"
    said = {f"{case.cpu}, {case.title}": f"{case.machine.total:.0f} {case.unit}" for case in report.cases}
    data = report.to_dict() | ({"record": record.to_dict()} if record else {})
    return Listing(title, list(report.rows()), data, draw, said, text)


@dataclass(frozen=True)
class Cost(Command[Any]):
    """Counts the operations of SPOF and DP-SGD three ways (printed by the paper, derived from the kernels' source,
    executed) and prices them from the processor's table. Below it a whole record in microjoules on a chip: arithmetic,
    random words, the journal, the packet on the air.
    """

    example = "sensorsim cost --n 14 --l 7 --cpu cortex-m4 --accounting full"
    plots = "Draw the costs into an .svg, .png or .pdf file."
    lockable = True

    n: int = option(14, Whole(), "Features of a record.")
    l: int = option(7, Whole(), "Hidden units of the encoder.")
    m: int = option(1, Whole(), "Users, one encoder each.")
    cpu: str | None = option(
        None,
        CPUS,
        "Processor; `sensorsim cpus` lists them, or FILE.csv, a table of your own. At machine level several, with "
        "commas.",
        default_text="k7",
    )
    width: int | None = option(None, Choice(8, 16, 32), "Operand width in bits.", default_text="8 on k7, else 32")
    signed: bool = option(False, Flag("unsigned"), "Signedness of the operands.")
    accounting: str = option("paper", Choice(*ACCOUNTINGS), "paper: what the paper prices; full: every operation.")
    variant: str = option(
        "all", Choice("paper", "lean", "all"), "paper: as printed; lean: as a firmware engineer would ship."
    )
    metric: str | None = option(None, Choice(*METRICS), "What to count.", default_text="the processor table's unit")
    chip: str | None = option(None, CHIP, "A chip, for energy; `sensorsim cpus` lists them, or FILE.csv with your own.")
    radio: str = option("ble-1m", RADIO, "What sends it: ble-2m, ble-coded-s8, 802154, lora-sf7 …")
    random: str = option(
        "chacha20", Choice(*SOURCES), "Source of random words, in whole blocks; trng: the chip's own generator."
    )
    records_per_day: float = option(1.0, Number(), "For the energy of a day.")
    battery_mah: float | None = option(None, Number(), "Also whole records that a battery pays for.")
    most: int = option(MOST_EXECUTED, Whole(0), "Operations up to which kernels are run.", shell=False, lock="ask")
    level: str = option("kernel", Choice("kernel", "machine"), "machine: count compiled code beside the other levels.")
    sweep: str | None = option(None, Range(), "A range of n or l: one row for each value.", lock="refuse")

    def without_effect(self) -> Mapping[str, str]:
        if self.level == "machine":
            why = "machine code is counted for one record as it is compiled"
            idle = dict.fromkeys(("m", "width", "signed", "accounting", "metric", "sweep", "most"), why)
            of_chip = "a whole record as machine code needs --chip"
            return idle | (dict.fromkeys(("radio", "random", "records_per_day"), of_chip) if self.chip is None else {})
        if self.sweep:
            why = f"a sweep over {self.sweep[0]} prices one record of one user"
            return dict.fromkeys((self.sweep[0], "m", "records_per_day", "battery_mah"), why)
        return {}

    def run(self) -> CostReport | Listing:
        if self.level == "machine":
            return self._run_machine()
        if self.sweep:
            return self._run_sweep(self.sweep)
        report = cost(**values_of(self, "level", "sweep"))
        assert report.record  # what no chip or radio can do is refused in every format
        return report

    def _run_sweep(self, text: str) -> Listing:
        from sensorsim.costing.cost_report import sweep

        name, (first, last) = text[0], text[2:].split(":")
        values = range(int(first), int(last) + 1)
        tried = [{"n": self.n, "l": self.l, name: value} for value in values]
        cases = [(at["n"], at["l"]) for at in tried if at["l"] <= at["n"]]  # an encoder compresses
        if not cases:
            raise InputError(f"--sweep {text} leaves no case with l <= n; widen it or change --n or --l.")
        if len(cases) < len(values):
            progress.note(f"{len(values) - len(cases)} values left out: l would be larger than n.")
        first_case = {"n": cases[0][0], "l": cases[0][1], "most": 0}  # nothing of it is run
        report = cost(**values_of(self, "level", "sweep") | first_case)
        rows, told = [], monotonic()
        for row in sweep(report, cases):
            rows.append(row)
            if monotonic() - told > progress.SECONDS_OF_SILENCE:
                progress.note(f"{len(rows)} of {len(cases)} values")
                told = monotonic()
        return sweep_listing(report, name, rows)

    def _run_machine(self) -> Listing:
        from sensorsim.codegen.sensor_package import default_sensor_costs
        from sensorsim.costing.record_energy import SENSOR, Choices, price_whole_record, resolve_choices
        from sensorsim.machine.machine_cost import machine_cost

        if self.chip is None and self.battery_mah is not None:
            raise InputError("--battery-mah at machine level needs --chip; add it.")
        if self.chip is not None:  # a wrong choice is refused before anything is compiled
            resolve_choices(Choices(*(getattr(self, name) for name in Choices._fields)), "")
        cpus = split_names(self.cpu or "")
        with progress.step("running machine code"):
            report = machine_cost(self.n, self.l, cpus, self.variant, self.chip, default_sensor_costs)
        if self.chip is None:
            return machine_listing(report, None, None)
        kernel_level = cost(**values_of(self, "level", "sweep", "cpu"))
        whole = report  # words and sensor are compiled too, also where the report leaves them out
        if self.variant != "all":
            with progress.step("running machine code"):
                whole = machine_cost(self.n, self.l, cpus, "all", self.chip, default_sensor_costs)
        cycles = {case.mechanism: case.machine.total for case in whole.cases}
        for call in (call for sensor in whole.sensor for call in sensor.calls):
            if call.call == "release" and call.cost is not None:
                cycles[SENSOR] = call.cost
        return machine_listing(report, price_whole_record(kernel_level, cycles=cycles), kernel_level.saving())

    def text(self, answer: Any) -> str:
        from sensorsim.costing.cost_text import cost_text

        return cost_text(answer, columns()) if isinstance(answer, CostReport) else super().text(answer)

    def figures(self, answer: Any, also: Also) -> "Taken":
        from sensorsim.commands.locked_figures import cost_cores, of_cost, of_machine

        if self.level == "machine":
            return of_machine(answer.to_dict())
        cores = also("cores", lambda: cost_cores(self.cpu, self.chip))
        return of_cost(answer.to_dict(), self.variant, cores)
