"""Sums of a simulated fleet in a resumable file: each finished batch of devices is one transaction.

The file belongs to one process while it is written to. A report reads a finished file from its bytes alone. The file
names its noise table by a hash, so the table is searched among those that are given; it knows its people by a hash as
well, so their columns are known and their ranges are not.
"""

import json
import sqlite3
import zlib
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError
from sensorsim._util.files import Name, brief_path, check_target, strict_json
from sensorsim._util.resumable import OTHER, ResumableFile, as_database, read_meta
from sensorsim.datasets.public_ranges import brief
from sensorsim.device.firmware import Firmware
from sensorsim.fleets.settings import MOST_SUM, Faults, People, Prices, Settings

if TYPE_CHECKING:
    from sensorsim.fleets.counts import Counts
    from sensorsim.fleets.fleet_result import FleetResult
    from sensorsim.noise.noise_table import NoiseTable

CONTENT = "a fleet simulated by sensorsim"
VERSION = 2  # raise it whenever a stored number could change
TABLES = {
    "meta": "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "batches": "CREATE TABLE batches (number INTEGER PRIMARY KEY)",  # those that are in the sums
    "sums": "CREATE TABLE sums (name TEXT PRIMARY KEY, shape TEXT NOT NULL, data BLOB NOT NULL) WITHOUT ROWID",
}
LEVEL = 1  # of zlib: sums are mostly zeros at first, and speed matters more than size
SPARE = 1 << 10  # bytes that zlib may add, besides a thousandth
MOST_BYTES = 1 << 28  # of a file in a report: its sums are at most 128 MB
OPTION = "--fleet"  # that names a file in a report
LABELS = {  # of settings that a user knows by another name
    "identity": "noise table",
    "data": "people (--data, or --seed of the generator)",
    "releases": "releases of a period",
    "prices": "prices of energy (--chip, --radio)",
}


