"""The noise table of a package: read, certified anew, turned into a constant array."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sensorsim.errors import InputError
from sensorsim.export.ctext import C_TYPES, storage, wrap
from sensorsim.export.sources import Table
from sensorsim.kernels.formats import STORAGE, Array
from sensorsim.kernels.language import Kernel

UNCERTIFIED = "WARNING: the noise table of this package is NOT certified. Records made with it are not proved private."


@dataclass(frozen=True)
class Noise:
    """A table for the package: the array, what the manifest says of it, and whether its epsilon is proved."""

    table: Table
    record: dict[str, Any]
    certified: bool


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
    values = tuple(int(value) for value in source.values)
    least, most = STORAGE[kind]
    if not (least <= min(values) and max(values) <= most):
        raise InputError(f"{path.name} holds values up to {max(map(abs, values))}, which {C_TYPES[kind]} does not; make a smaller one.")
    proved = (
        f"A record is {certificate.epsilon_record}-private (pure, every pair of records)."
        if certified
        else UNCERTIFIED
    )
    shape = f"kind {source.kind}, epsilon {source.epsilon} for {source.release} of {source.features} features"
    use = f"Use it with stair_bits = {source.stair_bits}, frac_bits = {source.frac_bits}, limit = {source.limit}."
    about = tuple(wrap(f"Noise: {shape}, {len(values)} entries. {proved} {use} The index must be secret and uniform."))
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
    return Noise(Table(f"{prefix}noise_table", kind, values, about), record, certified)


def _storage(kernels: list[Kernel], stair_bits: int) -> str:
    """The element type of the parameter `noise` of the kernels that can use such a table."""
    kinds = {k.name: storage(k.parameters["noise"].element) for k in kernels if isinstance(k.parameters.get("noise"), Array)}
    able = {kind for name, kind in kinds.items() if stair_bits == 0 or name.startswith("release")}
    if not able:
        wanted = "release or sampled" if stair_bits else "a kernel that draws noise"
        raise InputError(f"no exported kernel can use this noise table; add {wanted} to --kernels.")
    if len(able) > 1:
        raise InputError("the exported kernels read noise of different types; export them into two packages.")
    return able.pop()
