"""`sensorsim evaluate`: how well a model does on raw records. Its figures are not private, and it says so first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from sensorsim._util.terminal import columns, counted, hung
from sensorsim.api.evaluating import MOST_RUNS, NOT_PRIVATE, RUNS, evaluate
from sensorsim.cli.choices import COLUMN, COLUMNS, FILE
from sensorsim.cli.defaults import options_of
from sensorsim.cli.output import emit, format_option, tell
from sensorsim.cli.training import numbers, shown
from sensorsim.noise.certificate import format_epsilon_column as epsilon_to

option = options_of(evaluate)


@click.command()
@click.option("--model", type=FILE, required=True, help="A model of `sensorsim train --out`.")
@option("--data", type=FILE, help="CSV of records, a row each; without it, the synthetic set.")
@option("--person", type=COLUMN, help="Column that names whose record it is.  [default: Id]")
@option("--columns", type=COLUMNS, help="Names that the model's columns have here.  [default: the model's]")
@option("--ranges", type=FILE, help="CSV of name,low,high,unit.  [default: the model's own]")
@option("--drop-missing", is_flag=True, help="Leave out rows with an empty cell, in place of refusing them.")
@option("--sigma", help="Environmental noise on the inputs: one or several.  [default: what the model is for]")
@option("--runs", type=click.IntRange(1, MOST_RUNS), help=f"Draws of that noise.  [default: {RUNS}]")
@option("--integers", is_flag=True, help="Encode as the sensor does, with the integer kernel.")
@format_option
def command(model: str, sigma: str | None, runs: int | None, integers: bool, fmt: str, **chosen: Any) -> None:
    """Accuracy of a model and R² over the column mean, beside predictors that need no training. Not private.

    Persons are held out as in training, so held-out figures are of persons that the model has not met.

    \b
    Example: sensorsim evaluate --model model.npz --data days.csv --sigma 0,5
    """
    asked = None if sigma is None else numbers(sigma, "sigma")
    found = evaluate(model, sigma=asked, runs=runs, integers=integers, told=tell, **chosen)
    emit(fmt, lambda: hung("\n".join(table(found.to_dict())), columns()), found.to_dict, found.rows)


def table(result: dict[str, Any]) -> Iterator[str]:
    """First that it is not private, then the figures."""
    yield NOT_PRIVATE
    encoders = ", encoders in integers" if result["integers"] else ""
    yield (
        f"{result['mechanism']}, {result['form']}, l = {result['l']}{encoders}, on {result['rows']:,} rows of "
        f"{result['data']}"
    )
    yield from _persons(result["persons"])
    for part in result["scores"]:
        yield ""
        if part["sigma"] != result["made_for_sigma"]:
            yield f" The model was made for inputs with sigma {result['made_for_sigma']:g}, not {part['sigma']:g}."
        noise = f" sigma {part['sigma']:g}, {part['runs']} runs" if part["sigma"] else ""
        yield f" {f'1 - MSE in per cent{noise}':<34}{'all rows':>9}{'held out':>11}{'R² over mean':>15}"
        for name, one in (("this model", part), *part["trivial"].items()):
            yield f" {name:<34}{shown(one['accuracy']):>9}{shown(one['accuracy_held_out']):>11}" + (
                f"{shown(one['r2'], 3):>15}"
            )
        error, name = max(zip(part["column_mse"], result["columns"], strict=True))
        yield f" worst column: {name}, root of the mean squared error {error**0.5:.3f} of its range"


def _persons(spent: dict[str, Any]) -> Iterator[str]:
    """Epsilon of a record and of a person, or why there is none."""
    if spent["spent_epsilon"] is None:
        yield f"  epsilon – per record, – per person: the model's statement covers {spent['covers']}"
        return
    yield (
        f"  as the model states: epsilon {epsilon_to(spent['spent_epsilon'], 4)} per record, delta {spent['delta']:g}; "
        f"covers {spent['covers_short']}"
    )
    for name in ("median", "most"):
        composed = spent[f"epsilon_{name}"]
        by = f", {epsilon_to(composed, 2)} at delta {spent['person_delta']:g}" if composed is not None else ""
        whose = "the median person" if name == "median" else "who has most"  # short: a line of 80 columns holds it
        many = counted(spent[f"records_{name}"], "record")
        yield f"  {whose}, {many}: epsilon {epsilon_to(spent[f'epsilon_{name}_added'], 2)} added up{by}"
