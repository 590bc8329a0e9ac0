"""Parameters of a report, and their form as options of commands."""

import shlex
from dataclasses import dataclass, fields
from decimal import Decimal
from os import PathLike
from typing import TYPE_CHECKING

from sensorsim._util.errors import InputError
from sensorsim._util.option_kinds import (
    FILE,
    FOLDER,
    TABLE,
    Budget,
    Flag,
    Whole,
    check_declared,
    option,
    option_of,
)
from sensorsim._util.terminal import counted
from sensorsim.planning.deployment import FEATURES, MOST_DAYS, MOST_DEVICES, MOST_RECORDS, Asked

if TYPE_CHECKING:
    from sensorsim.noise.noise_table import NoiseTable

COIN_CELL_MAH = 225.0  # nominal capacity of a CR2032
HIDDEN = 7
FILES = ("sweep", "package", "fleet", "noise")
# Parameters that a plan takes under the same name.
SHARED = ("devices", "records_per_day", "budget_epsilon", "budget_days", "every", "chip", "radio", "battery_mah")
PathName = str | PathLike[str]


@dataclass(frozen=True)
class ReportRequest:
    """A deployment, and files of earlier commands to report on. `plan` has the defaults of what it takes too."""

    n: int = option(FEATURES, Whole(), "Features of a record.")
    l: int = option(HIDDEN, Whole(), "Hidden units of the encoder.")
    devices: int = option_of(Asked, "devices", kind=Whole(1, MOST_DEVICES))
    records_per_day: int = option_of(Asked, "records_per_day", kind=Whole(1, MOST_RECORDS))
    budget_epsilon: Decimal | float | str = option_of(Asked, "budget_epsilon", kind=Budget())
    budget_days: int = option_of(Asked, "budget_days", kind=Whole(1, MOST_DAYS))
    every: int = option_of(Asked, "every", kind=Whole(1, MOST_DAYS))
    chip: str | None = option_of(Asked, "chip")
    radio: str = option_of(Asked, "radio")
    battery_mah: float = option_of(
        Asked, "battery_mah", default=COIN_CELL_MAH, help="A battery that records are paid from."
    )
    sweep: PathName | None = option(None, FILE, "Results of `sensorsim sweep`: accuracies beside trivial predictors.")
    package: PathName | None = option(None, FOLDER, "A package of `sensorsim export`: sizes, its table proved again.")
    fleet: PathName | None = option(None, FILE, "What `sensorsim fleet --out` wrote: estimates and coverage.")
    noise: PathName | None = option(None, TABLE, "Take this noise table in place of the best one.")
    claims: bool = option(True, Flag("no-claims"), "Recompute the claims too.")

    def __post_init__(self) -> None:
        check_declared(self)

    def to_plan(self, table: "NoiseTable | None") -> Asked:
        """Return the parameters of the plan, with `table` in place of the best one."""
        if table is not None and table.features != self.n:
            has = counted(table.features, "feature")
            raise InputError(f"the noise table is for records of {has} and n is {self.n}; give --n {table.features}.")
        return Asked(features=self.n, noise=table, **{name: getattr(self, name) for name in SHARED})

    def options(self, *names: str) -> str:
        """Return options as a shell takes them, each after a space; leave out those without a value."""
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        texts = {name: str(value).removesuffix(".0" * isinstance(value, float)) for name, value in given.items()}
        return "".join(f" --{name.replace('_', '-')} {shlex.quote(text)}" for name, text in texts.items())

    def changed_options(self, *names: str) -> str:
        """Return the options of `names` whose value is not the default; without names, of all but `claims`."""
        chosen = names or [field.name for field in fields(self) if field.name != "claims"]
        return self.options(*(name for name in chosen if getattr(self, name) != getattr(ReportRequest, name)))
