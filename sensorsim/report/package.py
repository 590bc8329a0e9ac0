"""What a C package says of itself, after its hashes were checked and its table was proved again."""

from dataclasses import dataclass
from math import isfinite
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorsim.errors import InputError
from sensorsim.ranges import brief
from sensorsim.report.asked import Place
from sensorsim.report.inputs import Input, name_of, of_file
from sensorsim.terminal import counted

if TYPE_CHECKING:
    from sensorsim.export.manifest import Package
    from sensorsim.privacy.certificate import Certificate
    from sensorsim.privacy.tables import NoiseTable

RELEASE = "release"  # the call whose cost is told
COMMAND_LETTERS = 1000  # of the command, which a page has room for
PRINTED = ("epsilon_record", "delta_record", "neighbours")  # what the page says of a certificate


@dataclass(frozen=True)
class CoreSize:
    """A sensor, or a kernel, compiled for one core. None where the manifest has no such figure."""

    core: str
    function: str
    instructions: float | None
    cost: float | None
    unit: str
    stack: int | None
    flash: int
    ram: int | None


@dataclass(frozen=True)
class PackageFacts:
    """A package that is as its manifest says."""

    name: str
    command: str
    made_by: str
    compiler: str
    files: int
    cores: tuple[CoreSize, ...]
    table: "NoiseTable | None"
    certificate: "Certificate | None"  # proved just now
    budget: str  # in words; empty where the package is no sensor
    unproved: tuple[str, ...]  # of its kernels' secrecy
    source: Input


def read_package(folder: Place) -> PackageFacts:
    """Refuses a folder that is no package, and one that was altered."""
    from sensorsim.export.manifest import open_package

    try:
        package = open_package(Path(fspath(folder)))
        return _facts(package)
    except InputError as error:
        raise InputError(str(error)) from None  # altered or not, here it is bad input
    except OSError as error:
        raise InputError(
            f"cannot read {brief(name_of(folder))}: {error.strerror}; give a folder that export wrote."
        ) from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"{brief(name_of(folder))} has a manifest that no export writes ({brief(error)}); export the package again."
        ) from None


def _facts(package: "Package") -> PackageFacts:
    from sensorsim.export.write import MANIFEST
    from sensorsim.language.secrecy import unproved

    manifest = package.manifest
    table, proof = _proved(package)
    content = (package.folder / MANIFEST).read_bytes()
    return PackageFacts(
        package.folder.resolve().name,
        brief(manifest["command"], COMMAND_LETTERS),
        brief(manifest["sensorsim"]),
        f"{brief(manifest['sizes']['compiler'])}, {brief(manifest['sizes']['flags'])}",
        len(manifest["files"]) + 1,
        tuple(_cores(manifest["sizes"])),
        table,
        proof,
        _budget(manifest.get("sensor")),
        tuple(brief(text, COMMAND_LETTERS) for text in unproved(manifest["proved"])),
        of_file("--package", Path(package.folder.resolve().name) / MANIFEST, content),
    )


def _proved(package: "Package") -> "tuple[NoiseTable | None, Certificate | None]":
    """The table of the package and its certificate, which must be the one that the manifest prints."""
    from sensorsim.privacy.certificate import certify
    from sensorsim.privacy.tablefile import read_table

    if package.table_file is None:
        return None, None
    table = read_table(package.table_file)
    proof = certify(table)
    said = package.manifest["noise_table"]["certificate"]
    for name in PRINTED:
        if said[name] != str(getattr(proof, name)):
            raise InputError(
                f"{brief(package.folder)} says {name.replace('_', ' of a ')} {brief(said[name])} and its table proves "
                f"{getattr(proof, name)}; export the package again."
            )
    return table, proof


def _budget(sensor: Any) -> str:
    if sensor is None:
        return ""
    days = _whole(sensor["budget_days"])
    return f"epsilon {brief(sensor['budget_epsilon'])} in {counted(days, 'day')}"


def _cores(sizes: Any) -> list[CoreSize]:
    if "by_core" in sizes:
        return [_of_sensor(one) for one in sizes["by_core"]]
    return [
        CoreSize(brief(core), brief(function), None, None, "", None, _whole(found["code_bytes"]), None)
        for function, by_core in sizes["by_function"].items()
        for core, found in by_core.items()
    ]


def _of_sensor(one: Any) -> CoreSize:
    call = next(call for call in one["calls"] if call["call"] == RELEASE)
    cost = None if call["cost"] is None else _real(call["cost"])
    counted = _real(call["instructions"]), cost, brief(call["unit"]), _whole(call["stack_bytes"])
    return CoreSize(brief(one["target"]), RELEASE, *counted, _whole(one["flash_bytes"]), _whole(one["ram_bytes"]))


def _whole(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 40:
        raise ValueError("a size")
    return value


def _real(value: Any) -> float:
    if type(value) not in (int, float) or not isfinite(value) or value < 0:
        raise ValueError("a cost")
    return float(value)
