"""The distributed autoencoder of the paper, many copies at once, with its gradients in closed form.

    h_j = sigmoid(W_jᵀ x_j + b_j)          z_j = Ŵ_[j]ᵀ h_j + d_j          x̂_j = sigmoid(z_j)

The decoder's rows (j-1)l+1 … jl serve user j alone, so user j of run r is a small net of its own. All units (run,
user) stand in the leading dimension U = runs × m of every tensor:   x, z (U, B, n)   h (U, B, l)   W (U, n, l)   Ŵ
(U, l, n). At batch 1 the units are innermost in memory, so that each operation is one long vector loop: three times
faster than bmm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

BETA1, BETA2, TINY = 0.9, 0.999, 1e-8  # of Adam: torch's defaults
sigmoid_backward = torch.ops.aten.sigmoid_backward.default  # dh · h · (1 - h) in one pass


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
        """Number of weights of one user's net."""
        return self.flat.numel() // self.W.shape[0]


def allocate(units: int, n: int, l: int, bias: bool, units_inside: bool) -> Parameters:
    """Return zeros in the shape of the model: for weights, gradients or an optimiser's state."""
    sizes = [(n, l), (l, n)] + ([(1, l), (1, n)] if bias else [])
    total = sum(rows * columns for rows, columns in sizes)
    flat = torch.zeros((total, units) if units_inside else (units, total))
    parts = torch.split(flat, [rows * columns for rows, columns in sizes], 0 if units_inside else 1)
    if units_inside:
        views = [part.view(*size, units).permute(2, 0, 1) for part, size in zip(parts, sizes, strict=True)]
    else:
        views = [part.view(units, *size) for part, size in zip(parts, sizes, strict=True)]
    b, d = (views[2], views[3]) if bias else (None, None)
    return Parameters(flat, views[0], views[1], b, d, units_inside)


def initialise(parameters: Parameters, *generators: torch.Generator) -> None:
    """Draw torch's default for a linear layer: uniform within ±1/sqrt(inputs), biases alike.

    Each generator serves an equal share of the units.
    """
    units, n, l = parameters.W.shape
    each = units // len(generators)
    for weight, inputs in ((parameters.W, n), (parameters.V, l), (parameters.b, n), (parameters.d, l)):
        if weight is not None:  # drawn in leading form: the layout changes no number
            drawn = torch.cat([torch.rand(each, *weight.shape[1:], generator=one) for one in generators])
            weight.copy_((2 * drawn - 1) / inputs**0.5)


def joined(parts: list[Parameters]) -> Parameters:
    """Concatenate the units of several models; units leading in memory."""
    _, n, l = parts[0].W.shape
    whole = allocate(sum(len(part.W) for part in parts), n, l, parts[0].b is not None, False)
    start = 0
    for part in parts:
        copy(part, whole, slice(start, start + len(part.W)))
        start += len(part.W)
    return whole


def copy(source: Parameters, target: Parameters, units: slice = slice(None)) -> None:
    """Copy into these units of the target, for any layout of either."""
    for old, new in ((source.W, target.W), (source.V, target.V), (source.b, target.b), (source.d, target.d)):
        if old is not None and new is not None:
            new[units].copy_(old)


def user_parameters(weights: Parameters, m: int, j: int) -> Parameters:
    """Return user j of every run: (runs, …) views."""
    b, d = (None if t is None else t[j::m] for t in (weights.b, weights.d))
    return Parameters(weights.flat, weights.W[j::m], weights.V[j::m], b, d, weights.units_inside)


def encode(parameters: Parameters, x: Tensor) -> Tensor:
    """Return h (U, B, l)."""
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
    """Return z (U, B, n), before the last sigmoid."""
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
    encoder_backward(gradient, x, hidden_gradient(parameters, h, dz, c))
    decoder_backward(gradient, h, dz)


def hidden_gradient(parameters: Parameters, h: Tensor, dz: Tensor, c: float = 0.0) -> Tensor:
    """Return d loss / d(W_jᵀ x_j + b_j), (U, B, l)."""
    if parameters.units_inside:
        dh = (parameters.V * dz).sum(2).unsqueeze(1)
    else:
        dh = torch.bmm(dz, parameters.V.transpose(1, 2))
    if c:
        dh = dh + c * dz.sum(2, keepdim=True)
    return sigmoid_backward(dh, h)  # type: ignore[no-any-return]


def encoder_backward(gradient: Parameters, x: Tensor, da: Tensor) -> None:
    """Fill the encoder's part of the gradient: sums of x ⊗ da."""
    (torch.mul if gradient.units_inside else torch.bmm)(x.transpose(1, 2), da, out=gradient.W)
    if gradient.b is not None:
        torch.sum(da, 1, keepdim=True, out=gradient.b)


def decoder_backward(gradient: Parameters, h: Tensor, dz: Tensor) -> None:
    """Fill the decoder's part of the gradient: sums of h ⊗ dz."""
    (torch.mul if gradient.units_inside else torch.bmm)(h.transpose(1, 2), dz, out=gradient.V)
    if gradient.d is not None:
        torch.sum(dz, 1, keepdim=True, out=gradient.d)


class SGD:
    """Plain gradient descent over one flat storage, in place."""

    def __init__(self, flat: Tensor, lr: float) -> None:
        self.flat, self.lr = flat, lr
        self.state: tuple[Tensor, ...] = ()

    def step(self, gradient: Tensor) -> None:
        self.flat.add_(gradient, alpha=-self.lr)


class Adam:
    """Adam as torch has it (no weight decay), by the one operation behind torch.optim.Adam(fused=True).

    It reads and writes each number once, where the single operations pass six times over all of them. torch names it
    with an underscore; setup.cfg fixes torch's version, and a test holds this class to torch.optim.Adam.
    """

    def __init__(self, flat: Tensor, lr: float) -> None:
        self.flat, self.lr = flat, lr
        self.state = torch.zeros_like(flat), torch.zeros_like(flat)  # mean and mean square
        self._count = np.zeros((), np.float32)  # one number that numpy counts up and torch reads
        self._lists = [flat], [self.state[0]], [self.state[1]], [torch.from_numpy(self._count)]

    def step(self, gradient: Tensor) -> None:
        self._count += 1
        flat, mean, square, count = self._lists
        torch._fused_adam_(
            flat, [gradient], mean, square, [], count,
            lr=self.lr, beta1=BETA1, beta2=BETA2, weight_decay=0.0, eps=TINY, amsgrad=False, maximize=False,
        )  # fmt: skip


def make_optimiser(name: str, flat: Tensor, lr: float) -> SGD | Adam:
    return Adam(flat, lr) if name == "adam" else SGD(flat, lr)
