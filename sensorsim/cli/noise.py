"""sensorsim noise: make and check tables of noise. Each further subcommand is a module of its own, added below."""

import sys
from decimal import Decimal, InvalidOperation
from typing import Any

import click

from sensorsim.cli import noise_audit, noise_show
from sensorsim.cli.noise_report import data, row, text
from sensorsim.cli.output import emit, format_option
from sensorsim.errors import InputError


class Entries(click.ParamType[int]):
    """A count that may be written as a power: 16384 or 2^14."""

    name = "entries"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        base, _, power = str(value).partition("^")
        if not base.isdecimal() or (power and (not power.isdecimal() or int(power) > 64)) or str(value).endswith("^"):
            raise InputError(f"entries is {value}; give a power of two, as in 16384 or 2^14.")
        return int(base) ** int(power) if power else int(base)


@click.group()
def command() -> None:
    """Tables of noise with a proof of what they protect.

    Example: sensorsim noise make --epsilon 1 && sensorsim noise check stairs-eps1-all.txt
    """


@command.command()
@click.option("--kind", default="stairs", show_default=True, help="naive, quantile or stairs; only stairs are private.")
@click.option("--epsilon", required=True, help="Privacy budget of a whole record.")
@click.option("--features", default=14, show_default=True, help="Features of a record.")
@click.option("--release", default="all", show_default=True, metavar="all|K", help="Features released of each record.")
@click.option("--frac-bits", default=15, show_default=True, help="Fraction bits of x.")
@click.option("--entries", type=Entries(), default="2^14", show_default=True, help="Size, a power of two.")
@click.option("--clamped", default=0.1, show_default=True, help="Largest share of draws that stairs may clamp.")
@click.option("--limit", type=float, help="Clamp naive and quantile outputs to this many noise scales.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="For the samples of a naive table."
)
@click.option("--out", help="File to write. [default: KIND-epsEPSILON-RELEASE.txt]")
@format_option
def make(
    kind: str,
    epsilon: str,
    features: int,
    release: str,
    frac_bits: int,
    entries: int,
    clamped: float,
    limit: float | None,
    seed: int,
    out: str | None,
    fmt: str,
) -> None:
    """Make a table and prove what it protects.

    Example: sensorsim noise make --epsilon 1.6 --release 1 --entries 2^8
    """
    from sensorsim.privacy.tablefile import write_table
    from sensorsim.privacy.tables import make_table

    table = make_table(
        kind,
        epsilon,
        features,
        int(release) if release.isdecimal() else release,
        frac_bits,
        entries,
        seed,
        limit_scales=limit,
        most_clamped=clamped,
    )
    path = out or f"{kind}-eps{table.epsilon}-{release}.txt"
    write_table(path, table)
    emit(fmt, lambda: text(path, table), lambda: data(path, table), lambda: [row(path, table)])


@command.command()
@click.argument("file")
@click.option("--delta", default="0", show_default=True, help="Delta that is tolerated.")
@format_option
def check(file: str, delta: str, fmt: str) -> None:
    """Prove again, from its counts, what a table protects. Exit code 1 if it does not keep its epsilon.

    Example: sensorsim noise check stairs-eps1-all.txt
    """
    from dataclasses import replace

    from sensorsim.privacy.certificate import certify
    from sensorsim.privacy.tablefile import read_table

    table = read_table(file)
    proved = certify(table)
    same = proved == table.certificate
    table = replace(table, certificate=proved)
    holds = same and proved.holds(table.epsilon, _delta(delta))
    verdict = _verdict(table.epsilon, delta, same, holds)
    emit(
        fmt,
        lambda: f"{text(file, table)}\n\n{verdict}",
        lambda: {**data(file, table), "holds": holds, "verdict": verdict},
        lambda: [{**row(file, table), "holds": holds}],
    )
    if not holds:
        sys.exit(1)


def _verdict(epsilon: Decimal, delta: str, same: bool, holds: bool) -> str:
    if not same:
        return "REJECTED: the certificate in the file is not the one its counts prove."
    budget = f"epsilon {epsilon} per record with delta {delta}"
    return f"HOLDS: {budget}." if holds else f"REJECTED: this table does not keep {budget}."


def _delta(delta: str) -> Decimal:
    try:
        value = Decimal(delta)
    except InvalidOperation:
        value = Decimal(-1)
    if not value.is_finite() or not 0 <= value < 1:
        raise InputError(f"delta is {delta}; give a number from 0 to below 1, as in 1e-6.")
    return value


command.add_command(noise_show.command, "show")
command.add_command(noise_audit.command, "audit")
