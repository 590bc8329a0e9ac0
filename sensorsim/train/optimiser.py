"""SGD and Adam over one flat storage, in place; nothing is allocated after the first step."""

from __future__ import annotations

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
    """Adam as torch has it (no weight decay); a test holds it to torch.optim.Adam."""

    def __init__(self, flat: Tensor, lr: float) -> None:
        self.flat, self.lr, self.steps = flat, lr, 0
        self.mean, self.square, self.scratch = (torch.zeros_like(flat) for _ in range(3))
        self.state: tuple[Tensor, ...] = (self.mean, self.square)

    def step(self, gradient: Tensor) -> None:
        self.steps += 1
        self.mean.lerp_(gradient, 1 - BETA1)
        self.square.lerp_(torch.mul(gradient, gradient, out=self.scratch), 1 - BETA2)
        root = (1 - BETA2**self.steps) ** 0.5  # the bias corrections, moved from tensors into scalars
        torch.sqrt(self.square, out=self.scratch).add_(TINY * root)
        self.flat.addcdiv_(self.mean, self.scratch, value=-self.lr * root / (1 - BETA1**self.steps))


def make(name: str, flat: Tensor, lr: float) -> SGD | Adam:
    return Adam(flat, lr) if name == "adam" else SGD(flat, lr)
