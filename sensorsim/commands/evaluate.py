"""`sensorsim evaluate`: how well a model does on raw records. Its figures are not private, and it says so first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from sensorsim._util import progress
from sensorsim._util.errors import InputError
from sensorsim._util.hints import need
from sensorsim._util.option_kinds import Flag, Path, Whole, option_of
from sensorsim._util.results import Listing, bars
from sensorsim._util.terminal import columns, counted, hung
from sensorsim.commands.declare import REQUIRED, Command, option
from sensorsim.commands.training_options import Axis, Numbers, RecordOptions, tell
from sensorsim.datasets import column_names, data_notes
from sensorsim.noise.certificate import format_epsilon_column
from sensorsim.training.config import Config

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sensorsim.training.model_files import Model

SCHEMA_VERSION = 1
NOT_PRIVATE = "These figures are measured on raw records, so they are not private."
RUNS, MOST_RUNS = 20, 10_000  # draws of the noise
SIGMA = Config.__dataclass_fields__["sigma"].metadata["option"].kind


def evaluation(made: dict[str, Any]) -> Listing:
    """Return a score for each sigma beside those of predictors that need no training, and what persons have spent."""
    several = len(made["scores"]) > 1
    scores = [
        (part["sigma"], name, one)
        for part in made["scores"]
        for name, one in (("this model", part), *part["trivial"].items())
    ]
    rows = [
        {"private": False, "predictor": name, "sigma": sigma}
        | {key: one[key] for key in ("accuracy", "accuracy_train", "accuracy_held_out", "r2")}
        for sigma, name, one in scores
    ]
    said = {}
    for sigma, name, one in scores:
        held_out = _or_dash(one["accuracy_held_out"])
        label = f"{name}, sigma {sigma:g}" if several else name
        said[label] = f"{one['accuracy']:.2f} % (1 - MSE) on all rows, {held_out} % held out"

    def draw(title: str) -> "Figure":
        values = {f"{name}, sigma {sigma:g}": one["accuracy"] for sigma, name, one in scores}
        runs = [part["runs"] for part in made["scores"] if part["sigma"]]
        noisy = f"; {counted(max(runs), 'run')} where sigma > 0" if runs else ""
        return bars(title, values, f"accuracy (1 - MSE) on all rows, %{noisy}", most=100)

    title = f"{made['mechanism']}, {made['form']}, on {made['rows']:,} rows of {made['data']}. {NOT_PRIVATE}"
    return Listing(title, rows, made, draw, said, partial(_text, made))


def _text(made: dict[str, Any]) -> str:
    """Return for a terminal that it is not private, then the figures."""
    encoders = ", encoders in integers" if made["integers"] else ""
    model = f"{made['mechanism']}, {made['form']}, l = {made['l']}{encoders}"
    lines = [NOT_PRIVATE, f"{model}, on {made['rows']:,} rows of {made['data']}", *_persons(made["persons"])]
    for part in made["scores"]:
        lines.append("")
        if part["sigma"] != made["made_for_sigma"]:
            made_for = f"inputs with sigma {made['made_for_sigma']:g}, not {part['sigma']:g}"
            lines.append(f" The model was made for {made_for}.")
        noise = f" sigma {part['sigma']:g}, {part['runs']} runs" if part["sigma"] else ""
        lines.append(f" {f'1 - MSE in per cent{noise}':<34}{'all rows':>9}{'held out':>11}{'R² over mean':>15}")
        for name, one in (("this model", part), *part["trivial"].items()):
            scores = f"{_or_dash(one['accuracy']):>9}{_or_dash(one['accuracy_held_out']):>11}"
            lines.append(f" {name:<34}{scores}{_or_dash(one['r2'], 3):>15}")
        error, name = max(zip(part["column_mse"], made["columns"], strict=True))
        lines.append(f" worst column: {name}, root of the mean squared error {error**0.5:.3f} of its range")
    return hung("\n".join(lines), columns())


@dataclass(frozen=True)
class EvaluateModel(RecordOptions, Command[Listing]):
    """Print accuracy and R² over the column mean, beside predictors that need no training.

    Persons are held out as in training, so held-out figures are of persons that the model has not met.
    """

    example = "sensorsim evaluate --model model.npz --data days.csv --sigma 0,5"
    usage = """
        >>> import sensorsim as ss
        >>> ss.evaluate("model.safetensors", data="days.csv", sigma=[0, 5])  # doctest: +SKIP
    """
    model: "Model | str" = option(REQUIRED, Path("file", "Model"), "A model of `sensorsim train --out`.")
    sigma: Axis | None = option(
        None, Numbers(SIGMA), "Environmental noise: one or several.", default_text="what the model is for"
    )
    columns: str | Sequence[str] | None = option_of(
        RecordOptions, "columns", help="Names that the model's columns have here.", default_text="the model's"
    )
    ranges: str | None = option_of(RecordOptions, "ranges", default_text="the model's own")
    runs: int | None = option(None, Whole(1, MOST_RUNS), "Draws of that noise.", default_text=str(RUNS))
    integers: bool = option(False, Flag(), "Encode as the sensor does, with the integer kernel.")

    def run(self) -> Listing:
        need("scipy", "pandas")
        from sensorsim.training.model_files import Model, load
        from sensorsim.training.scores import evaluate, records_for

        model = self.model if isinstance(self.model, Model) else load(str(self.model))
        sigmas = [float(model.about["sigma"])] if self.sigma is None else list(map(float, self.sigma))
        if self.runs is not None and not any(sigmas):
            raise InputError("--runs changes nothing where sigma is 0; leave it out, or give --sigma of more than 0.")
        dataset = records_for(
            model,
            self.data,
            columns=column_names(self.columns),
            person=self.person,
            ranges=self.ranges,
            drop_missing=self.drop_missing,
        )
        for line in data_notes(dataset):
            tell(line)
        with progress.step("evaluating"):
            found = evaluate(model, dataset, sigmas, self.runs or RUNS, self.integers)
        head: dict[str, Any] = {"schema_version": SCHEMA_VERSION, "data": dataset.source, "rows": len(dataset.x)}
        head |= {name: model.about[name] for name in ("mechanism", "form", "n", "l", "m", "columns", "trust", "covers")}
        return evaluation(head | {"made_for_sigma": model.about["sigma"]} | found)


def _persons(spent: dict[str, Any]) -> Iterator[str]:
    """Yield the epsilon of a record and of a person, or why there is none."""
    if spent["spent_epsilon"] is None:
        yield f"  epsilon – per record, – per person: the model's statement covers {spent['covers']}"
        return
    record = format_epsilon_column(spent["spent_epsilon"], 4)
    covers = f"delta {spent['delta']:g}; covers {spent['covers_short']}"
    yield f"  as the model states: epsilon {record} per record, {covers}"
    for name in ("median", "most"):
        composed = spent[f"epsilon_{name}"]
        by = (
            f", {format_epsilon_column(composed, 2)} at delta {spent['person_delta']:g}" if composed is not None else ""
        )
        whose = "the median person" if name == "median" else "who has most"  # short: for a line of 80 columns
        added = format_epsilon_column(spent[f"epsilon_{name}_added"], 2)
        yield f"  {whose}, {counted(spent[f'records_{name}'], 'record')}: epsilon {added} added up{by}"


def _or_dash(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
