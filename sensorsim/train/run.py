"""All Monte-Carlo runs of one configuration as one batched program, on one torch thread."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from sensorsim.privacy.tables import NoiseTable
from sensorsim.train import mechanisms, model, noise, optimiser
from sensorsim.train.config import RELEASING, Config
from sensorsim.train.data import Dataset
from sensorsim.train.mechanisms import Batch
from sensorsim.train.statement import weight_noise_scale

RUNS_AT_ONCE = 128  # bounds memory: blocks of runs, each with a seed of its own


@dataclass(frozen=True)
class Records:
    """The training records of every user, and what is drawn once for each (rows, runs, n)."""

    x: Tensor  # (rows, n)
    rows_of: Tensor  # (m, most) row numbers, -1 where a user has fewer
    runs: int
    once: dict[str, Tensor]


def train_block(dataset: Dataset, config: Config, runs: int, generator: torch.Generator) -> model.Parameters:
    """Train `runs` copies of the model."""
    torch.set_num_threads(1)
    if config.mechanism in RELEASING and config.estimator == "marginals":
        from sensorsim.train.estimator import train_on_marginals

        return train_on_marginals(dataset, config, runs, generator)
    units = runs * config.m
    inside = config.batch == 1
    weights = model.allocate(units, dataset.n, config.l, config.bias, inside)
    gradient = model.allocate(units, dataset.n, config.l, config.bias, inside)
    model.initialise(weights, generator)
    records = _records(dataset, config, runs, generator)
    if config.mechanism == "spof" and not config.redraw:
        records.once["scale"] = _frozen_scale(weights, records, config)
    update = optimiser.make(config.optimiser, weights.flat, config.lr)
    spread = weight_noise(config, weights.per_unit)
    for _ in range(config.epochs):
        for batch in _epoch(records, config, inside, generator):
            _step(weights, gradient, batch, config)
            if spread:
                _add_weight_noise(gradient.flat, spread / config.batch, config, generator)
            _update(update, weights, gradient, batch)
    return weights


def weight_noise(config: Config, per_unit: int) -> float:
    """Scale of the noise on the summed clipped weight gradients of dpsgd-weights, 0 for the others."""
    if config.mechanism != "dpsgd-weights" or config.epsilon is None:
        return 0.0
    return weight_noise_scale(config, per_unit)


def _step(weights: model.Parameters, gradient: model.Parameters, batch: Batch, config: Config) -> None:
    """Fill `gradient` for one batch."""
    printed = config.mechanism in ("spof", "fm", "dpsgd")
    reads = batch.x if batch.noisy is None or printed else batch.noisy
    if config.reads == "released":
        assert batch.released is not None
        reads = batch.released
    h = model.encode(weights, reads)
    z = model.decode(weights, h)
    b = z_noisy = None
    if batch.noisy is not None and printed:
        h_noisy = model.encode(weights, batch.noisy)
        b, z_noisy = mechanisms.noise_factor(h, h_noisy), model.decode(weights, h_noisy)
    if config.mechanism in ("spof", "fm"):
        dz = mechanisms.spof_step(config, batch, h, z, b, z_noisy)
    elif config.mechanism == "dpsgd":
        dz = mechanisms.dpsgd_step(config, batch, z, b)
    elif config.mechanism in RELEASING:
        dz = mechanisms.exact_step(batch, z)
    else:
        dz = torch.sigmoid(z).sub_(batch.x)
    if batch.present is not None:
        dz = dz * batch.present
    if config.mechanism == "dpsgd-weights":
        clipped_backward(weights, gradient, reads, h, dz, config)
    else:
        model.backward(weights, gradient, reads, h, dz, config.c if config.mechanism == "spof" else 0.0)


def clipped_backward(
    weights: model.Parameters, gradient: model.Parameters, x: Tensor, h: Tensor, dz: Tensor, config: Config
) -> None:
    """The mean over the batch of per-sample clipped weight gradients, without per-sample gradients."""
    da = model.hidden_gradient(weights, h, dz)
    of_one = (dz, da) if config.batch == 1 else (dz * config.batch, da * config.batch)  # `dz` comes as a mean
    first, second = mechanisms.clip_factors(config, x, h, *of_one, config.bias)
    model.decoder_backward(gradient, h, dz * first)
    model.encoder_backward(weights, gradient, x, da * second)


def _add_weight_noise(flat: Tensor, scale: float, config: Config, generator: torch.Generator) -> None:
    if config.noise == "gaussian":
        flat.add_(torch.randn(flat.shape, generator=generator), alpha=scale)
    else:
        flat.add_(noise.laplace(tuple(flat.shape), generator), alpha=scale)


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


def _records(dataset: Dataset, config: Config, runs: int, generator: torch.Generator) -> Records:
    """Training rows by user, and all that is drawn once per record."""
    x = torch.tensor(dataset.x, dtype=torch.float32)
    rows = [torch.tensor(((dataset.user == j) & ~dataset.held_out).nonzero()[0]) for j in range(config.m)]
    most = max(map(len, rows))
    rows_of = torch.full((config.m, most), -1, dtype=torch.int64)
    for j, mine in enumerate(rows):
        rows_of[j, : len(mine)] = mine
    once: dict[str, Tensor] = {}
    shape = (x.shape[0], runs, dataset.n)
    if config.sigma:
        once["noisy"] = x[:, None] + config.sigma * torch.randn(shape, generator=generator)
    if not config.redraw:
        once |= _draw(x[:, None].expand(shape), config, generator)
    return Records(x, rows_of, runs, once)


def _draw(x: Tensor, config: Config, generator: torch.Generator) -> dict[str, Tensor]:
    """The noise of a mechanism for records x (…, n)."""
    shape = tuple(x.shape)
    if config.mechanism in ("spof", "fm"):
        return {"noise2": noise.laplace(shape, generator), "noise3": noise.laplace(shape, generator)}
    if config.mechanism == "dpsgd":
        return {"noise2": noise.laplace(shape, generator)}
    if config.mechanism in RELEASING:
        return draw_release(x, config, generator)
    return {}


def draw_release(x: Tensor, config: Config, generator: torch.Generator) -> dict[str, Tensor]:
    """Released values, and for `sampled` the weights n/k of the features that were released."""
    n = x.shape[-1]
    k = features_per_record(config, n)
    released, picked = noise.release(x, release_table(config, n), generator)
    return {"released": released} if config.mechanism == "exact" else {"released": released, "weight": picked * (n / k)}


def release_table(config: Config, n: int) -> NoiseTable:
    assert config.epsilon is not None
    return noise.table(config.epsilon, n, features_per_record(config, n))


def features_per_record(config: Config, n: int) -> int:
    """All for `exact`. For `sampled` one while the noise dominates, about one for every 8 of epsilon after that."""
    assert config.epsilon is not None
    if config.mechanism == "exact":
        return n
    return config.k or min(n, max(1, round(config.epsilon / 8)))


def _frozen_scale(weights: model.Parameters, records: Records, config: Config) -> Tensor:
    """spof's printed scale of every record at the first weights, (rows, runs, 1): it depends on private data."""
    assert config.epsilon is not None
    scale = torch.zeros(records.x.shape[0], records.runs, 1)
    flat = model.allocate(weights.W.shape[0], weights.W.shape[1], weights.W.shape[2], weights.b is not None, False)
    copy(weights, flat)
    for j, rows in enumerate(records.rows_of):
        mine = rows[rows >= 0]
        x = records.x[mine].expand(records.runs, -1, -1)
        one = user_parameters(flat, config.m, j)
        h = model.encode(one, x)
        b: Tensor | float = 1.0
        if "noisy" in records.once:
            b = mechanisms.noise_factor(h, model.encode(one, records.once["noisy"][mine].transpose(0, 1).contiguous()))
        c_j = config.c * h.sum(2, keepdim=True)
        scale[mine] = torch.as_tensor(mechanisms.spof_scale(config.epsilon, records.x.shape[1], c_j, b)).transpose(0, 1)
    return scale


