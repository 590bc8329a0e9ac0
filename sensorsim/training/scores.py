"""Accuracy of a saved model on raw records, beside predictors that need no training. numpy alone, no torch.

Every figure here is measured on somebody's data, so none is private. Nothing is written into the model: whoever wants
to publish a figure spends epsilon on it elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from statistics import median_high
from typing import TYPE_CHECKING, Any

import numpy as np

from sensorsim._util.errors import InputError
from sensorsim.accounting.composition import Covers, Use
from sensorsim.datasets.public_ranges import read_ranges
from sensorsim.mechanisms import find
from sensorsim.mechanisms.base import SIGMOID
from sensorsim.training.model_files import encode, in_integers, ranges_of
from sensorsim.training.trained import Part, Reals, Trained, data_free, moments

if TYPE_CHECKING:
    from sensorsim.datasets.dataset import Dataset
    from sensorsim.training.model_files import Model

ROWS_AT_ONCE = 8192
PERSON_DELTA = 1e-6
NOTE = "measured on raw records, so not private: publish none of these figures as if the model's epsilon covered them"
Predictor = Callable[[int, Reals], Reals]  # (user, records as delivered) to reconstructed records
Summary = dict[str, float | None]  # scores of one predictor by name
SCORED = ("accuracy", "accuracy_train", "accuracy_held_out", "r2")
UNTRAINED_NETS, LEAST_NETS = 20, 2
UNTRAINED_VALUES = 2_000_000  # to reconstruct by all untrained nets, about: many rows take time and vary less


def blocks(dataset: Dataset) -> Iterator[tuple[int, np.ndarray, int]]:
    """Yield every user with a few of the user's row numbers at a time, and the place of the first of them."""
    for j in range(dataset.m):
        mine = np.flatnonzero(dataset.user == j)
        for start in range(0, len(mine), ROWS_AT_ONCE):
            yield j, mine[start : start + ROWS_AT_ONCE], start


def percent(error: float, count: int) -> float | None:
    """Return the accuracy in per cent from a sum of `count` errors; None of no errors."""
    return 100 * (1 - error / count) if count else None


def scores_of(square: np.ndarray, total: float, dataset: Dataset) -> dict[str, Any]:
    """Return scores from the sums of squared errors by column (2, n), of rows trained on and of rows held out.

    Accuracy is 1 - MSE in per cent; R² is over the column mean, None if nothing varies. `total` is the sum of all: its
    last bits depend on the order of addition, so the caller adds.
    """
    rows, held_out = len(dataset.x), int(dataset.held_out.sum())
    return {
        "accuracy": percent(total, dataset.x.size),
        "accuracy_train": percent(float(square[0].sum()), (rows - held_out) * dataset.n),
        "accuracy_held_out": percent(float(square[1].sum()), held_out * dataset.n),
        "r2": 1 - total / dataset.variation if dataset.variation else None,
        "column_mse": (square.sum(axis=0) / rows).tolist(),
    }


def interval(values: list[float | None] | np.ndarray) -> dict[str, Any]:
    """Return mean, standard deviation and 95 % interval of the mean over runs (Student's t).

    With a diverged run there is no mean: it is null, and `of_the_rest` has that of the other runs.
    """
    from scipy.stats import t

    numbers = np.array([math.nan if value is None else value for value in values], dtype=np.float64)
    rest = numbers[np.isfinite(numbers)]
    found: dict[str, Any] = dict.fromkeys(("mean", "sd", "low", "high", "of_the_rest"))
    if len(rest):
        found["of_the_rest"] = float(rest.mean())
    if len(rest) == len(numbers) > 0:
        found["mean"] = mean = float(rest.mean())
        if len(rest) > 1:
            found["sd"] = sd = float(rest.std(ddof=1))
            half = float(t.ppf(0.975, len(rest) - 1)) * sd / math.sqrt(len(rest))
            found |= {"low": mean - half, "high": mean + half}
    return found


# ── trivial predictors ──


