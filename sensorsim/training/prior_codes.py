"""What hidden units are expected to be before any code comes, from what the hospital has learnt: `decode` starts here.

Before its sigmoid a unit is a = x·w + b, so mean and covariance of records give those of the units.

The units of a linear map may be mixed in any way that can be undone: it reconstructs the same. A sensor that releases
one of them does best where each says as much as another, since then each speaks of what varies most; the principal
directions themselves, of which six in seven packets would say next to nothing, are the worst choice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sensorsim.hospital.learning import LARGEST_WEIGHT, STEEPEST
from sensorsim.mechanisms.base import LINEAR
from sensorsim.training.trained import Part, Reals, Trained

if TYPE_CHECKING:
    from sensorsim.hospital.learning import Learnt

LEAST_VARIANCE = 1e-6
LEAST_SHARE = 1e-12  # of the largest variance: less is lost to rounding, and no root is found


def codes(trained: Trained, learnt: Learnt, sigma: float = 0.0) -> tuple[tuple[Reals, ...], tuple[Reals, ...]]:
    """Mean (l,) and covariance (l, l) of every user's units; `sigma` is the environment's noise on the inputs."""
    of = learnt.column_of
    mean, expected = learnt.mean[of], learnt.expected()[np.ix_(of, of)] + sigma**2 * np.eye(len(of))
    middle = tuple(mean @ part.W + part.b for part in trained.users)
    return middle, tuple(_floored(_even(part.W.T @ expected @ part.W)) for part in trained.users)


def mixed(trained: Trained, learnt: Learnt, sigma: float = 0.0) -> Trained:
    """The same linear map with its units mixed evenly, by the Hartley transform; each has the deviation STEEPEST."""
    if trained.form != LINEAR:
        return trained
    part, spread = trained.users[0], codes(trained, learnt, sigma)[1][0]
    reach = np.linalg.norm(part.V, axis=1)  # of each unit in a record
    turn = reach[:, None] * _hartley(trained.l)
    wide = np.sqrt(np.diag(turn.T @ spread @ turn)) / STEEPEST
    turn /= np.maximum(wide, np.abs(part.W @ turn).max(axis=0) / LARGEST_WEIGHT)
    made = Part(part.W @ turn, part.b @ turn, np.linalg.solve(turn, part.V), part.d)
    return Trained(LINEAR, (made,) * trained.m)


def _hartley(l: int) -> Reals:
    """An orthogonal matrix (l, l) whose entries are of about one size."""
    angle = 2 * np.pi * np.outer(np.arange(l), np.arange(l)) / l
    return np.asarray((np.cos(angle) + np.sin(angle)) / np.sqrt(l))


def _floored(matrix: Reals) -> Reals:
    """With a little more variance in every direction, so that none is without any."""
    least = max(LEAST_VARIANCE, LEAST_SHARE * float(np.diag(matrix).max()))
    return np.asarray(matrix + least * np.eye(len(matrix)))


def _even(matrix: Reals) -> Reals:
    return np.asarray((matrix + matrix.T) / 2)
