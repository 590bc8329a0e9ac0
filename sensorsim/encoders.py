"""Encoders for the body as plain data, which export turns into C; readable with neither torch nor numpy.

The file holds what a body needs and no more: how a reading becomes 0 … 1, weights and biases. The decoder stays at the
hospital, in the model's file. Nothing here was measured on a record.
"""

from __future__ import annotations

import json
import math
from contextlib import suppress
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
    formats, bits = found["formats"], found.get("sigmoid_table_bits", SIGMOID_BITS)
    wanted = _formats("weights", "bias", "hidden")
    same = isinstance(formats, dict) and {"weights", "bias"} <= formats.keys() <= wanted.keys()
    if not same or any(_exact(formats[name]) != _exact(wanted[name]) for name in formats):
        raise InputError(f"its numbers are in another number format than the kernel's; {AGAIN}.")
    if _exact(bits) != _exact(SIGMOID_BITS):
        raise InputError(f"its sigmoid_table_bits are {brief(bits)}, not {SIGMOID_BITS}; {AGAIN}.")
    weights, bias = found["weights"], found["bias"]
    rows = weights if _is_list(weights, list) else [None]
    if not all(_is_list(numbers, int) for numbers in (bias, *rows)):
        raise InputError(f"its weights and biases are no lists of whole numbers; {AGAIN}.")
    n = len(weights[0]) if weights else 0
    if any(len(row) != n for row in weights) or not 1 <= len(bias) == len(weights) <= n:
        raise InputError(f"its weights have another shape than l rows of n, with a bias for each; {AGAIN}.")
    for part, numbers, q in (("weights", chain.from_iterable(weights), ENCODER_WEIGHT), ("bias", bias, ENCODER_BIAS)):
        if not all(q.lo <= value <= q.hi for value in numbers):
            raise InputError(f"its {part} has a number outside the kernel's range {q.lo} … {q.hi}; {AGAIN}.")
    columns = found["columns"]
    if columns is not None and not (_is_list(columns, str) and len(columns) == n and all(map(_is_name, columns))):
        raise InputError(f"its columns are no list of a name for each feature; {AGAIN}.")
    columns = None if columns is None else tuple(columns)
    ranges, provenance = _ranges(found, columns), _provenance(found["provenance"])
    return Encoder(tuple(map(tuple, weights)), tuple(bias), columns, ranges, provenance, name)


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
    if columns is None or tuple(one.name for one in made) != columns:
        raise InputError(f"an encoder has a range for each column, in their order; {AGAIN}.")
    return made


def range_of(found: Any) -> Range:
    """Return a range from JSON; TypeError or KeyError where it is none."""
    low, high = found["low"], found["high"]
    if type(low) not in (int, float) or type(high) not in (int, float):
        raise TypeError("range")
    return Range(name_of(found["name"]), float(low), float(high), name_of(found["unit"]))


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
    if not isinstance(found, dict):
        raise InputError(f"its provenance is no object of names and values; {AGAIN}.")
    told = _told(found)
    for name, value in told.items():
        kind, sound = READ[name], value is None
        if kind == "quantisation":
            saturated = value.get("weights_saturated") if isinstance(value, dict) else None
            sound = type(saturated) is int and saturated >= 0
        elif kind == "user":
            sound = value == "all" or (type(value) is int and value >= 0)
        elif kind == "yes or no":
            sound = type(value) is bool or value in ("True", "False")
        elif kind == "text":
            sound |= type(value) is str
        elif type(value) in (int, float, str):
            with suppress(ValueError, OverflowError):
                sound = 0 <= float(value) < math.inf
        if not sound:
            raise InputError(f"its provenance says {brief(_exact(value))} for {name}; {AGAIN}.")
    return told
