"""sensorsim noise: make and check tables of noise. Each further subcommand is a module of its own, added below."""

import sys
from pathlib import Path
from typing import Any

import click

from sensorsim._util.errors import InputError
from sensorsim._util.files import check_takes_files
from sensorsim._util.terminal import columns, hung
from sensorsim.api.noise import certify, noise_table, write_table
from sensorsim.cli import noise_audit, noise_peers, noise_show
from sensorsim.cli.choices import FILE, KIND, WRITTEN
from sensorsim.cli.defaults import options_of
from sensorsim.cli.noise_report import data, row, text
from sensorsim.cli.output import emit, format_option
from sensorsim.noise.kinds import KINDS

option = options_of(noise_table)


class Count(click.ParamType[int]):
    """A count that may be written as a power: 16384 or 2^14, and 2^2+1."""

    name = "count"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        words, _, more = str(value).partition("+")
        base, mark, power = words.partition("^")
        parts = [base, *([power] if mark else []), *([more] if "+" in str(value) else [])]
        if not all(part.isdecimal() and len(part) < 12 for part in parts) or (mark and int(power) > 64):
            what = param.name if param else "it"
            raise InputError(f"{what} is {value}; give a whole number, as in 16384 or 2^14, and 2^2+1 for knots.")
        return (int(base) ** int(power) if mark else int(base)) + (int(more) if more else 0)


@click.group()
def command() -> None:
    """Tables of noise with a proof of what they protect.

    Example: sensorsim noise make --epsilon 1 && sensorsim noise check rows-eps1-all.txt
    """


@command.command()
@option("--kind", type=KIND, help=f"{', '.join(KINDS)}; only rows and stairs are private.")
@click.option("--epsilon", required=True, help="Privacy budget of a whole record.")
@option("--features", help="Features of a record.")
@option("--release", metavar="all|K", help="Features released of each record.")
@option("--frac-bits", help="Fraction bits of x.")
@option("--symbols", type=Count(), help="rows: how many symbols.  [default: the fewest that lose little]")
@option("--knots", type=Count(), help="rows: how many knots, 2^j+1.  [default: the fewest that lose little]")
@option("--count-bits", type=int, help="rows: 16, drawn by thresholds, or 8, by one load.  [default: 16]")
@option("--entries", type=Count(), help="stairs, naive, quantile: size, a power of two.  [default: 2^14]")
@option(
    "--clamped", type=float, help="stairs: largest share of draws that may be clamped.  [default: what loses least]"
)
@option("--limit", type=float, help="naive, quantile: clamp outputs to this many noise scales.")
@option("--seed", type=click.IntRange(min=0), help="naive: of its samples.  [default: 0]")
@click.option("--out", type=WRITTEN, help="File to write. [default: KIND-epsEPSILON-RELEASE.txt]")
@format_option
def make(
    kind: str,
    epsilon: str,
    features: int,
    release: str,
    frac_bits: int,
    symbols: int | None,
    knots: int | None,
    count_bits: int | None,
    entries: int | None,
    clamped: float | None,
    limit: float | None,
    seed: int | None,
    out: str | None,
    fmt: str,
) -> None:
    """Make a table and prove what it protects.

    Example: sensorsim noise make --epsilon 1.6 --release 1
    """
    if out is None:
        check_takes_files(Path.cwd(), "the table")
    table = noise_table(
        epsilon,
        features,
        release,
        kind,
        frac_bits,
        symbols=symbols,
        knots=knots,
        count_bits=count_bits,
        entries=entries,
        clamped=clamped,
        limit=limit,
        seed=seed,
    )
    path = f"{kind}-eps{table.epsilon}-{release}.txt" if out is None else out
    write_table(path, table)
    emit(fmt, lambda: text(path, table), lambda: data(path, table), lambda: [row(path, table)])


@command.command(short_help="Prove again, from its counts, what a table protects.")
@click.argument("file", type=FILE)
@options_of(certify)("--delta", help="Delta that is tolerated.")
@format_option
def check(file: str, delta: str, fmt: str) -> None:
    """Prove again, from its counts, what a table protects, and how much noise that takes beside others.

    Exit code 1 if it does not keep its epsilon.

    Example: sensorsim noise check rows-eps1-all.txt
    """
    found = certify(file, delta)
    emit(fmt, lambda: hung(f"{text(file, found.table)}\n\n{found.verdict}", columns()), found.to_dict, found.rows)
    if not found.holds:
        sys.exit(1)


command.add_command(noise_show.command, "show")
command.add_command(noise_audit.command, "audit")
command.add_command(noise_peers.command, "peers")
