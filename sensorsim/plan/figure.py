"""The interval against the number of devices, for several budgets; matplotlib is imported when it is drawn.

The lines are foretold in closed form, without a table of their own; the point is that of the plan's real table.
"""

from math import floor
from pathlib import Path
from typing import Any

from sensorsim.errors import InputError
from sensorsim.files import check_target, write_whole
from sensorsim.plan.asked import COVARIANCE, MEAN, MODEL, Asked, given
from sensorsim.plan.choose import choose, noise_of
from sensorsim.plan.correlation import foretold_correlation
from sensorsim.plan.plan import Plan
from sensorsim.plan.reached import foretold_half, packets, value_sd
from sensorsim.plan.solve import settle
from sensorsim.plan.words import span

KINDS = ("svg", "png", "pdf")
TIMES = ("0.25", "0.5", "1", "2", "4")  # the budget asked for
STYLES = (":", "-.", "-", "--", (0, (8, 2)))
STEPS_OF_TEN, FEWER, MORE = 12, 100, 300  # devices on the axis, around those asked for
DPI = 160
GREY, BLACK = "0.45", "black"


def check_figure(path: str, goal: str) -> None:
    """Refuse what cannot be drawn, before anything is computed."""
    if Path(path).suffix.lstrip(".").lower() not in KINDS:
        raise InputError(f"{path} is not a figure; give a name that ends in {', '.join('.' + kind for kind in KINDS)}.")
    _check_goal(goal)
    check_target(path)


def _check_goal(goal: str) -> None:
    if goal == MODEL:
        raise InputError("a model is simulated for one number of devices and has no curve; leave --plot out.")


def draw(plan: Plan, path: str) -> None:
    """Write the figure."""
    from sensorsim.drawing import picture

    check_figure(path, plan.asked.goal)
    write_whole(path, picture(plan_figure(plan), Path(path).suffix[1:].lower(), DPI))


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
    _check_goal(plan.asked.goal)
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
        [given(asked.devices)], [scale * plan.half], "o", color=BLACK, markersize=9, label="this plan, its own table"
    )
    if asked.accuracy is not None:
        axes.axhline(scale * asked.accuracy, color=GREY, linewidth=0.8)
        axes.annotate("asked for", (devices[0], scale * asked.accuracy), va="bottom", fontsize=8, color=GREY)
    _dress(axes, asked)
    return figure


def _dress(axes: Any, asked: Asked) -> None:
    from matplotlib.ticker import FuncFormatter

    what = "correlation" if asked.goal == COVARIANCE else "mean"
    unit = "" if asked.goal == COVARIANCE else ", % of the range"
    half = "about the half width for 95 %" if asked.goal == COVARIANCE else "half width of the 95 % interval"
    axes.set(xscale="log", yscale="log", xlabel="devices", ylabel=f"{half}{unit}")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    often = f"{asked.records_per_day} a day of {asked.n} feature{'s' * (asked.n != 1)}"
    axes.set_title(
        f"a {what} {span(given(asked.every))} · records: {often} · budgets: of a person in {asked.budget_days} days",
        fontsize=9,
    )
    axes.grid(which="major", color="0.88", linewidth=0.7)
    axes.legend(fontsize=8, frameon=False)


def _devices(asked: int) -> list[int]:
    """Evenly on a logarithmic axis, the number asked for among them."""
    low, high = max(10, asked // FEWER), asked * MORE
    ratio = 10 ** (1 / STEPS_OF_TEN)
    found = {asked}
    while low < high:
        found.add(floor(low))
        low = max(low + 1, floor(low * ratio))
    return sorted(found)
