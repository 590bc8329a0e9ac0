"""What each mechanism does to one step: d loss / d z as the optimiser sees it, noise included.

The names are the paper's. `alpha2 = 0.5 - x` and `alpha3` are the coefficients of z and z² in the loss expanded at a
= 0: the paper prints alpha3 = 0.5x - 0.25; what holds is 1/8 for every x, and `exact` uses that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from sensorsim.privacy import sensitivity
from sensorsim.train.config import Config


@dataclass
class Batch:
    """What one step may read: (U, B, n), or (U, B, 1) for `scale`."""

    x: Tensor  # the record
    noisy: Tensor | None = None  # the record with environmental noise, what the encoder sees; None when sigma = 0
    noise2: Tensor | None = None  # unit Laplace noise for alpha2, or for the z-gradient
    noise3: Tensor | None = None  # unit Laplace noise for alpha3
    scale: Tensor | float | None = None  # of the noise of a record that is drawn once; None: computed at each step
    released: Tensor | None = None  # what the forward pass reads in place of x, unbiased for exact and sampled
    weight: Tensor | None = None  # n/k on released features and 0 elsewhere; sampled
    present: Tensor | None = None  # 1/batch for a record, 0 where a user has none left; None: all there


def spof_scale(epsilon: float, n: int, c_j: Tensor | float, b: Tensor | float = 1.0) -> Tensor | float:
    """The printed scale, (Δ̄·b_j + n·c_j(c_j/2 + 2)) / (sqrt(2)·eps) with Δ̄ = 3n/2, in units of b_j."""
    bound = sensitivity.spof(n)
    return (bound + (sensitivity.stabilized_printed(c_j, n) - bound) / b) / (sensitivity.JOINT_RELEASE_FACTOR * epsilon)  # type: ignore[arg-type]


def spof_step(config: Config, batch: Batch, h: Tensor, z: Tensor, b: Tensor | None, z_noisy: Tensor | None) -> Tensor:
    """Algorithm 1, steps 3 to 6. For noisy inputs z - t/b is ẑ/b, and both coefficients carry b_j as printed.

    Noise drawn once keeps the scale it was drawn with: the same noise under two scales would give the record away.
    """
    assert config.epsilon is not None and batch.noise2 is not None and batch.noise3 is not None
    c_j = config.c * h.sum(2, keepdim=True) if config.c else 0.0
    scale = batch.scale
    if scale is None:
        scale = spof_scale(config.epsilon, z.shape[2], c_j, 1.0 if b is None else b)
    alpha2 = 0.5 - batch.x + scale * batch.noise2
    alpha3 = 0.5 * batch.x - 0.25 + scale * batch.noise3
    if b is None or z_noisy is None:
        return alpha2 + 2 * alpha3 * (z + c_j)
    return b * alpha2 + 2 * b * alpha3 * (z_noisy / b + c_j)


def dpsgd_step(config: Config, batch: Batch, z: Tensor, b: Tensor | None) -> Tensor:
    """Algorithm 2, steps 3 to 6: clip the z-gradient, then Lap(Δ_SGD/eps) with Δ_SGD = n, or 2nC where it clipped."""
    assert config.epsilon is not None and batch.noise2 is not None
    n = z.shape[2]
    gradient = (torch.sigmoid(z) if config.point == "prediction" else 0.5) - batch.x
    sensitivity: Tensor | float = float(n)
    if can_clip(n, config.C):
        norm = gradient.norm(dim=2, keepdim=True)
        sensitivity = torch.where(norm >= config.C, 2.0 * n * config.C, float(n))
        gradient = gradient / (norm / config.C).clamp_(min=1.0)
    gradient = torch.addcmul(gradient, batch.noise2, torch.as_tensor(sensitivity / config.epsilon))
    return gradient if b is None else b * gradient


def can_clip(n: int, C: float) -> bool:
    """Every component of the z-gradient is below 1, so its norm stays below sqrt(n)."""
    return math.sqrt(n) >= C


def exact_step(batch: Batch, z: Tensor) -> Tensor:
    """alpha2 from the release, alpha3 = 1/8, public. `sampled` weighs what is released by n/k: unbiased."""
    assert batch.released is not None
    if batch.weight is None:
        return 0.5 - batch.released + z / 4
    return batch.weight * (0.5 - batch.released) + z / 4


def noise_factor(h: Tensor, h_noisy: Tensor) -> Tensor:
    """b_j = sum of b_{j,r}, where b_{j,r} = ĥ_{j,r}/h_{j,r} (eq. bji): (U, B, 1). It is l, not 1, without noise."""
    return (h_noisy / h).sum(2, keepdim=True)


def clip_factors(config: Config, x: Tensor, h: Tensor, dz: Tensor, da: Tensor, bias: bool) -> tuple[Tensor, Tensor]:
    """Per-sample clipping factors of decoder and encoder weight gradients, from norms alone (book-keeping).

    A sample's weight gradients are outer products h⊗dz and x⊗da, whose norms are products of norms: no per-sample
    gradient is ever formed. `group` clips either at C/sqrt(2), so that together they stay within C.
    """
    norms = [torch.linalg.vector_norm(tensor, dim=2, keepdim=True) for tensor in (h, dz, x, da)]
    if bias:  # a bias is a weight whose input is 1
        norms[0], norms[2] = (torch.hypot(norm, torch.ones_like(norm)) for norm in (norms[0], norms[2]))
    decoder, encoder = norms[0] * norms[1], norms[2] * norms[3]
    if config.clipping == "flat":
        both = (config.C / torch.hypot(decoder, encoder)).clamp_(max=1.0)
        return both, both
    bound = config.C / math.sqrt(2)
    return (bound / decoder).clamp_(max=1.0), (bound / encoder).clamp_(max=1.0)
