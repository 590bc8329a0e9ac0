"""What has been spent: this mechanism, used so: which epsilon, and what it covers. The mechanism itself answers."""

from typing import Any

from sensorsim.mechanisms import find
from sensorsim.privacy.spending import Covers, Spent, Use, gaussian_epsilon, noise_multiplier_for

__all__ = ["Covers", "Spent", "Use", "gaussian_epsilon", "noise_multiplier_for", "nominal_scale", "spent"]


def spent(mechanism: str, epsilon: float | None = None, **use: Any) -> Spent:
    """The privacy spent on one record, or on one person with `records` records. `Use` lists what else can be said.

    The forward pass reads what the mechanism usually does, unless `forward` says otherwise.
    """
    asked = find(mechanism)
    return asked.spend(Use(epsilon=epsilon, **{"forward": asked.reads, **use}))


def nominal_scale(mechanism: str, epsilon: float, features: int = 14, release: int = 1, C: float = 4.0) -> float:
    """The Laplace scale for a nominal epsilon: as printed for what the paper prints, what holds for releases."""
    return find(mechanism).nominal_scale(Use(epsilon=epsilon, features=features, release=release, C=C))
