"""Learn mean and covariance from sums of packets, and from them a linear encoder and decoder in closed form.

Two phases. First records release features: their sums give means, and how much each column varies. Then, with the
means as a public centre, records release sketches: their sums give the covariance. A record is in one of the two, so
its epsilon is that of one packet either way. Nothing here reads a record.

The covariance is a regression of noisy squares on the products of public directions. A sketch along direction s is an
unbiased, noisy u with E[u]·R² = s'(Σ + (μ-c)(μ-c)')s, where it is not clipped. The estimate of μ removes the second
part. Σ is then the ridge regression of the squares on s_i·s_j: each of its entries is near the prior's, with the
prior's strength, and the noise of a square has the table's variance times R⁴. The level of the prior, one number, is
fitted first: all packets speak of it. The normal equations are solved by conjugate gradients, which only need
S'·diag(w)·S: there are n(n+1)/2 unknowns, and at n = 300 their matrix would not fit into memory.

Of all linear maps through l numbers, the one with the smallest expected squared error keeps the l directions along
which records are expected farthest from the centre: the leading eigenvectors of T = Σ + the uncertainty of the means.
Under noise σ on the inputs each is shrunk by λ/(λ + σ²), λ being the variance that is relied on along it. With no
packet T is the prior's: the data-free map.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sensorsim.hospital.column_prior import FLAT_VARIANCE, LEAST, PRIOR, Columns, Prior, columns, likeness
from sensorsim.hospital.confidence import Reals

if TYPE_CHECKING:
    from sensorsim.device.sketches import Sketch
    from sensorsim.hospital.receiver import Received
    from sensorsim.noise.noise_table import NoiseTable

Indices = npt.NDArray[np.int64]

REACH = 1.7  # R in standard deviations of a sketch: clipping costs little, and noise goes with R²
DIRECTIONS_EACH = 6  # for every entry of the covariance, so that the regression is well conditioned
LEAST_BITS, MOST_BITS = 6, 16
MOST_SHARE, HALF_WAY = 0.7, 50.0  # of the records that sketch; packets for each entry of the covariance
SQUARES_SPREAD = 0.1  # variance of u itself, about
AS_OTHERS = 3.0  # how much less is known of a column's spread than of its mean
LEVEL_SD = 0.8  # of the prior's level, before any sketch
LEAST_LEVEL = 0.03
MOST_ROUNDS, ENOUGH = 80, 1e-16  # of conjugate gradients; of the squared residual
LARGEST_WEIGHT = 15.9  # of the encoder kernel's format
RELIED_ON = 0.5  # of an assumed likeness, where noise comes in with it
STEEPEST = 1.0  # standard deviation of a hidden unit before its sigmoid: well within the kernel's table of ±8


class Learnt(NamedTuple):
    """Mean and covariance as the hospital knows them, of distinct columns; `column_of` maps features to columns."""

    mean: Reals  # (columns,)
    uncertainty: Reals  # (columns,) variance of that knowledge
    covariance: Reals  # (columns, columns) of the records within the columns
    column_of: Indices  # (n,)
    measured: bool = True  # whether packets say how columns vary together; else it is assumed

    def expected(self, prior: Prior = PRIOR, assumed: float = 1.0) -> Reals:
        """Return T, (columns, columns): how far from the centre a record is expected.

        `assumed` is the share of what is only assumed between columns: where that is wrong, it lets noise in.
        """
        sd = np.sqrt(self.uncertainty)
        share = np.full((len(sd), len(sd)), assumed)
        np.fill_diagonal(share, 1.0)
        within = self.covariance if self.measured else share * self.covariance
        return np.asarray(within + share * np.outer(sd, sd) * likeness(len(sd), prior))


def nothing_known(column_of: Indices) -> Learnt:
    """Return the state before the first packet: every mean is one half, records differ as in the prior."""
    count = int(column_of.max()) + 1
    half, flat = np.full(count, 0.5), np.full(count, FLAT_VARIANCE)
    return Learnt(half, flat, FLAT_VARIANCE / 2 * likeness(count), column_of, measured=False)


def column_of_names(names: Sequence[str]) -> Indices:
    """Return the number of the distinct column of every feature: features of one name, which is public, are one."""
    distinct = list(dict.fromkeys(names))
    return np.array([distinct.index(name) for name in names], np.int64)


def share_of(records: int, n: int, table: "NoiseTable") -> float:
    """Return the share of the records that should sketch, from public numbers; 0 while they are too few."""
    assert table.estimate_sd is not None
    each = records / (n * (n + 1) / 2) / (table.estimate_sd**2 + SQUARES_SPREAD)
    return MOST_SHARE * max(0.0, 1 - HALF_WAY / each) if each > 0 else 0.0


def learn(
    table: "NoiseTable",
    sums: Any,
    column_of: Indices,
    sketch: "Sketch | None" = None,
    squares: tuple[Any, Any] | None = None,
    sigma: float = 0.0,
    prior: Prior = PRIOR,
) -> Learnt:
    """Learn from `sums` of features, a row each, and from `squares`: count and total of each direction of a sketch."""
    known = known_columns(table, sums, column_of, sigma, prior)
    sd = np.sqrt(known.within)
    expected = np.outer(sd, sd) * likeness(len(sd), prior)
    if sketch is None or squares is None or not np.any(squares[0]):
        return Learnt(known.mean, known.uncertainty, expected, column_of, measured=False)
    of_columns = _per_column(sketch.vectors().astype(np.float64).T, column_of).T
    count, total = (np.asarray(part, np.float64) for part in squares)
    first = [int(np.argmax(column_of == column)) for column in range(int(column_of.max()) + 1)]
    centre = np.asarray(sketch.middle)[first]
    seen = Squares(of_columns, count, total, centre, sketch.root, known.noise + SQUARES_SPREAD)
    return Learnt(known.mean, known.uncertainty, covariance(seen, known.mean, expected, prior.strength), column_of)


def known_columns(
    table: "NoiseTable", sums: Any, column_of: Indices, sigma: float = 0.0, prior: Prior = PRIOR
) -> Columns:
    """Estimate means and spreads of the distinct columns.

    What to keep is chosen by how spreads differ. While little is known they differ by noise, so each is shrunk to that
    of the others, on a logarithmic scale.
    """
    found = columns(table, _per_column(np.asarray(sums, np.float64), column_of), sigma, prior)
    own = FLAT_VARIANCE / (FLAT_VARIANCE + AS_OTHERS * found.noise / np.maximum(found.packets, LEAST))

    def shrink(values: Reals) -> Reals:
        common = np.exp(np.log(values).mean())
        return np.asarray(common * (values / common) ** own)

    return replace(found, uncertainty=shrink(found.uncertainty), within=shrink(found.within))


def _per_column(values: Any, column_of: Indices) -> Any:
    """Add up rows of features to rows of distinct columns."""
    found = np.zeros((int(column_of.max()) + 1, *np.shape(values)[1:]))
    np.add.at(found, column_of, values)
    return found


def sums_of(received: "Received") -> npt.NDArray[np.float64]:
    """Return the sums of received packets as `learn` takes them."""
    if received.table.symbols is not None:
        return np.array(received.statistics.sums, np.float64)
    total, count = received.total_and_count()
    return np.stack([count.astype(np.float64), total], axis=1)


# ── the sketch of the second phase ──


def sketch_for(received: "Received", names: Sequence[str] | None = None) -> "Sketch":
    """Return the sketch of the second phase, from the features that were received in the first."""
    column_of = column_of_names(names) if names else np.arange(received.table.features)
    return sketch_of(known_columns(received.table, sums_of(received), column_of), column_of, names)


def sketch_of(known: Columns, column_of: Indices, names: Sequence[str] | None = None) -> "Sketch":
    """Return the sketch about the means, with R from how much the columns vary."""
    from sensorsim.device.sketches import Sketch

    n = len(column_of)
    root = REACH * float(np.sqrt(known.within[column_of].sum() / 2))  # half of a direction's entries are not zero
    return Sketch.of(known.mean[column_of].tolist(), root, direction_bits(n), names)


def direction_bits(n: int) -> int:
    """Return the number of directions for n features, as a power of two."""
    entries = n * (n + 1) // 2
    return min(MOST_BITS, max(LEAST_BITS, (DIRECTIONS_EACH * entries - 1).bit_length()))


# ── the covariance ──


@dataclass(frozen=True)
class Squares:
    """Sums of sketches: for each direction how many came and the sum of their unbiased values of u."""

    directions: Reals  # (directions, columns)
    count: Reals  # (directions,)
    total: Reals  # (directions,)
    centre: Reals  # (columns,)
    root: float  # R
    noise: float  # variance of one value of u, its own and that of the table


def covariance(squares: Squares, mean: Reals, expected: Reals, strength: float) -> Reals:
    """Estimate Σ given the columns' mean; `expected` is the prior's, up to its level."""
    S, weight = squares.directions, squares.count / (squares.root**4 * squares.noise)
    averages = squares.total / np.maximum(squares.count, 1.0)
    square = averages * squares.root**2 - (S @ (mean - squares.centre)) ** 2
    known = _along(S, expected)
    # the level: a regression through the origin, about 1
    precision = 1 / LEVEL_SD**2
    level = (weight @ (known * square) + precision) / (weight @ known**2 + precision)
    start = max(float(level), LEAST_LEVEL) * expected
    deviation = np.sqrt(np.diag(start))
    scale = strength * np.outer(deviation, deviation)
    scale[~np.eye(len(scale), dtype=bool)] /= np.sqrt(2)  # an entry off the diagonal occurs twice
    left = weight * (square - _along(S, start))
    found = start + scale * _solve(S, weight, scale, scale * ((S * left[:, None]).T @ S))
    values, vectors = np.linalg.eigh((found + found.T) / 2)
    return np.asarray((vectors * np.maximum(values, 1e-9)) @ vectors.T)  # the nearest positive definite matrix


def _along(S: Reals, matrix: Reals) -> Reals:
    """Return s'·matrix·s of every direction."""
    return np.asarray(((S @ matrix) * S).sum(axis=1))


