"""One step of the training loop: randomness, batch, forward and backward passes, clipped gradients with noise.

Clipping. A record's weight gradients are outer products, x ⊗ da and h ⊗ dz, whose norms are products of norms: for many
records no gradient of a single one is ever formed. One net, and many nets of one record each, have implementations of
their own, since the number of operations is what such a step costs.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from sensorsim.noise.host_noise import Words, discrete_laplace
from sensorsim.training import model
from sensorsim.training.config import Config
from sensorsim.training.model import sigmoid_backward

USUAL = 1 << 20  # lattice steps of one scale of `laplace`
SEEDS = 1 << 62
AHEAD, MOST_STEPS = 1 << 12, 64  # numbers that a unit draws at once, for that many steps; the same in any company


class Source:
    """Randomness of a run: secret by default, reproducible from a seed.

    `generator` is for what no privacy rests on: first weights, order of records, the environment's noise. The noise of
    a mechanism comes from ChaCha20, with a key of the operating system unless there is a seed. With a seed everything
    can be drawn again, so nothing is private; Gaussian noise then comes from torch, which is faster.
    """

    def __init__(self, seed: int | None = None) -> None:
        self.private = seed is None
        self.generator = torch.Generator().manual_seed(secrets.randbits(62) if seed is None else seed)
        self.words = Words(seed)

    def discrete(self, shape: Sequence[int], t: int) -> Tensor:
        """Draw discrete Laplace noise of scale t, whole numbers, exact."""
        return torch.from_numpy(discrete_laplace(tuple(shape), t, self.words))

    def laplace(self, shape: Sequence[int], t: int = USUAL) -> Tensor:
        """Draw unit Laplace noise on a lattice of t steps, as floats: for scales on which no epsilon rests."""
        return (self.discrete(shape, t).double() / t).float()

    def normal(self, shape: Sequence[int]) -> Tensor:
        """Draw standard normal noise, as floats."""
        if not self.private:
            return torch.randn(tuple(shape), generator=self.generator)
        return torch.from_numpy(self.words.normal(tuple(shape))).float()

    def signs(self, shape: Sequence[int]) -> Tensor:
        """Draw -1 and 1 by a public coin."""
        return torch.randint(0, 2, tuple(shape), generator=self.generator, dtype=torch.float32).mul_(2).sub_(1)

    def seed(self) -> int | None:
        """Return a seed for the kernels' own generator; None for a key of the operating system."""
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
        self._ahead: dict[tuple[object, ...], Iterator[Tensor]] = {}

    def discrete(self, shape: Sequence[int], t: int) -> Tensor:
        return self._next(("discrete", t), shape, lambda source, part: source.discrete(part, t))

    def laplace(self, shape: Sequence[int], t: int = USUAL, scale: float = 1.0) -> Tensor:
        return self._next(("laplace", t, scale), shape, lambda source, part: source.laplace(part, t).mul_(scale))

    def normal(self, shape: Sequence[int], scale: float = 1.0) -> Tensor:
        return self._next(("normal", scale), shape, lambda source, part: source.normal(part).mul_(scale))

    def signs(self, shape: Sequence[int]) -> Tensor:
        return self._next(("signs",), shape, lambda source, part: source.signs(part))

    def _next(self, kind: tuple[object, ...], shape: Sequence[int], draw: Draw) -> Tensor:
        key = (*kind, *shape)
        if key not in self._ahead:
            self._ahead[key] = self._draws(tuple(shape), draw)
        return next(self._ahead[key])

    def _draws(self, shape: tuple[int, ...], draw: Draw) -> Iterator[Tensor]:
        """Yield the draw of each step, drawn for many steps at once; the caller may change it in place."""
        units_last = self.inside and len(shape) == 2
        rest = shape[:1] if units_last else shape[1:]
        width = math.prod(rest)
        steps = max(1, min(MOST_STEPS, AHEAD // max(1, width)))
        each = self.units // len(self.sources)
        while True:
            drawn = torch.cat([draw(source, (each, steps * width)) for source in self.sources])
            if units_last:
                yield from drawn.t().contiguous().view(steps, *rest, self.units).unbind(0)
            else:
                yield from drawn.view(self.units, steps, *rest).unbind(1)


@dataclass
class Batch:
    """The tensors that one step may read: (U, B, n), or (U, B, 1) for scales."""

    x: Tensor  # the record
    noisy: Tensor | None = None  # the record with environmental noise, what the encoder sees; None when sigma = 0
    present: Tensor | None = None  # 1/batch for a record, 0 where a unit has none in this place; None: all there
    drawn: dict[str, Tensor] = field(default_factory=dict)  # what the mechanism drew for these records
    absent: Tensor | None = None  # (U,) units that have no record left in this epoch, and stay as they are; None: none


@dataclass
class Step:
    """A step as a mechanism sees it; it fills `gradient`. One object serves a whole training; its batch changes."""

    config: Config
    batch: Batch
    weights: model.Parameters
    gradient: model.Parameters
    source: Source
    memory: dict[Any, Any] = field(default_factory=dict)

    @property
    def seen(self) -> Tensor:
        """The record as the sensor delivers it."""
        return self.batch.x if self.batch.noisy is None else self.batch.noisy

    @property
    def record(self) -> Tensor:
        """The input of the forward pass: the release, or the record without the environment's noise where the printed
        factor b_j stands for it, or else as the sensor delivers it.
        """
        if self.config.reads == "released":
            return self.batch.drawn["released"]
        return self.batch.x if self.config.object.on_noisy_inputs else self.seen

    def remember(self, name: Any, make: Callable[[], Any]) -> Any:
        """Return what is the same in every step; make it in the first."""
        if name not in self.memory:
            self.memory[name] = make()
        return self.memory[name]

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return h and z."""
        h = model.encode(self.weights, x)
        return h, model.decode(self.weights, h)

    def noise_factor(self, h: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """Return b_j and ẑ under environmental noise; None without, and where the forward pass reads a release."""
        if self.batch.noisy is None or self.config.reads == "released":
            return None, None
        h_noisy, z_noisy = self.forward(self.batch.noisy)
        return noise_factor(h, h_noisy), z_noisy

    def mean(self, dz: Tensor) -> Tensor:
        """Return the gradient as its share of the batch's mean: over the requested batch, however many came."""
        if self.batch.present is not None:
            return dz * self.batch.present
        return dz if self.config.batch == 1 else dz / self.config.batch

    def backward(self, x: Tensor, h: Tensor, dz: Tensor, c: float = 0.0) -> None:
        """Fill `gradient` with the batch's mean, given d loss / d z of every record."""
        model.backward(self.weights, self.gradient, x, h, self.mean(dz), c)

    def clipped(self, C: float, group: bool, squared: bool, noise: Tensor) -> None:
        """Fill `gradient` with the batch's mean of per-record gradients, each clipped to C, and with the noise.

        `group` clips encoder and decoder each at C/sqrt(2); `squared` is the loss, cross-entropy otherwise.
        """
        if self.weights.W.shape[0] == 1 and not self.weights.units_inside:
            clip = _clip_one_net
        else:
            clip = _clip_one_record_each if self.weights.units_inside else _clip_many
        clip(self, Rule(C, group, squared), noise)

    def normal(self, scale: float) -> Tensor:
        """Draw Gaussian noise in the shape of the gradient, with this standard deviation."""
        return self._together.normal(self.gradient.flat.shape, scale)

    def laplace(self, scale: float) -> Tensor:
        """Draw Laplace noise in the shape of the gradient."""
        return self._together.laplace(self.gradient.flat.shape, scale=scale)

    @property
    def _together(self) -> Together:
        if isinstance(self.source, Together):
            return self.source
        found: Together = self.remember(
            Together, lambda: Together([self.source], self.gradient.W.shape[0], self.gradient.units_inside)
        )
        return found


def noise_factor(h: Tensor, h_noisy: Tensor) -> Tensor:
    """b_j = sum of b_{j,r}, where b_{j,r} = ĥ_{j,r}/h_{j,r} (eq. bji): (U, B, 1). It is l, not 1, without noise."""
    return (h_noisy / h).sum(2, keepdim=True)


# ── clipping ──


@dataclass(frozen=True)
class Rule:
    """How a record's gradient is taken and bounded."""

    C: float
    group: bool  # encoder and decoder each at C/sqrt(2), so that together they stay within C
    squared: bool  # the loss

    def factors(self, decoder: Tensor, encoder: Tensor) -> tuple[Tensor, Tensor]:
        """Return the factors of both parts, from their squared norms."""
        if not self.group:
            both = (decoder + encoder).rsqrt_().mul_(self.C).clamp_(max=1.0)
            return both, both
        bound = self.C / math.sqrt(2)
        return decoder.rsqrt().mul_(bound).clamp_(max=1.0), encoder.rsqrt().mul_(bound).clamp_(max=1.0)

    def slope(self, z: Tensor, x: Tensor) -> Tensor:
        """Return d loss / d z. Squared error is doubled: at a prediction of ½ it has the slope of cross-entropy."""
        predicted = z.sigmoid_()
        if not self.squared:
            return predicted.sub_(x)
        return sigmoid_backward(predicted - x, predicted).mul_(4.0)  # type: ignore[no-any-return]


def _clip_many(step: Step, rule: Rule, noise: Tensor) -> None:
    """Fill the gradient for any number of nets and records."""

    def squares(tensor: Tensor) -> Tensor:
        """Squared norms (U, B, 1) of (U, B, width): a product with ones is twice as fast as a sum of short rows."""
        return torch.matmul(tensor.square(), torch.ones(tensor.shape[2], 1))

    weights, gradient, reads = step.weights, step.gradient, step.seen
    h, z = step.forward(reads)
    dz = rule.slope(z, step.batch.x)
    da = model.hidden_gradient(weights, h, dz)
    extra = 0.0 if weights.b is None else 1.0  # a bias is a weight whose input is 1
    first, second = rule.factors(squares(dz).mul_(squares(h).add_(extra)), squares(da).mul_(squares(reads).add_(extra)))
    model.decoder_backward(gradient, h, step.mean(dz.mul_(first)))
    model.encoder_backward(gradient, reads, step.mean(da.mul_(second)))
    gradient.flat.add_(noise)


def _clip_one_record_each(step: Step, rule: Rule, noise: Tensor) -> None:
    """Fill the gradient of many nets at batch 1, the units innermost: as (width, U) and (n, l, U), as in memory."""

    def as_stored(of: model.Parameters) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
        b, d = (None if bias is None else bias[:, 0].t() for bias in (of.b, of.d))
        return of.W.permute(1, 2, 0), of.V.permute(1, 2, 0), b, d

    W, V, b, d = step.remember("weights as stored", lambda: as_stored(step.weights))
    dW, dV, db, dd = step.remember("gradient as stored", lambda: as_stored(step.gradient))
    x, reads = (tensor[:, 0].t() for tensor in (step.batch.x, step.seen))
    a = (W * reads[:, None]).sum(0)
    h = (a if b is None else a.add_(b)).sigmoid_()
    z = (V * h[:, None]).sum(0)
    dz = rule.slope(z if d is None else z.add_(d), x)
    da = sigmoid_backward((V * dz).sum(1), h)
    extra = 0.0 if b is None else 1.0
    first, second = rule.factors(
        dz.square().sum(0).mul_(h.square().sum(0).add_(extra)),
        da.square().sum(0).mul_(reads.square().sum(0).add_(extra)),
    )
    if step.batch.present is not None:
        there = step.batch.present[:, 0, 0]
        first, second = first * there, second * there
    dz.mul_(first)
    da.mul_(second)
    torch.mul(reads[:, None], da, out=dW)
    torch.mul(h[:, None], dz, out=dV)
    if db is not None and dd is not None:
        db.copy_(da)
        dd.copy_(dz)
    step.gradient.flat.add_(noise)


def _clip_one_net(step: Step, rule: Rule, noise: Tensor) -> None:
    """Fill the gradient of a single net, by plain products of matrices."""

    def only(of: model.Parameters) -> list[Any]:
        return [None if tensor is None else tensor[0] for tensor in (of.W, of.V, of.b, of.d, of.flat)]

    W, V, b, d, _ = step.remember("weights of the net", lambda: only(step.weights))
    dW, dV, db, dd, flat = step.remember("gradient of the net", lambda: only(step.gradient))
    x, reads, present = step.batch.x[0], step.seen[0], step.batch.present
    a = torch.mm(reads, W)
    h = (a if b is None else a.add_(b)).sigmoid_()
    z = torch.mm(h, V)
    dz = rule.slope(z if d is None else z.add_(d), x)
    da = sigmoid_backward(torch.mm(dz, V.t()), h)
    share = 1.0 / step.config.batch
    alone = len(x) == 1 and not rule.group and present is None
    if not alone:
        extra = 0.0 if b is None else 1.0
        norms = [torch.linalg.vector_norm(tensor, dim=1, keepdim=True).square_() for tensor in (dz, h, da, reads)]
        first, second = rule.factors(norms[0] * (norms[1] + extra), norms[2] * (norms[3] + extra))
        if present is not None:
            first, second, share = first * present[0], second * present[0], 1.0
        dz.mul_(first)
        da.mul_(second)
    torch.mm(reads.t(), da, out=dW)
    torch.mm(h.t(), dz, out=dV)
    if db is not None:
        torch.sum(da, 0, keepdim=True, out=db)
        torch.sum(dz, 0, keepdim=True, out=dd)
    if alone:  # the gradient of the batch is that of the record, and its norm is at hand
        norm = math.sqrt(torch.dot(flat, flat).item())
        share *= min(1.0, rule.C / norm) if norm else 1.0
    torch.add(noise[0], flat, alpha=share, out=flat)
