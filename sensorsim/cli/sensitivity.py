"""sensorsim sensitivity: what the paper prints, the bound that its argument gives, and what holds."""

from dataclasses import asdict

import click

from sensorsim._util.errors import InputError
from sensorsim._util.terminal import columns, fitting, fold, widest
from sensorsim.cli.choices import FIGURE
from sensorsim.cli.defaults import options_of
from sensorsim.cli.output import emit, format_option
from sensorsim.costing.cost_report import cost
from sensorsim.mechanisms.base import AUTHORS
from sensorsim.paper.printed_sensitivities import Sensitivity, sensitivity_figure, sensitivity_table
from sensorsim.training.config import Config

LONGEST = 108  # characters of a line of words
MOST = 1e9  # of C and c: their squares are printed


@click.command()
@click.option("--a", default=0.0, show_default=True, help="Expansion point.")
@options_of(cost)("--n", help="Features of a record.")
@options_of(cost)("--l", "hidden", help="Hidden units.")
@click.option("--clip", "C", default=AUTHORS["C"], show_default=True, help="Clipping norm C of DP-SGD.")
@click.option("--constant", "c", default=Config.c, show_default=True, help="Stabilization constant c.")
@click.option("--plot", type=FIGURE, help="Draw sensitivity against a to this .png, .svg or .pdf.")
@format_option
def command(a: float, n: int, hidden: int, C: float, c: float, plot: str | None, fmt: str) -> None:
    """Sensitivities of SPOF and DP-SGD, with the reason for each difference.

    Printed: as in the paper. Bound: what its argument gives, put right. Sensitivity: the largest L1 distance of two
    records, which is what noise must be scaled to.

    Example: sensorsim sensitivity --n 14 --l 7 --plot sensitivity.png
    """
    if not abs(a) <= 100:
        raise InputError(f"a is {a}; give an expansion point from -100 to 100.")
    if not 1 <= hidden <= n:
        if n < 1:
            raise InputError(f"n is {n}; a record has features, so give --n of at least 1.")
        raise InputError(f"l is {hidden} and n is {n}; an encoder compresses, so give --l between 1 and {max(n, 1)}.")
    if not (0 < C <= MOST and 0 <= c <= MOST):
        raise InputError(f"C is {C} and c is {c}; give --clip above 0, --constant of 0 or more, both up to {MOST:g}.")
    rows = sensitivity_table(a, n, C, c, hidden)
    if plot:
        from sensorsim.noise.noise_figures import save

        save(sensitivity_figure(C, n), plot)
        click.echo(f"Drawn to {plot}.", err=True)
    head = {"a": a, "n": n, "l": hidden, "C": C, "c": c}
    emit(
        fmt,
        lambda: _text(head, rows, columns()),
        lambda: {"schema_version": 2, **head, "rows": [asdict(r) for r in rows]},
        lambda: [asdict(r) for r in rows],
    )


def _text(head: dict[str, float], rows: list[Sensitivity], width: int) -> str:
    """The numbers of a row on a line, the reason below; the printed formula at the end of the line where all fit."""
    title = "L1 sensitivity of one record, x in [0, 1]; " + ", ".join(f"{k} = {v:g}" for k, v in head.items())
    table = [f"  {'':29}{'printed':>11}{'bound':>11}  {'sensitivity':>13}"]
    for r in rows:
        bound = f"{_number(r.bound):>11}{_mark(r.printed, r.bound)}"
        holds = f"{_number(r.sensitivity):>13}{_mark(r.bound, r.sensitivity)}"
        table.append(f"  {r.name:29}{_number(r.printed):>11}{bound}{holds}")
    formulas = ["formula as printed", *(r.formula for r in rows)]
    beside = [f"{line:{widest(table)}} {formula}" for line, formula in zip(table, formulas, strict=True)]
    fits = widest(beside) <= width
    lines = [*fitting(width, title), "", beside[0] if fits else table[0]]
    for number, r in enumerate(rows, 1):
        why = r.why if fits else f"{r.formula}: {r.why}"
        lines += [beside[number] if fits else table[number], *fold(why, min(width, LONGEST), " " * 6)]
    other = "" if fits else "; the formula below it is as printed"
    lines += ["", f"  ←: differs from the number on its left{other}"]
    return "\n".join(line.rstrip() for line in lines)


def _number(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 100_000 else f"{value:.5g}"


def _mark(left: float, right: float) -> str:
    return "  " if abs(left - right) < 1e-12 * max(1.0, abs(left)) else " ←"
