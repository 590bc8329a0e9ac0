"""The noise table of a package: read, certified again, and turned into constants of its C."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sensorsim._util.errors import InputError
from sensorsim.kernels.formats import FRAC
from sensorsim.language.c.comments import C_TYPES, wrap
from sensorsim.language.c.declarations import Table
from sensorsim.language.kernel import Kernel
from sensorsim.language.types import STORAGE
from sensorsim.noise.noise_table import NoiseTable

NOISE = "tables/noise.txt"  # in a package of single kernels
UNCERTIFIED = "WARNING: the noise table of this package is NOT certified. Records made with it are not proved private."


@dataclass(frozen=True)
class Noise:
    """A table for the package: its constants, what the manifest says of it, and whether its epsilon is proved."""

    table: Table
    users: tuple[Kernel, ...]  # the kernels that draw from it
    parameter: str  # their name for the array
    constants: dict[str, str]  # their names for the constants, and the C names
    record: dict[str, Any]
    certified: bool
    lengths: dict[str, int]  # the n and k that the certificate speaks of

    def arguments(self, kernel: Kernel, prefix: str) -> dict[str, str]:
        """Return the arguments of the kernel that the table fixes, as C expressions."""
        if kernel not in self.users:
            return {}
        known = self.constants | ({self.parameter: self.table.name} if self.table.values else {})
        return {name: text for name, text in known.items() if name in kernel.parameters}


def read_noise(path: Path, allow_uncertified: bool) -> NoiseTable:
    """Read a table and certify it from its counts; one that does not hold is refused unless allowed."""
    from sensorsim.noise.table_file import read_table

    source = read_table(path)
    proved = replace(source, certificate=source.certify())  # proved here, whatever the file says
    if not _holds(proved) and not allow_uncertified:
        assert proved.certificate is not None
        raise InputError(
            f"{path.name} does not protect a record at its epsilon {source.epsilon} (its certificate: delta "
            f"{proved.certificate.delta_record}); use a rows table, or --allow-uncertified, which marks every file."
        )
    if source.frac_bits != FRAC:
        raise InputError(
            f"{path.name} has {source.frac_bits} fraction bits and the kernels {FRAC}; make it with {FRAC}."
        )
    return proved


def for_package(name: str, source: NoiseTable, kernels: list[Kernel], prefix: str) -> Noise:
    """Turn the table into constants for these kernels; InputError where none of them can use it."""
    certificate, certified = source.certificate, _holds(source)
    assert certificate is not None
    parameter, values = source.c_array()
    fixed = source.c_constants()
    users = tuple(kernel for kernel in kernels if source.takes(kernel))
    if not users:
        wanted = "release or sampled" if source.for_releases else "spof or dpsgd"
        sketched = any(kernel.name.startswith("sketch") for kernel in kernels)
        more = ", or leave --kernels out and give --sketch" if sketched and source.for_releases else ""
        raise InputError(f"no exported kernel can use this noise table; add {wanted} to --kernels{more}.")
    storage = users[0].arrays[parameter].storage if values else "u32"
    least, most = STORAGE[storage]
    if values and not (least <= min(values) and max(values) <= most):
        largest = max(map(abs, values))
        raise InputError(f"{name} holds values up to {largest}, too large for {C_TYPES[storage]}; make a smaller one.")
    lengths: dict[str, int] = {}
    if source.for_releases:
        source.check_kernels()
        _refuse_more_than_certified(name, kernels, source)
        lengths = {"n": source.features, "k": source.release}
    macro = f"{prefix}NOISE_".upper()
    known = lengths | fixed | source.bound_constants()
    record = {
        "file": name,
        "kind": source.kind,
        "epsilon": str(source.epsilon),
        "features": source.features,
        "release": source.release,
        "frac_bits": source.frac_bits,
        **source.details(),
        "table_bytes": source.table_bytes,
        "certified": certified,
        "certificate": {field: str(getattr(certificate, field)) for field in certificate.__dataclass_fields__},
    }
    about = _about(source, certified, list(known))
    table = Table(
        f"{prefix}noise_table", storage, values, about, tuple((macro + name.upper(), v) for name, v in known.items())
    )
    return Noise(table, users, parameter, {n: macro + n.upper() for n in known}, record, certified, lengths)


def _holds(table: NoiseTable) -> bool:
    return table.certificate is not None and table.certificate.holds(table.epsilon)


def _about(source: NoiseTable, certified: bool, names: list[str]) -> tuple[str, ...]:
    """Return the comment above the table."""
    assert source.certificate is not None
    proved = (
        f"With {source.release} of its features released, once, a record is {source.certificate.epsilon_record}-"
        "private (pure, every pair of records)."
        if certified
        else UNCERTIFIED
    )
    shape = f"kind {source.kind}, epsilon {source.epsilon} for {source.release} of {source.features} features"
    lines = wrap(f"Noise: {shape}, {source.table_bytes} bytes. {proved} The random words must be secret and uniform.")
    lines += wrap(f"The constants are the arguments {', '.join(names)} that go with it.")
    if source.for_releases:
        lines += wrap("k is how many features of a record the certificate allows to be released.")
        lines += source.c_remark()
    return tuple(lines)


def _refuse_more_than_certified(name: str, kernels: list[Kernel], source: NoiseTable) -> None:
    """Refuse `release`, which puts out every feature, with a table made for fewer: it would spend epsilon again."""
    if source.sampled and source.kernel("release") in kernels:
        raise InputError(
            f"{name} is certified for {source.release} of {source.features} features and `release` puts out all of "
            "them; export `sampled` with it, or give a table made with --release all."
        )