class FleetFile(ResumableFile):
    """The sums of one fleet, in batches of `size` devices; nothing is written before `claim`."""

    kind, option, wait, tables = "file of a fleet", "--out", 5.0, TABLES

    def __init__(self, path: Name, settings: Settings, size: int, content: bytes | None = None) -> None:
        from sensorsim.fleets.counts import Counts

        self.settings, self.size = settings, size
        self.batches = -(-settings.devices // size)
        self.done: set[int] = set()
        self.sums: Counts = Counts.empty(settings)
        if content is None:
            check_store(path)
        made = {"content": CONTENT, "version": str(VERSION), "devices of a batch": str(size)}
        chosen = {"digest": settings.digest, "settings": json.dumps(settings.to_dict(), sort_keys=True)}
        super().__init__(path, made | chosen, content)

    def start(self) -> None:
        """Read the sums of a file that exists."""
        if not self.is_new and self.run("SELECT 1 FROM sqlite_master LIMIT 1"):
            self.resume()

    def claim(self) -> None:
        """Make the file, or take hold of it, so that no other process adds to it."""
        self.open(exclusive=True)

    @property
    def finished(self) -> bool:
        return len(self.done) == self.batches

    @property
    def devices(self) -> int:
        """Return how many devices are in the sums."""
        spare = self.batches * self.size - self.settings.devices  # that the last batch lacks
        return len(self.done) * self.size - (spare if self.batches - 1 in self.done else 0)

    @property
    def missing(self) -> Iterable[int]:
        return (number for number in range(self.batches) if number not in self.done)

    def progress(self) -> str:
        """Say how many batches are finished."""
        if not self.done:
            return f"0 of {self.batches} batches are finished"
        return f"{len(self.done)} of {self.batches} batches are kept in {brief_path(self.path)}"

    def has_results(self) -> bool:
        """Return whether a batch is finished."""
        return bool(self.done)

    def range_of(self, number: int) -> tuple[int, int]:
        """Return the first device of a batch, and the one after its last."""
        return number * self.size, min((number + 1) * self.size, self.settings.devices)

    def add(self, number: int, counts: "Counts") -> None:
        """Add a finished batch to the sums and to the list of batches, in one transaction."""
        with self.transaction():
            self.sums.add(counts)
            self.run("INSERT INTO batches VALUES (?)", number)
            self.write_sums()
        self.done.add(number)

    def write_sums(self) -> None:
        """Write all sums, compressed."""
        for name, array in self.sums.arrays().items():
            data = zlib.compress(array.astype("<i8", copy=False).data, LEVEL)
            self.run("INSERT OR REPLACE INTO sums VALUES (?, ?, ?)", name, json.dumps(array.shape), data)

    def initialise(self) -> None:
        """Write sums of no devices."""
        self.write_sums()

    def resume(self) -> None:
        """Read batches and sums; raise InputError if no fleet of these settings can have them."""
        import numpy as np

        from sensorsim.fleets.counts import find_inconsistency

        numbers = [number for (number,) in self.run("SELECT number FROM batches LIMIT ?", self.batches + 1)]
        if any(type(number) is not int or not 0 <= number < self.batches for number in numbers):
            raise self.damage("batches that the fleet does not have")
        self.done = set(numbers)
        query = "SELECT shape, data FROM sums WHERE name = ? AND typeof(data) = 'blob' AND length(data) <= ? LIMIT 1"
        for name, array in self.sums.arrays().items():
            rows = self.run(query, name, array.nbytes + array.nbytes // 1000 + SPARE)
            if not rows or rows[0][0] != json.dumps(array.shape):
                raise self.damage(f"no {name} of its shape")
            unpack = zlib.decompressobj()
            try:
                content = unpack.decompress(rows[0][1], array.nbytes + 1)  # no more than it must have
            except zlib.error as error:
                raise self.damage(f"{name}: {error}") from None
            if len(content) != array.nbytes or not unpack.eof:
                raise self.damage(f"{name} of another length")
            array[...] = np.frombuffer(content, "<i8").reshape(array.shape)
        why = find_inconsistency(self.settings, self.sums, self.devices)
        if why:
            raise self.damage(why)

    def check_identity(self, found: Mapping[str, Any]) -> None:
        """Refuse a file of another fleet, and name the first setting that differs."""
        if found.get("content") != CONTENT:
            raise self.refusal(OTHER)
        if found.get("version") != self.identity["version"]:
            raise self.refusal(f"was written with version {brief(found.get('version'))}, this run has {VERSION}")
        if found.get("settings") != self.identity["settings"]:
            try:
                theirs, ours = strict_json(found.get("settings", "")), self.settings.to_dict()
                name = next((name for name, mine in ours.items() if theirs.get(name) != mine), None)
            except (ValueError, TypeError, AttributeError, RecursionError):
                raise self.damage("settings that cannot be read") from None
            if name is None:
                raise self.damage("settings that the program does not write")
            label = LABELS.get(name, name.replace("_", " "))
            raise self.refusal(
                f"is of a fleet with {label} {brief(theirs.get(name))}, this run has {brief(ours[name])}"
            )
        if found != self.identity:
            raise self.damage("a digest or a division that is not that of its settings")


class ReportedFile(FleetFile):
    """A file that a report reads."""

    option = OPTION


def check_store(path: Name) -> None:
    """Refuse a path that is no ordinary file of its own, before anything is computed."""
    check_target(path)
    if Path(path).is_symlink():
        raise InputError(f"{brief(path)} is a link; give the path of the file itself.")


def stored_result(path: Name, content: bytes, tables: "Iterable[NoiseTable]", every: int) -> "FleetResult":
    """Return the result of a finished fleet from the bytes of its file; `every` days are one estimate."""
    from sensorsim.fleets.fleet_result import FleetResult

    try:
        with closing(as_database(content)) as database:
            schema, meta = read_meta(database, TABLES)
        if schema != TABLES or meta.get("content") != CONTENT:
            raise ValueError("other tables")
        if meta.get("version") != str(VERSION):
            raise ValueError(f"of version {brief(meta.get('version'))}, not {VERSION}")
        size, found = int(meta["devices of a batch"]), strict_json(meta["settings"])
        if not 1 <= size <= MOST_SUM:
            raise ValueError("size")
        settings = _parse_settings(found, tables)
    except (sqlite3.Error, ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError) as error:
        why = f"{brief(path)} is not a file of a fleet ({brief(error)})"
        raise InputError(f"{why}; give one that `sensorsim fleet --out` wrote with {OPTION}.") from None
    if settings is None:
        raise InputError(
            f"the noise table of {brief(path)} is not known here: it is not the plan's and none that ships; give it "
            f"with --noise TABLE --n {len(found['columns'])} (a fleet of sketches is on no page)."
        )
    with ReportedFile(path, settings, size, content) as file:
        if not file.finished:
            raise InputError(f"{file.progress()}; give the command of that fleet again to finish it.")
        return FleetResult(settings, file.sums, min(every, settings.days))


def _parse_settings(found: Any, tables: "Iterable[NoiseTable]") -> Settings | None:
    """Return the settings with the first table that has the file's hash; None if no table has."""
    columns, digest = found["columns"], found["data"]
    if type(columns) is not list or not all(type(name) is str for name in columns) or type(digest) is not str:
        raise ValueError("columns")
    prices = Prices(*found["prices"])
    if not all(type(price) is int and 0 <= price <= MOST_SUM for price in prices) or not prices.step:
        raise ValueError("prices")
    budget = {name: found[name] for name in ("budget_epsilon", "budget_days", "reserve")}
    faults = Faults(**{each.name: found[each.name] for each in fields(Faults)})
    chosen = {name: found[name] for name in ("devices", "days", "records_per_day", "schedule", "seed")}
    for table in tables:
        with suppress(InputError):  # this budget does not pay for a release of that table
            firmware = Firmware(table, **budget)
            if firmware.identity.hex() == found["identity"]:
                break
    else:
        return None
    return Settings(firmware, People.unknown(tuple(columns), digest), faults=faults, prices=prices, **chosen)
