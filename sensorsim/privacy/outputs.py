"""What a table puts out: the exact distribution of y for one input, and a summary of its noise."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sensorsim.privacy.stairs import best_sd, estimate_sd, noise_sd
from sensorsim.privacy.tables import NoiseTable

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class NoiseSummary:
    """Standard deviations in units of the range of x; Laplace and the best staircase are of the same epsilon."""

    entries: int
    bytes_per_entry: int
    secret_bits: int  # per noisy number: index and position on the stair
    noise_sd: float  # of what is drawn, before the clamp
    gain: float | None  # slope of E[y] against x, stairs only
    estimate_sd: float | None  # of y/gain, unbiased, at the x where it is largest, stairs only
    best_staircase_sd: float
    laplace_sd: float


def summary(table: NoiseTable) -> NoiseSummary:
    """The noise of a table beside what no table can beat."""
    scale = float(table.scale)
    total = table.entries
    if table.kind == "stairs":
        stairs = table.stairs
        drawn, gain, estimate = noise_sd(stairs), stairs.gain, estimate_sd(stairs)
    else:
        drawn, gain, estimate = (
            math.sqrt(sum(c * v * v for v, c in table.counts) / total) / 2**table.frac_bits,
            None,
            None,
        )
    return NoiseSummary(
        entries=total,
        bytes_per_entry=table.values.dtype.itemsize,
        secret_bits=table.index_bits + table.stair_bits,
        noise_sd=drawn,
        gain=gain,
        estimate_sd=estimate,
        best_staircase_sd=best_sd(1 / scale),
        laplace_sd=math.sqrt(2) * scale,
    )


def output_counts(table: NoiseTable, x_q: int) -> tuple[int, "np.ndarray[Any, Any]"]:
    """The first output and how many of the 2^secret_bits draws give it and each one after it, for input x_q."""
    import numpy as np

    low, high = table.counts[0][0], table.counts[-1][0]
    dense = np.zeros(high - low + 1, dtype=np.int64)
    dense[[v - low for v, _ in table.counts]] = [c for _, c in table.counts]
    stair = 1 << table.stair_bits
    counts = np.repeat(dense, stair)
    first = x_q - (1 << table.frac_bits) // 2 + low * stair - stair // 2
    if table.limit is None:
        return first, counts
    below, above = max(0, -table.limit - first), max(0, first + len(counts) - 1 - table.limit)
    kept = counts[below : len(counts) - above].copy()
    kept[0] += counts[:below].sum()
    kept[-1] += counts[len(counts) - above :].sum()
    return first + below, kept


def pair_counts(table: NoiseTable) -> tuple["np.ndarray[Any, Any]", "np.ndarray[Any, Any]", "np.ndarray[Any, Any]"]:
    """Outputs in units of the range, and the draws that give each from x = 0 and from x = 1."""
    import numpy as np

    D = 1 << table.frac_bits
    (first0, counts0), (first1, counts1) = output_counts(table, 0), output_counts(table, D)
    first = min(first0, first1)
    last = max(first0 + len(counts0), first1 + len(counts1))
    both = np.zeros((2, last - first), dtype=np.int64)
    both[0, first0 - first : first0 - first + len(counts0)] = counts0
    both[1, first1 - first : first1 - first + len(counts1)] = counts1
    return np.arange(first, last) / D, both[0], both[1]


def on_coarse_lattice(table: NoiseTable, stair_bits: int = 2) -> NoiseTable:
    """The same stairs with fewer fraction bits: the table does not depend on them, a drawing of it is faster."""
    if table.kind != "stairs" or table.stair_bits <= stair_bits:
        return table
    fewer = table.stair_bits - stair_bits
    limit = None if table.limit is None else table.limit >> fewer
    return replace(table, frac_bits=table.frac_bits - fewer, stair_bits=stair_bits, limit=limit)
