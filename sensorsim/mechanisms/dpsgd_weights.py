"""`dpsgd-weights`: per-record clipping of weight gradients, noise on their sum. DP-SGD as it is used elsewhere.

Norms come by book-keeping: a record's weight gradients are outer products, whose norms are products of norms, so no
gradient of a single record is ever formed. It runs where the weights are; a sensor has no kernel for it.
"""

from dataclasses import replace
from functools import lru_cache
from typing import Any

from sensorsim._util.errors import InputError
from sensorsim.accounting import composition as accounting
from sensorsim.accounting.composition import Covers, Spent, Use
from sensorsim.accounting.sensitivities import dpsgd_clipped
from sensorsim.mechanisms.base import Style, Tensor
from sensorsim.mechanisms.central import Central

WHY = "replacing a record moves a sum of clipped weight gradients by 2C"


class DpsgdWeights(Central):
    """Gaussian or Laplace noise on clipped gradients of the weights."""

    name = "dpsgd-weights"
    title = "dpsgd-weights"
    about = "per-record clipping of weight gradients (flat or group-wise), Gaussian or Laplace noise on their sum"
    style = Style("-.", "v", "#56b4e9")
    options = ("epsilon", "C", "loss", "noise", "clipping", "delta", "sampling", "records", "features")

    def spend(self, use: Use) -> Spent:
        accounting.check(self.name, use, gaussian_noise=True, needs_budget=True)
        if use.noise == "laplace":  # scaled so that a record read once in each draw spends epsilon in all
            if use.epsilon is None or use.noise_multiplier is not None:
                raise InputError(f"{self.name} with Laplace noise takes an epsilon; not a multiplier.")
            sums = accounting.shared_sums(use.records, use.batch)
            part = (use.epsilon / use.draws * sums[0], accounting.pure, 1)
            return accounting.composed([part], replace(use, records=len(sums)), Covers.REAL_STEPS, WHY)
        return accounting.gaussian(accounting.multiplier_of(use), use, Covers.REAL_STEPS, WHY)

    def step(self, step: Any) -> None:
        """Take the mean over the batch of per-record clipped weight gradients, and noise."""
        config = step.config
        scale = step.remember("noise", lambda: noise_scale(config, step.weights.per_unit) / config.batch)
        noise = step.normal(scale) if config.noise == "gaussian" else step.laplace(scale)
        step.clipped(config.C, config.clipping == "group", config.loss == "squared", noise)


def slope(config: Any, z: Tensor, x: Tensor) -> Tensor:
    """Return d loss / d z of every record. Squared error has the slope of cross-entropy where the prediction is 1/2."""
    predicted = z.sigmoid()
    if config.loss == "squared":
        return 4 * (predicted - x) * predicted * (1 - predicted)
    return predicted - x


@lru_cache(maxsize=16)
def noise_scale(config: Any, weights: int) -> float:
    """Return the noise on a batch's summed clipped gradients, with which a record spends (epsilon, delta) in all.

    Replacing a record moves one batch per epoch, or by Poisson sampling any batch with the same probability, by at most
    2C in L2, 2C·sqrt(weights) in L1.
    """
    use = MECHANISM.use_of(config, 1)
    if config.noise == "laplace":
        return float(use.draws * dpsgd_clipped(config.C, weights) / config.epsilon)
    return float(config.C * accounting.multiplier_of(use))


MECHANISM = DpsgdWeights()
