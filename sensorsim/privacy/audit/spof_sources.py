"""SPOF's kernels as sources, which no certificate covers.

`lean` has one secret draw for each feature, `spof` is as printed, with secret strides. Two ways to get it wrong leave
every value by itself as it should be: `prefetch` reads the table in a fixed order, `shared` uses a draw twice.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sensorsim.errors import InputError
from sensorsim.privacy.audit.source import ONE, Field, Seed, Source, Words, mix, repeat, usual_inputs

if TYPE_CHECKING:
    from sensorsim.privacy.tables import NoiseTable

GENERATOR, NUMPY = "chacha20", "NumPy's generator"
MOST_FEATURES = 16  # of a simulated record


def _lean(table: "NoiseTable", words: Words | None) -> Source:
    from sensorsim.kernels.spof_lean import spof_lean

    if table.for_releases:
        raise InputError(
            f"lean reads whole samples and this is a {table.kind} table; audit it with release or sampled."
        )
    noise, n = table.samples(), min(table.features, MOST_FEATURES)
    share = _spof_share(table)

    def draw(x: Any, count: int, seed: Seed) -> Any:
        given = {} if words is None else {"word": words(seed, count, n)}
        return spof_lean.batch(
            x=repeat(x, count, seed), noise=noise, seed=seed, generator=GENERATOR, out={"alpha3": None}, **given
        )["alpha2"]

    fields = tuple(Field(f"alpha2[{i}]", share) for i in range(n))
    expected = _coefficients(noise)
    return Source(
        "lean", "the noisy coefficients alpha2 of a record", share * n, n, fields, usual_inputs(n), draw,
        lambda x, column: expected(x[..., column]), lambda x: True, GENERATOR,
    )  # fmt: skip


def spof(table: "NoiseTable", words: Words | None) -> Source:
    """Both coefficients as printed. Nobody can say what they cost together but the budget of the record."""
    noise = table.samples()

    def draw(x: Any, count: int, seed: Seed) -> Any:
        import numpy as np

        if words is None:
            strides = np.random.default_rng(seed).integers(0, len(noise), (count, 2), np.uint32)
        else:
            strides = words(seed, count, 2) % np.uint32(len(noise))
        return np.stack(_spof_in_order(repeat(x, count, seed), noise, strides), axis=1)

    fields = Field("alpha2", _budget(table)), Field("alpha3", _budget(table))
    return _of_one_feature("spof", "alpha2 and alpha3 of a feature", _budget(table), fields, draw, noise)


def _prefetch(table: "NoiseTable", words: Words | None) -> Source:
    noise = table.samples()

    def draw(x: Any, count: int, seed: Seed) -> Any:
        import numpy as np

        alpha2 = _spof_in_order(repeat(x, count, seed), noise, np.ones((count, 2), np.uint32))[0]
        known = noise[np.arange(1, count + 1) % len(noise)]
        return np.stack([alpha2, alpha2 - known], axis=1)

    fields = (
        Field("alpha2", _budget(table)),
        Field("alpha2 less the noise that a fixed order gives away", _budget(table)),
    )
    sees = "alpha2, and alpha2 less the noise that the fixed order of reading gives away"
    return _of_one_feature("prefetch", sees, _budget(table), fields, draw, noise)


def _shared(table: "NoiseTable", words: Words | None) -> Source:
    noise = table.samples()

    def draw(x: Any, count: int, seed: Seed) -> Any:
        import numpy as np

        one = np.random.default_rng(seed).integers(0, len(noise), (count, 1), np.uint32)
        alpha2, alpha3 = _spof_in_order(repeat(x, count, seed), noise, np.repeat(one, 2, axis=1))
        return np.stack([alpha2, alpha2 - alpha3], axis=1)

    fields = Field("alpha2", _budget(table)), Field("alpha2 - alpha3, where one draw served both", _budget(table))
    sees = "alpha2, and alpha2 - alpha3 where one draw served both"
    return _of_one_feature("shared", sees, _budget(table), fields, draw, noise)


WAYS: dict[str, Callable[["NoiseTable", Words | None], Source]] = {  # to run SPOF, beside the one that is printed
    "lean": _lean,
    "prefetch": _prefetch,
    "shared": _shared,
}


def _of_one_feature(
    mechanism: str, sees: str, claimed: float, fields: tuple[Field, ...], draw: Any, noise: Any
) -> Source:
    """A source of SPOF's: records of one feature, alpha2 first."""
    expected = _coefficients(noise)
    inputs = usual_inputs(1)
    return Source(
        mechanism, sees, claimed, 1, fields, inputs, draw,
        lambda x, column: None if column else expected(x[..., 0]),
        lambda x: x.ndim == 1,  # both columns show the same feature, so they depend on each other where it varies
        NUMPY,
    )  # fmt: skip


def _spof_in_order(x: Any, noise: Any, strides: Any) -> tuple[Any, Any]:
    """The kernel `spof` on records of one feature with these strides, both pointers starting at 0.

    A pointer is where the strides before it have led, so that every record can be given its own.
    """
    import numpy as np

    from sensorsim.kernels.spof import spof

    cursor = (np.cumsum(strides, axis=0, dtype=np.int64) - strides) % len(noise)
    made = spof.batch(
        x=x, weights=np.zeros(1, np.int32), constant=0, noise=noise, stride=strides, cursor=cursor,
        out={"stabilized": None},
    )  # fmt: skip
    return made["alpha2"].reshape(-1), made["alpha3"].reshape(-1)


def _budget(table: "NoiseTable") -> float:
    return float(table.epsilon) / table.release


def _spof_share(table: Any) -> float:
    return float(1 / table.scale)


def _coefficients(noise: Any) -> Callable[[Any], Any]:
    """Return the exact distribution of alpha2 = 1/2 - x + noise, where x is one of these values."""
    import numpy as np

    values, counts = np.unique(noise, return_counts=True)
    share = counts / counts.sum()

    @lru_cache(maxsize=32)
    def of_any(given: tuple[int, ...]) -> Any:
        return mix([(values.astype(np.int64) + ONE // 2 - one, share) for one in given])

    return lambda x: of_any(tuple(np.minimum(x, ONE).ravel().tolist()))
