"""The mechanisms, one file each; everything that differs between them is said there and nowhere else.

none, spof, fm, dpsgd       no privacy, and what the paper prints
dpsgd-weights, dp-zo        clipped gradients of weights, and clipped differences of losses
release, sampled, sketch    certified releases: all features, a few picked at random, or squares of combinations
"""

import warnings
from collections.abc import Iterable
from importlib import import_module
from typing import Any

from sensorsim._util.errors import InputError
from sensorsim._util.hints import did_you_mean
from sensorsim.accounting.composition import Spent, Use
from sensorsim.mechanisms.base import Mechanism, Sensitivity, Style
from sensorsim.mechanisms.form import Form
from sensorsim.noise.noise_table import NoiseTable

__all__ = ["Form", "Mechanism", "Sensitivity", "Style", "every", "find", "known", "names", "nominal_scale", "register",
           "resolve", "spent"]  # fmt: skip
GROUP = "sensorsim.mechanisms"  # of entry points, for mechanisms of other packages
OURS = ("nothing", "spof", "fm", "dpsgd", "dpsgd_weights", "dp_zo", "release", "sampled", "sketch")

_known: dict[str, Mechanism] = {}


def register(mechanism: Mechanism) -> Mechanism:
    """Make a mechanism known under its name; its name and older names must be free."""
    taken = {word for known in every() for word in (known.name, *known.aliases)}
    for word in (mechanism.name, *mechanism.aliases):
        if word in taken:
            raise InputError(f"there is a mechanism {word} already; give yours another name.")
    _known[mechanism.name] = mechanism
    return mechanism


def every() -> tuple[Mechanism, ...]:
    """Return all known mechanisms, in the order in which tables and figures show them."""
    if not _known:
        ours = (import_module(f"sensorsim.mechanisms.{module}").MECHANISM for module in OURS)
        _known.update({mechanism.name: mechanism for mechanism in ours})
    return tuple(_known.values())


def find(name: str) -> Mechanism:
    """Return the mechanism of that name; warn if the name is an older one."""
    mechanism, hint = resolve(name)
    if hint:
        warnings.warn(hint, FutureWarning, stacklevel=3)
    return mechanism


def known(name: str) -> Mechanism | None:
    """Return the mechanism of that name, or None."""
    try:
        return resolve(name)[0]
    except InputError:
        return None


def resolve(name: str) -> tuple[Mechanism, str]:
    """Return the mechanism of that name, and a hint where the name is an older one.

    Other packages declare theirs as entry points. These are loaded when a name is not known, since that takes time.
    """
    from importlib.metadata import entry_points

    every()
    if name not in _known:
        for entry in entry_points(group=GROUP):
            mechanism = entry.load()
            if mechanism.name not in _known:
                register(mechanism)
    if name in _known:
        return _known[name], ""
    for mechanism in _known.values():
        if name in mechanism.aliases:
            return mechanism, f"{name} is now called {mechanism.name}, everywhere."
    raise InputError(f"there is no mechanism {name!r}{did_you_mean(name, _known)}; choose from {', '.join(_known)}.")


def names(mechanisms: Iterable[Mechanism] | None = None) -> str:
    """Return their names, for a sentence."""
    return ", ".join(mechanism.name for mechanism in (every() if mechanisms is None else mechanisms))


# ---- accounting by name


def spent(mechanism: str, epsilon: float | None = None, **use: Any) -> Spent:
    """Return the privacy spent on one record, or on one person with `records` records. `Use` lists what else counts.

    For `release`, `sampled` and `sketch` give the `table` that they draw from: its counts are composed exactly. With
    an epsilon alone they count as the worst mechanism of that epsilon. The result is an upper bound.

    The forward pass reads what the mechanism usually does, unless `forward` says otherwise.
    """
    found = find(mechanism)
    if use.get("table") is not None and not (found.releases and isinstance(use["table"], NoiseTable)):
        raise InputError(f"{found.name} takes no such table; give a noise table to release, sampled or sketch.")
    return found.spend(Use(epsilon=epsilon, **{"forward": found.reads, **use}))


def nominal_scale(mechanism: str, epsilon: float, features: int = 14, release: int = 1, C: float = 4.0) -> float:
    """Return the Laplace scale of a nominal epsilon, as printed for the mechanisms of the paper."""
    return find(mechanism).nominal_scale(Use(epsilon=epsilon, features=features, release=release, C=C))
