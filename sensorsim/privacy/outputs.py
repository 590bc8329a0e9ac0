"""What a table delivers, beside what others do at the same epsilon."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sensorsim.privacy import yardstick

if TYPE_CHECKING:
    from sensorsim.privacy.tables import NoiseTable


@dataclass(frozen=True)
class Delivered:
    """Standard deviations of an unbiased estimate of one released feature, in ranges of x; None where none is known."""

    secret_bits: int  # that one value takes
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
    """The yardstick of a table, at the epsilon of one released feature."""
    share = float(table.share)
    return Delivered(
        secret_bits=table.secret_bits,
        value_bits=table.value_bits,
        bits_on_air=table.bits_on_air,
        table_bytes=table.table_bytes,
        estimate_sd=table.estimate_sd,
        estimate_sd_mean=table.estimate_sd_mean,
        best_known_sd=yardstick.best_known_sd(share),
        hybrid_sd=yardstick.hybrid_sd(share),
        piecewise_sd=yardstick.piecewise_sd(share),
        one_bit_sd=yardstick.one_bit_sd(share),
        laplace_sd=yardstick.laplace_sd(share),
    )
