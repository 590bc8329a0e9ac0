"""Describe a noise table: text, JSON data, a frame, and its figures beside other mechanisms. Each proves the table."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError
from sensorsim.noise.baseline import baseline_sds
from sensorsim.noise.certificate import Certificate, certify

if TYPE_CHECKING:
    import pandas as pd

    from sensorsim.noise.noise_table import NoiseTable

SCHEMA_VERSION = 2
LOCAL = "local, per record"
_NAMES = ("kind", "features", "release", "frac_bits")


@dataclass(frozen=True)
class Delivered:
    """Standard deviations of an unbiased estimate of one released feature, in ranges of x; None where unknown."""

    secret_bits: int  # per value
    value_bits: int  # of one value on the air
    bits_on_air: int  # of a record: its values, and which features they are of
    table_bytes: int
    estimate_sd: float | None  # at the x where it is largest
    estimate_sd_mean: float | None  # root of the mean variance over all x
    best_known_sd: float | None  # the best that a linear program found for this epsilon
    hybrid_sd: float
    piecewise_sd: float
    one_bit_sd: float
    laplace_sd: float


def delivered(table: "NoiseTable") -> Delivered:
    """Return sizes and accuracy of a table, and the baselines at the epsilon of one released feature."""
    names = ("secret_bits", "value_bits", "bits_on_air", "table_bytes", "estimate_sd", "estimate_sd_mean")
    own: dict[str, Any] = {name: getattr(table, name) for name in names}
    return Delivered(**own, **baseline_sds(float(table.share)))


def promise(table: "NoiseTable") -> str:
    """Prove a table and say what protects a record."""
    try:
        proof = certify(table)
    except InputError as error:
        return f"NOTHING IS PROVED: {error}"
    if proof.holds(table.epsilon):
        return f"epsilon {proof.epsilon_record} per record, proved now"
    return f"NOT PRIVATE: it does not keep its nominal epsilon {table.epsilon}"


def certificate_row(proof: Certificate) -> dict[str, str | None]:
    """Return a certificate as plain data, exact numbers as text."""
    return {name: None if value is None else str(value) for name, value in asdict(proof).items()}


def table_row(table: "NoiseTable") -> dict[str, Any]:
    """Return parameters, the certificate computed now, and what the table delivers, as one row."""
    return (
        {"epsilon": str(table.epsilon)}
        | {name: getattr(table, name) for name in _NAMES}
        | certificate_row(certify(table))
        | asdict(delivered(table))
        | table.details()
    )


def table_dict(table: "NoiseTable") -> dict[str, Any]:
    """Return the row of a table for JSON, with the version of its schema."""
    return {"schema_version": SCHEMA_VERSION, **table_row(table)}


def table_facts(table: "NoiseTable") -> dict[str, str]:
    """Return what a notebook shows of a table: protection, accuracy, sizes."""
    about = delivered(table)
    facts = {"protects": f"{promise(table)}; {LOCAL}"}
    if about.estimate_sd is not None:
        beside = f", {about.estimate_sd / about.best_known_sd:.3f} of the best known" if about.best_known_sd else ""
        facts["sd of an estimate"] = f"{about.estimate_sd:.4g} ranges of x at the worst x{beside}"
    facts["firmware stores"] = f"{about.table_bytes} bytes; {about.secret_bits} secret bits a draw"
    facts["on the air"] = f"{about.bits_on_air} bits a record"
    return facts


def table_frame(table: "NoiseTable") -> "pd.DataFrame":
    """Return every value that can be released, and its probability at x = 0, 1/2 and 1."""
    import pandas as pd

    shares: dict[float, dict[int, float]] = {}
    for x in (0.0, 0.5, 1.0):
        values, counts = table.distribution(round(x * (1 << table.frac_bits)))
        total = int(counts.sum())
        shares[x] = {int(value): int(count) / total for value, count in zip(values, counts, strict=True)}
    every = sorted(set().union(*shares.values()))
    columns = {f"probability_at_{x:g}": [share.get(value, 0.0) for value in every] for x, share in shares.items()}
    return pd.DataFrame({"value": every, **columns})