def trivial_scores(
    dataset: Dataset, l: int, sigma: float, scored: Callable[[list[Predictor]], Summary]
) -> dict[str, Summary]:
    """Score trivial predictors by name. `scored` gives the mean scores of predictors; all meet the same noise."""
    mean, covariance = moments(dataset.x, ~dataset.held_out)
    directions = np.linalg.eigh(covariance)[1][:, ::-1][:, :l]
    plane = directions @ directions.T
    found = {
        "zeros": scored([lambda j, x: np.zeros_like(x)]),
        "half": scored([lambda j, x: np.full_like(x, 0.5)]),
        "column mean": scored([lambda j, x: np.zeros_like(x) + mean]),
        f"PCA-{l}": scored([lambda j, x: np.clip(mean + (x - mean) @ plane, 0, 1)]),
    }
    # Send l of the n features as they are, answer the column mean for the others: the mean over all choices of l.
    share, copied, filled = l / dataset.n, scored([lambda j, x: np.clip(x, 0, 1)]), found["column mean"]
    pairs = {name: (value, filled[name]) for name, value in copied.items()}
    found[f"copy {l}"] = {
        name: None if one is None or other is None else share * one + (1 - share) * other
        for name, (one, other) in pairs.items()
    }
    rng, n, nets = np.random.default_rng(0), dataset.n, []
    for _ in range(max(LEAST_NETS, min(UNTRAINED_NETS, UNTRAINED_VALUES // dataset.x.size))):
        # First weights as torch draws them: uniform within ±1/sqrt(inputs), no biases.
        W, V = rng.uniform(-(n**-0.5), n**-0.5, (n, l)), rng.uniform(-(l**-0.5), l**-0.5, (l, n))
        nets.append(_for_any_user(Trained(SIGMOID, (Part(W, np.zeros(l), V, np.zeros(n)),))))
    found["untrained net"] = scored(nets)
    found["data-free map"] = scored([_for_any_user(data_free(dataset.columns, l, sigma))])
    return found


def _for_any_user(one: Trained) -> Predictor:
    return lambda j, x: one.predict(0, x)


# ── a saved model on records ──


def records_for(
    model: Model,
    path: str | None,
    *,
    columns: tuple[str, ...] | None = None,
    ranges: str | None = None,
    **options: Any,
) -> Dataset:
    """Load records as the model takes them: its columns and ranges unless others are named, persons split as in
    training. `options` are person and drop_missing.
    """
    from sensorsim.datasets.dataset import load

    about = model.about
    names = columns or tuple(about["columns"])
    if len(names) != about["n"]:
        raise InputError(
            f"the model takes {about['n']} columns and --columns names {len(names)}; name as many, in order."
        )
    if about["normalise"] == "max" and ranges is None:
        return load(path, m=about["m"], columns=names, normalise="max", **options)
    own = ranges_of(about)
    known: Any = None if own is None else {name: replace(one, name=name) for name, one in zip(names, own, strict=True)}
    return load(path, m=about["m"], columns=names, ranges=known if ranges is None else read_ranges(ranges), **options)


def evaluate(
    model: Model, dataset: Dataset, sigmas: Sequence[float] = (0.0,), runs: int = 1, integers: bool = False
) -> dict[str, Any]:
    """Return a score for each sigma beside those of the trivial predictors, and what persons have spent."""
    found: list[dict[str, Any]] = []
    ours = integer_predictor(model) if integers else model.trained.predict
    for sigma in sigmas:
        again = runs if sigma else 1  # without noise of the environment nothing is drawn
        scores = [score(dataset, ours, sigma, run) for run in range(again)]

        def trivial(every: list[Predictor], sigma: float = sigma) -> Summary:
            return mean_of([score(dataset, one, sigma) for one in every])

        found.append(
            {
                "sigma": sigma,
                "runs": again,
                **mean_of(scores),
                "column_mse": np.mean([one["column_mse"] for one in scores], axis=0).tolist(),
                "trivial": trivial_scores(dataset, model.trained.l, sigma, trivial),
            }
        )
    return {"private": False, "note": NOTE, "integers": integers, "scores": found, "persons": spent(model, dataset)}


def integer_predictor(model: Model) -> Predictor:
    """Return the same model with its encoders in the kernel's integers."""
    made = in_integers(model)

    def predict(j: int, x: Reals) -> Reals:
        one = made[j if len(made) > 1 else 0]
        return model.trained.decode(j, encode(x, one.weights, one.bias))

    return predict


def score(dataset: Dataset, predict: Predictor, sigma: float = 0.0, run: int = 0) -> dict[str, Any]:
    """Score every row with its user's encoder; the input has the environment's noise, the same for every predictor."""
    square = np.zeros((2, dataset.n))
    for j, rows, start in blocks(dataset):
        x, held = dataset.x[rows], dataset.held_out[rows]
        noise = sigma * np.random.default_rng([0, run, j, start]).standard_normal(x.shape) if sigma else 0.0
        error = (predict(j, x + noise) - x) ** 2
        square[0] += error[~held].sum(axis=0)
        square[1] += error[held].sum(axis=0)
    return scores_of(square, float(square.sum(axis=0).sum()), dataset)


def mean_of(scores: Sequence[dict[str, Any]], names: Sequence[str] = SCORED) -> Summary:
    """Return means over runs or predictors; None where one has none."""
    columns = {name: [one[name] for one in scores] for name in names}
    return {name: None if None in values else float(np.mean(values)) for name, values in columns.items()}


def spent(model: Model, dataset: Dataset) -> dict[str, Any]:
    """Return what the persons trained on have spent, if these records were the ones: per record, and all together.

    None where the model covers nothing: an epsilon that does not hold for one record adds up to none for many.
    """
    counts = np.bincount(dataset.person[~dataset.held_out])
    records = sorted(counts[counts > 0].tolist())
    about = model.about
    if about["covers_short"] == Covers.NOTHING.value:
        about = about | {"spent_epsilon": None}
    found = {name: about[name] for name in ("spent_epsilon", "delta", "covers", "covers_short")}
    found |= {"persons": len(records), "records_median": median_high(records), "records_most": records[-1]}
    epsilon, pure = about["spent_epsilon"], about["spent_epsilon"] is not None and not about["delta"]
    for name, many in (("median", median_high(records)), ("most", records[-1])):
        # Basic composition, records times epsilon; and by privacy loss distributions at PERSON_DELTA, or basic where
        # that is less. Of a release every record is a draw of its own; of others the file does not say how it is used.
        found |= {f"epsilon_{name}_added": float(many * epsilon) if pure else None, f"epsilon_{name}": None}
        mechanism = find(about["mechanism"])
        if pure and mechanism.releases:
            use = Use(epsilon=epsilon, features=about["n"], forward="released", delta=PERSON_DELTA, records=many)
            reached = float(mechanism.spend(use).epsilon)
            found[f"epsilon_{name}"] = reached if math.isfinite(reached) else None
    return {**found, "person_delta": PERSON_DELTA}
