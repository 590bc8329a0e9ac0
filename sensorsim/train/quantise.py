"""A trained encoder in the kernels' integers, and what the integers cost in accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sensorsim.encoders import Encoder
from sensorsim.kernels.formats import ENCODER_BIAS, ENCODER_WEIGHT, HIDDEN, X
from sensorsim.train.config import Config
from sensorsim.train.data import PUBLIC_CAPS, Dataset


def quantise(
    tensors: dict[str, np.ndarray], config: Config, dataset: Dataset, provenance: dict[str, Any]
) -> list[Encoder]:
    """One encoder for every user, from the tensors of `save.tensors_of`; provenance gains what was lost."""
    scale = tuple(PUBLIC_CAPS[name] for name in dataset.columns) if dataset.normalise == "public" else None
    made = in_integers(tensors, config, dataset.columns, scale, provenance)
    return [_scored(encoder, tensors, dataset, j) for j, encoder in enumerate(made)]


def in_integers(
    tensors: dict[str, np.ndarray],
    config: Config,
    columns: tuple[str, ...],
    scale: tuple[float, ...] | None,
    provenance: dict[str, Any],
) -> list[Encoder]:
    """The same where there is no record to measure it on."""
    made, n = [], len(columns)
    decoder = tensors["decoder.weight"].reshape(config.m, config.l, n)
    for j in range(config.m):
        W = tensors[f"encoder.{j}.weight"].astype(np.float64)
        b = tensors.get(f"encoder.{j}.bias", np.zeros(config.l)).astype(np.float64)
        d = tensors["decoder.bias"][j] if "decoder.bias" in tensors else np.zeros(n)
        half = n // 2  # each of n products is rounded down by half a unit on average
        saturated = int((np.abs(W) >= ENCODER_WEIGHT.hi / 2**ENCODER_WEIGHT.frac_bits).sum())
        made.append(
            Encoder(
                columns,
                scale,
                tuple(tuple(ENCODER_WEIGHT.quantise(float(value)) for value in row) for row in W.T),
                tuple(ENCODER_BIAS.quantise(float(value)) + half for value in b),
                tuple(tuple(round(float(value), 6) for value in row) for row in decoder[j]),
                tuple(round(float(value), 6) for value in d),
                provenance | {"user": j, "quantisation": {"weights_saturated": saturated}},
            )
        )
    return made


def _scored(encoder: Encoder, tensors: dict[str, np.ndarray], dataset: Dataset, j: int) -> Encoder:
    """The encoder with what the integers cost on user j's records."""
    W = tensors[f"encoder.{j}.weight"].astype(np.float64)
    b = tensors.get(f"encoder.{j}.bias", np.zeros(encoder.l)).astype(np.float64)
    decoder = tensors["decoder.weight"].reshape(-1, encoder.l, encoder.n)[j]
    d = tensors["decoder.bias"][j] if "decoder.bias" in tensors else np.zeros(encoder.n)
    rows = dataset.x[dataset.user == j]
    exact = _accuracy(rows, 1 / (1 + np.exp(-(rows @ W + b))), decoder, d)
    whole = _accuracy(rows, encode(rows, encoder.weights, encoder.bias), decoder, d)
    report = {"accuracy_in_reals": exact, "accuracy_in_integers": whole, "accuracy_lost_points": exact - whole}
    provenance = encoder.provenance
    return replace(encoder, provenance=provenance | {"quantisation": report | provenance["quantisation"]})


def encode(rows: np.ndarray, weights: Sequence[Sequence[int]], bias: Sequence[int]) -> np.ndarray:
    """Hidden units of every row by the integer kernel itself, as reals."""
    from sensorsim.kernels.encoder import encoder

    x = np.array([[X.quantise(float(value)) for value in row] for row in rows], dtype=np.uint16)
    flat, offsets = np.array(weights, dtype=np.int16).ravel(), np.array(bias, dtype=np.int32)
    hidden = encoder.batch(x=x, weights=flat, bias=offsets)["hidden"]
    return np.asarray(hidden / 2**HIDDEN.frac_bits)


def _accuracy(rows: np.ndarray, h: np.ndarray, decoder: np.ndarray, d: np.ndarray) -> float:
    return float(100 * (1 - np.mean((1 / (1 + np.exp(-(h @ decoder + d))) - rows) ** 2)))
