"""Format a plan for one screen: 80 columns, 24 lines."""

from fractions import Fraction

from sensorsim._util.terminal import counted
from sensorsim.costing.cost_text import format_short
from sensorsim.datasets.public_ranges import brief
from sensorsim.noise.certificate import format_epsilon as epsilon
from sensorsim.planning.deployment import COVARIANCE, given, span
from sensorsim.planning.estimands import NORMAL_95
from sensorsim.planning.person_epsilon import ADAPTIVE, MOST_TOGETHER, Protects
from sensorsim.planning.study_plan import Plan
from sensorsim.planning.synthetic_people import ON_OTHERS, column_variance

WIDTH, HEIGHT = 80, 24
MOST_UNITS = 2  # columns whose interval is shown in their unit; all are in the JSON
MOST_YEARS = 100
MOST_WRITTEN = 10**9  # larger numbers are shown by their power of ten
HOLDS = "  holds for     these devices' records; day of release unknown, loss by chance"
NAMES = {"record": "a record"} | {name: f"a person, {name}" for name in ("budget period", "month", "year", "whole run")}
FIRST_LEFT_OUT = ("record", "whole run", "month")  # all are in the JSON


def plan_text(plan: Plan) -> str:
    """Return the accuracy first, then the design, the privacy and the costs; leave out some spans if it is too long."""
    reached = _model(plan) if plan.model else _accuracy(plan)
    before, protected = [*_deployment(plan), *reached, *_design(plan)], _protects(plan.protects)
    after = [*_shuffled(plan), *_costs(plan), *_strategies(plan)]
    for name in FIRST_LEFT_OUT:
        if len(before) + len(protected) + len(after) > HEIGHT:
            protected = [line for line in protected if not line.startswith(f"    {NAMES[name]} ")]
    return "\n".join([*before, *protected, *after])


def _deployment(plan: Plan) -> list[str]:
    asked = plan.asked
    often = f"{counted(given(asked.records_per_day), 'record')} a day{_solved(plan, 'records_per_day')}"
    devices = f"{counted(given(asked.devices), 'device')}{_solved(plan, 'devices')}"
    head = f"{devices}, {often} of {counted(asked.n, 'feature')}"
    budget = f"epsilon {asked.budget}{_solved(plan, 'budget_epsilon')} a person"
    budget += f" in {counted(given(asked.budget_days), 'day')}{_solved(plan, 'budget_days')}"
    return [f"{head}, {budget}"] if len(head) + len(budget) + 2 <= WIDTH else [f"{head},", budget]


def _solved(plan: Plan, name: str) -> str:
    """Return the mark of the number that the plan solved for."""
    return " (solved)" if plan.solved_for == name else ""


