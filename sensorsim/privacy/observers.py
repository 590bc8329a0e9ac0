"""What an observer of a sensor sees: the real kernels, run many times on one input.

Each observer draws a block of outputs for a feature that is 0 or 1 (every feature of the record alike) and says what it
makes of them. The last two know the table, as everyone does, and use a weakness of how it is read.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sensorsim.errors import InputError

if TYPE_CHECKING:
    import numpy as np

    from sensorsim.privacy.tables import NoiseTable

Seed = Sequence[int]
Block = tuple["np.ndarray[Any, Any]", "np.ndarray[Any, Any]"]  # outputs, and what the observer makes of each
FEATURES = 16  # of a simulated record in which every feature is released
KERNEL_FRAC = 15


class Observer(NamedTuple):
    """`draw(x, size, seed)` gives that many outputs; `claimed` is the epsilon that one observation may cost."""

    mechanism: str
    sees: str
    draw: Callable[[int, int, Seed], Block]
    claimed: float
    shift: int  # outputs are multiples of 2^shift


def make_observer(table: "NoiseTable", mechanism: str | None) -> Observer:
    """The observer of a mechanism that uses this table; by default the one that the table is for."""
    if mechanism is None:
        mechanism = "lean" if table.kind != "stairs" else "release" if table.release == table.features else "sampled"
    if mechanism not in OBSERVERS:
        raise InputError(f"mechanism {mechanism!r} is not known; choose one of {', '.join(OBSERVERS)}.")
    return OBSERVERS[mechanism](table)


def _release(table: "NoiseTable") -> Observer:
    from sensorsim.privacy.releases import release_records, table_arguments

    table_arguments(table)

    def draw(x: int, size: int, seed: Seed) -> Block:
        records = _records(x, -(-size // table.release), table.release)
        y = release_records(records, table, seed)
        return y.reshape(-1)[:size], y.reshape(-1)[:size]

    return Observer("release", "the released value of a feature", draw, _promised(table), 0)


def _sampled(table: "NoiseTable") -> Observer:
    from sensorsim.privacy.releases import release_sampled_records, table_arguments

    table_arguments(table)

    def draw(x: int, size: int, seed: Seed) -> Block:
        records = _records(x, -(-size // table.release), table.features)
        y = release_sampled_records(records, table, seed)[1]
        return y.reshape(-1)[:size], y.reshape(-1)[:size]

    return Observer("sampled", "the released value of a picked feature", draw, _promised(table), 0)


def _lean(table: "NoiseTable") -> Observer:
    from sensorsim.kernels.spof_lean import spof_lean

    noise, shift = _noise(table, "lean"), _shift(table)

    def draw(x: int, size: int, seed: Seed) -> Block:
        records = _records(x, -(-size // FEATURES), FEATURES)
        alpha2 = spof_lean.batch(x=records, noise=noise, seed=seed, out={"alpha3": None})["alpha2"].reshape(-1)[:size]
        return alpha2, alpha2

    return Observer("lean", "the noisy coefficient alpha2", draw, float(1 / table.scale), shift)


def _prefetch(table: "NoiseTable") -> Observer:
    import numpy as np

    noise, shift = _noise(table, "prefetch"), _shift(table)

    def draw(x: int, size: int, seed: Seed) -> Block:
        strides = np.ones((size, 2), np.uint32)
        alpha2 = spof_in_order(_records(x, size, 1), noise, strides)[0]
        known = noise[np.arange(1, size + 1) % len(noise)]
        return alpha2, alpha2 - known

    sees = "alpha2 less the noise that the fixed order of reading gives away"
    return Observer("prefetch", sees, draw, _share(table), shift)


def _shared(table: "NoiseTable") -> Observer:
    import numpy as np

    noise, shift = _noise(table, "shared"), _shift(table)

    def draw(x: int, size: int, seed: Seed) -> Block:
        one = np.random.default_rng(seed).integers(0, len(noise), (size, 1), np.uint32)
        alpha2, alpha3 = spof_in_order(_records(x, size, 1), noise, np.repeat(one, 2, axis=1))
        return alpha2, alpha2 - alpha3

    return Observer("shared", "alpha2 - alpha3, where one draw served both", draw, _share(table), shift)


OBSERVERS: dict[str, Callable[["NoiseTable"], Observer]] = {
    "release": _release,
    "sampled": _sampled,
    "lean": _lean,
    "prefetch": _prefetch,
    "shared": _shared,
}


def spof_in_order(x: Any, noise: Any, strides: Any) -> Block:
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


def _records(x: int, rows: int, features: int) -> Any:
    import numpy as np

    return np.full((rows, features), x, np.uint16)


def _promised(table: "NoiseTable") -> float:
    """What the table's certificate says of one draw, if that is less than its share of the budget."""
    proved = table.certificate and table.certificate.epsilon_release
    return min(_share(table), float(proved)) if proved else _share(table)


def _share(table: "NoiseTable") -> float:
    """A feature's part of the budget of a record."""
    return float(table.epsilon) / table.release


def _shift(table: "NoiseTable") -> int:
    return KERNEL_FRAC - table.frac_bits


def _noise(table: "NoiseTable", mechanism: str) -> Any:
    """The table as SPOF's kernels take it: 32-bit samples in Q15, no clamp, no position on a stair."""
    import numpy as np

    if table.frac_bits > KERNEL_FRAC or table.entries > 1 << 16:
        raise InputError(
            f"this table has {table.frac_bits} fraction bits and {table.entries} entries; the kernel of {mechanism} "
            f"takes at most {KERNEL_FRAC} and 2^16."
        )
    if table.kind == "stairs" and mechanism == "lean":
        raise InputError("lean reads whole samples and this is a stairs table; audit it with release or sampled.")
    if table.kind != "stairs" and table.limit is not None:
        raise InputError("no kernel clamps the output of a naive or quantile table; make it without --limit.")
    noise = table.values.astype(np.int64) << (table.stair_bits + _shift(table))
    if abs(noise).max() > 1 << 30:
        raise InputError("this table's noise is beyond ±32768, what the kernels take; give a larger epsilon.")
    return noise.astype(np.int32)
