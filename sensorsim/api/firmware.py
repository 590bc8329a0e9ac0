"""`export` and `verify`: a private sensor as a C package, and the proof of a package on real machine code."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError
from sensorsim._util.progress import step
from sensorsim._util.results import Result, bars
from sensorsim._util.terminal import counted
from sensorsim.calls import listed
from sensorsim.codegen.package_options import Options

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sensorsim.verification.binary import BinaryReport
    from sensorsim.verification.verification import Verification

Path_ = str | os.PathLike[str]
SCHEMA_VERSION = 1
ALL = "all"
QUICK = 1000  # random vectors up to which the work is not shared by processes
MOST_ON_HOST, MOST_ON_CORE = 10**9, 10**6  # random vectors; those of a core are all in memory


@dataclass(frozen=True, repr=False)
class Exported(Result):
    """A package as it was written."""

    folder: str
    texts: dict[str, str]  # by path
    statement: str  # what it releases, as the manifest was proved to say

    @property
    def unproved(self) -> list[str]:
        """What of the kernels' secrecy is not proved; a package is written all the same, and its header says so."""
        from sensorsim.language.secrecy import unproved

        return unproved(_manifest(self.texts)["proved"])

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
            "sources": f"{len(sources)} files, {sum(len(self.texts[path]) for path in sources):,} letters of C",
            "next": f"ss.verify({self.folder!r})",
        }

    def figure(self) -> "Figure":
        sizes: dict[str, float | None] = {row["file"]: row["bytes"] for row in self.rows()}
        return bars(self.title(), sizes, "bytes of the file")


def export(
    out: Path_,
    noise: Path_ | None = Options.noise,
    encoder: Path_ | None = Options.encoder,
    sketch: Path_ | None = Options.sketch,
    budget_epsilon: Decimal | float | str | None = Options.budget_epsilon,
    budget_days: int | None = Options.budget_days,
    reserve: int | None = Options.reserve,
    packet_numbers: str | Sequence[str] = "",
    kernels: str | Sequence[str] | None = None,
    variant: str = Options.variant,
    prefix: str = Options.prefix,
    spdx: str = Options.spdx,
    allow_uncertified: bool = Options.allow_uncertified,
) -> Exported:
    """Write a private sensor as a C package into the folder `out`, or single `kernels`; the table is proved first.

    `noise`, `encoder` and `sketch` are files; without a table the ready one at epsilon 1.6 is taken.

        >>> import sensorsim as ss
        >>> ss.export("firmware/privacy", budget_epsilon=16, budget_days=7)  # doctest: +SKIP
    """
    from sensorsim.codegen.kernels_package import make_package
    from sensorsim.codegen.write import check_folder, write_folder

    names = tuple(listed(kernels or ()))
    if kernels is not None and not names:
        raise InputError("no kernel is named; give some to --kernels, or leave it out for the sensor.")
    numbers = tuple(listed(packet_numbers))
    if packet_numbers and not numbers:
        raise InputError("--packet-numbers names nothing; give epoch, sequence or both, or leave it out.")
    options = Options(
        kernels=names,
        variant=variant,
        noise=_path(noise),
        encoder=_path(encoder),
        sketch=_path(sketch),
        budget_epsilon=None if budget_epsilon is None else str(budget_epsilon),
        budget_days=budget_days,
        reserve=reserve,
        packet_numbers=numbers,
        prefix=prefix,
        spdx=spdx,
        allow_uncertified=allow_uncertified,
    )
    check_folder(Path(out))
    with step("writing the package"):
        texts = make_package(options)
    write_folder(Path(out), texts)
    return Exported(str(out), texts, _statement(texts))


def _manifest(texts: dict[str, str]) -> Any:
    import json

    from sensorsim.codegen.write import MANIFEST

    return json.loads(texts[MANIFEST])


def _statement(texts: dict[str, str]) -> str:
    """What the manifest says of the sensor, whose table was proved when it was made."""
    sensor = _manifest(texts).get("sensor")
    if not sensor:
        return "single kernels"
    budget = f"{sensor['budget_epsilon']} in {counted(sensor['budget_days'], 'day')}"
    return f"a sensor: epsilon {sensor['epsilon_of_a_release']} a release, proved; budget {budget}"


