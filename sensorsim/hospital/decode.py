"""The way back: from released codes of hidden units to records, at the hospital.

A sensor with an encoder releases k of its l hidden units h = sigmoid(a) through a noise table. What comes is a symbol,
or a noisy number, of which no single one says much. So each is read together with what the model expects of the units,
normal a with a mean and a covariance that were learnt from earlier releases:

one packet     the posterior mean of every released unit given what came, and by their covariance that of the others;
               the model's decoder makes a record of them. With little epsilon it hardly leaves the mean record. What
               all packets together say of the mean may come first: it is post-processing of them, like all the rest.
many packets   the mean over the records of every unit. Their a are taken as normal, of a mean that is near the
               expected one or not, and of a deviation that is averaged over; the posterior of the mean goes through the
               decoder. Its deviation is what noise, numbers and a skewness of about 1 leave open; how far the model is
               from these records is not in it, and neither is what the encoder drops.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sensorsim.errors import InputError
from sensorsim.hospital.codes import Codes, Reals, answers_of, units_of
from sensorsim.hospital.expected import Expected
from sensorsim.hospital.law import law_of
from sensorsim.hospital.reading import BINARY, LOOK, MARK, SUMS, form_of
from sensorsim.hospital.receiving import READERS, Source, opened
from sensorsim.hospital.tally import Tally
from sensorsim.hospital.unpack import tally_packets

if TYPE_CHECKING:
    from sensorsim.hospital.received import Received

DRAWS = 2048  # of a around its mean
MOST_LEFT = 0.999  # of a unit's variance, when a value is known
AT_ONCE = 2048  # records made at a time
HALF_WIDTH = 1.96  # of a 95 % interval, in deviations


class MeanRecord(NamedTuple):
    """The mean record of some packets, in 0 … 1."""

    mean: Reals  # (n,)
    deviation: Reals  # (n,) of what is known of it
    low: Reals  # 95 %, within 0 … 1
    high: Reals


def mean_record(received: "Received", codes: Codes) -> MeanRecord:
    """The mean of the records behind these packets, as far as the encoder keeps it."""
    found = units_of(received, codes)
    at, doubt, within = (np.array(part) for part in zip(*found, strict=True))
    about = _around(codes, within)
    mean = _mean_of(at, about, codes)
    steps = np.diag(np.maximum(doubt, 1e-6))
    moved = [(_mean_of(at + step, about, codes) - _mean_of(at - step, about, codes)) / 2 for step in steps]
    deviation = np.sqrt(np.square(moved).sum(axis=0))  # each unit moved by its own doubt
    half = HALF_WIDTH * deviation
    return MeanRecord(mean, deviation, np.clip(mean - half, 0.0, 1.0), np.clip(mean + half, 0.0, 1.0))


def told_by(received: "Received", codes: Codes) -> Codes:
    """The units as they are expected when these packets have been seen: for a single one of them."""
    found = units_of(received, codes)
    ratio = np.array([np.hypot(unit.within, unit.doubt) for unit in found]) / codes.spread
    return codes._replace(
        middle=np.array([unit.mean for unit in found]), covariance=codes.covariance * np.outer(ratio, ratio)
    )


def each_record(
    packets: Iterable[Source], expected: Expected, codes: Codes, form: str | None = None
) -> Iterator[tuple[Reals, Tally]]:
    """A record for every packet, some at a time, (rows, n) in 0 … 1; beside them, what was refused so far.

    Packets come in their order, but for those of different layouts, which are sorted within a block.
    """
    law = law_of(expected.table)
    answers, tally = answers_of(law, codes), Tally.of(expected)
    kept = _Kept(tally.cells, tally.limit)
    for source in packets:
        for features, y in _released(source, expected, kept, form):
            place = np.interp(expected.table.estimate(y), law.values, np.arange(len(law.values)))
            for first in range(0, y.shape[1], AT_ONCE):
                part = slice(first, first + AT_ONCE)
                yield records_of(None if features is None else features[:, part], place[:, part], answers, codes), kept
    yield codes.decode(np.empty((0, len(codes.middle)))), kept  # for what was refused after the last record


def records_of(units: Any, place: Reals, answers: tuple[Reals, Reals], codes: Codes) -> Reals:
    """Records (rows, n) from which units came (k, rows), None for all, and where on the law's values each stands.

    What is known of one unit acts as a normal observation of its a, so that all of them can be put together.
    """
    l, C = len(codes.middle), codes.covariance
    which = np.broadcast_to(np.arange(l)[:, None], place.shape) if units is None else units.astype(np.int64)
    mean, left = (_between(part, which, place).T for part in answers)  # (rows, k)
    which = which.T
    own = np.diag(C)[which]
    whole = own**2 / (own - np.minimum(left, MOST_LEFT * own))  # variance of the observation: the unit's, and noise
    seen = (mean - codes.middle[which]) * whole / own
    among = C[which[:, :, None], which[:, None, :]].copy()
    among[:, np.arange(which.shape[1]), np.arange(which.shape[1])] = whole
    gain = np.linalg.solve(among, C[which])  # (rows, k, l)
    at = codes.middle + np.einsum("pk,pkl->pl", seen, gain)
    if codes.linear:
        return _decoded(at, codes)
    rest = np.maximum(np.diag(C) - np.einsum("pkl,pkl->pl", C[which], gain), 0.0)
    return _decoded(at / np.sqrt(1 + np.pi * rest / 8), codes)  # the mean of sigmoid(a), nearly


class _Kept(Tally):
    """Counts what is refused, and keeps what is accepted until it is fetched."""

    def count(self, features: Any, values: Any) -> None:
        self.accepted += values.shape[1]
        y = values if self.limit is None else values.astype(np.int64) - self.limit
        if values.shape[1]:
            self.fetched.append((features, y))

    @cached_property
    def fetched(self) -> list[tuple[Any, Any]]:
        return []


def _released(source: Source, expected: Expected, kept: _Kept, form: str | None) -> Iterator[tuple[Any, Any]]:
    """Which units and what came of them, (k, packets), for the packets of one source; a block at a time."""
    with opened(source) as (file, name):
        head = file.read(LOOK)
        text = head.removeprefix(MARK)
        form = form or form_of(text)
        if form == SUMS:
            raise InputError(
                f"{name} holds sums, of which no single packet can be had; give the packets, or no --each."
            )
        for block in READERS[form](head if form == BINARY else text, file, expected, kept):
            tally_packets(block, expected, kept)
            yield from kept.fetched
            kept.fetched.clear()


def _decoded(a: Any, codes: Codes) -> Reals:
    from scipy.special import expit

    return codes.decode(expit(a))


def _mean_of(at: Reals, about: Reals, codes: Codes) -> Reals:
    """The mean record where the means of a are these: no decoder is a straight line beyond 0 and 1."""
    return np.asarray(_decoded(at + about, codes).mean(axis=0))


def _around(codes: Codes, within: Reals) -> Reals:
    """Draws of a about its mean, always the same ones, (2·DRAWS, l), in pairs that cancel."""
    ratio = within / codes.spread
    root = np.linalg.cholesky(codes.covariance * np.outer(ratio, ratio))
    drawn = np.random.default_rng(0).standard_normal((DRAWS, len(within))) @ root.T
    return np.concatenate([drawn, -drawn])


def _between(table: Reals, which: Any, place: Reals) -> Reals:
    """Entries of the table (l, values) for these units, between two values where `place` is between them."""
    left = np.minimum(place.astype(np.int64), table.shape[1] - 2)
    share = place - left
    return np.asarray(table[which, left] * (1 - share) + table[which, left + 1] * share)
