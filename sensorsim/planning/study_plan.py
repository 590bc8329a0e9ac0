"""`plan(asked)`: the whole answer as one value, for the command line, JSON and notebooks.

Costs are those of the sensor in `sensorsim cost`, with the packet of this table: a release of more features has the
arithmetic of one for each of them, and as many blocks of the generator as its words take. Sensing, sleep, records that
are not released and the upkeep of a link are not included.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError
from sensorsim._util.results import Result
from sensorsim._util.terminal import counted
from sensorsim.costing.record_energy import (
    NANOJOULES_PER_MICROJOULE,
    SENSOR,
    Choices,
    Part,
    RecordPricer,
    WholeRecord,
    check_day,
    resolve_choices,
)
from sensorsim.noise.certificate import format_epsilon as epsilon
from sensorsim.noise.noise_table import NoiseTable
from sensorsim.planning.deployment import COVARIANCE, MEAN, MODEL, Asked, Line, given, span
from sensorsim.planning.person_epsilon import ADAPTIVE, ANY_START, WITHOUT_IDENTITY, Protects, privacy_lines, protects
from sensorsim.planning.solve import Settled, solve
from sensorsim.planning.strategies import Strategy
from sensorsim.planning.strategies import compare as compare_strategies
from sensorsim.planning.synthetic_people import (
    ON_OTHERS,
    PEOPLE_CLIPPED,
    SimulatedModel,
    column_variance,
    simulate_model,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
DAYS_PER_YEAR = 365.25
MICROJOULES_PER_JOULE = 1_000_000


@dataclass(frozen=True)
class Costs:
    """Costs of one device. Energies are None where the tables have no figure for a part of the chip."""

    chip: str
    radio: str
    cycles: float
    bytes: int
    on_air_ms: float
    microjoule: float | None  # of a release
    releases_per_day: float
    microjoule_per_day: float | None
    table_bytes: int
    battery_share: float | None  # of a charge that the releases of the whole run take; None also without a battery
    battery_years: float | None  # of releases alone that a charge pays for


@dataclass(frozen=True, repr=False)
class Plan(Result):
    """A settled deployment. `to_dict` is the JSON, `to_frame` the table for a notebook."""

    settled: Settled
    solved_for: str | None  # what was open
    protects: Protects
    costs: Costs
    model: SimulatedModel | None = None
    strategies: tuple[Strategy, ...] = ()

    def title(self) -> str:
        reached = "" if self.asked.goal == MODEL else f": ±{self.settled.estimand.format_half(self.half)}"
        often = span(given(self.asked.every))
        return f"Plan({counted(given(self.asked.devices), 'device')}, epsilon {self.asked.budget}{reached} {often})"

    def facts(self) -> dict[str, str]:
        found = {}
        for name, value, unit, _ in self.lines[:SHOWN_LINES]:
            text = str(value)
            if isinstance(value, int | float):
                text = epsilon(value, 6) if unit.startswith("epsilon") else f"{value:,.6g}"
            found[name] = f"{text} {unit}"[:SHOWN_CHARACTERS]
        return found

    def figure(self) -> "Figure":
        """Draw interval against devices, for this budget and others."""
        from sensorsim.planning.plan_figure import plan_figure

        made: Figure = plan_figure(self)
        return made

    @property
    def asked(self) -> Asked:
        """Return the deployment with the open number filled in; the accuracy stays as it was asked."""
        return self.settled.asked

    @property
    def table(self) -> NoiseTable:
        return self.settled.table

    @property
    def half(self) -> float:
        """Return half the width of the 95 % interval of a mean, in ranges; or about that of a correlation."""
        return self.settled.half

    @property
    def in_units(self) -> list[tuple[str, float, str]]:
        """Return column, half width and unit, where ranges are known and a mean is asked for."""
        if self.asked.goal != MEAN:
            return []
        return [(known.name, self.half * known.span, known.unit) for known in self.asked.ranges or ()]

    @property
    def lines(self) -> list[Line]:
        """Return every number of the plan, each with the call that computes it again."""
        privacy, costs = privacy_lines(self.settled, self.protects), _cost_lines(self.settled, self.costs)
        return [*_design_lines(self.settled), *_accuracy_lines(self), *privacy, *costs]

    def rows(self) -> list[dict[str, Any]]:
        return [line.to_dict() for line in self.lines]

    @property
    def notes(self) -> list[str]:
        """Return the assumptions, in sentences."""
        made = [ADAPTIVE, ANY_START]
        made.append(f"the shuffled epsilon holds {WITHOUT_IDENTITY}; it is no part of the local one")
        if self.asked.goal != MODEL:
            made += [HOLDS_FOR, ON_AVERAGE]
        if self.asked.goal == COVARIANCE:
            made.append(
                f"clipping is simulated on {PEOPLE_CLIPPED}, {ON_OTHERS}; a half width is a forecast, not proved"
            )
        if self.strategies:
            releases, k = self.settled.schedule.allowed, self.table.release
            own = "" if (releases, k) == (1, 1) else f", and this plan has {releases:,} of {counted(k, 'feature')}"
            made.append(f"ways to spend the budget are simulated on {STRATEGIES_PEOPLE}; {ONE_RELEASE}{own}")
        return made

    def to_dict(self) -> dict[str, Any]:
        asked = self.asked.to_dict()
        found = None if self.solved_for is None else asked[self.solved_for]
        if self.solved_for == "accuracy" and not self.model:
            found = self.half
        return {
            "schema_version": SCHEMA_VERSION,
            "content": CONTENT,
            "privacy": PRIVACY,
            "asked": asked,
            "solved_for": self.solved_for,
            "solved": found,
            "notes": self.notes,
            "lines": self.rows(),
            "model": asdict(self.model) if self.model else None,
            "strategies": [asdict(each) for each in self.strategies],
        }


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
        table, schedule = settled.table, settled.schedule
        if schedule.slots < 2:
            raise InputError("a budget period of one record leaves no choice to compare; give more days or records.")
        whole = table if schedule.allowed == 1 and table.symbols and table.release == 1 else None
        solved = settled.asked
        strategies = compare_strategies(solved.budget, solved.n, schedule.slots, given(solved.devices), table=whole)
    return Plan(settled, asked.open, protects(settled), costs(settled), model, strategies)


def costs(settled: Settled) -> Costs:
    """Compute the costs of a settled deployment."""
    asked, size = settled.asked, settled.firmware.layout.bytes
    record = record_of(asked.n, asked.chip, asked.radio, asked.battery_mah)
    often = settled.schedule.allowed / given(asked.budget_days)
    check_day(often, record.radio, [record.costs["sensor"]])
    release = release_cost(asked.n, *_shape(settled), asked.chip, asked.radio)
    each = None if release.nJ is None else release.nJ / NANOJOULES_PER_MICROJOULE
    a_day = None if each is None else each * often
    joule = record.joule
    share = None if a_day is None or joule is None else a_day * asked.days / MICROJOULES_PER_JOULE / joule
    years = None if not share else asked.days / share / DAYS_PER_YEAR
    air = 1000 * record.radio.sending_seconds(size)
    of_device = record.chip.name, record.radio.radio, release.cycles, size, air
    return Costs(*of_device, each, often, a_day, settled.table.table_bytes, share, years)


@lru_cache(maxsize=8)
def record_of(n: int, chip: str | None, radio: str, battery_mah: float | None = None) -> WholeRecord:
    """Return the sensor's record of n features on a chip, by a radio, as in `sensorsim cost`."""
    choices = Choices(chip, radio, battery_mah=battery_mah)
    parts = resolve_choices(choices, "")
    pricer = RecordPricer(*parts, choices.random, {}, n)
    return WholeRecord(*parts, choices, "kernel", {SENSOR: pricer.sensor_record()})


