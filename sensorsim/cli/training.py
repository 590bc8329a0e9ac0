"""Options and texts that train, sweep and figures share."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import TYPE_CHECKING, Any

import click

from sensorsim._util.errors import InputError
from sensorsim.api.training import train
from sensorsim.cli.choices import COLUMN, COLUMNS, FILE, Names, of_training
from sensorsim.cli.defaults import options_of
from sensorsim.cli.names import mechanism_name
from sensorsim.cli.output import tell
from sensorsim.datasets import NORMALISE, TRAINING, chosen_records
from sensorsim.training.config import Config

if TYPE_CHECKING:
    from sensorsim.datasets.dataset import Dataset

MAXIMUM_NOTE = (
    "Columns are divided by their own maximum, as printed; that maximum is private data, so no epsilon holds."
)


def options(*given: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Several click options as one decorator, in the order they are listed."""

    def decorate(function: Any) -> Any:
        for option in reversed(given):
            function = option(function)
        return function

    return decorate


option = options_of(train)


def setting(flag: str, text: str) -> Callable[[Any], Any]:
    """An option for a setting of training that has names."""
    return option(flag, type=of_training(flag.removeprefix("--").replace("-", "_")), help=text)


data_options = options(
    option("--data", type=FILE, help="CSV or Parquet of records, a row each; without it, the synthetic set."),
    option(
        "--person",
        type=COLUMN,
        help="Column that names whose record it is.  [default: Id; without it, every row is a person]",
    ),
    option(
        "--columns",
        type=COLUMNS,
        help="Features, separated by commas.  [default: Fitbit's 13 numeric ones, Calories twice]",
    ),
    option(
        "--ranges",
        type=FILE,
        help="CSV of name,low,high,unit: public ranges of columns.  [default: `sensorsim data ranges`]",
    ),
    option(
        "--normalise",
        type=Names(lambda: NORMALISE),
        metavar=f"[{'|'.join(NORMALISE)}]",
        help="By public ranges, or by private column maxima as printed: then no epsilon holds.",
    ),
    option(
        "--drop-missing", is_flag=True, help="Leave out rows with an empty cell; which these are is taken as public."
    ),
    option("--m", type=int, help="Users; whole persons go to one user."),
)
grid_options = options(
    click.option(
        "--epsilon", default="0.1,0.2,0.4,0.8,1.6,3.2,6.4", show_default=True, help="Nominal budgets per record."
    ),
    click.option("--sigma", default="0,5", show_default=True, help="Environmental noise on the inputs."),
    click.option("--runs", type=int, default=Config.runs, show_default=True, help="Monte-Carlo runs of each cell."),
)
MOST_JOBS = 1024  # processes or threads
MOST_SEED = 2**62  # what every generator here takes
seed_option = click.option(
    "--seed",
    type=click.IntRange(0, MOST_SEED),
    default=0,
    show_default=True,
    help="Of the split and of every draw, so that a run can go on: reproducible, so not private.",
)
OWN = "[default: the mechanism's own, tuned or as printed]"
model_options = options(
    option("--l", "l", type=int, help="Hidden units of an encoder."),
    option("--bias", is_flag=True, help="Biases in encoders and decoder."),
    setting("--optimiser", f"adam or sgd.  {OWN}"),
    option("--lr", type=float, help=f"Learning rate.  {OWN}"),
    option("--batch", type=int, help=f"Records per step and user.  {OWN}"),
    option("--epochs", type=int, help=f"Passes over the records.  {OWN}"),
    setting("--start", f"First weights: random or data-free.  {OWN}"),
    setting("--schedule", f"Learning rate: constant, or linear to zero.  {OWN}"),
    setting("--loss", f"none, dpsgd-weights: cross-entropy or squared.  {OWN}"),
    setting("--sampling", "dpsgd-weights, dp-zo: epochs or poisson."),
    option("--redraw", is_flag=True, help="Fresh noise at each step instead of once per record."),
    setting("--forward", "raw or released: what the forward pass reads.  [default: by mechanism]"),
    option("--k", type=int, help="Features per record that sampled releases.  [default: from epsilon]"),
    setting("--estimator", "release, sampled: moments or loss."),
    setting("--kind", "release, sampled: rows or stairs tables."),
    setting("--map", "Releases, none: linear (in closed form) or sigmoid (the net).  [default: linear]"),
    setting("--release-sees", "Releases with sigma: clean or noisy."),
    option("--share", type=float, help="sketch: share of records that release one scalar.  [default: chosen]"),
    option("--clip", "C", type=float, help=f"Clipping norm C.  {OWN}"),
    setting("--point", "dpsgd: z-gradient at zero or at the prediction."),
    setting("--noise", "dpsgd-weights, dp-zo: gaussian or laplace."),
    setting("--clipping", "dpsgd-weights: flat or group."),
    option("--delta", type=float, help="Of Gaussian noise."),
    option("--decode-c", is_flag=True, help="spof: keep c in the decoder when the model is used."),
)


def load_data(chosen: dict[str, Any], needs: tuple[str, ...] = TRAINING, counts: bool = True) -> Dataset:
    """The data set that the options name; what was done to it is told on stderr, with `counts` or without."""
    names = ("data", "m", "columns", "person", "ranges", "normalise", "drop_missing")
    return chosen_records(
        **{name: chosen[name] for name in names}, seed=chosen["seed"] or 0, needs=needs, counts=counts, told=tell
    )


def base_config(chosen: dict[str, Any], runs: int) -> Config:
    """The configuration that every cell starts from."""
    from dataclasses import fields

    known = {field.name for field in fields(Config)}
    given: dict[str, Any] = {name: value for name, value in chosen.items() if name in known}
    if "mechanism" in given:
        given["mechanism"] = mechanism_name(given["mechanism"])
    return Config(**{"mechanism": "none", "runs": runs, **given})


def refuse_unread(mechanisms: list[str], base: Config) -> None:
    """An option that was given and changes nothing for any of these mechanisms is refused."""
    from dataclasses import fields

    from sensorsim.cli.output import given_options
    from sensorsim.training.config import refuse_idle

    known = {field.name for field in fields(base)}
    refuse_idle(mechanisms, base, {name: option for name, option in given_options().items() if name in known})


MOST_VALUES = 10_000  # of one range; a sweep trains at each


def numbers(text: str, name: str) -> list[float]:
    """`0.1,0.2` or `0:2.5:0.25` (first:last:step, last included)."""
    try:
        if ":" in text:
            first, last, step = (float(part) for part in text.split(":"))
            if not step > 0 or not first <= last < float("inf"):
                raise ValueError
            count = int((last - first) / step + 1e-9) + 1
            if count > MOST_VALUES:
                raise InputError(f"--{name} {text} is {count} values; give at most {MOST_VALUES}, with a larger step.")
            return [round(first + place * step, 12) for place in range(count)]
        found = [float(part) for part in text.split(",") if part.strip()]
        if not found or not all(map(isfinite, found)):
            raise ValueError
        return found
    except InputError:
        raise
    except (ValueError, OverflowError):
        raise InputError(
            f"--{name} {text} cannot be read; give numbers like 0.1,0.2 or a range first:last:step like 0:2.5:0.25."
        ) from None


def shown(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
