"""sensorsim sensitivity: what the paper prints beside what holds."""

from dataclasses import asdict

import click

from sensorsim.cli.output import emit, format_option
from sensorsim.errors import InputError
from sensorsim.privacy import sensitivity
from sensorsim.privacy.sensitivity import Sensitivity


@click.command()
@click.option("--a", default=0.0, show_default=True, help="Expansion point.")
@click.option("--n", default=14, show_default=True, help="Features of a record.")
@click.option("--l", "hidden", default=7, show_default=True, help="Hidden units.")
@click.option("--clip", "C", default=4.0, show_default=True, help="Clipping norm C of DP-SGD.")
@click.option("--constant", "c", default=2.5, show_default=True, help="Stabilization constant c.")
@click.option("--plot", help="Draw sensitivity against a to this .png, .svg or .pdf.")
@format_option
def command(a: float, n: int, hidden: int, C: float, c: float, plot: str | None, fmt: str) -> None:
    """Sensitivities of SPOF and DP-SGD, printed and true, with the reason for each difference.

    Example: sensorsim sensitivity --n 14 --l 7 --plot sensitivity.png
    """
    if not abs(a) <= 100:
        raise InputError(f"a is {a}; give an expansion point from -100 to 100.")
    if not 1 <= hidden <= n:
        if n < 1:
            raise InputError(f"n is {n}; a record has features, so give --n of at least 1.")
        raise InputError(f"l is {hidden} and n is {n}; an encoder compresses, so give --l between 1 and {max(n, 1)}.")
    if not (0 < C < float("inf") and 0 <= c < float("inf")):
        raise InputError(f"C is {C} and c is {c}; give --clip above 0 and --constant of 0 or more.")
    rows = sensitivity.table(a, n, C, c, hidden)
    if plot:
        from sensorsim.privacy.figures import draw_sensitivity

        draw_sensitivity(plot, C, n)
        click.echo(f"Drawn to {plot}.", err=True)
    head = {"a": a, "n": n, "l": hidden, "C": C, "c": c}
    emit(
        fmt,
        lambda: _text(head, rows),
        lambda: {"schema_version": 1, **head, "rows": [asdict(r) for r in rows]},
        lambda: [asdict(r) for r in rows],
    )


def _text(head: dict[str, float], rows: list[Sensitivity]) -> str:
    lines = ["L1 sensitivity of one record, x in [0, 1]; " + ", ".join(f"{k} = {v:g}" for k, v in head.items()), ""]
    lines.append(f"  {'':33}{'printed':>10}{'true':>10}   formula as printed")
    for r in rows:
        mark = " " if abs(r.printed - r.true) < 1e-12 else "←"
        lines.append(f"  {r.name:33}{r.printed:10.4f}{r.true:10.4f} {mark} {r.formula}")
        lines.append(f"      {r.why}")
    return "\n".join(lines)
