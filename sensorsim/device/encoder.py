"""A trained encoder as the firmware holds it: whole numbers in the formats of the kernel `encoder`."""

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from sensorsim.errors import InputError
from sensorsim.files import read_bounded
from sensorsim.language.kernel import Kernel
from sensorsim.language.types import Array, Q

KERNEL = "encoder"
MOST_BYTES = 1 << 27


@dataclass(frozen=True)
class EncoderWeights:
    """Weights, the n of unit 0 first, then those of unit 1; a bias for each of the l units."""

    n: int
    l: int
    weights: tuple[int, ...]
    bias: tuple[int, ...]
    name: str = "encoder"
    columns: Any = field(default=None, compare=False)
    provenance: dict[str, Any] = field(default_factory=dict, compare=False)


@cache
def encoder_kernel() -> Kernel:
    from sensorsim.kernels.encoder import encoder

    found: Kernel = encoder
    return found


def read_encoder(path: Path) -> EncoderWeights:
    """Read a trained encoder and check it against the kernel's formats."""
    try:
        data = read_bounded(path, MOST_BYTES)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; give the path of a trained encoder.") from None
    try:
        content = json.loads(data.decode("utf-8"))
        rows, bias = content["weights"], content["bias"]
        values = {"weights": tuple(int(w) for row in rows for w in row), "bias": tuple(int(b) for b in bias)}
        formats = {
            name: (content["formats"][name]["storage"], content["formats"][name]["frac_bits"]) for name in values
        }
        provenance = dict(content.get("provenance", {}))
        shape = [len(row) for row in rows]
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        raise InputError(f"{path.name} is no encoder of sensorsim; train one with `sensorsim train`.") from None
    l, n = len(bias), shape[0] if shape else 0
    if shape != [n] * l or not 1 <= l <= n:
        raise InputError(f"{path.name} has weights of another shape than l rows of n; train the encoder again.")
    for name, numbers in values.items():
        kind = encoder_kernel().parameters[name]
        assert isinstance(kind, Array) and isinstance(kind.element, Q)
        if formats[name] != (kind.storage, kind.element.frac_bits):
            raise InputError(
                f"{path.name} has {name} in another number format than the kernel; train the encoder again."
            )
        if not all(kind.element.lo <= number <= kind.element.hi for number in numbers):
            raise InputError(f"{path.name} has {name} outside the kernel's range; train the encoder again.")
    return EncoderWeights(n, l, **values, name=path.name, columns=content.get("columns"), provenance=provenance)
