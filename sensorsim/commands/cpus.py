"""`sensorsim cpus`: the processors and chips that there are tables of, one table, and the check of all tables."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorsim._util.option_kinds import CPU, FILE, Several
from sensorsim._util.results import Result, bars
from sensorsim._util.terminal import columns, counted, fitting, table
from sensorsim.commands.declare import REQUIRED, Command, option
from sensorsim.costing import prices
from sensorsim.costing.chips import ANY, load_chips, load_radios
from sensorsim.costing.csv_schema import read_cells
from sensorsim.costing.prices import CPU_SCHEMA

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMA_VERSION = 1
MOST_BYTES = 1 << 22  # of a table
MOST_LETTERS = 300  # of a line that names a fault
Row = dict[str, Any]


@dataclass(frozen=True, repr=False)
class Processors(Result):
    """The processors, chips and radios whose tables are known."""

    cpus: list[Row]
    chips: list[Row]
    radios: list[Row]

    def title(self) -> str:
        return f"{len(self.cpus)} processors, {len(self.chips)} chips, {len(self.radios)} rows of radios"

    def facts(self) -> dict[str, str]:
        return {row["name"]: f"{row['title']}, {row['unit']}" for row in self.cpus}

    def rows(self) -> list[Row]:
        """Return processors and chips in one table: what both have."""
        made = [
            {
                "kind": "cpu",
                "name": row["name"],
                "title": row["title"],
                "cpu": row["name"],
                "unit": row["unit"],
                "pJ_per_cycle": "",
                "rows": row["rows"],
                "status": "",
            }
            for row in self.cpus
        ]
        for chip in self.chips:
            own = {"title": chip["name"], "pJ_per_cycle": chip["pJ_per_cycle"], "status": chip["status"]}
            made.append(
                {"kind": "chip", "name": chip["chip"], "title": "", "cpu": chip["cpu"], "unit": "pJ per cycle"}
                | {"pJ_per_cycle": "", "rows": ""}
                | own
            )
        return made

    def to_dict(self) -> Row:
        return {"schema_version": SCHEMA_VERSION, "cpus": self.cpus, "chips": self.chips, "radios": self.radios}

    def figure(self) -> "Figure":
        known = {chip["chip"]: chip["pJ_per_cycle"] for chip in self.chips}
        return bars("Energy of a cycle by supply current", known, "pJ per cycle")


@dataclass(frozen=True, repr=False)
class ProcessorTable(Result):
    """The table of one processor."""

    cpu: prices.Cpu

    def title(self) -> str:
        return f"{self.cpu.title} · {self.cpu.unit}"

    def facts(self) -> dict[str, str]:
        return {"rows": str(len(self.cpu.rows)), "compared": _checked(self.cpu)}

    def rows(self) -> list[dict[str, str]]:
        """Return the cells as they are in the files, those of the table that this one extends first."""
        cells = {}
        for path in dict.fromkeys(row.path for row in self.cpu.rows):
            named = ((line, dict(zip(CPU_SCHEMA.names, row, strict=True))) for line, row in read_cells(path)[2])
            cells.update({(path, line): row for line, row in named})
        return [cells[row.path, row.line] for row in self.cpu.rows]

    def to_dict(self) -> Row:
        cpu = self.cpu
        head = {"cpu": cpu.name, "title": cpu.title, "unit": cpu.unit, "configuration": cpu.configuration}
        return {"schema_version": SCHEMA_VERSION, **head, "checked": checked_numbers(cpu), "rows": self.rows()}

    def figure(self) -> "Figure":
        costs: dict[str, float | None] = {}
        for row in self.rows():
            costs.setdefault(f"{row['operation']} {row['operands']}", float(row["typical"]) if row["typical"] else None)
        return bars(self.title(), costs, f"{self.cpu.unit} of an operation, typical")


@dataclass(frozen=True, repr=False)
class TableCheck(Result):
    """The faults of tables."""

    files: int
    lines: int
    faults: list[str]

    def title(self) -> str:
        found = counted(len(self.faults), "fault") if self.faults else "no faults"
        return f"{counted(self.files, 'file')}, {counted(self.lines, 'row')}, {found}"

    def facts(self) -> dict[str, str]:
        return {str(number): fault for number, fault in enumerate(self.faults, 1)}

    def rows(self) -> list[dict[str, str]]:
        return [{"fault": fault} for fault in self.faults]

    def to_dict(self) -> Row:
        return {"files": self.files, "rows": self.lines, "faults": self.faults}


@dataclass(frozen=True)
class ListCpus(Command[Processors]):
    """A chip is not a board: regulators, sensors and radio come on top."""

    example = "sensorsim cpus --format csv"

    def run(self) -> Processors:
        return Processors(
            cpu_rows(), [chip._asdict() for chip in load_chips()], [radio._asdict() for radio in load_radios()]
        )

    def text(self, answer: Processors) -> str:
        width = columns()
        off = "off by: the largest error of our machine code beside a simulation of the core; –: never compared"
        last = "A chip is not a board: regulators, sensors, radio come on top. More: --format json."
        parts = ["Processors", *_cpu_lines(answer.cpus, width), *fitting(width, off), ""]
        parts += ["Chips, energy per cycle by supply current", *_chip_lines(answer.chips, width), ""]
        parts += ["Radios, energy of a packet", *_radio_lines(answer.radios, width), "", *fitting(width, last)]
        return "\n".join(parts)


@dataclass(frozen=True)
class ShowCpu(Command[ProcessorTable]):
    """NAME is that of a processor, or a FILE.csv of your own."""

    example = "sensorsim cpus show k7"

    name: str = option(REQUIRED, CPU, "Name of a processor, or a table of your own.", argument=True)

    def run(self) -> ProcessorTable:
        return ProcessorTable(prices.load_cpu(self.name))

    def text(self, answer: ProcessorTable) -> str:
        width, rows = columns(), answer.rows()
        known = [name for name in ("latency_cycles", "reciprocal_throughput_cycles") if any(row[name] for row in rows)]
        speeds = [name.removesuffix("_cycles").replace("reciprocal_throughput", "1/throughput") for name in known]
        heads = ("operation", "operands", "class", "width", "cost", *speeds, "status")
        lines = []
        for row in rows:
            status = ", ".join(filter(None, (row["status"], row["status_of"])))
            bits = row["width"] + ("" if row["signedness"] == "any" else f" {row['signedness']}")
            ends = list(dict.fromkeys([row["min"], row["typical"], row["max"]]))
            if row["typical"] == row["max"]:
                ends = list(dict.fromkeys([row["min"], row["max"]]))
            cost = "..".join(ends) + (f" + {row['per_register']}·N" if row["per_register"] else "")
            own = (row[name] for name in known)
            lines.append([row["operation"], row["operands"], row["class"], bits, cost, *own, status])
        made = table(heads, lines, width, ("cost", *speeds), drop=[*reversed(speeds)], folded=("width", 9))
        return "\n".join([answer.title(), *fitting(width, _checked(answer.cpu)), *made])


@dataclass(frozen=True)
class CheckCpus(Command[TableCheck]):
    """Without FILES every table of the package is checked. Exit code 0 without faults, 1 with one line for each."""

    example = "sensorsim cpus check my-core.csv"
    formats = ()

    files: tuple[str, ...] = option((), Several(FILE), "Tables of yours.", argument=True)

    def run(self) -> TableCheck:
        from sensorsim._util.files import check_readable
        from sensorsim.costing.chips import check_file, table_files
        from sensorsim.datasets.public_ranges import brief

        for path in self.files:
            check_readable(path, MOST_BYTES)
        results = [check_file(Path(path)) for path in self.files or table_files()]
        faults = [brief(fault, MOST_LETTERS) for _, found in results for fault in found]
        return TableCheck(len(results), sum(rows for rows, _ in results), faults)

    def text(self, answer: TableCheck) -> str:
        return "\n".join([*answer.faults, answer.title()])

    def exit_code(self, answer: TableCheck) -> int:
        return 1 if answer.faults else 0


def cpu_rows() -> list[dict[str, Any]]:
    """Return a row for each processor: what its table holds and how much of it is confirmed."""
    rows = []
    for name in prices.cpu_names():
        cpu = prices.load_cpu(name)
        statuses = [row.status for row in cpu.rows]
        rows.append(
            {
                "name": name,
                "title": cpu.title,
                "unit": cpu.unit,
                "rows": len(statuses),
                "confirmed": statuses.count("confirmed"),
                "disputed": statuses.count("disputed"),
                "estimate": statuses.count("estimate"),
                "configuration": cpu.configuration,
                "checked": checked_numbers(cpu),
            }
        )
    return rows


def checked_numbers(cpu: prices.Cpu) -> dict[str, Any] | None:
    """Return how far off a table was, its errors as numbers; None if it was never compared."""
    if cpu.checked is None:
        return None
    errors = {"largest": float(cpu.checked.largest), "mean": float(cpu.checked.mean)}
    return {**cpu.checked._asdict(), **errors}


def _cpu_lines(cpus: list[dict[str, Any]], width: int) -> list[str]:
    counted = ("rows", "confirmed", "disputed", "estimate")
    rows = [
        [row["name"], row["title"], row["unit"], *(str(row[name]) for name in counted), _off_by(row)] for row in cpus
    ]
    heads = ("--cpu", "processor", "unit", *counted, "off by")
    return table(heads, rows, width, (*counted, "off by"), drop=("disputed", "estimate"), folded=("processor", 24))


def _off_by(row: dict[str, Any]) -> str:
    return f"{row['checked']['largest']} %" if row["checked"] else "–"


def _chip_lines(chips: list[dict[str, Any]], width: int) -> list[str]:
    numbers = {"µA/MHz": "uA_per_MHz", "V": "supply_V", "MHz": "MHz", "pJ/cycle": "pJ_per_cycle"}
    rows = [
        [
            chip["chip"],
            chip["core"],
            chip["cpu"] or "–",
            *(_plain(chip[key]) for key in numbers.values()),
            chip["status"],
        ]
        for chip in chips
    ]
    return table(("--chip", "core", "--cpu", *numbers, "status"), rows, width, numbers, drop=("core",))


def _radio_lines(radios: list[dict[str, Any]], width: int) -> list[str]:
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


def _checked(cpu: prices.Cpu) -> str:
    """Say what the table was compared with, and how far off it was."""
    found = cpu.checked
    if found is None:
        return "never compared with a simulation of the core"
    of = f" ({found.worst})" if found.worst else ""
    errors = f"largest error {found.largest} %{of}, mean {found.mean} %"
    return f"{found.kernels} kernels compared with {found.against}: {errors}"


def _plain(value: float | None) -> str:
    return "–" if value is None else f"{value:g}"
