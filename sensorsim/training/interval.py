"""The interval of a mean over runs. Without torch, so that stored runs can be read where it is not installed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def interval(values: list[float | None] | np.ndarray) -> dict[str, Any]:
    """Mean, standard deviation and 95 % interval of the mean over runs (Student's t).

    With a diverged run there is no mean: it is null, and `of_the_rest` says what the other runs gave.
    """
    from scipy.stats import t

    numbers = np.array([math.nan if value is None else value for value in values], dtype=np.float64)
    rest = numbers[np.isfinite(numbers)]
    if len(rest) == 0:
        return {"mean": None, "sd": None, "low": None, "high": None, "of_the_rest": None}
    sd = float(rest.std(ddof=1)) if len(rest) > 1 else None
    half = float(t.ppf(0.975, len(rest) - 1)) * sd / math.sqrt(len(rest)) if sd is not None else None
    mean = float(rest.mean())
    if len(rest) < len(numbers):
        return {"mean": None, "sd": None, "low": None, "high": None, "of_the_rest": mean}
    return {
        "mean": mean,
        "sd": sd,
        "low": None if half is None else mean - half,
        "high": None if half is None else mean + half,
        "of_the_rest": mean,
    }
