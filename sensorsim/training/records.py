"""The training records of every user, what is drawn once for each, and the batches that the loop reads.

Memory: what is drawn once is kept as (rows, runs, n) floats; batches are gathered for a few steps at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from sensorsim.training.config import Config
from sensorsim.training.data import Dataset
from sensorsim.training.noise import Source
from sensorsim.training.order import chosen_in_epoch, steps_in_epoch
from sensorsim.training.step import Batch

GATHERED = 1 << 25  # bytes of batches gathered at once, if MOST_RUNS were trained
KEPT = 400 << 20  # bytes that the runs trained at once may keep
MOST_RUNS = 128  # trained at once; more are no faster


@dataclass(frozen=True)
class Records:
    """Training rows by user, and what is drawn once for each row."""

    x: Tensor  # (rows, n), trained rows only
    rows_of: Tensor  # (m, most) row numbers, -1 where a user has fewer
    runs: int
    once: dict[str, Tensor]  # (rows, runs, width)
    noisy: Tensor | None  # (rows, runs, n), where the environment's noise on a record is drawn once too

    @property
    def units(self) -> int:
        return self.runs * len(self.rows_of)


def gather(dataset: Dataset, config: Config, runs: int, sources: Sequence[Source]) -> Records:
    """Training rows by user, and all that is drawn once per record; each source serves an equal share of the runs."""
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
        if config.redraw:
            continue
        for name, drawn in config.object.draw(x[:, None].expand(shape), config, source).items():
            if name not in once:
                once[name] = torch.empty(len(x), runs, drawn.shape[2], dtype=drawn.dtype)
            once[name][:, mine] = drawn
    return Records(x, rows_of, runs, once, noisy)


def runs_at_once(dataset: Dataset, config: Config) -> int:
    """How many runs are trained together: as many as keep their draws, orders and one step within `KEPT` bytes."""
    rows, number = int((~dataset.held_out).sum()), 4
    kept = 0 if config.redraw else _drawn_width(dataset, config)
    if config.sigma and not config.object.fresh_environment:
        kept += dataset.n
    order = 6  # numbers a row that an epoch's order takes while it is made
    step = config.m * min(config.batch, rows) * (8 * dataset.n + 6 * config.l)
    return max(1, min(MOST_RUNS, KEPT // (number * (rows * (kept + order) + step))))


def _drawn_width(dataset: Dataset, config: Config) -> int:
    """Numbers that the mechanism draws once for a record."""
    if config.object.learner(config) != "loop":
        return 3 * dataset.n
    one = torch.tensor(dataset.x[:1, None], dtype=torch.float32)
    return sum(int(drawn.shape[-1]) for drawn in config.object.draw(one, config, Source(0)).values()) + 1


def batches(records: Records, config: Config, inside: bool, sources: Sequence[Source]) -> Iterator[Batch]:
    """The batches of all epochs, one after the other."""
    fresh = config.redraw or bool(config.sigma and config.object.fresh_environment) or config.sampling == "poisson"
    if not fresh and config.epochs and steps_in_epoch(records.rows_of.shape[1], config) == 1:
        whole = list(epoch(records, config, inside, sources))
        for _ in range(config.epochs):  # every record is in every step: nothing changes from one to the next
            yield from whole
        return
    for _ in range(config.epochs):
        yield from epoch(records, config, inside, sources)


def epoch(records: Records, config: Config, inside: bool, sources: Sequence[Source]) -> Iterator[Batch]:
    """The batches of one epoch."""
    chosen = chosen_in_epoch(records.rows_of, records.runs, config, sources)
    units, steps, _ = chosen.shape
    if units == 1:
        yield from _of_one_net(records, chosen[0], config, sources[0])
        return
    for start in range(0, steps, some := _steps_gathered(records, config)):
        yield from _gathered(records, chosen[:, start : start + some], config, inside, sources)


def _steps_gathered(records: Records, config: Config) -> int:
    """The same for any number of runs, so that what a run draws for these steps does not depend on its company."""
    m, most = records.rows_of.shape
    fields = 2 + bool(config.sigma) + len(records.once) + 3 * config.redraw
    step = 8 * MOST_RUNS * m * min(most, config.batch) * records.x.shape[1] * fields
    return max(1, GATHERED // step)


def _gathered(
    records: Records, chosen: Tensor, config: Config, inside: bool, sources: Sequence[Source]
) -> Iterator[Batch]:
    """Batches of the rows `chosen` (U, steps, B), -1 where a unit has no record there."""
    index = chosen.transpose(0, 1)  # (steps, U, B)
    there = index >= 0
    index = index.clamp(min=0)
    run = (torch.arange(records.units) // len(records.rows_of))[:, None]
    x = records.x[index]
    drawn = {name: tensor[index, run] for name, tensor in records.once.items()}
    if config.redraw:
        drawn |= _drawn_again(x, config, sources)
    full, someone = there.flatten(1).all(1).tolist(), there.any(2)
    idle = None if config.sampling == "poisson" else (~someone).any(1).tolist()
    xs = _arranged(x, inside)
    shares = None if all(full) else _arranged(there[..., None] / config.batch, inside)
    delivered = _delivered(records, x, there, index, run, config, sources)
    noisy = None if delivered is None else _arranged(delivered, inside)
    parts = {name: _arranged(tensor, inside) for name, tensor in drawn.items()}
    for step in range(len(xs)):
        yield Batch(
            xs[step],
            None if noisy is None else noisy[step],
            None if shares is None or full[step] else shares[step],
            {name: tensors[step] for name, tensors in parts.items()},
            None if idle is None or not idle[step] else ~someone[step],
        )


def _of_one_net(records: Records, chosen: Tensor, config: Config, source: Source) -> Iterator[Batch]:
    """A single net needs no padding: every batch is as long as it is."""
    sizes = (chosen >= 0).sum(1).tolist()
    for start in range(0, len(chosen), some := _steps_gathered(records, config)):
        rows = chosen[start : start + some]
        index = rows[rows >= 0]
        x = records.x[index][None]
        drawn = {name: tensor[index, 0][None] for name, tensor in records.once.items()}
        if config.redraw:
            drawn |= config.object.draw(x, config, source)
        size = sizes[start : start + some]
        xs = torch.split(x, size, 1)
        there, run = torch.ones(1, 1, len(index), dtype=torch.bool), torch.zeros(1, 1, dtype=torch.int64)
        delivered = _delivered(records, x[None], there, index[None, None], run, config, [source])
        noisy = None if delivered is None else torch.split(delivered[0], size, 1)
        parts = {name: torch.split(tensor, size, 1) for name, tensor in drawn.items()}
        for step, record in enumerate(xs):
            yield Batch(
                record,
                None if noisy is None else noisy[step],
                None,
                {name: tensors[step] for name, tensors in parts.items()} if parts else {},
            )


def _delivered(
    records: Records,
    x: Tensor,
    there: Tensor,
    index: Tensor,
    run: Tensor,
    config: Config,
    sources: Sequence[Source],
) -> Tensor | None:
    """Records x (steps, U, B, n) with the environment's noise: drawn once, or anew for every record that is there."""
    if records.noisy is not None:
        return records.noisy[index, run]
    if not config.sigma:
        return None
    found, each = x.clone(), x.shape[1] // len(sources)
    for part, here, source in zip(torch.split(found, each, 1), torch.split(there, each, 1), sources, strict=True):
        part[here] += config.sigma * torch.randn(int(here.sum()), x.shape[3], generator=source.generator)
    return found


def _drawn_again(x: Tensor, config: Config, sources: Sequence[Source]) -> dict[str, Tensor]:
    """Fresh draws for records x (steps, U, B, n), each run's from its own source."""
    each = x.shape[1] // len(sources)
    shares = [
        config.object.draw(part, config, source) for part, source in zip(torch.split(x, each, 1), sources, strict=True)
    ]
    return {name: torch.cat([share[name] for share in shares], 1) for name in shares[0]}


def _arranged(tensor: Tensor, inside: bool) -> tuple[Tensor, ...]:
    """(steps, U, B, width) step by step, with the units innermost in memory where asked (B = 1 then)."""
    if inside:
        return tensor.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2).unbind(0)
    return tensor.unbind(0)