def verify(
    folder: Path_ | None = None,
    target: str | Sequence[str] = ALL,
    random_host: int = 1_000_000,
    random_core: int = 10_000,
    seed: int = 0,
    trust: bool = False,
    jobs: int | None = None,
    cc: str | None = None,
    elf: Path_ | None = None,
    manifest: Path_ | None = None,
    symbol: Sequence[str] = (),
    progress: Callable[[str, int, int], None] | None = None,
) -> "Verification | BinaryReport":
    """Prove a C package on real machine code, bit for bit, and count what it executes; `passed` says if all holds.

    `target` are the places to run it; all: host and every core but avr. With `cc` a compiler of yours builds it,
    with `elf` and `manifest` an image of yours is proved as it stands.

        >>> import sensorsim as ss
        >>> ss.verify("firmware/privacy", target="host,cortex-m0plus").passed  # doctest: +SKIP
        True
    """
    from sensorsim.verification.bits import Effort

    for name, given, most in (("host", random_host, MOST_ON_HOST), ("core", random_core, MOST_ON_CORE)):
        if not 1 <= given <= most:
            raise InputError(f"the number of random vectors is outside 1 … {most}; give --random-{name} within it.")
    effort = Effort(max(random_host, random_core), random_core)
    names, place = listed(target), _path(folder)
    own = _binary(place, cc, _path(elf), _path(manifest), symbol, names, effort, seed, progress, trust)
    if own is not None:
        return own
    if place is None:
        raise InputError("no package is named; give its folder, or --elf with --manifest.")
    from sensorsim.machine.targets import HOST, TARGETS
    from sensorsim.verification.verification import verify as verified

    names = [HOST, *TARGETS] if names == [ALL] else names
    if jobs is None:
        jobs = 2 if max(effort.host, effort.core) > QUICK else 0
    return verified(place, names, effort, seed, progress, trust, jobs)


def _binary(
    folder: Path | None,
    cc: str | None,
    elf: Path | None,
    manifest: Path | None,
    symbol: Sequence[str],
    targets: list[str],
    effort: Any,
    seed: int,
    progress: Callable[[str, int, int], None] | None,
    trust: bool,
) -> "BinaryReport | None":
    """The report on a build of one's own; None where none is asked for."""
    if cc is not None and elf is not None:
        raise InputError("--cc builds a package and --elf takes what is built; give one of the two.")
    if elf is None and (manifest is not None or symbol):
        raise InputError("--manifest and --symbol go with --elf; add the image, or leave them out.")
    if cc is None and elf is None:
        return None
    if len(targets) > 1:
        raise InputError(f"a build of yours is for one core, not for {','.join(targets)}; give one --target, or none.")
    target = None if targets in ([], [ALL]) else targets[0]
    from sensorsim.verification.binary import verify_elf, verify_with

    if elf is not None:
        source = manifest or folder
        if source is None or (manifest is not None and folder is not None):
            raise InputError("--elf needs its package; give --manifest DIR/MANIFEST.json and no folder beside it.")
        return verify_elf(elf, source, symbols_of(symbol), target, progress, effort, seed, trust)
    if folder is None:
        raise InputError("--cc needs the folder of a package; give it before the options.")
    assert cc is not None
    return verify_with(folder, cc, target, progress, effort, seed, trust)


def symbols_of(given: Sequence[str]) -> dict[str, int]:
    """`ss_sensor_release=0x8000124` as a name and an address."""
    found = {}
    for text in given:
        name, _, value = text.partition("=")
        try:
            address = int(value, 0)
        except ValueError:
            address = -1
        if not name or not 0 <= address < 1 << 32:
            raise InputError(f"--symbol {text} is no name and address; write it as ss_sensor_release=0x8000124.")
        found[name] = address
    return found


def _path(given: Path_ | None) -> Path | None:
    return None if given is None else Path(given)
