"""`sensorsim sensitivity`: what the paper prints, the bound that its argument gives, and what holds."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial

from sensorsim._util.errors import InputError
from sensorsim._util.option_kinds import Number, Whole
from sensorsim._util.results import Listing
from sensorsim._util.terminal import columns, fitting, fold, widest
from sensorsim.commands.declare import Command, option
from sensorsim.mechanisms.base import AUTHORS
from sensorsim.paper.printed_sensitivities import Sensitivity, sensitivity_table
from sensorsim.training.config import Config

SCHEMA_VERSION = 2
LONGEST = 108  # characters of a line of words
MOST = 1e9  # of C and c: their squares are printed


@dataclass(frozen=True)
class ShowSensitivity(Command[Listing]):
    """Printed: as in the paper. Bound: what its argument gives, corrected. Sensitivity: the largest L1 distance of two
    records, which is what noise must be scaled to. Each difference has its reason.
    """

    example = "sensorsim sensitivity --n 14 --l 7 --plot sensitivity.png"
    plots = "Draw them over a into an .svg, .png or .pdf file."

    a: float = option(0.0, Number(-100, 100), "Expansion point.")
    n: int = option(14, Whole(1), "Features of a record.")
    l: int = option(7, Whole(1), "Hidden units.")
    C: float = option(AUTHORS["C"], Number(most=MOST, above=0), "Clipping norm C of DP-SGD.", flag="clip")
    c: float = option(Config.c, Number(0, MOST), "Stabilization constant c.", flag="constant")

    def run(self) -> Listing:
        from sensorsim.paper.printed_sensitivities import sensitivity_figure

        if self.l > self.n:
            raise InputError(f"l is {self.l} and n is {self.n}; an encoder compresses, so give l of at most n.")
        setting = {"a": self.a, "n": self.n, "l": self.l, "C": self.C, "c": self.c}
        found = sensitivity_table(self.a, self.n, self.C, self.c, self.l)
        rows = [asdict(row) for row in found]
        said = {row.name: f"{_number(row.sensitivity)}; {_number(row.printed)} as printed" for row in found}
        values = ", ".join(f"{name} = {value:g}" for name, value in setting.items())
        title = f"L1 sensitivity of one record, x in [0, 1]; {values}"
        data = {"schema_version": SCHEMA_VERSION, **setting, "rows": rows}
        return Listing(
            title, rows, data, lambda _: sensitivity_figure(self.C, self.n), said, partial(_text, title, found)
        )


def _text(title: str, found: Sequence[Sensitivity]) -> str:
    """Put the numbers of a row on a line and the reason below; the printed formula beside them where it fits."""
    width = columns()
    lines = [f"  {'':29}{'printed':>11}{'bound':>11}  {'sensitivity':>13}"]
    for row in found:
        bound = f"{_number(row.bound):>11}{_mark(row.printed, row.bound)}"
        holds = f"{_number(row.sensitivity):>13}{_mark(row.bound, row.sensitivity)}"
        lines.append(f"  {row.name:29}{_number(row.printed):>11}{bound}{holds}")
    formulas = ["formula as printed", *(row.formula for row in found)]
    beside = [f"{line:{widest(lines)}} {formula}" for line, formula in zip(lines, formulas, strict=True)]
    fits = widest(beside) <= width
    shown = beside if fits else lines
    made = [*fitting(width, title), "", shown[0]]
    for row, line in zip(found, shown[1:], strict=True):
        why = row.why if fits else f"{row.formula}: {row.why}"
        made += [line, *fold(why, min(width, LONGEST), " " * 6)]
    other = "" if fits else "; the formula below it is as printed"
    return "\n".join(line.rstrip() for line in [*made, "", f"  ←: differs from the number on its left{other}"])


def _number(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 100_000 else f"{value:.5g}"


def _mark(left: float, right: float) -> str:
    return "  " if abs(left - right) < 1e-12 * max(1.0, abs(left)) else " ←"
