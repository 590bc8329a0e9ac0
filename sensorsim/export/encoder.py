"""The encoder of a package: trained weights as constant arrays."""

from typing import Any

from sensorsim.device.encoder import EncoderWeights, encoder_kernel
from sensorsim.language.c.files import Table
from sensorsim.language.c.text import ascii_text, wrap


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
    provenance = {key: ascii_text(str(value)) for key, value in encoder.provenance.items()}
    return {"file": encoder.name, "n": encoder.n, "l": encoder.l, "columns": encoder.columns, "provenance": provenance}
