"""What a page is about. What other commands ask too has their defaults."""

from dataclasses import dataclass, fields
from decimal import Decimal
from os import PathLike
from typing import TYPE_CHECKING, Any

from sensorsim.cost.chips import DEFAULT_RADIO
from sensorsim.errors import InputError
from sensorsim.plan.asked import FEATURES, Asked
from sensorsim.terminal import counted

if TYPE_CHECKING:
    from sensorsim.privacy.tables import NoiseTable

COIN_CELL_MAH = 225.0  # nominal capacity of a CR2032
HIDDEN = 7
FILES = ("sweep", "package", "fleet", "noise")
Place = str | PathLike[str]


PLAN: dict[str, Any] = {each.name: each.default for each in fields(Asked)}


@dataclass(frozen=True)
class Wanted:
    """A deployment, and files of earlier commands that the page tells of."""

    n: int = FEATURES
    l: int = HIDDEN
    devices: int = PLAN["devices"]
    records_per_day: int = PLAN["records_per_day"]
    budget_epsilon: Decimal | float | str = PLAN["budget_epsilon"]
    budget_days: int = PLAN["budget_days"]
    every: int = PLAN["every"]
    chip: str | None = None
    radio: str = DEFAULT_RADIO
    battery_mah: float = COIN_CELL_MAH
    sweep: Place | None = None  # a results file
    package: Place | None = None  # a folder of `sensorsim export`
    fleet: Place | None = None
    noise: Place | None = None  # a table in place of the plan's own
    claims: bool = True

    def __post_init__(self) -> None:
        if type(self.n) is not int or type(self.l) is not int:
            raise InputError("n and l are sizes; give whole numbers.")
        for name in FILES:
            if getattr(self, name) == "":
                raise InputError(f"--{name} is empty; give a path, or leave it out.")

    def asked(self, table: "NoiseTable | None") -> Asked:
        """The same as a plan takes it."""
        if table is not None and table.features != self.n:
            raise InputError(
                f"the noise table is for records of {counted(table.features, 'feature')} and n is {self.n}; give --n "
                f"{table.features}."
            )
        shared = {each.name: getattr(self, each.name) for each in fields(self) if each.name in SHARED}
        return Asked(features=self.n, noise=table, **shared)


SHARED = {each.name for each in fields(Wanted)} & {each.name for each in fields(Asked)} - {"noise"}