def _solve(S: Reals, weight: Reals, scale: Reals, wanted: Reals) -> Reals:
    """Solve z + scale·A'WA(scale·z) = wanted by conjugate gradients."""
    z, residual = np.zeros_like(wanted), wanted.copy()
    step, size = residual.copy(), float((residual**2).sum())
    first = size
    for _ in range(MOST_ROUNDS):
        if size <= ENOUGH * first:
            break
        along = weight * _along(S, scale * step)
        moved = step + scale * ((S * along[:, None]).T @ S)
        length = size / float((step * moved).sum())
        z += length * step
        residual -= length * moved
        size, before = float((residual**2).sum()), size
        step = residual + size / before * step
    return z


# ── the linear map ──


class Map(NamedTuple):
    """x̂ = d + V'·a, a = W'·x + b, in features and in 0 … 1."""

    W: Reals  # (n, l)
    b: Reals  # (l,)
    V: Reals  # (l, n)
    d: Reals  # (n,)


def linear_map(learnt: Learnt, l: int, sigma: float = 0.0, prior: Prior = PRIOR) -> Map:
    """Return the best linear map through l hidden units."""
    of = learnt.column_of
    centre = _centre(learnt, l, sigma, prior)[of]
    values, vectors = _leading(learnt.expected(prior)[np.ix_(of, of)], l)
    spread = np.sqrt(values + sigma**2)  # of a hidden unit, before it is scaled
    largest = np.abs(vectors).max(axis=0)
    scale = np.minimum(STEEPEST / spread, LARGEST_WEIGHT / largest)
    W = vectors * scale
    relied = np.einsum("il,ij,jl->l", vectors, learnt.expected(prior, RELIED_ON)[np.ix_(of, of)], vectors)
    kept = relied / (relied + sigma**2) if sigma else np.ones_like(values)
    return Map(W, -centre @ W, (vectors * (kept / scale)).T, centre)


