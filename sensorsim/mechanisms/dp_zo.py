"""`dp-zo`: zeroth-order steps. Two forward passes along a random direction, one clipped, noisy number for a record.

After DP-ZO (Tang, Panda, Nasr, Mahloujifar and Mittal, "Private Fine-tuning of Large Language Models with Zeroth-order
Optimization", 2024). The direction is public, a vector of signs; the slope of a record's loss along it is the only
number that depends on the record. It is clipped to ±C, so replacing a record moves a sum of slopes by at most 2C:
Gaussian noise, or Laplace noise for a pure epsilon. The paper on SPOF names it as a rival that works on losses too.
"""

from dataclasses import replace
from typing import Any

from sensorsim.accounting import composition as accounting
from sensorsim.accounting.composition import Covers, Spent, Use
from sensorsim.kernels.formats import FRAC
from sensorsim.mechanisms.base import Sensitivity, Style, Tensor
from sensorsim.mechanisms.central import Central
from sensorsim.mechanisms.form import LEAN, Form
from sensorsim.mechanisms.laplace import lattice_scale

MU = 2.0**-7  # how far each pass goes along the direction, as in the kernel
WHY = "replacing a record moves a sum of clipped slopes by 2C"


class DpZo(Central):
    """One noisy slope for every record and step."""

    name = "dp-zo"
    title = "dp-zo"
    about = "zeroth-order steps: the clipped slope of a record's loss along a public direction, with noise"
    style = Style("--", "P", "#e69f00")
    forms = (Form("dp-zo", "DP-ZO, one direction", LEAN, "zeroth_order.dpzo", sends=lambda n: 32),)
    as_shipped = "dp-zo"
    options = ("epsilon", "C", "noise", "delta", "sampling", "records", "features")

    def sensitivity(self, use: Use) -> Sensitivity:
        return Sensitivity(None, 2 * use.C)

    def nominal_scale(self, use: Use) -> float:
        """Return the scale of Laplace noise: every epoch gets its share of the budget, by basic composition."""
        assert use.epsilon is not None
        return use.draws * 2 * use.C / use.epsilon

    def spend(self, use: Use) -> Spent:
        accounting.check(self.name, use, gaussian_noise=use.noise == "gaussian", needs_budget=True)
        if use.noise == "gaussian":
            return accounting.gaussian(accounting.multiplier_of(use), use, Covers.REAL_STEPS, WHY)
        sums = accounting.shared_sums(use.records, use.batch)
        loss = 2 * use.C * sums[0] / (use.scale or self.nominal_scale(use))
        return accounting.composed([(loss, accounting.laplace, 1)], replace(use, records=len(sums)), Covers.STEPS, WHY)

    def step(self, step: Any) -> None:
        config, flat = step.config, step.weights.flat
        signs = step.source.signs(flat.shape)
        # Of a loss too large for a float nothing is known: 0, since a sum that is no number would give the record away.
        slopes = self.slopes(step, signs).double().nan_to_num_(0.0).clamp_(-config.C, config.C)
        if step.batch.present is not None:
            slopes = slopes * (step.batch.present > 0)
        noisy = self.perturbed(slopes, step) / config.batch
        step.gradient.flat.copy_(signs * (noisy if step.weights.units_inside else noisy[:, None]))

    def slopes(self, step: Any, signs: Tensor) -> Tensor:
        """Return the slope of every record's loss along the direction, (U, B, 1); the weights stay as they are."""
        flat, reads = step.weights.flat, step.seen
        start, losses = flat.clone(), []
        for way in (MU, -MU):
            flat.copy_(start).add_(signs, alpha=way)
            _, z = step.forward(reads)
            losses.append(((0.5 - step.batch.x) * z + z.square() / 8).sum(2, keepdim=True))
        flat.copy_(start)
        return (losses[0] - losses[1]) / (2 * MU)

    def perturbed(self, slopes: Tensor, step: Any) -> Tensor:
        """Return the batch's sums with noise, (U,); Laplace noise is on whole numbers: epsilon holds to the last bit.

        The slopes themselves become whole numbers, not their sum: a sum of floats depends on all of them by rounding.
        """
        config = step.config
        use = step.remember("use", lambda: self.use_of(config, step.batch.x.shape[2]))
        if config.noise == "gaussian":
            sums = slopes.sum((1, 2))
            return (sums + config.C * accounting.multiplier_of(use) * step.source.normal(sums.shape)).float()
        steps = (slopes * (1 << FRAC)).round().long().sum((1, 2))
        # Rounding can move two records apart by one step more than 2C.
        scale = lattice_scale(self.nominal_scale(use) * (1 + 2.0**-FRAC / (2 * config.C)))
        return ((steps + step.source.discrete(steps.shape, scale)).double() / (1 << FRAC)).float()


MECHANISM = DpZo()
