"""A trained encoder as the firmware holds it: whole numbers in the formats of the kernel `encoder`."""

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorsim.errors import InputError
from sensorsim.files import read_bounded, strict_json
from sensorsim.language.kernel import Kernel
from sensorsim.language.types import Array, Q

if TYPE_CHECKING:
    from sensorsim.ranges import Range

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
    ranges: "tuple[Range, ...] | None" = field(default=None, compare=False)  # that make 0 … 1 of readings
    provenance: dict[str, Any] = field(default_factory=dict, compare=False)


@cache
def encoder_kernel() -> Kernel:
    from sensorsim.kernels.encoder import encoder

    found: Kernel = encoder
    return found


def read_encoder(path: Path) -> EncoderWeights:
    """Read a trained encoder and check it against the kernel's formats; files of schema version 1 had no ranges."""
    try:
        data = read_bounded(path, MOST_BYTES)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; give the path of a trained encoder.") from None
    try:
        content = strict_json(data.decode("utf-8"))
        rows, bias = content["weights"], content["bias"]
        values = {"weights": tuple(_whole(w) for row in rows for w in row), "bias": tuple(_whole(b) for b in bias)}
        formats = {
            name: (content["formats"][name]["storage"], content["formats"][name]["frac_bits"]) for name in values
        }
        provenance = dict(content.get("provenance", {}))
        shape = [len(row) for row in rows]
        ranges = _ranges(content)
    except InputError as error:  # of a range
        raise InputError(f"{path.name}: {error}") from None
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
    columns = content.get("columns")
    return EncoderWeights(n, l, **values, name=path.name, columns=columns, ranges=ranges, provenance=provenance)


def _whole(number: Any) -> int:
    """1.5 is no weight, and neither are true and "7"."""
    if type(number) is not int:
        raise TypeError("whole number")
    return number


def _ranges(content: dict[str, Any]) -> "tuple[Range, ...] | None":
    """Of a file that names its columns; they are told and not computed with."""
    from sensorsim.encoders import ranges_in

    columns = content.get("columns")
    if "schema_version" not in content or not isinstance(columns, list):
        return None
    return ranges_in(content, tuple(columns))
