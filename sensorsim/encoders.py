"""Encoders for the body as plain data: what export turns into C, readable with neither torch nor numpy.

The file holds what a body needs and no more: how a reading becomes 0 … 1, weights and biases. The decoder stays at the
hospital, in the model's file. Nothing here was measured on a record.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sensorsim.errors import InputError
from sensorsim.files import read_bounded, strict_json
from sensorsim.kernels.formats import ENCODER_BIAS, ENCODER_WEIGHT, HIDDEN, SIGMOID_BITS
from sensorsim.ranges import Range, brief
from sensorsim.tables import folder

SCHEMA_VERSION = 2
DEFAULT = "default"
MOST_BYTES = 1 << 27
MOST_NAME = 100  # letters of a column's name or unit
# What a file tells of the training: how private it was. Accuracies are measured on records, and from a seed the noise
# could be drawn again, so neither is ever written.
TOLD = (
    *("mechanism", "kind", "nominal_epsilon", "spent_epsilon", "delta", "covers", "covers_short", "trust", "settings"),
    *("noise", "user", "quantisation"),
)


@dataclass(frozen=True)
class Encoder:
    """Integers in the formats of `kernels/encoder.py`."""

    columns: tuple[str, ...]  # what each feature is
    ranges: tuple[Range, ...] | None  # of readings: low becomes 0, high becomes 1; None where they are not known
    weights: tuple[tuple[int, ...], ...]  # l rows of n, Q4.11
    bias: tuple[int, ...]  # l, 13 fraction bits, with what rounding down takes away
    provenance: dict[str, Any]  # how it was trained and what its epsilon covers: TOLD, nothing else

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
    whole["provenance"] = _told(encoder.provenance)
    lines = (f" {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in whole.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"  # one line for each part, so that a difference can be read


def load(name: str = DEFAULT) -> Encoder:
    """A shipped encoder by name, or one of your own by its path."""
    path = Path(name) if name.endswith(".json") else folder() / "encoders" / f"{name}.json"
    try:
        found = strict_json(read_bounded(path, MOST_BYTES).decode("utf-8"))
        version = found["schema_version"]
        if version not in (1, SCHEMA_VERSION):
            raise InputError(
                f"it has schema version {brief(version)}, this program reads 1 and {SCHEMA_VERSION}; make it again "
                "with sensorsim train --encoder."
            )
        return _checked(found)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    except (OSError, UnicodeDecodeError):
        raise InputError(
            f"there is no encoder {name}; give default, or a JSON file of sensorsim train --encoder."
        ) from None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError):
        raise InputError(f"{name} is not an encoder of sensorsim train --encoder; make it again.") from None


def ranges_in(content: dict[str, Any], columns: tuple[str, ...]) -> tuple[Range, ...] | None:
    """The ranges of an encoder's file; where version 1 had one scale for each column, readings begin at 0."""
    if content["schema_version"] == 1:
        scale = content.get("scale")
        named = None if scale is None else zip(columns, scale, strict=True)
        found = None if named is None else [{"name": name, "low": 0, "high": one, "unit": ""} for name, one in named]
    else:
        found = content.get("ranges")
    if found is None:
        return None
    made = tuple(range_of(one) for one in found)
    if tuple(one.name for one in made) != columns:
        raise InputError("an encoder has a range for each column, in their order; make it again.")
    return made


def range_of(found: Any) -> Range:
    """A range as JSON has it. TypeError or KeyError where it is none."""
    low, high = found["low"], found["high"]
    if type(low) not in (int, float) or type(high) not in (int, float):
        raise TypeError("range")
    return Range(name_of(found["name"]), float(low), float(high), name_of(found["unit"]))


def name_of(found: Any) -> str:
    """A name or a unit: text on one line. TypeError where it is not."""
    if type(found) is not str or (found and not found.isprintable()) or len(found) > MOST_NAME:
        raise TypeError("name")
    return found


def _told(provenance: dict[str, Any]) -> dict[str, Any]:
    """What may be told; files of version 1 also have accuracies."""
    kept = {name: provenance[name] for name in TOLD if name in provenance}
    if isinstance(kept.get("quantisation"), dict):
        saturated = kept["quantisation"].get("weights_saturated")
        kept["quantisation"] = {"weights_saturated": saturated}
    return kept


def _checked(found: dict[str, Any]) -> Encoder:
    """The encoder, if every integer fits its format and the shapes agree."""
    columns = tuple(name_of(column) for column in found["columns"])
    encoder = Encoder(
        columns,
        ranges_in(found, columns),
        tuple(tuple(row) for row in found["weights"]),
        tuple(found["bias"]),
        _told(dict(found["provenance"])),
    )
    numbers = [value for row in encoder.weights for value in row]
    if not all(type(value) is int for value in (*numbers, *encoder.bias)):
        raise TypeError("whole numbers")
    fits = all(ENCODER_WEIGHT.lo <= value <= ENCODER_WEIGHT.hi for value in numbers) and all(
        ENCODER_BIAS.lo <= value <= ENCODER_BIAS.hi for value in encoder.bias
    )
    rows = all(len(row) == encoder.n for row in encoder.weights)
    if not (fits and rows and len(encoder.bias) == encoder.l > 0):
        raise InputError("it has numbers outside their format, or rows of unequal length; make it again.")
    return encoder
