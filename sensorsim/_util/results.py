"""Let every result of the public functions show itself in a few lines, as HTML, as data and as a figure.

A result has a `title` and `facts`, a few pairs of a name and a text; the rest follows from them. `to_dict` is what
`--format json` prints and `rows` is what `--format csv` prints, so that a notebook and a shell see the same.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

MOST_LETTERS = 1900  # of a repr: a cell of a notebook, not a page of it
MOST_LINE = 160
TITLE = 90  # letters of a line over a figure
CELL = "text-align:left;vertical-align:top"


class Shown:
    """A result that shows itself. Give `title`, `facts`, `to_dict`, `to_frame` and `figure`."""

    def title(self) -> str:
        """Name the result in a few words."""
        raise NotImplementedError

    def facts(self) -> Mapping[str, str]:
        """Return what a reader wants to know first, by name."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Return all of it, as JSON holds it."""
        raise NotImplementedError

    def to_frame(self) -> "pd.DataFrame":
        """Return it as a pandas frame."""
        raise NotImplementedError

    def figure(self) -> "Figure":
        """Draw it; `plot` writes the figure too."""
        raise NotImplementedError

    def plot(self, path: str | None = None) -> "Figure":
        """Return it as a matplotlib figure; with a path also write it, as .svg, .png or .pdf."""
        from sensorsim._util.drawing import check_figure, write_figure

        if path is not None:
            check_figure(path)
        figure = self.figure()
        if path is not None:
            write_figure(figure, path)
        return figure

    def __repr__(self) -> str:
        return as_text(self.title(), self.facts())

    def _repr_html_(self) -> str:
        return as_html(self.title(), self.facts())


class Result(Shown):
    """A result of several rows. Give `rows` in place of `to_frame`."""

    def rows(self) -> Iterable[Mapping[str, Any]]:
        """Return plain rows, all with the same names."""
        raise NotImplementedError

    def to_frame(self) -> "pd.DataFrame":
        """Return the rows as a pandas frame."""
        import pandas as pd

        return pd.DataFrame([dict(row) for row in self.rows()])


@dataclass(frozen=True, repr=False)
class Listing(Result):
    """Plain rows with their title, JSON and figure, for commands that answer with a list."""

    head: str
    found: Sequence[Mapping[str, Any]]
    data: Mapping[str, Any]
    draw: "Callable[[str], Figure]"  # by the title
    said: Mapping[str, str] | None = None  # facts; else the first cell of each row, and the others
    text: Callable[[], str] | None = None  # the table for a terminal

    def title(self) -> str:
        return self.head

    def facts(self) -> Mapping[str, str]:
        if self.said is not None:
            return self.said
        cells = [[str(cell) for cell in row.values()] for row in self.found]
        return {first: ", ".join(others) for first, *others in cells}

    def rows(self) -> list[dict[str, Any]]:
        return [dict(row) for row in self.found]

    def to_dict(self) -> dict[str, Any]:
        return dict(self.data)

    def figure(self) -> "Figure":
        return self.draw(self.head)


def as_text(title: str, facts: Mapping[str, str]) -> str:
    """Return a title and a line for each fact."""
    width = max(map(len, facts), default=0)
    lines = [title, *(f"  {name:<{width}}  {text}" for name, text in facts.items())]
    shown = "\n".join(line if len(line) <= MOST_LINE else line[: MOST_LINE - 2] + " …" for line in lines)
    return shown if len(shown) <= MOST_LETTERS else shown[: MOST_LETTERS - 2] + " …"


def as_html(title: str, facts: Mapping[str, str]) -> str:
    """Return a small table with a caption and row headers, which a screen reader tells apart."""
    rows = "".join(
        f'<tr><th scope="row" style="{CELL}">{escape(name)}</th><td style="{CELL}">{escape(text)}</td></tr>'
        for name, text in facts.items()
    )
    return f'<table><caption style="text-align:left">{escape(title)}</caption><tbody>{rows}</tbody></table>'


def bars(
    title: str, values: Mapping[str, float | None], axis: str, most: float | None = None,
    line: tuple[float, str] | None = None,
) -> "Figure":  # fmt: skip
    """Draw horizontal bars with their numbers from the top, none for None.

    `most` is where the axis ends, for what cannot be more; `line` is a place to compare with, and its name.
    """
    from matplotlib.ticker import MaxNLocator

    figure, axes = _page(title, list(values), axis, 0.32)
    lengths = [0.0 if value is None else float(value) for value in values.values()]
    drawn = axes.barh(range(len(values)), lengths, color="0.6", edgecolor="black", height=0.7)
    written = ["–" if value is None else f"{value:,.5g}" for value in values.values()]
    axes.bar_label(drawn, written, padding=3, bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5})
    axes.margins(x=0.14)
    if all(isinstance(value, int) for value in values.values()):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if line is not None:
        axes.axvline(line[0], color="black", linestyle="--", linewidth=1.2, label=f"{line[1]} {line[0]:.6g}")
        axes.set_xlim(right=1.14 * max(line[0], *lengths))
        figure.legend(loc="outside lower right", fontsize=8, frameon=False)
    if not any(lengths):
        axes.set_xlim(0, most or 1)
    elif most is not None:
        least = min(lengths)
        axes.set_xlim(left=least - 0.12 * (most - least) if least < 0 else 0.0, right=most)  # its number has room
    return figure


def whiskers(
    title: str, places: Sequence[str], found: Sequence[tuple[float | None, float, float]], axis: str, most: float = 1.0
) -> "Figure":
    """Draw an interval for each place from the top, with its point unless that is None.

    The axis stays within 0 and `most`, as the truth does; noise may put a point outside, which is then drawn hollow.
    """
    outside = any(point is not None and not 0 <= point <= most for point, _, _ in found)
    figure, axes = _page(title, places, axis + "; hollow: the noise put it outside" * outside, 0.28)
    for at, (point, low, high) in enumerate(found):
        axes.plot([low, high], [at, at], color="0.35", linewidth=2, solid_capstyle="butt")
        if point is not None:
            shown = min(max(point, 0.0), most)
            face = "black" if shown == point else "white"
            axes.plot([shown], [at], "o", color="black", markerfacecolor=face, markersize=5, clip_on=False, zorder=3)
    left, right = axes.get_xlim()
    axes.set_xlim(max(left, 0.0), min(right, most))
    axes.grid(axis="x", color="0.88")
    return figure


def _page(title: str, places: Sequence[str], axis: str, tall: float) -> "tuple[Figure, Any]":
    """Return a panel with a named row for each place, under a title that is never wider than the page."""
    from matplotlib.figure import Figure

    lines = wrap(title, TITLE)
    figure = Figure(figsize=(8, 1.1 + 0.18 * len(lines) + tall * max(len(places), 3)), layout="constrained")
    axes = figure.add_subplot()
    axes.set_yticks(range(len(places)), [name if len(name) <= 40 else name[:39] + "…" for name in places])
    axes.set_ylim(max(len(places), 1) - 0.4, -0.6)
    axes.set_xlabel("\n".join(wrap(axis, TITLE - 15)))
    figure.suptitle("\n".join(lines), fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes
