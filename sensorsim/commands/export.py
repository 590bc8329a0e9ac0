"""`sensorsim export`: a private sensor as a C package, or single kernels."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError
from sensorsim._util.option_kinds import (
    FILE,
    KERNEL,
    MECHANISM,
    NEW_FOLDER,
    PACKET_NUMBERS,
    Budget,
    Choice,
    Flag,
    Kind,
    Known,
    Whole,
    split_names,
)
from sensorsim._util.progress import step
from sensorsim._util.results import Result, bars
from sensorsim._util.terminal import columns, counted, fold
from sensorsim.codegen.package_options import Options
from sensorsim.commands.declare import REQUIRED, Command, option, values_of
from sensorsim.commands.training_options import known_mechanism

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Path_ = str | os.PathLike[str]
SCHEMA_VERSION = 1


@dataclass(frozen=True, repr=False)
class Exported(Result):
    """A package as it was written."""

    folder: str
    texts: dict[str, str]  # by path

    @cached_property
    def manifest(self) -> Any:
        from sensorsim.codegen.compliance import MANIFEST

        return json.loads(self.texts[MANIFEST])

    @property
    def unproved(self) -> list[str]:
        """Return what of the kernels' secrecy is not proved; the package is written, and its header says so."""
        from sensorsim.language.secrecy import unproved

        return unproved(self.manifest["proved"])

    @property
    def statement(self) -> str:
        """Return what the package releases, as its manifest was proved to say."""
        sensor = self.manifest.get("sensor")
        if not sensor:
            return "single kernels"
        budget = f"{sensor['budget_epsilon']} in {counted(sensor['budget_days'], 'day')}"
        return f"a sensor: epsilon {sensor['epsilon_of_a_release']} a release, proved; budget {budget}"

    def rows(self) -> list[dict[str, Any]]:
        return [{"file": path, "bytes": len(text.encode())} for path, text in self.texts.items()]

    def to_dict(self) -> dict[str, Any]:
        return {"schema_version": SCHEMA_VERSION, "folder": self.folder, "files": self.rows()}

    def title(self) -> str:
        return f"{self.folder}: {len(self.texts)} files"

    def facts(self) -> dict[str, str]:
        sources = [path for path in self.texts if path.startswith(("src/", "include/"))]
        return {
            "holds": self.statement,
            **{f"not proved {number}": text for number, text in enumerate(self.unproved, 1)},
            "sources": f"{len(sources)} files, {sum(len(self.texts[path]) for path in sources):,} characters of C",
            "next": f"ss.verify({self.folder!r})",
        }

    def figure(self) -> "Figure":
        return bars(self.title(), {row["file"]: row["bytes"] for row in self.rows()}, "bytes of the file")

    def text(self) -> str:
        width = max(map(len, self.texts))
        lines = [f"  {row['file']:<{width}}  {row['bytes']:>7} bytes" for row in self.rows()]
        lines += [line for text in self.unproved for line in fold(f"Not proved: {text}", columns())]
        return "\n".join([self.title(), *lines, f"Next: sensorsim verify {self.folder}"])


def _exported() -> list[str]:
    """List the kernels, and the mechanisms that have one."""
    return list(dict.fromkeys([*MECHANISM.names(), *KERNEL.names()]))


@dataclass(frozen=True)
class Export(Command[Exported]):
    """The sensor: three functions over four of the board's, with its table, generator, journal and packets, every
    constant bound; a host example, ports, a self-test, build files, a MISRA report, a bill of materials and a
    manifest. Freestanding C99 in integers only. The same input gives the same bytes.
    """

    example = "sensorsim export --out firmware/privacy --noise table.txt --budget-epsilon 16 --budget-days 7"

    out: Path_ = option(REQUIRED, NEW_FOLDER, "Folder to write; new, empty, or an earlier package.")
    noise: Path_ | None = option(
        None,
        FILE,
        "A noise table, as `sensorsim noise make` writes it. For the sensor: else the ready one at epsilon 1.6.",
    )
    encoder: Path_ | None = option(None, FILE, "A trained encoder: its hidden units are what is released.")
    sketch: Path_ | None = option(
        None,
        FILE,
        "A sketch, as `sensorsim receive --write-sketch` writes it: one number of the whole record is released.",
    )
    budget_epsilon: Decimal | float | str | None = option(
        None, Budget(), "Epsilon that a person may spend in a period; else that of one release."
    )
    budget_days: int | None = option(None, Whole(), "Days of a period; else 1.")
    reserve: int | None = option(None, Whole(), "Releases that one write of the journal counts ahead; else 1.")
    packet_numbers: str | Sequence[str] = option(
        "", PACKET_NUMBERS, "Numbers in a packet: epoch, sequence, or both, by commas."
    )
    kernels: str | Sequence[str] | None = option(
        None,
        Known(_exported, several=True, files=True, metavar="names"),
        "Single kernels instead of the sensor, by commas; FILE.py:name for your own.",
    )
    variant: str = option(
        Options.variant, Choice("paper", "lean"), "Of single kernels: as printed, or as an engineer would ship."
    )
    prefix: str = option(Options.prefix, Kind(), "What every C name begins with.")
    spdx: str = option(Options.spdx, Kind(), "Licence identifier for the head of every file.")
    allow_uncertified: bool = option(False, Flag(), "Single kernels with a table that protects nothing.")

    def run(self) -> Exported:
        from sensorsim.codegen.kernels_package import make_package
        from sensorsim.codegen.write import check_folder, write_folder
        from sensorsim.mechanisms import known

        names = split_names(self.kernels or ())
        if self.kernels is not None and not names:
            raise InputError("no kernel is named; give some to --kernels, or leave it out for the sensor.")
        names = [known_mechanism(name) if known(name) else name for name in names]
        numbers = split_names(self.packet_numbers)
        if self.packet_numbers and not numbers:
            raise InputError("--packet-numbers names nothing; give epoch, sequence or both, or leave it out.")
        given = values_of(self, "out")
        given |= {name: given[name] and Path(given[name]) for name in ("noise", "encoder", "sketch")}
        budget = None if self.budget_epsilon is None else str(self.budget_epsilon)
        lists = {"kernels": tuple(names), "packet_numbers": tuple(numbers)}
        options = Options(**given | lists | {"budget_epsilon": budget})
        check_folder(Path(self.out))
        with step("writing the package"):
            texts = make_package(options)
        write_folder(Path(self.out), texts)
        return Exported(str(self.out), texts)
