"""An epsilon in few digits. It is rounded up: what is said is never less than what was proved or accounted."""

from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

SURE = 12  # digits of a float that are of the epsilon, as many as a certificate has: those after are of the arithmetic
WHOLE = 1000  # from here on a whole number is written out


def epsilon(value: float | Decimal | Fraction, digits: int = 4) -> str:
    """So many digits."""
    exact = _exact(value)
    if not exact.is_finite():
        return "no bound"
    rounded = Context(prec=digits, rounding=ROUND_CEILING).plus(exact)
    whole = rounded >= WHOLE and rounded == rounded.to_integral_value()
    return f"{rounded:f}" if whole else f"{float(rounded):.{digits}g}"


def epsilon_to(value: float | Decimal | Fraction | None, decimals: int) -> str:
    """So many digits after the point, for a column; a dash where there is no bound."""
    if value is None or not _exact(value).is_finite():
        return "–"
    return f"{_exact(value).quantize(Decimal(1).scaleb(-decimals), ROUND_CEILING):f}"


def _exact(value: float | Decimal | Fraction) -> Decimal:
    if isinstance(value, Decimal):
        return value
    if isinstance(value, Fraction):
        return Context(prec=SURE, rounding=ROUND_CEILING).divide(Decimal(value.numerator), Decimal(value.denominator))
    return Context(prec=SURE, rounding=ROUND_HALF_EVEN).create_decimal(repr(float(value)))
