"""The encoder of a package: trained weights as constant arrays, and as a file that `read_encoder` reads back."""

import json
from typing import Any

from sensorsim.device.encoder import EncoderWeights, encoder_kernel
from sensorsim.language.c.files import Table
from sensorsim.language.c.text import ascii_text, wrap
from sensorsim.language.types import Q

ENCODER = "tables/encoder.json"  # in a package
# What a package tells of the training: how private it was. Accuracies are measured on records, so they stay behind.
TOLD = ("mechanism", "data", "nominal_epsilon", "spent_epsilon", "delta", "covers", "covers_short", "reproducible")


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
    record = {"file": encoder.name, "n": encoder.n, "l": encoder.l, "columns": encoder.columns}
    return {**record, "provenance": _provenance(encoder)}


def encoder_file(encoder: EncoderWeights) -> str:
    """The encoder as JSON: its whole numbers and their formats, no decoder, nothing that was measured on records."""
    rows = [encoder.weights[j * encoder.n : (j + 1) * encoder.n] for j in range(encoder.l)]
    formats = {}
    for name in ("weights", "bias"):
        kind = encoder_kernel().arrays[name]
        assert isinstance(kind.element, Q)
        formats[name] = {"storage": kind.storage, "frac_bits": kind.element.frac_bits}
    data = {"schema_version": 1, "formats": formats, "columns": encoder.columns, "provenance": _provenance(encoder)}
    head = json.dumps(data, indent=1, ensure_ascii=True)[:-2]
    lines = ",\n".join("  " + json.dumps(row) for row in rows)
    return f'{head},\n "weights": [\n{lines}\n ],\n "bias": {json.dumps(encoder.bias)}\n}}\n'


def _provenance(encoder: EncoderWeights) -> dict[str, str]:
    return {key: ascii_text(str(encoder.provenance[key])) for key in TOLD if key in encoder.provenance}
