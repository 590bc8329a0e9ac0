"""A trained encoder as the firmware holds it: whole numbers in the formats of the kernel `encoder`."""

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorsim.encoders import MOST_BYTES, parse
from sensorsim.errors import InputError
from sensorsim.files import read_bounded
from sensorsim.language.kernel import Kernel

if TYPE_CHECKING:
    from sensorsim.ranges import Range

KERNEL = "encoder"


@dataclass(frozen=True)
class EncoderWeights:
    """Weights, the n of unit 0 first, then those of unit 1; a bias for each of the l units."""

    n: int
    l: int
    weights: tuple[int, ...]
    bias: tuple[int, ...]
    name: str = "encoder"
    columns: Any = field(default=None, compare=False)
    ranges: "tuple[Range, ...] | None" = field(default=None, compare=False)  # that make 0 … 1 of readings
    provenance: dict[str, Any] = field(default_factory=dict, compare=False)


@cache
def encoder_kernel() -> Kernel:
    from sensorsim.kernels.encoder import encoder

    found: Kernel = encoder
    return found


def read_encoder(path: Path) -> EncoderWeights:
    """Read the file of a trained encoder, or that of a package."""
    try:
        content = read_bounded(path, MOST_BYTES)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; give the path of a trained encoder.") from None
    try:
        found = parse(content)
    except InputError as error:
        raise InputError(f"{path.name}: {error}") from None
    flat = tuple(value for row in found.weights for value in row)
    columns = None if found.columns is None else list(found.columns)
    return EncoderWeights(found.n, found.l, flat, found.bias, path.name, columns, found.ranges, found.provenance)
