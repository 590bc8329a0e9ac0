"""Packet sources of noise tables: how packets are drawn from a table, and which distribution is expected of them.

A mechanism names its own source: `certified_source` or `spof`. No certificate covers SPOF's kernels. `lean` has one
secret draw for each feature; `spof` is as printed, with secret strides. Two faulty variants leave each single value
correct: `prefetch` reads the table in a fixed order, `shared` reuses a draw.
"""

import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from sensorsim._util.errors import InputError
from sensorsim.auditing.packet_source import ONE, Field, Seed, Source, Words, is_even, mix, repeat, usual_inputs
from sensorsim.kernels.formats import FRAC
from sensorsim.kernels.spof_lean import spof_lean
from sensorsim.mechanisms import find
from sensorsim.mechanisms.spof import AUDITED_VARIANTS
from sensorsim.noise.batch_release import release_records, sampled_records
from sensorsim.noise.noise_table import NoiseTable

CHOICE_SLACK = 2.0**-20  # times the features: see the kernel `choose`
GENERATOR, NUMPY = "chacha20", "NumPy's generator"
MOST_FEATURES = 16  # of a simulated record


def make_source(table: NoiseTable, mechanism: str | None = None, words: Words | None = None) -> Source:
    """Return the source of a mechanism that draws from this table; by default the one that the table is for."""
    releases = "sampled" if table.sampled else "release"
    mechanism = mechanism or (releases if table.for_releases else "lean")
    if mechanism in SPOF_VARIANTS:
        return SPOF_VARIANTS[mechanism](table, words)
    source: Source = find(mechanism).observed(sys.modules[__name__], table, words)
    return source


# ---- the certified kernels


class Certified(NamedTuple):
    """What a certificate covers: `release` features of a record, picked if `sampled`, at epsilon `share` each."""

    features: int
    release: int
    sampled: bool
    share: float
    distribution: Callable[[int], Any] | None  # exact, of a released value by x; None if unknown


def certified(table: NoiseTable, sampled: bool) -> Certified:
    """Return what the certificate of a table claims of one draw, at most its share of the budget."""
    proved = table.certificate and table.certificate.epsilon_release
    share = float(table.epsilon) / table.release
    share = min(share, float(proved)) if proved else share
    features = table.features if sampled else table.release

    @lru_cache(maxsize=32)
    def distribution(x: int) -> Any:
        """Return the exact distribution of a released value; x above 1 counts as 1."""
        values, counts = table.distribution(min(x, ONE) >> (FRAC - table.frac_bits))
        return values, counts / counts.sum()

    return Certified(features, table.release, sampled, share, distribution)


def certified_source(table: NoiseTable, sampled: bool, words: Words | None) -> Source:
    """Return the source of the certified kernel: every feature of a record, or some that are picked at random."""
    table.arguments()  # refuses a table that the kernels cannot draw from

    def draw(x: Any, count: int, seed: Seed) -> Any:
        given = None if words is None else words(seed, count, (1 + sampled) * table.release)
        run: Callable[..., Any] = sampled_records if sampled else release_records
        drawn = run(repeat(x, count, seed), table, seed, generator=GENERATOR, word=given, unproved=True)
        return interleaved(*drawn) if sampled else drawn

    return release_source(certified(table, sampled), draw, GENERATOR)


def release_source(certified: Certified, draw: Callable[[Any, int, Seed], Any], words: str) -> Source:
    """Return the source of the packets of a certified kernel, with what is claimed and expected of them."""
    n, k, share = certified.features, certified.release, certified.share
    distribution = certified.distribution
    if certified.sampled:
        picks = [(Field(f"chosen[{j}]", 0.0, n * CHOICE_SLACK), Field(f"y[{j}]", share)) for j in range(k)]
        fields = [field for pick in picks for field in pick]
        sees = "which features of a record were picked, and their released values"
    else:
        fields = [Field(f"y[{i}]", share) for i in range(k)]
        sees = "the released values of a record"

    @lru_cache(maxsize=32)
    def mixture(values: tuple[int, ...]) -> Any:
        return None if distribution is None else mix([distribution(value) for value in values])

    def expected(x: Any, column: int) -> Any:
        if certified.sampled and column % 2 == 0:
            left = n - column // 2
            return np.arange(left), np.full(left, 1 / left)
        if certified.sampled and not is_even(x):
            return mixture(tuple(sorted(x.tolist())))
        return mixture(tuple(x[..., 0 if certified.sampled else column].ravel().tolist()))

    return Source(
        mechanism="sampled" if certified.sampled else "release",
        sees=sees,
        claimed=share * k,
        per_record=k,
        fields=tuple(fields),
        inputs=usual_inputs(n),
        draw=draw,
        expected=expected,
        independent=is_even if certified.sampled else lambda x: True,
        words=words,
    )


def interleaved(chosen: Any, y: Any) -> Any:
    """Return columns in the order of the radio. A choice becomes its rank among the features that were left.

    The rank carries the same information, and is uniform and independent of earlier choices if these ignore x.
    """
    made = np.empty((len(y), 2 * y.shape[1]), np.int32)
    for j in range(y.shape[1]):
        earlier = (chosen[:, :j] < chosen[:, j : j + 1]).sum(axis=1) if j else 0
        made[:, 2 * j] = chosen[:, j] - earlier
        made[:, 2 * j + 1] = y[:, j]
    return made


