"""Releases of many records through a stairs table: the kernels that firmware runs, in batches.

One place decides which tables fit the kernels. The index and the place on a stair come from one 32-bit word, so a table
whose bits would overlap in it must be refused: its draws would not be independent, and its certificate would not hold.

Words come from ChaCha20 with a key of the operating system unless a seed or another generator is asked for: the
shortest call is the private one.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sensorsim.errors import InputError
from sensorsim.kernels.formats import DROP, FRAC, LIMIT, STAIR_BITS
from sensorsim.kernels.release import release, release_sampled

if TYPE_CHECKING:
    from sensorsim.language.run.generators import Seed
    from sensorsim.privacy.tables import NoiseTable

Records = npt.NDArray[np.uint16]
Values = npt.NDArray[np.int32]
Picks = npt.NDArray[np.uint32]


@lru_cache(maxsize=32)
def table_arguments(table: "NoiseTable") -> tuple[npt.NDArray[np.int8], int, int, int]:
    """Entries, limit, drop and stair_bits as the kernels take them, or one sentence on why they cannot."""
    if table.kind != "stairs" or table.limit is None:
        raise InputError(f"a release needs a stairs table, not a {table.kind} one; make it with --kind stairs.")
    if table.frac_bits != FRAC:
        raise InputError(
            f"this table has {table.frac_bits} fraction bits and the kernels' x has {FRAC}; make it with "
            f"--frac-bits {FRAC} (the stairs stay the same)."
        )
    values, drop = table.values, 32 - table.index_bits
    fits = STAIR_BITS.lo <= table.stair_bits <= STAIR_BITS.hi and table.limit <= LIMIT.hi
    if values.dtype != np.int8 or not DROP.lo <= drop <= DROP.hi or not fits:
        raise InputError(
            f"this table has {len(values)} entries of {values.dtype.itemsize} B; the kernels take up to "
            f"2^{32 - DROP.lo} of one byte, so make it with fewer --entries or a larger --epsilon."
        )
    return values, table.limit, drop, table.stair_bits


def release_records(
    x: Records,
    table: "NoiseTable",
    seed: "Seed" = None,
    threads: int = 1,
    generator: str = "chacha20",
    out: Values | None = None,
) -> Values:
    """`release` on every row of x, whole numbers in Q15. Divide by `table.gain` for an unbiased estimate of x - 1/2."""
    n = _features(x)
    if n > table.release:
        raise InputError(
            f"the table is certified for {table.release} released features and these records have {n}; make it with "
            f"--release {n}, or release fewer."
        )
    room = {} if out is None else {"y": out}
    made = release.batch(x=x, generator=generator, seed=seed, threads=threads, out=room, **_named(table))
    y: Values = made["y"]
    return y


def release_sampled_records(
    x: Records,
    table: "NoiseTable",
    seed: "Seed" = None,
    threads: int = 1,
    generator: str = "chacha20",
    out: tuple[Picks, Values] | None = None,
) -> tuple[Picks, Values]:
    """`release_sampled` on every row of x: which `table.release` features of it, and their values."""
    n, k = _features(x), table.release
    if k > n:
        raise InputError(f"the table releases {k} features of a record and these records have {n}; make it for them.")
    room = {} if out is None else {"chosen": out[0], "y": out[1]}
    given = _named(table) | {"x": x, "k": k, "order": np.arange(n, dtype=np.uint32)}
    made = release_sampled.batch(generator=generator, seed=seed, threads=threads, out=room, **given)
    return made["chosen"], made["y"]


def _named(table: "NoiseTable") -> dict[str, Any]:
    return dict(zip(("table", "limit", "drop", "stair_bits"), table_arguments(table), strict=True))


def _features(x: Any) -> int:
    if np.ndim(x) != 2:
        raise InputError(f"x has {np.ndim(x)} dimensions; give one row for each record.")
    return int(np.shape(x)[1])
