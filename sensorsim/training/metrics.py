"""Scores of trivial predictors, for sweeps."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import torch

from sensorsim.training.config import Config
from sensorsim.training.data import Dataset
from sensorsim.training.scoring import PARTS, score
from sensorsim.training.trivial import Predictor, Summary, trivial_scores


def trivial_predictors(dataset: Dataset, config: Config) -> dict[str, Summary]:
    """Scores of the predictors that a trained net has to beat, on the same rows, with the same noise."""
    torch.set_num_threads(1)  # nets this small are faster so, many times where other processes run

    def scored(predictors: list[Predictor]) -> Summary:
        models: Any = [SimpleNamespace(predict=one) for one in predictors]
        scores = score(dataset, config, models, torch.Generator().manual_seed(config.seed or 0))
        means = {name: float(getattr(scores, name).mean()) for name in PARTS}
        return {name: None if math.isnan(value) else value for name, value in means.items()}

    return trivial_scores(dataset, config.l, config.sigma, scored)
