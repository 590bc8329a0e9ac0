"""`sensorsim cpus`: the processors and chips that there are tables of, one table, and the check of all tables."""

import io
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sensorsim.cli.output import emit, format_option
from sensorsim.cost import prices
from sensorsim.cost.radio import ANY, load_radios
from sensorsim.cost.rows import COLUMNS, read_cells

if TYPE_CHECKING:
    from rich.console import RenderableType

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
            lambda: render(_list_table(cpus, chips, radios)),
            lambda: {"schema_version": SCHEMA_VERSION, "cpus": cpus, "chips": chips, "radios": radios},
            lambda: [_csv_row("cpu", row) for row in cpus] + [_csv_row("chip", row) for row in chips],
        )


@command.command()
@click.argument("name")
@format_option
def show(name: str, fmt: str) -> None:
    """Print the table of processor NAME.

    Example: sensorsim cpus show k7
    """
    cpu = prices.load_cpu(name)
    rows = table_rows(cpu)
    emit(
        fmt,
        lambda: render(_show_table(cpu, rows)),
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


@command.command()
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
def check(files: tuple[Path, ...]) -> None:
    """Validate FILES, or every table of the package: exit code 0 without faults, 1 with one line for each.

    Example: sensorsim cpus check my-core.csv
    """
    from sensorsim.cost.published import check_published, is_published, published_file
    from sensorsim.cost.tablecheck import check_file, table_files

    every = files or (*table_files(), published_file())
    results = [check_published(path) if is_published(path) else check_file(path) for path in every]
    faults = [fault for _, found in results for fault in found]
    for fault in faults:
        click.echo(fault)
    counted = f"{_count(len(results), 'file')}, {_count(sum(rows for rows, _ in results), 'row')}"
    click.echo(f"{counted}, {_count(len(faults), 'fault') if faults else 'no faults'}", err=bool(faults))
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
    return [chip._asdict() for chip in prices.load_chips()]


def table_rows(cpu: prices.Cpu) -> list[dict[str, str]]:
    """The cells of a processor's table as they stand in its files, those of the table it extends first."""
    cells = {}
    for path in dict.fromkeys(row.path for row in cpu.rows):
        cells.update({(path, line): dict(zip(COLUMNS, row, strict=True)) for line, row in read_cells(path)[2]})
    return [cells[row.path, row.line] for row in cpu.rows]


def render(renderable: "RenderableType") -> str:
    """What rich prints, as text: as wide as the terminal, or 100 columns into a file; coloured in a terminal only."""
    from rich.console import Console

    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if terminal else 100
    console = Console(file=io.StringIO(), width=width, force_terminal=terminal, highlight=False)
    console.print(renderable)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]  # it is the StringIO above
    return text.rstrip("\n")


def _list_table(
    cpus: list[dict[str, Any]], chips: list[dict[str, Any]], radios: list[dict[str, Any]]
) -> "RenderableType":
    from rich.console import Group
    from rich.table import Table

    first = Table(title="Processors", title_justify="left", box=None)
    for column in ("--cpu", "processor", "unit"):
        first.add_column(column, no_wrap=column != "processor")
    for column in ("rows", "confirmed", "disputed", "estimate", "off by"):
        first.add_column(column, justify="right", no_wrap=True)
    for row in cpus:
        off = f"{row['checked']['largest']} %" if row["checked"] else "–"
        first.add_row(*(str(value) for name, value in row.items() if name not in ("configuration", "checked")), off)
    second = Table(title="\nChips, energy per cycle by supply current", title_justify="left", box=None)
    for column in ("--chip", "core", "--cpu"):
        second.add_column(column, no_wrap=True)
    for column in ("µA/MHz", "V", "MHz", "pJ/cycle"):
        second.add_column(column, justify="right", no_wrap=True)
    second.add_column("status", no_wrap=True)
    for chip in chips:
        numbers = (_plain(chip[name]) for name in ("uA_per_MHz", "supply_V", "MHz", "pJ_per_cycle"))
        second.add_row(chip["chip"], chip["core"], chip["cpu"] or "–", *numbers, chip["status"])
    off = "off by: the largest error of our machine code beside a simulation of the core; –: never compared"
    last = "\nA chip is not a board: regulators, sensors, radio come on top. More: --format json."
    return Group(first, off, second, _radio_table(radios), last)


def _radio_table(radios: list[dict[str, Any]]) -> "RenderableType":
    """One line for each radio: the row for any chip, and how many chips have one of their own."""
    from rich.table import Table

    from sensorsim.cost.record_text import short

    table = Table(title="\nRadios, energy of a packet", title_justify="left", box=None)
    for column in ("--radio", "radio", "of"):
        table.add_column(column, no_wrap=True)
    for column in ("nJ/byte", "µJ/event", "own rows"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("status", no_wrap=True)
    for row in (row for row in radios if row["chip"] == ANY):
        own = sum(other["radio"] == row["radio"] for other in radios) - 1
        title, _, whose = row["title"].rpartition(", ")
        byte, event = short(row["nJ_per_byte"]), short(row["nJ_per_event"] / 1000)
        table.add_row(row["radio"], title, whose.partition(" ")[2], byte, event, str(own), row["status"])
    return table


def _show_table(cpu: prices.Cpu, rows: list[dict[str, str]]) -> "RenderableType":
    from rich.table import Table

    table = Table(title=f"{cpu.title} · {cpu.unit}\n{_checked(cpu)}", title_justify="left", box=None)
    known = [name for name in ("latency_cycles", "reciprocal_throughput_cycles") if any(row[name] for row in rows)]
    for column in ("operation", "operands", "class", "width"):
        table.add_column(column, overflow="fold", no_wrap=column == "width")
    for column in ("cost", *(name.removesuffix("_cycles").removeprefix("reciprocal_") for name in known)):
        table.add_column(column.replace("throughput", "1/throughput"), justify="right", no_wrap=True)
    table.add_column("status", no_wrap=True)
    for row in rows:
        status = ", ".join(filter(None, (row["status"], row["status_of"])))
        width = row["width"] + ("" if row["signedness"] == "any" else f" {row['signedness']}")
        speeds = (row[name] for name in known)
        table.add_row(row["operation"], row["operands"], row["class"], width, _cost(row), *speeds, status)
    return table


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


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
