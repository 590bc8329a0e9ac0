"""Numbers of a plan in words."""

from sensorsim.plan.asked import COVARIANCE

MOST_DIGITS = 17


def span(days: int) -> str:
    """How often an estimate comes, in words."""
    return {1: "a day", 7: "a week", 30: "a month", 365: "a year"}.get(days, f"in {days:,} days")


def shown(half: float, goal: str) -> str:
    """An interval's half width in words."""
    return f"{half:.2g} of a correlation" if goal == COVARIANCE else f"{digits(100 * half)} % of the range"


def bare(half: float, goal: str) -> str:
    """The same in short."""
    return f"{half:g}" if goal == COVARIANCE else f"{digits(100 * half)} %"


def missed(half: float, wanted: float, goal: str) -> tuple[str, str]:
    """Two half widths in words, with as many digits as it takes to tell them apart."""
    if shown(half, goal).split()[0] != bare(wanted, goal).split()[0]:
        return shown(half, goal), bare(wanted, goal)
    times, unit, short = (1, " of a correlation", "") if goal == COVARIANCE else (100, " % of the range", " %")
    for many in range(3, MOST_DIGITS):
        told = [f"{times * value:.{many}g}" for value in (half, wanted)]
        if told[0] != told[1]:
            break
    return told[0] + unit, told[1] + short


def digits(value: float) -> str:
    return f"{value:.3g}" if value < 10 else f"{value:.1f}"
