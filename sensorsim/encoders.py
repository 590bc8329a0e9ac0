"""Encoders for the body as plain data: what export turns into C, readable with neither torch nor numpy.

The file holds what a body needs and no more: how a reading becomes 0 … 1, weights and biases. The decoder stays at the
hospital, in the model's file. Nothing here was measured on a record.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sensorsim._util.errors import InputError
from sensorsim._util.files import read_bounded, strict_json
from sensorsim.datasets.public_ranges import Range, brief
from sensorsim.kernels.formats import ENCODER_BIAS, ENCODER_WEIGHT, HIDDEN, SIGMOID_BITS

SCHEMA_VERSION = 2
DEFAULT = "default"  # the encoder that ships, in tables/encoders
MOST_BYTES = 1 << 27
MOST_NAME = 100  # letters of a column's name or unit
# What a file tells of the training: how private it was. Accuracies are measured on records, and from a seed the noise
# could be drawn again, so neither is ever written. Each name with what its value may be (`_is_told`).
READ = {
    **dict.fromkeys(("mechanism", "kind"), "text"),
    **dict.fromkeys(("nominal_epsilon", "spent_epsilon", "delta"), "number"),
    **dict.fromkeys(("covers", "covers_short"), "text"),
    "reproducible": "yes or no",
    **dict.fromkeys(("trust", "settings", "noise"), "text"),
    "user": "user",
    "quantisation": "quantisation",
}
TOLD = tuple(name for name in READ if name != "reproducible")
OWN_KEYS = {"schema_version", "formats", "columns", "ranges", "weights", "bias", "provenance"}
AGAIN = "make it again with `sensorsim train --encoder`"


@dataclass(frozen=True)
class Encoder:
    """Integers in the formats of `kernels/encoder.py`."""

    weights: tuple[tuple[int, ...], ...]  # l rows of n, Q4.11
    bias: tuple[int, ...]  # l, 13 fraction bits, with what rounding down takes away
    columns: tuple[str, ...] | None = field(default=None, compare=False)  # what each feature is, where it is known
    # Of readings: low becomes 0, high becomes 1; None where they are not known.
    ranges: tuple[Range, ...] | None = field(default=None, compare=False)
    # How it was trained and what its epsilon covers: names of READ, nothing else.
    provenance: dict[str, Any] = field(default_factory=dict, compare=False)
    name: str = "encoder"  # of its file

    @property
    def n(self) -> int:
        return len(self.weights[0])

    @property
    def l(self) -> int:  # noqa: E743 - the paper's name
        return len(self.weights)

    @property
    def flat(self) -> tuple[int, ...]:
        """The weights as firmware holds them: the n of unit 0 first, then those of unit 1."""
        return sum(self.weights, ())


def as_json(encoder: Encoder, packaged: bool = False) -> str:
    """Return the file of an encoder; one of a package is ASCII and has the numbers that its C has, a row a line."""
    about = _formats("weights", "bias") if packaged else _formats("weights", "bias", "hidden")
    head: dict[str, Any] = {"schema_version": SCHEMA_VERSION, "formats": about}
    ranges = None if encoder.ranges is None else [asdict(one) for one in encoder.ranges]
    told = _told(encoder.provenance)
    if packaged:
        head |= {"columns": encoder.columns, "ranges": ranges, "provenance": told}
        rows = ",\n".join(f"  {json.dumps(row)}" for row in encoder.weights)
        start = json.dumps(head, indent=1, ensure_ascii=True)[:-2]
        return f'{start},\n "weights": [\n{rows}\n ],\n "bias": {json.dumps(encoder.bias)}\n}}\n'
    head |= {"sigmoid_table_bits": SIGMOID_BITS, "columns": encoder.columns, "ranges": ranges}
    head |= {"weights": encoder.weights, "bias": encoder.bias}
    head["provenance"] = {name: value for name, value in told.items() if name in TOLD}
    lines = (f" {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in head.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"  # one line for each part, so that a difference can be read


def read_encoder(path: Path) -> Encoder:
    """Read the file of a trained encoder, or that of a package."""
    try:
        content = read_bounded(path, MOST_BYTES)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; give the path of a trained encoder.") from None
    try:
        return parse(content, path.name)
    except InputError as error:
        raise InputError(f"{path.name}: {error}") from None


def parse(content: bytes, name: str = "encoder") -> Encoder:
    """Parse the file of an encoder, as `train` and `export` write it; InputError for anything else."""
    try:
        found = strict_json(content.decode("utf-8"))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or "weights" not in found:
        raise InputError(f"it is no encoder of sensorsim; {AGAIN}.")
    version = found.get("schema_version")
    if type(version) is not int or version not in (1, SCHEMA_VERSION):
        raise InputError(f"its schema_version is {brief(version)}, not 1 or {SCHEMA_VERSION}; {AGAIN}.")
    keys = OWN_KEYS - {"ranges"} if version == 1 else OWN_KEYS
    missing, more = sorted(keys - found.keys()), sorted(found.keys() - keys - {"sigmoid_table_bits"})
    if missing or (more and version != 1):  # the first version had more
        what = f"it has no {missing[0]}" if missing else f"{brief(more[0])!r} is nothing that it has"
        raise InputError(f"{what}; {AGAIN}.")
    _check_formats(found)
    weights, bias = _numbers(found)
    try:
        columns = None if found["columns"] is None else tuple(name_of(name) for name in _list(found["columns"]))
        if columns is not None and len(columns) != len(weights[0]):
            raise TypeError("columns")
    except TypeError:
        raise InputError(f"its columns are no list of a name for each feature; {AGAIN}.") from None
    return Encoder(weights, bias, columns, _ranges(found, columns), _provenance(found["provenance"]), name)


def _formats(*names: str) -> dict[str, dict[str, Any]]:
    """Return the kernel's number formats."""
    known = {"weights": ENCODER_WEIGHT, "bias": ENCODER_BIAS, "hidden": HIDDEN}
    return {name: {"storage": known[name].storage, "frac_bits": known[name].frac_bits} for name in names}


