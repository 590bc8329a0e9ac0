"""The training loop: which records each step reads, their batches, and Monte-Carlo runs as one batched program.

All runs of a configuration train together on one torch thread. What is drawn once for a record is stored as (rows,
runs, n) floats; batches are gathered for a few steps at a time.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from sensorsim.datasets.dataset import Dataset
from sensorsim.training import model
from sensorsim.training.config import Config
from sensorsim.training.step import Batch, Source, Step, Together, noise_factor
from sensorsim.training.trained import Trained, data_free_start, learnt_from, model_of

GATHERED = 1 << 25  # bytes of batches gathered at once, if MOST_RUNS were trained
KEPT = 400 << 20  # bytes that the runs trained at once may keep
MOST_RUNS = 128  # trained at once; more are no faster
Models = model.Parameters | list[Trained]  # of all runs: nets of the loop, or what was made of a release


@dataclass(frozen=True)
class Records:
    """Training rows by user, and what is drawn once for each row."""

    x: Tensor  # (rows, n), trained rows only
    rows_of: Tensor  # (m, most) row numbers, -1 where a user has fewer
    runs: int
    once: dict[str, Tensor]  # (rows, runs, width)
    noisy: Tensor | None  # (rows, runs, n), where the environment's noise on a record is drawn once too


def train_block(dataset: Dataset, config: Config, runs: int, source: Source | Sequence[Source]) -> Models:
    """Train `runs` copies of the model: from one source, or each from one of its own."""
    torch.set_num_threads(1)
    sources = [source] if isinstance(source, Source) else list(source)
    if config.object.learner(config) != "loop":  # each source has runs of its own; every user gets a copy
        turns = [source for source in sources for _ in range(runs // len(sources))]
        return [model_of(learnt_from(dataset, config, source), config) for source in turns]
    with torch.inference_mode():  # torch records no gradients: its operations then cost half
        weights = _train_in_loop(dataset, config, runs, sources)
    return model.joined([weights])  # outside, so that what is returned may be used in any way


def _train_in_loop(dataset: Dataset, config: Config, runs: int, sources: list[Source]) -> model.Parameters:
    mechanism, units = config.object, runs * config.m
    inside = config.batch == 1 and units > 1 and config.sampling == "epochs"
    weights, gradient = (model.allocate(units, dataset.n, config.l, config.bias, inside) for _ in range(2))
    if config.start == "data-free":
        start = data_free_start(config, dataset.n, dataset.columns)
        model.copy(model.joined([start] * (len(weights.W) // len(start.W))), weights)
    else:
        model.initialise(weights, *(source.generator for source in sources))
    read = gather(dataset, config, runs, sources)
    read.once.update(mechanism.prepare(Setting(config, read, weights)))
    update = model.make_optimiser(config.optimiser, weights.flat, config.lr)
    steps = max(1, config.epochs * steps_in_epoch(read.rows_of.shape[1], config))
    step = Step(config, Batch(read.x), weights, gradient, Together(sources, units, inside))
    for place, batch in enumerate(batches(read, config, inside, sources)):
        step.batch = batch
        mechanism.step(step)
        if config.schedule == "linear":
            update.lr = config.lr * (1 - place / steps)  # to zero, so that the last steps settle
        if batch.absent is None:
            update.step(gradient.flat)
        else:
            update_the_present(update, weights, gradient, batch.absent)
    return weights


def update_the_present(
    update: model.SGD | model.Adam, weights: model.Parameters, gradient: model.Parameters, absent: Tensor
) -> None:
    """Update, but leave weights and moments of users with no record left in this epoch as they are."""
    before = [tensor.clone() for tensor in (weights.flat, *update.state)]
    update.step(gradient.flat)
    stays = absent if weights.units_inside else absent[:, None]
    for tensor, old in zip((weights.flat, *update.state), before, strict=True):
        tensor.copy_(torch.where(stays, old, tensor))


@dataclass(frozen=True)
class Setting:
    """The state before the first step, from which a mechanism may fix values: the records, the first weights."""

    config: Config
    records: Records
    weights: model.Parameters

    @property
    def n(self) -> int:
        return int(self.records.x.shape[1])

    def for_every_record(self, value: Callable[[Tensor, Tensor | None], Tensor]) -> Tensor:
        """Return value(h, b) of every record at these weights, (rows, runs, 1); some rows at a time."""
        runs, some = self.records.runs, 4096
        found = torch.zeros(self.records.x.shape[0], runs, 1)
        leading = model.joined([self.weights])
        for j, rows in enumerate(self.records.rows_of):
            one = model.user_parameters(leading, self.config.m, j)
            for mine in torch.split(rows[rows >= 0], some):
                h, b = model.encode(one, self.records.x[mine].expand(runs, -1, -1)), None
                if self.records.noisy is not None:
                    b = noise_factor(h, model.encode(one, self.records.noisy[mine].transpose(0, 1).contiguous()))
                found[mine] = value(h, b).transpose(0, 1)
        return found


# ── records ──


def gather(dataset: Dataset, config: Config, runs: int, sources: Sequence[Source]) -> Records:
    """Return training rows by user, with all that is drawn once per record; sources serve equal shares of the runs."""
    trained = ~dataset.held_out
    x = torch.tensor(dataset.x[trained], dtype=torch.float32)
    rows = [torch.tensor((dataset.user[trained] == j).nonzero()[0]) for j in range(config.m)]
    rows_of = torch.full((config.m, max(map(len, rows))), -1, dtype=torch.int64)
    for j, own in enumerate(rows):
        rows_of[j, : len(own)] = own
    each = runs // len(sources)
    shape = (len(x), each, dataset.n)
    noisy = torch.empty(len(x), runs, dataset.n) if config.sigma and not config.object.fresh_environment else None
    once: dict[str, Tensor] = {}
    for place, source in enumerate(sources):
        mine = slice(place * each, (place + 1) * each)
        if noisy is not None:
            noisy[:, mine] = x[:, None] + config.sigma * torch.randn(shape, generator=source.generator)
        if not config.redraw:
            for name, drawn in config.object.draw(x[:, None].expand(shape), config, source).items():
                if name not in once:
                    once[name] = torch.empty(len(x), runs, drawn.shape[2], dtype=drawn.dtype)
                once[name][:, mine] = drawn
    return Records(x, rows_of, runs, once, noisy)


def runs_at_once(dataset: Dataset, config: Config) -> int:
    """Return how many runs train together: as many as hold their draws, orders and one step within `KEPT` bytes."""
    rows, number = int((~dataset.held_out).sum()), 4
    if config.redraw:
        width = 0
    elif config.object.learner(config) != "loop":
        width = 3 * dataset.n
    else:
        one = torch.tensor(dataset.x[:1, None], dtype=torch.float32)
        width = sum(int(drawn.shape[-1]) for drawn in config.object.draw(one, config, Source(0)).values()) + 1
    if config.sigma and not config.object.fresh_environment:
        width += dataset.n
    order = 6  # numbers a row that an epoch's order takes while it is made
    step = config.m * min(config.batch, rows) * (8 * dataset.n + 6 * config.l)
    return max(1, min(MOST_RUNS, KEPT // (number * (rows * (width + order) + step))))


# ── the records of each step ──


def steps_in_epoch(most: int, config: Config) -> int:
    """Return the steps of one epoch; `most` is the number of records of the largest user."""
    if config.sampling == "poisson":
        most = config.records or most  # what the accountant counted with
    return -(-most // config.batch)


def chosen_in_epoch(rows_of: Tensor, runs: int, config: Config, sources: Sequence[Source]) -> Tensor:
    """Return row numbers (U, steps, B), padded with -1; unit r·m + j is user j of run r.

    Each unit reads its records once, in an order of its own, or by Poisson sampling.
    """
    m, most = rows_of.shape
    steps, units = steps_in_epoch(most, config), m * runs
    if config.sampling == "poisson":
        return _poisson(rows_of, runs // len(sources), config, sources)
    if steps == 1:  # needs no order, and no padding up to the batch
        return rows_of.repeat(runs, 1)[:, None]
    places = torch.cat([torch.rand(units // len(sources), most, generator=source.generator) for source in sources])
    absent = (rows_of < 0).repeat(runs, 1)
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


# ── batches ──


def batches(records: Records, config: Config, inside: bool, sources: Sequence[Source]) -> Iterator[Batch]:
    """Yield the batches of all epochs, one after the other."""
    fresh = config.redraw or bool(config.sigma and config.object.fresh_environment) or config.sampling == "poisson"
    if not fresh and config.epochs and steps_in_epoch(records.rows_of.shape[1], config) == 1:
        whole = list(epoch(records, config, inside, sources))
        for _ in range(config.epochs):  # every record is in every step: nothing changes from one to the next
            yield from whole
        return
    for _ in range(config.epochs):
        yield from epoch(records, config, inside, sources)


def epoch(records: Records, config: Config, inside: bool, sources: Sequence[Source]) -> Iterator[Batch]:
    """Yield the batches of one epoch."""
    chosen = chosen_in_epoch(records.rows_of, records.runs, config, sources)
    # Steps gathered at once: the same for any number of runs, so that the draws of a run do not depend on its company.
    m, most = records.rows_of.shape
    fields = 2 + bool(config.sigma) + len(records.once) + 3 * config.redraw
    some = max(1, GATHERED // (8 * MOST_RUNS * m * min(most, config.batch) * records.x.shape[1] * fields))
    for start in range(0, chosen.shape[1], some):
        part = chosen[:, start : start + some]
        if len(chosen) == 1:
            yield from _batches_of_one_net(records, part[0], config, sources[0])
        else:
            yield from _batches_of_many(records, part, config, inside, sources)


def _batches_of_many(
    records: Records, chosen: Tensor, config: Config, inside: bool, sources: Sequence[Source]
) -> Iterator[Batch]:
    """Yield batches of the rows `chosen` (U, steps, B), -1 where a unit has no record there."""

    def arranged(tensor: Tensor) -> tuple[Tensor, ...]:
        """Split (steps, U, B, width) into steps, with the units innermost in memory if `inside` (B = 1 then)."""
        return (tensor.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2) if inside else tensor).unbind(0)

    index = chosen.transpose(0, 1)  # (steps, U, B)
    there = index >= 0
    index = index.clamp(min=0)
    m = len(records.rows_of)
    run = (torch.arange(records.runs * m) // m)[:, None]
    x = records.x[index]
    drawn = {name: tensor[index, run] for name, tensor in records.once.items()}
    if config.redraw:  # each run's from its own source
        each = x.shape[1] // len(sources)
        parts = zip(torch.split(x, each, 1), sources, strict=True)
        shares = [config.object.draw(part, config, source) for part, source in parts]
        drawn |= {name: torch.cat([share[name] for share in shares], 1) for name in shares[0]}
    full, someone = there.flatten(1).all(1).tolist(), there.any(2)
    idle = [False] * len(x) if config.sampling == "poisson" else (~someone).any(1).tolist()
    xs = arranged(x)
    present = arranged(there[..., None] / config.batch) if not all(full) else ()
    delivered = _delivered(records, x, there, index, run, config, sources)
    noisy = None if delivered is None else arranged(delivered)
    by_name = {name: arranged(tensor) for name, tensor in drawn.items()}
    for step in range(len(xs)):
        yield Batch(
            xs[step],
            None if noisy is None else noisy[step],
            None if full[step] else present[step],
            {name: tensors[step] for name, tensors in by_name.items()},
            ~someone[step] if idle[step] else None,
        )


def _batches_of_one_net(records: Records, chosen: Tensor, config: Config, source: Source) -> Iterator[Batch]:
    """Yield batches of a single net, each as long as it is: no padding is needed."""
    size, index = (chosen >= 0).sum(1).tolist(), chosen[chosen >= 0]
    x = records.x[index][None]
    drawn = {name: tensor[index, 0][None] for name, tensor in records.once.items()}
    if config.redraw:
        drawn |= config.object.draw(x, config, source)
    there, run = torch.ones(1, 1, len(index), dtype=torch.bool), torch.zeros(1, 1, dtype=torch.int64)
    delivered = _delivered(records, x[None], there, index[None, None], run, config, [source])
    noisy = None if delivered is None else torch.split(delivered[0], size, 1)
    parts = {name: torch.split(tensor, size, 1) for name, tensor in drawn.items()}
    for step, record in enumerate(torch.split(x, size, 1)):
        own = {name: tensors[step] for name, tensors in parts.items()}
        yield Batch(record, None if noisy is None else noisy[step], None, own)


def _delivered(
    records: Records, x: Tensor, there: Tensor, index: Tensor, run: Tensor, config: Config, sources: Sequence[Source]
) -> Tensor | None:
    """Add the environment's noise to records x (steps, U, B, n): drawn once, or anew for every record that is there."""
    if records.noisy is not None:
        return records.noisy[index, run]
    if not config.sigma:
        return None
    found, each = x.clone(), x.shape[1] // len(sources)
    for part, here, source in zip(torch.split(found, each, 1), torch.split(there, each, 1), sources, strict=True):
        part[here] += config.sigma * torch.randn(int(here.sum()), x.shape[3], generator=source.generator)
    return found
