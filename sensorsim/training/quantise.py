"""A trained encoder in the kernels' integers. `sensorsim evaluate --integers` says what they cost in accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sensorsim.encoders import TOLD, Encoder
from sensorsim.kernels.formats import ENCODER_BIAS, ENCODER_WEIGHT, HIDDEN
from sensorsim.training.about import ranges_of
from sensorsim.training.released import on_the_lattice

if TYPE_CHECKING:
    from sensorsim.training.save import Model
    from sensorsim.training.trained import Part


def in_integers(model: Model) -> list[Encoder]:
    """An encoder for every user; one for all of them where all are the same."""
    users = model.trained.users
    shared = all(_same(part, users[0]) for part in users)
    return [_rounded(part, model, "all" if shared else j) for j, part in enumerate(users[:1] if shared else users)]


def encode(rows: np.ndarray, weights: Sequence[Sequence[int]], bias: Sequence[int]) -> np.ndarray:
    """Hidden units of every row by the integer kernel itself, as reals."""
    from sensorsim.kernels.encoder import encoder

    flat, offsets = np.array(weights, dtype=np.int16).ravel(), np.array(bias, dtype=np.int32)
    hidden = encoder.batch(x=on_the_lattice(rows), weights=flat, bias=offsets)["hidden"]
    return np.asarray(hidden / 2**HIDDEN.frac_bits)


def _rounded(part: Part, model: Model, user: int | str) -> Encoder:
    about: dict[str, Any] = model.about
    half = len(part.W) // 2  # each of n products is rounded down by half a unit on average
    saturated = int((np.abs(part.W) >= ENCODER_WEIGHT.hi / 2**ENCODER_WEIGHT.frac_bits).sum())
    told = {name: about[name] for name in TOLD if name in about}
    return Encoder(
        tuple(tuple(ENCODER_WEIGHT.quantise(float(value)) for value in row) for row in part.W.T),
        tuple(ENCODER_BIAS.quantise(float(value)) + half for value in part.b),
        tuple(about["columns"]),
        ranges_of(about),
        told | {"user": user, "quantisation": {"weights_saturated": saturated}},
    )


def _same(one: Part, other: Part) -> bool:
    return one is other or all(np.array_equal(a, b) for a, b in ((one.W, other.W), (one.b, other.b)))