def release_cost(n: int, k: int, blocks: int, size: int, chip: str | None, radio: str) -> Part:
    """Return the cost of a release of k features, generator blocks and packet bytes; no energy where unknown."""
    record = record_of(n, chip, radio)
    sensor = record.costs["sensor"]
    arithmetic, words = sensor.parts["arithmetic"], sensor.parts["random words"]
    cycles = sensor.cycles + (k - 1) * arithmetic.cycles + (blocks - 1) * words.cycles
    known: list[Any] = [part.nJ for part in sensor.parts.values()]
    if None in known:
        return Part(cycles, None)
    air = record.radio.nanojoule(size) - record.radio.nanojoule(sensor.bytes_sent)
    return Part(cycles, sum(known) + (k - 1) * given(arithmetic.nJ) + (blocks - 1) * given(words.nJ) + air)


def _shape(settled: Settled) -> tuple[int, int, int]:
    """Return the features of a release, the generator blocks for its words, and the bytes of its packet."""
    firmware = settled.firmware
    return firmware.k, firmware.blocks, firmware.layout.bytes


def _design_lines(settled: Settled) -> list[Line]:
    asked, table = settled.asked, settled.table
    firmware = f"{FIRMWARE}(table, budget_epsilon={str(asked.budget)!r}, budget_days={asked.budget_days})"
    schedule = f"sensorsim.device.schedule.Schedule.of({firmware}, {asked.records_per_day})"
    proof = "sensorsim.noise.certificate.certify(table)"
    within = f"in {counted(given(asked.budget_days), 'day')}"
    of_record, of_release = (counted(count, "feature").split()[1] for count in (table.features, table.release))
    epsilon_how = f"float({proof}.epsilon_record)"
    return [
        Line("features of a record", table.features, of_record, "table.features"),
        Line("features released of a record", table.release, of_release, "table.release"),
        Line("epsilon of a release, proved", float(settled.firmware.epsilon), "epsilon, delta 0", epsilon_how),
        Line("releases that the budget pays for", settled.firmware.releases, within, f"{firmware}.releases"),
        Line("records of a budget period", settled.schedule.slots, within, f"{schedule}.slots"),
        Line("records released of them", settled.schedule.allowed, within, f"{schedule}.allowed"),
        Line("noise of a value, at the worst x", table.estimate_sd, "ranges, sd", "table.estimate_sd"),
    ]


