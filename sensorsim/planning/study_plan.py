"""`plan(asked)`: the whole answer as one value, for the command line, JSON and notebooks."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError
from sensorsim._util.results import Result
from sensorsim._util.terminal import counted
from sensorsim.noise.certificate import format_epsilon as epsilon
from sensorsim.planning.deployment import COVARIANCE, MEAN, MODEL, Asked, Line, given, span
from sensorsim.planning.deployment_cost import Costs, cost_lines, costs, record_of
from sensorsim.planning.person_epsilon import ADAPTIVE, ANY_START, WITHOUT_IDENTITY, Protects, privacy_lines, protects
from sensorsim.planning.solve import Settled, solve
from sensorsim.planning.synthetic_people import (
    ON_OTHERS,
    PEOPLE_CLIPPED,
    SimulatedModel,
    column_variance,
    simulate_model,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sensorsim.noise.noise_table import NoiseTable
    from sensorsim.planning.strategies import Strategy

SCHEMA_VERSION = 1
SHOWN_LINES, SHOWN_CHARACTERS = 16, 60  # of a repr
CONTENT = "plan"
PRIVACY = "local, per person"
FIRMWARE = "sensorsim.device.firmware.Firmware"
HOLDS_FOR = (
    "an interval is of the mean of these devices' records, for people who do not know the day that is released (the "
    "schedule is public: who knows it may behave otherwise on it) and for packets that are lost independently of the "
    "value"
)
ON_AVERAGE = "a half width is that of the packets expected: half of all estimates have fewer, and are a little wider"
STRATEGIES_PEOPLE = "people who are uniform in the range and change once"
SKETCH_WITH = "for receive --write-sketch FILE --root R; of other people as much more as they spread more"
ONE_RELEASE = "time sampling there is one release a period"


@dataclass(frozen=True, repr=False)
class Plan(Result):
    """A settled deployment. `to_dict` is the JSON, `to_frame` the table for a notebook."""

    settled: Settled
    solved_for: str | None  # what was open
    protects: Protects
    costs: Costs
    model: "SimulatedModel | None" = None
    strategies: "tuple[Strategy, ...]" = ()

    def title(self) -> str:
        reached = "" if self.asked.goal == MODEL else f": ±{self.settled.estimand.format_half(self.half)}"
        often = span(given(self.asked.every))
        return f"Plan({counted(given(self.asked.devices), 'device')}, epsilon {self.asked.budget}{reached} {often})"

    def facts(self) -> dict[str, str]:
        found = {}
        for line in self.lines[:SHOWN_LINES]:
            found[line.name] = f"{_format_value(line)} {line.unit}"[:SHOWN_CHARACTERS]
        return found

    def figure(self) -> "Figure":
        """Draw interval against devices, for this budget and others."""
        from sensorsim.planning.plan_figure import plan_figure

        made: Figure = plan_figure(self)
        return made

    @property
    def asked(self) -> Asked:
        """The deployment with the open number filled in; the accuracy stays as it was asked."""
        return self.settled.asked

    @property
    def table(self) -> "NoiseTable":
        return self.settled.table

    @property
    def half(self) -> float:
        """Half the width of the 95 % interval of a mean, in ranges; or about that of a correlation."""
        return self.settled.half

    @property
    def in_units(self) -> list[tuple[str, float, str]]:
        """Column, half width and unit, where ranges are known and a mean is asked for."""
        if self.asked.goal != MEAN:
            return []
        return [(known.name, self.half * known.span, known.unit) for known in self.asked.ranges or ()]

    @property
    def lines(self) -> list[Line]:
        """Every number of the plan, each with the call that computes it again."""
        made = [*_design_lines(self.settled), *_accuracy_lines(self)]
        return [*made, *privacy_lines(self.settled, self.protects), *cost_lines(self.settled, self.costs)]

    def rows(self) -> list[dict[str, Any]]:
        return [line.to_dict() for line in self.lines]

    @property
    def notes(self) -> list[str]:
        """Assumptions, in sentences."""
        made = [ADAPTIVE, ANY_START]
        made.append(f"the shuffled epsilon holds {WITHOUT_IDENTITY}; it is no part of the local one")
        if self.asked.goal != MODEL:
            made += [HOLDS_FOR, ON_AVERAGE]
        if self.asked.goal == COVARIANCE:
            made.append(
                f"clipping is simulated on {PEOPLE_CLIPPED}, {ON_OTHERS}; a half width is a forecast, not proved"
            )
        if self.strategies:
            made.append(f"ways to spend the budget are simulated on {STRATEGIES_PEOPLE}; {_own_design(self.settled)}")
        return made

    def to_dict(self) -> dict[str, Any]:
        made: dict[str, Any] = {"schema_version": SCHEMA_VERSION, "content": CONTENT, "privacy": PRIVACY}
        made["asked"] = self.asked.to_dict()
        found = None if self.solved_for is None else made["asked"][self.solved_for]
        if self.solved_for == "accuracy" and not self.model:
            found = self.half
        made["solved_for"], made["solved"] = self.solved_for, found
        made["notes"] = self.notes
        made["lines"] = self.rows()
        made["model"] = asdict(self.model) if self.model else None
        made["strategies"] = [each.to_dict() for each in self.strategies]
        return made


def plan(asked: Asked | None = None, *, compare: bool = False, told: Callable[[str], None] = lambda text: None) -> Plan:
    """Choose the design, make and certify its table, and compute what it reaches, protects and costs.

    `compare` sets time sampling beside other ways to spend the budget, by simulation. `told` is called with the name of
    each long step.
    """
    asked = asked or Asked()
    record_of(asked.n, asked.chip, asked.radio, asked.battery_mah)  # refuses a wrong name at once
    told("choosing a design and making its table")
    settled = solve(asked)
    model = None
    if asked.goal == MODEL:
        told("simulating a model")
        model = simulate_model(settled.table, int(settled.packets))
    strategies: tuple[Any, ...] = ()
    if compare:
        told("simulating other ways to spend the budget")
        strategies = _compare(settled)
    return Plan(settled, asked.open, protects(settled), costs(settled), model, strategies)


def _compare(settled: Settled) -> "tuple[Strategy, ...]":
    from sensorsim.planning.strategies import compare

    asked, table, schedule = settled.asked, settled.table, settled.schedule
    if schedule.slots < 2:
        raise InputError("a budget period of one record leaves no choice to compare; give more days or records.")
    whole = table if schedule.allowed == 1 and table.symbols and table.release == 1 else None
    return compare(asked.budget, asked.n, schedule.slots, given(asked.devices), table=whole)


def _own_design(settled: Settled) -> str:
    """Say how the design of the plan differs from the time sampling that is compared."""
    releases, k = settled.schedule.allowed, settled.table.release
    if (releases, k) == (1, 1):
        return ONE_RELEASE
    return f"{ONE_RELEASE}, and this plan has {releases:,} of {counted(k, 'feature')}"


def _format_value(line: Line) -> str:
    if not isinstance(line.value, int | float):
        return str(line.value)
    return epsilon(line.value, 6) if line.unit.startswith("epsilon") else f"{line.value:,.6g}"


def _design_lines(settled: Settled) -> list[Line]:
    asked, table = settled.asked, settled.table
    firmware = f"{FIRMWARE}(table, budget_epsilon={str(asked.budget)!r}, budget_days={asked.budget_days})"
    schedule = f"sensorsim.device.schedule.Schedule.of({firmware}, {asked.records_per_day})"
    proof = "sensorsim.noise.certificate.certify(table)"
    within = f"in {counted(given(asked.budget_days), 'day')}"

    def features(count: int) -> str:
        return "feature" if count == 1 else "features"

    return [
        Line("features of a record", table.features, features(table.features), "table.features"),
        Line("features released of a record", table.release, features(table.release), "table.release"),
        Line("epsilon of a release, proved", float(settled.firmware.epsilon), "epsilon, delta 0",
             f"float({proof}.epsilon_record)"),
        Line("releases that the budget pays for", settled.firmware.releases, within,
             f"{firmware}.releases"),
        Line("records of a budget period", settled.schedule.slots, within, f"{schedule}.slots"),
        Line("records released of them", settled.schedule.allowed, within,
             f"{schedule}.allowed"),
        Line("noise of a value, at the worst x", table.estimate_sd, "ranges, sd", "table.estimate_sd"),
    ]  # fmt: skip


def _accuracy_lines(plan: Plan) -> list[Line]:
    settled, asked = plan.settled, plan.asked
    numbers = (asked.devices, asked.every, asked.budget_days, settled.schedule.allowed, asked.loss)
    arriving = f"sensorsim.planning.packets({', '.join(map(repr, numbers))})"
    within = f"in {counted(given(asked.every), 'day')}"
    made = [Line("packets of an estimate", float(settled.packets), within, f"float({arriving})")]
    if asked.goal == MODEL and plan.model:
        how = f"sensorsim.planning.simulate_model(table, int({arriving}))"
        made.append(Line("accuracy of the model", plan.model.accuracy, "%, 1 - MSE", f"{how}.accuracy"))
        made.append(Line("R² of the model", plan.model.r2, "over the column means", f"{how}.r2"))
        return made
    if asked.goal == COVARIANCE:
        return made + _correlation_lines(settled)
    share = f"{arriving} * table.release / table.features"
    made.append(Line("values of a feature", settled.count, within, f"int({share})"))
    sd = f"sensorsim.planning.value_sd(table, {asked.expect!r}) / {settled.count} ** 0.5"
    made.append(Line("standard error", settled.sd, "ranges", sd if settled.sd is not None else "None"))
    half = f"sensorsim.planning.mean_half(table, {settled.count}, {asked.expect!r})"
    made.append(Line("95 % interval, half width", plan.half, "ranges", half))
    for known, (name, value, unit) in zip(asked.ranges or (), plan.in_units, strict=True):
        made.append(Line(f"95 % interval of {name}, half width", value, unit, f"{half} * {known.span!r}"))
    return made


def _correlation_lines(settled: Settled) -> list[Line]:
    found, n = settled.correlation, settled.asked.n
    variance = f"sensorsim.planning.column_variance({n})"
    made = [Line("variance of a column", column_variance(n), f"ranges², of {PEOPLE_CLIPPED}", variance)]
    if found is None:
        return [*made, Line("half width, about", settled.half, "of a correlation", "1.0")]
    how = f"sensorsim.planning.correlation(table, {n}, {settled.count})"
    unit = f"of a correlation, on {PEOPLE_CLIPPED}; {ON_OTHERS}"
    return [
        *made,
        Line("bound R of the sketch", found.root, SKETCH_WITH, f"{how}.root"),
        Line("bound R in deviations of a sketch", found.reach, "standard deviations", f"{how}.reach"),
        Line("bias by clipping, largest", found.bias, unit, f"{how}.bias"),
        Line("standard error", found.sd, unit, f"{how}.sd"),
        Line("half width, about", found.half, f"{unit}; bias and 1.96 standard errors", f"{how}.half"),
    ]
