"""Packets counted: how many came, how many were refused and why, and the sums that say all there is to say of x."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from sensorsim.hospital.expected import REASONS, Expected

FITS = 1 << 36  # packets whose sums fit 64 bits
LOW_BITS = 23  # squares are summed in two parts, the high and the low bits, whose sums a float holds exactly


@dataclass
class Tally:
    """Sums over some packets, at most about 2^36; `cells` has a row for each feature, or for each direction.

    Of symbols it holds how often each came. Of numbers y within ±limit it holds how many, their sum, and the sums of
    the high and of the low bits of y².
    """

    cells: npt.NDArray[np.int64]
    limit: int | None
    accepted: int = 0
    empty: int = 0
    rejected: dict[str, int] = field(default_factory=lambda: dict.fromkeys(REASONS, 0))

    @classmethod
    def of(cls, expected: Expected) -> "Tally":
        width = expected.most + 1 if expected.limit is None else 4
        return cls(np.zeros((expected.n, width), np.int64), expected.limit)

    def clear(self) -> None:
        self.cells.fill(0)
        self.accepted = self.empty = 0
        self.rejected = dict.fromkeys(REASONS, 0)

    def count(self, features: Any, values: Any) -> None:
        """Take in at most 2^16 packets, one a column: which features, None where it is all of them, and the values."""
        self.accepted += values.shape[1]
        n, width = self.cells.shape
        if self.limit is None:
            first = (np.arange(n, dtype=np.uint32)[:, None] if features is None else features) * np.uint32(width)
            self.cells += np.bincount((first + values).ravel(), minlength=n * width).reshape(n, width)
            return
        y = values.astype(np.int64) - self.limit
        squares = y * y
        parts = np.ones_like(y), y, squares >> LOW_BITS, squares & ((1 << LOW_BITS) - 1)
        for column, part in enumerate(parts):
            if features is None:
                self.cells[:, column] += part.sum(axis=1)
            else:
                self.cells[:, column] += np.bincount(features.ravel(), part.ravel(), n).astype(np.int64)

    def sums(self) -> list[list[int]]:
        """In integers of any size, a row for each feature: the columns of `Expected.columns`."""
        rows: list[list[int]] = self.cells.tolist()
        if self.limit is None:
            return rows
        return [[count, total, (high << LOW_BITS) + low] for count, total, high, low in rows]
