"""One configuration of a training run: what it is, whether it makes sense, and the key it is stored under."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from sensorsim._util.errors import InputError
from sensorsim._util.hints import did_you_mean
from sensorsim.mechanisms import Mechanism, every, find
from sensorsim.mechanisms.base import AUTHORS, LINEAR, SIGMOID
from sensorsim.noise.kinds import DEFAULT

SHARED = ("mechanism", "sigma", "runs", "seed", "m", "l", "bias")  # what every mechanism uses
MOST_SIGMA = 1000.0  # of a normalised range: beyond it nothing is left of a record
MOST_USERS = 65_536
MOST_OF_ANY = 10**9  # users, runs, records of a step, passes
# The least and the most that a real number of a training may be. Networks compute in 32-bit floats: a product of two
# of these fits them, and so does what a rate makes of a step.
REALS: dict[str, tuple[float, float]] = {
    "epsilon": (1e-9, 1e9),
    "sigma": (0.0, MOST_SIGMA),
    "c": (0.0, 1e9),
    "C": (1e-9, 1e9),
    "lr": (1e-12, 1e6),
    "delta": (1e-300, 0.99),
    "share": (0.0, 1.0),
}
WHY = {"epsilon": "a privacy budget is a number above 0", "sigma": "a column's range is 1"}
OWN: Any = None  # the mechanism's own setting; a checked configuration has it in place of this

CHOICES = {
    "kind": ("rows", "stairs"),
    "optimiser": ("adam", "sgd"),
    "start": ("random", "data-free"),
    "schedule": ("constant", "linear"),
    "loss": ("cross-entropy", "squared"),
    "sampling": ("epochs", "poisson"),
    "release_sees": ("clean", "noisy"),
    "map": (LINEAR, SIGMOID),
    "forward": ("raw", "released"),
    "estimator": ("moments", "loss"),
    "noise": ("gaussian", "laplace"),
    "clipping": ("flat", "group"),
    "point": ("zero", "prediction"),
}


@dataclass(frozen=True)
class Config:
    """The defaults are the authors' (m = 2, l = 7, c = 2.5), and settings of the loop are the mechanism's own.

    Those are the authors' for what the paper prints (Adam at 1e-3, batch 1, 10 epochs, C = 4), and found by a search on
    synthetic data for the others. `checked` fills them in; nothing but a checked configuration runs.
    """

    mechanism: str
    epsilon: float | None = None  # nominal, per record; None for `none`
    sigma: float = 0.0  # environmental noise on the inputs, in units of the normalised range
    runs: int = 100
    seed: int | None = None  # None: secret noise; a number makes every draw again, so nothing is private
    m: int = 2
    l: int = 7
    bias: bool = False
    c: float = 2.5  # stabilization constant of spof
    decode_c: bool = False  # keep c in the decoder when the model is used
    C: float = OWN  # clipping norm of dpsgd, dpsgd-weights and dp-zo
    point: str = "zero"  # where dpsgd takes its z-gradient: at a = 0 as printed, or at the prediction (a = z)
    optimiser: str = OWN
    lr: float = OWN
    batch: int = OWN
    epochs: int = OWN
    start: str = OWN  # the first weights: random, or those of the data-free net
    schedule: str = OWN  # of the learning rate: constant, or linear to zero
    loss: str = OWN  # none, dpsgd-weights: cross-entropy as printed, or squared error as accuracy is measured
    records: int | None = None  # that the largest user trains on; set where settings or epsilon depend on it
    features: int | None = None  # n, where settings depend on it
    sampling: str = "epochs"  # dpsgd-weights, dp-zo: each record once an epoch, or in each step with one probability
    redraw: bool = False  # fresh noise at each step instead of once per record
    forward: str | None = None  # raw or released; None: as the mechanism does
    k: int | None = None  # features per record that `sampled` releases; None: chosen from epsilon
    estimator: str = "moments"  # what release and sampled make of the release
    kind: str = DEFAULT  # of the table that they draw from
    map: str = OWN  # what they and `none` learn: a linear map in closed form, or the paper's sigmoid net
    release_sees: str = "clean"  # with sigma > 0 they release the clean record as printed, or what the sensor delivers
    share: float | None = None  # of the records that `sketch` releases as one scalar; None: chosen
    noise: str = "gaussian"  # dpsgd-weights, dp-zo
    clipping: str = "flat"  # dpsgd-weights: one norm, or one for the encoder and one for the decoder
    delta: float = 1e-6  # dpsgd-weights with Gaussian noise

    @property
    def object(self) -> Mechanism:
        """The mechanism itself."""
        return find(self.mechanism)

    @property
    def reads(self) -> str:
        """What the forward pass reads while training."""
        return self.forward or self.object.reads

    @property
    def settings(self) -> str:
        """Of a checked configuration: `tuned` by a search, `as printed` by the authors, or `given` by the user."""
        mechanism = self.object
        now = {name: getattr(self, name) for name in mechanism.used(self) if name in AUTHORS}
        own = mechanism.own(self)
        if all(own[name] == value for name, value in now.items()):
            return mechanism.own_settings
        return "as printed" if all(AUTHORS[name] == value for name, value in now.items()) else "given"

    @property
    def key(self) -> str:
        """A name for this configuration that does not change between machines."""
        return hashlib.sha256(json.dumps(self.as_dict(), sort_keys=True).encode()).hexdigest()[:24]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def generator_seed(self, block: int) -> int | None:
        """A seed that no other configuration and no other block of runs shares; None where the noise is secret."""
        if self.seed is None:
            return None
        seen = hashlib.sha256(f"{self.key}/{block}".encode()).digest()
        return int.from_bytes(seen[:8], "big") >> 1


def checked(config: Config, n: int, records: int | None = None) -> Config:
    """The configuration as it will run, or one sentence on why it cannot.

    `records` is how many records the largest user trains on (`records_of`); tuned settings and Poisson sampling ask.
    """
    mechanism = find(config.mechanism)
    # 4 and 4.0 are the same run, with the same key
    given: dict[str, Any] = {name: float(value) for name in REALS if (value := getattr(config, name)) is not None}
    config = replace(config, mechanism=mechanism.name, records=records or config.records, features=n, **given)
    check_settings(config)
    config = with_settings(replace(config, map=config.map or mechanism.own_map(config)))
    check_numbers(config, n)
    if config.forward is not None and config.forward not in mechanism.may_read:
        raise InputError(
            f"{config.mechanism} releases no record, so its forward pass reads raw values; leave --forward out."
        )
    if config.k is not None and not 1 <= config.k <= n:
        raise InputError(f"k = {config.k} features per record; give --k between 1 and n = {n}.")
    return _without_the_unused(config, mechanism, n)


def check_settings(config: Config) -> None:
    """Refuse settings that are wrong for any data: it takes no time, so it is done before anything is loaded."""
    for name, allowed in CHOICES.items():
        value = getattr(config, name)
        if value is not None and value not in allowed:
            raise InputError(f"{name} is {value!r}{did_you_mean(value, allowed)}; choose from {', '.join(allowed)}.")
    mechanism = find(config.mechanism)
    if mechanism.private and config.epsilon is None:
        raise InputError(f"epsilon is {config.epsilon} for {mechanism.name}; a privacy budget is a number above 0.")
    check_numbers(config)


def check_axes(base: Config, mechanisms: Iterable[str], **axes: Iterable[float]) -> None:
    """Refuse a grid if no value of an axis is right for any data; a cell that cannot run does not end the others.

    An axis is a field of the configuration, checked for the first mechanism that has an epsilon.
    """
    names = list(mechanisms)
    base = replace(base, mechanism=next((name for name in names if find(name).private), names[0]), epsilon=1.0)
    for axis, values in axes.items():
        wrong = []
        for count, value in enumerate(values, 1):
            try:
                given: dict[str, Any] = {axis: value}
                check_settings(replace(base, **given))
            except InputError as error:
                wrong.append(error)
            if len(wrong) < count:
                break
        else:
            raise wrong[0]


def refuse_idle(mechanisms: Iterable[str], base: Config, given: Mapping[str, str]) -> None:
    """An InputError for a setting that was given and changes nothing for any of these mechanisms.

    `given` names fields, each with what its user calls it: an option, or a parameter.
    """
    found = [find(name) for name in mechanisms]
    readers = {mechanism.name: _read(mechanism, base) for mechanism in found}
    for name, option in given.items():
        if not any(name in read for read in readers.values()):
            who = ", ".join(readers)
            why = next((reasons[name] for one in found if name in (reasons := _idle(one, base))), "")
            others = [one.name for one in every() if one.name not in readers and name in _read(one, base)]
            do = f"leave it out, or take {' or '.join(others)}." if others and not why else "leave it out."
            raise InputError(f"{option} changes nothing for {who}{f' ({why})' if why else ''}; {do}")


def _idle(mechanism: Mechanism, base: Config) -> dict[str, str]:
    return mechanism.idle(replace(base, map=base.map or mechanism.own_map(base)))


def _read(mechanism: Mechanism, base: Config) -> set[str]:
    """The fields that change what the mechanism does beside the others."""
    used = mechanism.used(replace(base, map=base.map or mechanism.own_map(base)))
    return {*SHARED, *used} - set(_idle(mechanism, base))


def given_in(config: Config) -> tuple[str, ...]:
    """The fields that are not at their defaults."""
    return tuple(field.name for field in fields(Config) if field.default != getattr(config, field.name))


def with_settings(config: Config) -> Config:
    """What was not given of the loop's settings, as the mechanism has it."""
    own = config.object.own(config)
    return replace(config, **{name: value for name, value in own.items() if getattr(config, name) is None})


