"""How well a saved model does, on raw records. Every figure here is measured on somebody's data, so none is private.

Nothing is written into the model: who wants to publish a figure spends epsilon on it elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median_high
from typing import TYPE_CHECKING, Any

import numpy as np

from sensorsim._util.errors import InputError
from sensorsim.accounting.composition import Covers
from sensorsim.ranges import Range, read_ranges
from sensorsim.training.about import ranges_of
from sensorsim.training.trivial import Predictor, Summary, trivial_scores

if TYPE_CHECKING:
    from sensorsim.training.data import Dataset
    from sensorsim.training.save import Model
    from sensorsim.training.trained import Reals

ROWS_AT_ONCE = 8192
PERSON_DELTA = 1e-6
NOTE = "measured on raw records, so not private: publish none of these figures as if the model's epsilon covered them"


@dataclass(frozen=True)
class Score:
    """1 - MSE in per cent over all rows, persons trained on and persons held out; R² over the column mean."""

    accuracy: float
    accuracy_train: float | None
    accuracy_held_out: float | None
    r2: float | None
    column_mse: tuple[float, ...]


def records_for(
    model: Model,
    path: str | None,
    *,
    person: str | None = None,
    columns: tuple[str, ...] | None = None,
    ranges: str | None = None,
    drop_missing: bool = False,
) -> Dataset:
    """Records as the model takes them: its columns and ranges unless others are named, persons split as in training."""
    from sensorsim.training.data import load

    about = model.about
    names = columns or tuple(about["columns"])
    if len(names) != about["n"]:
        raise InputError(
            f"the model takes {about['n']} columns and --columns names {len(names)}; name as many, in order."
        )
    by_maxima = about["normalise"] == "max" and ranges is None
    return load(
        path,
        m=about["m"],
        columns=names,
        person=person,
        ranges=None if by_maxima else _ranges(model, names, ranges),
        normalise="max" if by_maxima else "ranges",
        drop_missing=drop_missing,
    )


def _ranges(model: Model, names: tuple[str, ...], path: str | None) -> Mapping[str, Range] | None:
    """Of a file, or the model's own under the names that the columns have here."""
    if path is not None:
        return read_ranges(path)
    own = ranges_of(model.about)
    return None if own is None else {name: replace(known, name=name) for name, known in zip(names, own, strict=True)}


def evaluate(
    model: Model, dataset: Dataset, sigmas: Sequence[float] = (0.0,), runs: int = 1, integers: bool = False
) -> dict[str, Any]:
    """Plain data: a score for each sigma beside those of the trivial predictors, and what persons have spent."""
    found: list[dict[str, Any]] = []
    ours = integer_predictor(model) if integers else model.trained.predict
    for sigma in sigmas:
        again = runs if sigma else 1  # without noise of the environment nothing is drawn
        scores = [score(dataset, ours, sigma, run) for run in range(again)]
        found.append(
            {
                "sigma": sigma,
                "runs": again,
                **mean_of(scores),
                "column_mse": np.mean([one.column_mse for one in scores], axis=0).tolist(),
                "trivial": trivial_scores(dataset, model.trained.l, sigma, partial(_trivial, dataset, sigma)),
            }
        )
    return {"private": False, "note": NOTE, "integers": integers, "scores": found, "persons": spent(model, dataset)}


def integer_predictor(model: Model) -> Predictor:
    """The same model with its encoders in the kernel's integers."""
    from sensorsim.training.quantise import encode, in_integers

    made = in_integers(model)

    def predict(j: int, x: Reals) -> Reals:
        one = made[j if len(made) > 1 else 0]
        return model.trained.decode(j, encode(x, one.weights, one.bias))

    return predict


def score(dataset: Dataset, predict: Predictor, sigma: float = 0.0, run: int = 0) -> Score:
    """Every row with its user's encoder; the input has the environment's noise, the target has not."""
    square = np.zeros((2, dataset.n))
    for j in range(dataset.m):
        mine = np.flatnonzero(dataset.user == j)
        for start in range(0, len(mine), ROWS_AT_ONCE):
            rows = mine[start : start + ROWS_AT_ONCE]
            x, held = dataset.x[rows], dataset.held_out[rows]
            error = (predict(j, x + _environment(x.shape, sigma, (run, j, start))) - x) ** 2
            square[0] += error[~held].sum(axis=0)
            square[1] += error[held].sum(axis=0)
    held_out = int(dataset.held_out.sum())
    rows_of = (len(dataset.x) - held_out, held_out)
    trained, others = (
        100 * (1 - float(part.sum()) / (count * dataset.n)) if count else None
        for part, count in zip(square, rows_of, strict=True)
    )
    total, every = square.sum(axis=0), len(dataset.x)
    varies = float(np.square(dataset.x - dataset.x.mean(axis=0)).sum())
    return Score(
        float(100 * (1 - total.sum() / (every * dataset.n))),
        trained,
        others,
        1 - float(total.sum()) / varies if varies else None,
        tuple((total / every).tolist()),
    )


def _environment(shape: tuple[int, ...], sigma: float, place: tuple[int, ...]) -> Any:
    """The same noise for every predictor."""
    return sigma * np.random.default_rng([0, *place]).standard_normal(shape) if sigma else 0.0


def _trivial(dataset: Dataset, sigma: float, every: list[Predictor]) -> Summary:
    return mean_of([score(dataset, one, sigma) for one in every])


def mean_of(scores: Sequence[Score]) -> Summary:
    """Means over runs; None where no person is held out or nothing varies."""
    found: Summary = {}
    for name in ("accuracy", "accuracy_train", "accuracy_held_out", "r2"):
        values = [getattr(one, name) for one in scores]
        found[name] = None if None in values else float(np.mean(values))
    return found


def spent(model: Model, dataset: Dataset) -> dict[str, Any]:
    """What the persons trained on have spent, if these records were the ones: a record each time, and all together.

    None where the model covers nothing: an epsilon that does not hold for one record adds up to none for many.
    """
    person = dataset.person[~dataset.held_out]
    counts = np.bincount(person)
    records = sorted(counts[counts > 0].tolist())
    middle, most = median_high(records), records[-1]
    about = model.about
    if about["covers_short"] == Covers.NOTHING.value:
        about = about | {"spent_epsilon": None}
    found = {name: about[name] for name in ("spent_epsilon", "delta", "covers", "covers_short")}
    found |= {"persons": len(records), "records_median": middle, "records_most": most}
    for name, many in (("median", middle), ("most", most)):
        found |= {f"epsilon_{name}_added": _added(about, many), f"epsilon_{name}": _composed(about, many)}
    return {**found, "person_delta": PERSON_DELTA}


def _added(about: dict[str, Any], many: int) -> float | None:
    """Records times epsilon: basic composition, where delta is 0."""
    epsilon = about["spent_epsilon"]
    return None if epsilon is None or about["delta"] else float(many * epsilon)


def _composed(about: dict[str, Any], many: int) -> float | None:
    """By privacy loss distributions at PERSON_DELTA, or basic where that is less; None where only a bound is known.

    Of a release every record is a draw of its own. Of other mechanisms the file does not say how a record is used.
    """
    from sensorsim.accounting.composition import Use
    from sensorsim.mechanisms import find

    epsilon, mechanism = about["spent_epsilon"], find(about["mechanism"])
    if epsilon is None or not mechanism.releases or about["delta"]:
        return None
    use = Use(epsilon=epsilon, features=about["n"], forward="released", delta=PERSON_DELTA)
    reached = float(mechanism.spend(replace(use, records=many)).epsilon)
    return reached if math.isfinite(reached) else None
