"""Files of earlier commands that a report reads, once and without a change, and lists with their hashes."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError
from sensorsim._util.resumable import read_still
from sensorsim._util.terminal import counted
from sensorsim.datasets.public_ranges import brief
from sensorsim.reporting.request import PathName

if TYPE_CHECKING:
    from sensorsim.codegen.manifest import Package
    from sensorsim.fleets.fleet_result import FleetResult
    from sensorsim.noise.certificate import Certificate
    from sensorsim.noise.noise_table import NoiseTable
    from sensorsim.training.results_file import StoredSweep

RELEASE = "release"  # the call of a sensor whose cost is shown
MOST_CHARACTERS = 1000  # of a command or a reason that a manifest states
MOST_BYTES_OF_CODE = 1 << 40
CERTIFIED = ("epsilon_record", "delta_record", "neighbours")  # the part of a certificate that the page shows


@dataclass(frozen=True)
class InputFile:
    """A file that was read: the option that named it, its name without folders, and its SHA-256."""

    option: str
    name: str
    sha256: str


@dataclass(frozen=True)
class CompiledCore:
    """Sizes of a sensor, or of one kernel, compiled for one core; None where the manifest has no figure."""

    core: str
    function: str
    instructions: float | None = None
    cost: float | None = None
    unit: str = ""
    stack: float | None = None
    flash: float | None = None
    ram: float | None = None


@dataclass(frozen=True)
class PackageFacts:
    """Contents of a C package whose files have the hashes of its manifest."""

    name: str
    command: str
    compiler: str
    files: int
    cores: tuple[CompiledCore, ...]
    table: "NoiseTable | None"
    certificate: "Certificate | None"  # computed from the table
    budget: str  # empty where the package is no sensor
    unproved: tuple[str, ...]  # kernels whose secrecy is not proved, with the reason


class InputReader:
    """Reader of files of earlier commands; lists what it read in `files`. A path of None gives None."""

    def __init__(self) -> None:
        self.files: list[InputFile] = []

    def sweep(self, path: PathName | None) -> "StoredSweep | None":
        """Read the results file of a sweep."""
        from sensorsim.training.results_file import MOST_BYTES, OPTION, stored_sweep

        if path is None:
            return None
        return stored_sweep(_file_name(path), self._content(OPTION, path, MOST_BYTES, "the results file of a sweep"))

    def fleet(self, path: PathName | None, tables: "list[NoiseTable]", every: int) -> "FleetResult | None":
        """Read the file of a fleet. Its noise table is looked up in `tables`, then among those that ship."""
        from sensorsim.fleets.fleet_file import MOST_BYTES, OPTION, stored_result

        if path is None:
            return None
        content = self._content(OPTION, path, MOST_BYTES, "the file of a fleet")
        return stored_result(_file_name(path), content, _known_tables(tables), every)

    def noise(self, path: PathName | None) -> "NoiseTable | None":
        """Read a noise table."""
        from sensorsim.noise.table_file import MOST_BYTES, parse_table

        if path is None:
            return None
        content = self._content("--noise", path, MOST_BYTES, "the path of a noise table")
        return parse_table(content, brief(_file_name(path)))

    def board(self, chip: str | None) -> None:
        """List the files of a board that is not one of those that ship."""
        from sensorsim.costing.chips import own_files
        from sensorsim.costing.csv_schema import MOST_BYTES

        for path in own_files(chip):
            self._content("--chip", path, MOST_BYTES, "the table of a chip")

    def package(self, folder: PathName | None) -> PackageFacts | None:
        """Read a C package; raise InputError if it is none, if a file was altered, or if its table proves otherwise."""
        from sensorsim.codegen.manifest import open_package
        from sensorsim.codegen.sbom import MANIFEST

        if folder is None:
            return None
        name = brief(_file_name(folder))
        try:
            package = open_package(Path(fspath(folder)))
            self._list("--package", MANIFEST, (package.folder / MANIFEST).read_bytes())
            return package_facts(package)
        except InputError as error:
            raise InputError(str(error)) from None  # an altered package is bad input here, and has no code of its own
        except OSError as error:
            raise InputError(f"cannot read {name}: {error.strerror}; give a folder that export wrote.") from None
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            why = f"{name} has a manifest that no export writes ({brief(error)})"
            raise InputError(f"{why}; export the package again.") from None

    def _content(self, option: str, path: PathName, most: int, expected: str) -> bytes:
        """Read and list a file of at most `most` bytes; raise InputError, which asks for `expected`, if that fails."""
        name = _file_name(path)
        try:
            content = read_still(path, most)
        except OSError as error:
            raise InputError(f"cannot read {brief(name)}: {error.strerror}; give {expected}.") from None
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{brief(name)} is not the path of a file; give {expected}.") from None
        self._list(option, name, content)
        return content

    def _list(self, option: str, name: str, content: bytes) -> None:
        self.files.append(InputFile(option, name, hashlib.sha256(content).hexdigest()))


def _file_name(path: PathName) -> str:
    """Return a path without its folders: they belong neither on a page for others nor in a short message."""
    return Path(fspath(path)).name or fspath(path)


def _known_tables(tables: "list[NoiseTable]") -> "Iterator[NoiseTable]":
    from sensorsim.noise.noise_table import READY_EPSILONS, ready_table

    yield from tables
    for kind in ("rows", "stairs"):
        for release in (1, "all"):
            yield from (ready_table(epsilon, release, kind) for epsilon in READY_EPSILONS)


def package_facts(package: "Package") -> PackageFacts:
    """Return what the manifest of a package says, with every number checked, and its table proved again."""
    from sensorsim.language.secrecy import unproved

    manifest, sizes, sensor = package.manifest, package.manifest["sizes"], package.manifest.get("sensor")
    budget = ""
    if sensor is not None:
        days = counted(int(_size(sensor["budget_days"])), "day")
        budget = f"epsilon {brief(sensor['budget_epsilon'])} in {days}"
    return PackageFacts(
        package.folder.resolve().name,
        brief(manifest["command"], MOST_CHARACTERS),
        f"{brief(sizes['compiler'])}, {brief(sizes['flags'])}",
        len(manifest["files"]) + 1,
        tuple(_compiled_cores(sizes)),
        *_certify_table(package),
        budget,
        tuple(brief(text, MOST_CHARACTERS) for text in unproved(manifest["proved"])),
    )


def _certify_table(package: "Package") -> "tuple[NoiseTable | None, Certificate | None]":
    """Return the package's noise table and its certificate; raise InputError if the manifest states another one."""
    from sensorsim.noise.certificate import certify
    from sensorsim.noise.table_file import read_table

    if package.table_file is None:
        return None, None
    table = read_table(package.table_file)
    certificate, stated = certify(table), package.manifest["noise_table"]["certificate"]
    for name in CERTIFIED:
        if stated[name] != str(getattr(certificate, name)):
            raise InputError(
                f"{brief(package.folder)} says {name.replace('_', ' of a ')} {brief(stated[name])} and its table "
                f"proves {getattr(certificate, name)}; export the package again."
            )
    return table, certificate


def _compiled_cores(sizes: Any) -> Iterator[CompiledCore]:
    for one in sizes.get("by_core", ()):
        call = next(call for call in one["calls"] if call["call"] == RELEASE)
        cost = None if call["cost"] is None else _size(call["cost"])
        counts = _size(call["instructions"]), cost, brief(call["unit"]), _size(call["stack_bytes"])
        yield CompiledCore(brief(one["target"]), RELEASE, *counts, _size(one["flash_bytes"]), _size(one["ram_bytes"]))
    if "by_core" not in sizes:
        for function, by_core in sizes["by_function"].items():
            for core, found in by_core.items():
                yield CompiledCore(brief(core), brief(function), flash=_size(found["code_bytes"]))


def _size(value: Any) -> float:
    """Return a size or cost of a manifest; raise ValueError if it is no number."""
    if type(value) not in (int, float) or not isfinite(value) or not 0 <= value < MOST_BYTES_OF_CODE:
        raise ValueError("a size")
    return float(value)
