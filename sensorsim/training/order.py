"""Choose the records of each step: every record once an epoch in random order, or Poisson sampling."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from sensorsim.training.config import Config
from sensorsim.training.noise import Source


def steps_in_epoch(most: int, config: Config) -> int:
    """Return the steps of one epoch; `most` is the number of records of the largest user."""
    if config.sampling == "poisson":
        most = config.records or most  # what the accountant counted with
    return -(-most // config.batch)


def chosen_in_epoch(rows_of: Tensor, runs: int, config: Config, sources: Sequence[Source]) -> Tensor:
    """Return row numbers (U, steps, B), padded with -1; unit r·m + j is user j of run r."""
    made = _poisson if config.sampling == "poisson" else _shuffled
    return made(rows_of, runs // len(sources), config, sources)


def _shuffled(rows_of: Tensor, each: int, config: Config, sources: Sequence[Source]) -> Tensor:
    """Let each unit read its records once, in an order of its own."""
    m, most = rows_of.shape
    units = m * each * len(sources)
    steps = steps_in_epoch(most, config)
    if steps == 1:  # needs no order, and no padding up to the batch
        return rows_of.repeat(units // m, 1)[:, None]
    places = torch.cat([torch.rand(m * each, most, generator=source.generator) for source in sources])
    absent = (rows_of < 0).repeat(units // m, 1)
    order = (places + 2.0 * absent if bool(absent.any()) else places).argsort(1)
    chosen = torch.full((units, steps * config.batch), -1, dtype=torch.int64)
    user = torch.arange(units)[:, None] % m
    chosen[:, :most] = rows_of[user, order]
    return chosen.view(units, steps, config.batch)


def _poisson(rows_of: Tensor, each: int, config: Config, sources: Sequence[Source]) -> Tensor:
    """Sample each record for each step with probability batch/records, independently.

    The epsilon depends on these draws, so they use the mechanism's own random words. No record is left out: the width
    is that of the largest batch drawn.
    """
    most = rows_of.shape[1]
    steps = steps_in_epoch(most, config)
    q = min(1.0, config.batch / (config.records or most))
    joined = []
    for source, _, mine in itertools.product(sources, range(each), rows_of):
        own = mine[mine >= 0]
        hits = torch.from_numpy(bernoulli_places(steps * len(own), q, source))
        step, place = hits // len(own), hits % len(own)
        joined.append((step, own[place], torch.bincount(step, minlength=steps)))
    width = max(int(count.max()) for _, _, count in joined)
    chosen = torch.full((len(joined), steps, width), -1, dtype=torch.int64)
    for unit, (step, row, count) in enumerate(joined):
        first = count.cumsum(0) - count
        chosen[unit, step, torch.arange(len(step)) - first[step]] = row
    return chosen


def bernoulli_places(total: int, q: float, source: Source) -> np.ndarray:
    """Return the positions of successes among `total` Bernoulli trials of probability q, from the gaps between them.

    A gap of g zeros has probability (1-q)^g·q: the floor of ln(u)/ln(1-q). It takes a draw per success, not per trial.
    """
    if q >= 1.0:
        return np.arange(total)
    found: list[np.ndarray] = []
    last, some = -1, int(total * q + 6 * math.sqrt(total * q)) + 16
    while last < total:
        gaps = np.floor(np.log(source.words.uniform(some)) / math.log1p(-q))
        places = last + np.cumsum(np.minimum(gaps, total) + 1).astype(np.int64)
        found.append(places)
        last = int(places[-1])
    places = np.concatenate(found)
    return np.asarray(places[places < total])
