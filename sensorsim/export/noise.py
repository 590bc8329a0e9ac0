"""The noise table of a package: read, certified anew, turned into a constant array."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sensorsim.errors import InputError
from sensorsim.kernels.formats import FRAC
from sensorsim.language.c.files import Table
from sensorsim.language.c.text import C_TYPES, wrap
from sensorsim.language.kernel import Kernel
from sensorsim.language.types import STORAGE
from sensorsim.privacy.releases import table_arguments

UNCERTIFIED = "WARNING: the noise table of this package is NOT certified. Records made with it are not proved private."


@dataclass(frozen=True)
class Noise:
    """A table for the package: the array, what the manifest says of it, and whether its epsilon is proved."""

    table: Table
    record: dict[str, Any]
    certified: bool
    lengths: dict[str, int]  # the n and k that the certificate speaks of

    def arguments(self, kernel: Kernel, prefix: str) -> dict[str, str]:
        """The arguments of the kernel that the table fixes, as C expressions."""
        macro = f"{prefix}NOISE_".upper()
        fixed = {name.removeprefix(macro).lower(): name for name, _ in self.table.constants}
        array = "table" if "stair_bits" in fixed else "noise"
        if array not in kernel.parameters:
            return {}
        return {array: self.table.name, **{name: text for name, text in fixed.items() if name in kernel.parameters}}


def load_noise(path: Path, kernels: list[Kernel], prefix: str, allow_uncertified: bool) -> Noise:
    """Read the table; refuse one whose certificate does not hold, unless told otherwise."""
    from sensorsim.privacy.certificate import certify
    from sensorsim.privacy.tablefile import read_table

    source = read_table(path)
    certificate = certify(source)  # proved here, whatever the file says
    certified = certificate.holds(source.epsilon)
    if not certified and not allow_uncertified:
        raise InputError(
            f"{path.name} does not protect a record at its epsilon {source.epsilon} (its certificate: delta "
            f"{certificate.delta_record}); use a stairs table, or --allow-uncertified, which marks every file."
        )
    kind = _storage(kernels, source.stair_bits)
    if source.frac_bits != FRAC:
        raise InputError(
            f"{path.name} has {source.frac_bits} fraction bits and the kernels {FRAC}; make it with {FRAC}."
        )
    values = tuple(int(value) for value in source.values)
    least, most = STORAGE[kind]
    if not (least <= min(values) and max(values) <= most):
        largest = max(map(abs, values))
        raise InputError(
            f"{path.name} holds values up to {largest}, too large for {C_TYPES[kind]}; make a smaller one."
        )
    proved = (
        f"With {source.release} of its features released, once, a record is {certificate.epsilon_record}-private "
        "(pure, every pair of records)."
        if certified
        else UNCERTIFIED
    )
    shape = f"kind {source.kind}, epsilon {source.epsilon} for {source.release} of {source.features} features"
    about = wrap(f"Noise: {shape}, {len(values)} entries. {proved} The index must be secret and uniform.")
    macro = f"{prefix}NOISE_".upper()
    constants: tuple[tuple[str, int], ...] = ((f"{macro}MASK", len(values) - 1),)
    lengths: dict[str, int] = {}
    if source.stair_bits:
        table_arguments(source)  # refuses what the kernels cannot draw from
        _refuse_more_than_certified(path.name, kernels, source.release, source.features)
        about += wrap("The constants are the arguments n, k, drop, stair_bits and limit that go with it; k is how many")
        about += wrap("features of a record the certificate allows to be released.")
        lengths = {"n": source.features, "k": source.release}
        known = {"N": source.features, "K": source.release, "DROP": 32 - source.index_bits}
        known |= {"STAIR_BITS": source.stair_bits, "LIMIT": source.limit or 0}
        constants = tuple((macro + name, value) for name, value in known.items())
    record = {
        "file": path.name,
        "kind": source.kind,
        "epsilon": str(source.epsilon),
        "features": source.features,
        "release": source.release,
        "coefficients": source.coefficients,
        "frac_bits": source.frac_bits,
        "stair_bits": source.stair_bits,
        "limit": source.limit,
        "entries": len(values),
        "certified": certified,
        "certificate": {name: str(getattr(certificate, name)) for name in certificate.__dataclass_fields__},
    }
    return Noise(Table(f"{prefix}noise_table", kind, values, tuple(about), constants), record, certified, lengths)


def _refuse_more_than_certified(name: str, kernels: list[Kernel], release: int, features: int) -> None:
    """`release` puts out every feature; a table made for fewer of them would spend its epsilon many times over."""
    if release < features and any(kernel.name == "release" for kernel in kernels):
        raise InputError(
            f"{name} is certified for {release} of {features} features and `release` puts out all of them; export "
            "`sampled` with it, or give a table made with --release all."
        )


def _storage(kernels: list[Kernel], stair_bits: int) -> str:
    """The element type of the array that such a table goes into: `table` where noise is in stairs, else `noise`."""
    name, wanted = ("table", "release or sampled") if stair_bits else ("noise", "spof or dpsgd")
    arrays = [kernel.arrays[name] for kernel in kernels if name in kernel.arrays]
    if not arrays:
        raise InputError(f"no exported kernel can use this noise table; add {wanted} to --kernels.")
    return arrays[0].storage
