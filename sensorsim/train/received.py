"""A model from received packets: no record is seen here, so nothing can leak but what sensors have released."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from sensorsim.errors import InputError
from sensorsim.privacy.spending import Covers
from sensorsim.train import model
from sensorsim.train.config import Config, check_numbers
from sensorsim.train.estimator import by_column, column_of_names, train_on_totals
from sensorsim.train.noise import Source
from sensorsim.train.statement import Statement

if TYPE_CHECKING:
    from sensorsim.hospital import Received


def config_of(received: Received, m: int, l: int, bias: bool, seed: int | None) -> Config:
    """The configuration that these packets stand for; sizes are checked."""
    table = received.table
    name = "sampled" if table.sampled else "release"
    config = Config(
        name, float(table.epsilon), kind=table.kind, k=table.release, m=m, l=l, bias=bias, seed=seed, runs=1
    )
    check_numbers(config, table.features)
    return config


def train_on_received(received: Received, config: Config, columns: tuple[str, ...]) -> model.Parameters:
    """The net that `train_on_marginals` makes of the same values; every user gets a copy."""
    if not received.accepted:
        raise InputError("no packet was accepted, so there is nothing to learn from; look at `sensorsim receive`.")
    if len(columns) != received.table.features:
        raise InputError(
            f"--columns names {len(columns)} columns and a record of these packets has {received.table.features}; "
            "name each of them, in order."
        )
    torch.set_num_threads(1)
    column_of = column_of_names(columns)
    total, count = (
        by_column(torch.tensor(v, dtype=torch.float64)[None], column_of) for v in received.total_and_count()
    )
    sd = received.table.estimate_sd
    assert sd is not None
    return train_on_totals(total, count, sd, column_of, config, Source(config.generator_seed(0)).generator)


def statement_of(received: Received) -> Statement:
    """What the packets spent: as the table's counts prove, each packet once. The seed is no secret of theirs."""
    kept = received.statistics
    covers = Covers.RELEASE
    return Statement(
        float(received.table.epsilon), float(kept.epsilon), 0.0, covers.sentence, covers.value, False, covers.value
    )