# ---- SPOF's kernels, which no certificate covers


def _lean(table: NoiseTable, words: Words | None) -> Source:
    if table.for_releases:
        raise InputError(
            f"lean reads whole samples and this is a {table.kind} table; audit it with release or sampled."
        )
    noise, n = table.samples(), min(table.features, MOST_FEATURES)
    of_samples: Any = table
    share = float(1 / of_samples.scale)

    def draw(x: Any, count: int, seed: Seed) -> Any:
        given = {} if words is None else {"word": words(seed, count, n)}
        return spof_lean.batch(
            x=repeat(x, count, seed), noise=noise, seed=seed, generator=GENERATOR, out={"alpha3": None}, **given
        )["alpha2"]

    fields = tuple(Field(f"alpha2[{i}]", share) for i in range(n))
    expected = _alpha2_distribution(noise)
    return Source(
        "lean", "the noisy coefficients alpha2 of a record", share * n, n, fields, usual_inputs(n), draw,
        lambda x, column: expected(x[..., column]), lambda x: True, GENERATOR,
    )  # fmt: skip


def spof(table: NoiseTable, words: Words | None) -> Source:
    """Return the source of both coefficients as printed. Only the budget of the record bounds their joint cost."""
    noise = table.samples()

    def draw(x: Any, count: int, seed: Seed) -> Any:
        if words is None:
            strides = np.random.default_rng(seed).integers(0, len(noise), (count, 2), np.uint32)
        else:
            strides = words(seed, count, 2) % np.uint32(len(noise))
        return _spof_in_order(repeat(x, count, seed), noise, strides)

    return _one_feature_source(table, "spof", "alpha2 and alpha3 of a feature", "alpha3", draw)


def _prefetch(table: NoiseTable, words: Words | None) -> Source:
    noise = table.samples()

    def draw(x: Any, count: int, seed: Seed) -> Any:
        alpha2 = _spof_in_order(repeat(x, count, seed), noise, np.ones((count, 2), np.uint32))[:, 0]
        return np.stack([alpha2, alpha2 - noise[np.arange(1, count + 1) % len(noise)]], axis=1)

    sees = "alpha2, and alpha2 less the noise that the fixed order of reading gives away"
    return _one_feature_source(table, "prefetch", sees, "alpha2 less the noise that a fixed order gives away", draw)


def _shared(table: NoiseTable, words: Words | None) -> Source:
    noise = table.samples()

    def draw(x: Any, count: int, seed: Seed) -> Any:
        one = np.random.default_rng(seed).integers(0, len(noise), (count, 1), np.uint32)
        made = _spof_in_order(repeat(x, count, seed), noise, np.repeat(one, 2, axis=1))
        return np.stack([made[:, 0], made[:, 0] - made[:, 1]], axis=1)

    sees = "alpha2, and alpha2 - alpha3 where one draw served both"
    return _one_feature_source(table, "shared", sees, "alpha2 - alpha3, where one draw served both", draw)


SPOF_VARIANTS: dict[str, Callable[[NoiseTable, Words | None], Source]] = dict(
    zip(AUDITED_VARIANTS, (_lean, _prefetch, _shared), strict=True)
)


def _one_feature_source(table: NoiseTable, mechanism: str, sees: str, second: str, draw: Any) -> Source:
    """Return a source of SPOF's: records of one feature, alpha2 and a second column."""
    claimed, expected = float(table.epsilon) / table.release, _alpha2_distribution(table.samples())
    return Source(
        mechanism, sees, claimed, 1, (Field("alpha2", claimed), Field(second, claimed)), usual_inputs(1), draw,
        lambda x, column: None if column else expected(x[..., 0]),
        lambda x: x.ndim == 1,  # both columns show the same feature, so they depend on each other where it varies
        NUMPY,
    )  # fmt: skip


def _spof_in_order(x: Any, noise: Any, strides: Any) -> Any:
    """Run the kernel `spof` on records of one feature with these strides, both pointers starting at 0.

    A pointer is the sum of the strides before it, so that every record can be given its own. Return alpha2 and alpha3.
    """
    from sensorsim.kernels.spof import spof

    cursor = (np.cumsum(strides, axis=0, dtype=np.int64) - strides) % len(noise)
    made = spof.batch(
        x=x, weights=np.zeros(1, np.int32), constant=0, noise=noise, stride=strides, cursor=cursor,
        out={"stabilized": None},
    )  # fmt: skip
    return np.stack([made["alpha2"].reshape(-1), made["alpha3"].reshape(-1)], axis=1)


def _alpha2_distribution(noise: Any) -> Callable[[Any], Any]:
    """Return the exact distribution of alpha2 = 1/2 - x + noise, where x is one of these values."""
    values, counts = np.unique(noise, return_counts=True)

    @lru_cache(maxsize=32)
    def mixture(given: tuple[int, ...]) -> Any:
        return mix([(values.astype(np.int64) + ONE // 2 - one, counts / counts.sum()) for one in given])

    return lambda x: mixture(tuple(np.minimum(x, ONE).ravel().tolist()))
