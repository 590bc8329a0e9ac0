"""One step of the plain training loop, as a mechanism sees it: a batch, and forward and backward passes."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from sensorsim.train import model
from sensorsim.train.config import Config
from sensorsim.train.noise import Source


@dataclass
class Batch:
    """What one step may read: (U, B, n), or (U, B, 1) for scales."""

    x: Tensor  # the record
    noisy: Tensor | None = None  # the record with environmental noise, what the encoder sees; None when sigma = 0
    present: Tensor | None = None  # 1/batch for a record, 0 where a user has none left; None: all there
    drawn: dict[str, Tensor] = field(default_factory=dict)  # what the mechanism drew for these records


@dataclass
class Step:
    """`gradient` is to be filled."""

    config: Config
    batch: Batch
    weights: model.Parameters
    gradient: model.Parameters
    source: Source

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
        """The gradient as its share of the batch's mean."""
        return dz if self.batch.present is None else dz * self.batch.present

    def backward(self, x: Tensor, h: Tensor, dz: Tensor, c: float = 0.0) -> None:
        """Fill `gradient` with the batch's mean, given d loss / d z of every record."""
        model.backward(self.weights, self.gradient, x, h, self.mean(dz), c)

    def hidden_gradient(self, h: Tensor, dz: Tensor) -> Tensor:
        return model.hidden_gradient(self.weights, h, dz)

    def decoder_backward(self, h: Tensor, dz: Tensor) -> None:
        model.decoder_backward(self.gradient, h, dz)

    def encoder_backward(self, x: Tensor, da: Tensor) -> None:
        model.encoder_backward(self.weights, self.gradient, x, da)


def noise_factor(h: Tensor, h_noisy: Tensor) -> Tensor:
    """b_j = sum of b_{j,r}, where b_{j,r} = ĥ_{j,r}/h_{j,r} (eq. bji): (U, B, 1). It is l, not 1, without noise."""
    return (h_noisy / h).sum(2, keepdim=True)
