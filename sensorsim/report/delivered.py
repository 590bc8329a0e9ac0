"""What is delivered: intervals of means, noise beside other mechanisms, and what a sweep and a fleet gave."""

from typing import TYPE_CHECKING

from sensorsim.plan.words import span
from sensorsim.privacy.rounded import epsilon
from sensorsim.report.figures import reach_curve, rival_bars
from sensorsim.report.gather import Findings
from sensorsim.report.parts import Column, Markup, command, figure, paragraph, section, table, tag
from sensorsim.report.sections import plan_command
from sensorsim.report.settings import FLEET, SWEEP, setting_of
from sensorsim.report.words import number, percent, score
from sensorsim.terminal import counted

if TYPE_CHECKING:
    from sensorsim.fleet.fleet_result import FleetResult
    from sensorsim.train.results_file import StoredCell, StoredSweep

NOTHING = 0.5  # half of the range each way
SIMULATED = "A simulation, seeded: its truth is known, and nothing of it is private."


def delivers(found: Findings) -> Markup:
    plan = found.plan
    settled, wanted = plan.settled, found.wanted
    said = paragraph(
        f"{counted(wanted.devices, 'device')} with {counted(wanted.records_per_day, 'record')} a day release "
        f"{settled.schedule.allowed:,} of {counted(settled.schedule.slots, 'record')} in "
        f"{counted(wanted.budget_days, 'day')}. About {float(settled.packets):,.0f} packets make an estimate "
        f"{span(wanted.every)}, {settled.count:,} of each feature: ±{percent(plan.half)} of its range, "
        "if nobody knows the day that is released and packets are lost independently of the value."
    )
    value = float(plan.table.epsilon) / plan.table.release
    nothing = "; ±50 % tells nothing" if found.curve[0][1] >= NOTHING else ""
    parts = [
        said,
        figure(
            reach_curve(found.curve, wanted.devices),
            f"Half width of the 95 % interval of a mean {span(wanted.every)}{nothing}.",
        ),
        paragraph(f"The noise of one released value, beside other ways to release it with epsilon {epsilon(value)}:"),
        figure(rival_bars(found.rivals), "Standard deviation at the worst x, in ranges of x: less is better."),
    ]
    if found.sweep is not None:
        parts += [tag("h3", "Accuracy of a sweep"), *setting_of(found, SWEEP), *_sweep(found.sweep)]
    if found.fleet is not None:
        parts += [tag("h3", "A fleet, simulated"), *setting_of(found, FLEET), *_fleet(found.fleet)]
    return section("delivers", "What it delivers", *parts, command(plan_command(wanted), "sensorsim noise peers"))


def _sweep(sweep: "StoredSweep") -> list[Markup]:
    said = (
        f"Reconstruction accuracy, 1 - MSE in per cent, on {sweep.source}, {counted(sweep.rows, 'row')}, "
        f"n = {sweep.n}: a mean over runs with its 95 % interval. An accuracy means something only beside "
        "predictors that need no training."
    )
    columns = [Column("mechanism"), Column("trust", whole=True), Column("sigma", True), Column("epsilon asked", True),
               Column("epsilon spent", True), Column("a person", True), Column("accuracy, %", True),
               Column("R²", True), Column("held out, %", True), Column("runs", True)]  # fmt: skip
    trivial = [Column("predictor"), Column("sigma", True), Column("accuracy, %", True), Column("R²", True),
               Column("held out, %", True)]  # fmt: skip
    rows = [
        [one.name, f"{one.sigma:g}", score(one.accuracy), score(one.r2), score(one.held_out)] for one in sweep.trivial
    ]
    note = (
        "The epsilons are as the results file states them, of the same runs with secret noise: a sweep draws from a "
        "seed. “–”: no bound holds."
    )
    return [
        paragraph(said),
        table("Accuracies", columns, map(_cell_row, sweep.cells)),
        table("Trivial predictors on the same data", trivial, rows), paragraph(note, class_="note"),
    ]  # fmt: skip


def _cell_row(cell: "StoredCell") -> list[object]:
    name = cell.mechanism + (f", c = {cell.c:g}" if cell.c else "")
    spent, person = ("–" if value is None else epsilon(value) for value in (cell.spent_epsilon, cell.epsilon_person))
    if cell.diverged:
        accuracy = f"{cell.diverged} of {cell.runs} diverged"
    else:
        half = "" if cell.low is None else f" ± {(cell.accuracy or 0) - cell.low:.2f}"
        accuracy = f"{score(cell.accuracy)}{half}"
    nominal = "–" if cell.nominal_epsilon is None else f"{cell.nominal_epsilon:g}"
    scores = accuracy, score(cell.r2), score(cell.held_out), number(cell.runs)
    return [name, cell.trust, f"{cell.sigma:g}", nominal, spent, person, *scores]


def _fleet(fleet: "FleetResult") -> list[Markup]:
    settings = fleet.settings
    days = counted(fleet.every, "day")
    held = fleet.coverage
    received, released = fleet.counts.outcome("received"), fleet.counts.outcome("released")
    said = (
        f"{counted(settings.devices, 'device')} over {counted(settings.days, 'day')}: {received:,} of {released:,} "
        f"packets came. {SIMULATED}"
    )
    if held.share is not None:
        low, high = held.limits
        said += (
            f" Of {counted(held.intervals, 'interval')} of a mean over {days}, {held.covered:,} hold the truth: "
            f"{100 * held.share:.1f} % (by chance {100 * low:.1f} … {100 * high:.1f} %)."
        )
    period = counted(settings.firmware.budget_days, "day")
    spent = f"{epsilon(float(fleet.worst_period))} of {settings.firmware.budget} in {period}"
    over = " That is over the budget." if fleet.over_budget else ""
    columns = [Column("feature"), Column("half width", True), Column("held the truth", True), Column("values", True)]
    rows = []
    for one in fleet.features:
        half = "–" if one.half is None else f"±{percent(one.half)}"
        rows.append([one.name, half, f"{one.coverage.covered} of {one.coverage.intervals}", number(one.count, 3)])
    caption = f"Estimates over {days}, as shares of a range"
    return [paragraph(said), table(caption, columns, rows),
            paragraph(f"The most epsilon of a person in a period: {spent}.{over}")]  # fmt: skip
