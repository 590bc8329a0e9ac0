"""From records to releases and to a model: who releases what, how often, and what the model knows of it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import naive_learn
import numpy as np
import pandas as pd
import pytest
from test_learn_maps import KNOWN, X

from sensorsim.datasets.dataset import Dataset, prepare
from sensorsim.datasets.public_ranges import Range
from sensorsim.hospital.learning import learn
from sensorsim.mechanisms.base import LINEAR, SIGMOID
from sensorsim.noise.noise_table import ready_table
from sensorsim.training import trained
from sensorsim.training.config import Config, checked
from sensorsim.training.step import Source


def dataset(x: np.ndarray, held_out: np.ndarray | None = None, columns: tuple[str, ...] | None = None) -> Dataset:
    names = columns or tuple(f"c{i}" for i in range(x.shape[1]))
    frame = pd.DataFrame({name: x[:, i] for i, name in enumerate(names)} | {"Id": np.arange(len(x)) % 40})
    made = prepare(frame, columns=names, ranges={name: Range(name, 0.0, 1.0, "") for name in names})
    return made if held_out is None else replace(made, held_out=held_out)


def config(mechanism: str, data: Dataset, epsilon: float = 6.4, **given: Any) -> Config:
    return checked(Config(mechanism, epsilon, l=given.pop("l", 4), seed=1, **given), data.n, len(data.x) // 2)


@pytest.mark.parametrize("mechanism", ["release", "sampled", "sketch"])
def test_nothing_of_persons_held_out_is_released(mechanism: str) -> None:
    """They are all 1, the others 0.2: with them the mean would be 0.6. Their records may be anything."""
    held_out = np.arange(4000) % 2 == 0
    data = dataset(np.where(held_out[:, None], 1.0, 0.2) * np.ones((1, 14)), held_out)
    given = config(mechanism, data)
    found = trained.learnt_from(data, given, Source(3))
    assert found.mean == pytest.approx(np.full(14, 0.2), abs=0.2 if mechanism == "release" else 0.02)
    other = replace(data, x=np.where(held_out[:, None], 0.77, data.x))
    again = trained.learnt_from(other, given, Source(3))
    assert np.array_equal(found.mean, again.mean) and np.array_equal(found.covariance, again.covariance)


def test_every_record_is_released_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Features of some, sketches of the others; every row once, whatever the share is."""
    x = np.zeros((4000, 9))
    x[:, 0] = np.arange(4000) / 2**15  # a number of its own for each row
    data = dataset(x)
    seen: dict[str, list[int]] = {"feature_sums": [], "sketch_sums": []}

    def watched(name: str) -> Callable[..., Any]:
        real = getattr(trained, name)

        def call(rows: np.ndarray, *rest: Any) -> Any:
            seen[name] += rows[:, 0].tolist()
            return real(rows, *rest)

        return call

    for name in seen:
        monkeypatch.setattr(trained, name, watched(name))
    training = np.flatnonzero(~data.held_out).tolist()
    for share, part in ((0.25, 0.25), (0.0, 0.0), (None, None)):
        for rows in seen.values():
            rows.clear()
        given = config("sketch", data, share=share)
        trained.learnt_from(data, given, Source(3))
        assert sorted(seen["feature_sums"] + seen["sketch_sums"]) == training
        if part is None:  # 3200 records for 45 entries of variance 0.076² + 0.1 each
            each = len(training) / 45 / (ready_table("6.4", 1).estimate_sd ** 2 + 0.1)
            part = 0.7 * (1 - 50 / each)
        assert len(seen["sketch_sums"]) == round(part * len(training))


@pytest.mark.parametrize("epsilon, k", [(0.1, 1), (6.4, 1), (11.9, 1), (12.1, 2), (19.9, 2), (20.1, 3), (24.0, 3)])
def test_how_many_features_are_released(epsilon: float, k: int) -> None:
    """One below epsilon 12, and about one for every 8 after that, each with its share of the epsilon."""
    data = dataset(np.full((400, 14), 0.3))
    given = config("sampled", data, epsilon, kind="stairs")
    table = given.object.table(given, 14)
    assert (table.release, table.features) == (k, 14)
    sums = trained.feature_sums(trained.on_the_lattice(data.x), table, 1)
    assert sums[:, 0].sum() == 400 * k
    few = dataset(np.full((400, 2), 0.3))
    most = config("sampled", few, 100.0, l=1, kind="stairs")
    assert most.object.features_per_record(most, 2) == 2


def test_what_the_environment_moved_is_taken_off_again() -> None:
    """The noise of the inputs is on what is released, and the means come out as without it."""
    rng = np.random.default_rng(11)
    x = rng.beta(2.0, 18.0, (60_000, 9))
    data = dataset(x)
    clean, noisy = (config("sampled", data, sigma=0.4, release_sees=sees) for sees in ("clean", "noisy"))
    for given in (clean, noisy):
        found = trained.learnt_from(data, given, Source(4))
        assert found.mean == pytest.approx(x.mean(axis=0), abs=0.02)
    moved = np.clip(x + 0.4 * rng.standard_normal(x.shape), 0, 1).mean()
    assert moved - x.mean() > 0.1  # what would come out if it were not taken off


def test_the_model_of_a_configuration_knows_its_noise() -> None:
    data = dataset(X)
    for sigma in (0.0, 0.3):
        model = trained.model_of(KNOWN, config("sampled", data, sigma=sigma, l=7))
        noisy = X + sigma * np.random.default_rng(12).standard_normal(X.shape)
        wanted = naive_learn.wiener(noisy, X.mean(axis=0), np.cov(X.T), 7, sigma)
        assert model.predict(1, noisy) == pytest.approx(wanted, abs=1e-5)


def test_equal_releases_give_equal_models() -> None:
    """Two data sets whose records are the same where they are released: weights equal, bit for bit, in either form."""
    table = ready_table("1.6", 1)
    sums = np.random.default_rng(13).integers(0, 40, (14, 5))
    for form in (LINEAR, SIGMOID):
        given = config("sampled", dataset(np.full((400, 14), 0.3)), 1.6, map=form)
        once, again = (trained.model_of(learn(table, sums, np.arange(14)), given).users[0] for _ in range(2))
        for name in ("W", "b", "V", "d"):
            assert getattr(once, name).tobytes() == getattr(again, name).tobytes()
