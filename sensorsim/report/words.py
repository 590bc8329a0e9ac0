"""Numbers of a page in words."""

from sensorsim.cost.cost_text import format_short

MILLION, BILLION = 10**6, 10**9


def energy(microjoule: float | None) -> str:
    return "not known" if microjoule is None else f"{format_short(microjoule)} µJ"


def many(count: float) -> str:
    """A large number as people say it."""
    if count >= BILLION:
        return f"{count / BILLION:.3g} billion"
    return f"{count / MILLION:.3g} million" if count >= MILLION else f"{count:,.0f}"


def percent(share: float) -> str:
    """Three digits: 24.2 %."""
    return f"{100 * share:.3g} %"


def power(delta: float) -> str:
    """1e-6 as it is written."""
    return f"{delta:g}".replace("e-0", "e-")


def score(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{round(value, digits) + 0.0:.{digits}f}"  # no zero below zero


def number(value: float | None, digits: int = 4) -> str:
    """Whole from a thousand on, with separators."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.{digits}g}"
