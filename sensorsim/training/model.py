"""The distributed autoencoder of the paper, many copies at once, with its gradients in closed form.

    h_j = sigmoid(W_jᵀ x_j + b_j)          z_j = Ŵ_[j]ᵀ h_j + d_j          x̂_j = sigmoid(z_j)

The decoder's rows (j-1)l+1 … jl serve user j alone, so user j of run r is a small net of its own. All units (run,
user) stand in the leading dimension U = runs × m of every tensor:   x, z (U, B, n)   h (U, B, l)   W (U, n, l)   Ŵ
(U, l, n). At batch 1 the units are innermost in memory, so that each operation is one long vector loop: three times
faster than bmm.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Parameters:
    """Views of one flat storage, so that an optimiser step is a handful of operations."""

    flat: Tensor  # every number, in memory order
    W: Tensor  # (U, n, l)
    V: Tensor  # (U, l, n), the paper's Ŵ_[j]
    b: Tensor | None  # (U, 1, l)
    d: Tensor | None  # (U, 1, n)
    units_inside: bool

    @property
    def per_unit(self) -> int:
        """How many weights one user's net has."""
        return self.flat.numel() // self.W.shape[0]


def allocate(units: int, n: int, l: int, bias: bool, units_inside: bool) -> Parameters:
    """Zeros in the shape of the model: for weights, for gradients, for an optimiser's memory."""
    sizes = [(n, l), (l, n)] + ([(1, l), (1, n)] if bias else [])
    total = sum(rows * columns for rows, columns in sizes)
    flat = torch.zeros((total, units) if units_inside else (units, total))
    views, start = [], 0
    for rows, columns in sizes:
        stop = start + rows * columns
        if units_inside:
            views.append(flat[start:stop].view(rows, columns, units).permute(2, 0, 1))
        else:
            views.append(flat[:, start:stop].view(units, rows, columns))
        start = stop
    b, d = (views[2], views[3]) if bias else (None, None)
    return Parameters(flat, views[0], views[1], b, d, units_inside)


def initialise(parameters: Parameters, *generators: torch.Generator) -> None:
    """torch's own default for a linear layer: uniform within ±1/sqrt(inputs), biases alike.

    Each generator serves an equal share of the units.
    """
    units, n, l = parameters.W.shape
    each = units // len(generators)
    for weight, inputs in ((parameters.W, n), (parameters.V, l), (parameters.b, n), (parameters.d, l)):
        if weight is not None:  # drawn in leading form: the layout changes no number
            drawn = torch.cat([torch.rand(each, *weight.shape[1:], generator=one) for one in generators])
            weight.copy_((2 * drawn - 1) / inputs**0.5)


def joined(parts: list[Parameters]) -> Parameters:
    """Several models as one, the units of the first before those of the next; units leading in memory."""
    _, n, l = parts[0].W.shape
    whole = allocate(sum(len(part.W) for part in parts), n, l, parts[0].b is not None, False)
    start = 0
    for part in parts:
        copy(part, whole, slice(start, start + len(part.W)))
        start += len(part.W)
    return whole


def copy(source: Parameters, target: Parameters, units: slice = slice(None)) -> None:
    """Into those units of the target, whatever the layout of either."""
    for old, new in ((source.W, target.W), (source.V, target.V), (source.b, target.b), (source.d, target.d)):
        if old is not None and new is not None:
            new[units].copy_(old)


def user_parameters(weights: Parameters, m: int, j: int) -> Parameters:
    """User j of every run: (runs, …) views."""
    b, d = (None if t is None else t[j::m] for t in (weights.b, weights.d))
    return Parameters(weights.flat, weights.W[j::m], weights.V[j::m], b, d, weights.units_inside)


def encode(parameters: Parameters, x: Tensor) -> Tensor:
    """h (U, B, l)."""
    if parameters.units_inside:
        a = (parameters.W * x.transpose(1, 2)).sum(1, keepdim=True)
        if parameters.b is not None:
            a += parameters.b
    else:
        a = torch.bmm(x, parameters.W)
        if parameters.b is not None:
            a = a + parameters.b
    return a.sigmoid_()


def decode(parameters: Parameters, h: Tensor) -> Tensor:
    """z (U, B, n), before the last sigmoid."""
    if parameters.units_inside:
        z = (parameters.V * h.transpose(1, 2)).sum(1, keepdim=True)
        if parameters.d is not None:
            z += parameters.d
        return z
    z = torch.bmm(h, parameters.V)
    return z if parameters.d is None else z + parameters.d


def backward(parameters: Parameters, gradient: Parameters, x: Tensor, h: Tensor, dz: Tensor, c: float = 0.0) -> None:
    """Fill `gradient` with the sum over the batch of d loss / d weights, given dz = d loss / d z.

    With a stabilization constant the decoder used is Ŵ + c, so c enters the way back to the encoder, and nothing else.
    """
    encoder_backward(parameters, gradient, x, hidden_gradient(parameters, h, dz, c))
    decoder_backward(gradient, h, dz)


def hidden_gradient(parameters: Parameters, h: Tensor, dz: Tensor, c: float = 0.0) -> Tensor:
    """d loss / d(W_jᵀ x_j + b_j), (U, B, l)."""
    if parameters.units_inside:
        dh = (parameters.V * dz).sum(2).unsqueeze(1)
    else:
        dh = torch.bmm(dz, parameters.V.transpose(1, 2))
    if c:
        dh = dh + c * dz.sum(2, keepdim=True)
    found: Tensor = torch.ops.aten.sigmoid_backward.default(dh, h)  # dh · h · (1 - h) in one pass
    return found


def encoder_backward(parameters: Parameters, gradient: Parameters, x: Tensor, da: Tensor) -> None:
    if parameters.units_inside:
        torch.mul(x.transpose(1, 2), da, out=gradient.W)
    else:
        torch.bmm(x.transpose(1, 2), da, out=gradient.W)
    if gradient.b is not None:
        torch.sum(da, 1, keepdim=True, out=gradient.b)


def decoder_backward(gradient: Parameters, h: Tensor, dz: Tensor) -> None:
    if gradient.units_inside:
        torch.mul(h.transpose(1, 2), dz, out=gradient.V)
    else:
        torch.bmm(h.transpose(1, 2), dz, out=gradient.V)
    if gradient.d is not None:
        torch.sum(dz, 1, keepdim=True, out=gradient.d)
