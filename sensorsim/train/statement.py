"""What a configuration has spent per record, and what that covers. Every result carries one of these."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from sensorsim.train.config import RELEASING, Config

WEIGHTS = "everything computed from the release, the weights included"
COEFFICIENTS = "the perturbed coefficients alone: the forward pass reads raw records, so the weights are not covered"
GRADIENTS = "the perturbed z-gradients alone: the forward pass reads raw records, so the weights are not covered"


@dataclass(frozen=True)
class Statement:
    """Epsilon and delta of one record, against its replacement by any other."""

    nominal_epsilon: float | None
    spent_epsilon: float | None  # None: no bound
    delta: float
    covers: str

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def statement(config: Config, n: int, normalise: str = "max") -> Statement:
    """The statement of a checked configuration."""
    spent, delta, covers = _spent(config, n)
    if normalise == "max" and spent is not None:
        covers += "; not the column maxima that the data were divided by"
    return Statement(config.epsilon, spent, delta, covers)


def _spent(config: Config, n: int) -> tuple[float | None, float, str]:
    if config.mechanism == "none" or config.epsilon is None:
        return None, 0.0, "nothing"
    draws = max(config.epochs, 1) if config.redraw else 1
    if config.mechanism == "dpsgd-weights":
        return config.epsilon, config.delta if config.noise == "gaussian" else 0.0, "the weights and every step towards them"
    if config.mechanism in RELEASING:
        return _released_epsilon(config, n) * draws, 0.0, WEIGHTS if config.reads == "released" else COEFFICIENTS
    if config.mechanism == "dpsgd":
        return _spent_dpsgd(config, n, draws)
    return _spent_spof(config, draws, n)


def _released_epsilon(config: Config, n: int) -> float:
    from sensorsim.train.noise import table
    from sensorsim.train.run import features_per_record

    assert config.epsilon is not None
    k = n if config.mechanism == "exact" else features_per_record(config, n)
    return k * table(config.epsilon / k).epsilon


def _spent_dpsgd(config: Config, n: int, draws: int) -> tuple[float | None, float, str]:
    from sensorsim.train.mechanisms import can_clip

    assert config.epsilon is not None
    if can_clip(n, config.C):
        return None, 0.0, "nothing: the printed scale is n or 2nC by whether the private gradient clipped"
    if config.sigma and config.reads == "raw":
        return None, 0.0, "nothing: for noisy inputs the printed factor b_j depends on private data"
    return config.epsilon * draws, 0.0, WEIGHTS if config.reads == "released" else GRADIENTS


def _spent_spof(config: Config, draws: int, n: int) -> tuple[float | None, float, str]:
    """Two coefficients at L1 sensitivity 3n/2 and scale Δ̂/(sqrt(2)·eps)."""
    from sensorsim.train.mechanisms import spof_scale

    assert config.epsilon is not None
    if config.reads == "raw" and config.c:
        return None, 0.0, "nothing: the printed scale with c > 0 depends on private data"
    if config.reads == "raw" and config.sigma:
        return None, 0.0, "nothing: for noisy inputs the printed factor b_j depends on private data"
    scale = float(spof_scale(config.epsilon, n, config.c * config.l))
    return draws * 1.5 * n / scale, 0.0, WEIGHTS if config.reads == "released" else COEFFICIENTS


def weight_noise_scale(config: Config, weights: int) -> float:
    """Noise on the sum of a batch's clipped gradients so that a record, read once per epoch, spends (epsilon, delta) in all.

    Replacing a record moves one batch per epoch by at most 2C in L2, 2C·sqrt(weights) in L1. No amplification by sampling
    is claimed: the order of records is not part of the secret.
    """
    assert config.epsilon is not None
    epochs = max(config.epochs, 1)
    if config.noise == "laplace":
        return epochs * 2 * config.C * math.sqrt(weights) / config.epsilon
    from scipy.optimize import brentq

    mu = brentq(lambda mu: gaussian_delta(config.epsilon or 0.0, mu) - config.delta, 1e-6, 50.0)
    return 2 * config.C * math.sqrt(epochs) / float(mu)


def gaussian_delta(epsilon: float, mu: float) -> float:
    """delta of a Gaussian mechanism with sensitivity/deviation = mu (Balle and Wang)."""
    from scipy.special import log_ndtr, ndtr

    return float(ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))))
