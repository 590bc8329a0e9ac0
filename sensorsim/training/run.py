"""Monte-Carlo runs of one configuration as one batched program, on one torch thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from sensorsim.training import model, optimiser, records
from sensorsim.training.config import Config
from sensorsim.training.data import Dataset
from sensorsim.training.noise import Source, Together
from sensorsim.training.order import steps_in_epoch
from sensorsim.training.step import Batch, Step, noise_factor
from sensorsim.training.trained import Trained

Models = model.Parameters | list[Trained]  # of all runs: nets of the loop, or what was made of a release


def train_block(dataset: Dataset, config: Config, runs: int, source: Source | Sequence[Source]) -> Models:
    """Train `runs` copies of the model: from one source, or each from one of its own."""
    torch.set_num_threads(1)
    sources = [source] if isinstance(source, Source) else list(source)
    if config.object.learner(config) != "loop":
        return _from_release(dataset, config, runs, sources)
    with torch.inference_mode():  # no gradient is ever asked of torch: its operations then cost half
        trained = _in_the_loop(dataset, config, runs, sources)
    return model.joined([trained])  # outside, so that what is returned may be used in any way


def _from_release(dataset: Dataset, config: Config, runs: int, sources: list[Source]) -> Models:
    """Everything that is made of a release is post-processing of it; each source has runs of its own."""
    from sensorsim.training.estimator import train_on_release

    each = runs // len(sources)
    return [trained for source in sources for trained in train_on_release(dataset, config, each, source)]


def _in_the_loop(dataset: Dataset, config: Config, runs: int, sources: list[Source]) -> model.Parameters:
    """Step by step over the records."""
    mechanism, units = config.object, runs * config.m
    inside = config.batch == 1 and units > 1 and config.sampling == "epochs"
    weights, gradient = (model.allocate(units, dataset.n, config.l, config.bias, inside) for _ in range(2))
    first_weights(weights, config, dataset, sources)
    read = records.gather(dataset, config, runs, sources)
    read.once.update(mechanism.prepare(Setting(config, read, weights)))
    update = optimiser.make(config.optimiser, weights.flat, config.lr)
    steps = max(1, config.epochs * steps_in_epoch(read.rows_of.shape[1], config))
    linear = config.schedule == "linear"
    step = Step(config, Batch(read.x), weights, gradient, Together(sources, units, inside))
    for place, batch in enumerate(records.batches(read, config, inside, sources)):
        step.batch = batch
        mechanism.step(step)
        if linear:
            update.lr = config.lr * (1 - place / steps)  # to zero, so that the last steps settle
        if batch.absent is None:
            update.step(gradient.flat)
        else:
            update_the_present(update, weights, gradient, batch.absent)
    return weights


def first_weights(weights: model.Parameters, config: Config, dataset: Dataset, sources: Sequence[Source]) -> None:
    """Random ones, each run's from its own source, or those of the net that no record went into."""
    if config.start == "data-free":
        from sensorsim.training.estimator import data_free_start

        start = data_free_start(config, dataset.n, dataset.columns)
        model.copy(model.joined([start] * (len(weights.W) // len(start.W))), weights)
        return
    model.initialise(weights, *(source.generator for source in sources))


def update_the_present(
    update: optimiser.SGD | optimiser.Adam, weights: model.Parameters, gradient: model.Parameters, absent: Tensor
) -> None:
    """One optimiser step; a user with no record left in this epoch keeps weights and moments as they are."""
    kept = [tensor.clone() for tensor in (weights.flat, *update.state)]
    update.step(gradient.flat)
    stays = absent if weights.units_inside else absent[:, None]
    for tensor, old in zip((weights.flat, *update.state), kept, strict=True):
        tensor.copy_(torch.where(stays, old, tensor))


@dataclass(frozen=True)
class Setting:
    """What a mechanism may fix before the first step: the records, the first weights."""

    config: Config
    records: records.Records
    weights: model.Parameters

    @property
    def n(self) -> int:
        return int(self.records.x.shape[1])

    def for_every_record(self, value: Callable[[Tensor, Tensor | None], Tensor]) -> Tensor:
        """value(h, b) of every record at these weights, (rows, runs, 1); some rows at a time."""
        runs, some = self.records.runs, 4096
        found = torch.zeros(self.records.x.shape[0], runs, 1)
        leading = model.joined([self.weights])
        for j, rows in enumerate(self.records.rows_of):
            one = model.user_parameters(leading, self.config.m, j)
            for mine in torch.split(rows[rows >= 0], some):
                h = model.encode(one, self.records.x[mine].expand(runs, -1, -1))
                b = None
                if self.records.noisy is not None:
                    noisy = self.records.noisy[mine].transpose(0, 1).contiguous()
                    b = noise_factor(h, model.encode(one, noisy))
                found[mine] = value(h, b).transpose(0, 1)
        return found
