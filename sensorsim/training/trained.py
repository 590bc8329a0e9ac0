"""Trained models as they are used, and models made of releases: mean and covariance by `hospital.learn`, then a map.

    h = sigmoid(x W_j + b_j)                                    on the body of user j
    x̂ = sigmoid(h V_j + d_j)            the paper's net         at the hospital
    x̂ = clip(logit(h) V_j + d_j, 0, 1)  the linear map

linear     encoder and decoder in closed form: the best map through l numbers for that mean and covariance. It uses the
           same encoder kernel: logit inverts the sigmoid.
sigmoid    the paper's net. The hospital draws pseudo-records that have this mean, this covariance and what is not known
           of the means, and trains on them as on any data: it then has the smallest expected error given the release.

Everything made of a release is post-processing, weights included, however long it trains. With no packet at all the
same code gives the data-free map: what the prior alone is worth, and what nothing private should fall below. Models are
numpy alone, so that a hospital needs no torch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sensorsim.hospital.learning import (
    LARGEST_WEIGHT,
    STEEPEST,
    Learnt,
    column_of_names,
    known_columns,
    learn,
    linear_map,
    nothing_known,
    share_of,
    sketch_of,
)
from sensorsim.kernels.formats import ONE
from sensorsim.mechanisms.base import LINEAR as LINEAR
from sensorsim.mechanisms.base import SIGMOID as SIGMOID
from sensorsim.mechanisms.release import Release

if TYPE_CHECKING:
    from sensorsim.datasets.dataset import Dataset
    from sensorsim.device.sketches import Sketch
    from sensorsim.noise.noise_table import NoiseTable
    from sensorsim.training import model
    from sensorsim.training.config import Config
    from sensorsim.training.step import Source

Reals = npt.NDArray[np.float64]
FORMS = (LINEAR, SIGMOID)
NEAREST = 2.0**-15  # of h to 0 and 1 before logit: one step of the kernel's format
ROWS_AT_ONCE = 1 << 16
EXACT = 1e-12  # variance of a mean that is known
LEAST_VARIANCE = 1e-6  # of a hidden unit
LEAST_SHARE = 1e-12  # of the largest variance: less is lost to rounding, and no root is found
QUANTILES = 128  # of a pseudo-record's column
PUBLIC_SEED = 0  # of pseudo-records and first weights: no privacy rests on it
RECORDS, BATCH, STEPS, RATE = 4096, 64, 4000, 0.05  # of the training on pseudo-records; chosen on synthetic data
WIDEST = 0.9  # of mu·(1-mu), which no variance within 0 … 1 exceeds


@dataclass(frozen=True)
class Part:
    """One user's half on the body and half at the hospital."""

    W: Reals  # (n, l)
    b: Reals  # (l,)
    V: Reals  # (l, n)
    d: Reals  # (n,)


@dataclass(frozen=True)
class Trained:
    """All users of one model. `c` is a constant that spof's decoder may add to every weight."""

    form: str
    users: tuple[Part, ...]
    c: float = 0.0

    @property
    def m(self) -> int:
        return len(self.users)

    @property
    def n(self) -> int:
        return int(self.users[0].W.shape[0])

    @property
    def l(self) -> int:  # noqa: E743 - the paper's name
        return int(self.users[0].W.shape[1])

    def encode(self, j: int, x: Any) -> Reals:
        """Return hidden units of user j's records, (…, l), in 0 … 1."""
        part = self.users[j]
        return sigmoid(np.asarray(x, np.float64) @ part.W + part.b)

    def decode(self, j: int, h: Any) -> Reals:
        """Return reconstructed records, (…, n), from hidden units."""
        part, h = self.users[j], np.asarray(h, np.float64)
        if self.form == LINEAR:
            return np.clip(logit(h) @ part.V + part.d, 0.0, 1.0)
        return sigmoid(h @ part.V + part.d + self.c * h.sum(axis=-1, keepdims=True))

    def predict(self, j: int, x: Any) -> Reals:
        """Encode and decode."""
        return self.decode(j, self.encode(j, x))


def sigmoid(a: Reals) -> Reals:
    """Return 1/(1 + e^-a) without overflow."""
    from scipy.special import expit

    return np.asarray(expit(a), np.float64)


def logit(h: Reals) -> Reals:
    """Return the a of which h is the sigmoid; h stays one step away from 0 and 1."""
    inside = np.clip(h, NEAREST, 1 - NEAREST)
    return np.asarray(np.log(inside) - np.log1p(-inside))


# ── the codes that are expected ──


def codes(trained: Trained, learnt: Learnt, sigma: float = 0.0) -> tuple[tuple[Reals, ...], tuple[Reals, ...]]:
    """Return the expected mean (l,) and covariance (l, l) of every user's units, from which `decode` starts.

    Before its sigmoid a unit is a = x·w + b, so mean and covariance of records give those of the units; `sigma` is the
    environment's noise on the inputs. A little variance is added in every direction, so that none is without any.
    """
    of, covariances = learnt.column_of, []
    mean, expected = learnt.mean[of], learnt.expected()[np.ix_(of, of)] + sigma**2 * np.eye(len(of))
    for part in trained.users:
        spread = part.W.T @ expected @ part.W
        spread = (spread + spread.T) / 2
        least = max(LEAST_VARIANCE, LEAST_SHARE * float(np.diag(spread).max()))
        covariances.append(np.asarray(spread + least * np.eye(len(spread))))
    return tuple(mean @ part.W + part.b for part in trained.users), tuple(covariances)


