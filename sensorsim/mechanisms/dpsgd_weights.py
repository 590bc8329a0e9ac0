"""`dpsgd-weights`: per-record clipping of weight gradients, noise on their sum. DP-SGD as it is used elsewhere.

Norms come by book-keeping: a record's weight gradients are outer products, whose norms are products of norms, so no
gradient of a single record is ever formed. It runs where the weights are; a sensor has no kernel for it.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from sensorsim._util.errors import InputError
from sensorsim.accounting import sensitivities as sensitivity
from sensorsim.mechanisms.base import Style, Tensor
from sensorsim.mechanisms.central import Central

if TYPE_CHECKING:
    from sensorsim.accounting.composition import Spent, Use

WHY = "replacing a record moves a sum of clipped weight gradients by 2C"


class DpsgdWeights(Central):
    """Gaussian or Laplace noise on clipped gradients of the weights."""

    name = "dpsgd-weights"
    title = "dpsgd-weights"
    about = "per-record clipping of weight gradients (flat or group-wise), Gaussian or Laplace noise on their sum"
    style = Style("-.", "v", "#56b4e9")
    options: ClassVar[tuple[str, ...]] = (
        "epsilon",
        "C",
        "loss",
        "noise",
        "clipping",
        "delta",
        "sampling",
        "records",
        "features",
    )

    def spend(self, use: "Use") -> "Spent":
        from sensorsim.accounting import pld
        from sensorsim.accounting.composition import Covers, check, composed, gaussian, multiplier_of, shared_sums

        check(self.name, use, gaussian_noise=True, needs_budget=True)
        if use.noise == "laplace":  # scaled so that a record read once in each draw spends epsilon in all
            if use.epsilon is None or use.noise_multiplier is not None:
                raise InputError(f"{self.name} with Laplace noise takes an epsilon; not a multiplier.")
            largest = shared_sums(use.records, use.batch)[0]
            part = (use.epsilon / use.draws * largest, pld.pure, 1)
            return composed([part], _sums_only(use), Covers.REAL_STEPS, WHY)
        return gaussian(multiplier_of(use), use, Covers.REAL_STEPS, WHY)

    def step(self, step: Any) -> None:
        """The mean over the batch of per-record clipped weight gradients, and noise."""
        config = step.config
        scale = step.remember("noise", lambda: noise_scale(config, step.weights.per_unit) / config.batch)
        noise = step.normal(scale) if config.noise == "gaussian" else step.laplace(scale)
        step.clipped(config.C, config.clipping == "group", config.loss == "squared", noise)


def slope(config: Any, z: Tensor, x: Tensor) -> Tensor:
    """d loss / d z of every record. Squared error has the slope of cross-entropy where the prediction is 1/2."""
    predicted = z.sigmoid()
    if config.loss == "squared":
        return 4 * (predicted - x) * predicted * (1 - predicted)
    return predicted - x


@lru_cache(maxsize=16)
def noise_scale(config: Any, weights: int) -> float:
    """Noise on a batch's summed clipped gradients, with which a record spends (epsilon, delta) in all.

    Replacing a record moves one batch per epoch, or by Poisson sampling any batch with the same probability, by at most
    2C in L2, 2C·sqrt(weights) in L1.
    """
    from sensorsim.accounting.composition import multiplier_of

    use = MECHANISM.use_of(config, 1)
    if config.noise == "laplace":
        return float(use.draws * sensitivity.dpsgd_clipped(config.C, weights) / config.epsilon)
    return float(config.C * multiplier_of(use))


def _sums_only(use: "Use") -> "Use":
    """The same use counted in sums that a person's records enter, in place of records."""
    from dataclasses import replace

    from sensorsim.accounting.composition import shared_sums

    return replace(use, records=len(shared_sums(use.records, use.batch)))


MECHANISM = DpsgdWeights()
