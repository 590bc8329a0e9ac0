"""Open a package: check that it is one, that nothing in it was altered, and load the kernels that it is made of.

Opening a package runs none of its Python files, unless a kernel uses a primitive that is declared in one and the user
trusts the package. A package of sensorsim 0.2.0 carries its own kernels as Python only; these files are then read as
far as they can be without being run.
"""

import json
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Any

from sensorsim._util.errors import FailedProofError, InputError
from sensorsim._util.files import brief_path, read_bounded
from sensorsim.codegen.compliance import MANIFEST
from sensorsim.codegen.package_tables import ENCODER, NOISE, SENSOR_NOISE, SKETCH
from sensorsim.codegen.rendering import sha256
from sensorsim.codegen.write import DATA, FOLDER, MOST_BYTES, SCHEMA, files_in, signed_manifest
from sensorsim.language.c.identifiers import Names
from sensorsim.language.c.translation_units import entries_source
from sensorsim.language.ir_reader import MOST_BYTES as MOST_IR_BYTES
from sensorsim.language.ir_reader import read_kernels
from sensorsim.language.kernel import Kernel
from sensorsim.language.load import kernels_of, load_file, shipped
from sensorsim.language.primitive import Primitive
from sensorsim.language.static_reader import declared_kernels

GOLDEN = "test/golden.json"
SHOWN = 5  # files that one message names
AGAIN = "; export the package again."
BUILT = "build/"  # where the package's Makefile puts what it builds
BUILT_TOO = "holds what `make` built, which is no part of the package; `make clean` in the package removes it"
NUMBER = re.compile(r"[0-9.]+")  # of a version: nothing else of an untrusted file goes into a command we recommend
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)  # raised by data of a wrong shape


class NeedsTrustError(InputError):
    """To read the package, Python of it would have to be run."""


@dataclass(frozen=True)
class Package:
    """An unaltered package on disk."""

    folder: Path
    manifest: dict[str, Any]
    kernels: tuple[Kernel, ...]
    carried: dict[Path, dict[str, Kernel]] = field(default_factory=dict)  # its own kernels, by file and name

    @property
    def prefix(self) -> str:
        return str(self.manifest["parameters"]["prefix"])

    @property
    def private(self) -> bool:
        """Return whether its kernels are private functions of a sensor, which nobody else calls."""
        return bool(self.manifest.get("private", False))

    @property
    def sources(self) -> list[Path]:
        return sorted((self.folder / "src").glob("*.c"))

    @property
    def selftest(self) -> list[Path]:
        """Return the files of the self-test, to be linked with the sources."""
        return sorted((self.folder / "test").glob(f"{self.prefix}selftest*.c"))

    @property
    def include(self) -> list[Path]:
        return [self.folder / "include", self.folder / "src", self.folder / "test"]

    @property
    def table_file(self) -> Path | None:
        """Return the noise table that it was made with."""
        path = self.folder / (SENSOR_NOISE if self.private else NOISE)
        return path if self.manifest.get("noise_table") else None

    @property
    def encoder_file(self) -> Path | None:
        return self.folder / ENCODER if self.manifest.get("encoder") else None

    @property
    def sketch_file(self) -> Path | None:
        return self.folder / SKETCH if self.manifest.get("sketch") else None

    @cached_property
    def names(self) -> Names:
        return Names(self.kernels, self.prefix, private=self.private)

    @property
    def kernel_header(self) -> str:
        """Return C that declares every kernel; in a private package it defines them as well."""
        return entries_source(self.names) if self.private else f'#include "{self.prefix}kernels.h"\n'

    def kernel_sources(self, build: Path) -> list[Path]:
        """Return the files to link for a call of a kernel alone; private ones are written to `build` as one file."""
        if not self.private:
            return self.sources
        entries = build / "entries.c"
        if not entries.exists():
            entries.write_text(self.kernel_header, "utf-8")
        return [entries, *(path for path in self.sources if path.name == f"{self.prefix}tables.c")]

    @cached_property
    def _vectors(self) -> list[dict[str, Any]]:
        try:
            vectors: list[dict[str, Any]] = json.loads(read_regular(self.folder / GOLDEN))["vectors"]
        except (OSError, *UNREADABLE):
            raise FailedProofError(f"{self.folder / GOLDEN} holds no vectors; export the package again.") from None
        return vectors

    def golden(self, kernel: Kernel) -> list[dict[str, Any]]:
        """Return the golden vectors of one kernel."""
        return [vector for vector in self._vectors if vector["function"] == self.names.functions[kernel]]


