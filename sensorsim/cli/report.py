"""`sensorsim report`: one page, self-contained."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from sensorsim._util import progress
from sensorsim.cli.choices import CHIP, DIR, FILE, RADIO, TABLE, WRITTEN
from sensorsim.reporting.request import ReportRequest

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def _option(name: str, text: str, **more: Any) -> Callable[[Decorated], Decorated]:
    """With the default of `ReportRequest`."""
    default = ReportRequest.__dataclass_fields__[name].default
    return click.option(
        f"--{name.replace('_', '-')}", name, default=default, show_default=default is not None, help=text, **more
    )


@click.command()
@click.option("--out", required=True, type=WRITTEN, help="The page, as in report.html.")
@_option("sweep", "Results of `sensorsim sweep`: accuracies beside trivial predictors.", type=FILE)
@_option("package", "A package of `sensorsim export`: its sizes, its table proved again.", type=DIR)
@_option("fleet", "What `sensorsim fleet --out` wrote: estimates, and how many intervals hold.", type=FILE)
@_option("noise", "Take this noise table in place of the best one.", type=TABLE)
@_option("n", "Features of a record.", type=int)
@_option("l", "Hidden units of the encoder.", type=int)
@_option("devices", "Devices of the fleet.", type=int)
@_option("records_per_day", "Records that a device makes.", type=int)
@_option("budget_epsilon", "Epsilon of a person in a budget period.", type=str)
@_option("budget_days", "Days of a budget period.", type=int)
@_option("every", "Days that one estimate is made of.", type=int)
@_option("chip", "A chip, for energy; `sensorsim cpus` lists them, or FILE.csv with your own.", type=CHIP)
@_option("radio", "What sends: ble-2m, 802154, lora-sf7 …", type=RADIO)
@_option("battery_mah", "A battery that the records are paid from.", type=float)
@click.option("--claims/--no-claims", default=ReportRequest.claims, show_default=True, help="Recompute the claims too.")
def command(out: str, **chosen: Any) -> None:
    """One page on what a private record costs, protects and delivers, for people who run no commands.

    A single HTML file, without script and without any request: for a phone, for print, for a screen reader. All of it
    is computed or proved now, or read from the files that are given; below each section stands the command that
    computes it again, but for what was read from a file. The same input gives the same bytes.

    Example: sensorsim report --out report.html --fleet fleet.sqlite --package firmware/privacy
    """
    from sensorsim.reporting.page import report

    with progress.phases("starting") as told:
        made = report(told=told, **chosen)
    made.write(out)
    click.echo(f"{out}: {len(made.html.encode()):,} bytes")
