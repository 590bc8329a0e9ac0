"""Encoders for the body as plain data, which export turns into C; readable with neither torch nor numpy.

The file holds what a body needs and no more: how a reading becomes 0 … 1, weights and biases. The decoder stays at the
hospital, in the model's file. Nothing here was measured on a record.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from itertools import chain
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
        """Return the weights as firmware holds them: the n of unit 0 first, then those of unit 1."""
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
    _require(isinstance(found, dict) and "weights" in found, "it is no encoder of sensorsim")
    version = found.get("schema_version")
    known = type(version) is int and version in (1, SCHEMA_VERSION)
    _require(known, f"its schema_version is {brief(version)}, not 1 or {SCHEMA_VERSION}")
    keys = OWN_KEYS - {"ranges"} if version == 1 else OWN_KEYS
    missing, more = sorted(keys - found.keys()), sorted(found.keys() - keys - {"sigmoid_table_bits"})
    _require(not missing, f"it has no {', '.join(missing)}")
    _require(not more or version == 1, f"{brief(', '.join(more))!r} is nothing that it has")  # version 1 had more
    formats, bits = found["formats"], found.get("sigmoid_table_bits", SIGMOID_BITS)
    wanted = _formats("weights", "bias", "hidden")
    same = isinstance(formats, dict) and {"weights", "bias"} <= formats.keys() <= wanted.keys()
    same = same and all(_exact(formats[part]) == _exact(wanted[part]) for part in formats)
    _require(same, "its numbers are in another number format than the kernel's")
    _require(_exact(bits) == _exact(SIGMOID_BITS), f"its sigmoid_table_bits are {brief(bits)}, not {SIGMOID_BITS}")
    weights, bias, columns = found["weights"], found["bias"], found["columns"]
    lists = _is_list(weights, list) and all(_is_list(numbers, int) for numbers in (bias, *weights))
    _require(lists, "its weights and biases are no lists of whole numbers")
    n = len(weights[0]) if weights else 0
    shape = all(len(row) == n for row in weights) and 1 <= len(bias) == len(weights) <= n
    _require(shape, "its weights have another shape than l rows of n, with a bias for each")
    for part, numbers, q in (("weights", chain.from_iterable(weights), ENCODER_WEIGHT), ("bias", bias, ENCODER_BIAS)):
        within = all(q.lo <= value <= q.hi for value in numbers)
        _require(within, f"its {part} has a number outside the kernel's range {q.lo} … {q.hi}")
    named = columns is None or (_is_list(columns, str) and len(columns) == n and all(map(_is_name, columns)))
    _require(named, "its columns are no list of a name for each feature")
    columns = None if columns is None else tuple(columns)
    ranges, provenance = _ranges(found, columns), _provenance(found["provenance"])
    return Encoder(tuple(map(tuple, weights)), tuple(bias), columns, ranges, provenance, name)


def _require(holds: bool, why: str) -> None:
    if not holds:
        raise InputError(f"{why}; {AGAIN}.")


def _formats(*names: str) -> dict[str, dict[str, Any]]:
    """Return the kernel's number formats."""
    known = {"weights": ENCODER_WEIGHT, "bias": ENCODER_BIAS, "hidden": HIDDEN}
    return {name: {"storage": known[name].storage, "frac_bits": known[name].frac_bits} for name in names}


def _exact(value: Any) -> str:
    """Return the JSON of a value: true is not 1 there, nor is 1.0."""
    return json.dumps(value, sort_keys=True)


def _is_list(value: Any, kind: type) -> bool:
    """Return whether a value is a list of exactly this type: true is no whole number."""
    return type(value) is list and all(type(one) is kind for one in value)


def _is_name(value: Any) -> bool:
    """Return whether a value is a name or a unit: text on one line."""
    return type(value) is str and (not value or value.isprintable()) and len(value) <= MOST_NAME


def _ranges(found: dict[str, Any], columns: tuple[str, ...] | None) -> tuple[Range, ...] | None:
    """Return the ranges of a file; where version 1 had one scale for each column, readings begin at 0."""
    parts = found.get("scale" if found["schema_version"] == 1 else "ranges")
    if parts is None:
        return None
    try:
        if found["schema_version"] == 1:
            names = zip(columns or (), parts, strict=True)
            parts = [{"name": name, "low": 0, "high": high, "unit": ""} for name, high in names]
        if type(parts) is not list or any(one.keys() != Range.__dataclass_fields__.keys() for one in parts):
            raise TypeError("range")
        made = tuple(range_of(one) for one in parts)
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
        raise InputError(f"its ranges are no list of name, low, high and unit; {AGAIN}.") from None
    named = columns is not None and tuple(one.name for one in made) == columns
    _require(named, "its ranges are not one for each column, in their order")
    return made


def range_of(found: Any) -> Range:
    """Return a range from JSON; TypeError or KeyError where it is none."""
    if not {type(found["low"]), type(found["high"])} <= {int, float}:
        raise TypeError("range")
    return Range(name_of(found["name"]), float(found["low"]), float(found["high"]), name_of(found["unit"]))


def name_of(found: Any) -> str:
    """Return a name or a unit; TypeError where it is none."""
    if not _is_name(found):
        raise TypeError("name")
    return str(found)


def _told(provenance: dict[str, Any]) -> dict[str, Any]:
    """Return the names that may be written; files of version 1 also have accuracies."""
    kept = {name: provenance[name] for name in READ if name in provenance}
    if isinstance(kept.get("quantisation"), dict):
        kept["quantisation"] = {"weights_saturated": kept["quantisation"].get("weights_saturated")}
    return kept


def _provenance(found: Any) -> dict[str, Any]:
    """Return the provenance of a file, each value of its kind; a package has all of them as text."""
    _require(isinstance(found, dict), "its provenance is no object of names and values")
    told = _told(found)
    for name, value in told.items():
        _require(_is_told(READ[name], value), f"its provenance says {brief(_exact(value))} for {name}")
    return told


def _is_told(kind: str, value: Any) -> bool:
    """Return whether a value is of this kind of READ; None where nothing is known."""
    if kind == "quantisation":
        saturated = value.get("weights_saturated") if isinstance(value, dict) else None
        return type(saturated) is int and saturated >= 0
    if kind == "user":
        return value == "all" or (type(value) is int and value >= 0)
    if kind == "yes or no":
        return type(value) is bool or value in ("True", "False")
    if value is None or kind == "text":
        return value is None or type(value) is str
    try:
        return type(value) in (int, float, str) and 0 <= float(value) < math.inf
    except (ValueError, OverflowError):
        return False