def open_package(folder: Path, trust: bool = False) -> Package:
    """Read the manifest and check every hash.

    InputError where the folder is no package of this sensorsim; FailedProofError, which names the files, where it is
    one and something in it was altered, added or taken away.
    """
    manifest = _read_manifest(folder)
    altered = list(_altered(folder, manifest["files"]))
    if altered:
        more = f" (and {len(altered) - SHOWN} more)" if len(altered) > SHOWN else ""
        built_only = len(altered) == 1 and BUILT_TOO in altered[0]
        raise FailedProofError(f"{'; '.join(altered[:SHOWN])}{more}{'.' if built_only else AGAIN}")
    made_by, here = manifest.get("sensorsim"), version("sensorsim")
    if made_by != here:
        if f"(sensorsim {made_by})" not in str(manifest.get("command")):
            raise _broken(folder, f"it names sensorsim {made_by}, and its command another")
        install = f"run `pip install sensorsim=={made_by}`, or " if NUMBER.fullmatch(str(made_by)) else ""
        raise InputError(
            f"{folder} was made by sensorsim {made_by} and this is {here}; {install}export the package again."
        )
    try:
        kernels, carried = package_kernels(folder, manifest, trust)
        return Package(folder, manifest, tuple(kernels), carried)
    except InputError:
        raise
    except UNREADABLE as error:
        raise _broken(folder, f"its kernels cannot be read, {type(error).__name__}") from None


def read_regular(path: Path) -> bytes:
    """Read an ordinary file; FailedProofError for a link, a pipe, a device and what is far too large."""
    mode = os.lstat(path).st_mode
    if not stat.S_ISREG(mode):
        raise FailedProofError(f"{path} is {'a link' if stat.S_ISLNK(mode) else 'no ordinary file'}{AGAIN}")
    try:
        return read_bounded(path, MOST_BYTES)
    except InputError:
        raise FailedProofError(f"{path} is larger than any file of a package{AGAIN}") from None


def _read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest, and refuse one of another version, of a wrong shape, or whose own hash does not hold."""
    none = InputError(
        f"{brief_path(folder)} is no package of sensorsim export (no {MANIFEST} of one in it); export one."
    )
    try:
        data = read_regular(folder / MANIFEST)
    except OSError:
        raise none from None
    try:
        manifest = json.loads(data)
        json.dumps(manifest, ensure_ascii=False).encode()  # half a character could not even be shown
    except (ValueError, RecursionError):
        raise _broken(folder, "it is no JSON") from None
    if not isinstance(manifest, dict) or not manifest.keys() & {"files", "sensorsim", "kernel_sources"}:
        raise none
    schema, files, parameters = (manifest.get(name) for name in ("schema_version", "files", "parameters"))
    if schema != SCHEMA or type(schema) is not int:  # another version where all files say so, else altered
        try:
            beside = json.loads(read_regular(folder / GOLDEN))["schema_version"]
        except (OSError, *UNREADABLE):
            beside = None
        if type(schema) is not int or beside != schema:
            raise _broken(folder, f"it is of version {schema}, and {GOLDEN} of {beside}")
        raise InputError(f"{brief_path(folder)} has a manifest of version {schema}, not {SCHEMA}; export again.")
    if not isinstance(files, dict) or not isinstance(parameters, dict):
        raise _broken(folder, "its `files` or `parameters` are missing")
    if not isinstance(parameters.get("prefix"), str) or not parameters["prefix"].isidentifier():
        raise _broken(folder, "its `prefix` is no beginning of a C name")
    for path in files:
        parts = PurePosixPath(path)
        if parts.is_absolute() or ".." in parts.parts or "__pycache__" in parts.parts or not path.isprintable():
            raise _broken(folder, f"it lists {path!r}, which no export writes")
    try:
        signed = signed_manifest(manifest).encode() == data
    except RecursionError:
        signed = False
    if not signed:
        raise _broken(folder, "its bytes are not those that export writes, or not those of its own hash")
    return manifest


def _altered(folder: Path, listed: dict[str, Any]) -> Iterator[str]:
    """Yield what differs from the manifest's list of files, a sentence each."""
    for path, digest in listed.items():
        file = folder / path
        try:
            if sha256(read_regular(file)) != digest:
                yield f"{file} was altered: its hash is not the manifest's"
        except FailedProofError as error:
            yield str(error).removesuffix(AGAIN)
        except (OSError, ValueError):
            yield f"{file} is missing"
    foreign = sorted(set(files_in(folder)) - listed.keys() - {MANIFEST})
    if any(path.startswith(BUILT) for path in foreign):
        yield f"{folder / BUILT} {BUILT_TOO}"
    yield from (f"{folder / path} does not belong to the package" for path in foreign if not path.startswith(BUILT))


