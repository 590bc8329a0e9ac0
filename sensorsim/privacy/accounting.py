"""Say what a use of a mechanism has spent: which epsilon, and what it covers. The mechanism itself answers."""

from typing import Any

from sensorsim.errors import InputError
from sensorsim.mechanisms import find
from sensorsim.privacy.spending import Covers, Spent, Use, gaussian_epsilon, noise_multiplier_for
from sensorsim.privacy.tables import NoiseTable

__all__ = ["Covers", "Spent", "Use", "gaussian_epsilon", "noise_multiplier_for", "nominal_scale", "spent"]


def spent(mechanism: str, epsilon: float | None = None, **use: Any) -> Spent:
    """Return the privacy spent on one record, or on one person with `records` records. `Use` lists what else counts.

    For `release`, `sampled` and `sketch` give the `table` that they draw from: its counts are composed exactly. With
    an epsilon alone they count as the worst mechanism of that epsilon. What is returned is an upper bound.

    The forward pass reads what the mechanism usually does, unless `forward` says otherwise.
    """
    asked = find(mechanism)
    if use.get("table") is not None and not (asked.releases and isinstance(use["table"], NoiseTable)):
        raise InputError(f"{asked.name} takes no such table; give a noise table to release, sampled or sketch.")
    return asked.spend(Use(epsilon=epsilon, **{"forward": asked.reads, **use}))


def nominal_scale(mechanism: str, epsilon: float, features: int = 14, release: int = 1, C: float = 4.0) -> float:
    """Return the Laplace scale for a nominal epsilon: as printed for what the paper prints."""
    return find(mechanism).nominal_scale(Use(epsilon=epsilon, features=features, release=release, C=C))
