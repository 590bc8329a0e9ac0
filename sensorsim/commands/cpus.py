"""`sensorsim cpus`: the processors and chips that there are tables of, one table, and the check of all tables."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sensorsim._util.option_kinds import CPU, FILE, Several
from sensorsim._util.results import Listing, bars
from sensorsim._util.terminal import columns, counted, fitting, table
from sensorsim.commands.declare import REQUIRED, Command, option
from sensorsim.costing import prices
from sensorsim.costing.chips import ANY, load_chips, load_radios
from sensorsim.costing.csv_schema import read_cells
from sensorsim.costing.prices import CPU_SCHEMA

SCHEMA_VERSION = 1
MOST_BYTES = 1 << 22  # of a table
MOST_LETTERS = 300  # of a line that names a fault
STATUSES = ("confirmed", "disputed", "estimate")
IN_BOTH = ("kind", "name", "title", "cpu", "unit", "pJ_per_cycle", "rows", "status")  # columns of the CSV
Row = dict[str, Any]


@dataclass(frozen=True)
class ListCpus(Command[Listing]):
    """A chip is not a board: regulators, sensors and radio come on top."""

    example = "sensorsim cpus --format csv"

    def run(self) -> Listing:
        cpus = [_cpu_row(name) for name in prices.cpu_names()]
        chips, radios = [chip._asdict() for chip in load_chips()], [radio._asdict() for radio in load_radios()]
        both = [row | {"kind": "cpu", "cpu": row["name"]} for row in cpus]
        for chip in chips:
            both.append(chip | {"kind": "chip", "name": chip["chip"], "title": chip["name"], "unit": "pJ per cycle"})
        known = {chip["chip"]: chip["pJ_per_cycle"] for chip in chips}
        return Listing(
            f"{len(cpus)} processors, {len(chips)} chips, {len(radios)} rows of radios",
            [{name: row.get(name, "") for name in IN_BOTH} for row in both],
            {"schema_version": SCHEMA_VERSION, "cpus": cpus, "chips": chips, "radios": radios},
            lambda _: bars("Energy of a cycle by supply current", known, "pJ per cycle"),
            {row["name"]: f"{row['title']}, {row['unit']}" for row in cpus},
        )

    def text(self, answer: Listing) -> str:
        width, data = columns(), answer.data
        off = "off by: the largest error of our machine code beside a simulation of the core; –: never compared"
        last = "A chip is not a board: regulators, sensors, radio come on top. More: --format json."
        parts = ["Processors", *_cpu_lines(data["cpus"], width), *fitting(width, off), ""]
        parts += ["Chips, energy per cycle by supply current", *_chip_lines(data["chips"], width), ""]
        parts += ["Radios, energy of a packet", *_radio_lines(data["radios"], width), "", *fitting(width, last)]
        return "\n".join(parts)


@dataclass(frozen=True)
class ShowCpu(Command[Listing]):
    """NAME is that of a processor, or a FILE.csv of your own."""

    example = "sensorsim cpus show k7"

    name: str = option(REQUIRED, CPU, "Name of a processor, or a table of your own.", argument=True)

    def run(self) -> Listing:
        cpu = prices.load_cpu(self.name)
        cells = {}  # as they are in the files, those of the table that this one extends first
        for path in dict.fromkeys(row.path for row in cpu.rows):
            for line, row in read_cells(path)[2]:
                cells[path, line] = dict(zip(CPU_SCHEMA.names, row, strict=True))
        rows = [cells[row.path, row.line] for row in cpu.rows]
        costs: dict[str, float | None] = {}
        for cell in rows:
            name = f"{cell['operation']} {cell['operands']}"
            costs.setdefault(name, float(cell["typical"]) if cell["typical"] else None)
        head = {"cpu": cpu.name, "title": cpu.title, "unit": cpu.unit, "configuration": cpu.configuration}
        return Listing(
            f"{cpu.title} · {cpu.unit}",
            rows,
            {"schema_version": SCHEMA_VERSION, **head, "checked": _checked_numbers(cpu), "rows": rows},
            lambda title: bars(title, costs, f"{cpu.unit} of an operation, typical"),
            {"rows": str(len(rows)), "compared": _describe_check(cpu)},
        )

    def text(self, answer: Listing) -> str:
        width, rows = columns(), answer.found
        known = [name for name in ("latency_cycles", "reciprocal_throughput_cycles") if any(row[name] for row in rows)]
        speeds = [name.removesuffix("_cycles").replace("reciprocal_throughput", "1/throughput") for name in known]
        heads = ("operation", "operands", "class", "width", "cost", *speeds, "status")
        lines = []
        for row in rows:
            status = ", ".join(filter(None, (row["status"], row["status_of"])))
            bits = row["width"] + ("" if row["signedness"] == "any" else f" {row['signedness']}")
            ends = ("min", "max") if row["typical"] == row["max"] else ("min", "typical", "max")
            cost = "..".join(dict.fromkeys(row[end] for end in ends))
            cost += f" + {row['per_register']}·N" if row["per_register"] else ""
            own = (row[name] for name in known)
            lines.append([row["operation"], row["operands"], row["class"], bits, cost, *own, status])
        made = table(heads, lines, width, ("cost", *speeds), drop=[*reversed(speeds)], folded=("width", 9))
        return "\n".join([answer.head, *fitting(width, answer.facts()["compared"]), *made])


@dataclass(frozen=True)
class CheckCpus(Command[Listing]):
    """Without FILES every table of the package is checked. Exit code 0 without faults, 1 with one line for each."""

    example = "sensorsim cpus check my-core.csv"
    formats = ()

    files: tuple[str, ...] = option((), Several(FILE), "Tables of yours.", argument=True)

    def run(self) -> Listing:
        from sensorsim._util.files import check_readable
        from sensorsim.costing.chips import check_file, table_files
        from sensorsim.datasets.public_ranges import brief

        for path in self.files:
            check_readable(path, MOST_BYTES)
        results = [check_file(Path(path)) for path in self.files or table_files()]
        faults = [brief(fault, MOST_LETTERS) for _, found in results for fault in found]
        files, lines = len(results), sum(rows for rows, _ in results)
        found = counted(len(faults), "fault") if faults else "no faults"
        return Listing(
            f"{counted(files, 'file')}, {counted(lines, 'row')}, {found}",
            [{"fault": fault} for fault in faults],
            {"files": files, "rows": lines, "faults": faults},
            lambda title: bars(title, {"faults": len(faults)}, "faults"),
            {str(number): fault for number, fault in enumerate(faults, 1)},
        )

    def text(self, answer: Listing) -> str:
        return "\n".join([*answer.data["faults"], answer.head])

    def exit_code(self, answer: Listing) -> int:
        return 1 if answer.found else 0


def _cpu_row(name: str) -> Row:
    """Return what the table of a processor holds and how much of it is confirmed."""
    cpu = prices.load_cpu(name)
    statuses = [row.status for row in cpu.rows]
    counts = {"rows": len(statuses), **{status: statuses.count(status) for status in STATUSES}}
    rest = {"configuration": cpu.configuration, "checked": _checked_numbers(cpu)}
    return {"name": name, "title": cpu.title, "unit": cpu.unit, **counts, **rest}


def _checked_numbers(cpu: prices.Cpu) -> Row | None:
    """Return how far off a table was, its errors as numbers; None if it was never compared."""
    if cpu.checked is None:
        return None
    return {**cpu.checked._asdict(), "largest": float(cpu.checked.largest), "mean": float(cpu.checked.mean)}


def _describe_check(cpu: prices.Cpu) -> str:
    """Say what the table was compared with, and how far off it was."""
    found = cpu.checked
    if found is None:
        return "never compared with a simulation of the core"
    of = f" ({found.worst})" if found.worst else ""
    errors = f"largest error {found.largest} %{of}, mean {found.mean} %"
    return f"{found.kernels} kernels compared with {found.against}: {errors}"


def _cpu_lines(cpus: list[Row], width: int) -> list[str]:
    numbers, rows = ("rows", *STATUSES), []
    for row in cpus:
        off_by = f"{row['checked']['largest']} %" if row["checked"] else "–"
        rows.append([row["name"], row["title"], row["unit"], *(str(row[name]) for name in numbers), off_by])
    heads = ("--cpu", "processor", "unit", *numbers, "off by")
    return table(heads, rows, width, (*numbers, "off by"), drop=("disputed", "estimate"), folded=("processor", 24))


def _chip_lines(chips: list[Row], width: int) -> list[str]:
    numbers, rows = {"µA/MHz": "uA_per_MHz", "V": "supply_V", "MHz": "MHz", "pJ/cycle": "pJ_per_cycle"}, []
    for chip in chips:
        cells = ("–" if chip[key] is None else f"{chip[key]:g}" for key in numbers.values())
        rows.append([chip["chip"], chip["core"], chip["cpu"] or "–", *cells, chip["status"]])
    return table(("--chip", "core", "--cpu", *numbers, "status"), rows, width, numbers, drop=("core",))


def _radio_lines(radios: list[Row], width: int) -> list[str]:
    """Return a line for each radio: the row for any chip, and how many chips have one of their own."""
    from sensorsim.costing.cost_text import format_short

    rows = []
    for row in (row for row in radios if row["chip"] == ANY):
        own = sum(other["radio"] == row["radio"] for other in radios) - 1
        title, _, whose = row["title"].rpartition(", ")
        byte, event = format_short(row["nJ_per_byte"]), format_short(row["nJ_per_event"] / 1000)
        rows.append([row["radio"], title, whose.partition(" ")[2], byte, event, str(own), row["status"]])
    numbers = ("nJ/byte", "µJ/event", "own rows")
    return table(("--radio", "radio", "of", *numbers, "status"), rows, width, numbers, drop=("own rows", "of"))
