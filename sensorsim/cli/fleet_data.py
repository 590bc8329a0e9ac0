"""Who wears the devices of a fleet: the options that name a file, and the people in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sensorsim.cli.training import column_names, data_options, load_data

if TYPE_CHECKING:
    from sensorsim.fleet.people import People

PICKED = ("data", "person", "columns", "ranges", "drop_missing")


def people_options(function: Any) -> Any:
    """Those of the options of training that a fleet has too; users and private maxima it has not."""

    def every() -> None: ...

    known = {option.name: option for option in data_options(every).__click_params__}
    params: list[click.Parameter] = function.__dict__.setdefault("__click_params__", [])
    params.extend(known[name] for name in reversed(PICKED))  # click turns their order round
    return function


def people_of(
    data: str | None, columns: str | None, person: str | None, ranges: str | None, seed: int, drop_missing: bool = False
) -> People:
    """The people of a CSV or Parquet file, or made ones where none is given; what was done to it is told on stderr."""
    from sensorsim.errors import InputError
    from sensorsim.fleet.people import People

    if data is None:
        unused = {"--person": person, "--ranges": ranges, "--drop-missing": drop_missing}
        for name, value in unused.items():
            if value:
                raise InputError(f"{name} is about a file of your own; give one with --data FILE, or leave it out.")
        return People.generated(column_names(columns), seed)
    chosen = {"data": data, "columns": columns, "person": person, "ranges": ranges, "drop_missing": drop_missing}
    made = load_data(chosen | {"m": 1, "normalise": "ranges", "seed": seed}, needs=())
    return People.of(made.columns, made.x, made.person, made.source, made.ranges)
