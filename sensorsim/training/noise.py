"""Where a training run gets its randomness: secret by default, from a seed where it must be had again."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from sensorsim.noise.host_noise import Words, discrete_laplace

if TYPE_CHECKING:
    from collections.abc import Sequence

USUAL = 1 << 20  # lattice steps of one scale of `laplace`
SEEDS = 1 << 62
AHEAD, MOST_STEPS = 1 << 12, 64  # numbers that a unit draws at once, for that many steps; the same in any company


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

    def signs(self, shape: Sequence[int]) -> Tensor:
        """-1 and 1 by a public coin."""
        return torch.randint(0, 2, tuple(shape), generator=self.generator, dtype=torch.float32).mul_(2).sub_(1)

    def seed(self) -> int | None:
        """For the kernels' own generator: None, which is a key of the operating system, or a number of the seed's."""
        return None if self.private else int(torch.randint(SEEDS, (), generator=self.generator))


Draw = Callable[[Source, tuple[int, ...]], Tensor]


class Together(Source):
    """The sources of many runs as one: each run draws from its own, so its numbers are the same in any company.

    A tensor has the units in its first dimension; one of two dimensions in the last, where they are `inside`. Draws are
    made for many steps at once, since small ones cost their overhead: use what is given before the next step.
    """

    def __init__(self, sources: Sequence[Source], units: int, inside: bool) -> None:
        first = sources[0]
        self.sources, self.units, self.inside = sources, units, inside
        self.private, self.generator, self.words = first.private, first.generator, first.words
        self._ahead: dict[tuple[object, ...], Ahead] = {}

    def discrete(self, shape: Sequence[int], t: int) -> Tensor:
        return self._next(("discrete", t), shape, lambda source, part: source.discrete(part, t))

    def laplace(self, shape: Sequence[int], t: int = USUAL, scale: float = 1.0) -> Tensor:
        return self._next(("laplace", t, scale), shape, lambda source, part: source.laplace(part, t).mul_(scale))

    def normal(self, shape: Sequence[int], scale: float = 1.0) -> Tensor:
        return self._next(("normal", scale), shape, lambda source, part: source.normal(part).mul_(scale))

    def signs(self, shape: Sequence[int]) -> Tensor:
        return self._next(("signs",), shape, lambda source, part: source.signs(part))

    def _next(self, kind: tuple[object, ...], shape: Sequence[int], draw: Draw) -> Tensor:
        found = self._ahead.get((*kind, *shape))
        if found is None:
            found = self._ahead[*kind, *shape] = Ahead(self, tuple(shape), draw)
        return found.next()


class Ahead:
    """The same draw for one step after the other, made for many steps at once in a place that is used again."""

    def __init__(self, together: Together, shape: tuple[int, ...], draw: Draw) -> None:
        self._sources, self._draw = together.sources, draw
        self._last = together.inside and len(shape) == 2  # whether the units stand last
        self._rest = shape[:1] if self._last else shape[1:]
        self._units = together.units
        self._width = math.prod(self._rest)
        self._steps = max(1, min(MOST_STEPS, AHEAD // max(1, self._width)))
        self._places: list[Tensor] = []
        self._views: list[Tensor] = []
        self._given = self._steps

    def next(self) -> Tensor:
        """For one step; the caller may change it in place."""
        if self._given == self._steps:
            self._refill()
            self._given = 0
        self._given += 1
        return self._views[self._given - 1]

    def _refill(self) -> None:
        shape = (self._units // len(self._sources), self._steps * self._width)
        drawn = [self._draw(source, shape) for source in self._sources]
        if not self._places:
            self._places = [drawn[0].new_empty(self._units, shape[1])]
            if self._last:
                self._places.append(drawn[0].new_empty(shape[1], self._units))
                self._views = list(self._places[1].view(self._steps, *self._rest, self._units).unbind(0))
            else:
                self._views = list(self._places[0].view(self._units, self._steps, *self._rest).unbind(1))
        torch.cat(drawn, out=self._places[0])
        if self._last:
            self._places[1].copy_(self._places[0].t())
