"""`fleet`: many private sensors over many days, simulated."""

import os
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from sensorsim._util.errors import InputError
from sensorsim._util.files import temporary_folder
from sensorsim.api.noise import Table, read_table
from sensorsim.costing.chips import DEFAULT_RADIO
from sensorsim.datasets import Told, column_names, warn
from sensorsim.device.firmware import Firmware
from sensorsim.fleets.fleet_result import FleetResult
from sensorsim.fleets.settings import Faults, Settings, check_numbers

if TYPE_CHECKING:
    from sensorsim.device.sketch import Sketch
    from sensorsim.fleets.energy import Board
    from sensorsim.fleets.settings import People


def fleet(
    devices: int,
    days: int,
    noise: Table,
    sketch: "Sketch | str | os.PathLike[str] | None" = None,
    data: str | None = None,
    person: str | None = None,
    columns: str | Sequence[str] | None = None,
    ranges: str | None = None,
    drop_missing: bool = False,
    records_per_day: int = Settings.records_per_day,
    budget_epsilon: Decimal | float | str | None = Firmware.budget_epsilon,
    budget_days: int = Firmware.budget_days,
    reserve: int = Firmware.reserve,
    schedule: str = Settings.schedule,
    reset_rate: float = Faults.reset_rate,
    power_cuts: float = Faults.power_cuts,
    loss: float = Faults.loss,
    stuck_entropy: float = Faults.stuck_entropy,
    clock_skew: int = Faults.clock_skew,
    chip: str | None = None,
    radio: str = DEFAULT_RADIO,
    battery_mah: float | None = None,
    every: int = FleetResult.every,
    seed: int = Settings.seed,
    jobs: int | None = None,
    dask: str | None = None,
    out: str | os.PathLike[str] | None = None,
    told: Told = warn,
) -> FleetResult:
    """What a fleet delivers, and what goes wrong on the way: a simulation, seeded, so nothing of it is private.

    `noise` is the table that the devices draw from, `data` a file of records in place of made ones. `out` keeps
    finished batches, and the same call goes on after an interruption; without it nothing is kept.

        >>> import sensorsim as ss
        >>> found = ss.fleet(devices=20, days=7, noise=ss.noise_table(epsilon=1.6, release=1))  # doctest: +SKIP
        >>> found.over_budget  # doctest: +SKIP
        False
    """
    settings, board = fleet_settings(
        devices, days, noise, sketch, data, person, columns, ranges, drop_missing, records_per_day, budget_epsilon,
        budget_days, reserve, schedule, reset_rate, power_cuts, loss, stuck_entropy, clock_skew, chip, radio,
        battery_mah, seed, told,
    )  # fmt: skip
    from sensorsim.fleets.estimates import number_of
    from sensorsim.fleets.simulation import simulate

    number_of(settings, every)  # that they are not too many, before anything is simulated
    with temporary_folder() as folder:
        counts = simulate(settings, Path(folder) / "fleet.sqlite" if out is None else out, jobs=jobs, dask=dask)
    return FleetResult(settings, counts, every, board)


def fleet_settings(
    devices: int,
    days: int,
    noise: Table,
    sketch: "Sketch | str | os.PathLike[str] | None",
    data: str | None,
    person: str | None,
    columns: str | Sequence[str] | None,
    ranges: str | None,
    drop_missing: bool,
    records_per_day: int,
    budget_epsilon: Decimal | float | str | None,
    budget_days: int,
    reserve: int,
    schedule: str,
    reset_rate: float,
    power_cuts: float,
    loss: float,
    stuck_entropy: float,
    clock_skew: int,
    chip: str | None,
    radio: str,
    battery_mah: float | None,
    seed: int,
    told: Told = warn,
) -> "tuple[Settings, Board]":
    """What is simulated, and what its energy is of; a sentence if it cannot be."""
    from sensorsim.device.sketch_file import read_sketch
    from sensorsim.fleets.energy import board_of

    check_numbers(devices, days, records_per_day, seed, schedule)
    firmware = Firmware(
        read_table(noise),
        budget_epsilon=budget_epsilon,
        budget_days=budget_days,
        reserve=reserve,
        sketch=read_sketch(Path(sketch)) if isinstance(sketch, str | os.PathLike) else sketch,
    )
    faults = Faults(reset_rate, power_cuts, loss, stuck_entropy, clock_skew)
    # before data is read, which may take long
    board = board_of(firmware, days, records_per_day, chip, radio, battery_mah, faults, schedule)
    people = people_of(data, columns, person, ranges, seed, drop_missing, told)
    return Settings(firmware, people, devices, days, records_per_day, schedule, faults, seed, board.prices), board


def people_of(
    data: str | None,
    columns: str | Sequence[str] | None,
    person: str | None,
    ranges: str | None,
    seed: int,
    drop_missing: bool = False,
    told: Told = warn,
) -> "People":
    """The people of a CSV or Parquet file, or made ones where none is given; what was done to it is told."""
    from sensorsim.datasets import chosen_records
    from sensorsim.fleets.settings import People

    if data is None:
        unused = {"--person": person, "--ranges": ranges, "--drop-missing": drop_missing}
        for name, value in unused.items():
            if value:
                raise InputError(f"{name} is about a file of your own; give one with --data FILE, or leave it out.")
        return People.generated(column_names(columns), seed)
    made = chosen_records(data, 1, columns, person, ranges, "ranges", drop_missing, seed, needs=(), told=told)
    return People.of(made.columns, made.x, made.person, made.source, made.ranges)
