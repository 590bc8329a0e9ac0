"""Random draws of the training loop. Releases come from the very tables that firmware uses."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from sensorsim.errors import InputError
from sensorsim.privacy.stairs import estimate_sd
from sensorsim.privacy.tables import NoiseTable, make_table, ready_table

FEWEST_ENTRIES_BITS, MOST_ENTRIES_BITS = 12, 20


def laplace(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Unit Laplace noise, continuous, as the paper has it: sign(v)·log(1 - |v|) of a uniform v in -1 … 1."""
    v = torch.rand(shape, generator=generator).mul_(2).sub_(1)
    return v.abs().clamp_(max=1 - 2.0**-24).neg_().log1p_().mul_(v.sign_())


@lru_cache(maxsize=64)
def table(epsilon: float, n: int, k: int) -> NoiseTable:
    """The stairs table of a record that releases k of n features: the one that ships, or one made for it."""
    if k == 1 or k == n == 14:
        try:
            return ready_table(epsilon, "all" if k > 1 else 1)
        except InputError:
            pass  # no table ships for this epsilon
    for bits in range(FEWEST_ENTRIES_BITS, MOST_ENTRIES_BITS, 2):
        try:
            return make_table("stairs", epsilon, n, k, entries=1 << bits)
        except InputError:
            pass  # too few entries for so small an epsilon
    return make_table("stairs", epsilon, n, k, entries=1 << MOST_ENTRIES_BITS)


def certified_epsilon(used: NoiseTable) -> float:
    """What a record spends by the table's certificate, delta = 0."""
    assert used.certificate is not None and used.certificate.epsilon_record is not None
    return float(used.certificate.epsilon_record)


def variance(used: NoiseTable) -> float:
    """Of one released value, at the x where it is largest."""
    return estimate_sd(used.stairs) ** 2


def release(x: Tensor, used: NoiseTable, generator: torch.Generator) -> Tensor:
    """One unbiased released value for every entry of x, which lies in [0, 1]: the integers of firmware, then reals."""
    assert used.limit is not None
    D = 1 << used.frac_bits
    values = torch.tensor([value for value, _ in used.counts], dtype=torch.int32)
    edges = torch.tensor([count for _, count in used.counts]).cumsum(0)
    index = torch.randint(used.entries, x.shape, generator=generator)
    stair = values[torch.bucketize(index, edges, right=True)]
    inside = torch.randint(1 << used.stair_bits, x.shape, generator=generator, dtype=torch.int32) - (
        1 << used.stair_bits >> 1
    )
    y = (x * D).round().to(torch.int32) - D // 2 + (stair << used.stair_bits) + inside
    return ((y.clamp_(-used.limit, used.limit).double() / used.gain + (D + 1) / 2) / D).to(torch.float32)
