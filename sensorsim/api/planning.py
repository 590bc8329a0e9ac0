"""`plan`: what a fleet of sensors can reach under a budget, before it is built."""

import os
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError
from sensorsim.api.noise import Table, read_table
from sensorsim.datasets import column_names
from sensorsim.planning.deployment import Asked

if TYPE_CHECKING:
    from sensorsim.planning.study_plan import Plan

OPEN = ("?", "solve")  # either leaves a number open; a shell takes a bare ? for a file of one letter


def plan(
    devices: int | str | None = Asked.devices,
    records_per_day: int | str | None = Asked.records_per_day,
    budget_epsilon: Decimal | float | str | None = Asked.budget_epsilon,
    budget_days: int | str | None = Asked.budget_days,
    every: int | str | None = Asked.every,
    accuracy: float | str | None = Asked.accuracy,
    goal: str = Asked.goal,
    features: int | None = Asked.features,
    columns: str | Sequence[str] | None = None,
    ranges: str | os.PathLike[str] | None = None,
    days: int = Asked.days,
    expect: float = Asked.expect,
    loss: float = Asked.loss,
    noise: Table | None = None,
    delta: float = Asked.delta,
    chip: str | None = Asked.chip,
    radio: str = Asked.radio,
    battery_mah: float | None = Asked.battery_mah,
    compare: bool = False,
    told: Callable[[str], None] = lambda text: None,
) -> "Plan":
    """Design, interval, epsilon and energy of a deployment, all of it settled and the table proved.

    One of `devices`, `records_per_day`, `budget_epsilon`, `budget_days`, `every` and `accuracy` may be None, "?" or
    "solve": the plan solves for it. `told` hears what takes long.

        >>> import sensorsim as ss
        >>> found = ss.plan(features=14, devices=5000, budget_epsilon=1, budget_days=30)
        >>> found.asked.devices, 0 < found.half < 0.5
        (5000, True)
    """
    from sensorsim.datasets.public_ranges import ranges_for
    from sensorsim.planning.study_plan import plan as planned

    names = _names(columns)
    if ranges and not names:
        raise InputError("--ranges are those of columns; give --columns too.")
    open_: dict[str, Any] = {
        "devices": devices,
        "records_per_day": records_per_day,
        "budget_epsilon": budget_epsilon,
        "budget_days": budget_days,
        "every": every,
        "accuracy": accuracy,
    }
    asked = Asked(
        **{name: None if value in OPEN else value for name, value in open_.items()},
        goal=goal,
        features=features,
        columns=names,
        ranges=ranges_for(names, ranges) if ranges else None,
        days=days,
        expect=expect,
        loss=loss,
        noise=None if noise is None else read_table(noise),
        delta=delta,
        chip=chip,
        radio=radio,
        battery_mah=battery_mah,
    )
    return planned(asked, compare=compare, told=told)


def _names(columns: str | Sequence[str] | None) -> tuple[str, ...]:
    if columns is None:
        return ()
    if not len(columns) or (isinstance(columns, str) and not columns.strip(" ,")):
        raise InputError("--columns names none; give some, with commas, or --features.")
    return column_names(columns) or ()
