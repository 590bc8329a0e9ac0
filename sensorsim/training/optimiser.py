"""SGD and Adam over one flat storage, in place; nothing is allocated after the first step."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

BETA1, BETA2, TINY = 0.9, 0.999, 1e-8  # torch's defaults


class SGD:
    """Plain gradient descent."""

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
        self.mean, self.square = torch.zeros_like(flat), torch.zeros_like(flat)
        self.state: tuple[Tensor, ...] = (self.mean, self.square)
        self._count = np.zeros((), np.float32)  # one number that numpy counts up and torch reads
        self._steps = [torch.from_numpy(self._count)]
        self._lists = [flat], [self.mean], [self.square]

    def step(self, gradient: Tensor) -> None:
        self._count += 1
        flat, mean, square = self._lists
        torch._fused_adam_(
            flat, [gradient], mean, square, [], self._steps,
            lr=self.lr, beta1=BETA1, beta2=BETA2, weight_decay=0.0, eps=TINY, amsgrad=False, maximize=False,
        )  # fmt: skip


def make(name: str, flat: Tensor, lr: float) -> SGD | Adam:
    return Adam(flat, lr) if name == "adam" else SGD(flat, lr)
