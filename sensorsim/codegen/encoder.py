"""The encoder of a package: trained weights as constant arrays, and as a file that `read_encoder` reads back."""

from dataclasses import replace
from typing import Any

from sensorsim.encoders import READ, Encoder, as_json
from sensorsim.kernels.encoder import encoder as kernel
from sensorsim.language.c.comments import ascii_text, wrap
from sensorsim.language.c.declarations import Table

ENCODER = "tables/encoder.json"  # in a package
MOST_TOLD = 400  # letters of a stranger's sentence
# What a package tells of the training: how private it was. Whatever else a file says stays behind: accuracies and
# maxima are measured on records, and from a seed the noise could be drawn again.
TOLD = tuple(name for name in READ if name not in ("user", "quantisation"))


def encoder_tables(encoder: Encoder, prefix: str) -> list[Table]:
    """The arrays `weights` and `bias` of the encoder kernel."""
    tables = []
    size = ((f"{prefix}ENCODER_N".upper(), encoder.n), (f"{prefix}ENCODER_L".upper(), encoder.l))
    for name, numbers in (("weights", encoder.flat), ("bias", encoder.bias)):
        about = f"Encoder: the {name} of {encoder.l} hidden units of {encoder.n} features."
        storage = kernel.arrays[name].storage
        constants = size if name == "weights" else ()
        tables.append(Table(f"{prefix}encoder_{name}", storage, numbers, tuple(wrap(about)), constants))
    return tables


def encoder_record(encoder: Encoder) -> dict[str, Any]:
    """What the manifest says of the encoder."""
    columns = None if encoder.columns is None else list(encoder.columns)
    record = {"file": encoder.name, "n": encoder.n, "l": encoder.l, "columns": columns}
    return {**record, "provenance": _provenance(encoder)}


def encoder_file(encoder: Encoder) -> str:
    """The encoder as JSON: its whole numbers and their formats, no decoder, nothing that was measured on records."""
    return as_json(replace(encoder, provenance=_provenance(encoder)), packaged=True)


def trained_line(encoder: Encoder) -> str:
    """A paragraph of a README: what covers the records that the encoder was trained on, as its file tells it."""
    told = _provenance(encoder)
    if "covers" not in told:
        return "\n\n**The encoder's training.** Its file does not say what covers the records it was trained on."
    holds = told.get("covers_short") != "nothing"
    epsilon = told.get("spent_epsilon", "none") if holds else "none"
    told_of = " ".join(told["covers"].split())[:MOST_TOLD]
    said = f"epsilon {epsilon[:MOST_TOLD]} per record; it covers {told_of}"
    return f"\n\n**The encoder's training.** As its file states: {said}."


def _provenance(encoder: Encoder) -> dict[str, str]:
    """What is told, each in a word or a sentence; a list or a dictionary could hold anything."""
    known = {key: encoder.provenance[key] for key in TOLD if key in encoder.provenance}
    return {key: ascii_text(str(value)) for key, value in known.items() if isinstance(value, (str, int, float))}
