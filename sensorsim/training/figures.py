"""The paper's data figures, redrawn from our own runs, and our own. Functions return a figure; the caller saves it.

Lines carry their names at their ends, so that nobody hunts in a legend, and everything is readable in grey. The key
under the panels says what the marks mean: who is trusted, and whether an epsilon holds at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sensorsim.training import curves
from sensorsim.training.axes import ACCURACY, R2, Measure, log_ticks
from sensorsim.training.curves import Curve, Row, Scores
from sensorsim.training.sheet import entitle, finish, sheet

Trivial = dict[float, Scores]  # by sigma

# What stands on the x axis of accuracy_against_epsilon: the field of a row, and its title.
BUDGETS = {
    "nominal": ("nominal_epsilon", "nominal ε per record"),
    "spent": ("spent_epsilon", "ε really spent per record"),
    "person": ("epsilon_person_median", "ε of a person with all of their records (median person)"),
}
AS_STATED = "The ε of cells that were finished before are as the results file states them."
TRIVIAL_OF_RECORDS = ("PCA-", "column mean", "data-free map")  # how names begin that the headline shows


def accuracy_against_c(rows: Sequence[Row], trivial: Trivial) -> Any:
    """Fig. 2 of the paper: spof over the stabilization constant, decoded without c and with it."""
    figure, (axis,) = sheet(1)
    found = []
    for decoded, word, line in ((False, "decoded without c", "--"), (True, "decoded with c", "-")):
        for curve in curves.curves_of([row for row in rows if row["decode_c"] == decoded], "c"):
            found.append(Curve(curve.mechanism, word, curve.places, curve.rows, line))
    places = [place for curve in found for place in curve.places]
    margin = 0.04 * (max(places) - min(places)) or 0.1
    axis.set_xlim(min(places) - margin, max(places) + margin)
    curves.draw(axis, ACCURACY, found, trivial[rows[0]["sigma"]])
    axis.set_xlabel("stabilization constant c")
    entitle(axis, _noise(rows[0]["sigma"]))
    return finish(figure, f"spof over its constant, nominal ε = {rows[0]['nominal_epsilon']:g}", _told(rows))


def accuracy_against_epsilon(
    rows: Sequence[Row], trivial: Trivial, against: str = "nominal", measure: Measure = ACCURACY
) -> Any:
    """Fig. 3 of the paper (nominal), or our own against what a record, or a person, really spends."""
    field, title = BUDGETS[against]
    figure, axes = sheet(len(trivial))
    for axis, sigma in zip(axes, sorted(trivial), strict=True):
        part = [row for row in rows if row["sigma"] == sigma]
        wanted = [row.get("nominal_epsilon") for row in part] if against != "person" else []
        _log_scale(axis, [row[field] for row in part if row.get(field)], wanted)
        found = [_levelled(part), curves.curves_of([row for row in part if row.get("nominal_epsilon")], field)]
        failed = [row["mechanism"] for row in part if row.get("error") and row.get(field) is None]
        curves.draw(axis, measure, [curve for each in found for curve in each], trivial[sigma], without=failed)
        missing = _unbounded(part, field)
        axis.set_xlabel(title + (f"\nno bound holds for {', '.join(missing)}: not shown" if missing else ""))
        entitle(axis, _noise(sigma))
    what = "What the model reconstructs" if measure is ACCURACY else "R² of a record over the column mean"
    stated = f" {AS_STATED}" if against != "nominal" else ""  # the nominal ones are what was asked for
    return finish(figure, f"{what}, against the {title}", _told(rows) + stated)


def accuracy_against_cost(rows: Sequence[Row], trivial: Trivial, costs: dict[str, float], unit: str) -> Any:
    """Our own: what a record costs on the body against what the model gets from it; upwards along epsilon."""
    figure, axes = sheet(len(trivial))
    for axis, sigma in zip(axes, sorted(trivial), strict=True):
        part = [row | {"cost": costs.get(row["mechanism"])} for row in rows if row["sigma"] == sigma]
        _log_scale(axis, [min(costs.values()) / 1.4, max(costs.values()) * 5], [])  # room for the names
        _priced(axis, part, trivial[sigma])
        axis.set_xlabel(f"cost of a record ({unit})")
        entitle(axis, _noise(sigma))
    unknown = sorted({row["mechanism"] for row in rows if row.get("nominal_epsilon") is not None} - costs.keys())
    note = "Larger mark: larger nominal ε" + (f"; no kernel to price for {', '.join(unknown)}." if unknown else ".")
    return finish(figure, "What a record costs on the body, and what the model gets from it", f"{note} {_told(rows)}")


def accuracy_against_records(rows: Sequence[Row], trivial: dict[tuple[str, int], Scores], epsilon: float) -> Any:
    """The headline, how many people it takes: accuracy above, R² over the column mean below; a column for each set.

    Every row says `set`, `size` and `persons`; the trivial predictors stand under the same pair.
    """
    sets = list(dict.fromkeys(name for name, _ in trivial))
    figure, axes = sheet(len(sets), down=2)
    for place, name in enumerate(sets):
        part = [row for row in rows if row["set"] == name]
        sizes = sorted(size for other, size in trivial if other == name)
        for axis, measure in ((axes[place], ACCURACY), (axes[len(sets) + place], R2)):
            _log_scale(axis, sizes, [])
            curves.draw(axis, measure, curves.curves_of(part, "size"), {}, _grey_lines(trivial, name, sizes))
            axis.set_xticks(sizes, [_counted(size) for size in sizes])
        below = axes[len(sets) + place]
        people = {row["size"]: row["persons"] for row in part if row.get("persons")}
        below.set_xticks(sizes, [_counted(size) + _people(people.get(size)) for size in sizes])
        below.set_xlabel("records that were released")
        entitle(axes[place], name)
        entitle(below, "the same, as R² of a record over the column mean")
    return finish(figure, f"How many records does it take? ε = {epsilon:g} for each", _told(rows))


def _told(rows: Sequence[Row]) -> str:
    """The data, the runs, and what the bars are. A row says its `data` and its `runs`."""
    data = " and ".join(dict.fromkeys(row["data"] for row in rows))
    runs = sorted({row["runs"] for row in rows})
    bars = "; pale bars: 95 % interval of that mean (Student's t)" if runs[-1] > 1 else ", so no intervals"
    many = " or ".join(f"{count:,}" for count in runs)
    return (
        f"Data: {data}. Each point: the mean of {many} run{'s' * (runs[-1] > 1)}{bars}. Dotted: untrained predictors."
    )


def _levelled(rows: Sequence[Row]) -> list[Curve]:
    """What has no epsilon, as level lines: a curve of one place."""
    return [
        Curve(curve.mechanism, curve.name, curves.LEVEL, curve.rows[:1])
        for curve in curves.curves_of([row | {"level": 1.0} for row in rows if not row.get("nominal_epsilon")], "level")
    ]


def _grey_lines(trivial: dict[tuple[str, int], Scores], name: str, sizes: list[int]) -> list[Curve]:
    """The trivial predictors of the headline over the number of records."""
    shown = [word for word in trivial[name, sizes[-1]] if word.startswith(TRIVIAL_OF_RECORDS)]
    return [
        Curve("none", word, tuple(sizes), tuple(trivial[name, size].get(word, {}) for size in sizes)) for word in shown
    ]


def _priced(axis: Any, rows: list[Row], trivial: Scores) -> None:
    """A column of marks for each mechanism, named at its top."""
    found = curves.curves_of([row for row in rows if row.get("nominal_epsilon") is not None], "cost")
    columns = []
    for curve in found:
        ordered = sorted(curve.rows, key=lambda row: row["nominal_epsilon"])
        columns.append(Curve(curve.mechanism, f"{curve.name} ({curve.places[0]:g})", curve.places, tuple(ordered)))
    curves.draw(axis, ACCURACY, columns, trivial, growing=True)


def _log_scale(axis: Any, places: Sequence[float], wanted: Sequence[float | None]) -> None:
    """A log axis over the places, with a little room at its ends, and ticks at the wanted ones."""
    axis.set_xscale("log")
    axis.minorticks_off()
    low, high = (min(places), max(places)) if places else (0.1, 10.0)
    room = max((high / low) ** 0.03, 1.03)
    limits = low / room, high * room
    ticks = sorted({tick for tick in wanted if tick}) or log_ticks(*limits)
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_xlim(*limits)  # after the ticks, which would widen it


def _unbounded(rows: Sequence[Row], field: str) -> list[str]:
    """Mechanisms with an epsilon in name, for which this one does not exist."""
    ran = [row for row in rows if row.get("nominal_epsilon") and not row.get("error")]
    return sorted({row["mechanism"] for row in ran if row.get(field) is None})


def _counted(size: int) -> str:
    return f"{size:,}".replace(",", "\u2009")


def _people(persons: int | None) -> str:
    return "" if persons is None else f"\n{_counted(persons)} people"


def _noise(sigma: float) -> str:
    return f"environmental noise σ = {sigma:g}"