def _check_formats(found: dict[str, Any]) -> None:
    """Refuse numbers in another format than that of the kernels."""
    formats, bits = found["formats"], found.get("sigmoid_table_bits", SIGMOID_BITS)
    wanted = _formats("weights", "bias", "hidden")
    same = isinstance(formats, dict) and {"weights", "bias"} <= formats.keys() <= wanted.keys()
    if not same or any(_exact(formats[name]) != _exact(wanted[name]) for name in formats):
        raise InputError(f"its numbers are in another number format than the kernel's; {AGAIN}.")
    if _exact(bits) != _exact(SIGMOID_BITS):
        raise InputError(f"its sigmoid_table_bits are {brief(bits)}, not {SIGMOID_BITS}; {AGAIN}.")


def _exact(value: Any) -> str:
    """Return the JSON of a value: true is not 1 there, nor is 1.0."""
    return json.dumps(value, sort_keys=True)


def _numbers(found: dict[str, Any]) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]:
    """Return weights and biases: whole numbers within their formats, l rows of n."""
    try:
        weights = tuple(tuple(_whole(value) for value in _list(row)) for row in _list(found["weights"]))
        bias = tuple(_whole(value) for value in _list(found["bias"]))
    except TypeError:
        raise InputError(f"its weights and biases are no lists of whole numbers; {AGAIN}.") from None
    n = len(weights[0]) if weights else 0
    if any(len(row) != n for row in weights) or not 1 <= len(bias) == len(weights) <= n:
        raise InputError(f"its weights have another shape than l rows of n, with a bias for each; {AGAIN}.")
    for name, numbers, q in (("weights", sum(weights, ()), ENCODER_WEIGHT), ("bias", bias, ENCODER_BIAS)):
        if not all(q.lo <= value <= q.hi for value in numbers):
            raise InputError(f"its {name} has a number outside the kernel's range {q.lo} … {q.hi}; {AGAIN}.")
    return weights, bias


def _whole(value: Any) -> int:
    """Return a whole number; TypeError for 1.5, true and "7"."""
    if type(value) is not int:
        raise TypeError("whole number")
    return value


def _list(value: Any) -> list[Any]:
    if type(value) is not list:
        raise TypeError("list")
    return value


def _ranges(found: dict[str, Any], columns: tuple[str, ...] | None) -> tuple[Range, ...] | None:
    """Return the ranges of a file; where version 1 had one scale for each column, readings begin at 0."""
    parts = found.get("scale" if found["schema_version"] == 1 else "ranges")
    if parts is None:
        return None
    try:
        if found["schema_version"] == 1:
            names = zip(columns or (), _list(parts), strict=True)
            parts = [{"name": name, "low": 0, "high": high, "unit": ""} for name, high in names]
        if any(one.keys() != Range.__dataclass_fields__.keys() for one in _list(parts)):
            raise TypeError("range")
        made = tuple(range_of(one) for one in parts)
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
        raise InputError(f"its ranges are no list of name, low, high and unit; {AGAIN}.") from None
    if columns is None or tuple(one.name for one in made) != columns:
        raise InputError(f"an encoder has a range for each column, in their order; {AGAIN}.")
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
    """Return what may be told; files of version 1 also have accuracies."""
    kept = {name: provenance[name] for name in READ if name in provenance}
    if isinstance(kept.get("quantisation"), dict):
        saturated = kept["quantisation"].get("weights_saturated")
        kept["quantisation"] = {"weights_saturated": saturated}
    return kept


def _provenance(found: Any) -> dict[str, Any]:
    """Return what a file tells of the training, each value of its kind."""
    if not isinstance(found, dict):
        raise InputError(f"its provenance is no object of names and values; {AGAIN}.")
    told = _told(found)
    for name, value in told.items():
        if not _is_told(READ[name], value):
            raise InputError(f"its provenance says {brief(_exact(value))} for {name}; {AGAIN}.")
    return told


def _is_told(kind: str, value: Any) -> bool:
    """Return whether a value is of its kind; a package has all of them as text."""
    if kind == "quantisation":
        saturated = value.get("weights_saturated") if isinstance(value, dict) else None
        return type(saturated) is int and saturated >= 0
    if kind == "user":
        return value == "all" or (type(value) is int and value >= 0)
    if kind == "text":
        return value is None or type(value) is str
    if kind == "yes or no":
        return type(value) is bool or value in ("True", "False")
    try:
        number = float(value) if type(value) in (int, float, str) else -1.0
    except (ValueError, OverflowError):
        number = -1.0
    return value is None or 0 <= number < math.inf
