"""Random draws of the training loop. Releases come from the very kernels and tables that firmware uses."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from sensorsim.errors import InputError
from sensorsim.privacy.releases import release_records, release_sampled_records
from sensorsim.privacy.stairs import estimate_sd
from sensorsim.privacy.tables import NoiseTable, make_table, ready_table

FEWEST_ENTRIES_BITS, MOST_ENTRIES_BITS = 12, 17  # the release kernels take up to 2^17


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


def release(x: Tensor, used: NoiseTable, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Records x (…, n) in [0, 1] through the firmware's own kernels: unbiased values, and which features they are of.

    A feature that the table does not release has the value 0.5, which says nothing of x. The words come from the fast
    generator: a simulation keeps no secret, and trains twice as fast.
    """
    n = x.shape[-1]
    D = 1 << used.frac_bits
    integers = (x.reshape(-1, n) * D).round().to(torch.int32).numpy().astype(np.uint16)
    seed = int(torch.randint(1 << 62, (), generator=generator))
    if used.release == n:
        y = release_records(integers, used, seed, generator="fast")
        picked = np.ones(y.shape, np.bool_)
    else:
        chosen, values = release_sampled_records(integers, used, seed, generator="fast")
        y, picked = np.zeros(integers.shape, np.int32), np.zeros(integers.shape, np.bool_)
        np.put_along_axis(y, chosen.astype(np.int64), values, 1)
        np.put_along_axis(picked, chosen.astype(np.int64), True, 1)
    estimate = np.where(picked, (y / used.gain + (D + 1) / 2) / D, 0.5).astype(np.float32)
    return torch.from_numpy(estimate).reshape(x.shape), torch.from_numpy(picked).reshape(x.shape)
