"""The answer first: a sentence each, and the numbers that a reader takes away."""

from typing import TYPE_CHECKING

from sensorsim.plan.words import span
from sensorsim.privacy.rounded import epsilon
from sensorsim.report.gather import Findings
from sensorsim.report.parts import Markup, paragraph, tag
from sensorsim.report.words import energy, many, number, percent, score
from sensorsim.terminal import counted

if TYPE_CHECKING:
    from sensorsim.plan.protects import Spent
    from sensorsim.train.kept import KeptCell


def opening(found: Findings) -> Markup:
    return tag("div", paragraph(_words(found), class_="lead"), tag("dl", *_numbers(found), class_="numbers"))


def month(found: Findings) -> "Spent":
    """What a person spends in any 30 days."""
    from sensorsim.plan.protects import MONTH

    return next(one for one in found.plan.protects.spent if one.days == MONTH)


def best_cell(found: Findings) -> "KeptCell | None":
    """Of the sweep's cells whose raw records stay on the body and whose epsilon has a bound, the most accurate."""
    cells = found.sweep.cells if found.sweep else ()
    bounded = [one for one in cells if one.trust == "local" and one.spent_epsilon is not None]
    known = [one for one in bounded if one.accuracy is not None]
    return max(known, key=lambda one: one.accuracy or 0.0, default=None)


def _words(found: Findings) -> str:
    plan, costs = found.plan, found.plan.costs
    asked, person = plan.asked, month(found)
    often = span(found.wanted.every)
    said = [
        f"One private record of {counted(asked.n, 'feature')} costs {_cost(found)} on the {costs.chip}: "
        f"{number(costs.cycles)} cycles and {counted(costs.bytes, 'byte')} by {costs.radio}.",
        f"It is protected with epsilon {_of_record(found)} at delta 0, proved just now, and a person with at most "
        f"epsilon {epsilon(person.basic)} in any 30 days, whoever reads the packets.",
        f"From {counted(found.wanted.devices, 'device')} it delivers the mean of every feature to "
        f"±{percent(plan.half)} of its range {often}, with 95 % confidence.",
    ]
    cell = best_cell(found)
    if cell is not None:
        said.append(
            f"In the sweep, {cell.mechanism} at epsilon {cell.nominal_epsilon:g} a record reconstructs "
            f"{score(cell.accuracy)} % ({_trivial(found, cell)})."
        )
    return " ".join(said)


def _trivial(found: Findings, cell: "KeptCell") -> str:
    """What needs no private record at all, on the same data."""
    scores = [one for one in (found.sweep.trivial if found.sweep else ()) if one.sigma == cell.sigma]
    shown = [one for one in scores if one.name in ("column mean", "zeros")]
    return ", ".join(f"{one.name} {score(one.accuracy)} %" for one in shown) or "no trivial predictor is stored"


def _numbers(found: Findings) -> list[Markup]:
    return [
        tag("div", tag("dt", name), tag("dd", value, class_="big"), tag("dd", note))
        for name, value, note in headlines(found)
    ]


def headlines(found: Findings) -> list[tuple[str, str, str]]:
    """What is answered, the number, and what it is of."""
    plan, costs, person = found.plan, found.plan.costs, month(found)
    charge = costs.microjoule and found.record.joule and found.record.joule * 1e6 / costs.microjoule
    battery = f"; a battery of {found.wanted.battery_mah:g} mAh pays for {many(charge)}" if charge else ""
    tiles = [
        ("costs a record", energy(costs.microjoule), f"{number(costs.cycles)} cycles{battery}"),
        ("protects a record", f"ε {_of_record(found)}", "delta 0, for every pair of records; proved just now"),
        (
            "protects a person", f"ε {epsilon(person.basic)}",
            f"in any 30 days, {counted(person.releases, 'release')} at most; delta 0",
        ),
        (
            "delivers", f"±{percent(plan.half)}",
            f"of a range: every mean {span(found.wanted.every)}, {counted(found.wanted.devices, 'device')}, 95 %",
        ),
    ]  # fmt: skip
    cell = best_cell(found)
    if cell is not None:
        at = f"{cell.mechanism} at epsilon {cell.nominal_epsilon:g}; {_trivial(found, cell)}"
        tiles.append(("reconstructs", f"{score(cell.accuracy)} %", at))
    return tiles


def _cost(found: Findings) -> str:
    """Of a chip without a figure for a part of it, that there is none."""
    microjoule = found.plan.costs.microjoule
    return "an energy that is not known in full" if microjoule is None else energy(microjoule)


def _of_record(found: Findings) -> str:
    proved = found.certificate.epsilon_record
    return "without bound" if proved is None else epsilon(proved)
