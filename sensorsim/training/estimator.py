"""What is made of a release: mean and covariance by `hospital.learn`, then a map, or the paper's net on pseudo-records.

linear     encoder and decoder in closed form: the best map through l numbers for that mean and covariance
sigmoid    the paper's net. The hospital draws pseudo-records that have this mean, this covariance and what is not known
           of the means, and trains on them as on any data: it then has the smallest expected error given the release.

Everything here is post-processing of the release, weights included, however long it trains. With no packet at all the
same code gives the data-free map: what the prior alone is worth, and what nothing private should fall below.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from sensorsim.hospital.learning import (
    Learnt,
    column_of_names,
    known_columns,
    learn,
    linear_map,
    nothing_known,
    share_of,
    sketch_of,
)
from sensorsim.mechanisms.base import LINEAR
from sensorsim.mechanisms.release import Release
from sensorsim.training.released import feature_sums, on_the_lattice, sketch_sums
from sensorsim.training.trained import Part, Trained
from sensorsim.training.trivial import moments

if TYPE_CHECKING:
    from sensorsim.training import model
    from sensorsim.training.config import Config
    from sensorsim.training.data import Dataset
    from sensorsim.training.noise import Source

EXACT = 1e-12  # variance of a mean that is known


def train_on_release(dataset: Dataset, config: Config, runs: int, source: Source) -> list[Trained]:
    """A model for each run from releases of all users' records; every user gets a copy."""
    return [model_of(learnt_from(dataset, config, source), config) for _ in range(runs)]


def learnt_from(dataset: Dataset, config: Config, source: Source) -> Learnt:
    """What the hospital knows when every training record was released once. Reads nothing but the releases."""
    mechanism, column_of = config.object, column_of_names(dataset.columns)
    if not mechanism.private:
        return known_exactly(dataset, column_of)
    assert isinstance(mechanism, Release)
    table = mechanism.table(config, dataset.n)
    rows = np.flatnonzero(~dataset.held_out)
    noisy = config.sigma if config.release_sees == "noisy" else 0.0
    sketching = sketching_records(config, len(rows), dataset.n)
    if sketching:  # which records sketch is chosen at random, and public
        import torch

        rows = rows[torch.randperm(len(rows), generator=source.generator).numpy()]
    seen = on_the_lattice(_delivered(dataset.x[rows[sketching:]], noisy, source))
    sums = feature_sums(seen, table, source.seed())
    if not sketching:
        return learn(table, sums, column_of, sigma=noisy)
    sketch = sketch_of(known_columns(table, sums, column_of), column_of)
    second = on_the_lattice(dataset.x[rows[:sketching]])
    return learn(table, sums, column_of, sketch, sketch_sums(second, table, sketch, source.seed()))


def known_exactly(dataset: Dataset, column_of: np.ndarray) -> Learnt:
    """What a hospital knows that reads the training records themselves: no privacy."""
    first = np.unique(column_of, return_index=True)[1]  # a column that stands twice counts once
    mean, covariance = moments(dataset.x, ~dataset.held_out)
    return Learnt(mean[first], np.full(len(first), EXACT), covariance[np.ix_(first, first)], column_of)


def sketching_records(config: Config, records: int, n: int) -> int:
    """How many of the records sketch: as told, else by how many there are for each entry of the covariance."""
    mechanism = config.object
    assert isinstance(mechanism, Release)
    if not mechanism.sketches or (config.release_sees == "noisy" and config.sigma):
        return 0  # a square of what the environment has moved says nothing of the covariance
    share = share_of(records, n, mechanism.table(config, n)) if config.share is None else config.share
    return round(share * records)


def _delivered(x: np.ndarray, sigma: float, source: Source) -> np.ndarray:
    """The record, or what the sensor delivers of it under the environment's noise."""
    if not sigma:
        return x
    import torch

    return np.asarray(x + sigma * torch.randn(x.shape, generator=source.generator).numpy())


def model_of(learnt: Learnt, config: Config) -> Trained:
    """The model that a configuration asks for: the same bits for the same release."""
    if config.map == LINEAR:
        part = Part(*linear_map(learnt, config.l, config.sigma))
        return Trained(LINEAR, (part,) * config.m)
    from sensorsim.training.pseudo import net_of

    return net_of(learnt, config)


def data_free(columns: tuple[str, ...], l: int, sigma: float = 0.0) -> Trained:
    """The linear map with no release at all, for any user: what the prior alone gives. A trivial predictor."""
    return Trained(LINEAR, (Part(*linear_map(nothing_known(column_of_names(columns)), l, sigma)),))


def data_free_start(config: Config, n: int, columns: tuple[str, ...]) -> model.Parameters:
    """The paper's net with no release at all, for every user: where a loop may start without having seen a record."""
    from sensorsim.training import model

    made = _data_free_net(config.l, config.sigma, config.bias, columns)
    start = model.allocate(config.m, n, config.l, config.bias, False)
    for target, value in ((start.W, made.W), (start.V, made.V), (start.b, made.b), (start.d, made.d)):
        if target is not None:
            import torch

            target.copy_(torch.from_numpy(value).float().expand_as(target))
    return start


@lru_cache(maxsize=32)
def _data_free_net(l: int, sigma: float, bias: bool, columns: tuple[str, ...]) -> Part:
    from sensorsim.training.pseudo import fitted

    return fitted(nothing_known(column_of_names(columns)), l, sigma, bias)
