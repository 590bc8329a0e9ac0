"""A finished fleet from its file alone, for those who did not run it: the file is read and never touched.

It names its noise table by a hash, so the table itself is looked for among those that are given. It knows its people by
a hash too: columns are known, their ranges are not, and estimates are shares of a range.
"""

import sqlite3
from collections.abc import Iterable
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from sensorsim._util.files import Name, strict_json
from sensorsim._util.resumable import as_database
from sensorsim.device.firmware import Firmware
from sensorsim.errors import InputError
from sensorsim.fleet.people import People
from sensorsim.fleet.result import FleetResult
from sensorsim.fleet.settings import MOST_SUM, Faults, Prices, Settings
from sensorsim.fleet.store import CONTENT, MOST_TEXT, SCHEMA, VERSION, Store
from sensorsim.ranges import brief

if TYPE_CHECKING:
    from sensorsim.privacy.tables import NoiseTable

MOST_BYTES = 1 << 28  # of such a file: its sums are at most 128 MB
OPTION = "--fleet"


class Kept(Store):
    """The sums in the bytes of a file."""

    option = OPTION

    def __init__(self, path: Name, content: bytes, settings: Settings, size: int) -> None:
        self.content = content
        super().__init__(path, settings, size)

    def _is_there(self) -> bool:
        return True

    def _connect(self) -> sqlite3.Connection:
        return as_database(self.content)


def kept_result(
    path: Name, content: bytes, tables: "Iterable[NoiseTable]", every: int = FleetResult.every
) -> FleetResult:
    """What the file says, its sums checked as `sensorsim fleet` checks them when it goes on."""
    said, size = _said(path, content)
    try:
        settings = _settings(said, tables)
    except InputError as error:
        raise InputError(f"{brief(path)} has settings that no fleet has: {error}") from None
    except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError):
        raise _other(path, "has settings that cannot be read") from None
    if settings is None:
        raise InputError(
            f"the noise table of {brief(path)} is not known here: it is not the plan's and none that ships; give it "
            f"with --noise TABLE --n {len(said['columns'])} (a fleet of sketches stands on no page)."
        )
    with Kept(path, content, settings, size) as store:
        if not store.finished:
            raise InputError(f"{store.kept}; give the command of that fleet again to finish it.")
        return FleetResult(settings, store.sums, min(every, settings.days))


def _said(path: Name, content: bytes) -> tuple[Any, int]:
    """Its settings, and how many devices a batch has."""
    query = "SELECT name, value FROM meta WHERE length(value) <= ? LIMIT 9"
    try:
        database = as_database(content)
        try:
            schema = database.execute(
                "SELECT name, sql FROM sqlite_master WHERE length(sql) <= ? LIMIT 9", (MOST_TEXT,)
            )
            found = dict(database.execute(query, (MOST_TEXT,))) if dict(schema) == SCHEMA else {}
        finally:
            database.close()
    except (sqlite3.Error, UnicodeDecodeError, ValueError, OverflowError) as error:
        raise _other(path, f"is not a file of a fleet ({brief(error)})") from None
    if found.get("content") != CONTENT:
        raise _other(path, "is not a file of a fleet")
    if found.get("version") != str(VERSION):
        raise _other(path, f"was written with version {brief(found.get('version'))} of the fleet, not {VERSION}")
    try:
        size = int(found["devices of a batch"])
        if not 1 <= size <= MOST_SUM:
            raise ValueError("size")
        return strict_json(found["settings"]), size
    except (ValueError, TypeError, KeyError, RecursionError):
        raise _other(path, "has settings that cannot be read") from None


def _settings(said: Any, tables: "Iterable[NoiseTable]") -> Settings | None:
    """With the first table that has its hash; None where there is none."""
    columns, digest = said["columns"], said["data"]
    if type(columns) is not list or not all(type(name) is str for name in columns) or type(digest) is not str:
        raise ValueError("columns")
    prices = Prices(*said["prices"])
    if not all(type(price) is int and 0 <= price <= MOST_SUM for price in prices) or not prices.step:
        raise ValueError("prices")
    firmware = _firmware(said, tables)
    if firmware is None:
        return None
    people = _people(tuple(columns), digest)
    faults = Faults(**{each.name: said[each.name] for each in fields(Faults)})
    chosen = {name: said[name] for name in ("devices", "days", "records_per_day", "schedule", "seed")}
    return Settings(firmware, people, faults=faults, prices=prices, **chosen)


def _firmware(said: Any, tables: "Iterable[NoiseTable]") -> Firmware | None:
    kept = {name: said[name] for name in ("budget_epsilon", "budget_days", "reserve")}
    for table in tables:
        try:
            found = Firmware(table, **kept)
        except InputError:  # this budget does not pay for a release of that table
            continue
        if found.identity.hex() == said["identity"]:
            return found
    return None


def _people(columns: tuple[str, ...], digest: str) -> People:
    """Known by their hash alone."""
    import numpy as np

    none = np.empty(0, np.int64)
    people = People(columns, np.empty((0, len(columns)), np.uint16), none, none, f"sha256 {digest[:12]}")
    people.__dict__["digest"] = digest
    return people


def _other(path: Name, why: str) -> InputError:
    return InputError(f"{brief(path)} {why}; give one that `sensorsim fleet --out` wrote with {OPTION}.")
