"""Who wears the devices of a fleet: the options that name a file, and the people in it."""

from __future__ import annotations

from typing import Any

import click

from sensorsim.cli.training import data_options

PICKED = ("data", "person", "columns", "ranges", "drop_missing")


def people_options(function: Any) -> Any:
    """Those of the options of training that a fleet has too; users and private maxima it has not."""

    def every() -> None: ...

    known = {option.name: option for option in data_options(every).__click_params__}
    params: list[click.Parameter] = function.__dict__.setdefault("__click_params__", [])
    params.extend(known[name] for name in reversed(PICKED))  # click turns their order round
    return function
