"""Where a training run gets its randomness: secret by default, from a seed where it must be had again."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from sensorsim.privacy.discrete_laplace import discrete_laplace
from sensorsim.privacy.words import Words

if TYPE_CHECKING:
    from collections.abc import Sequence

USUAL = 1 << 20  # lattice steps of one scale of `laplace`
SEEDS = 1 << 62


class Source:
    """`generator` is for what no privacy rests on: first weights, order of records, the environment's noise.

    The noise of a mechanism comes from ChaCha20, with a key of the operating system unless there is a seed. With a seed
    everything can be drawn again, so nothing is private; Gaussian noise then comes from torch, which is faster.
    """

    def __init__(self, seed: int | None = None) -> None:
        self.private = seed is None
        self.generator = torch.Generator().manual_seed(secrets.randbits(62) if seed is None else seed)
        self.words = Words(seed)

    def discrete(self, shape: Sequence[int], t: int) -> Tensor:
        """Discrete Laplace noise of scale t, whole numbers, exact."""
        return torch.from_numpy(discrete_laplace(tuple(shape), t, self.words))

    def laplace(self, shape: Sequence[int], t: int = USUAL) -> Tensor:
        """Unit Laplace noise on a lattice of t steps, as floats: for scales on which no epsilon rests."""
        return (self.discrete(shape, t).double() / t).float()

    def normal(self, shape: Sequence[int]) -> Tensor:
        """Standard normal noise, as floats."""
        if not self.private:
            return torch.randn(tuple(shape), generator=self.generator)
        return torch.from_numpy(self.words.normal(tuple(shape))).float()

    def seed(self) -> int | None:
        """For the kernels' own generator: None, which is a key of the operating system, or a number of the seed's."""
        return None if self.private else int(torch.randint(SEEDS, (), generator=self.generator))
