"""The paper's net from mean and covariance alone: pseudo-records that have them, and an ordinary training on those."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sensorsim.mechanisms.base import SIGMOID
from sensorsim.training.trained import Part, Trained

if TYPE_CHECKING:
    from sensorsim.hospital.learning import Learnt
    from sensorsim.training.config import Config

QUANTILES = 128  # of a column's distribution
PUBLIC_SEED = 0  # of pseudo-records and first weights: no privacy rests on it
WIDEST = 0.9  # of mu·(1-mu), which no variance within 0 … 1 exceeds


@dataclass(frozen=True)
class Settings:
    """Of the training; chosen on synthetic data."""

    records: int = 4096
    batch: int = 64
    steps: int = 4000
    lr: float = 0.05


FROZEN = Settings()


def net_of(learnt: Learnt, config: Config) -> Trained:
    """One net for all users."""
    return Trained(SIGMOID, (fitted(learnt, config.l, config.sigma, config.bias),) * config.m)


def pseudo_records(learnt: Learnt, count: int, rng: np.random.Generator) -> np.ndarray:
    """Records with the mean and the spread that is expected of them, (count, n), in 0 … 1.

    Each column is a Beta distribution; what ties them together is a normal copula with the correlations of T, the
    covariance and the doubt about the means in one.
    """
    from scipy.special import ndtr
    from scipy.stats import beta

    expected = learnt.expected()
    variance = np.diag(expected)
    mean = np.clip(learnt.mean, 1e-3, 1 - 1e-3)
    most = mean * (1 - mean)
    s = most / np.minimum(variance, WIDEST * most) - 1
    middle = (np.arange(QUANTILES) + 0.5) / QUANTILES
    values = beta.ppf(middle[None], (mean * s)[:, None], ((1 - mean) * s)[:, None])
    sd = np.sqrt(variance)
    root = np.linalg.cholesky(expected / np.outer(sd, sd) + 1e-6 * np.eye(len(sd)))
    latent = rng.standard_normal((count, len(sd))) @ root.T
    place = np.minimum((ndtr(latent) * QUANTILES).astype(np.int64), QUANTILES - 1)
    return np.asarray(values[np.arange(len(sd)), place][:, learnt.column_of])


def fitted(learnt: Learnt, l: int, sigma: float, bias: bool, settings: Settings = FROZEN) -> Part:
    """An ordinary autoencoder, trained on pseudo-records with squared error, as accuracy is measured.

    Its randomness is public and always the same, so that equal releases give equal weights, bit for bit.
    """
    import torch

    from sensorsim.training import model, optimiser

    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(PUBLIC_SEED)
    drawn = pseudo_records(learnt, settings.records, np.random.default_rng(PUBLIC_SEED))
    pool = torch.from_numpy(drawn).float()[None]
    n = drawn.shape[1]
    with torch.inference_mode():
        weights, gradient = (model.allocate(1, n, l, bias, False) for _ in range(2))
        model.initialise(weights, generator)
        update = optimiser.Adam(weights.flat, settings.lr)
        for step in range(settings.steps):
            start = step * settings.batch % (settings.records - settings.batch + 1)
            x = pool[:, start : start + settings.batch]
            reads = x + sigma * torch.randn(x.shape, generator=generator) if sigma else x
            h = model.encode(weights, reads)
            predicted = torch.sigmoid(model.decode(weights, h))
            dz = 4 / settings.batch * (predicted - x) * predicted * (1 - predicted)
            model.backward(weights, gradient, reads, h, dz)
            update.lr = settings.lr * (1 - step / settings.steps)  # to zero, so that the last steps settle
            update.step(gradient.flat)
    return part_of(weights)


def part_of(weights: object, unit: int = 0) -> Part:
    """One unit of torch's parameters as plain arrays; a bias that is not there is zero."""
    W, V, b, d = (getattr(weights, name) for name in ("W", "V", "b", "d"))
    _, n, l = W.shape
    return Part(
        W[unit].double().numpy(),
        np.zeros(l) if b is None else b[unit, 0].double().numpy(),
        V[unit].double().numpy(),
        np.zeros(n) if d is None else d[unit, 0].double().numpy(),
    )
