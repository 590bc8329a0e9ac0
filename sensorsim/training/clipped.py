"""The mean of clipped per-record gradients, with noise: one step of DP-SGD on the weights, in closed form.

A record's weight gradients are outer products, x ⊗ da and h ⊗ dz, whose norms are products of norms: for many records
no gradient of a single one is ever formed. One net, and many nets of one record each, have a way of their own, since
what such a step costs is the number of operations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from sensorsim.training import model

if TYPE_CHECKING:
    from sensorsim.training.step import Step

sigmoid_backward = torch.ops.aten.sigmoid_backward.default  # dh · h · (1 - h) in one pass


@dataclass(frozen=True)
class Rule:
    """How a record's gradient is taken and bounded."""

    C: float
    group: bool  # encoder and decoder each at C/sqrt(2), so that together they stay within C
    squared: bool  # the loss

    def factors(self, decoder: Tensor, encoder: Tensor) -> tuple[Tensor, Tensor]:
        """What both parts are multiplied by, from their squared norms."""
        if not self.group:
            both = (decoder + encoder).rsqrt_().mul_(self.C).clamp_(max=1.0)
            return both, both
        bound = self.C / math.sqrt(2)
        return decoder.rsqrt().mul_(bound).clamp_(max=1.0), encoder.rsqrt().mul_(bound).clamp_(max=1.0)

    def slope(self, z: Tensor, x: Tensor) -> Tensor:
        """d loss / d z. Squared error is doubled: it then has the slope of cross-entropy where the prediction is ½."""
        predicted = z.sigmoid_()
        if not self.squared:
            return predicted.sub_(x)
        return sigmoid_backward(predicted - x, predicted).mul_(4.0)  # type: ignore[no-any-return]


def fill(step: Step, rule: Rule, noise: Tensor) -> None:
    """Fill `step.gradient`; what the rules of clipping see is every record's own gradient."""
    if step.weights.W.shape[0] == 1 and not step.weights.units_inside:
        _one_net(step, rule, noise)
    elif step.weights.units_inside:
        _one_record_each(step, rule, noise)
    else:
        _many(step, rule, noise)


def _many(step: Step, rule: Rule, noise: Tensor) -> None:
    """Any number of nets and records."""
    weights, gradient, reads = step.weights, step.gradient, step.seen
    h, z = step.forward(reads)
    dz = rule.slope(z, step.batch.x)
    da = model.hidden_gradient(weights, h, dz)
    extra = 0.0 if weights.b is None else 1.0  # a bias is a weight whose input is 1
    first, second = rule.factors(squares(dz).mul_(squares(h).add_(extra)), squares(da).mul_(squares(reads).add_(extra)))
    model.decoder_backward(gradient, h, step.mean(dz.mul_(first)))
    model.encoder_backward(weights, gradient, reads, step.mean(da.mul_(second)))
    gradient.flat.add_(noise)


def squares(tensor: Tensor) -> Tensor:
    """Squared norms (U, B, 1) of (U, B, width): by a product with ones, twice as fast as a sum over so short a row."""
    return torch.matmul(tensor.square(), torch.ones(tensor.shape[2], 1))


def _one_record_each(step: Step, rule: Rule, noise: Tensor) -> None:
    """Many nets at batch 1, the units innermost: everything as (width, U) and (n, l, U), as it stands in memory."""
    gradient = step.gradient
    W, V, b, d = step.remember("weights as stored", lambda: as_stored(step.weights))
    dW, dV, db, dd = step.remember("gradient as stored", lambda: as_stored(gradient))
    x, reads = _columns(step.batch.x), _columns(step.seen)
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
    gradient.flat.add_(noise)


def as_stored(parameters: model.Parameters) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """W (n, l, U), V (l, n, U), biases (l, U) and (n, U), of parameters with the units inside."""
    b, d = (None if bias is None else bias[:, 0].t() for bias in (parameters.b, parameters.d))
    return parameters.W.permute(1, 2, 0), parameters.V.permute(1, 2, 0), b, d


def _columns(tensor: Tensor) -> Tensor:
    """(U, 1, width) as (width, U)."""
    return tensor[:, 0].t()


class OneNet:
    """Views and scratch of a single net for batches of one size: plain products of matrices, nothing allocated."""

    def __init__(self, step: Step, size: int) -> None:
        weights, gradient = step.weights, step.gradient
        self.W, self.V, self.Vt = weights.W[0], weights.V[0], weights.V[0].t()
        self.b, self.d = (None if bias is None else bias[0] for bias in (weights.b, weights.d))
        self.dW, self.dV = gradient.W[0], gradient.V[0]
        self.db, self.dd = (None if bias is None else bias[0] for bias in (gradient.b, gradient.d))
        self.flat, self.alone = gradient.flat[0], size == 1
        n, l = self.W.shape
        self.h, self.z, self.dh = torch.empty(size, l), torch.empty(size, n), torch.empty(size, l)
        self.ht = self.h.t()

    def passes(self, reads: Tensor, x: Tensor, rule: Rule) -> tuple[Tensor, Tensor, Tensor]:
        """h, dz and da of every record."""
        h = torch.mm(reads, self.W, out=self.h)
        if self.b is not None:
            h.add_(self.b)
        h.sigmoid_()
        z = torch.mm(h, self.V, out=self.z)
        if self.d is not None:
            z.add_(self.d)
        dz = rule.slope(z, x)
        return h, dz, sigmoid_backward(torch.mm(dz, self.Vt, out=self.dh), h)

    def outer(self, reads: Tensor, dz: Tensor, da: Tensor) -> None:
        """Sums of outer products into the gradient."""
        torch.mm(reads.t(), da, out=self.dW)
        torch.mm(self.ht, dz, out=self.dV)
        if self.db is not None and self.dd is not None:
            torch.sum(da, 0, keepdim=True, out=self.db)
            torch.sum(dz, 0, keepdim=True, out=self.dd)


def _one_net(step: Step, rule: Rule, noise: Tensor) -> None:
    batch = step.batch
    size = batch.x.shape[1]
    net: OneNet | None = step.memory.get(size)
    if net is None:
        net = step.memory[size] = OneNet(step, size)
    x = batch.x[0]
    reads = x if batch.noisy is None else batch.noisy[0]
    h, dz, da = net.passes(reads, x, rule)
    share = 1.0 / step.config.batch
    if size == 1 and not rule.group and batch.present is None:
        net.outer(reads, dz, da)  # the gradient of the batch is that of the record: its norm is at hand
        norm = math.sqrt(torch.dot(net.flat, net.flat).item())
        torch.add(noise[0], net.flat, alpha=share * min(1.0, rule.C / norm) if norm else share, out=net.flat)
        return
    extra = 0.0 if net.b is None else 1.0
    norms = [torch.linalg.vector_norm(tensor, dim=1, keepdim=True).square_() for tensor in (dz, h, da, reads)]
    first, second = rule.factors(norms[0] * (norms[1] + extra), norms[2] * (norms[3] + extra))
    if batch.present is not None:
        first, second, share = first * batch.present[0], second * batch.present[0], 1.0
    net.outer(reads, dz.mul_(first), da.mul_(second))
    torch.add(noise[0], net.flat, alpha=share, out=net.flat)
