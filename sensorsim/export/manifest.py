"""Opening a package: is it one, is it unaltered, and which kernels is it made of."""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from sensorsim.errors import InputError
from sensorsim.export.origins import kernels_behind, sha256
from sensorsim.export.package import MANIFEST, SCHEMA
from sensorsim.language.c.names import Names
from sensorsim.language.c.private import entries_source
from sensorsim.language.kernel import Kernel


@dataclass(frozen=True)
class Package:
    """An unaltered package on disk."""

    folder: Path
    manifest: dict[str, Any]
    kernels: tuple[Kernel, ...]

    @property
    def prefix(self) -> str:
        return str(self.manifest["parameters"]["prefix"])

    @property
    def private(self) -> bool:
        """Whether its kernels are private functions of a sensor, not called by anyone else."""
        return bool(self.manifest.get("private", False))

    @property
    def sources(self) -> list[Path]:
        return sorted((self.folder / "src").glob("*.c"))

    @property
    def selftest(self) -> list[Path]:
        """The files of the self-test, to be linked with the sources."""
        return sorted((self.folder / "test").glob(f"{self.prefix}selftest*.c"))

    @property
    def include(self) -> list[Path]:
        return [self.folder / "include", self.folder / "src", self.folder / "test"]

    @cached_property
    def names(self) -> Names:
        return Names(self.kernels, self.prefix, private=self.private)

    @property
    def kernel_header(self) -> str:
        """C that declares every kernel; in a private package it defines them as well."""
        return entries_source(self.names) if self.private else f'#include "{self.prefix}kernels.h"\n'

    def kernel_sources(self, build: Path) -> list[Path]:
        """The files to link for a call of a kernel by itself; one is written to `build` where they are private."""
        if not self.private:
            return self.sources
        entries = build / "entries.c"
        if not entries.exists():
            entries.write_text(self.kernel_header, "utf-8")
        return [entries, *(path for path in self.sources if path.name == f"{self.prefix}tables.c")]

    @cached_property
    def _vectors(self) -> list[dict[str, Any]]:
        vectors: list[dict[str, Any]] = json.loads((self.folder / "test" / "golden.json").read_text("utf-8"))["vectors"]
        return vectors

    def golden(self, kernel: Kernel) -> list[dict[str, Any]]:
        """The golden vectors of one kernel."""
        return [vector for vector in self._vectors if vector["function"] == self.names.functions[kernel]]


def open_package(folder: Path, trust: bool = False) -> Package:
    """Read the manifest and check every hash; InputError names the file that differs."""
    try:
        text = (folder / MANIFEST).read_bytes().decode("utf-8")
        manifest = json.loads(text)
        listed = dict(manifest["files"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{folder} is no package of sensorsim export (no readable {MANIFEST}); export one.") from None
    if manifest.get("schema_version") != SCHEMA:
        raise InputError(
            f"{folder} has a manifest of version {manifest.get('schema_version')}, not {SCHEMA}; export again."
        )
    _check_manifest(folder, text, manifest)
    for path, digest in listed.items():
        try:
            content = (folder / path).read_bytes()
        except OSError:
            raise InputError(f"{folder / path} is missing; export the package again.") from None
        if sha256(content) != digest:
            raise InputError(f"{folder / path} was altered: its hash is not the manifest's; export the package again.")
    for path in sorted((folder / "src").iterdir()):
        if path.relative_to(folder).as_posix() not in listed:
            raise InputError(f"{path} does not belong to the package; remove it.")
    return Package(folder, manifest, tuple(kernels_behind(folder, manifest, trust)))


def _check_manifest(folder: Path, text: str, manifest: dict[str, Any]) -> None:
    lines = [line for line in text.split("\n") if "sha256_of_this_file_without_this_line" not in line]
    rest = {key: value for key, value in manifest.items() if key != "sha256_of_this_file_without_this_line"}
    whole = json.dumps(rest, indent=1, ensure_ascii=True) + "\n"
    if sha256(whole) != manifest.get("sha256_of_this_file_without_this_line") or len(lines) != len(whole.split("\n")):
        raise InputError(f"{folder / MANIFEST} was altered: its own hash does not match; export the package again.")
