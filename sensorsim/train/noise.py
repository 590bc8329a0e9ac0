"""Random draws of the training loop. The releases of `exact` and `sampled` come from the very tables that firmware uses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor


def laplace(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Unit Laplace noise, continuous, as the paper has it."""
    first = torch.empty(shape).exponential_(generator=generator)
    return first.sub_(torch.empty(shape).exponential_(generator=generator))


@dataclass(frozen=True)
class Table:
    """One noise table: y = clamp(x - 1/2 + (A + U)/r, ±limit), A from the counts, U uniform within a stair."""

    counts: tuple[int, ...]  # c_0 … c_K, the same on either side
    per_range: int
    epsilon: float  # certified, for one released feature

    @property
    def gain(self) -> float:
        total = 2 * sum(self.counts) - self.counts[0]
        return 1 - (2 * self.counts[-1] + self.per_range * self.counts[-2]) / total


    @property
    def variance(self) -> float:
        """Of the unbiased released value, about."""
        total = 2 * sum(self.counts) - self.counts[0]
        return (2 * sum(c * j * j for j, c in enumerate(self.counts)) / total + 1 / 12) / (self.per_range * self.gain) ** 2


@lru_cache(maxsize=64)
def table(epsilon: float) -> Table:
    """STAND-IN until the privacy package lands: ideal plain stairs."""
    K = math.ceil(14 / epsilon) + 2
    counts = [round(2**40 * math.exp(-epsilon * j)) + 1 for j in range(K)]
    return Table((*counts, math.ceil(counts[-1] / math.expm1(epsilon))), 1, epsilon)


def release(x: Tensor, used: Table, generator: torch.Generator) -> Tensor:
    """One unbiased released value for every entry of x, which lies in [0, 1]."""
    K, r = len(used.counts) - 1, used.per_range
    weights = torch.tensor([*used.counts[:0:-1], *used.counts], dtype=torch.float64)
    edges = torch.cumsum(weights, 0) / weights.sum()
    stair = torch.bucketize(torch.rand(x.shape, generator=generator, dtype=torch.float64), edges, right=True) - K
    inside = torch.rand(x.shape, generator=generator) - 0.5
    limit = (K - (r + 1) / 2) / r
    y = (x - 0.5 + (stair + inside) / r).clamp_(-limit, limit)
    return (y / used.gain + 0.5).to(torch.float32)
