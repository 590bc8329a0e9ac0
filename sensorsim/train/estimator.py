"""What is made of a release: a posterior of each column's mean, and a net trained on what that predicts.

1. The hospital pools the released values of a column over all records. With a prior that no data went into, they give a
   posterior for the column's mean: shrinkage where the noise is large, almost the plain mean where it is small.
2. It draws pseudo-records from the posterior predictive, and trains the autoencoder on them as on any data. The net
   then has the
   smallest expected error *given the release*: it carries through the features that vary or are still uncertain, and
   answers the others with their estimated mean; under environmental noise it learns not to trust its input.

Everything here is post-processing of the release, weights included, however long it trains. The numbers in `Settings`
were chosen on synthetic data alone. None of them is a figure of a column: the prior is the same for every column.
That synthetic set has the marginals of the Fitbit file of March 2016, so for that file the choice was not wholly blind.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from sensorsim.mechanisms.release import Release
from sensorsim.train import model, optimiser
from sensorsim.train.config import Config
from sensorsim.train.data import Dataset
from sensorsim.train.noise import Source

LEVELS, QUANTILES = 48, 64  # grid of column means, grid of a column's quantiles


@dataclass(frozen=True)
class Settings:
    """Frozen; chosen on synthetic data."""

    prior_a: float = 0.5  # Beta prior of a column's mean after division by the column's maximum
    prior_b: float = 2.0
    concentration: float = 3.0  # a column with mean mu is taken for Beta(mu·s, (1-mu)·s)
    factor: float = 0.3  # correlation between columns through one common factor
    records: int = 2048  # pseudo-records per run
    batch: int = 64
    steps: int = 600
    lr: float = 0.1
    squared: bool = True  # squared error, as the accuracy is measured; otherwise cross-entropy


FROZEN = Settings()


def train_on_marginals(
    dataset: Dataset, config: Config, runs: int, source: Source, settings: Settings = FROZEN
) -> model.Parameters:
    """One net per run from the release of all users; every user gets a copy."""
    column_of = column_of_names(dataset.columns)
    posterior = column_posterior(dataset, config, runs, source, settings, column_of)
    pool = pseudo_records(posterior, settings, column_of, source.generator)
    return _every_user(_fit(pool, config, settings, source.generator), config)


def train_on_nothing(dataset: Dataset, config: Config, runs: int, generator: torch.Generator) -> model.Parameters:
    """The same net with no release at all: what the prior alone gives. A trivial predictor."""
    settings, column_of = FROZEN, column_of_names(dataset.columns)
    prior = torch.tensor(_beta_prior(settings), dtype=torch.float32).expand(runs, int(column_of.max()) + 1, -1)
    pool = pseudo_records(prior.contiguous(), settings, column_of, generator)
    return _every_user(_fit(pool, config, settings, generator), config)


def train_on_totals(
    total: Tensor, count: Tensor, sd: float, column_of: Tensor, config: Config, generator: torch.Generator
) -> model.Parameters:
    """One net per run from the sums of released values, (runs, columns), however they came here."""
    pool = pseudo_records(posterior_of(total, count, sd, FROZEN), FROZEN, column_of, generator)
    return _every_user(_fit(pool, config, FROZEN, generator), config)


def column_posterior(
    dataset: Dataset,
    config: Config,
    runs: int,
    source: Source,
    settings: Settings,
    column_of: Tensor,
) -> Tensor:
    """Posterior of every distinct column's mean on the grid, (runs, columns, LEVELS). Reads nothing but the release."""
    mechanism = config.object
    assert isinstance(mechanism, Release)
    x = torch.tensor(dataset.x[~dataset.held_out], dtype=torch.float32)
    drawn = mechanism.draw(x.expand(runs, -1, -1), config, source)
    picked = drawn["weight"] > 0 if "weight" in drawn else torch.ones_like(drawn["released"], dtype=torch.bool)
    released = torch.where(picked, drawn["released"], 0.0).sum(1, dtype=torch.float64)
    total, count = by_column(released, column_of), by_column(picked.sum(1, dtype=torch.float64), column_of)
    worst = mechanism.table(config, dataset.n).estimate_sd
    assert worst is not None
    return posterior_of(total, count, worst, settings)


