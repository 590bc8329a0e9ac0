"""`evaluate`: how well a model does on raw records. Its figures are not private, and it says so first."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sensorsim._util import progress
from sensorsim._util.errors import InputError
from sensorsim._util.hints import need
from sensorsim._util.results import Result, bars
from sensorsim._util.terminal import counted
from sensorsim.calls import checked
from sensorsim.datasets import Told, column_names, data_notes, warn

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sensorsim.training.model_files import Model

SCHEMA_VERSION = 1
NOT_PRIVATE = "These figures are measured on raw records, so they are not private."
RUNS, MOST_RUNS = 20, 10_000  # draws of the noise


@dataclass(frozen=True, repr=False)
class Evaluation(Result):
    """A score for each sigma beside those of predictors that need no training, and what persons have spent."""

    found: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return dict(self.found)

    def rows(self) -> Iterator[dict[str, Any]]:
        """A line for the model and for each trivial predictor, at each sigma."""
        for part, name, one in self._scores():
            told = {key: one[key] for key in ("accuracy", "accuracy_train", "accuracy_held_out", "r2")}
            yield {"private": False, "predictor": name, "sigma": part["sigma"], **told}

    def _scores(self) -> Iterator[tuple[dict[str, Any], str, dict[str, Any]]]:
        for part in self.found["scores"]:
            for name, one in (("this model", part), *part["trivial"].items()):
                yield part, name, one

    def title(self) -> str:
        made = self.found
        return f"{made['mechanism']}, {made['form']}, on {made['rows']:,} rows of {made['data']}. {NOT_PRIVATE}"

    def facts(self) -> dict[str, str]:
        found = {}
        for part, name, one in self._scores():
            held = "–" if one["accuracy_held_out"] is None else f"{one['accuracy_held_out']:.2f}"
            label = name if len(self.found["scores"]) == 1 else f"{name}, sigma {part['sigma']:g}"
            found[label] = f"{one['accuracy']:.2f} % (1 - MSE) on all rows, {held} % held out"
        return found

    def figure(self) -> "Figure":
        values = {f"{name}, sigma {part['sigma']:g}": one["accuracy"] for part, name, one in self._scores()}
        runs = [part["runs"] for part in self.found["scores"] if part["sigma"]]
        noisy = f"; {counted(max(runs), 'run')} where sigma > 0" if runs else ""
        return bars(self.title(), values, f"accuracy (1 - MSE) on all rows, %{noisy}", most=100)


@checked
def evaluate(
    model: "Model | str | os.PathLike[str]",
    data: str | None = None,
    person: str | None = None,
    columns: str | Sequence[str] | None = None,
    ranges: str | None = None,
    drop_missing: bool = False,
    sigma: float | Sequence[float] | None = None,
    runs: int | None = None,
    integers: bool = False,
    told: Told = warn,
) -> Evaluation:
    """Accuracy of a model and R² over the column mean, beside predictors that need no training. Not private.

    Without `data` the synthetic set is used; `sigma` is noise of the environment, by default what the model is for,
    and `runs` the draws of it, 20 if none are given.

        >>> import sensorsim as ss
        >>> ss.evaluate("model.safetensors", data="days.csv", sigma=[0, 5])  # doctest: +SKIP
    """
    need("scipy", "pandas")
    from sensorsim.training.model_files import Model, load
    from sensorsim.training.scores import evaluate as evaluated
    from sensorsim.training.scores import records_for

    made = model if isinstance(model, Model) else load(os.fspath(model))
    if runs is not None and (type(runs) is not int or not 1 <= runs <= MOST_RUNS):
        raise InputError(f"runs is {runs}; give --runs from 1 to {MOST_RUNS}.")
    asked = [float(made.about["sigma"])] if sigma is None else [sigma] if isinstance(sigma, int | float) else [*sigma]
    if runs is not None and not any(asked):
        raise InputError("--runs changes nothing where sigma is 0; leave it out, or give --sigma of more than 0.")
    dataset = records_for(
        made, data, columns=column_names(columns), person=person, ranges=ranges, drop_missing=drop_missing
    )
    for line in data_notes(dataset, dataset.normalise):
        told(line)
    with progress.step("evaluating"):
        found = evaluated(made, dataset, asked, runs or RUNS, integers)
    head: dict[str, Any] = {"schema_version": SCHEMA_VERSION, "data": dataset.source, "rows": len(dataset.x)}
    head |= {name: made.about[name] for name in ("mechanism", "form", "n", "l", "m", "columns", "trust", "covers")}
    head["made_for_sigma"] = made.about["sigma"]
    return Evaluation(head | found)
