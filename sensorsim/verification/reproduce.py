"""The package written anew from its manifest: export is deterministic, so every byte of it must come out again.

What the manifest says was given to export is given again: the options from the manifest, the table, the encoder,
the sketch and kernels of others from the copies that the package holds. A change of any of them makes other files than
those that are there; a change of any other file is seen directly. Names and contents of files are compared; file modes
and empty folders are not.
"""

import json
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from sensorsim._util.errors import FailedProofError, InputError, UnableError
from sensorsim._util.files import temporary_folder
from sensorsim.codegen.kernel_sources import DATA
from sensorsim.codegen.kernels_package import make_package
from sensorsim.codegen.manifest import AGAIN, NUMBER, Package, files_in, read_regular
from sensorsim.codegen.misra import tool_version
from sensorsim.codegen.package_options import Load, Options, wrong_parameter
from sensorsim.codegen.write import MANIFEST, signed_manifest
from sensorsim.language.load import FILE
from sensorsim.machine.targets import compiler_version

Make = Callable[[Options, Load, bool], Mapping[str, str]]
INSTALL = {"compiler": "ziglang", "cppcheck": "cppcheck"}


def differences(package: Package, make: Make = make_package, build: Path | None = None) -> list[str]:
    """Write the package again; return a sentence for each file that differs, none where the package is whole.

    What export is given again is kept below `build`, so that whoever clears that clears it too; else among the system's
    temporary files.
    """
    check_tools(package)
    with temporary_folder(build) as name:
        options = options_of(package, Path(name))
        try:
            made = make(options, package.carried.__getitem__, DATA in package.manifest["files"])
        except UnableError:  # which says nothing of the package
            raise
        except InputError as error:
            return [f"{MANIFEST}: export refuses what it says was exported ({str(error).rstrip('.')})"]
    return compare_files(package.folder, made)


def compare_files(folder: Path, made: Mapping[str, str]) -> list[str]:
    """Compare the files of the folder with those that export makes; return a sentence for each that differs."""
    present = set(files_in(folder))
    made = {**made, MANIFEST: _with_notes(made[MANIFEST], folder)} if MANIFEST in made else made
    found = [f"{path} is missing" for path in sorted(made.keys() - present)]
    found += [f"{path} was added" for path in sorted(present - made.keys())]
    for path in sorted(present & made.keys()):
        try:
            content = read_regular(folder / path)
        except FailedProofError as error:
            found.append(str(error).removesuffix(AGAIN))
            continue
        if content != made[path].encode("utf-8"):
            found.append(f"{path} differs{_where(content, made[path].encode('utf-8'))}")
    return found


def _with_notes(made: str, folder: Path) -> str:
    """Return a manifest with the package's hashes of the language's sources.

    They say by which state of sensorsim a package was made. Another state that writes the same files proves as much.
    """
    data = json.loads(made)
    try:
        found = {one["module"]: one["sha256"] for one in json.loads(read_regular(folder / MANIFEST))["kernel_sources"]}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return made
    for record in data["kernel_sources"]:
        note = found.get(record["module"])
        if record["module"].startswith("sensorsim.language.") and re.fullmatch("[0-9a-f]{64}", str(note)):
            record["sha256"] = note
    return signed_manifest(data)


def options_of(package: Package, copies: Path) -> Options:
    """Return the options of the export, with copies of its files under their names in `copies`."""
    given = package.manifest["parameters"]
    if name := wrong_parameter(given):
        raise FailedProofError(f"{MANIFEST} was altered: its parameter `{name}` is none; export the package again.")
    files = {"noise": package.table_file, "encoder": package.encoder_file, "sketch": package.sketch_file}
    values = {field.name: given[field.name] for field in fields(Options)[1:]}
    values |= {name: _copy(file, given[name], copies / name) for name, file in files.items()}
    values |= {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    return Options(tuple(_kernel(name, package) for name in given["asked"]), **values)


def check_tools(package: Package) -> None:
    """Raise InputError where another compiler or cppcheck made the package: their output is in it."""
    here = {"compiler": compiler_version(), "cppcheck": tool_version()}
    tools = package.manifest.get("tools")
    beside = {"compiler": _sizes(package.manifest).get("compiler"), "cppcheck": _misra(package)}
    if not isinstance(tools, dict) or tools.keys() != here.keys():
        raise FailedProofError(f"{MANIFEST} was altered: its `tools` are no list of tools; export the package again.")
    for name, now in here.items():
        if tools[name] == now:
            continue
        if tools[name] != beside[name]:
            raise FailedProofError(
                f"{MANIFEST} was altered: its {name} is {tools[name]}, and that of the package's figures "
                f"{beside[name]}; export the package again."
            )
        number = str(tools[name]).rpartition(" ")[2]
        install = f"run `pip install {INSTALL[name]}=={number}`, or " if NUMBER.fullmatch(number) else ""
        raise InputError(
            f"{package.folder} was made with {tools[name] or 'nothing'} and here is {now}; {install}export the package "
            "again."
        )


def _sizes(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    sizes = manifest.get("sizes")
    return sizes if isinstance(sizes, dict) else {}


def _misra(package: Package) -> str | None:
    """Return the checker that the MISRA report names."""
    try:
        found = re.search(r"^Checked with ([^,]+),", (package.folder / "MISRA.md").read_text("utf-8"), re.M)
    except (OSError, ValueError):
        return None
    return found[1] if found else None


def _copy(file: Path | None, name: str | None, folder: Path) -> Path | None:
    if name is None:
        return None
    if file is None or not file.is_file() or Path(name).name != name or name in ("", ".", ".."):
        raise FailedProofError(f"{MANIFEST} was altered: it names {name!r}, of which it has no copy; export again.")
    folder.mkdir()
    try:
        return Path(shutil.copy(file, folder / name))
    except (OSError, ValueError):
        raise FailedProofError(f"{MANIFEST} was altered: {name!r} is no name of a file; export again.") from None


def _kernel(name: str, package: Package) -> str:
    """Return a kernel of a file by the file in the package; no other file may be named."""
    match = FILE.fullmatch(name)
    if "," in name or name != name.strip() or (match and package.folder / match["path"] not in package.carried):
        raise FailedProofError(f"{MANIFEST} was altered: {name!r} is no kernel of the package; export it again.")
    return str(package.folder / name) if match else name


def _where(found: bytes, made: bytes) -> str:
    """Name the first line that differs."""
    pairs = zip(found.split(b"\n"), made.split(b"\n"), strict=False)
    line = next((number for number, (a, b) in enumerate(pairs, 1) if a != b), None)
    return f" at line {line}" if line else " in its length"
