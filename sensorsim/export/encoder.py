"""The encoder of a package: trained weights as constant arrays, and as a file that `read_encoder` reads back."""

import json
from dataclasses import asdict
from typing import Any

from sensorsim.device.encoder import EncoderWeights, encoder_kernel
from sensorsim.encoders import READ
from sensorsim.language.c.files import Table
from sensorsim.language.c.text import ascii_text, wrap
from sensorsim.language.types import Q

ENCODER = "tables/encoder.json"  # in a package
SCHEMA_VERSION = 2
MOST_TOLD = 400  # letters of a stranger's sentence
# What a package tells of the training: how private it was. Whatever else a file says stays behind: accuracies and
# maxima are measured on records, and from a seed the noise could be drawn again.
TOLD = tuple(name for name in READ if name not in ("user", "quantisation"))


def encoder_tables(encoder: EncoderWeights, prefix: str) -> list[Table]:
    """The arrays `weights` and `bias` of the encoder kernel."""
    tables = []
    size = ((f"{prefix}ENCODER_N".upper(), encoder.n), (f"{prefix}ENCODER_L".upper(), encoder.l))
    for name, numbers in (("weights", encoder.weights), ("bias", encoder.bias)):
        about = f"Encoder: the {name} of {encoder.l} hidden units of {encoder.n} features."
        storage = encoder_kernel().arrays[name].storage
        constants = size if name == "weights" else ()
        tables.append(Table(f"{prefix}encoder_{name}", storage, numbers, tuple(wrap(about)), constants))
    return tables


def encoder_record(encoder: EncoderWeights) -> dict[str, Any]:
    """What the manifest says of the encoder."""
    record = {"file": encoder.name, "n": encoder.n, "l": encoder.l, "columns": _columns(encoder)}
    return {**record, "provenance": _provenance(encoder)}


def encoder_file(encoder: EncoderWeights) -> str:
    """The encoder as JSON: its whole numbers and their formats, no decoder, nothing that was measured on records."""
    rows = [encoder.weights[j * encoder.n : (j + 1) * encoder.n] for j in range(encoder.l)]
    formats = {}
    for name in ("weights", "bias"):
        kind = encoder_kernel().arrays[name]
        assert isinstance(kind.element, Q)
        formats[name] = {"storage": kind.storage, "frac_bits": kind.element.frac_bits}
    data = {"schema_version": SCHEMA_VERSION, "formats": formats, "columns": _columns(encoder)}
    data |= {"ranges": _ranges(encoder), "provenance": _provenance(encoder)}
    head = json.dumps(data, indent=1, ensure_ascii=True)[:-2]
    lines = ",\n".join("  " + json.dumps(row) for row in rows)
    return f'{head},\n "weights": [\n{lines}\n ],\n "bias": {json.dumps(encoder.bias)}\n}}\n'


def trained_line(encoder: EncoderWeights) -> str:
    """A paragraph of a README: what covers the records that the encoder was trained on, as its file tells it."""
    told = _provenance(encoder)
    if "covers" not in told:
        return "\n\n**The encoder's training.** Its file does not say what covers the records it was trained on."
    holds = told.get("covers_short") != "nothing"
    epsilon = told.get("spent_epsilon", "none") if holds else "none"
    told_of = " ".join(told["covers"].split())[:MOST_TOLD]
    said = f"epsilon {epsilon[:MOST_TOLD]} per record; it covers {told_of}"
    return f"\n\n**The encoder's training.** As its file states: {said}."


def _columns(encoder: EncoderWeights) -> list[str] | None:
    """The names of the features, and nothing but names."""
    found = encoder.columns
    named = isinstance(found, list) and len(found) == encoder.n and all(isinstance(name, str) for name in found)
    return found if named else None


def _ranges(encoder: EncoderWeights) -> list[dict[str, Any]] | None:
    """What makes 0 … 1 of readings, where it is known."""
    known = encoder.ranges if _columns(encoder) is not None else None
    return None if known is None else [asdict(one) for one in known]


def _provenance(encoder: EncoderWeights) -> dict[str, str]:
    """What is told, each in a word or a sentence; a list or a dictionary could hold anything."""
    known = {key: encoder.provenance[key] for key in TOLD if key in encoder.provenance}
    return {key: ascii_text(str(value)) for key, value in known.items() if isinstance(value, (str, int, float))}
