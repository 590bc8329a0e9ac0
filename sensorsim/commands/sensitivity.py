"""`sensorsim sensitivity`: what the paper prints, the bound that its argument gives, and what holds."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError
from sensorsim._util.option_kinds import Number, Whole
from sensorsim._util.results import Result
from sensorsim._util.terminal import columns, fitting, fold, widest
from sensorsim.commands.declare import Command, option
from sensorsim.mechanisms.base import AUTHORS
from sensorsim.paper.printed_sensitivities import Sensitivity, sensitivity_table
from sensorsim.training.config import Config

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMA_VERSION = 2
LONGEST = 108  # characters of a line of words
MOST = 1e9  # of C and c: their squares are printed


@dataclass(frozen=True, repr=False)
class Sensitivities(Result):
    """The sensitivities of SPOF and DP-SGD at one setting."""

    setting: dict[str, float]
    found: tuple[Sensitivity, ...]

    def title(self) -> str:
        return "L1 sensitivity of one record, x in [0, 1]; " + ", ".join(
            f"{k} = {v:g}" for k, v in self.setting.items()
        )

    def facts(self) -> dict[str, str]:
        return {row.name: f"{_number(row.sensitivity)}; {_number(row.printed)} as printed" for row in self.found}

    def to_dict(self) -> dict[str, Any]:
        return {"schema_version": SCHEMA_VERSION, **self.setting, "rows": self.rows()}

    def rows(self) -> list[dict[str, Any]]:
        return [asdict(row) for row in self.found]

    def figure(self) -> "Figure":
        from sensorsim.paper.printed_sensitivities import sensitivity_figure

        made: Figure = sensitivity_figure(self.setting["C"], int(self.setting["n"]))
        return made


@dataclass(frozen=True)
class ShowSensitivity(Command[Sensitivities]):
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

    def run(self) -> Sensitivities:
        if self.l > self.n:
            raise InputError(f"l is {self.l} and n is {self.n}; an encoder compresses, so give l of at most n.")
        setting = {"a": self.a, "n": self.n, "l": self.l, "C": self.C, "c": self.c}
        return Sensitivities(setting, tuple(sensitivity_table(self.a, self.n, self.C, self.c, self.l)))

    def text(self, answer: Sensitivities) -> str:
        """Put the numbers of a row on a line and the reason below; the printed formula beside them where it fits."""
        width = columns()
        lines = [f"  {'':29}{'printed':>11}{'bound':>11}  {'sensitivity':>13}"]
        for row in answer.found:
            bound = f"{_number(row.bound):>11}{_mark(row.printed, row.bound)}"
            holds = f"{_number(row.sensitivity):>13}{_mark(row.bound, row.sensitivity)}"
            lines.append(f"  {row.name:29}{_number(row.printed):>11}{bound}{holds}")
        formulas = ["formula as printed", *(row.formula for row in answer.found)]
        beside = [f"{line:{widest(lines)}} {formula}" for line, formula in zip(lines, formulas, strict=True)]
        fits = widest(beside) <= width
        made = [*fitting(width, answer.title()), "", beside[0] if fits else lines[0]]
        for number, row in enumerate(answer.found, 1):
            why = row.why if fits else f"{row.formula}: {row.why}"
            made += [beside[number] if fits else lines[number], *fold(why, min(width, LONGEST), " " * 6)]
        other = "" if fits else "; the formula below it is as printed"
        return "\n".join(line.rstrip() for line in [*made, "", f"  ←: differs from the number on its left{other}"])


def _number(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 100_000 else f"{value:.5g}"


def _mark(left: float, right: float) -> str:
    return "  " if abs(left - right) < 1e-12 * max(1.0, abs(left)) else " ←"
