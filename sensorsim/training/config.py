"""One configuration of a training run: what it is, whether it makes sense, and the key it is stored under."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from sensorsim._util.errors import InputError
from sensorsim._util.option_kinds import Choice, Flag, Kind, Number, Whole, check_declared, option
from sensorsim.mechanisms import Mechanism, every, find
from sensorsim.mechanisms.base import AUTHORS, LINEAR, SIGMOID
from sensorsim.noise.kinds import DEFAULT

SHARED = ("mechanism", "sigma", "runs", "seed", "m", "l", "bias")  # what every mechanism uses
MOST_SIGMA = 1000.0  # of a normalised range: beyond it nothing is left of a record
MOST_SEED = 2**62  # that every generator takes
MOST_OF_ANY = 10**9  # runs, records of a step, passes
OWN: Any = None  # the mechanism's own setting; a checked configuration has it in place of this
OWN_TEXT = "the mechanism's own, tuned or as printed"


def own(kind: Kind, help: str) -> Any:
    """Declare a setting whose default is the mechanism's own."""
    return option(OWN, kind, help, default_text=OWN_TEXT)


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """Settings of a model and of its training: fields of a configuration, and options of commands that train.

    Networks compute in 32-bit floats: a product of two of these numbers fits them, and so does what a rate makes of a
    step.
    """

    l: int = option(7, Whole(1), "Hidden units of an encoder.")
    bias: bool = option(False, Flag(), "Biases in encoders and decoder.")
    optimiser: str = own(Choice("adam", "sgd"), "adam or sgd.")
    lr: float = own(Number(1e-12, 1e6), "Learning rate.")
    batch: int = own(Whole(1, MOST_OF_ANY), "Records per step and user.")
    epochs: int = own(Whole(0, MOST_OF_ANY), "Passes over the records.")
    start: str = own(Choice("random", "data-free"), "First weights: random, or those of the data-free net.")
    schedule: str = own(Choice("constant", "linear"), "Learning rate: constant, or linear to zero.")
    loss: str = own(
        Choice("cross-entropy", "squared"),
        "none, dpsgd-weights: cross-entropy as printed, or squared error as accuracy is measured.",
    )
    sampling: str = option(
        "epochs",
        Choice("epochs", "poisson"),
        "dpsgd-weights, dp-zo: each record once an epoch, or in each step with one probability.",
    )
    redraw: bool = option(False, Flag(), "Fresh noise at each step instead of once per record.")
    forward: str | None = option(
        None, Choice("raw", "released"), "What the forward pass reads: raw or released.", default_text="by mechanism"
    )
    k: int | None = option(
        None, Whole(), "Features per record that sampled releases.", default_text="chosen from epsilon"
    )
    estimator: str = option(
        "moments", Choice("moments", "loss"), "release, sampled: what they make of the release, moments or loss."
    )
    kind: str = option(DEFAULT, Choice("rows", "stairs"), "release, sampled: rows or stairs tables.")
    map: str = option(
        OWN,
        Choice(LINEAR, SIGMOID),
        "Releases, none: linear (in closed form) or sigmoid (the paper's net).",
        default_text=LINEAR,
    )
    release_sees: str = option(
        "clean",
        Choice("clean", "noisy"),
        "Releases with sigma: the clean record as printed, or what the sensor delivers.",
    )
    share: float | None = option(
        None, Number(0.0, 1.0), "sketch: share of records that release one scalar.", default_text="chosen"
    )
    C: float = option(OWN, Number(1e-9, 1e9), "Clipping norm C.", flag="clip", default_text=OWN_TEXT)
    point: str = option(
        "zero", Choice("zero", "prediction"), "dpsgd: z-gradient at zero as printed, or at the prediction."
    )
    noise: str = option("gaussian", Choice("gaussian", "laplace"), "dpsgd-weights, dp-zo: gaussian or laplace.")
    clipping: str = option(
        "flat", Choice("flat", "group"), "dpsgd-weights: one norm, or one for encoder and one for decoder."
    )
    delta: float = option(1e-6, Number(1e-300, 0.99), "Delta of Gaussian noise.")
    decode_c: bool = option(False, Flag(), "spof: keep c in the decoder when the model is used.")


