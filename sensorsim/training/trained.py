"""A trained model as it is used and saved: encoders and decoders. numpy alone, so that a hospital needs no torch.

    h = sigmoid(x W_j + b_j)                                    on the body of user j
    x̂ = sigmoid(h V_j + d_j)            the paper's net         at the hospital
    x̂ = clip(logit(h) V_j + d_j, 0, 1)  the linear map

The linear map uses the same encoder on the body: logit takes the sigmoid off again, so one kernel does for both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sensorsim.mechanisms.base import LINEAR as LINEAR  # also for those who use models
from sensorsim.mechanisms.base import SIGMOID as SIGMOID

Reals = npt.NDArray[np.float64]
FORMS = (LINEAR, SIGMOID)
NEAREST = 2.0**-15  # of h to 0 and 1 before logit: one step of the kernel's format


@dataclass(frozen=True)
class Part:
    """One user's half on the body and half at the hospital."""

    W: Reals  # (n, l)
    b: Reals  # (l,)
    V: Reals  # (l, n)
    d: Reals  # (n,)


@dataclass(frozen=True)
class Trained:
    """All users of one model. `c` is what spof's decoder adds to every weight where asked to."""

    form: str
    users: tuple[Part, ...]
    c: float = 0.0

    @property
    def m(self) -> int:
        return len(self.users)

    @property
    def n(self) -> int:
        return int(self.users[0].W.shape[0])

    @property
    def l(self) -> int:  # noqa: E743 - the paper's name
        return int(self.users[0].W.shape[1])

    def encode(self, j: int, x: Any) -> Reals:
        """Hidden units of user j's records, (…, l), in 0 … 1."""
        part = self.users[j]
        return sigmoid(np.asarray(x, np.float64) @ part.W + part.b)

    def decode(self, j: int, h: Any) -> Reals:
        """Reconstructed records, (…, n), from hidden units."""
        part, h = self.users[j], np.asarray(h, np.float64)
        if self.form == LINEAR:
            return np.clip(logit(h) @ part.V + part.d, 0.0, 1.0)
        return sigmoid(h @ part.V + part.d + self.c * h.sum(axis=-1, keepdims=True))

    def predict(self, j: int, x: Any) -> Reals:
        """There and back."""
        return self.decode(j, self.encode(j, x))


def sigmoid(a: Reals) -> Reals:
    """1/(1 + e^-a) without overflow."""
    from scipy.special import expit

    return np.asarray(expit(a), np.float64)


def logit(h: Reals) -> Reals:
    """The a of which h is the sigmoid; h is kept one step away from 0 and 1."""
    kept = np.clip(h, NEAREST, 1 - NEAREST)
    return np.asarray(np.log(kept) - np.log1p(-kept))
