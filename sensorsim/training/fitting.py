"""One model from records or from received packets, and the privacy statement that every result carries.

Mechanisms that release show the records to nobody but the release (`trained.learnt_from`). From packets no record is
seen here, so nothing can leak but what sensors have released.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median_high
from typing import TYPE_CHECKING, Any

import numpy as np

from sensorsim._util.errors import InputError
from sensorsim._util.option_kinds import check_declared
from sensorsim.accounting.composition import Covers, Spent
from sensorsim.hospital.learning import column_of_names, learn, nothing_known, sums_of
from sensorsim.mechanisms.base import LINEAR, SIGMOID
from sensorsim.training.config import Config, check_hidden, with_settings
from sensorsim.training.model_files import NONE, SECRET, SEEDED, SENSORS, Model, about_model, check_columns
from sensorsim.training.trained import Trained, codes, learnt_from, mixed, model_of, part_of

if TYPE_CHECKING:
    from sensorsim.datasets.dataset import Dataset
    from sensorsim.datasets.public_ranges import Range
    from sensorsim.hospital import Received

REPRODUCIBLE = "nothing: the noise was drawn from a seed, so it is reproducible, so not private"
PRIVATE_MAXIMA = "nothing: columns were divided by private maxima"
CLEAN_RELEASE = (
    "; as printed, it is the clean record that is released, though the sensor delivers one with the environment's noise"
)
PUBLIC_PERSONS = "; whose a record is, and how many a person has, is taken as public"
PUBLIC_GAPS = ", and so is which rows have an empty cell: they were left out"
TWO_PHASES = "per packet; a record or person in both phases spends the sum"


@dataclass(frozen=True)
class Statement:
    """Epsilon and delta of one record, and of all records of one person, against their replacement by any others."""

    nominal_epsilon: float | None
    spent_epsilon: float | None  # None: no bound
    delta: float
    covers: str
    covers_short: str
    reproducible: bool  # drawn from a seed: the epsilon is that of the same run with secret noise
    with_secret_noise: str  # what that would cover, in short
    trust: str  # `local`: raw records stay on the body; `central`: the hospital reads them; `none`: and adds no noise
    settings: str  # `tuned`, `as printed` or `given`
    why: str  # how the epsilon comes about
    epsilon_person_median: float | None = None  # of the person with the median number of training records
    epsilon_person_most: float | None = None  # and of the one with the most
    records_per_person_median: int | None = None


def statement(
    config: Config, n: int, normalise: str = "ranges", records_per_person: Sequence[int] | Any = (), dropped: int = 0
) -> Statement:
    """Return the statement of a checked configuration that is trained from data.

    `records_per_person` are the training records of every person; `dropped`, the rows left out for a missing cell.
    Epsilon grows with a person's records, so the median person's is that of the median count.
    """
    mechanism = config.object
    use = mechanism.use_of(config, n)
    found = mechanism.spend(use)
    bounded = math.isfinite(found.epsilon) and normalise != "max"
    would = found.covers if bounded else Covers.NOTHING
    seeded = config.seed is not None
    plain = Statement(
        nominal_epsilon=config.epsilon,
        spent_epsilon=found.epsilon if bounded else None,
        delta=found.delta,
        covers=_covers(config, found, normalise, dropped),
        covers_short=(Covers.NOTHING if seeded else would).value,
        reproducible=seeded,
        with_secret_noise=would.value,
        trust=mechanism.trust,
        settings=config.settings,
        why=found.why,
    )
    records = sorted(map(int, records_per_person))
    if not records:
        return plain
    middle, most = median_high(records), records[-1]
    spent = {many: mechanism.spend(replace(use, records=many)).epsilon for many in ({middle, most} if bounded else ())}
    finite = {many: epsilon for many, epsilon in spent.items() if math.isfinite(epsilon)}
    return replace(
        plain,
        epsilon_person_median=finite.get(middle),
        epsilon_person_most=finite.get(most),
        records_per_person_median=middle,
    )


def _covers(config: Config, found: Spent, normalise: str, dropped: int) -> str:
    """Return in full what is covered, with what takes the epsilon away."""
    if not config.object.private:
        return found.covers.sentence
    if not math.isfinite(found.epsilon):
        return f"{Covers.NOTHING.sentence}: {found.why}"
    if normalise == "max":
        return PRIVATE_MAXIMA
    covers = found.covers.sentence
    if config.sampling == "poisson":
        covers += f"; {found.why}"
    if config.object.releases and config.sigma and config.release_sees == "clean":
        covers += CLEAN_RELEASE
    covers += PUBLIC_PERSONS + (PUBLIC_GAPS if dropped else "")  # users and who is held out follow from these
    return f"{REPRODUCIBLE}. With secret noise: {covers}" if config.seed is not None else covers


# ── from records ──


def fit(dataset: Dataset, config: Config) -> Model:
    """Return one model. `config` and `dataset` come from `cells.ready`."""
    mechanism: Any = config.object
    identity = []
    if mechanism.releases:  # of the table that records are released through
        from sensorsim.device.firmware import Firmware

        identity = [Firmware(mechanism.table(config, dataset.n)).identity.hex()]
    about = about_model(  # first, so that what cannot be said is refused before the training
        statement(config, dataset.n, dataset.normalise, dropped=dataset.dropped),
        form=SIGMOID,
        mechanism=config.mechanism,
        kind=config.kind if mechanism.releases else None,
        sizes=(dataset.n, config.l, config.m),
        columns=dataset.columns,
        ranges=dataset.ranges,
        normalise=dataset.normalise,
        noise=NONE if not mechanism.private else SECRET if config.seed is None else SEEDED,
        records=int((~dataset.held_out).sum()),
        identity=identity,
        sigma=config.sigma,
    )
    from sensorsim.training.step import Source

    source = Source(config.generator_seed(0))
    if mechanism.learner(config) != "loop":
        learnt = learnt_from(dataset, config, source)
        trained = mixed(model_of(learnt, config), learnt, config.sigma)
    else:
        from sensorsim.training.loop import train_block

        nets: Any = train_block(dataset, config, 1, source)
        parts = tuple(part_of(nets, j) for j in range(config.m))
        trained = Trained(SIGMOID, parts, mechanism.decoder_constant(config))
        learnt = nothing_known(column_of_names(dataset.columns))
    numbers = (value for part in trained.users for value in (part.W, part.b, part.V, part.d))
    if not all(np.isfinite(value).all() for value in numbers):
        raise InputError(f"training diverged: weights that are no numbers; try a smaller --lr than {config.lr:g}.")
    return Model(trained, *codes(trained, learnt, config.sigma), about | {"form": trained.form})


# ── from packets ──


def config_of(received: Received, sketched: Received | None, **given: Any) -> Config:
    """Return the configuration that these packets stand for, checked. `given` are m, l, bias, map and sigma."""
    table = received.table
    name = "sketch" if sketched is not None else "sampled" if table.sampled else "release"
    k = None if name == "sketch" else table.release
    given["map"] = given["map"] or LINEAR
    config = with_settings(Config(name, float(table.epsilon), kind=table.kind, k=k, runs=1, **given))
    check_declared(config)
    check_hidden(config.l, table.features)
    return config


def model_of_received(
    received: Received,
    sketched: Received | None,
    config: Config,
    columns: tuple[str, ...],
    ranges: tuple[Range, ...] | None,
) -> Model:
    """Return the model that these sums give, wherever they come from; every user gets a copy."""
    check_columns(columns)
    n, squares = received.table.features, None
    if not received.accepted:
        raise InputError("no packet was accepted, so there is nothing to learn from; look at `sensorsim receive`.")
    if len(columns) != n:
        raise InputError(
            f"--columns names {len(columns)} columns and a record of these packets has {n}; name each of them, in "
            "order."
        )
    sketch = None if sketched is None else sketched.sketch
    if sketched is not None and sketch is not None:
        if sketch.n != n:
            raise InputError(
                f"the sketch is of {sketch.n} features and the packets are of {n}; give the sketch that was made of "
                "these packets."
            )
        if not sketched.accepted:
            raise InputError(
                "no packet of the sketch was accepted; give those that went through it, with the same table."
            )
        total, count = sketched.total_and_count()
        squares = count, total
    learnt = learn(received.table, sums_of(received), column_of_names(columns), sketch, squares)
    trained = mixed(model_of(learnt, config), learnt, config.sigma)
    every = [received] if sketched is None else [received, sketched]
    about = about_model(
        statement_of(received, config, two_phases=sketched is not None),
        form=trained.form,
        mechanism=config.mechanism,
        kind=config.kind,
        sizes=(trained.n, trained.l, trained.m),
        columns=columns,
        ranges=ranges,
        normalise=None if ranges is None else "ranges",
        noise=SENSORS,
        records=sum(one.accepted for one in every),
        identity=[one.statistics.identity for one in every],
        sigma=config.sigma,
    )
    return Model(trained, *codes(trained, learnt, config.sigma), about)


def statement_of(received: Received, config: Config, two_phases: bool = False) -> Statement:
    """Return what a packet spent, as the table's counts prove; whose record was sent in both phases is unknown."""
    covers = Covers.RELEASE
    return Statement(
        nominal_epsilon=float(received.table.epsilon),
        spent_epsilon=float(received.statistics.epsilon),
        delta=0.0,
        covers=f"{covers.sentence}; {TWO_PHASES}" if two_phases else covers.sentence,
        covers_short=covers.value,
        reproducible=False,
        with_secret_noise=covers.value,
        trust=config.object.trust,
        settings=config.settings,
        why="each packet once, as the table's counts prove",
    )