def _accuracy(plan: Plan) -> list[str]:
    asked, settled = plan.asked, plan.settled
    wanted = "" if asked.accuracy is None else f"; asked ±{asked.accuracy:.4g}"
    often = f"{span(given(asked.every))}{_solved(plan, 'every')}"
    if asked.goal == COVARIANCE:
        return _correlation(plan, f"{often}{wanted}")
    reached = f"  reached       ±{settled.estimand.format_half(plan.half)} {often} on average, 95 %{wanted}"
    lines = [reached if len(reached) <= WIDTH else reached.replace(" of the range", "")]
    packets = f"  from          {_number(settled.packets)} packets"
    if plan.in_units:
        units = [f"{brief(name)} ±{value:,.4g} {brief(unit)}" for name, value, unit in plan.in_units]
        fitting = MOST_UNITS if len(", ".join(units[:MOST_UNITS])) + 30 <= WIDTH else 1
        more = f", {len(units) - fitting} more" if len(units) > fitting else ""
        line = f"  in its unit   {', '.join(units[:fitting])}{more}"
        lines.append(line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…")
    each = f", {_number(settled.count)} of a feature" if settled.table.sampled else ""
    error = "" if settled.estimate.sd is None else f"; standard error {100 * settled.estimate.sd:.3g} %"
    return [*lines, f"{packets}{each}{error}", HOLDS]


def _correlation(plan: Plan, often: str) -> list[str]:
    n, found = plan.asked.n, plan.settled.correlation
    nothing = "; this tells nothing" if plan.half >= 1 else ""
    packets = f"  from          {_number(plan.settled.packets)} packets on average, half of them sketches{nothing}"
    lines = [f"  reached       about ±{plan.settled.estimand.format_half(plan.half)} {often}"]
    if found is None:
        return [*lines, packets]
    noise = f"noise {NORMAL_95 * found.sd:.2g}"
    return [
        *lines,
        f"  of which      clipping {found.bias:.2g}, {noise} (1.96 sd); not a proved interval",
        packets,
        f"  sketch        receive --write-sketch FILE --root {found.root:.4g} ({found.reach:.2g} sd of a sketch)",
        f"  people        synthetic, of variance {column_variance(n):.2g}; {ON_OTHERS}",
    ]


def _model(plan: Plan) -> list[str]:
    one = given(plan.model)
    return [
        f"  reached       {one.accuracy:.2f} % accuracy, R² {one.r2:.3f}, by "
        f"{counted(one.hidden, 'number')} of a record",
        f"  from          {one.packets:,} packets; simulated on {one.data}",
        f"  beside it     one half {one.accuracy_of_half:.2f} %, column means {one.accuracy_of_means:.2f} %, "
        f"no packet {one.accuracy_without:.2f} %",
    ]


def _design(plan: Plan) -> list[str]:
    table, schedule, days = plan.table, plan.settled.schedule, given(plan.asked.budget_days)
    drawn = table.kind if table.symbols is None else "one bit" if table.symbols == 2 else f"{table.symbols} symbols"
    what = f"{'sampled' if table.sampled else 'release'}, {table.release} of {counted(table.features, 'feature')}"
    how = "time sampling" if schedule.samples else "every record"
    often = f"{schedule.allowed:,} of {counted(schedule.slots, 'record')} in {counted(days, 'day')}: {how}"
    sd = f"sd {table.estimate_sd or 0:.4g} ranges a value"
    return [
        f"  mechanism     {what}, {drawn}",
        f"  noise         {sd}; epsilon {epsilon(plan.settled.firmware.epsilon, 6)} a release, proved",
        f"  releases      {often}",
    ]


def _protects(found: Protects) -> list[str]:
    head = f"  {'protects, local, any start':<28}{'days':>6}{'releases':>10}"
    period = next(one.days for one in found.spent if one.name == "budget period")
    made = [f"{head}{'basic':>10}{f'delta {found.delta:.2g}':>14}{'aligned':>10}"]
    for one in (one for one in found.spent if one.name != "month" or one.days != period):
        days = "" if one.days is None else f"{one.days:,}"
        epsilons = f"{epsilon(one.basic):>10}{epsilon(one.at_delta):>14}{epsilon(one.aligned_basic):>10}"
        made.append(f"    {NAMES[one.name]:<26}{days:>6}{one.releases:>10,}{epsilons}")
    return [*made, f"    {ADAPTIVE}; aligned: with a period"]


def _shuffled(plan: Plan) -> list[str]:
    found, one = plan.protects, plan.protects.shuffled
    if not one.packets:
        return ["  shuffled      not told: no packet arrives"]
    if one.aligned_epsilon is None:
        many = f"{one.of_a_person:,} packets of a person in an estimate"
        return [f"  shuffled      not told: up to {many}, above {MOST_TOGETHER}"]
    among = f"{one.aligned_of_a_person} of a person in {one.packets:,} or more"
    lines = [f"  shuffled      {epsilon(one.aligned_epsilon, 3)} at delta {found.delta:.2g}, {among}"]
    if one.of_a_person > one.aligned_of_a_person:
        crossing = "not told" if one.epsilon is None else epsilon(one.epsilon, 3)
        lines.append(f"                {crossing} where the days cross a budget period: {one.of_a_person} of a person")
    return [*lines, "                if without identity, lost and come by chance; not the local one"]


def _costs(plan: Plan) -> list[str]:
    found, asked = plan.costs, plan.asked
    energy = "no energy is known" if found.microjoule is None else f"{format_short(found.microjoule)} µJ"
    day = "" if found.microjoule_per_day is None else f", {format_short(found.microjoule_per_day)} µJ"
    often = counted(1, "release") if found.releases_per_day == 1 else f"{found.releases_per_day:.3g} releases"
    lines = [
        f"  a release     {energy}, {found.cycles:,.0f} cycles, {counted(found.bytes, 'byte')} on air",
        f"  a day         {often}{day}; {found.chip}, {found.radio}",
    ]
    if found.battery_share is not None and found.battery_years is not None:
        years = f"{found.battery_years:.3g}" if found.battery_years < MOST_YEARS else f"{MOST_YEARS}+"
        share = f"{100 * found.battery_share:.2g} % of {asked.battery_mah:g} mAh in {counted(asked.days, 'day')}"
        lines.append(f"  battery       {share}; {years} years of releases")
    return lines


def _strategies(plan: Plan) -> list[str]:
    """Return interval, person's epsilon and observer's advantage of each way to spend the budget."""
    if not plan.strategies:
        return []
    head = f"  {'ways to spend it':<20}{'releases':>9}{'± a period':>11}{'person':>8}"
    lines = [f"{head}{'change shows':>14}{'proved':>10}"]
    for one in plan.strategies:
        bound = "nothing" if one.bound is None else f"≤ {one.bound:.3f}"
        half = f"{196 * one.standard_error:.3g} %"
        cells = f"{one.releases:>9,}{half:>11}{epsilon(one.epsilon_person):>8}{one.advantage:>14.3f}{bound:>10}"
        lines.append(f"    {one.name:<18}{cells}")
    releases, k = plan.settled.schedule.allowed, plan.table.release
    own = "" if (releases, k) == (1, 1) else f"; plan: {_number(releases)} of {k}"
    return [*lines, f"    on uniform people who change once, sampled once a period{own}"]


def _number(value: Fraction | int) -> str:
    return f"{float(value):,.0f}" if value < MOST_WRITTEN else f"{float(value):.3g}"
