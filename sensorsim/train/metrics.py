"""Scores of trivial predictors and intervals over runs, for sweeps."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from sensorsim.train.config import Config
from sensorsim.train.data import Dataset
from sensorsim.train.scoring import PARTS, score
from sensorsim.train.trivial import Predictor, Summary, trivial_scores


def trivial_predictors(dataset: Dataset, config: Config) -> dict[str, Summary]:
    """Scores of the predictors that a trained net has to beat, on the same rows, with the same noise."""
    torch.set_num_threads(1)  # nets this small are faster so, many times where other processes run

    def scored(predictors: list[Predictor]) -> Summary:
        models: Any = [SimpleNamespace(predict=one) for one in predictors]
        scores = score(dataset, config, models, torch.Generator().manual_seed(config.seed or 0))
        means = {name: float(getattr(scores, name).mean()) for name in PARTS}
        return {name: None if math.isnan(value) else value for name, value in means.items()}

    return trivial_scores(dataset, config.l, config.sigma, scored)


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
