"""Options and texts that train, sweep and figures share."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import TYPE_CHECKING, Any

import click

from sensorsim.cli.names import mechanism_name
from sensorsim.errors import InputError
from sensorsim.privacy.kinds import DEFAULT
from sensorsim.train.choosing import TRAINING, chosen_records

if TYPE_CHECKING:
    from sensorsim.train.config import Config
    from sensorsim.train.data import Dataset

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


data_options = options(
    click.option(
        "--data", metavar="FILE", help="CSV or Parquet of records, a row each; without it, the synthetic set."
    ),
    click.option(
        "--person",
        metavar="COLUMN",
        help="Column that names whose record it is.  [default: Id; without it, every row is a person]",
    ),
    click.option(
        "--columns",
        metavar="NAMES",
        help="Features, separated by commas.  [default: Fitbit's 13 numeric ones, Calories twice]",
    ),
    click.option(
        "--ranges",
        metavar="FILE",
        help="CSV of name,low,high,unit: public ranges of columns.  [default: `sensorsim data ranges`]",
    ),
    click.option(
        "--normalise",
        metavar="[ranges|max]",
        default="ranges",
        show_default=True,
        help="By public ranges, or by private column maxima as printed: then no epsilon holds.",
    ),
    click.option(
        "--drop-missing", is_flag=True, help="Leave out rows with an empty cell; which these are is taken as public."
    ),
    click.option("--m", type=int, default=2, show_default=True, help="Users; whole persons go to one user."),
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
    click.option("--l", "l", type=int, default=7, show_default=True, help="Hidden units of an encoder."),
    click.option("--bias", is_flag=True, help="Biases in encoders and decoder."),
    click.option("--optimiser", help=f"adam or sgd.  {OWN}"),
    click.option("--lr", type=float, help=f"Learning rate.  {OWN}"),
    click.option("--batch", type=int, help=f"Records per step and user.  {OWN}"),
    click.option("--epochs", type=int, help=f"Passes over the records.  {OWN}"),
    click.option("--start", help=f"First weights: random or data-free.  {OWN}"),
    click.option("--schedule", help=f"Learning rate: constant, or linear to zero.  {OWN}"),
    click.option("--loss", help=f"none, dpsgd-weights: cross-entropy or squared.  {OWN}"),
    click.option("--sampling", default="epochs", show_default=True, help="dpsgd-weights, dp-zo: epochs or poisson."),
    click.option("--redraw", is_flag=True, help="Fresh noise at each step instead of once per record."),
    click.option("--forward", help="raw or released: what the forward pass reads.  [default: by mechanism]"),
    click.option("--k", type=int, help="Features per record that sampled releases.  [default: from epsilon]"),
    click.option("--estimator", default="moments", show_default=True, help="release, sampled: moments or loss."),
    click.option("--kind", default=DEFAULT, show_default=True, help="release, sampled: rows or stairs tables."),
    click.option("--map", help="Releases, none: linear (in closed form) or sigmoid (the net).  [default: linear]"),
    click.option("--release-sees", default="clean", show_default=True, help="Releases with sigma: clean or noisy."),
    click.option("--share", type=float, help="sketch: share of records that release one scalar.  [default: chosen]"),
    click.option("--clip", "C", type=float, help=f"Clipping norm C.  {OWN}"),
    click.option("--point", default="zero", show_default=True, help="dpsgd: z-gradient at zero or at the prediction."),
    click.option("--noise", default="gaussian", show_default=True, help="dpsgd-weights, dp-zo: gaussian or laplace."),
    click.option("--clipping", default="flat", show_default=True, help="dpsgd-weights: flat or group."),
    click.option("--delta", type=float, default=1e-6, show_default=True, help="Of Gaussian noise."),
    click.option("--decode-c", is_flag=True, help="spof: keep c in the decoder when the model is used."),
)


def load_data(chosen: dict[str, Any], needs: tuple[str, ...] = TRAINING, counts: bool = True) -> Dataset:
    """The data set that the options name; what was done to it is told on stderr, with `counts` or without."""
    names = ("data", "m", "columns", "person", "ranges", "normalise", "drop_missing")
    return chosen_records(
        **{name: chosen[name] for name in names}, seed=chosen["seed"] or 0, needs=needs, counts=counts, told=tell
    )


def tell(text: str) -> None:
    """A note on stderr."""
    click.echo(text, err=True)


def base_config(chosen: dict[str, Any], runs: int) -> Config:
    """The configuration that every cell starts from."""
    from dataclasses import fields

    from sensorsim.train.config import Config

    known = {field.name for field in fields(Config)}
    given: dict[str, Any] = {name: value for name, value in chosen.items() if name in known}
    if "mechanism" in given:
        given["mechanism"] = mechanism_name(given["mechanism"])
    return Config(**{"mechanism": "none", "runs": runs, **given})


def refuse_unread(mechanisms: list[str], base: Config) -> None:
    """An option that was given and changes nothing for any of these mechanisms is refused."""
    from dataclasses import fields

    from sensorsim.cli.output import given_options
    from sensorsim.train.config import refuse_idle

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
