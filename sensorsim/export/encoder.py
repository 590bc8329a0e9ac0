"""The encoder of a package: trained weights as constant arrays."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sensorsim.errors import InputError
from sensorsim.language.c.files import Table
from sensorsim.language.c.text import ascii_text, wrap
from sensorsim.language.kernel import Kernel
from sensorsim.language.types import Array, Q

KERNEL = "encoder"


@dataclass(frozen=True)
class Encoder:
    """The arrays `weights` and `bias` of the encoder kernel, and what the manifest says of them."""

    tables: tuple[Table, ...]
    record: dict[str, Any]
    n: int
    l: int


def load_encoder(path: Path, kernel: Kernel, prefix: str) -> Encoder:
    """Read a trained encoder and check it against the kernel's formats."""
    try:
        content = json.loads(path.read_text("utf-8"))
        rows, bias = content["weights"], content["bias"]
        values = {"weights": tuple(int(w) for row in rows for w in row), "bias": tuple(int(b) for b in bias)}
        formats = {name: content["formats"][name] for name in values}
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; give the path of a trained encoder.") from None
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path.name} is no encoder of sensorsim; train one with `sensorsim train`.") from None
    l, n = len(bias), len(rows[0]) if rows else 0
    if len(rows) != l or any(len(row) != n for row in rows) or not 1 <= l <= n:
        raise InputError(f"{path.name} has weights of another shape than l rows of n; train the encoder again.")
    size = (("N", n), ("L", l))
    tables: list[Table] = []
    for name, numbers in values.items():
        kind = kernel.parameters[name]
        assert isinstance(kind, Array) and isinstance(kind.element, Q)
        stated = formats[name]
        if (stated["storage"], stated["frac_bits"]) != (kind.storage, kind.element.frac_bits):
            raise InputError(
                f"{path.name} has {name} in another number format than the kernel; train the encoder again."
            )
        if not all(kind.element.lo <= number <= kind.element.hi for number in numbers):
            raise InputError(f"{path.name} has {name} outside the kernel's range; train the encoder again.")
        about = f"Encoder, the argument {name} of {prefix}{kernel.name}(): {l} hidden units of {n} features."
        macros = tuple((f"{prefix}ENCODER_{letter}".upper(), number) for letter, number in size) if not tables else ()
        tables.append(Table(f"{prefix}encoder_{name}", kind.storage, numbers, tuple(wrap(about)), macros))
    provenance = {key: ascii_text(str(value)) for key, value in content.get("provenance", {}).items()}
    record = {"file": path.name, "n": n, "l": l, "columns": content.get("columns"), "provenance": provenance}
    return Encoder(tuple(tables), record, n, l)
