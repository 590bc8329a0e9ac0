"""`sensorsim plan`: what a fleet of sensors reaches under a budget, before it is built."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sensorsim._util import progress
from sensorsim._util.errors import InputError
from sensorsim._util.option_kinds import COLUMNS, FILE, Flag, Function, Output, option_of, split_names
from sensorsim.commands.declare import Command, option, values_of
from sensorsim.commands.noise import NOISE_TABLE, proved_table
from sensorsim.planning.deployment import Asked

if TYPE_CHECKING:
    from sensorsim.noise.noise_table import NoiseTable
    from sensorsim.planning.study_plan import Plan


@dataclass(frozen=True)
class PlanStudy(Command["Plan"]):
    """Solve for the one of --devices, --records-per-day, --budget-epsilon, --budget-days, --every and --accuracy that
    is given as '?', quoted for the shell, or as solve; an accuracy that is not given is solved for. Exit code 2 where
    an accuracy is not reached, with what would reach it.

    The interval is of the mean of these devices' records, for people who do not know the day that is released and for
    packets that are lost independently of the value.
    """

    example = """sensorsim plan --columns TotalSteps --devices 5000 --accuracy 0.02 \\
  --budget-epsilon 1 --budget-days 30
sensorsim plan --devices '?' --accuracy 0.02 --write-table noise.txt"""
    usage = """
        >>> import sensorsim as ss
        >>> found = ss.plan(features=14, devices=5000, budget_epsilon=1, budget_days=30)
        >>> found.asked.devices, 0 < found.half < 0.5
        (5000, True)
    """
    plots = "Draw interval against devices into an .svg, .png or .pdf file."

    devices: int | str | None = option_of(Asked, "devices")
    records_per_day: int | str | None = option_of(Asked, "records_per_day")
    budget_epsilon: Decimal | float | str | None = option_of(Asked, "budget_epsilon")
    budget_days: int | str | None = option_of(Asked, "budget_days")
    every: int | str | None = option_of(Asked, "every")
    accuracy: float | str | None = option_of(Asked, "accuracy")
    goal: str = option_of(Asked, "goal")
    features: int | None = option_of(Asked, "features")
    columns: str | Sequence[str] | None = option(
        None, COLUMNS, "Names of the features, with commas, to print their units."
    )
    ranges: str | None = option(None, FILE, "Public ranges of the columns.", default_text="those that are ready")
    days: int = option_of(Asked, "days")
    expect: float = option_of(Asked, "expect")
    loss: float = option_of(Asked, "loss")
    noise: "NoiseTable | str | None" = option(None, NOISE_TABLE, "Take this noise table in place of the best one.")
    delta: float = option_of(Asked, "delta")
    chip: str | None = option_of(Asked, "chip")
    radio: str = option_of(Asked, "radio")
    battery_mah: float | None = option_of(Asked, "battery_mah")
    compare: bool = option(False, Flag(), "Also other ways to spend the budget, by simulation.")
    write_table: str | None = option(None, Output(), "Write the noise table, for `fleet` and `export`.")
    told: Callable[[str], None] | None = option(None, Function(), "Is called with each long step.", shell=False)

    def run(self) -> "Plan":
        from sensorsim.datasets import column_names
        from sensorsim.datasets.public_ranges import ranges_for
        from sensorsim.planning.study_plan import plan

        if self.columns is not None and not split_names(self.columns):
            raise InputError("--columns names none; give some, with commas, or --features.")
        names = column_names(self.columns) or ()
        if self.ranges and not names:
            raise InputError("--ranges are those of columns; give --columns too.")
        asked: dict[str, Any] = values_of(self, "columns", "ranges", "noise", "compare", "write_table", "told")
        asked |= {"columns": names, "ranges": ranges_for(names, self.ranges) if self.ranges else None}
        asked["noise"] = None if self.noise is None else proved_table(self.noise)
        with progress.phases("planning") as phase:
            found = plan(Asked(**asked), compare=self.compare, told=self.told or phase)
        if self.write_table:
            from sensorsim.noise.table_file import write_table

            write_table(self.write_table, proved_table(found.table))
        return found

    def text(self, answer: "Plan") -> str:
        from sensorsim.planning.plan_text import plan_text

        return plan_text(answer)

    def check_drawing(self) -> None:
        from sensorsim.planning.plan_figure import check_goal

        check_goal(self.goal)

    def draw(self, answer: "Plan", path: str) -> None:
        from sensorsim.planning.plan_figure import draw

        draw(answer, path)
