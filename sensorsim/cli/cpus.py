"""`sensorsim cpus`: the processors and chips that there are tables of, one table, and the check of all tables."""

import sys
from pathlib import Path
from typing import Any

import click

from sensorsim._util.terminal import columns, counted, fitting, table
from sensorsim.cli.choices import CPU
from sensorsim.cli.output import emit, format_option
from sensorsim.costing import prices
from sensorsim.costing.chips import ANY, load_chips, load_radios
from sensorsim.costing.csv_schema import read_cells
from sensorsim.costing.prices import CPU_SCHEMA

SCHEMA_VERSION = 1


@click.group(invoke_without_command=True)
@format_option
@click.pass_context
def command(ctx: click.Context, fmt: str) -> None:
    """The processors and chips whose tables are known.

    Example: sensorsim cpus --format csv
    """
    if ctx.invoked_subcommand is None:
        cpus, chips, radios = cpu_rows(), chip_rows(), [radio._asdict() for radio in load_radios()]
        emit(
            fmt,
            lambda: _list_text(cpus, chips, radios),
            lambda: {"schema_version": SCHEMA_VERSION, "cpus": cpus, "chips": chips, "radios": radios},
            lambda: [_csv_row("cpu", row) for row in cpus] + [_csv_row("chip", row) for row in chips],
        )


@command.command()
@click.argument("name", type=CPU)
@format_option
def show(name: str, fmt: str) -> None:
    """Print the table of processor NAME, or of a FILE.csv of your own.

    Example: sensorsim cpus show k7
    """
    cpu = prices.load_cpu(name)
    rows = table_rows(cpu)
    emit(
        fmt,
        lambda: _show_text(cpu, rows),
        lambda: {
            "schema_version": SCHEMA_VERSION,
            "cpu": cpu.name,
            "title": cpu.title,
            "unit": cpu.unit,
            "configuration": cpu.configuration,
            "checked": checked_numbers(cpu),
            "rows": rows,
        },
        lambda: rows,
    )


MOST_BYTES = 1 << 22  # of a table
MOST_LETTERS = 300  # of a line that tells of a fault


@command.command(short_help="Validate tables of yours, or every table of the package.")
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
def check(files: tuple[Path, ...]) -> None:
    """Validate FILES, or every table of the package: exit code 0 without faults, 1 with one line for each.

    Example: sensorsim cpus check my-core.csv
    """
    from sensorsim._util.files import check_readable
    from sensorsim.costing.tablecheck import check_file, table_files
    from sensorsim.datasets.public_ranges import brief

    for path in files:
        check_readable(path, MOST_BYTES)
    results = [check_file(path) for path in files or table_files()]
    faults = [fault for _, found in results for fault in found]
    for fault in faults:
        click.echo(brief(fault, MOST_LETTERS))
    read = f"{counted(len(results), 'file')}, {counted(sum(rows for rows, _ in results), 'row')}"
    click.echo(f"{read}, {counted(len(faults), 'fault') if faults else 'no faults'}", err=bool(faults))
    if faults:
        sys.exit(1)


def cpu_rows() -> list[dict[str, Any]]:
    """One dictionary per processor: what its table holds and how much of it is sure."""
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
    """How far off a table was, its errors as numbers; None for one that was never compared."""
    if cpu.checked is None:
        return None
    errors = {"largest": float(cpu.checked.largest), "mean": float(cpu.checked.mean)}
    return {**cpu.checked._asdict(), **errors}


def chip_rows() -> list[dict[str, Any]]:
    """One dictionary per chip: the columns of energy.csv."""
    return [chip._asdict() for chip in load_chips()]


def table_rows(cpu: prices.Cpu) -> list[dict[str, str]]:
    """The cells of a processor's table as they stand in its files, those of the table it extends first."""
    cells = {}
    for path in dict.fromkeys(row.path for row in cpu.rows):
        cells.update({(path, line): dict(zip(CPU_SCHEMA.names, row, strict=True)) for line, row in read_cells(path)[2]})
    return [cells[row.path, row.line] for row in cpu.rows]


