"""A model from received packets: no record is seen here, so nothing can leak but what sensors have released."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError
from sensorsim._util.option_kinds import check_declared
from sensorsim.accounting.composition import Covers
from sensorsim.hospital.learning import column_of_names, learn, sums_of
from sensorsim.mechanisms.base import LINEAR
from sensorsim.training.about import SENSORS, about_model, check_columns
from sensorsim.training.config import Config, check_hidden, with_settings
from sensorsim.training.estimator import model_of
from sensorsim.training.prior_codes import codes, mixed
from sensorsim.training.save import Model
from sensorsim.training.statement import Statement

if TYPE_CHECKING:
    from sensorsim.hospital import Received
    from sensorsim.ranges import Range

TWO_PHASES = "per packet; a record or person in both phases spends the sum"


def config_of(received: Received, sketched: Received | None, **given: Any) -> Config:
    """The configuration that these packets stand for; sizes are checked. `given` are m, l, bias, map and sigma."""
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
    """The model that the same sums give wherever they come from; every user gets a copy."""
    _check(received, sketched, columns)
    squares = None
    if sketched is not None:
        total, count = sketched.total_and_count()
        squares = count, total
    sketch = None if sketched is None else sketched.sketch
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
    """What a packet spent, as the table's counts prove; nobody here knows whose record was sent in both phases."""
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


def _check(received: Received, sketched: Received | None, columns: tuple[str, ...]) -> None:
    """Refuse packets that do not fit each other or the columns."""
    check_columns(columns)
    if not received.accepted:
        raise InputError("no packet was accepted, so there is nothing to learn from; look at `sensorsim receive`.")
    if len(columns) != received.table.features:
        raise InputError(
            f"--columns names {len(columns)} columns and a record of these packets has {received.table.features}; "
            "name each of them, in order."
        )
    if sketched is None:
        return
    assert sketched.sketch is not None
    if sketched.sketch.n != received.table.features:
        raise InputError(
            f"the sketch is of {sketched.sketch.n} features and the packets are of {received.table.features}; give the "
            "sketch that was made of these packets."
        )
    if not sketched.accepted:
        raise InputError("no packet of the sketch was accepted; give those that went through it, with the same table.")
