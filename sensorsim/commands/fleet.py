"""`sensorsim fleet`: many private sensors over many days, simulated in batches, resumable."""

import os
import time
from dataclasses import dataclass, fields
from decimal import Decimal
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError
from sensorsim._util.files import temporary_folder
from sensorsim._util.option_kinds import DATABASE, SUMS, Budget, Path, Whole, option_of
from sensorsim.commands.declare import REQUIRED, Command, option
from sensorsim.commands.noise import NOISE_TABLE, proved_table
from sensorsim.commands.training_options import RecordOptions, WorkerOptions, tell
from sensorsim.device.firmware import Firmware
from sensorsim.fleets.fleet_result import FleetResult
from sensorsim.fleets.settings import Faults, Settings
from sensorsim.planning.deployment import Asked

if TYPE_CHECKING:
    from sensorsim.device.sketches import Sketch
    from sensorsim.fleets.energy import Board
    from sensorsim.fleets.settings import People
    from sensorsim.noise.noise_table import NoiseTable

SOON = 1.0  # seconds without a bar
SKETCH = Path("file", "Sketch")


@dataclass(frozen=True, kw_only=True)
class BudgetOptions:
    """The budget of a person, and the energy of a device."""

    budget_epsilon: Decimal | float | str | None = option(
        Firmware.budget_epsilon, Budget(), "Epsilon of a period.", default_text="that of one release"
    )
    budget_days: int = option(Firmware.budget_days, Whole(), "Days of a period.")
    reserve: int = option(Firmware.reserve, Whole(), "Releases that one store counts ahead.")
    chip: str | None = option_of(Asked, "chip", default_text="as `sensorsim cost`")
    radio: str = option_of(Asked, "radio")
    battery_mah: float | None = option_of(Asked, "battery_mah", help="Also what the days use up of a battery.")


