"""Trained models as safetensors or npz, never pickle, with their privacy statement inside."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from sensorsim.errors import InputError
from sensorsim.files import write_whole
from sensorsim.train import model
from sensorsim.train.config import Config

FORMATS = (".safetensors", ".npz")
ABOUT = "sensorsim"  # the name of the JSON text beside the tensors


def check_path(path: str) -> None:
    """Say no before the training, not after it."""
    if Path(path).suffix not in FORMATS:
        raise InputError(f"{path} ends in {Path(path).suffix or 'nothing'}; a model is saved as .safetensors or .npz.")
    if not Path(path).resolve().parent.is_dir():
        raise InputError(f"there is no folder for {path}; make it first, or give another path.")


def tensors_of(weights: model.Parameters, config: Config, run: int = 0) -> dict[str, np.ndarray]:
    """The paper's matrices of one run: W_j (n, l) for every user, and Ŵ (m·l, n)."""
    first = run * config.m
    W, V = (t[first : first + config.m].detach().contiguous().numpy() for t in (weights.W, weights.V))
    tensors = {f"encoder.{j}.weight": W[j].copy() for j in range(config.m)}
    tensors["decoder.weight"] = V.reshape(-1, V.shape[2]).copy()
    if weights.b is not None and weights.d is not None:
        tensors |= {f"encoder.{j}.bias": weights.b[first + j, 0].numpy().copy() for j in range(config.m)}
        tensors["decoder.bias"] = weights.d[first : first + config.m, 0].contiguous().numpy().copy()
    return tensors


def save(path: str, tensors: dict[str, np.ndarray], about: dict[str, Any]) -> None:
    """Write model and statement in one file, whole or not at all."""
    check_path(path)
    text = json.dumps(about, sort_keys=True)
    if Path(path).suffix == ".npz":
        buffer = io.BytesIO()
        np.savez(buffer, **{ABOUT: np.array(text)}, **tensors)  # type: ignore[arg-type]
        write_whole(path, buffer.getvalue())
        return
    from safetensors.numpy import save as as_bytes

    write_whole(path, as_bytes(tensors, metadata={ABOUT: text}))


def load(path: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Tensors and statement."""
    check_path(path)
    try:
        if Path(path).suffix == ".npz":
            with np.load(path, allow_pickle=False) as file:
                tensors = {name: file[name] for name in file.files if name != ABOUT}
                return tensors, json.loads(str(file[ABOUT]))
        from safetensors import safe_open

        with safe_open(path, framework="numpy") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, json.loads(file.metadata()[ABOUT])  # noqa: SIM118
    except FileNotFoundError:
        raise InputError(f"there is no file {path}; make one with sensorsim train --out {path}") from None
    except Exception as error:  # two libraries and JSON, each with errors of its own for a damaged file
        raise InputError(f"{path} is not a model of sensorsim train ({error}); train it again.") from None
