"""The interval against the number of devices, for several budgets; matplotlib is imported when it is drawn.

The lines are foretold in closed form, without a table of their own; the point is that of the plan's real table.
"""

from math import floor
from typing import Any

from sensorsim import drawing
from sensorsim.errors import InputError
from sensorsim.plan.asked import COVARIANCE, MEAN, MODEL, Asked, given
from sensorsim.plan.choose import choose, noise_of
from sensorsim.plan.correlation import foretold_correlation
from sensorsim.plan.plan import Plan
from sensorsim.plan.reached import foretold_half, packets, value_sd
from sensorsim.plan.solve import settle
from sensorsim.plan.words import span
from sensorsim.terminal import counted

TIMES = ("0.25", "0.5", "1", "2", "4")  # the budget asked for
STYLES = (":", "-.", "-", "--", (0, (8, 2)))
STEPS_OF_TEN, FEWER, MORE = 12, 100, 300  # devices on the axis, around those asked for
DPI = 160
GREY, BLACK = "0.45", "black"


def check_figure(path: str, goal: str) -> None:
    """Refuse what cannot be drawn, before anything is computed."""
    check_goal(goal)
    drawing.check_figure(path)


def check_goal(goal: str) -> None:
    """Refuse a goal that has no curve over devices."""
    if goal == MODEL:
        raise InputError("a model is simulated for one number of devices and has no curve; leave --plot out.")


def draw(plan: Plan, path: str) -> None:
    """Write the figure."""
    check_figure(path, plan.asked.goal)
    drawing.write_figure(plan_figure(plan), path, DPI)


def curve(asked: Asked, devices: list[int]) -> list[float]:
    """Half widths foretold for so many devices, each with the design that the budget asks for."""
    allowed, k, variance = _of_given(asked) if asked.noise is not None else _of_design(asked)
    found = []
    for many in devices:
        arrive = float(packets(many, given(asked.every), given(asked.budget_days), allowed, asked.loss))
        if asked.goal == MEAN:
            found.append(min(foretold_half(variance, arrive * k / asked.n), 0.5))
        else:
            found.append(foretold_correlation(variance, asked.n, arrive).half)
    return found


def _of_design(asked: Asked) -> tuple[int, int, float]:
    """Releases of a period, features of a release, and the variance of a value; of a sketch that of its noise alone."""
    design = choose(asked)
    if asked.goal == MEAN:
        return design.releases, design.k, design.variance - (asked.expect - 0.5) ** 2  # foretold about one half
    return design.releases, design.k, noise_of(design, asked.goal)


def _of_given(asked: Asked) -> tuple[int, int, float]:
    """The same of the table that is given."""
    table = given(asked.noise)
    variance = value_sd(table, asked.expect) ** 2 if asked.goal == MEAN else float(table.estimate_sd**2)
    return settle(asked).schedule.allowed, table.release, variance


def plan_figure(plan: Plan) -> Any:
    """The figure; a model has none."""
    check_goal(plan.asked.goal)
    from matplotlib.figure import Figure

    asked, scale = plan.asked, 1.0 if plan.asked.goal == COVARIANCE else 100.0
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
    _dress(axes, asked)
    return figure


def _dress(axes: Any, asked: Asked) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    unit = "" if asked.goal == COVARIANCE else ", % of the range"
    half = "about the half width for 95 %" if asked.goal == COVARIANCE else "half width of the 95 % interval"
    axes.set(xscale="log", yscale="log", xlabel="devices", ylabel=f"{half}{unit}")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(which="major", color="0.88", linewidth=0.7)


def _title(asked: Asked) -> str:
    """What is planned, and where the lines and the point come from."""
    what = "correlation" if asked.goal == COVARIANCE else "mean"
    often = f"{asked.records_per_day} a day of {counted(asked.n, 'feature')}"
    budgets = f"budgets: of a person in {counted(given(asked.budget_days), 'day')}"
    return (
        f"a {what} {span(given(asked.every))} · records: {often} · {budgets}\n"
        "lines: foretold in closed form, nothing is run; point: the same for this plan's own table"
    )


def _devices(asked: int) -> list[int]:
    """Evenly on a logarithmic axis, the number asked for among them."""
    low, high = max(10, asked // FEWER), asked * MORE
    ratio = 10 ** (1 / STEPS_OF_TEN)
    found = {asked}
    while low < high:
        found.add(floor(low))
        low = max(low + 1, floor(low * ratio))
    return sorted(found)
