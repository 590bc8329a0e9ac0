"""Decode released hidden units to records, at the hospital.

A sensor with an encoder releases k of its l hidden units h = sigmoid(a) through a noise table. One symbol, or noisy
number, says little. So each is read under a prior: a is normal with a mean and a covariance that were learnt from
earlier releases.

one packet     the posterior mean of every released unit given its value, and by their covariance that of the others;
               the model's decoder makes a record of them. With little epsilon it hardly leaves the mean record. What
               all packets together say of the mean may come first: it is post-processing of them, like all the rest.
many packets   the mean over the records of every unit. Their a are assumed normal, of a mean that is near the expected
               one or not, and of a deviation that is averaged over; the posterior of the mean goes through the decoder.
               Its deviation is what noise, counts and a skewness of about 1 leave open; how far the model is from
               these records is not included, nor what the encoder drops.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sensorsim._util.errors import InputError
from sensorsim.hospital.confidence import Law, Reals, law_of
from sensorsim.hospital.packets import READERS, STAIRS_COLUMNS, SUMS, Expected, Tally, detect_form, tally_packets
from sensorsim.hospital.receiver import Source, open_source

if TYPE_CHECKING:
    from sensorsim.hospital.receiver import Received

NODES = 32  # of the quadrature over a normal a
WITHIN = (0.05, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25)  # deviation of a over the records, relative to the expected one
FINE, FAR = 513, 6.0  # points of a, and how far out, for the posterior given one value
APART = (0.03, 0.1, 0.3, 1.0)  # distance of these records' mean from the expected one, relative: all equally likely
SKEW = 1 / 12  # a skewness of 1, which no h shows, moves the mean of a by s³/12: the third term of the sigmoid at 0
GRID, REACH, ROUNDS = 61, 6.0, 8  # of the mean of a; the grid narrows around it in each round
DRAWS = 2048  # of a around its mean
MOST_LEFT = 0.999  # of a unit's variance, when a value is known
AT_ONCE = 2048  # records made at a time
HALF_WIDTH = 1.96  # of a 95 % interval, in deviations


class Codes(NamedTuple):
    """Hidden units of one user as the model expects them, and the decoder from them to a record."""

    middle: Reals  # (l,) mean of a
    covariance: Reals  # (l, l)
    linear: bool  # whether the decoder is linear in a
    decode: Callable[[Any], Reals]  # h (…, l) to records (…, n) in 0 … 1

    @property
    def spread(self) -> Reals:
        """Standard deviation of every unit."""
        return np.sqrt(np.diag(self.covariance))


class Unit(NamedTuple):
    """Posterior of a hidden unit over the records that it came from."""

    mean: float  # of a
    doubt: float  # standard deviation of that mean
    within: float  # deviation of a over the records


class MeanRecord(NamedTuple):
    """The mean record of some packets, in 0 … 1."""

    mean: Reals  # (n,)
    deviation: Reals  # (n,) of the estimate
    low: Reals  # 95 %, within 0 … 1
    high: Reals


# ── many packets ──


def mean_record(received: "Received", codes: Codes) -> MeanRecord:
    """Estimate the mean of the records behind these packets, as far as the encoder keeps it."""
    at, doubt, within = (np.array(part) for part in zip(*_units(received, codes), strict=True))
    ratio = within / codes.spread
    root = np.linalg.cholesky(codes.covariance * np.outer(ratio, ratio))
    drawn = np.random.default_rng(0).standard_normal((DRAWS, len(within))) @ root.T
    about = np.concatenate([drawn, -drawn])  # fixed draws of a about its mean, in pairs that cancel

    def decoded(at: Reals) -> Reals:
        """Return the mean record for these means of a: no decoder is linear beyond 0 and 1."""
        return np.asarray(_decode(at + about, codes).mean(axis=0))

    mean = decoded(at)
    steps = np.diag(np.maximum(doubt, 1e-6))
    moved = [(decoded(at + step) - decoded(at - step)) / 2 for step in steps]
    deviation = np.sqrt(np.square(moved).sum(axis=0))  # each unit moved by its own doubt
    half = HALF_WIDTH * deviation
    return MeanRecord(mean, deviation, np.clip(mean - half, 0.0, 1.0), np.clip(mean + half, 0.0, 1.0))


def posterior_codes(received: "Received", codes: Codes) -> Codes:
    """Return the units as expected given these packets, as the prior for a single one of them."""
    found = _units(received, codes)
    ratio = np.array([np.hypot(unit.within, unit.doubt) for unit in found]) / codes.spread
    return codes._replace(
        middle=np.array([unit.mean for unit in found]), covariance=codes.covariance * np.outer(ratio, ratio)
    )


def _units(received: "Received", codes: Codes) -> list[Unit]:
    law = law_of(received.table)
    every = zip(codes.middle.tolist(), codes.spread.tolist(), strict=True)
    return [_unit(_log_likelihood(received, law, r), *expected) for r, expected in enumerate(every)]


def _log_likelihood(received: "Received", law: Law, r: int) -> Callable[[Reals], Reals]:
    """Return the log-likelihood of the packets of unit r as a function of a, from (…, nodes) to (…)."""
    from scipy.special import expit

    weight, row = np.polynomial.hermite_e.hermegauss(NODES)[1], received.statistics.sums[r]
    weight = weight / weight.sum()  # of a standard normal variable
    if received.statistics.columns != STAIRS_COLUMNS:
        order = np.argsort(received.table.estimate(np.arange(len(row))), kind="stable")  # the law's values ascend
        counts = np.array(row, np.float64)[order]

        def of_symbols(a: Reals) -> Reals:
            chance = np.einsum("z,...zv->...v", weight, law.chance_at(np.asarray(expit(a))))
            return np.asarray(np.log(np.maximum(chance, 1e-300)) @ counts)

        return of_symbols
    total, count = (float(part[r]) for part in received.total_and_count())
    noise = float(received.table.estimate_sd or 0.0) ** 2

    def of_sums(a: Reals) -> Reals:
        h = expit(a)
        mean = h @ weight
        variance = noise + h**2 @ weight - mean**2
        return np.asarray(-0.5 * (count * (total / max(count, 1.0) - mean) ** 2 / variance + np.log(variance)))

    return of_sums


def _unit(likelihood: Callable[[Reals], Reals], middle: float, spread: float) -> Unit:
    """Return the posterior of the mean of a over the records, on a grid that narrows around it."""
    node = np.polynomial.hermite_e.hermegauss(NODES)[0]
    within = spread * np.array(WITHIN)
    centre, reach = middle, REACH * spread
    for _ in range(ROUNDS):
        mu = centre + reach * np.linspace(-1.0, 1.0, GRID)
        log = likelihood(mu[:, None, None] + within[None, :, None] * node)  # (grid, within)
        away = (mu - middle) / spread
        log += np.logaddexp.reduce([-0.5 * (away / one) ** 2 - np.log(one) for one in APART])[:, None]
        odds = np.exp(log - log.max())
        odds /= odds.sum()
        mean = float(odds.sum(axis=1) @ mu)
        doubt = float(np.sqrt(odds.sum(axis=1) @ (mu - mean) ** 2))
        if doubt > 4 * reach / GRID:
            break
        centre, reach = mean, max(REACH * doubt, reach / 8)
    deviation = float(np.sqrt(odds.sum(axis=0) @ within**2))
    return Unit(mean, float(np.hypot(doubt, SKEW * deviation**3)), deviation)


def _decode(a: Any, codes: Codes) -> Reals:
    from scipy.special import expit

    return codes.decode(expit(a))


# ── one packet ──


def each_record(
    packets: Iterable[Source], expected: Expected, codes: Codes, form: str | None = None
) -> Iterator[tuple[Reals, Tally]]:
    """Yield a record for every packet, some at a time, (rows, n) in 0 … 1, and the counts so far.

    Packets keep their order, except that those of different layouts are sorted within a block.
    """
    law = law_of(expected.table)
    every = [_posterior(law, middle, spread) for middle, spread in zip(codes.middle, codes.spread, strict=True)]
    answers = np.array([mean for mean, _ in every]), np.array([variance for _, variance in every])
    empty = Tally.of(expected)
    collected = _Collected(empty.cells, empty.limit)
    for source in packets:
        with open_source(source) as stream:
            kind = detect_form(stream, form)
            if kind == SUMS:
                raise InputError(
                    f"{stream.name} holds sums, of which no single packet can be had; give the packets, or no --each."
                )
            for block in READERS[kind](stream, expected, collected):
                tally_packets(block, expected, collected)
                for features, y in collected.fetched:
                    place = np.interp(expected.table.estimate(y), law.values, np.arange(len(law.values)))
                    for first in range(0, y.shape[1], AT_ONCE):
                        part = slice(first, first + AT_ONCE)
                        units = None if features is None else features[:, part]
                        yield _records(units, place[:, part], answers, codes), collected
                collected.fetched.clear()
    yield codes.decode(np.empty((0, len(codes.middle)))), collected  # with what was refused after the last record


class _Collected(Tally):
    """Count what is refused, and collect what is accepted until it is fetched."""

    @cached_property
    def fetched(self) -> list[tuple[Any, Any]]:
        return []

    def count(self, features: Any, values: Any) -> None:
        self.accepted += values.shape[1]
        y = values if self.limit is None else values.astype(np.int64) - self.limit
        if values.shape[1]:
            self.fetched.append((features, y))


def _posterior(law: Law, middle: float, spread: float) -> tuple[Reals, Reals]:
    """Return mean and variance of one unit's a given each value, on an even grid: the law of stairs has jumps."""
    from scipy.special import expit

    node = np.linspace(-FAR, FAR, FINE)
    weight, a = np.exp(-(node**2) / 2), middle + spread * node
    joint = weight[:, None] * law.chance_at(np.asarray(expit(a)))  # (nodes, values)
    sums = joint.sum(axis=0)
    never = sums <= 0  # a value that no unit gives: it says nothing
    odds = np.where(never, weight[:, None] / weight.sum(), joint / np.where(never, 1.0, sums))
    mean = a @ odds
    return mean, a**2 @ odds - mean**2


