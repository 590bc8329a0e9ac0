"""One step of the plain training loop, as a mechanism sees it: a batch, and forward and backward passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from sensorsim.training import clipped, model
from sensorsim.training.config import Config
from sensorsim.training.noise import Source, Together


@dataclass
class Batch:
    """What one step may read: (U, B, n), or (U, B, 1) for scales."""

    x: Tensor  # the record
    noisy: Tensor | None = None  # the record with environmental noise, what the encoder sees; None when sigma = 0
    present: Tensor | None = None  # 1/batch for a record, 0 where a unit has none in this place; None: all there
    drawn: dict[str, Tensor] = field(default_factory=dict)  # what the mechanism drew for these records
    absent: Tensor | None = None  # (U,) units that have no record left in this epoch, and stay as they are; None: none


@dataclass
class Step:
    """`gradient` is to be filled. One object lives through a training; only its batch changes."""

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
        """What the forward pass reads: the release, or the record without the environment's noise where the printed
        factor b_j stands for it, or else as the sensor delivers it.
        """
        if self.config.reads == "released":
            return self.batch.drawn["released"]
        return self.batch.x if self.config.object.on_noisy_inputs else self.seen

    def remember(self, name: Any, make: Callable[[], Any]) -> Any:
        """What is the same in every step, made in the first."""
        if name not in self.memory:
            self.memory[name] = make()
        return self.memory[name]

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """h and z."""
        h = model.encode(self.weights, x)
        return h, model.decode(self.weights, h)

    def noise_factor(self, h: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """b_j and ẑ under environmental noise; None without, and where the forward pass reads released values."""
        if self.batch.noisy is None or self.config.reads == "released":
            return None, None
        h_noisy, z_noisy = self.forward(self.batch.noisy)
        return noise_factor(h, h_noisy), z_noisy

    def mean(self, dz: Tensor) -> Tensor:
        """The gradient as its share of the batch's mean: over the batch that was asked for, however many came."""
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
        clipped.fill(self, clipped.Rule(C, group, squared), noise)

    def normal(self, scale: float) -> Tensor:
        """Gaussian noise in the shape of the gradient, with this standard deviation."""
        return self._together.normal(self.gradient.flat.shape, scale)

    def laplace(self, scale: float) -> Tensor:
        """Laplace noise in the shape of the gradient."""
        return self._together.laplace(self.gradient.flat.shape, scale=scale)

    @property
    def _together(self) -> Together:
        if isinstance(self.source, Together):
            return self.source
        found: Together = self.remember(
            Together, lambda: Together([self.source], self.gradient.W.shape[0], self.gradient.units_inside)
        )
        return found

    def hidden_gradient(self, h: Tensor, dz: Tensor) -> Tensor:
        return model.hidden_gradient(self.weights, h, dz)

    def decoder_backward(self, h: Tensor, dz: Tensor) -> None:
        model.decoder_backward(self.gradient, h, dz)

    def encoder_backward(self, x: Tensor, da: Tensor) -> None:
        model.encoder_backward(self.weights, self.gradient, x, da)


def noise_factor(h: Tensor, h_noisy: Tensor) -> Tensor:
    """b_j = sum of b_{j,r}, where b_{j,r} = ĥ_{j,r}/h_{j,r} (eq. bji): (U, B, 1). It is l, not 1, without noise."""
    return (h_noisy / h).sum(2, keepdim=True)
