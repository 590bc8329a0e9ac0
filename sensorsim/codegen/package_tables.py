"""Constant tables of a package: the certified noise table, an encoder's weights, a sketch's centre.

Each gives arrays and constants of its C, a record for the manifest, and a file from which `verify` reads it again.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sensorsim._util.errors import InputError
from sensorsim.device.sketches import Sketch
from sensorsim.encoders import READ, Encoder, as_json
from sensorsim.kernels.encoder import encoder as encoder_kernel
from sensorsim.kernels.formats import FRAC
from sensorsim.kernels.sketch import sketch as sketch_kernel
from sensorsim.language.c.comments import C_TYPES, ascii_text, wrap
from sensorsim.language.c.declarations import Table
from sensorsim.language.kernel import Kernel
from sensorsim.language.types import STORAGE
from sensorsim.noise.noise_table import NoiseTable

# Files of a package. The tables of a sensor are what `sensorsim receive` needs.
NOISE, SENSOR_NOISE = "tables/noise.txt", "hospital/table.txt"
ENCODER, SKETCH = "tables/encoder.json", "hospital/sketch.json"
UNCERTIFIED = "WARNING: the noise table of this package is NOT certified. Records made with it are not proved private."
CENTRE = "centre"
SKETCH_CONSTANTS = ("n", "factor", "halvings", "direction_bits")  # the kernels' arguments that the package binds
MOST_QUOTED = 400  # characters of a sentence from an encoder's file
# The provenance that a package repeats: how private the training was. Everything else in the file stays out: accuracies
# and maxima are measured on records, and from a seed the noise could be drawn again.
PROVENANCE = tuple(name for name in READ if name not in ("user", "quantisation"))


@dataclass(frozen=True)
class Noise:
    """A noise table in a package: its constants, its record in the manifest, and whether its epsilon is proved."""

    table: Table
    users: tuple[Kernel, ...]  # the kernels that draw from it
    parameter: str  # their name for the array
    constants: dict[str, str]  # their names for the constants, and the C names
    record: dict[str, Any]
    certified: bool
    lengths: dict[str, int]  # the n and k of the certificate

    def arguments(self, kernel: Kernel) -> dict[str, str]:
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
    assert proved.certificate is not None
    if not proved.certificate.holds(proved.epsilon) and not allow_uncertified:
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
    certificate = source.certificate
    assert certificate is not None
    certified = certificate.holds(source.epsilon)
    parameter, values = source.c_array()
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
        if source.sampled and source.kernel("release") in kernels:  # it would spend the epsilon once for each feature
            raise InputError(
                f"{name} is certified for {source.release} of {source.features} features and `release` puts out all of "
                "them; export `sampled` with it, or give a table made with --release all."
            )
        lengths = {"n": source.features, "k": source.release}
    known = lengths | source.c_constants() | source.bound_constants()
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
    proved = (
        f"With {source.release} of its features released, once, a record is {certificate.epsilon_record}-"
        "private (pure, every pair of records)."
        if certified
        else UNCERTIFIED
    )
    shape = f"kind {source.kind}, epsilon {source.epsilon} for {source.release} of {source.features} features"
    about = wrap(f"Noise: {shape}, {source.table_bytes} bytes. {proved} The random words must be secret and uniform.")
    about += wrap(f"The constants are the arguments {', '.join(known)} that go with it.")
    if source.for_releases:
        about += wrap("k is how many features of a record the certificate allows to be released.")
        about += source.c_remark()
    macros = {one: f"{prefix}NOISE_{one}".upper() for one in known}
    constants = tuple((macros[one], value) for one, value in known.items())
    table = Table(f"{prefix}noise_table", storage, values, tuple(about), constants)
    return Noise(table, users, parameter, macros, record, certified, lengths)


def encoder_tables(encoder: Encoder, prefix: str) -> list[Table]:
    """Return the arrays `weights` and `bias` of the encoder kernel."""
    tables = []
    size = ((f"{prefix}ENCODER_N".upper(), encoder.n), (f"{prefix}ENCODER_L".upper(), encoder.l))
    for name, numbers, constants in (("weights", encoder.flat, size), ("bias", encoder.bias, ())):
        about = wrap(f"Encoder: the {name} of {encoder.l} hidden units of {encoder.n} features.")
        storage = encoder_kernel.arrays[name].storage
        tables.append(Table(f"{prefix}encoder_{name}", storage, numbers, tuple(about), constants))
    return tables


def encoder_record(encoder: Encoder) -> dict[str, Any]:
    """Return the encoder's record in the manifest."""
    columns = None if encoder.columns is None else list(encoder.columns)
    record = {"file": encoder.name, "n": encoder.n, "l": encoder.l, "columns": columns}
    return {**record, "provenance": _provenance(encoder)}


def encoder_file(encoder: Encoder) -> str:
    """Return the encoder as JSON: its integers and formats, no decoder, nothing that was measured on records."""
    return as_json(replace(encoder, provenance=_provenance(encoder)), packaged=True)


def trained_line(encoder: Encoder) -> str:
    """Return the README's paragraph on what protects the training records, as the encoder's file states it."""
    stated = _provenance(encoder)
    if "covers" not in stated:
        return "\n\n**The encoder's training.** Its file does not say what covers the records it was trained on."
    epsilon = "none" if stated.get("covers_short") == "nothing" else stated.get("spent_epsilon", "none")
    covers = " ".join(stated["covers"].split())[:MOST_QUOTED]
    said = f"epsilon {epsilon[:MOST_QUOTED]} per record; it covers {covers}"
    return f"\n\n**The encoder's training.** As its file states: {said}."


def _provenance(encoder: Encoder) -> dict[str, str]:
    """Return the provenance to repeat, words and numbers only: a list or dictionary could hold anything."""
    known = {key: encoder.provenance[key] for key in PROVENANCE if key in encoder.provenance}
    return {key: ascii_text(str(value)) for key, value in known.items() if isinstance(value, (str, int, float))}


def sketch_macro(name: str, prefix: str) -> str:
    """Return the C name of a constant of the sketch."""
    return f"{prefix}sketch_{name}".upper()


def sketch_table(sketch: Sketch, prefix: str) -> Table:
    """Return the array `centre` of the kernel `sketch`, and the constants that go with it."""
    about = (
        f"Sketch: the public centre of {sketch.n} features. The constants are the arguments "
        f"{', '.join(SKETCH_CONSTANTS)}: the bound R is {sketch.root:.9g}, and there are "
        f"{sketch.directions} directions."
    )
    constants = tuple((sketch_macro(name, prefix), int(getattr(sketch, name))) for name in SKETCH_CONSTANTS)
    storage = sketch_kernel.arrays[CENTRE].storage
    return Table(f"{prefix}sketch_{CENTRE}", storage, sketch.centre, tuple(wrap(about)), constants)


def sketch_record(sketch: Sketch, name: str) -> dict[str, Any]:
    """Return the sketch's record in the manifest."""
    record: dict[str, Any] = {"file": name, **{constant: getattr(sketch, constant) for constant in SKETCH_CONSTANTS}}
    return {**record, "root": sketch.root, "directions": sketch.directions, "columns": sketch.columns}