@dataclass(frozen=True)
class SimulateFleet(WorkerOptions, Faults, BudgetOptions, RecordOptions, Command[FleetResult]):
    """Every device has its generator, journal, budget and faults. Only sums per feature and day are kept, never rows.
    Run the same command again after an interruption: finished batches are kept, and the result is the same to the bit.

    The generators are seeded and the truth is printed beside the estimates: nothing of a simulation is private. Exit
    code 1 if a device spent more than its budget.
    """

    example = """sensorsim fleet --devices 5000 --days 28 --noise rows-eps1-1.txt \\
  --budget-epsilon 1 --budget-days 30 --loss 0.02 \\
  --out fleet.sqlite --plot fleet.svg"""
    usage = """
        >>> import sensorsim as ss
        >>> found = ss.fleet(devices=20, days=7, noise=ss.noise_table(epsilon=1.6, release=1))  # doctest: +SKIP
        >>> found.over_budget  # doctest: +SKIP
        False
    """
    plots = "Draw a page of figures into an .svg, .png or .pdf file."

    devices: int = option_of(Settings, "devices")
    days: int = option_of(Settings, "days")
    noise: "NoiseTable | str" = option(REQUIRED, NOISE_TABLE, "Noise table, as `sensorsim noise make` writes it.")
    sketch: "Sketch | str | None" = option(None, SKETCH, "A sketch of the record is released, not its features.")
    records_per_day: int = option_of(Settings, "records_per_day")
    schedule: str = option_of(Settings, "schedule")
    every: int = option(FleetResult.every, Whole(1), "Days of an estimate.")
    seed: int = option_of(Settings, "seed")
    out: str | None = option(None, DATABASE, "Keep finished batches in this file, as fleet.sqlite.")
    statistics: str | None = option(None, SUMS, "What the hospital received: .parquet or .csv by day, or .json.")

    def run(self) -> FleetResult:
        from sensorsim.fleets.estimates import number_of
        from sensorsim.fleets.fleet_file import check_store
        from sensorsim.hospital import sum_files

        if self.out is not None:
            check_store(self.out)
        if self.statistics:
            sum_files.check_out(self.statistics)
        settings, board = self.settings()
        number_of(settings, self.every)  # refuses too many estimates, before anything is simulated
        if self.statistics:
            sum_files.check_size(self.statistics, settings.groups, settings.firmware.features, settings.columns)
        with temporary_folder() as folder:
            path = FilePath(folder) / "fleet.sqlite" if self.out is None else FilePath(self.out)
            counts = self.simulate(settings, path)
        result = FleetResult(settings, counts, self.every, board)
        _estimate(result)
        if self.data and self.out:
            tell(f"Note: {self.out} holds sums of raw records of {self.data}: keep it where the records are kept.")
        if self.statistics:
            sum_files.write_days(self.statistics, settings.firmware, counts.tally)
        return result

    def settings(self) -> "tuple[Settings, Board]":
        """Return what is simulated, and the board that its energy is of."""
        from sensorsim.device.sketch_file import read_sketch
        from sensorsim.fleets.energy import board_of

        firmware = Firmware(
            proved_table(self.noise),
            budget_epsilon=self.budget_epsilon,
            budget_days=self.budget_days,
            reserve=self.reserve,
            sketch=read_sketch(FilePath(self.sketch)) if isinstance(self.sketch, str | os.PathLike) else self.sketch,
        )
        faults = Faults(**{each.name: getattr(self, each.name) for each in fields(Faults)})
        chosen = self.days, self.records_per_day, self.chip, self.radio, self.battery_mah, faults, self.schedule
        board = board_of(firmware, *chosen)  # before data is read, which may take long
        sizes = {name: getattr(self, name) for name in ("devices", "days", "records_per_day", "schedule", "seed")}
        return Settings(firmware, people_of(self, self.seed), **sizes, faults=faults, prices=board.prices), board

    def simulate(self, settings: Settings, path: FilePath) -> Any:
        """Simulate behind a bar with the device-days per second; after Ctrl-C report how many devices are stored."""
        from sensorsim.commands.outputs import progress_bar
        from sensorsim.fleets.simulation import COMPILES, finished_devices, simulate

        began: tuple[float, int] | None = None  # start time, and devices that were finished then
        with progress_bar("fleet", "devices", settings.devices) as update:

            def show(doing: str, devices: int) -> None:
                nonlocal began
                if doing == COMPILES:
                    update(devices, "compiling, some 20 seconds")
                    return
                now = time.monotonic()
                began = began or (now, devices)
                passed, made = now - began[0], devices - began[1]
                speed = f"{made * settings.days / passed:,.0f} device-days/s" if made and passed else "running"
                update(devices, speed)

            try:
                return simulate(settings, path, jobs=self.jobs, dask=self.dask, progress=show)
            except KeyboardInterrupt:
                if self.out is None:
                    raise
        done = finished_devices(settings, path)  # from the file: Ctrl-C may come between a write and its report
        raise KeyboardInterrupt(f"with {done:,} devices safe in {self.out}: run the same command to go on") from None

    def text(self, answer: FleetResult) -> str:
        from sensorsim.fleets.fleet_text import text

        return text(answer)

    def draw(self, answer: FleetResult, path: str) -> None:
        from sensorsim._util.drawing import write_figure
        from sensorsim.fleets.fleet_page import page

        write_figure(page(answer), path)

    def exit_code(self, answer: FleetResult) -> int:
        return 1 if answer.over_budget else 0


def people_of(chosen: RecordOptions, seed: int) -> "People":
    """Return the people of a CSV or Parquet file, or synthetic ones where none is given."""
    from sensorsim.datasets import chosen_records, column_names
    from sensorsim.fleets.settings import People

    if chosen.data is None:
        for name in ("person", "ranges", "drop_missing"):
            if getattr(chosen, name):
                option_name = f"--{name.replace('_', '-')}"
                raise InputError(f"{option_name} is about a file of your own; give one with --data, or leave it out.")
        return People.generated(column_names(chosen.columns), seed)
    read = chosen.columns, chosen.person, chosen.ranges, "ranges", chosen.drop_missing
    made = chosen_records(chosen.data, 1, *read, seed, needs=(), told=tell)
    return People.of(made.columns, made.x, made.person, made.source, made.ranges)


def _estimate(result: FleetResult) -> None:
    """Compute the estimates, behind a bar if they take long."""
    from sensorsim.commands.outputs import progress_bar
    from sensorsim.fleets.estimates import number_of

    began = time.monotonic()
    with progress_bar("means", "intervals", number_of(result.settings, result.every)) as update:

        def show(made: int) -> None:
            if time.monotonic() > began + SOON:
                update(made, "each takes some milliseconds")

        result.reckon(show)
