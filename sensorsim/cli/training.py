"""Options and texts that train, sweep and figures share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click

from sensorsim.cli.names import mechanism_name
from sensorsim.errors import InputError
from sensorsim.privacy.kinds import DEFAULT

if TYPE_CHECKING:
    from sensorsim.train.config import Config
    from sensorsim.train.data import Dataset

MAXIMUM_NOTE = (
    "Columns are divided by their own maximum, as printed; that maximum is private data and no epsilon covers it."
)


def options(*given: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Several click options as one decorator, in the order they are listed."""

    def decorate(function: Any) -> Any:
        for option in reversed(given):
            function = option(function)
        return function

    return decorate


data_options = options(
    click.option("--data", metavar="FILE", help="Fitbit daily-activity CSV; without it, the synthetic set."),
    click.option("--columns", help="Column names, separated by commas.  [default: 13 numeric ones, Calories twice]"),
    click.option("--normalise", default="max", show_default=True, help="max as printed, or public caps (no leak)."),
    click.option("--m", type=int, default=2, show_default=True, help="Users; whole persons go to one user."),
)
MOST_SEED = 2**62  # what every generator here takes
seed_option = click.option(
    "--seed",
    type=click.IntRange(0, MOST_SEED),
    default=0,
    show_default=True,
    help="Of the split and of every draw, so that a run can go on: reproducible, so not private.",
)
model_options = options(
    click.option("--l", "l", type=int, default=7, show_default=True, help="Hidden units of an encoder."),
    click.option("--bias", is_flag=True, help="Biases in encoders and decoder."),
    click.option("--optimiser", default="adam", show_default=True, help="adam or sgd."),
    click.option("--lr", type=float, default=1e-3, show_default=True, help="Learning rate."),
    click.option("--batch", type=int, default=1, show_default=True, help="Records per step and user."),
    click.option("--epochs", type=int, default=10, show_default=True, help="Passes over the records."),
    click.option("--redraw", is_flag=True, help="Fresh noise at each step instead of once per record."),
    click.option("--forward", help="raw or released: what the forward pass reads.  [default: by mechanism]"),
    click.option("--k", type=int, help="Features per record that sampled releases.  [default: from epsilon]"),
    click.option("--estimator", default="marginals", show_default=True, help="release, sampled: marginals or loss."),
    click.option("--kind", default=DEFAULT, show_default=True, help="release, sampled: rows or stairs tables."),
    click.option("--clip", "C", type=float, default=4.0, show_default=True, help="Clipping norm C."),
    click.option("--point", default="zero", show_default=True, help="dpsgd: z-gradient at zero or at the prediction."),
    click.option("--noise", default="gaussian", show_default=True, help="dpsgd-weights, dp-zo: gaussian or laplace."),
    click.option("--clipping", default="flat", show_default=True, help="dpsgd-weights: flat or group."),
    click.option("--delta", type=float, default=1e-6, show_default=True, help="Of Gaussian noise."),
    click.option("--decode-c", is_flag=True, help="spof: keep c in the decoder when the model is used."),
)


def need(*modules: str) -> None:
    """Say which extra is missing in place of a traceback."""
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise InputError(f"this needs {', '.join(missing)}, not installed here; run pip install 'sensorsim[train]'.")


def load_data(chosen: dict[str, Any]) -> Dataset:
    """The data set that the options name."""
    need("torch", "scipy", "joblib", "safetensors")
    from sensorsim.train.data import PAPER_COLUMNS, load

    columns = PAPER_COLUMNS
    if chosen["columns"]:
        columns = tuple(name.strip() for name in chosen["columns"].split(",") if name.strip())
    return load(chosen["data"], m=chosen["m"], columns=columns, normalise=chosen["normalise"], seed=chosen["seed"] or 0)


def base_config(chosen: dict[str, Any], runs: int) -> Config:
    """The configuration that every cell starts from."""
    from dataclasses import fields

    from sensorsim.train.config import Config

    known = {field.name for field in fields(Config)}
    given: dict[str, Any] = {name: value for name, value in chosen.items() if name in known}
    if "mechanism" in given:
        given["mechanism"] = mechanism_name(given["mechanism"])
    return Config(**{"mechanism": "none", "runs": runs, **given})


MOST_VALUES = 10_000  # of one range; a sweep trains at each


def numbers(text: str, name: str) -> list[float]:
    """`0.1,0.2` or `0:2.5:0.25` (first:last:step, last included)."""
    try:
        if ":" in text:
            first, last, step = (float(part) for part in text.split(":"))
            if step <= 0 or last < first:
                raise ValueError
            count = int((last - first) / step + 1e-9) + 1
            if count > MOST_VALUES:
                raise InputError(f"--{name} {text} is {count} values; give at most {MOST_VALUES}, with a larger step.")
            return [round(first + place * step, 12) for place in range(count)]
        found = [float(part) for part in text.split(",") if part.strip()]
        if not found:
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


def trivial_lines(found: dict[str, dict[str, float | None]]) -> Iterable[str]:
    """One line for each trivial predictor, aligned with the lines of results."""
    for name, scores in found.items():
        yield f" {name:<34}{shown(scores['accuracy']):>9}{'':>15}{shown(scores['accuracy_held_out']):>9}"