def posterior_of(total: Tensor, count: Tensor, sd: float, settings: Settings) -> Tensor:
    """Posterior of each column's mean on the grid, (runs, columns, LEVELS), from the sum and the count of its values.

    `sd` is the largest standard deviation that the noise gives one value.
    """
    means = torch.tensor(_grid(), dtype=torch.float64)
    variance = sd**2 + means * (1 - means) / (settings.concentration + 1)
    gap = total[..., None] - count[..., None] * means
    spread = count[..., None].clamp(min=1e-9) * variance
    prior = torch.tensor(_beta_prior(settings), dtype=torch.float64)
    log_posterior = prior.log() - 0.5 * gap.square() / spread - 0.5 * variance.log()
    return torch.softmax(log_posterior, -1).to(torch.float32)


def by_column(values: Tensor, column_of: Tensor) -> Tensor:
    """Sums of features (runs, n) as sums of distinct columns."""
    found = torch.zeros(values.shape[0], int(column_of.max()) + 1, dtype=torch.float64)
    return found.index_add_(1, column_of, values)


def pseudo_records(posterior: Tensor, settings: Settings, column_of: Tensor, generator: torch.Generator) -> Tensor:
    """Records of the posterior predictive, (runs, records, n): for each value a mean, then a draw around it."""
    runs, columns, _ = posterior.shape
    shape = (runs, columns, settings.records)
    edges = posterior.cumsum(-1)
    level = torch.searchsorted(edges, torch.rand(shape, generator=generator)).clamp_(max=LEVELS - 1)
    common = torch.randn((runs, 1, settings.records), generator=generator)
    latent = settings.factor**0.5 * common + (1 - settings.factor) ** 0.5 * torch.randn(shape, generator=generator)
    place = (torch.special.ndtr(latent) * QUANTILES).long().clamp_(max=QUANTILES - 1)
    values = torch.tensor(_beta_quantiles(settings), dtype=torch.float32)[level, place]
    return values[:, column_of].transpose(1, 2).contiguous()


def _fit(pool: Tensor, config: Config, settings: Settings, generator: torch.Generator) -> model.Parameters:
    """An ordinary autoencoder for every run, trained on its pool."""
    runs, records, n = pool.shape
    weights, gradient = (model.allocate(runs, n, config.l, config.bias, False) for _ in range(2))
    model.initialise(weights, generator)
    update = optimiser.Adam(weights.flat, settings.lr)
    for step in range(settings.steps):
        start = step * settings.batch % (records - settings.batch + 1)
        x = pool[:, start : start + settings.batch]
        reads = x
        if config.sigma:
            reads = x + config.sigma * torch.randn(x.shape, generator=generator)
        h = model.encode(weights, reads)
        predicted = torch.sigmoid(model.decode(weights, h))
        dz = (predicted - x) / settings.batch
        if settings.squared:
            dz = 4 * dz * predicted * (1 - predicted)
        model.backward(weights, gradient, reads, h, dz)
        update.lr = settings.lr * (1 - step / settings.steps)  # to zero, so that the last steps settle
        update.step(gradient.flat)
    return weights


def _every_user(one: model.Parameters, config: Config) -> model.Parameters:
    """(runs, …) copied to (runs × m, …)."""
    runs, n, l = one.W.shape
    every = model.allocate(runs * config.m, n, l, config.bias, False)
    for source, target in ((one.W, every.W), (one.V, every.V), (one.b, every.b), (one.d, every.d)):
        if source is not None and target is not None:
            target.copy_(source.repeat_interleave(config.m, 0))
    return every


def column_of_names(columns: tuple[str, ...]) -> Tensor:
    """The number of the distinct column behind every feature: a column that stands twice is one, and that is public."""
    distinct = list(dict.fromkeys(columns))
    return torch.tensor([distinct.index(name) for name in columns])


def _grid() -> np.ndarray:
    return (np.arange(LEVELS) + 0.5) / LEVELS


def _beta_prior(settings: Settings) -> np.ndarray:
    from scipy.stats import beta

    return np.asarray(np.diff(beta.cdf(np.arange(LEVELS + 1) / LEVELS, settings.prior_a, settings.prior_b)) + 1e-300)


def _beta_quantiles(settings: Settings) -> np.ndarray:
    """(LEVELS, QUANTILES): the middle of each quantile of Beta(mu·s, (1-mu)·s)."""
    from scipy.stats import beta

    mu, middle = _grid()[:, None], (np.arange(QUANTILES) + 0.5) / QUANTILES
    return np.asarray(beta.ppf(middle, mu * settings.concentration, (1 - mu) * settings.concentration))
