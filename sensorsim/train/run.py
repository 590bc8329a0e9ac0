"""All Monte-Carlo runs of one configuration as one batched program, on one torch thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from sensorsim.train import model, optimiser
from sensorsim.train.config import Config
from sensorsim.train.data import Dataset
from sensorsim.train.estimator import train_on_marginals
from sensorsim.train.noise import Source
from sensorsim.train.step import Batch, Step, noise_factor

RUNS_AT_ONCE = 128  # bounds memory: blocks of runs, each with a seed of its own


@dataclass(frozen=True)
class Records:
    """The training records of every user, and what is drawn once for each (rows, runs, …)."""

    x: Tensor  # (rows, n)
    rows_of: Tensor  # (m, most) row numbers, -1 where a user has fewer
    runs: int
    once: dict[str, Tensor]
    noisy: Tensor | None  # (rows, runs, n)


def train_block(dataset: Dataset, config: Config, runs: int, source: Source) -> model.Parameters:
    """Train `runs` copies of the model."""
    torch.set_num_threads(1)
    learners = {"loop": _in_the_loop, "marginals": train_on_marginals}
    return learners[config.object.learner(config)](dataset, config, runs, source)


def _in_the_loop(dataset: Dataset, config: Config, runs: int, source: Source) -> model.Parameters:
    """Step by step over the records."""
    mechanism = config.object
    units = runs * config.m
    inside = config.batch == 1
    weights = model.allocate(units, dataset.n, config.l, config.bias, inside)
    gradient = model.allocate(units, dataset.n, config.l, config.bias, inside)
    model.initialise(weights, source.generator)
    records = _records(dataset, config, runs, source)
    records.once.update(mechanism.prepare(Setting(config, records, weights)))
    update = optimiser.make(config.optimiser, weights.flat, config.lr)
    for _ in range(config.epochs):
        for batch in _epoch(records, config, inside, source):
            mechanism.step(Step(config, batch, weights, gradient, source))
            _update(update, weights, gradient, batch)
    return weights


@dataclass(frozen=True)
class Setting:
    """What a mechanism may fix before the first step: the records, the first weights."""

    config: Config
    records: Records
    weights: model.Parameters

    @property
    def n(self) -> int:
        return int(self.records.x.shape[1])

    def for_every_record(self, value: Callable[[Tensor, Tensor | None], Tensor]) -> Tensor:
        """value(h, b) of every record at these weights, (rows, runs, 1)."""
        found = torch.zeros(self.records.x.shape[0], self.records.runs, 1)
        units, n, l = self.weights.W.shape
        flat = model.allocate(units, n, l, self.weights.b is not None, False)
        copy(self.weights, flat)
        for j, rows in enumerate(self.records.rows_of):
            mine = rows[rows >= 0]
            one = user_parameters(flat, self.config.m, j)
            h = model.encode(one, self.records.x[mine].expand(self.records.runs, -1, -1))
            b = None
            if self.records.noisy is not None:
                noisy = self.records.noisy[mine].transpose(0, 1).contiguous()
                b = noise_factor(h, model.encode(one, noisy))
            found[mine] = value(h, b).transpose(0, 1)
        return found


def _update(
    update: optimiser.SGD | optimiser.Adam, weights: model.Parameters, gradient: model.Parameters, batch: Batch
) -> None:
    """One optimiser step; a user with no record left in this epoch keeps weights and moments as they are."""
    absent = None if batch.present is None else batch.present.amax((1, 2)) == 0
    if absent is None or not bool(absent.any()):
        update.step(gradient.flat)
        return
    kept = [tensor.clone() for tensor in (weights.flat, *update.state)]
    update.step(gradient.flat)
    stays = absent if weights.units_inside else absent[:, None]
    for tensor, old in zip((weights.flat, *update.state), kept, strict=True):
        tensor.copy_(torch.where(stays, old, tensor))


def _records(dataset: Dataset, config: Config, runs: int, source: Source) -> Records:
    """Training rows by user, and all that is drawn once per record."""
    x = torch.tensor(dataset.x, dtype=torch.float32)
    rows = [torch.tensor(((dataset.user == j) & ~dataset.held_out).nonzero()[0]) for j in range(config.m)]
    most = max(map(len, rows))
    rows_of = torch.full((config.m, most), -1, dtype=torch.int64)
    for j, mine in enumerate(rows):
        rows_of[j, : len(mine)] = mine
    shape = (x.shape[0], runs, dataset.n)
    noisy = None
    if config.sigma:
        noisy = x[:, None] + config.sigma * torch.randn(shape, generator=source.generator)
    once = {} if config.redraw else config.object.draw(x[:, None].expand(shape), config, source)
    return Records(x, rows_of, runs, once, noisy)


def copy(source: model.Parameters, target: model.Parameters) -> None:
    for old, new in ((source.W, target.W), (source.V, target.V), (source.b, target.b), (source.d, target.d)):
        if old is not None and new is not None:
            new.copy_(old)


def user_parameters(weights: model.Parameters, m: int, j: int) -> model.Parameters:
    """User j of every run: (runs, …) views."""
    b, d = (None if t is None else t[j::m] for t in (weights.b, weights.d))
    return model.Parameters(weights.flat, weights.W[j::m], weights.V[j::m], b, d, weights.units_inside)


def _epoch(records: Records, config: Config, inside: bool, source: Source) -> Iterator[Batch]:
    """The batches of one epoch; each unit reads its records once, in an order of its own."""
    m, most = records.rows_of.shape
    units = records.runs * m
    user = torch.arange(units) % m
    run = torch.arange(units) // m
    rows = records.rows_of[user]
    order = (torch.rand(units, most, generator=source.generator) + 2.0 * (rows < 0)).argsort(1)
    steps = -(-most // config.batch)
    chosen = torch.full((units, steps * config.batch), -1, dtype=torch.int64)
    chosen[:, :most] = rows.gather(1, order)
    index = chosen.t().clamp(min=0)  # (steps·B, U)
    present = chosen.t() >= 0
    full = present.reshape(steps, -1).all(1).tolist()
    x = records.x[index]
    drawn = {name: tensor[index, run] for name, tensor in records.once.items()}
    if config.redraw:
        drawn |= config.object.draw(x, config, source)

    def arranged(tensor: Tensor) -> tuple[Tensor, ...]:
        return _arranged(tensor, steps, config.batch, inside).unbind(0)

    xs, there = arranged(x), arranged(present[..., None] / config.batch)
    noisy = None if records.noisy is None else arranged(records.noisy[index, run])
    parts = {name: arranged(tensor) for name, tensor in drawn.items()}
    for step in range(steps):
        whole = config.batch == 1 and full[step]
        yield Batch(
            xs[step],
            None if noisy is None else noisy[step],
            None if whole else there[step],
            {name: tensors[step] for name, tensors in parts.items()},
        )


def _arranged(tensor: Tensor, steps: int, batch: int, inside: bool) -> Tensor:
    """(steps·B, U, width) as (steps, U, B, width), with the units innermost in memory where asked."""
    split = tensor.reshape(steps, batch, *tensor.shape[1:])
    if inside:
        return split.permute(0, 1, 3, 2).contiguous().permute(0, 3, 1, 2)
    return split.transpose(1, 2).contiguous()