def _accuracy_lines(plan: Plan) -> list[Line]:
    settled, asked, reached = plan.settled, plan.asked, plan.settled.estimate
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
        found, n = settled.correlation, asked.n
        variance = f"sensorsim.planning.column_variance({n})"
        made.append(Line("variance of a column", column_variance(n), f"ranges², of {PEOPLE_CLIPPED}", variance))
        if found is None:
            return [*made, Line("half width, about", reached.half, "of a correlation", "1.0")]
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
    share = f"{arriving} * table.release / table.features"
    made.append(Line("values of a feature", settled.count, within, f"int({share})"))
    sd = f"sensorsim.planning.value_sd(table, {asked.expect!r}) / {settled.count} ** 0.5"
    made.append(Line("standard error", reached.sd, "ranges", sd if reached.sd is not None else "None"))
    half = f"sensorsim.planning.mean_half(table, {settled.count}, {asked.expect!r})"
    made.append(Line("95 % interval, half width", plan.half, "ranges", half))
    for known, (name, value, unit) in zip(asked.ranges or (), plan.in_units, strict=True):
        made.append(Line(f"95 % interval of {name}, half width", value, unit, f"{half} * {known.span!r}"))
    return made


def _cost_lines(settled: Settled, found: Costs) -> list[Line]:
    asked = settled.asked
    of = f"{asked.n}, {asked.chip!r}, {asked.radio!r}"
    numbers = ", ".join(map(repr, (asked.n, *_shape(settled), asked.chip, asked.radio)))
    release = f"sensorsim.planning.release_cost({numbers})"
    each = f"{release}.nJ / 1000"
    often = f"{settled.schedule.allowed} / {asked.budget_days}"
    layout = f"sensorsim.device.firmware.Firmware(table, budget_epsilon={str(asked.budget)!r}).layout.bytes"
    made = [
        Line("cycles of a release", found.cycles, "cycles", f"{release}.cycles"),
        Line("bytes of a packet", found.bytes, "bytes", layout),
        Line("time on air of a packet", found.on_air_ms, "ms",
             f"1000 * sensorsim.planning.record_of({of}).radio.sending_seconds({found.bytes})"),
        Line("energy of a release", found.microjoule, "µJ", each if found.microjoule is not None else "None"),
        Line("releases a day", found.releases_per_day, "a day", often),
        Line("bytes of the table", found.table_bytes, "bytes", "table.table_bytes"),
    ]  # fmt: skip
    if found.microjoule_per_day is not None:
        made.append(Line("energy of a day", found.microjoule_per_day, "µJ a day", f"{each} * ({often})"))
    if found.battery_share is not None:
        joule = f"sensorsim.planning.record_of({of}, {asked.battery_mah!r}).joule"
        run = f"{each} * ({often}) * {asked.days} / 1e6 / {joule}"
        made.append(Line("share of a charge", found.battery_share, f"in {counted(asked.days, 'day')}", run))
        years = f"{asked.days} / ({run}) / {DAYS_PER_YEAR}"
        made.append(Line("years of a charge, releases alone", found.battery_years, "years", years))
    return made
