"""Tables as sources: the one file that knows how packets are drawn from a table and what is expected of them.

A mechanism says itself what an observer sees of it; the certified ones by the functions here, SPOF by spof_sources.py.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from sensorsim.kernels.formats import FRAC
from sensorsim.mechanisms import find
from sensorsim.privacy.audit.source import (
    ONE,
    Field,
    Seed,
    Source,
    Words,
    is_even,
    mix,
    repeat,
    usual_inputs,
)
from sensorsim.privacy.audit.spof_sources import GENERATOR, WAYS

if TYPE_CHECKING:
    from sensorsim.privacy.tables import NoiseTable

CHOICE_SLACK = 2.0**-20  # times the features: see the kernel `choose`


class Certified(NamedTuple):
    """What a certificate is about: so many features of a record, or as many picked of it, at this epsilon each."""

    features: int
    release: int
    sampled: bool
    share: float
    distribution: Callable[[int], Any] | None  # exact, of a released value by x; None where it is not known


def make_source(table: "NoiseTable", mechanism: str | None = None, words: Words | None = None) -> Source:
    """The source of a mechanism that draws from this table; by default the one that the table is for."""
    if mechanism is None:
        mechanism = "lean" if not table.for_releases else "sampled" if table.sampled else "release"
    if mechanism in WAYS:
        return WAYS[mechanism](table, words)
    source: Source = find(mechanism).observed(table, words)
    return source


def release(table: "NoiseTable", words: Words | None) -> Source:
    """Every feature of a record, through the certified kernel."""
    from sensorsim.privacy.releases import release_records

    table.arguments()  # refuses what the kernels cannot draw from

    def draw(x: Any, count: int, seed: Seed) -> Any:
        given = None if words is None else words(seed, count, table.release)
        return release_records(repeat(x, count, seed), table, seed, generator=GENERATOR, word=given, unproved=True)

    return release_source(certified(table, sampled=False), draw, GENERATOR)


def sampled(table: "NoiseTable", words: Words | None) -> Source:
    """Some features of a record, picked at random, through the certified kernel."""
    from sensorsim.privacy.releases import sampled_records

    table.arguments()

    def draw(x: Any, count: int, seed: Seed) -> Any:
        given = None if words is None else words(seed, count, 2 * table.release)
        drawn = sampled_records(repeat(x, count, seed), table, seed, generator=GENERATOR, word=given, unproved=True)
        return interleaved(*drawn)

    return release_source(certified(table, sampled=True), draw, GENERATOR)


def release_source(certified: Certified, draw: Callable[[Any, int, Seed], Any], words: str) -> Source:
    """What is claimed and expected of the packets of a certified kernel, however they are drawn."""
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
    def of_any(values: tuple[int, ...]) -> Any:
        return None if distribution is None else mix([distribution(value) for value in values])

    def expected(x: Any, column: int) -> Any:
        if certified.sampled and column % 2 == 0:
            return _even(n - column // 2)
        if certified.sampled and not is_even(x):
            return of_any(tuple(sorted(x.tolist())))
        return of_any(tuple(x[..., 0 if certified.sampled else column].ravel().tolist()))

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
    """Columns in the order of the radio. A choice is told as its place among the features that were left.

    That says the same, and is uniform and independent of the choices before it where they are made without regard to x.
    """
    import numpy as np

    made = np.empty((len(y), 2 * y.shape[1]), np.int32)
    for j in range(y.shape[1]):
        earlier = (chosen[:, :j] < chosen[:, j : j + 1]).sum(axis=1) if j else 0
        made[:, 2 * j] = chosen[:, j] - earlier
        made[:, 2 * j + 1] = y[:, j]
    return made


def certified(table: "NoiseTable", sampled: bool) -> Certified:
    """What the certificate of a table says of one draw, if that is less than its share of the budget."""
    proved = table.certificate and table.certificate.epsilon_release
    share = min(_budget(table), float(proved)) if proved else _budget(table)
    features = table.features if sampled else table.release
    return Certified(features, table.release, sampled, share, _distributions(table))


def _budget(table: "NoiseTable") -> float:
    return float(table.epsilon) / table.release


def _distributions(table: "NoiseTable") -> Callable[[int], Any]:
    """The exact distribution of a released value; what is above 1 counts as 1."""

    @lru_cache(maxsize=32)
    def of(x: int) -> Any:
        values, counts = table.distribution(min(x, ONE) >> (FRAC - table.frac_bits))
        return values, counts / counts.sum()

    return of


def _even(places: int) -> Any:
    import numpy as np

    return np.arange(places), np.full(places, 1 / places)
