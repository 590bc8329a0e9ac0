"""Files of earlier commands: read once, never touched, with the hash of what was read."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING

from sensorsim.errors import InputError
from sensorsim.files import read_still
from sensorsim.ranges import brief
from sensorsim.report.asked import Place

if TYPE_CHECKING:
    from sensorsim.fleet.result import FleetResult
    from sensorsim.privacy.tables import NoiseTable
    from sensorsim.train.kept import KeptSweep


@dataclass(frozen=True)
class Input:
    """What was read: which option named it, its name without folders, and its SHA-256."""

    option: str
    name: str
    sha256: str


def name_of(path: Place) -> str:
    """Without folders: a page is for others, and a sentence is short."""
    return Path(fspath(path)).name or fspath(path)


def of_file(option: str, path: Place, content: bytes) -> Input:
    return Input(option, name_of(path), hashlib.sha256(content).hexdigest())


def _content(path: Place, most: int, what: str) -> bytes:
    try:
        return read_still(path, most)
    except OSError as error:
        raise InputError(f"cannot read {brief(name_of(path))}: {error.strerror}; give {what}.") from None
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{brief(name_of(path))} is no path of a file; give {what}.") from None


def read_sweep(path: Place) -> "tuple[KeptSweep, Input]":
    from sensorsim.train.kept import MOST_BYTES, OPTION, kept_sweep

    content = _content(path, MOST_BYTES, "the results file of a sweep")
    return kept_sweep(name_of(path), content), of_file(OPTION, path, content)


def fleet_content(path: Place) -> bytes:
    """The bytes alone, so that a file that is none is told before anything is computed."""
    from sensorsim.fleet.kept import MOST_BYTES

    return _content(path, MOST_BYTES, "the file of a fleet")


def read_fleet(path: Place, content: bytes, tables: "list[NoiseTable]", every: int) -> "tuple[FleetResult, Input]":
    """`tables` are looked through for the one that the file names, then those that ship."""
    from sensorsim.fleet.kept import OPTION, kept_result

    return kept_result(name_of(path), content, _with_ready(tables), every), of_file(OPTION, path, content)


def read_noise(path: Place) -> "tuple[NoiseTable, Input]":
    from sensorsim.privacy.tablefile import MOST_BYTES, parse_table

    content = _content(path, MOST_BYTES, "the path of a noise table")
    return parse_table(content, brief(name_of(path))), of_file("--noise", path, content)


def of_board(chip: str | None) -> list[Input]:
    """The files of a stranger's board."""
    from sensorsim.cost.chips import own_files
    from sensorsim.cost.csv_schema import MOST_BYTES

    return [of_file("--chip", path, _content(path, MOST_BYTES, "the table of a chip")) for path in own_files(chip)]


def _with_ready(tables: "list[NoiseTable]") -> "Iterator[NoiseTable]":
    from sensorsim.privacy.tables import READY_EPSILONS, ready_table

    yield from tables
    for kind in ("rows", "stairs"):
        for release in (1, "all"):
            yield from (ready_table(epsilon, release, kind) for epsilon in READY_EPSILONS)
