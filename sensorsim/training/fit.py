"""From records to a model as it is saved. Mechanisms that release show the records to nobody but `released.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sensorsim._util.errors import InputError
from sensorsim.hospital.learning import column_of_names, nothing_known
from sensorsim.mechanisms.base import SIGMOID
from sensorsim.training.about import NONE, SECRET, SEEDED, about_model
from sensorsim.training.prior_codes import codes, mixed
from sensorsim.training.save import Model
from sensorsim.training.statement import statement
from sensorsim.training.trained import Trained

if TYPE_CHECKING:
    from sensorsim.hospital.learning import Learnt
    from sensorsim.training.config import Config
    from sensorsim.training.data import Dataset


def fit(dataset: Dataset, config: Config) -> Model:
    """One model. `config` and `dataset` come from `cell.ready`."""
    about = _about(dataset, config)  # first, so that what cannot be said is refused before the training
    trained, learnt = _trained(dataset, config)
    numbers = (value for part in trained.users for value in (part.W, part.b, part.V, part.d))
    if not all(np.isfinite(value).all() for value in numbers):
        raise InputError(f"training diverged: weights that are no numbers; try a smaller --lr than {config.lr:g}.")
    return Model(trained, *codes(trained, learnt, config.sigma), about | {"form": trained.form})


def _about(dataset: Dataset, config: Config) -> dict[str, Any]:
    """What the file will say; the form is known when the model is there."""
    return about_model(
        statement(config, dataset.n, dataset.normalise, dropped=dataset.dropped),
        form=SIGMOID,
        mechanism=config.mechanism,
        kind=config.kind if config.object.releases else None,
        sizes=(dataset.n, config.l, config.m),
        columns=dataset.columns,
        ranges=dataset.ranges,
        normalise=dataset.normalise,
        noise=NONE if not config.object.private else SECRET if config.seed is None else SEEDED,
        records=int((~dataset.held_out).sum()),
        identity=_identity(config, dataset.n),
        sigma=config.sigma,
    )


def _trained(dataset: Dataset, config: Config) -> tuple[Trained, Learnt]:
    """The model, and what is known of the records behind it: all that a release taught, or nothing."""
    from sensorsim.training.noise import Source

    source = Source(config.generator_seed(0))
    if config.object.learner(config) != "loop":
        from sensorsim.training.estimator import learnt_from, model_of

        learnt = learnt_from(dataset, config, source)
        return mixed(model_of(learnt, config), learnt, config.sigma), learnt
    from sensorsim.training.pseudo import part_of
    from sensorsim.training.run import train_block

    nets = train_block(dataset, config, 1, source)
    parts = tuple(part_of(nets, j) for j in range(config.m))
    c = config.object.decoder_constant(config)
    return Trained(SIGMOID, parts, c), nothing_known(column_of_names(dataset.columns))


def _identity(config: Config, n: int) -> list[str]:
    """Of the table that records were released through."""
    if not config.object.releases:
        return []
    from sensorsim.device.firmware import Firmware

    mechanism: Any = config.object
    return [Firmware(mechanism.table(config, n)).identity.hex()]