def mixed(trained: Trained, learnt: Learnt, sigma: float = 0.0) -> Trained:
    """Mix the units of a linear map evenly, by the Hartley transform; each then has the deviation STEEPEST.

    Units may be mixed in any way that can be undone: the map reconstructs the same. A sensor that releases one of them
    does best where each says as much as another, since then each speaks of what varies most. The principal directions
    themselves, of which six in seven packets would say next to nothing, are the worst choice.
    """
    if trained.form != LINEAR:
        return trained
    part, spread = trained.users[0], codes(trained, learnt, sigma)[1][0]
    angle = 2 * np.pi * np.outer(np.arange(trained.l), np.arange(trained.l)) / trained.l
    hartley = (np.cos(angle) + np.sin(angle)) / np.sqrt(trained.l)  # orthogonal, entries of about one size
    turn = np.linalg.norm(part.V, axis=1)[:, None] * hartley  # by the reach of each unit in a record
    wide = np.sqrt(np.diag(turn.T @ spread @ turn)) / STEEPEST
    turn /= np.maximum(wide, np.abs(part.W @ turn).max(axis=0) / LARGEST_WEIGHT)
    made = Part(part.W @ turn, part.b @ turn, np.linalg.solve(turn, part.V), part.d)
    return Trained(LINEAR, (made,) * trained.m)


# ── records through the device's kernels, summed up ──


def on_the_lattice(x: Any) -> npt.NDArray[np.uint16]:
    """Return records in 0 … 1 as the kernels read them, in Q15; clip what is outside."""
    return np.asarray(np.rint(np.clip(x, 0.0, 1.0) * ONE), np.uint16)


def feature_sums(x: npt.NDArray[np.uint16], table: NoiseTable, seed: int | None) -> Reals:
    """Release records and return their sums as `hospital.learn` takes them.

    These are counts of each symbol of each feature; of a stairs table, count and sum of values.
    """
    from sensorsim.noise.batch_release import release_records, sampled_records

    n, symbols = x.shape[1], table.symbols
    total = np.zeros((n, symbols or 2))
    for rows, part in _parts(x, seed):
        if table.sampled:
            chosen, y = sampled_records(rows, table, part)
        else:
            y = release_records(rows, table, part)
            chosen = np.broadcast_to(np.arange(n), y.shape)
        which = np.ravel(chosen).astype(np.int64)
        if symbols is not None:
            total += np.bincount(which * symbols + np.ravel(y), minlength=n * symbols).reshape(n, -1)
        else:
            values = np.bincount(which, table.estimate(np.ravel(y)), n)
            total += np.stack([np.bincount(which, minlength=n), values], axis=1)
    return total


def sketch_sums(x: npt.NDArray[np.uint16], table: NoiseTable, sketch: Sketch, seed: int | None) -> tuple[Reals, Reals]:
    """Release sketches of records; return count and sum of the unbiased values of u for every direction."""
    from sensorsim.device.sketches import sketch_records

    count, total = np.zeros(sketch.directions), np.zeros(sketch.directions)
    for rows, part in _parts(x, seed):
        number, y = sketch_records(rows, table, sketch, part)
        count += np.bincount(number, minlength=sketch.directions)
        total += np.bincount(number, table.estimate(np.ravel(y)), sketch.directions)
    return count, total


def _parts(x: npt.NDArray[np.uint16], seed: int | None) -> Iterator[tuple[Any, Any]]:
    """Yield blocks of rows, each with a seed of its own where there is one."""
    for place, first in enumerate(range(0, len(x), ROWS_AT_ONCE)):
        yield x[first : first + ROWS_AT_ONCE], None if seed is None else [seed, place]


# ── a model from a release ──


def learnt_from(dataset: Dataset, config: Config, source: Source) -> Learnt:
    """Return what the hospital knows when every training record was released once.

    A private mechanism reads nothing but the releases; without privacy the hospital reads the records themselves.
    """
    import torch

    mechanism, column_of = config.object, column_of_names(dataset.columns)
    if not mechanism.private:
        first = np.unique(column_of, return_index=True)[1]  # a column that is used twice counts once
        mean, covariance = moments(dataset.x, ~dataset.held_out)
        return Learnt(mean[first], np.full(len(first), EXACT), covariance[np.ix_(first, first)], column_of)
    assert isinstance(mechanism, Release)
    table = mechanism.table(config, dataset.n)
    rows = np.flatnonzero(~dataset.held_out)
    noisy = config.sigma if config.release_sees == "noisy" else 0.0
    sketching = sketching_records(config, len(rows), dataset.n)
    if sketching:  # which records sketch is chosen at random, and public
        rows = rows[torch.randperm(len(rows), generator=source.generator).numpy()]
    delivered = dataset.x[rows[sketching:]]
    if noisy:
        delivered = np.asarray(delivered + noisy * torch.randn(delivered.shape, generator=source.generator).numpy())
    sums = feature_sums(on_the_lattice(delivered), table, source.seed())
    if not sketching:
        return learn(table, sums, column_of, sigma=noisy)
    sketch = sketch_of(known_columns(table, sums, column_of), column_of)
    second = on_the_lattice(dataset.x[rows[:sketching]])
    return learn(table, sums, column_of, sketch, sketch_sums(second, table, sketch, source.seed()))