def _broken(folder: Path, why: str) -> FailedProofError:
    return FailedProofError(f"{folder / MANIFEST} was altered: {why}; export the package again.")


def package_kernels(
    folder: Path, manifest: dict[str, Any], trust: bool
) -> tuple[list[Kernel], dict[Path, dict[str, Kernel]]]:
    """Return the kernels of a package, and those that it carries by the path of their file and their name."""
    import sensorsim.kernels as ours

    for record in manifest["kernel_sources"]:  # the shipped kernels must be the same here; none is imported for it
        if record["module"].startswith("sensorsim.kernels."):
            path = Path(ours.__path__[0], f"{record['module'].rpartition('.')[2]}.py")
            if not path.is_file() or sha256(path.read_text("utf-8")) != record["sha256"]:
                raise FailedProofError(
                    f"{record['file']} is not what {folder} was made from: its hash is not the manifest's; export the "
                    "package again."
                )
    as_data = DATA in manifest["files"]
    carried = _from_data(folder, trust) if as_data else {}
    found = []
    for origin in manifest["functions"].values():
        name, file = origin["kernel"], origin.get("file")
        if file and (file not in manifest["files"] or not file.startswith(f"{FOLDER}/")):
            raise FailedProofError(f"the manifest names no file {file!r}, where {name} is to be; export again.")
        if file and not as_data and folder / file not in carried:
            path = folder / file
            carried[path] = kernels_of(load_file(path)) if trust else declared_kernels(path)
        known = carried.get(folder / file, {}) if file else shipped()
        if name not in known:
            raise FailedProofError(f"{folder} has the kernel {name}, which is not there; export the package again.")
        found.append(known[name])
    return found, carried


def _from_data(folder: Path, trust: bool) -> dict[Path, dict[str, Kernel]]:
    """Read the kernels that a package carries as data."""

    def place(file: str) -> Path:
        if not file.startswith(f"{FOLDER}/") or ".." in Path(file).parts or not (folder / file).is_file():
            raise InputError(f"the kernels' data name {file!r}, which is no source in the package; export it again.")
        return folder / file

    def primitive(file: str, name: str) -> Primitive:
        if not trust:
            raise NeedsTrustError(
                f"{Path(file).name} brings the primitive {name} with Python and C of its own, and to load it is to run "
                "it; give --trust if you know where it is from."
            )
        own = [one for one in vars(load_file(place(file))).values() if isinstance(one, Primitive) and one.name == name]
        if not own:
            raise InputError(f"{file} declares no primitive {name}; export the package again.")
        return own[0]

    try:
        kernels = read_kernels(read_bounded(folder / DATA, MOST_IR_BYTES), place, shipped(), primitive)
    except NeedsTrustError:
        raise
    except InputError as error:
        raise FailedProofError(f"{folder / DATA} was altered: {error}") from None
    found: dict[Path, dict[str, Kernel]] = {}
    for key, kernel in kernels.items():
        if "#" not in key:
            found.setdefault(kernel.path, {})[kernel.name] = kernel
    return found
