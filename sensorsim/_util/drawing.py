"""Write figures reproducibly: equal figures give equal files. Keep labels apart."""

import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

# Neither date nor version inside; the names that an SVG gives its parts follow from the picture alone, and its words
# are words: they can be searched, copied and read aloud.
SETTINGS: dict[Any, Any] = {"svg.hashsalt": "sensorsim", "svg.fonttype": "none"}
GREYS = ("0.92", "0.35", "0.7", "0.15", "0.55")  # neighbours differ most
HATCHES = ("", "///", "...", "xxx", "ooo")
HEADROOM = 1.14  # of an axis over its longest bar: the number at its end stands there
READABLE = 0.045  # of the axis: a shorter part of a bar has no room for its number
FORMATS = ("svg", "png", "pdf")
METADATA: dict[str, dict[str, None]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}


def picture(figure: Any, kind: str, dpi: int) -> bytes:
    """Return the figure as a file of this kind: svg, png or pdf."""
    import matplotlib

    buffer = io.BytesIO()
    with matplotlib.rc_context(SETTINGS):
        figure.savefig(buffer, format=kind, metadata=METADATA[kind], dpi=dpi)
    return buffer.getvalue()


def look(place: int) -> dict[str, str]:
    """Return the fill of a part of a stack: lightness and hatch differ from every other in grey print."""
    grey, hatch = GREYS[place % len(GREYS)], HATCHES[place // len(GREYS) % len(HATCHES)]
    return {"facecolor": grey, "hatch": hatch, "edgecolor": "black" if float(grey) > 0.4 or not hatch else "white"}


def stacked_bars(
    axes: Any,
    titles: Sequence[str],
    parts: Mapping[str, Sequence[float]],
    number: Callable[[float], str],
    looks: Mapping[str, Mapping[str, str]] | None = None,
) -> list[str]:
    """Draw horizontal bars from the top, the parts of each in order, with their numbers; return the parts drawn.

    A part that is zero everywhere is left out. `looks` keeps a part alike in several panels.
    """
    shown = {name: values for name, values in parts.items() if any(values)}
    totals = [sum(values) for values in zip(*parts.values(), strict=True)]
    longest = max(totals, default=0.0) or 1.0
    reached = [0.0] * len(titles)
    for place, (name, values) in enumerate(shown.items()):
        fill = dict((looks or {}).get(name) or look(place))
        axes.barh(range(len(titles)), values, left=reached, label=name, height=0.7, linewidth=0.6, **fill)
        for row, value in enumerate(values):
            roomy = value > READABLE * longest * max(1.0, len(number(value)) / 4)
            if roomy and value != totals[row]:  # the whole has its number at its end
                axes.annotate(
                    number(value), (reached[row] + value / 2, row), ha="center", va="center", fontsize=6,
                    bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"},
                )  # fmt: skip
        reached = [low + value for low, value in zip(reached, values, strict=True)]
    for row, total in enumerate(totals):
        axes.annotate(number(total), (total, row), (3, 0), textcoords="offset points", va="center", fontsize=7)
    axes.set_yticks(range(len(titles)), titles, fontsize=7)
    axes.set_ylim(len(titles) - 0.4, -0.6)
    axes.set_xlim(0, HEADROOM * longest)
    axes.tick_params(axis="x", labelsize=7)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return list(shown)


def check_figure(path: str) -> None:
    """Refuse a path that cannot become a figure, before anything is computed."""
    from sensorsim._util.errors import InputError
    from sensorsim._util.files import check_target

    if _form(path) not in FORMATS:
        raise InputError(f"{path} is not a figure; give a name that ends in {', '.join('.' + f for f in FORMATS)}.")
    check_target(path)


def write_figure(figure: Any, path: str, dpi: int = 150) -> None:
    """Write the figure in the form that the file name says."""
    from sensorsim._util.files import write_whole

    write_whole(path, picture(figure, _form(path), dpi))


def _form(path: str) -> str:
    from sensorsim._util.files import suffix_of

    return suffix_of(path, f".{FORMATS[0]}").lstrip(".")


def save_both(figure: Any, stem: Path, dpi: int = 160) -> list[Path]:
    """Write the figure as SVG, to print at any size, and as PNG, to show; `stem` is the path without an ending."""
    from sensorsim._util.files import write_whole

    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in ("svg", "png")]
    for path in paths:
        write_whole(path, picture(figure, path.suffix[1:], dpi))
    return paths


def apart(heights: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move ascending heights as little as possible (least squares) until they are `gap` apart.

    They stay between low and high where there is room; where there is none, the gap becomes smaller. Without the
    steps of `gap`, the wanted heights only have to ascend: neighbours that do not are merged to their mean.
    """
    if len(heights) > 1:
        gap = min(gap, (high - low) / (len(heights) - 1))
    groups: list[tuple[float, int]] = []  # the mean of merged neighbours, and how many they are
    for place, height in enumerate(heights):
        mean, count = height - place * gap, 1
        while groups and groups[-1][0] > mean:
            before, others = groups.pop()
            mean, count = (mean * count + before * others) / (count + others), count + others
        groups.append((mean, count))
    top = high - (len(heights) - 1) * gap
    flat = [min(max(mean, low), top) for mean, count in groups for _ in range(count)]
    return [height + place * gap for place, height in enumerate(flat)]
