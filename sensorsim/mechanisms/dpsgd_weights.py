"""`dpsgd-weights`: per-record clipping of weight gradients, noise on their sum. DP-SGD as it is used elsewhere.

Norms come by book-keeping: a record's weight gradients are outer products, whose norms are products of norms, so no
gradient of a single record is ever formed. It runs where the weights are; a sensor has no kernel for it.
"""

import math
from typing import TYPE_CHECKING, Any, ClassVar

from sensorsim.errors import InputError
from sensorsim.mechanisms.base import Mechanism, Style, Tensor
from sensorsim.privacy import sensitivity

if TYPE_CHECKING:
    from sensorsim.privacy.spending import Spent, Use

WHY = "replacing a record moves a sum of clipped weight gradients by 2C; no amplification by sampling is claimed"


class DpsgdWeights(Mechanism):
    """Gaussian or Laplace noise on clipped gradients of the weights."""

    name = "dpsgd-weights"
    title = "dpsgd-weights"
    about = "per-record clipping of weight gradients (flat or group-wise), Gaussian or Laplace noise on their sum"
    style = Style("-.", "v", "#56b4e9")
    options: ClassVar[tuple[str, ...]] = ("epsilon", "C", "noise", "clipping", "delta")
    may_read = ("raw",)
    gaussian = True
    draws_each_epoch = True

    def spend(self, use: "Use") -> "Spent":
        from sensorsim.privacy import pld
        from sensorsim.privacy.spending import Covers, check, composed, gaussian, noise_multiplier_for, shared_sums

        check(self.name, use, gaussian_noise=True, needs_budget=True)
        if use.noise == "laplace":  # scaled so that a record read once in each draw spends epsilon in all
            if use.epsilon is None or use.noise_multiplier is not None:
                raise InputError(f"{self.name} with Laplace noise takes an epsilon; not a multiplier.")
            largest = shared_sums(use.records, use.batch)[0]
            part = (use.epsilon / use.draws * largest, pld.pure, 1)
            return composed([part], _sums_only(use), Covers.REAL_STEPS, WHY)
        multiplier = use.noise_multiplier or noise_multiplier_for(use.epsilon or 0.0, use.delta, use.draws)
        return gaussian(multiplier, use, Covers.REAL_STEPS, WHY)

    def step(self, step: Any) -> None:
        """The mean over the batch of per-record clipped weight gradients, and noise."""
        config, reads = step.config, step.seen
        h, z = step.forward(reads)
        dz = step.mean(z.sigmoid() - step.batch.x)
        da = step.hidden_gradient(h, dz)
        of_one = (dz, da) if config.batch == 1 else (dz * config.batch, da * config.batch)  # `dz` comes as a mean
        first, second = clip_factors(config, reads, h, *of_one)
        step.decoder_backward(h, dz * first)
        step.encoder_backward(reads, da * second)
        noise = noise_scale(config, step.weights.per_unit) / config.batch
        flat = step.gradient.flat
        drawn = step.source.normal(flat.shape) if config.noise == "gaussian" else step.source.laplace(flat.shape)
        flat.add_(drawn, alpha=noise)


def noise_scale(config: Any, weights: int) -> float:
    """Noise on a batch's summed clipped gradients: a record, read once per epoch, spends (epsilon, delta) in all.

    Replacing a record moves one batch per epoch by at most 2C in L2, 2C·sqrt(weights) in L1.
    """
    from sensorsim.privacy.spending import noise_multiplier_for

    epochs = max(config.epochs, 1)
    if config.noise == "laplace":
        return float(epochs * sensitivity.dpsgd_clipped(config.C, weights) / config.epsilon)
    return float(config.C * noise_multiplier_for(config.epsilon, config.delta, epochs))


def clip_factors(config: Any, x: Tensor, h: Tensor, dz: Tensor, da: Tensor) -> tuple[Tensor, Tensor]:
    """Clipping factors of decoder and encoder weight gradients, record by record, from norms alone.

    `group` clips either at C/sqrt(2), so that together they stay within C.
    """
    import torch

    norms = [torch.linalg.vector_norm(tensor, dim=2, keepdim=True) for tensor in (h, dz, x, da)]
    if config.bias:  # a bias is a weight whose input is 1
        norms[0], norms[2] = (torch.hypot(norm, torch.ones_like(norm)) for norm in (norms[0], norms[2]))
    decoder, encoder = norms[0] * norms[1], norms[2] * norms[3]
    if config.clipping == "flat":
        both = (config.C / torch.hypot(decoder, encoder)).clamp_(max=1.0)
        return both, both
    bound = config.C / math.sqrt(2)
    return (bound / decoder).clamp_(max=1.0), (bound / encoder).clamp_(max=1.0)


def _sums_only(use: "Use") -> "Use":
    """The same use counted in sums that a person's records enter, in place of records."""
    from dataclasses import replace

    from sensorsim.privacy.spending import shared_sums

    return replace(use, records=len(shared_sums(use.records, use.batch)))


MECHANISM = DpsgdWeights()
