"""Parameters of a report, and their form as options of commands."""

import shlex
from dataclasses import dataclass, fields
from decimal import Decimal
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError
from sensorsim._util.terminal import counted
from sensorsim.costing.chips import DEFAULT_RADIO
from sensorsim.planning.deployment import FEATURES, Asked

if TYPE_CHECKING:
    from sensorsim.noise.noise_table import NoiseTable

COIN_CELL_MAH = 225.0  # nominal capacity of a CR2032
HIDDEN = 7
FILES = ("sweep", "package", "fleet", "noise")
# Parameters that a plan takes under the same name.
SHARED = ("devices", "records_per_day", "budget_epsilon", "budget_days", "every", "chip", "radio", "battery_mah")
PathName = str | PathLike[str]
PLAN_DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(Asked)}


@dataclass(frozen=True)
class ReportRequest:
    """A deployment, and files of earlier commands to report on. `plan` has the defaults of what it takes too."""

    n: int = FEATURES
    l: int = HIDDEN
    devices: int = PLAN_DEFAULTS["devices"]
    records_per_day: int = PLAN_DEFAULTS["records_per_day"]
    budget_epsilon: Decimal | float | str = PLAN_DEFAULTS["budget_epsilon"]
    budget_days: int = PLAN_DEFAULTS["budget_days"]
    every: int = PLAN_DEFAULTS["every"]
    chip: str | None = None
    radio: str = DEFAULT_RADIO
    battery_mah: float = COIN_CELL_MAH
    sweep: PathName | None = None  # results file of `sensorsim sweep`
    package: PathName | None = None  # folder written by `sensorsim export`
    fleet: PathName | None = None  # file written by `sensorsim fleet`
    noise: PathName | None = None  # noise table; otherwise the plan chooses one
    claims: bool = True

    def __post_init__(self) -> None:
        if type(self.n) is not int or type(self.l) is not int:
            raise InputError("n and l are sizes; give whole numbers.")
        for name in FILES:
            if getattr(self, name) == "":
                raise InputError(f"--{name} is empty; give a path, or leave it out.")

    def to_plan(self, table: "NoiseTable | None") -> Asked:
        """Return the parameters of the plan, with `table` in place of the best one."""
        if table is not None and table.features != self.n:
            has = counted(table.features, "feature")
            raise InputError(f"the noise table is for records of {has} and n is {self.n}; give --n {table.features}.")
        return Asked(features=self.n, noise=table, **{name: getattr(self, name) for name in SHARED})

    def options(self, *names: str) -> str:
        """Return options as a shell takes them, each after a space; leave out those without a value."""
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return "".join(f" --{name.replace('_', '-')} {shlex.quote(_as_text(value))}" for name, value in given.items())

    def changed_options(self, *names: str) -> str:
        """Return the options of `names` whose value is not the default; without names, of all but `claims`."""
        chosen = names or [field.name for field in fields(self) if field.name != "claims"]
        return self.options(*(name for name in chosen if getattr(self, name) != getattr(ReportRequest, name)))


def _as_text(value: Any) -> str:
    """Return an option's value as text: a path as it is, a whole float without its fraction."""
    text = fspath(value) if isinstance(value, PathLike) else str(value)
    return text.removesuffix(".0") if isinstance(value, float) else text