@dataclass(frozen=True)
class Config(ModelSettings):
    """The defaults are the authors' (m = 2, l = 7, c = 2.5), and settings of the loop are the mechanism's own.

    Those are the authors' for what the paper prints (Adam at 1e-3, batch 1, 10 epochs, C = 4), and found by a search on
    synthetic data for the others. `checked` fills them in; nothing but a checked configuration runs.
    """

    mechanism: str
    epsilon: float | None = option(None, Number(1e-9, 1e9), "Nominal budget per record.")  # None for `none`
    sigma: float = option(
        0.0, Number(0.0, MOST_SIGMA), "Environmental noise on the inputs, in units of the normalised range."
    )
    runs: int = option(100, Whole(1, MOST_OF_ANY), "Monte-Carlo runs of each cell.")
    seed: int | None = option(
        None,
        Whole(0, MOST_SEED),
        "Draw all noise from this seed: reproducible, so not private.",
        default_text="secret noise",
    )
    m: int = option(2, Whole(1, 65_536), "Users; whole persons go to one user.")
    c: float = option(2.5, Number(0.0, 1e9), "Stabilization constant of spof.")
    records: int | None = None  # that the largest user trains on; set where settings or epsilon depend on it
    features: int | None = None  # n, where settings depend on it

    @property
    def object(self) -> Mechanism:
        """The mechanism itself."""
        return find(self.mechanism)

    @property
    def reads(self) -> str:
        """Return what the forward pass reads while training."""
        return self.forward or self.object.reads

    @property
    def settings(self) -> str:
        """Return whose settings they are: `tuned` by a search, `as printed` by the authors, `given` by the user."""
        mechanism = self.object
        now = {name: getattr(self, name) for name in mechanism.used(self) if name in AUTHORS}
        own = mechanism.own(self)
        if all(own[name] == value for name, value in now.items()):
            return mechanism.own_settings
        return "as printed" if all(AUTHORS[name] == value for name, value in now.items()) else "given"

    @property
    def key(self) -> str:
        """Return a name for this configuration that does not change between machines."""
        return hashlib.sha256(json.dumps(self.as_dict(), sort_keys=True).encode()).hexdigest()[:24]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def generator_seed(self, block: int) -> int | None:
        """Return a seed that no other configuration and no other block of runs shares; None where noise is secret."""
        if self.seed is None:
            return None
        seen = hashlib.sha256(f"{self.key}/{block}".encode()).digest()
        return int.from_bytes(seen[:8], "big") >> 1


def checked(config: Config, n: int, records: int | None = None) -> Config:
    """Return the configuration as it will run; raise InputError if it cannot.

    `records` is how many records the largest user trains on (`records_of`); tuned settings and Poisson sampling ask.
    """
    mechanism = find(config.mechanism)
    config = replace(config, mechanism=mechanism.name, records=records or config.records, features=n)
    check_settings(config)  # which makes numbers floats: 4 and 4.0 are the same run, with the same key
    config = with_settings(replace(config, map=config.map or mechanism.own_map(config)))
    check_declared(config)
    check_hidden(config.l, n)
    if config.forward is not None and config.forward not in mechanism.may_read:
        raise InputError(
            f"{config.mechanism} releases no record, so its forward pass reads raw values; leave --forward out."
        )
    if config.k is not None and not 1 <= config.k <= n:
        raise InputError(f"k = {config.k} features per record; give --k between 1 and n = {n}.")
    return _without_the_unused(config, mechanism, n)


def check_settings(config: Config) -> None:
    """Refuse settings that are wrong for any data; it takes no time, so that it comes before anything is loaded."""
    check_declared(config)
    mechanism = find(config.mechanism)
    if mechanism.private and config.epsilon is None:
        raise InputError(f"epsilon is {config.epsilon} for {mechanism.name}; a privacy budget is a number above 0.")


def check_hidden(l: int, n: int) -> None:
    """Refuse more hidden units than features."""
    if not 1 <= l <= n:
        raise InputError(f"l = {l} is not between 1 and n = {n}; an encoder compresses: give --l from 1 to {n}.")


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


def idle_settings(mechanisms: Iterable[str], base: Config, names: Collection[str] = ()) -> dict[str, str]:
    """Return the settings that change nothing for any of these mechanisms, each with the reason.

    `names` limits the answer to some fields.
    """
    found = [find(name) for name in mechanisms]
    read = {mechanism.name: _read(mechanism, base) for mechanism in found}
    idle: dict[str, str] = {}
    for name in names or [field.name for field in fields(Config)]:
        if not any(name in names_read for names_read in read.values()):
            why = next((reasons[name] for one in found if name in (reasons := _idle(one, base))), "")
            others = [one.name for one in every() if one.name not in read and name in _read(one, base)]
            reader = f", but {' or '.join(others)} would" if others and not why else ""
            idle[name] = why or f"{', '.join(read)} would not read it{reader}"
    return idle


def _idle(mechanism: Mechanism, base: Config) -> dict[str, str]:
    return mechanism.idle(replace(base, map=base.map or mechanism.own_map(base)))


def _read(mechanism: Mechanism, base: Config) -> set[str]:
    """Return the fields that change what the mechanism does beside the others."""
    used = mechanism.used(replace(base, map=base.map or mechanism.own_map(base)))
    return {*SHARED, *used} - set(_idle(mechanism, base))


def with_settings(config: Config) -> Config:
    """Fill in the settings of the loop that were not given with those of the mechanism."""
    own = config.object.own(config)
    return replace(config, **{name: value for name, value in own.items() if getattr(config, name) is None})


def records_of(dataset: Any, m: int) -> int:
    """Return how many records the largest of m users trains on; with m = 1 all records are one user's."""
    import numpy as np

    trained = ~dataset.held_out
    return int(trained.sum() if m == 1 else np.bincount(dataset.user[trained]).max())


def _without_the_unused(config: Config, mechanism: Mechanism, n: int) -> Config:
    """Reset what a mechanism does not use to its default, so that the same run always has the same key."""
    kept = {name: getattr(config, name) for name in (*SHARED, *mechanism.used(config))}
    kept.setdefault("c", 0.0)
    return Config(**AUTHORS | {"map": SIGMOID} | kept | mechanism.adjusted(config, n))
