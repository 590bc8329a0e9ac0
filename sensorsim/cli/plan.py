"""`sensorsim plan`."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sensorsim._util import progress
from sensorsim._util.errors import InputError
from sensorsim.api.planning import OPEN, plan
from sensorsim.cli.choices import CHIP, COLUMNS, FIGURE, FILE, RADIO, TABLE, WRITTEN
from sensorsim.cli.defaults import options_of
from sensorsim.cli.output import emit, format_option
from sensorsim.planning.deployment import GOALS

if TYPE_CHECKING:
    from sensorsim.planning import Plan

option = options_of(plan)
Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class OrOpen(click.ParamType[Any]):
    """Take a number, or '?' or the word solve for what the plan is to solve for."""

    name = "number|'?'"

    def __init__(self, kind: type) -> None:
        self.kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value in OPEN:
            return value
        try:
            return self.kind(value)
        except ValueError:
            what = param.name.replace("_", " ") if param and param.name else "it"
            kind = "whole number" if self.kind is int else "number"
            raise InputError(f"{what} is {value}; give a {kind}, or '?' or solve to have it solved for.") from None


def _option(name: str, kind: type, text: str) -> Callable[[Decorated], Decorated]:
    """A number that may be left open."""
    return option(f"--{name.replace('_', '-')}", name, type=OrOpen(kind), help=text)


@click.command()
@click.option("--features", type=int, help="Features of a record.  [default: 14]")
@click.option(
    "--columns", type=COLUMNS, metavar="A,B", help="Their names, with commas: intervals are told in their units too."
)
@click.option("--ranges", type=FILE, help="Public ranges of the columns.  [default: those that are ready]")
@_option("devices", int, "Devices of the fleet.")
@_option("records_per_day", int, "Records that a device makes.")
@_option("budget_epsilon", str, "Epsilon of a person in a budget period.")
@_option("budget_days", int, "Days of a budget period.")
@_option("every", int, "Days that one estimate is made of.")
@_option(
    "accuracy", float, "Half width of the 95 % interval, as a share of the range: 0.02 is 2 %; of a correlation about."
)
@option(
    "--for", "goal", type=click.Choice(GOALS), help="What is estimated: every mean, the covariance, or a linear model."
)
@option("--days", help="Days that the fleet runs.")
@option("--expect", help="Mean that is planned for, as a share of the range; at 0.5 the interval is widest.")
@click.option("--noise", type=TABLE, help="Take this noise table in place of the best one.")
@click.option("--chip", type=CHIP, help="A chip, for energy; `sensorsim cpus` lists them, or FILE.csv with your own.")
@option("--radio", type=RADIO, help="What sends: ble-2m, 802154, lora-sf7 …")
@click.option("--battery-mah", type=float, help="Also what the releases take of a battery.")
@option("--delta", help="Of the epsilon by distributions.")
@option("--loss", help="Share of the packets that are lost.")
@click.option("--write-table", type=WRITTEN, help="Write the noise table, for `fleet` and `export`.")
@click.option("--plot", type=FIGURE, help="Draw interval against devices into an .svg, .png or .pdf file.")
@click.option("--compare", is_flag=True, help="Also other ways to spend the budget, by simulation.")
@format_option
def command(
    columns: str | None,
    ranges: str | None,
    noise: str | None,
    write_table: str | None,
    plot: str | None,
    compare: bool,
    fmt: str,
    **chosen: Any,
) -> None:
    """What a fleet can reach under a budget per person: design, interval, epsilon and energy, before it is built.

    One of --devices, --records-per-day, --budget-epsilon, --budget-days, --every and --accuracy may be '?', quoted for
    the shell, or solve, and the plan solves for it; an accuracy that is not given is. Exit code 2 where an accuracy is
    not reached, with what would.
    The interval is of the mean of these devices' records, for people who do not know the day that is released and for
    packets that are lost independently of the value.

    \b
    Example: sensorsim plan --columns TotalSteps --devices 5000 --accuracy 0.02 \\
               --budget-epsilon 1 --budget-days 30
             sensorsim plan --devices '?' --accuracy 0.02 --write-table noise.txt
    """
    if plot:
        from sensorsim.planning.plan_figure import check_goal

        check_goal(chosen["goal"])
    found = _made({**chosen, "columns": columns, "ranges": ranges, "noise": noise, "compare": compare})
    if write_table:
        from sensorsim.api.noise import write_table as write

        write(write_table, found.table)
    if plot:
        from sensorsim.planning.plan_figure import draw

        draw(found, plot)
    emit(fmt, lambda: _text(found), found.to_dict, found.rows)


def _made(chosen: dict[str, Any]) -> "Plan":
    """The plan; what takes long is told on stderr, once it has taken long."""
    with progress.phases("planning") as told:
        return plan(**chosen, told=told)


def _text(found: "Plan") -> str:
    from sensorsim.planning.plan_text import plan_text

    return plan_text(found)