def _records(units: Any, place: Reals, answers: tuple[Reals, Reals], codes: Codes) -> Reals:
    """Return records (rows, n) from units (k, rows), None for all, and the index of each value in the law.

    The posterior of one unit acts as a normal observation of its a, so that all of them can be combined.
    """
    l, C = len(codes.middle), codes.covariance
    which = np.broadcast_to(np.arange(l)[:, None], place.shape) if units is None else units.astype(np.int64)
    below = np.minimum(place.astype(np.int64), answers[0].shape[1] - 2)
    share = place - below
    mean, left = (
        (part[which, below] * (1 - share) + part[which, below + 1] * share).T for part in answers
    )  # (rows, k)
    which = which.T
    own = np.diag(C)[which]
    whole = own**2 / (own - np.minimum(left, MOST_LEFT * own))  # variance of the observation: the unit's, and noise
    seen = (mean - codes.middle[which]) * whole / own
    among = C[which[:, :, None], which[:, None, :]].copy()
    among[:, np.arange(which.shape[1]), np.arange(which.shape[1])] = whole
    gain = np.linalg.solve(among, C[which])  # (rows, k, l)
    at = codes.middle + np.einsum("pk,pkl->pl", seen, gain)
    if codes.linear:
        return _decode(at, codes)
    rest = np.maximum(np.diag(C) - np.einsum("pkl,pkl->pl", C[which], gain), 0.0)
    return _decode(at / np.sqrt(1 + np.pi * rest / 8), codes)  # the mean of sigmoid(a), nearly
