"""What stands on the y axis of a data figure: accuracy, with its top drawn apart, or R² over the column mean.

Accuracy stands on a log scale of the error 1 - accuracy, better at the top: 99.9 and 99.99 per cent are as far apart as
90 and 99 are. R² stands on a plain scale from a little under 0, where the column mean is, to 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

GREY = "0.45"
LEAST_ERROR = 1e-6  # what is better than this is as good as exact, and stands above the axis
STEPS = ((1,), (1, 2, 5), (1, 1.5, 2, 3, 5, 7), (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9))  # ticks of a decade
ENOUGH = 5  # ticks on an axis
LOWEST_R2 = -0.15  # a model that is worse than the column mean is off the scale, with its number


@dataclass(frozen=True)
class Measure:
    """One field of a result row, as a height in a figure."""

    field: str
    title: str
    log: bool

    def height(self, scores: dict[str, Any], part: str = "") -> float | None:
        """Where a result stands; `part` is "", "_low" or "_high". None where there is no number to show."""
        value = scores.get(self.field + part)
        if value is None or not math.isfinite(value):
            return None
        return max(1 - value / 100, LEAST_ERROR) if self.log else float(value)

    def written(self, height: float) -> str:
        """A height as a reader says it."""
        if self.log:
            more = "≥ " if height <= LEAST_ERROR else ""
            return f"{more}{round(100 * (1 - height), 6):g} %".replace("-", "−")
        return f"{height:.2f}".replace("-", "−")

    def off(self, axis: Any, height: float) -> int:
        """1 where the height is above what the axis shows, -1 where it is below, else 0."""
        bottom, top = axis.get_ylim()
        if min(bottom, top) <= height <= max(bottom, top):
            return 0
        return 1 if (height > top) == (top > bottom) else -1

    def dress(self, axis: Any, heights: Iterable[float]) -> None:
        """Limits around these heights, ticks and titles."""
        known = [height for height in heights if height > LEAST_ERROR] if self.log else list(heights)
        if self.log:
            _dress_accuracy(axis, known or [0.01, 1.0])
        else:
            axis.set_ylim(max(min([0.0, *known]) - 0.05, LOWEST_R2), 1.0)
        _beside_the_axis(axis, self.title, (0, 1), (-7, 11), "right", "0.25", "axes fraction")


ACCURACY = Measure("accuracy", "accuracy", log=True)
R2 = Measure("r2", "R²", log=False)


def _dress_accuracy(axis: Any, errors: list[float]) -> None:
    """Accuracy beside the axis; the error itself, small and grey, further out."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    best, worst = min(errors) / 1.35, max(errors) * 1.35
    axis.set_yscale("log")
    axis.set_ylim(worst, best)
    ticks = log_ticks(best, worst)
    axis.yaxis.set_major_locator(FixedLocator(ticks))
    axis.yaxis.set_minor_locator(NullLocator())
    axis.yaxis.set_major_formatter(FuncFormatter(lambda error, _: ACCURACY.written(error)))
    for tick in ticks:
        _beside_the_axis(
            axis, f"{tick:.8f}".rstrip("0").rstrip("."), (0, tick), (-50, 0), "right", GREY, ("axes fraction", "data")
        )
    _beside_the_axis(axis, "MSE", (0, 1), (-50, 11), "right", GREY, "axes fraction")


def log_ticks(low: float, high: float) -> list[float]:
    """Round numbers between the two, in as many steps of a decade as give enough of them."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in STEPS:
        ticks = [tick for power in powers for step in steps if low <= (tick := step * 10.0**power) <= high]
        if len(ticks) >= ENOUGH:
            break
    return ticks


def _beside_the_axis(
    axis: Any, text: str, place: tuple[float, float], shift: tuple[float, float], side: str, colour: str, within: Any
) -> None:
    """A small text, so many points from a place of the axis."""
    axis.annotate(
        text, place, shift, xycoords=within, textcoords="offset points", ha=side, va="center", fontsize=7, color=colour
    )
