"""A noise table in words, as data and as a frame. Its certificate is proved whenever something is said of it."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sensorsim.errors import InputError
from sensorsim.privacy.certificate import Certificate, certify
from sensorsim.privacy.outputs import delivered

if TYPE_CHECKING:
    import pandas as pd

    from sensorsim.privacy.tables import NoiseTable

SCHEMA_VERSION = 2
LOCAL = "local, per record"
_NAMES = ("kind", "features", "release", "frac_bits")


def promise(table: "NoiseTable") -> str:
    """What a record is protected by, proved now."""
    try:
        proof = certify(table)
    except InputError as error:
        return f"NOTHING IS PROVED: {error}"
    if proof.holds(table.epsilon):
        return f"epsilon {proof.epsilon_record} per record, proved now"
    return f"NOT PRIVATE: it does not keep its nominal epsilon {table.epsilon}"


def certificate_row(proof: Certificate) -> dict[str, str | None]:
    """A certificate as plain data; exact numbers as text."""
    return {name: None if value is None else str(value) for name, value in asdict(proof).items()}


def table_row(table: "NoiseTable") -> dict[str, Any]:
    """Parameters, what is proved now and what is delivered, side by side."""
    return (
        {"epsilon": str(table.epsilon)}
        | {name: getattr(table, name) for name in _NAMES}
        | certificate_row(certify(table))
        | asdict(delivered(table))
        | table.details()
    )


def table_dict(table: "NoiseTable") -> dict[str, Any]:
    """The same for JSON."""
    return {"schema_version": SCHEMA_VERSION, **table_row(table)}


def table_facts(table: "NoiseTable") -> dict[str, str]:
    """For a notebook: what is proved, what it delivers, what it takes."""
    about = delivered(table)
    facts = {"protects": f"{promise(table)}; {LOCAL}"}
    if about.estimate_sd is not None:
        beside = f", {about.estimate_sd / about.best_known_sd:.3f} of the best known" if about.best_known_sd else ""
        facts["sd of an estimate"] = f"{about.estimate_sd:.4g} ranges of x at the worst x{beside}"
    facts["firmware stores"] = f"{about.table_bytes} bytes; {about.secret_bits} secret bits a draw"
    facts["on the air"] = f"{about.bits_on_air} bits a record"
    return facts


def table_frame(table: "NoiseTable") -> "pd.DataFrame":
    """Every value that can be released, and its probability at x = 0, 1/2 and 1."""
    import pandas as pd

    shares: dict[float, dict[int, float]] = {}
    for x in (0.0, 0.5, 1.0):
        values, counts = table.distribution(round(x * (1 << table.frac_bits)))
        total = int(counts.sum())
        shares[x] = {int(value): int(count) / total for value, count in zip(values, counts, strict=True)}
    every = sorted(set().union(*shares.values()))
    columns = {f"probability_at_{x:g}": [share.get(value, 0.0) for value in every] for x, share in shares.items()}
    return pd.DataFrame({"value": every, **columns})
