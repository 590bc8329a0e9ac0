"""Draw the interval against the number of devices, for several budgets; matplotlib is imported on use.

The lines are predicted in closed form, without a table of their own; the point is that of the plan's real table.
"""

from math import floor
from typing import Any

from sensorsim._util import drawing
from sensorsim._util.errors import InputError
from sensorsim._util.terminal import counted
from sensorsim.planning.deployment import MODEL, Asked, given, span
from sensorsim.planning.estimands import ESTIMANDS, packets
from sensorsim.planning.solve import choose_design, settle
from sensorsim.planning.study_plan import Plan

TIMES = ("0.25", "0.5", "1", "2", "4")  # the budget asked for
STYLES = (":", "-.", "-", "--", (0, (8, 2)))
STEPS_OF_TEN, FEWER, MORE = 12, 100, 300  # devices on the axis, around those asked for
DPI = 160
GREY, BLACK = "0.45", "black"


def check_goal(goal: str) -> None:
    """Refuse a goal that has no curve over devices."""
    if goal == MODEL:
        raise InputError("a model is simulated for one number of devices and has no curve; leave --plot out.")


def draw(plan: Plan, path: str) -> None:
    """Write the figure."""
    check_goal(plan.asked.goal)
    drawing.check_figure(path)
    drawing.write_figure(plan_figure(plan), path, DPI)


def curve(asked: Asked, devices: list[int]) -> list[float]:
    """Predict the half width for each number of devices, with the design of this budget or the given table."""
    estimand, table = ESTIMANDS[asked.goal], asked.noise
    if table is None:
        design = choose_design(asked)
        allowed, k, noise = design.releases, design.k, estimand.design_noise(design, asked)
    else:
        allowed, k, noise = settle(asked).schedule.allowed, table.release, estimand.table_noise(table, asked)
    days = given(asked.every), given(asked.budget_days)
    arriving = [float(packets(many, *days, allowed, asked.loss)) for many in devices]
    return [estimand.predict(noise, asked, count, k) for count in arriving]


def plan_figure(plan: Plan) -> Any:
    """Return the figure; a model has none."""
    check_goal(plan.asked.goal)
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    asked, scale = plan.asked, 100.0 if plan.settled.estimand.percent else 1.0
    figure = Figure(figsize=(8, 5.2), layout="constrained")
    axes = figure.add_subplot()
    devices = _devices(given(asked.devices))
    for times, style in zip(TIMES, STYLES, strict=True):
        budget = asked.budget * type(asked.budget)(times)
        try:
            heights = curve(asked.with_(budget_epsilon=budget), devices)
        except InputError:
            continue  # a budget that pays for no release
        own = times == "1"
        axes.plot(
            devices, [scale * half for half in heights], linestyle=style, color=BLACK if own else GREY,
            linewidth=2.0 if own else 1.3, label=f"epsilon {budget.normalize():f}",
        )  # fmt: skip
    axes.plot(
        [given(asked.devices)], [scale * plan.half], "o", color=BLACK, markersize=9, label="this plan,\nits own table"
    )
    if asked.accuracy is not None:
        axes.axhline(scale * asked.accuracy, color=GREY, linewidth=0.8, label=f"asked for: {scale * asked.accuracy:g}")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8, frameon=False)
    figure.suptitle(_title(asked), fontsize=9)
    percent = plan.settled.estimand.percent
    half = "half width of the 95 % interval, % of the range" if percent else "about the half width for 95 %"
    axes.set(xscale="log", yscale="log", xlabel="devices", ylabel=half)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(which="major", color="0.88", linewidth=0.7)
    return figure


def _title(asked: Asked) -> str:
    """Say what is planned, and where the lines and the point come from."""
    what = "mean" if ESTIMANDS[asked.goal].percent else "correlation"
    often = f"{asked.records_per_day} a day of {counted(asked.n, 'feature')}"
    budgets = f"budgets: of a person in {counted(given(asked.budget_days), 'day')}"
    return (
        f"a {what} {span(given(asked.every))} · records: {often} · {budgets}\n"
        "lines: predicted in closed form; point: this plan's own table"
    )


def _devices(asked: int) -> list[int]:
    """Return numbers of devices, even on a logarithmic axis, including the one asked for."""
    low, high = max(10, asked // FEWER), asked * MORE
    ratio = 10 ** (1 / STEPS_OF_TEN)
    found = {asked}
    while low < high:
        found.add(floor(low))
        low = max(low + 1, floor(low * ratio))
    return sorted(found)