def copy(source: model.Parameters, target: model.Parameters) -> None:
    for old, new in ((source.W, target.W), (source.V, target.V), (source.b, target.b), (source.d, target.d)):
        if old is not None and new is not None:
            new.copy_(old)


def user_parameters(weights: model.Parameters, m: int, j: int) -> model.Parameters:
    """User j of every run: (runs, …) views."""
    b, d = (None if t is None else t[j::m] for t in (weights.b, weights.d))
    return model.Parameters(weights.flat, weights.W[j::m], weights.V[j::m], b, d, weights.units_inside)


def _epoch(records: Records, config: Config, inside: bool, generator: torch.Generator):  # type: ignore[no-untyped-def]
    """The batches of one epoch; each unit reads its records once, in an order of its own."""
    m, most = records.rows_of.shape
    units = records.runs * m
    user = torch.arange(units) % m
    run = torch.arange(units) // m
    rows = records.rows_of[user]
    order = (torch.rand(units, most, generator=generator) + 2.0 * (rows < 0)).argsort(1)
    steps = -(-most // config.batch)
    chosen = torch.full((units, steps * config.batch), -1, dtype=torch.int64)
    chosen[:, :most] = rows.gather(1, order)
    index = chosen.t().clamp(min=0)  # (steps·B, U)
    present = chosen.t() >= 0
    full = present.reshape(steps, -1).all(1).tolist()
    fields = {"x": records.x[index]} | {name: tensor[index, run] for name, tensor in records.once.items()}
    if config.redraw:
        fields |= _draw(fields["x"], config, generator)
    if config.mechanism in ("spof", "fm", "dpsgd") and config.reads == "released":
        fields |= _public_release(fields, config)
    arranged = {name: _arranged(tensor, steps, config.batch, inside) for name, tensor in fields.items()}
    there = _arranged(present[..., None] / config.batch, steps, config.batch, inside)
    names, columns = list(arranged), [tensor.unbind(0) for tensor in arranged.values()]
    for step, parts in enumerate(zip(*columns, strict=True)):
        whole = config.batch == 1 and full[step]
        yield Batch(**dict(zip(names, parts, strict=True)), present=None if whole else there[step])


def _public_release(fields: dict[str, Tensor], config: Config) -> dict[str, Tensor]:
    """What the forward pass reads when it must not read x: x behind the noise of alpha2, at a public scale, clamped."""
    assert config.epsilon is not None
    n = fields["x"].shape[-1]
    if config.mechanism == "dpsgd":
        scale = n / config.epsilon
    else:
        c_j = config.c * config.l  # the public bound of c_j
        scale = float(mechanisms.spof_scale(config.epsilon, n, c_j))
    fields.pop("noisy", None)
    seen = (fields["x"] - scale * fields["noise2"]).clamp(0, 1)
    return {"released": seen, "scale": torch.full_like(seen[..., :1], scale)}


def _arranged(tensor: Tensor, steps: int, batch: int, inside: bool) -> Tensor:
    """(steps·B, U, width) as (steps, U, B, width), with the units innermost in memory where asked."""
    split = tensor.reshape(steps, batch, *tensor.shape[1:])
    if inside:
        return split.permute(0, 1, 3, 2).contiguous().permute(0, 3, 1, 2)
    return split.transpose(1, 2).contiguous()
