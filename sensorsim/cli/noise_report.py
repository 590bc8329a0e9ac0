"""How the noise commands describe a table, in each form of output."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sensorsim.privacy.outputs import summary

if TYPE_CHECKING:
    from sensorsim.privacy.tables import NoiseTable


def text(path: str, table: "NoiseTable") -> str:
    """A few lines for the terminal."""
    about, proof = summary(table), table.certificate
    assert proof is not None
    numbers = "" if table.coefficients == 1 else f", {table.coefficients} noisy coefficients each"
    lines = [
        path,
        f"{table.kind} table for epsilon {table.epsilon}: {table.release} of {table.features} features{numbers}",
        f"  size          {about.entries} entries of {about.bytes_per_entry} B, {about.secret_bits} secret bits a draw",
        f"  one draw      epsilon {_or_none(proof.epsilon_release)}, largest likelihood ratio {_or_none(proof.ratio)}",
        f"  one record    epsilon {_or_none(proof.epsilon_record)} with delta 0",
    ]
    if table.kind != "stairs":
        lines += [
            f"                delta {_short(proof.delta_record)} at epsilon {table.epsilon}"
            f" (at least {_short(proof.delta_record_below)}); one draw {_short(proof.delta_release)}"
        ]
    lines += [
        f"  proved for    {proof.neighbours}",
        f"  noise         sd {about.noise_sd:.4g} ranges of x as drawn; Laplace {about.laplace_sd:.4g}, "
        f"best staircase {about.best_staircase_sd:.4g}",
    ]
    if about.gain is not None and about.estimate_sd is not None:
        lines += [
            f"  estimate      y/gain is unbiased, gain {about.gain:.4f}, sd {about.estimate_sd:.4g}: "
            f"{about.estimate_sd / about.best_staircase_sd:.3f} of the best staircase"
        ]
    return "\n".join(lines)


def data(path: str, table: "NoiseTable") -> dict[str, Any]:
    """The same for JSON."""
    return {"schema_version": 1, **row(path, table)}


def row(path: str, table: "NoiseTable") -> dict[str, Any]:
    """Parameters, certificate and noise side by side; exact numbers as text."""
    names = ("kind", "features", "release", "coefficients", "frac_bits", "stair_bits", "limit", "seed")
    assert table.certificate is not None
    proof = {k: None if v is None else str(v) for k, v in asdict(table.certificate).items()}
    return (
        {"file": path, "epsilon": str(table.epsilon)}
        | {n: getattr(table, n) for n in names}
        | proof
        | asdict(summary(table))
    )


def _or_none(value: object) -> str:
    return "unbounded" if value is None else str(value)


def _short(value: object) -> str:
    return f"{float(str(value)):.6g}"