def moments(x: Reals, chosen: np.ndarray) -> tuple[Reals, Reals]:
    """Return mean and covariance of the chosen rows, a few rows at a time."""
    n, rows = x.shape[1], np.flatnonzero(chosen)
    mean, square = np.zeros(n), np.zeros((n, n))
    parts = [rows[start : start + ROWS_AT_ONCE] for start in range(0, len(rows), ROWS_AT_ONCE)]
    for part in parts:
        mean += x[part].sum(axis=0) / len(rows)
    for part in parts:
        away = x[part] - mean
        square += away.T @ away / len(rows)
    return mean, square


def sketching_records(config: Config, records: int, n: int) -> int:
    """Return how many records sketch: as configured, else by how many there are for each entry of the covariance."""
    mechanism = config.object
    assert isinstance(mechanism, Release)
    if not mechanism.sketches or (config.release_sees == "noisy" and config.sigma):
        return 0  # a square of what the environment has moved says nothing of the covariance
    share = share_of(records, n, mechanism.table(config, n)) if config.share is None else config.share
    return round(share * records)


def model_of(learnt: Learnt, config: Config) -> Trained:
    """Return the model that a configuration asks for: the same bits for the same release."""
    if config.map == LINEAR:
        part = Part(*linear_map(learnt, config.l, config.sigma))
    else:
        part = fitted(learnt, config.l, config.sigma, config.bias)
    return Trained(config.map, (part,) * config.m)


def data_free(columns: tuple[str, ...], l: int, sigma: float = 0.0) -> Trained:
    """Return the linear map with no release at all, for any user: what the prior alone gives. A trivial predictor."""
    return Trained(LINEAR, (Part(*linear_map(nothing_known(column_of_names(columns)), l, sigma)),))


def data_free_start(config: Config, n: int, columns: tuple[str, ...]) -> model.Parameters:
    """Return the paper's net with no release at all, for every user: a start of the loop that saw no record."""
    import torch

    from sensorsim.training import model

    made = _data_free_net(config.l, config.sigma, config.bias, columns)
    start = model.allocate(config.m, n, config.l, config.bias, False)
    for target, value in ((start.W, made.W), (start.V, made.V), (start.b, made.b), (start.d, made.d)):
        if target is not None:
            target.copy_(torch.from_numpy(value).float().expand_as(target))
    return start


@lru_cache(maxsize=32)
def _data_free_net(l: int, sigma: float, bias: bool, columns: tuple[str, ...]) -> Part:
    return fitted(nothing_known(column_of_names(columns)), l, sigma, bias)


# ── the paper's net on pseudo-records ──


def pseudo_records(learnt: Learnt, count: int, rng: np.random.Generator) -> np.ndarray:
    """Draw records with the mean and the spread that is expected of them, (count, n), in 0 … 1.

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


def fitted(learnt: Learnt, l: int, sigma: float, bias: bool) -> Part:
    """Train a net on pseudo-records with squared error, as accuracy is measured.

    Its randomness is public and always the same, so that equal releases give equal weights, bit for bit.
    """
    import torch

    from sensorsim.training import model

    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(PUBLIC_SEED)
    drawn = pseudo_records(learnt, RECORDS, np.random.default_rng(PUBLIC_SEED))
    pool = torch.from_numpy(drawn).float()[None]
    with torch.inference_mode():
        weights, gradient = (model.allocate(1, drawn.shape[1], l, bias, False) for _ in range(2))
        model.initialise(weights, generator)
        update = model.Adam(weights.flat, RATE)
        for step in range(STEPS):
            start = step * BATCH % (RECORDS - BATCH + 1)
            x = pool[:, start : start + BATCH]
            reads = x + sigma * torch.randn(x.shape, generator=generator) if sigma else x
            h = model.encode(weights, reads)
            predicted = torch.sigmoid(model.decode(weights, h))
            dz = 4 / BATCH * (predicted - x) * predicted * (1 - predicted)
            model.backward(weights, gradient, reads, h, dz)
            update.lr = RATE * (1 - step / STEPS)  # to zero, so that the last steps settle
            update.step(gradient.flat)
    return part_of(weights)


def part_of(weights: model.Parameters, unit: int = 0) -> Part:
    """Return one unit of torch's parameters as plain arrays; a bias that is not there is zero."""
    n, l = weights.W.shape[1:]
    b = np.zeros(l) if weights.b is None else weights.b[unit, 0].double().numpy()
    d = np.zeros(n) if weights.d is None else weights.d[unit, 0].double().numpy()
    return Part(weights.W[unit].double().numpy(), b, weights.V[unit].double().numpy(), d)
