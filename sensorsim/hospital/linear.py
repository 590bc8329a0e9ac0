"""The linear encoder and decoder in closed form, from what is known of mean and covariance.

Of all maps through l numbers, the one with the smallest expected squared error keeps the l directions along which
records are expected to lie farthest from the centre: the leading eigenvectors of T = Σ + the doubt about the means.
Under noise σ on the inputs each is shrunk by λ/(λ + σ²), λ being what is relied on along it. With no packet at all T is
the prior's: the data-free map.
"""

from typing import NamedTuple

import numpy as np

from sensorsim.hospital.prior import FLAT_VARIANCE, PRIOR, Prior, Reals, likeness

LARGEST_WEIGHT = 15.9  # of the encoder kernel's format
RELIED_ON = 0.5  # of a likeness that is assumed, where noise is let in with it
STEEPEST = 1.0  # standard deviation of a hidden unit before its sigmoid: well within the kernel's table of ±8


class Learnt(NamedTuple):
    """What the hospital knows; columns are distinct, and `column_of` says which one each feature is."""

    mean: Reals  # (columns,)
    uncertainty: Reals  # (columns,) variance of that knowledge
    covariance: Reals  # (columns, columns) of the records within the columns
    column_of: "np.ndarray[tuple[int], np.dtype[np.int64]]"  # (n,)
    measured: bool = True  # whether packets say how columns vary together; else it is assumed

    def expected(self, prior: Prior = PRIOR) -> Reals:
        """T, (columns, columns): how far from the centre a record is expected to lie."""
        return self._together(prior, 1.0)

    def relied_on(self, prior: Prior = PRIOR) -> Reals:
        """The same with half of what is only assumed between columns: where that is wrong, noise comes in with it."""
        return self._together(prior, RELIED_ON)

    def _together(self, prior: Prior, assumed: float) -> Reals:
        sd = np.sqrt(self.uncertainty)
        share = np.full((len(sd), len(sd)), assumed)
        np.fill_diagonal(share, 1.0)
        within = self.covariance if self.measured else share * self.covariance
        return np.asarray(within + share * np.outer(sd, sd) * likeness(len(sd), prior))


class Map(NamedTuple):
    """x̂ = d + V'·a, a = W'·x + b: all of it in features, in 0 … 1."""

    W: Reals  # (n, l)
    b: Reals  # (l,)
    V: Reals  # (l, n)
    d: Reals  # (n,)


def nothing_known(column_of: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> Learnt:
    """Before the first packet: every mean is one half, give or take; records differ as the prior has it."""
    count = int(column_of.max()) + 1
    half, flat = np.full(count, 0.5), np.full(count, FLAT_VARIANCE)
    return Learnt(half, flat, FLAT_VARIANCE / 2 * likeness(count), column_of, measured=False)


def linear_map(learnt: Learnt, l: int, sigma: float = 0.0, prior: Prior = PRIOR) -> Map:
    """The best map through l hidden units."""
    of = learnt.column_of
    centre = _centre(learnt, l, sigma, prior)[of]
    values, vectors = _leading(learnt.expected(prior)[np.ix_(of, of)], l)
    spread = np.sqrt(values + sigma**2)  # of a hidden unit, before it is scaled
    largest = np.abs(vectors).max(axis=0)
    scale = np.minimum(STEEPEST / spread, LARGEST_WEIGHT / largest)
    W = vectors * scale
    relied = np.einsum("il,ij,jl->l", vectors, learnt.relied_on(prior)[np.ix_(of, of)], vectors)
    kept = relied / (relied + sigma**2) if sigma else np.ones_like(values)
    return Map(W, -centre @ W, (vectors * (kept / scale)).T, centre)


def _leading(matrix: Reals, l: int) -> tuple[Reals, Reals]:
    """The l largest eigenvalues and their vectors, (n, l)."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.maximum(values[::-1][:l], 1e-9), np.asarray(vectors[:, ::-1][:, :l])


def _centre(learnt: Learnt, l: int, sigma: float, prior: Prior) -> Reals:
    """The means, where they are known well enough to leave what the data-free map keeps.

    What the data-free map keeps of a record needs no centre. In what it drops, a mean that is mostly noise does harm:
    that part is shrunk by how much of its length the noise explains (James and Stein). Under noise on the inputs the
    data-free map keeps next to nothing, and the means stand as they are.
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
