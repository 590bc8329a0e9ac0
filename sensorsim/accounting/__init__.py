"""Accounting: the privacy budget that a use of a mechanism spends, by composition and amplification.

composition.py     what a use spends: `Use` in, `Spent` out
pld.py             privacy-loss distributions, composed by FFT
amplification.py   Poisson sampling and shuffling
sensitivities.py   L1 sensitivities, as the paper prints them and as they hold

dp-accounting is the reference of the tests and not a dependency. Ours is exact where it matters: it composes the
integer counts of a table and bounds its own rounding and discretisation errors from both sides, in a third of the time
(bench/bench_accounting.py). For Poisson sampling both take as long, ours is up to 1 % more pessimistic, and it alone
counts several records of one person. Importing dp-accounting takes two seconds.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sensorsim.accounting.composition import Spent


def spent(mechanism: str, epsilon: float | None = None, **use: Any) -> "Spent":
    """Return the privacy spent on one record, or on one person with `records` records. `Use` lists what else counts.

    For `release`, `sampled` and `sketch` give the `table` that they draw from: its counts are composed exactly. With
    an epsilon alone they count as the worst mechanism of that epsilon. The result is an upper bound.

    The forward pass reads what the mechanism usually does, unless `forward` says otherwise.
    """
    from sensorsim._util.errors import InputError
    from sensorsim.accounting.composition import Use
    from sensorsim.mechanisms import find
    from sensorsim.noise.noise_table import NoiseTable

    found = find(mechanism)
    if use.get("table") is not None and not (found.releases and isinstance(use["table"], NoiseTable)):
        raise InputError(f"{found.name} takes no such table; give a noise table to release, sampled or sketch.")
    return found.spend(Use(epsilon=epsilon, **{"forward": found.reads, **use}))


def nominal_scale(mechanism: str, epsilon: float, features: int = 14, release: int = 1, C: float = 4.0) -> float:
    """Return the Laplace scale of a nominal epsilon, as printed for the mechanisms of the paper."""
    from sensorsim.accounting.composition import Use
    from sensorsim.mechanisms import find

    return find(mechanism).nominal_scale(Use(epsilon=epsilon, features=features, release=release, C=C))
