"""Opening a package: is it one, is it unaltered, and which kernels is it made of."""

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
from sensorsim.codegen.encoder import ENCODER
from sensorsim.codegen.kernel_sources import package_kernels, sha256
from sensorsim.codegen.noise_constants import NOISE
from sensorsim.codegen.sketch import SKETCH
from sensorsim.codegen.write import MANIFEST, OWN_HASH, SCHEMA, json_text
from sensorsim.language.c.identifiers import Names
from sensorsim.language.c.translation_units import entries_source
from sensorsim.language.kernel import Kernel

GOLDEN = "test/golden.json"
HOSPITAL = "hospital/table.txt"
SHOWN = 5  # files that one message names
AGAIN = "; export the package again."
BUILT = "build/"  # where the package's Makefile puts what it builds
BUILT_TOO = "holds what `make` built, which is no part of the package; `make clean` in the package removes it"
MOST_BYTES = 1 << 26  # of any file of a package
NUMBER = re.compile(r"[0-9.]+")  # of a version: nothing else of a stranger's goes into a command that we recommend


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
        path = self.folder / (HOSPITAL if self.private else NOISE)
        return path if self.manifest.get("noise_table") else None

    @property
    def encoder_file(self) -> Path | None:
        """Return the encoder that it was made with."""
        return self.folder / ENCODER if self.manifest.get("encoder") else None

    @property
    def sketch_file(self) -> Path | None:
        """Return the sketch that it was made with."""
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
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
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
    text, manifest = _read(folder)
    _check_schema(folder, manifest)
    _check_shape(folder, manifest)
    _check_own_hash(folder, text, manifest)
    altered = list(_altered(folder, manifest["files"]))
    if altered:
        more = f" (and {len(altered) - SHOWN} more)" if len(altered) > SHOWN else ""
        built_only = len(altered) == 1 and BUILT_TOO in altered[0]
        raise FailedProofError(f"{'; '.join(altered[:SHOWN])}{more}{'.' if built_only else AGAIN}")
    _check_version(folder, manifest)
    try:
        kernels, carried = package_kernels(folder, manifest, trust)
        return Package(folder, manifest, tuple(kernels), carried)
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise _broken(folder, f"its kernels cannot be read, {type(error).__name__}") from None


def files_in(folder: Path) -> Iterator[str]:
    """Yield the path in the package of every file and link below the folder, hidden ones too."""
    for where, folders, names in os.walk(folder):
        links = [name for name in folders if (Path(where) / name).is_symlink()]
        for name in (*names, *links):
            yield (Path(where) / name).relative_to(folder).as_posix()


def read_regular(path: Path) -> bytes:
    """Read an ordinary file; FailedProofError for a link, a pipe, a device and what is far too large."""
    mode = os.lstat(path).st_mode
    if stat.S_ISLNK(mode):
        raise FailedProofError(f"{path} is a link{AGAIN}")
    if not stat.S_ISREG(mode):
        raise FailedProofError(f"{path} is no ordinary file{AGAIN}")
    try:
        return read_bounded(path, MOST_BYTES)
    except InputError:
        raise FailedProofError(f"{path} is larger than any file of a package{AGAIN}") from None


def _read(folder: Path) -> tuple[str, dict[str, Any]]:
    none = InputError(
        f"{brief_path(folder)} is no package of sensorsim export (no {MANIFEST} of one in it); export one."
    )
    try:
        data = read_regular(folder / MANIFEST)
    except OSError:
        raise none from None
    try:
        text = data.decode("utf-8")
        manifest = json.loads(text)
        json.dumps(manifest, ensure_ascii=False).encode("utf-8")  # half a character could not even be shown
    except (ValueError, RecursionError):
        raise _broken(folder, "it is no JSON") from None
    if not isinstance(manifest, dict) or not manifest.keys() & {"files", "sensorsim", "kernel_sources"}:
        raise none
    return text, manifest


def _check_schema(folder: Path, manifest: dict[str, Any]) -> None:
    """Refuse another version: an older or newer package if all of it says so, else an altered one."""
    found = manifest.get("schema_version")
    if found == SCHEMA and type(found) is int:
        return
    try:
        beside = json.loads(read_regular(folder / GOLDEN))["schema_version"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        beside = None
    if type(found) is not int or beside != found:
        raise _broken(folder, f"it is of version {found}, and {GOLDEN} of {beside}")
    raise InputError(f"{brief_path(folder)} has a manifest of version {found}, not {SCHEMA}; export again.")


def _check_shape(folder: Path, manifest: dict[str, Any]) -> None:
    files, parameters = manifest.get("files"), manifest.get("parameters")
    if not isinstance(files, dict) or not isinstance(parameters, dict):
        raise _broken(folder, "its `files` or `parameters` are missing")
    if not isinstance(parameters.get("prefix"), str) or not parameters["prefix"].isidentifier():
        raise _broken(folder, "its `prefix` is no beginning of a C name")
    for path in files:
        parts = PurePosixPath(path)
        if parts.is_absolute() or ".." in parts.parts or "__pycache__" in parts.parts or not path.isprintable():
            raise _broken(folder, f"it lists {path!r}, which no export writes")


def _check_own_hash(folder: Path, text: str, manifest: dict[str, Any]) -> None:
    """Compare the bytes with those that export writes for the same values, and the hash in them with theirs."""
    rest = {key: value for key, value in manifest.items() if key != OWN_HASH}
    try:
        same, own = text == json_text(manifest), sha256(json_text(rest))
    except RecursionError:
        raise _broken(folder, "it is nested too deeply") from None
    if own != manifest.get(OWN_HASH):
        raise _broken(folder, "its own hash does not match")
    if not same:
        raise _broken(folder, "its bytes are not those that export writes for its values")


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
    for path in foreign:
        if not path.startswith(BUILT):
            yield f"{folder / path} does not belong to the package"


def _check_version(folder: Path, manifest: dict[str, Any]) -> None:
    """Refuse a package of another sensorsim; one that names two of them was altered."""
    made_by, here = manifest.get("sensorsim"), version("sensorsim")
    if made_by == here:
        return
    if f"(sensorsim {made_by})" not in str(manifest.get("command")):
        raise _broken(folder, f"it names sensorsim {made_by}, and its command another")
    install = f"run `pip install sensorsim=={made_by}`, or " if NUMBER.fullmatch(str(made_by)) else ""
    raise InputError(f"{folder} was made by sensorsim {made_by} and this is {here}; {install}export the package again.")


def _broken(folder: Path, why: str) -> FailedProofError:
    return FailedProofError(f"{folder / MANIFEST} was altered: {why}; export the package again.")
