"""The mechanisms, one file each; everything that differs between them is said there and nowhere else.

none, spof, fm, dpsgd       no privacy, and what the paper prints
dpsgd-weights, dp-zo        clipped gradients of weights, and clipped differences of losses
release, sampled, sketch    certified releases: all features, a few picked at random, or squares of combinations
"""

import warnings
from collections.abc import Iterable

from sensorsim._util.errors import InputError
from sensorsim._util.hints import did_you_mean
from sensorsim.mechanisms.base import Mechanism, Sensitivity, Style
from sensorsim.mechanisms.form import Form

__all__ = ["Form", "Mechanism", "Sensitivity", "Style", "every", "find", "known", "names", "register", "resolve"]
GROUP = "sensorsim.mechanisms"  # of entry points, for mechanisms of other packages

_known: dict[str, Mechanism] = {}


def register(mechanism: Mechanism) -> Mechanism:
    """Make a mechanism known under its name; its name and older names must be free."""
    _ours()
    return _add(mechanism)


def every() -> tuple[Mechanism, ...]:
    """All mechanisms that are known, in the order in which tables and figures show them."""
    _ours()
    return tuple(_known.values())


def find(name: str) -> Mechanism:
    """The mechanism of that name; an older name is understood, with a warning that says the new one."""
    mechanism, hint = resolve(name)
    if hint:
        warnings.warn(hint, FutureWarning, stacklevel=3)
    return mechanism


def known(name: str) -> Mechanism | None:
    """The mechanism of that name, or None."""
    try:
        return resolve(name)[0]
    except InputError:
        return None


def resolve(name: str) -> tuple[Mechanism, str]:
    """The mechanism of that name, and a hint where the name is an older one."""
    _ours()
    if name not in _known:
        _from_other_packages()
    if name in _known:
        return _known[name], ""
    for mechanism in _known.values():
        if name in mechanism.aliases:
            return mechanism, f"{name} is now called {mechanism.name}, everywhere."
    raise InputError(f"there is no mechanism {name!r}{did_you_mean(name, _known)}; choose from {', '.join(_known)}.")


def names(mechanisms: Iterable[Mechanism] | None = None) -> str:
    """Their names, for a sentence."""
    return ", ".join(mechanism.name for mechanism in (every() if mechanisms is None else mechanisms))


def _add(mechanism: Mechanism) -> Mechanism:
    taken = {word for known in _known.values() for word in (known.name, *known.aliases)}
    for word in (mechanism.name, *mechanism.aliases):
        if word in taken:
            raise InputError(f"there is a mechanism {word} already; give yours another name.")
    _known[mechanism.name] = mechanism
    return mechanism


def _ours() -> None:
    if _known:
        return
    from sensorsim.mechanisms import dp_zo, dpsgd, dpsgd_weights, fm, nothing, release, sampled, sketch, spof

    for module in (nothing, spof, fm, dpsgd, dpsgd_weights, dp_zo, release, sampled, sketch):
        _add(module.MECHANISM)


def _from_other_packages() -> None:
    """Those that other packages declare; looked for when a name is not known, because looking takes time."""
    from importlib.metadata import entry_points

    for entry in entry_points(group=GROUP):
        mechanism = entry.load()
        if mechanism.name not in _known:
            _add(mechanism)