def _leading(matrix: Reals, l: int) -> tuple[Reals, Reals]:
    """Return the l largest eigenvalues and their vectors, (n, l)."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.maximum(values[::-1][:l], 1e-9), np.asarray(vectors[:, ::-1][:, :l])


def _centre(learnt: Learnt, l: int, sigma: float, prior: Prior) -> Reals:
    """Return the means, shrunk where they are not known well enough to leave the data-free map.

    What the data-free map keeps of a record needs no centre. In what it drops, a mean that is mostly noise does harm:
    that part is shrunk by how much of its length the noise explains (James and Stein). Under noise on the inputs the
    data-free map keeps next to nothing, and the means stay as they are.
    """
    count = len(learnt.mean)
    if l >= count:
        return learnt.mean
    values, kept = _leading(
        nothing_known(learnt.column_of).expected(prior)[np.ix_(learnt.column_of, learnt.column_of)], l
    )
    # in columns: the part of a vector of means that the data-free map reaches
    spread = np.eye(count)[learnt.column_of]
    reached = np.linalg.lstsq(spread, kept @ (kept.T @ spread), rcond=None)[0]
    off = learnt.mean - 0.5
    dropped = off - reached @ off
    explained = learnt.uncertainty * np.clip(1 - learnt.uncertainty / FLAT_VARIANCE, 0.0, 1.0)
    rest = np.eye(count) - reached
    length = float((dropped**2).sum())
    noise = float(((rest**2) @ explained).sum())
    doubt = prior.doubt * float((values / (values + sigma**2)).mean())
    share = max(0.0, 1 - doubt * noise / length) if length > 0 else 1.0
    return np.asarray(np.clip(0.5 + reached @ off + share * dropped, 0.0, 1.0))
