"""The answer first: a sentence each, and the numbers that a reader takes away."""

from typing import TYPE_CHECKING

from sensorsim.noise.certificate import format_epsilon as epsilon
from sensorsim.plan.words import span
from sensorsim.report.gather import Findings
from sensorsim.report.parts import Markup, paragraph, tag
from sensorsim.report.settings import overview
from sensorsim.report.words import energy, many, number, percent
from sensorsim.terminal import counted

if TYPE_CHECKING:
    from sensorsim.plan.protects import Spent


def opening(found: Findings) -> Markup:
    """Return the plan in words and numbers, then the settings of all parts: no other part has a headline."""
    numbers = tag("dl", *_numbers(found), class_="numbers")
    return tag("div", paragraph(_words(found), class_="lead"), numbers, *overview(found))


def month(found: Findings) -> "Spent":
    """What a person spends in any 30 days."""
    from sensorsim.plan.protects import MONTH

    return next(one for one in found.plan.protects.spent if one.days == MONTH)


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
    return " ".join(said)


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
    return [
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


def _cost(found: Findings) -> str:
    """Of a chip without a figure for a part of it, that there is none."""
    microjoule = found.plan.costs.microjoule
    return "an energy that is not known in full" if microjoule is None else energy(microjoule)


def _of_record(found: Findings) -> str:
    proved = found.certificate.epsilon_record
    return "without bound" if proved is None else epsilon(proved)
