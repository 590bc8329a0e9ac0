"""What a configuration has spent per record, and what that covers. Every result carries one of these."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from sensorsim.privacy import accounting, sensitivity
from sensorsim.train.config import RELEASING, Config

WEIGHTS = "everything computed from the release, the weights included"
WEIGHTS_STEP_BY_STEP = "the weights and every step towards them, where the noise is added before anyone sees them"
COEFFICIENTS = "the perturbed coefficients alone: the forward pass reads raw records, so the weights are not covered"
GRADIENTS = "the perturbed z-gradients alone: the forward pass reads raw records, so the weights are not covered"


@dataclass(frozen=True)
class Statement:
    """Epsilon and delta of one record, against its replacement by any other."""

    nominal_epsilon: float | None
    spent_epsilon: float | None  # None: no bound
    delta: float
    covers: str

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def statement(config: Config, n: int, normalise: str = "max") -> Statement:
    """The statement of a checked configuration."""
    spent, delta, covers = _spent(config, n)
    if normalise == "max" and spent is not None:
        covers += "; not the column maxima that the data were divided by"
    return Statement(config.epsilon, spent, delta, covers)


def _spent(config: Config, n: int) -> tuple[float | None, float, str]:
    draws = max(config.epochs, 1) if config.redraw else 1
    if config.mechanism == "none" or config.epsilon is None:
        return None, 0.0, "nothing"
    if config.mechanism == "dpsgd-weights":
        return config.epsilon, config.delta if config.noise == "gaussian" else 0.0, WEIGHTS_STEP_BY_STEP
    private = _private_scale(config, n)
    if private:
        return None, 0.0, f"nothing: {private}"
    found = accounting.spent(**_release(config, n), draws=draws, features=n, forward=config.reads, delta=config.delta)
    covers = WEIGHTS if config.reads == "released" else GRADIENTS if config.mechanism == "dpsgd" else COEFFICIENTS
    return found.epsilon, found.delta, covers


def _private_scale(config: Config, n: int) -> str:
    """Why no epsilon holds: the printed noise scale was made from private data."""
    from sensorsim.train.mechanisms import can_clip

    if config.mechanism == "dpsgd" and can_clip(n, config.C):
        return "the printed scale is n or 2nC by whether the private gradient clipped"
    if config.reads == "raw" and config.mechanism == "dpsgd" and config.point == "prediction":
        return "at the prediction the gradient reads the raw record through z, and no printed sensitivity bounds that"
    if config.reads == "raw" and config.mechanism == "spof" and config.c:
        return "the printed scale with c > 0 depends on private data"
    if config.reads == "raw" and config.sigma and config.mechanism in ("spof", "fm", "dpsgd"):
        return "for noisy inputs the printed factor b_j depends on private data"
    return ""


def _release(config: Config, n: int) -> dict[str, Any]:
    """What is released of one record, in the words of `accounting.spent`."""
    assert config.epsilon is not None
    if config.mechanism in RELEASING:
        from sensorsim.train.noise import certified_epsilon
        from sensorsim.train.run import release_table

        return {
            "mechanism": config.mechanism,
            "epsilon": certified_epsilon(release_table(config, n)),
            "certified": True,
        }
    if config.mechanism == "dpsgd":
        return {"mechanism": "dpsgd", "epsilon": config.epsilon, "C": config.C}
    public = sensitivity.stabilized(config.c, config.l, n) / (sensitivity.JOINT_RELEASE_FACTOR * config.epsilon)
    return {"mechanism": config.mechanism, "scale": public}


def weight_noise_scale(config: Config, weights: int) -> float:
    """Noise on a batch's summed clipped gradients: a record, read once per epoch, spends (epsilon, delta) in all.

    Replacing a record moves one batch per epoch by at most 2C in L2, 2C·sqrt(weights) in L1. No amplification by
    sampling is claimed: the order of records is not part of the secret.
    """
    assert config.epsilon is not None
    epochs = max(config.epochs, 1)
    if config.noise == "laplace":
        return epochs * sensitivity.dpsgd_clipped(config.C, weights) / config.epsilon
    return config.C * accounting.noise_multiplier_for(config.epsilon, config.delta, epochs)