def records_of(dataset: Any, m: int) -> int:
    """How many records the largest of m users trains on; with m = 1 all records are one user's."""
    import numpy as np

    trained = ~dataset.held_out
    return int(trained.sum() if m == 1 else np.bincount(dataset.user[trained]).max())


def _without_the_unused(config: Config, mechanism: Mechanism, n: int) -> Config:
    """What a mechanism does not use goes back to its default, so that the same run always has the same key."""
    kept = {name: getattr(config, name) for name in (*SHARED, *mechanism.used(config))}
    kept.setdefault("c", 0.0)
    return Config(**AUTHORS | {"map": SIGMOID} | kept | mechanism.adjusted(config, n))


def check_numbers(config: Config, n: int | None = None) -> None:
    """Refuse sizes and rates that no training has; a setting that is None is the mechanism's own."""
    if n is None and config.l < 1:
        raise InputError(f"l = {config.l}; give --l 1 or more, and no more than there are features.")
    if n is not None and not 1 <= config.l <= n:
        raise InputError(
            f"l = {config.l} is not between 1 and n = {n}; an encoder compresses, so give --l between 1 and {n}."
        )
    for name, least, most in (
        ("m", 1, MOST_USERS),
        ("runs", 1, MOST_OF_ANY),
        ("batch", 1, MOST_OF_ANY),
        ("epochs", 0, MOST_OF_ANY),
    ):
        value = getattr(config, name)
        if value is None:
            continue
        if value < least:
            raise InputError(f"{name} = {value}; give --{name} {least} or more.")
        if value > most:  # a number of any length, so it is not said again
            raise InputError(f"{name} is too large; give --{name} {most} or less.")
    if config.seed is not None and config.seed < 0:
        raise InputError(f"seed = {config.seed}; give --seed 0 or more, or none for secret noise.")
    check_reals(config)


def check_reals(config: Config) -> None:
    """Refuse a real number of the configuration that is out of bounds; None stands for one that is not given."""
    for name in REALS:
        if getattr(config, name) is not None:
            check_real(name, getattr(config, name))


def check_real(name: str, value: float) -> None:
    """Refuse a real number outside of what a training computes with; `name` is that of a field."""
    least, most = REALS[name]
    if not least <= value <= most:
        why = f": {WHY[name]}" if name in WHY else ""
        raise InputError(f"{name} = {value}; give a number from {least:g} to {most:g}{why}.")
