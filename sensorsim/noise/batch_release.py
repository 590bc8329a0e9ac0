"""Release many records through a certified table, by the kernels that firmware runs, in batches.

Words come from ChaCha20 with a key of the operating system unless a seed or another generator is requested: the
shortest call is the private one. With a seed everything can be reproduced, so nothing is private.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sensorsim._util.errors import InputError
from sensorsim.datasets.public_ranges import as_numbers, quantised
from sensorsim.noise.certificate import certify
from sensorsim.noise.noise_table import NoiseTable

if TYPE_CHECKING:
    from sensorsim.language.numba_backend.generators import Seed

Records = npt.NDArray[np.uint16]
Values = npt.NDArray[Any]  # symbols of a rows table, numbers in Q15 of a stairs table
Picks = npt.NDArray[np.uint32]


def release_records(
    x: Records,
    table: NoiseTable,
    seed: "Seed" = None,
    threads: int = 1,
    generator: str = "chacha20",
    out: Values | None = None,
    word: Any = None,
    unproved: bool = False,
) -> Values:
    """Release every feature of every row of x, whole numbers in Q15 or floats in 0 … 1.

    A 16-bit number above 32768 counts as 1, as on the sensor: it stays within the certificate. The table is proved
    first; `unproved` is for audits of tables that are not private. `word` gives the random words instead of a
    generator, for tests and audits.
    """
    x = _records(x)
    n = x.shape[1]
    if n > table.release:
        raise InputError(
            f"the table is certified for {table.release} released features and these records have {n}; make it with "
            f"--release {n}, or release fewer."
        )
    given = {"x": x} if word is None else {"x": x, "word": word}
    made = _run(table, "release", unproved, given, {"y": out}, generator=generator, seed=seed, threads=threads)
    released: Values = made["y"]
    return released


def sampled_records(
    x: Records,
    table: NoiseTable,
    seed: "Seed" = None,
    threads: int = 1,
    generator: str = "chacha20",
    out: tuple[Picks, Values] | None = None,
    word: Any = None,
    unproved: bool = False,
) -> tuple[Picks, Values]:
    """Release `table.release` features of every row of x, picked at random; return their indices and their values."""
    x = _records(x)
    n, k = x.shape[1], table.release
    if k > n:
        raise InputError(f"the table releases {k} features of a record and these records have {n}; make it for them.")
    given: dict[str, Any] = {"x": x} if word is None else {"x": x, "word": word}
    if "order" in table.kernel("sampled").parameters:  # one feature of a record needs no order
        given |= {"k": k, "order": np.arange(n, dtype=np.uint32)}
    buffers = dict(zip(("chosen", "y"), out or (None, None), strict=True))
    made = _run(table, "sampled", unproved, given, buffers, generator=generator, seed=seed, threads=threads)
    return made["chosen"], made["y"]


def _run(
    table: NoiseTable, mechanism: str, unproved: bool, given: dict[str, Any], buffers: dict[str, Any], **how: Any
) -> dict[str, Any]:
    """Prove a table and run its kernel; a table without a kernel is refused by `arguments`."""
    if not unproved and table.for_releases and not certify(table).holds(table.epsilon):
        raise InputError(
            f"this {table.kind} table does not keep its epsilon {table.epsilon}: nothing is released with it; make it "
            "again, and see `sensorsim noise check`."
        )
    own = {name: array for name, array in buffers.items() if array is not None}
    return table.kernel(mechanism).batch(out=own, **how, **given, **table.arguments())


def _records(x: Any) -> npt.NDArray[Any]:
    """Return the records as an array; quantise floats as the sensor does. The kernels check whole numbers."""
    made = as_numbers(x)
    if made.ndim != 2:
        raise InputError(f"x has {made.ndim} dimensions; give one row for each record.")
    return quantised(made) if made.dtype.kind == "f" and made.size else made
