"""Encoders for the body as plain data: what export turns into C, readable with neither torch nor numpy."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sensorsim.errors import InputError
from sensorsim.kernels.formats import ENCODER_BIAS, ENCODER_WEIGHT, HIDDEN, SIGMOID_BITS
from sensorsim.tables import folder

SCHEMA_VERSION = 1
DEFAULT = "default"


@dataclass(frozen=True)
class Encoder:
    """Integers in the formats of `kernels/encoder.py`; the decoder stays at the hospital, in reals."""

    columns: tuple[str, ...]  # what each feature is
    scale: tuple[float, ...] | None  # what a reading is divided by to become 0 … 1; None: by the column's maximum
    weights: tuple[tuple[int, ...], ...]  # l rows of n, Q4.11
    bias: tuple[int, ...]  # l, 13 fraction bits, with what rounding down takes away
    decoder: tuple[tuple[float, ...], ...]  # l rows of n
    decoder_bias: tuple[float, ...]  # n
    provenance: dict[str, Any]  # how it was trained, what its epsilon covers, what quantisation cost

    @property
    def n(self) -> int:
        return len(self.columns)

    @property
    def l(self) -> int:  # noqa: E743 - the paper's name
        return len(self.weights)


def as_json(encoder: Encoder) -> str:
    formats = {"weights": ENCODER_WEIGHT, "bias": ENCODER_BIAS, "hidden": HIDDEN}
    about = {name: {"storage": q.storage, "frac_bits": q.frac_bits} for name, q in formats.items()}
    whole = {"schema_version": SCHEMA_VERSION, "formats": about, "sigmoid_table_bits": SIGMOID_BITS, **asdict(encoder)}
    lines = (f" {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in whole.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"  # one line for each part, so that a difference can be read


def load(name: str = DEFAULT) -> Encoder:
    """A shipped encoder by name, or one of your own by its path."""
    path = Path(name) if name.endswith(".json") else None
    try:
        text = (path or folder() / "encoders" / f"{name}.json").read_text()
        found = json.loads(text)
        if found["schema_version"] != SCHEMA_VERSION:
            raise InputError(
                f"{name} has schema version {found['schema_version']}, this program reads {SCHEMA_VERSION}; make it "
                "again with sensorsim train --encoder."
            )
        return _checked(found, name)
    except (OSError, UnicodeDecodeError):
        raise InputError(
            f"there is no encoder {name}; give default, or a JSON file of sensorsim train --encoder."
        ) from None
    except (KeyError, TypeError, json.JSONDecodeError):
        raise InputError(f"{name} is not an encoder of sensorsim train --encoder; make it again.") from None


def _checked(found: dict[str, Any], name: str) -> Encoder:
    """The encoder, if every integer fits its format and the shapes agree."""
    encoder = Encoder(
        tuple(found["columns"]),
        None if found["scale"] is None else tuple(found["scale"]),
        tuple(tuple(row) for row in found["weights"]),
        tuple(found["bias"]),
        tuple(tuple(row) for row in found["decoder"]),
        tuple(found["decoder_bias"]),
        found["provenance"],
    )
    numbers = [*(value for row in encoder.weights for value in row)]
    fits = all(ENCODER_WEIGHT.lo <= value <= ENCODER_WEIGHT.hi for value in numbers) and all(
        ENCODER_BIAS.lo <= value <= ENCODER_BIAS.hi for value in encoder.bias
    )
    rows = all(len(row) == encoder.n for row in (*encoder.weights, *encoder.decoder, encoder.decoder_bias))
    if not (fits and rows and len(encoder.bias) == len(encoder.decoder) == encoder.l > 0):
        raise InputError(f"{name} has numbers outside their format, or rows of unequal length; make it again.")
    return encoder
