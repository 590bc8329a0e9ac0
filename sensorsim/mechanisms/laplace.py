"""Mechanisms with Laplace noise: how their spend adds up, and noise on the lattice of the kernels.

Noise is drawn as whole numbers, exactly (noise/host_noise.py), and added to whole numbers; only then is the sum made a
float. So what is released keeps its epsilon to the last bit, with delta = 0; noise that is added in floats does not.
"""

import math

from sensorsim._util.errors import InputError
from sensorsim.accounting.composition import Covers, Part, Spent, Use, check, composed, unbounded
from sensorsim.kernels.formats import FRAC
from sensorsim.mechanisms.base import Mechanism, Tensor

FINE = 1 << 20  # lattice steps of one scale, where the scale is private and nothing is promised


class LaplaceMechanism(Mechanism):
    """Epsilon from the losses of a record's noisy numbers, composed over draws and records."""

    def parts(self, use: Use, scale: float) -> list[Part]:
        """Return the largest loss of each noisy number of a record: how far another record moves it, over the scale."""
        raise NotImplementedError

    def covers(self, use: Use) -> Covers:
        """Return what the epsilon is about."""
        return Covers.RELEASE if use.forward == "released" else Covers.COEFFICIENTS

    def spend(self, use: Use) -> Spent:
        check(self.name, use, gaussian_noise=False, needs_budget=True)
        if why_not := self.no_bound(use):
            return unbounded(why_not)
        parts = self.parts(use, use.scale or self.nominal_scale(use))
        return composed(parts, use, self.covers(use), f"the forward pass reads {use.forward} values")


def lattice_scale(scale: float, frac_bits: int = FRAC) -> int:
    """Return the scale in lattice steps of 2^-frac_bits, rounded up, and one more.

    One more because the composition of many draws is computed with continuous Laplace noise. With d steps of
    sensitivity, the curve of discrete noise at scale t touches that of continuous noise at losses 2/t apart and lies
    above it between them by at most 1/(2t²); a scale of one step more lowers it by about d/(2t²), and d is above 1.
    """
    from sensorsim.noise.host_noise import LARGEST_T

    steps = scale * (1 << frac_bits)
    if not steps < LARGEST_T - 1:
        raise InputError(f"this epsilon asks for noise of scale {scale:.3g}, too much to draw; give a larger one.")
    return math.ceil(steps) + 1


def on_lattice(x: Tensor) -> Tensor:
    """Return x in [0, 1] as whole numbers in Q15."""
    import torch

    return (x * (1 << FRAC)).round().clamp(0, 1 << FRAC).to(torch.int64)
