"""`sensorsim fleet`: many devices over many days, simulated in batches, resumable."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from sensorsim.api.fleets import fleet, fleet_settings
from sensorsim.cli.choices import CHIP, DATABASE, FIGURE, FILE, RADIO, SUMS, TABLE
from sensorsim.cli.clusters import dask_option
from sensorsim.cli.defaults import options_of
from sensorsim.cli.fleet_data import people_options
from sensorsim.cli.fleet_progress import reckon_with_progress, run_with_progress
from sensorsim.cli.output import emit, format_option, tell
from sensorsim.cli.training import MOST_JOBS, options
from sensorsim.fleets.fleet_result import FleetResult
from sensorsim.fleets.settings import MOST_SEED, SCHEDULES, Settings

if TYPE_CHECKING:
    from sensorsim.fleets.energy import Board

MOST_LETTERS = 300  # of a sentence that is read at a glance
HOUSE = "Note: {out} holds sums of raw records of {data}: keep it where the records are kept."
option = options_of(fleet)
budget_options = options(
    option("--budget-epsilon", metavar="E", help="Epsilon of a period.  [default: that of one release]"),
    option("--budget-days", help="Days of a period."),
    option("--reserve", help="Releases that one store counts ahead."),
    option(
        "--schedule",
        type=click.Choice(list(SCHEDULES)),
        help="Where a budget does not pay for every record: releases all over the period, or until it is spent.",
    ),
)
fault_options = options(
    option("--reset-rate", help="Chance of a reset, each day."),
    option("--power-cuts", help="Chance of a cut, at each release."),
    option("--loss", help="Chance that a packet is lost."),
    option("--stuck-entropy", help="Chance that a device's source sticks."),
    option("--clock-skew", help="Days that clocks are off."),
)
energy_options = options(
    option(
        "--chip",
        type=CHIP,
        help="A chip, for energy; `sensorsim cpus` lists them, or FILE.csv with your own.  "
        "[default: as `sensorsim cost`]",
    ),
    option("--radio", type=RADIO, help="What sends it: ble-2m, lora-sf7 …"),
    option("--battery-mah", type=float, help="Also the share of a battery that the days use up."),
)


@click.command()
@click.option("--devices", type=int, required=True, help="How many.")
@click.option("--days", type=int, required=True, help="How long.")
@click.option("--noise", type=TABLE, required=True, help="Noise table, as `sensorsim noise make` writes it.")
@option("--sketch", type=FILE, help="A sketch of the record is released, in place of its features.")
@people_options
@option("--records-per-day", help="Records that a device makes.")
@budget_options
@fault_options
@energy_options
@option("--every", type=click.IntRange(min=1), help="Days of an estimate.")
@option(
    "--seed",
    type=click.IntRange(0, MOST_SEED),
    help="Of everything that is drawn, so that a run can go on: reproducible, so not private.",
)
@option("--jobs", type=click.IntRange(1, MOST_JOBS), help="Threads.  [default: the processors of this machine]")
@dask_option
@click.option("--out", required=True, type=DATABASE, help="Where finished batches are kept, as in fleet.sqlite.")
@click.option(
    "--statistics", type=SUMS, help="What the hospital received, for `receive`: .parquet or .csv by day, or .json."
)
@click.option("--plot", type=FIGURE, help="Draw a page of figures into an .svg, .png or .pdf file.")
@format_option
def command(fmt: str, **chosen: Any) -> None:
    """What a fleet of private sensors delivers, and what goes wrong on the way: a simulation.

    Every device has its generator, journal, budget and faults. What is kept are sums per feature and day, never rows.
    Run the same command again after an interruption: finished batches are kept, and the result is the same to the bit.
    The generators are seeded and the truth stands beside the estimates: nothing of a simulation is private. Exit code
    1 if a device spent more than its budget.

    \b
    Example: sensorsim fleet --devices 5000 --days 28 --noise rows-eps1-1.txt \\
               --budget-epsilon 1 --budget-days 30 --loss 0.02 \\
               --out fleet.sqlite --plot fleet.svg
    """
    with _said_briefly(chosen):
        _check_files(chosen)
        settings, board = settings_of(chosen)
        _check_sizes(settings, chosen["every"], chosen["statistics"])
    counts = run_with_progress(settings, chosen["out"], chosen["jobs"], chosen["dask"])
    result = FleetResult(settings, counts, chosen["every"], board)
    reckon_with_progress(result)
    if chosen["data"]:
        tell(HOUSE.format(out=chosen["out"], data=chosen["data"]))

    def text() -> str:
        from sensorsim.fleets.fleet_text import text

        return text(result)

    emit(fmt, text, result.to_dict, result.rows)
    _write(result, chosen["statistics"], chosen["plot"])
    if result.over_budget:
        sys.exit(1)


@contextmanager
def _said_briefly(chosen: dict[str, Any]) -> Iterator[None]:
    """What was given stands shortened in an error: a sentence is to be read."""
    from sensorsim._util.errors import InputError
    from sensorsim.datasets.public_ranges import SHOWN_LETTERS, brief

    try:
        yield
    except InputError as error:
        said = str(error)
        for given in chosen.values():
            if isinstance(given, str) and len(given) > SHOWN_LETTERS and len(said) > MOST_LETTERS:
                said = said.replace(given, brief(given))
        raise InputError(said) from None


def _check_files(chosen: dict[str, Any]) -> None:
    """Check what will be written, before anything is read."""
    from sensorsim.fleets.fleet_file import check_store

    check_store(chosen["out"])
    if chosen["statistics"]:
        from sensorsim.hospital.sum_files import check_out

        check_out(chosen["statistics"])


def _check_sizes(settings: Settings, every: int, statistics: str | None) -> None:
    """That what is made of the sums is not too much, before they are."""
    from sensorsim.fleets.estimates import number_of

    number_of(settings, every)
    if statistics:
        from sensorsim.hospital.sum_files import check_size

        check_size(statistics, settings.groups, settings.firmware.features, settings.columns)


def settings_of(chosen: dict[str, Any]) -> "tuple[Settings, Board]":
    """What is simulated, and what its energy is of; a sentence if it cannot be."""
    from inspect import signature

    names = [name for name in signature(fleet_settings).parameters if name != "told"]
    return fleet_settings(**{name: chosen[name] for name in names}, told=tell)


def _write(result: FleetResult, statistics: str | None, plot: str | None) -> None:
    if plot:
        from sensorsim._util.drawing import write_figure
        from sensorsim.fleets.fleet_page import page

        write_figure(page(result), plot)
    if statistics:
        from sensorsim.hospital.sum_files import write_days

        write_days(statistics, result.settings.firmware, result.counts.tally)