def _list_text(cpus: list[dict[str, Any]], chips: list[dict[str, Any]], radios: list[dict[str, Any]]) -> str:
    width = columns()
    off = "off by: the largest error of our machine code beside a simulation of the core; –: never compared"
    last = "A chip is not a board: regulators, sensors, radio come on top. More: --format json."
    return "\n".join(
        [
            "Processors",
            *_cpu_lines(cpus, width),
            *fitting(width, off),
            "",
            "Chips, energy per cycle by supply current",
            *_chip_lines(chips, width),
            "",
            "Radios, energy of a packet",
            *_radio_lines(radios, width),
            "",
            *fitting(width, last),
        ]
    )


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
    """One line for each radio: the row for any chip, and how many chips have one of their own."""
    from sensorsim.costing.cost_text import format_short

    rows = []
    for row in (row for row in radios if row["chip"] == ANY):
        own = sum(other["radio"] == row["radio"] for other in radios) - 1
        title, _, whose = row["title"].rpartition(", ")
        byte, event = format_short(row["nJ_per_byte"]), format_short(row["nJ_per_event"] / 1000)
        rows.append([row["radio"], title, whose.partition(" ")[2], byte, event, str(own), row["status"]])
    numbers = ("nJ/byte", "µJ/event", "own rows")
    return table(("--radio", "radio", "of", *numbers, "status"), rows, width, numbers, drop=("own rows", "of"))


def _show_text(cpu: prices.Cpu, rows: list[dict[str, str]]) -> str:
    width = columns()
    known = [name for name in ("latency_cycles", "reciprocal_throughput_cycles") if any(row[name] for row in rows)]
    speeds = [name.removesuffix("_cycles").replace("reciprocal_throughput", "1/throughput") for name in known]
    heads = ("operation", "operands", "class", "width", "cost", *speeds, "status")
    lines = []
    for row in rows:
        status = ", ".join(filter(None, (row["status"], row["status_of"])))
        bits = row["width"] + ("" if row["signedness"] == "any" else f" {row['signedness']}")
        known_speeds = (row[name] for name in known)
        lines.append([row["operation"], row["operands"], row["class"], bits, _cost(row), *known_speeds, status])
    title = [f"{cpu.title} · {cpu.unit}", *fitting(width, _checked(cpu))]
    made = table(heads, lines, width, ("cost", *speeds), drop=[*reversed(speeds)], folded=("width", 9))
    return "\n".join([*title, *made])


def _checked(cpu: prices.Cpu) -> str:
    """One sentence: beside what the table was held, and how far off it was."""
    found = cpu.checked
    if found is None:
        return "never compared with a simulation of the core"
    of = f" ({found.worst})" if found.worst else ""
    errors = f"largest error {found.largest} %{of}, mean {found.mean} %"
    return f"{found.kernels} kernels compared with {found.against}: {errors}"


def _cost(row: dict[str, str]) -> str:
    ends = [row["min"], row["typical"], row["max"]]
    if ends[1] == ends[2]:
        ends = ends[:1] if ends[0] == ends[2] else [ends[0], ends[2]]
    text = "..".join(ends)
    return f"{text} + {row['per_register']}·N" if row["per_register"] else text


def _csv_row(kind: str, row: dict[str, Any]) -> dict[str, Any]:
    """Processors and chips in one CSV: what both have."""
    chip = kind == "chip"
    return {
        "kind": kind,
        "name": row["chip" if chip else "name"],
        "title": row["name" if chip else "title"],
        "cpu": row["cpu" if chip else "name"],
        "unit": "pJ per cycle" if chip else row["unit"],
        "pJ_per_cycle": row["pJ_per_cycle"] if chip else "",
        "rows": "" if chip else row["rows"],
        "status": row["status"] if chip else "",
    }


def _plain(value: float | None) -> str:
    return "–" if value is None else f"{value:g}"
