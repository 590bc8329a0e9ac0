"""Options that train, evaluate, sweep, figures and fleet share: records, axes of a grid, processes."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from math import isfinite
from typing import TYPE_CHECKING, Any

from sensorsim._util import progress
from sensorsim._util.errors import InputError
from sensorsim._util.option_kinds import COLUMN, COLUMNS, FILE, Flag, Kind, Known, Number, Whole, option, option_of
from sensorsim.datasets import NORMALISE, TRAINING, chosen_records, warn
from sensorsim.training.config import MOST_SEED, Config

if TYPE_CHECKING:
    from sensorsim.datasets.dataset import Dataset

Axis = Any  # text such as 0,5 or 0:2:0.5, a number, or several numbers, which it is after the check
MOST_JOBS = 1024  # processes or threads
MOST_VALUES = 10_000  # of one range; a sweep trains at each
PORTS = range(1, 1 << 16)
PROTOCOLS = ("", "tcp", "tls", "ws", "wss", "ucx")
MAXIMUM_NOTE = (
    "Columns are divided by their own maximum, as printed; that maximum is private data, so no epsilon holds."
)


def tell(text: str) -> None:
    """Print a note on stderr; in Python, warn."""
    (progress.note if progress.is_shown() else warn)(text)


def known_mechanism(word: str) -> str:
    """Return the name of a mechanism; an older name is understood, with a hint."""
    from sensorsim.mechanisms import resolve

    mechanism, hint = resolve(word)
    if hint:
        tell(hint)
    return mechanism.name


def settings_of(command: Any, *without: str) -> dict[str, Any]:
    """Return the values of a command's options that are settings of a training run, all but those named."""
    names = [each.name for each in fields(Config) if hasattr(command, each.name) and each.name not in without]
    return {name: getattr(command, name) for name in names}


class Numbers(Kind):
    """Numbers between commas, or a range first:last:step; in Python also a number or a sequence. Each is of `each`."""

    words, metavar, schema = "numbers", "numbers", {"type": ["string", "number", "array"]}

    def __init__(self, each: Kind | None = None) -> None:
        self.each = each or Number()

    def accepts(self, value: Any) -> bool:
        return isinstance(value, str | float | int | Sequence) and not isinstance(value, bool | bytes)

    def check(self, label: str, value: Any) -> tuple[float, ...]:
        super().check(label, value)
        found: Sequence[Any] = value if isinstance(value, Sequence) else [value]
        if isinstance(value, str):
            found = self.parse(label, value)
        checked = tuple(self.each.check(label, one) for one in found)
        if not checked or not all(map(isfinite, checked)):
            raise InputError(f"{label} is {value}; give numbers.")
        return checked

    def parse(self, label: str, text: str) -> list[float]:
        try:
            if ":" not in text:
                return [float(part) for part in text.split(",") if part.strip()]
            first, last, step = (float(part) for part in text.split(":"))
            if not step > 0 or not first <= last < float("inf"):
                raise ValueError
            count = int((last - first) / step + 1e-9) + 1
        except (ValueError, OverflowError):
            allowed = "numbers like 0.1,0.2 or a range first:last:step like 0:2.5:0.25"
            raise InputError(f"{label} {text} cannot be read; give {allowed}.") from None
        if count > MOST_VALUES:
            raise InputError(f"{label} {text} is {count} values; give at most {MOST_VALUES}, with a larger step.")
        return [round(first + place * step, 12) for place in range(count)]


class Address(Kind):
    """An address of a Dask scheduler: a host and a port, with a protocol before them or not."""

    metavar = "ADDRESS"

    def check(self, label: str, value: Any) -> str:
        address: str = super().check(label, value)
        protocol, _, place = address.rpartition("://")
        host, _, port = place.rpartition(":")
        known = protocol in PROTOCOLS and address.isprintable() and len(address) <= 300 and " " not in address
        if not (known and host and port.isascii() and port.isdigit() and int(port[:6]) in PORTS):
            shown = address if len(address) <= 60 else f"{address[:57]}…"
            raise InputError(f"{shown!r} is no address of a Dask scheduler; give one as in tcp://127.0.0.1:8786.")
        return address


@dataclass(frozen=True, kw_only=True)
class RecordOptions:
    """A file of records, whose they are, and how columns are read."""

    data: str | None = option(None, FILE, "CSV or Parquet of records, a row each.", default_text="the synthetic set")
    person: str | None = option(
        None, COLUMN, "Column that names whose record it is.", default_text="Id; without it, every row is a person"
    )
    columns: str | Sequence[str] | None = option(
        None,
        COLUMNS,
        "Features, separated by commas.",
        default_text="Fitbit's 13 numeric ones, Calories twice",
    )
    ranges: str | None = option(
        None, FILE, "CSV of name,low,high,unit: public ranges.", default_text="`sensorsim data ranges`"
    )
    drop_missing: bool = option(False, Flag(), "Leave out rows with an empty cell; which these are is taken as public.")


@dataclass(frozen=True, kw_only=True)
class DataOptions(RecordOptions):
    """Records for training, split among users."""

    normalise: str = option(
        NORMALISE[0],
        Known(lambda: NORMALISE, metavar=f"[{'|'.join(NORMALISE)}]"),
        "By public ranges, or by private column maxima as printed: then no epsilon holds.",
    )
    m: int = option_of(Config, "m")

    def load(self, users: int | None = None, seed: int = 0, counts: bool = True) -> "Dataset":
        """Return the data set; note what was done to it, of readings only with `counts`."""
        split = self.m if users is None else users
        read = self.columns, self.person, self.ranges, self.normalise, self.drop_missing
        return chosen_records(self.data, split, *read, seed=seed, needs=TRAINING, counts=counts, told=tell)


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """Where the work is done."""

    jobs: int | None = option(None, Whole(1, MOST_JOBS), "Processes or threads.", default_text="all processors")
    dask: str | None = option(None, Address(), "Run on this Dask cluster, as in tcp://127.0.0.1:8786.")


@dataclass(frozen=True, kw_only=True)
class GridOptions:
    """Axes of a grid of trainings, and their seed."""

    epsilon: Axis = option("0.1,0.2,0.4,0.8,1.6,3.2,6.4", Numbers(), "Nominal budgets per record.")
    sigma: Axis = option("0,5", Numbers(), "Environmental noise on the inputs.")
    runs: int = option_of(Config, "runs")
    seed: int = option(0, Whole(0, MOST_SEED), "Seed of the split and of every draw: reproducible, so not private.")
