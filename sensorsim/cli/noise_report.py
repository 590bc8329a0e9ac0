"""How the noise commands describe a table, in each form of output."""

from typing import TYPE_CHECKING, Any

from sensorsim._util.terminal import columns, counted, hung
from sensorsim.noise.certificate import certify
from sensorsim.noise.table_report import SCHEMA_VERSION, Delivered, delivered, table_row

if TYPE_CHECKING:
    from sensorsim.noise.noise_table import NoiseTable

OTHERS = ("best known", "hybrid", "piecewise", "one bit", "Laplace")


def text(path: str, table: "NoiseTable") -> str:
    """A few lines for the terminal."""
    about, proof = delivered(table), certify(table)
    lines = [
        path,
        f"{table.kind} table for epsilon {table.epsilon}: {table.release} of {counted(table.features, 'feature')}",
        f"  size          {about.table_bytes} B; {about.secret_bits} secret bits a draw; on the air "
        f"{about.value_bits} bits a value, {about.bits_on_air} a record",
        f"  one draw      epsilon {_or_none(proof.epsilon_release)}, largest likelihood ratio {_or_none(proof.ratio)}",
        f"  one record    epsilon {_or_none(proof.epsilon_record)} with delta 0",
        f"  proved for    {proof.neighbours}",
        *table.lines(),
        *_yardstick(about),
    ]
    return hung("\n".join(lines), columns())


def _yardstick(about: Delivered) -> list[str]:
    """Standard deviations of an unbiased estimate of one released feature, this table's first."""
    others = ", ".join(f"{name} {_number(getattr(about, _field(name)))}" for name in OTHERS)
    lines = []
    if about.estimate_sd is not None:
        beside = f", {about.estimate_sd / about.best_known_sd:.3f} of the best known" if about.best_known_sd else ""
        lines.append(
            f"  sd of x       {about.estimate_sd:.4g} at the worst x, {about.estimate_sd_mean:.4g} on average, "
            f"in ranges of x{beside}"
        )
    return [*lines, f"  beside it     {others}"]


def _field(name: str) -> str:
    return name.lower().replace(" ", "_") + "_sd"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def data(path: str, table: "NoiseTable") -> dict[str, Any]:
    """The same for JSON."""
    return {"schema_version": SCHEMA_VERSION, **row(path, table)}


def row(path: str, table: "NoiseTable") -> dict[str, Any]:
    """Parameters, what is proved now and what is delivered side by side; exact numbers as text."""
    return {"file": path, **table_row(table)}


def _or_none(value: object) -> str:
    return "unbounded" if value is None else str(value)
