"""Sketches as the firmware holds them: centre, bound and number of directions, in the kernel's formats.

A record is not released itself. One number is, u = min(1, (s·(x - c))² / R²): see kernels/sketch.py. Everything here is
public, and is fixed before the records that go through it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil, isfinite, log2
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError
from sensorsim.kernels.formats import DIRECTION_BITS, FACTOR, HALVINGS, MIDDLE, ONE, N

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from sensorsim.datasets.public_ranges import Range
    from sensorsim.language.numba_backend.generators import Seed
    from sensorsim.noise.noise_table import NoiseTable

LEAST_ROOT = ONE / FACTOR.hi
MOST_ROOT = 2**HALVINGS.hi
OF_DIRECTIONS = 0x5E7C4  # sets the words that pick directions apart from those that draw, under one seed


@dataclass(frozen=True)
class Sketch:
    """Public parameters of a sketch. The centre is in Q15; R is 2^halvings · 2^15 / factor."""

    n: int
    centre: tuple[int, ...]
    factor: int
    halvings: int
    direction_bits: int
    columns: tuple[str, ...] | None = field(default=None, compare=False)
    ranges: "tuple[Range, ...] | None" = field(default=None, compare=False)

    def __post_init__(self) -> None:
        for name, allowed in (("n", N), ("factor", FACTOR), ("halvings", HALVINGS), ("direction_bits", DIRECTION_BITS)):
            value = getattr(self, name)
            if type(value) is not int or not allowed.lo <= value <= allowed.hi:
                raise InputError(f"{name} of a sketch is {value!r}; give a whole number, {allowed.lo} … {allowed.hi}.")
        whole = all(type(value) is int and MIDDLE.lo <= value <= MIDDLE.hi for value in self.centre)
        if len(self.centre) != self.n or not whole:
            raise InputError(f"the centre of a sketch is {self.n} whole numbers, 0 … {MIDDLE.hi}; give as many.")
        for named in (self.columns, self.ranges):
            if named is not None and len(named) != self.n:
                raise InputError(f"a sketch of {self.n} features names {len(named)} of them; name each, or none.")

    @classmethod
    def of(
        cls,
        centre: Sequence[float],
        root: float,
        direction_bits: int,
        columns: Sequence[str] | None = None,
        ranges: "Sequence[Range] | None" = None,
    ) -> "Sketch":
        """Return the sketch nearest to a centre of numbers in 0 … 1 and a bound R, which is rounded to `root`.

        R is at least one half: a smaller one would only clip more. It is at most 4096, more than any record reaches.
        """
        middle = [float(value) for value in centre]
        if not all(isfinite(value) for value in (*middle, root)) or root <= 0:
            raise InputError("a sketch has a centre of finite numbers and a bound R above 0; give such numbers.")
        bound = min(max(float(root), LEAST_ROOT), MOST_ROOT)
        halvings = max(0, ceil(log2(bound)))
        factor = min(max(round((ONE << halvings) / bound), FACTOR.lo), FACTOR.hi)
        rounded = tuple(MIDDLE.quantise(value) for value in middle)
        names = None if columns is None else tuple(columns)
        units = None if ranges is None else tuple(ranges)
        return cls(len(rounded), rounded, factor, halvings, direction_bits, names, units)

    @property
    def root(self) -> float:
        """Return R, exactly: a record that lies farther off its centre along a direction counts as this far."""
        return (ONE << self.halvings) / self.factor

    @property
    def directions(self) -> int:
        return 1 << self.direction_bits

    @property
    def middle(self) -> "npt.NDArray[np.float64]":
        """Return the centre as numbers in 0 … 1."""
        import numpy as np

        return np.array(self.centre, np.float64) / ONE

    def vectors(self, numbers: Any = None) -> "npt.NDArray[np.int8]":
        """Return these directions, or all, one a row: entries -1, 0 and 1, as the kernel has them."""
        import numpy as np

        from sensorsim.kernels import sketch as kernels

        number = np.arange(self.directions, dtype=np.uint32) if numbers is None else _numbers(numbers, self)
        state = (number + np.uint32(1)) * np.uint32(kernels.SPREAD)
        state = (state ^ state >> np.uint32(16)) * np.uint32(kernels.MIX)
        state ^= state >> np.uint32(13)
        made = np.empty((self.n, len(number)), np.int8)
        for i in range(self.n):
            state *= np.uint32(kernels.MULTIPLIER)
            state += np.uint32(kernels.INCREMENT)
            made[i] = ((state.view(np.int32) >> 1) + np.int32(kernels.ROUNDING)) >> 30
        return np.ascontiguousarray(made.T)

    def value(self, x: Any, numbers: Any, threads: int = 1) -> "npt.NDArray[np.uint16]":
        """Return u of each record (rows, n), in Q15, along the direction of its number: as secret as x."""
        import numpy as np

        from sensorsim.kernels.sketch import sketch

        if np.ndim(x) != 2 or np.shape(x)[1] != self.n:
            raise InputError(f"this sketch is of records of {self.n} features; give a row of as many for each record.")
        given = {"centre": np.array(self.centre, np.uint16), "factor": self.factor, "halvings": self.halvings}
        u: npt.NDArray[np.uint16]
        u = sketch.batch(x=x, number=_numbers(numbers, self), threads=threads, **given)["returns"]
        return u

    def check_table(self, table: "NoiseTable") -> None:
        """Refuse a table that puts less than its whole epsilon on one released number.

        For how many features the table was made does not matter: what it certifies is one release.
        """
        if table.release != 1:
            raise InputError(f"a sketch is one released feature, the table has {table.release}; use --release 1.")


def sketch_records(
    x: Any, table: "NoiseTable", sketch: Sketch, seed: "Seed" = None, threads: int = 1, generator: str = "chacha20"
) -> tuple[Any, Any]:
    """Sketch and release every record; return the number of its direction, and the symbol or value that is sent.

    `table.estimate` makes unbiased values of u of them, and times `sketch.root` squared they are what s'Σs is the mean
    of. The table is proved first, whatever its file says. With a seed everything can be had again: nothing is private.
    """
    from sensorsim.kernels.sketch import direction
    from sensorsim.noise.batch_release import release_records

    sketch.check_table(table)
    apart = None if seed is None else [*([seed] if isinstance(seed, int) else seed), OF_DIRECTIONS]
    given = {"direction_bits": sketch.direction_bits, "seed": apart, "threads": threads, "generator": generator}
    number = direction.batch(len(x), **given)["returns"]
    u = sketch.value(x, number, threads)
    y = release_records(u[:, None], table, seed, threads, generator)
    return number, y[:, 0]


def _numbers(numbers: Any, sketch: Sketch) -> "npt.NDArray[np.uint32]":
    """Check the numbers of directions."""
    import numpy as np

    given = np.asarray(numbers)
    if given.ndim != 1 or given.dtype.kind not in "iu" or not ((given >= 0) & (given < sketch.directions)).all():
        raise InputError(f"directions have whole numbers from 0 to {sketch.directions - 1}; give a list of some.")
    return given.astype(np.uint32)
