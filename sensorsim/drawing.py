"""A figure as bytes: the same figure is the same bytes, whatever the day and the run. And labels that keep apart."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Neither date nor version inside; and the names that an SVG gives its parts follow from the picture alone.
FORMATS = ("svg", "png", "pdf")
METADATA: dict[str, dict[str, None]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}


def picture(figure: Any, kind: str, dpi: int) -> bytes:
    """The figure as a file of this kind: svg, png or pdf."""
    import matplotlib

    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "sensorsim"}):
        figure.savefig(buffer, format=kind, metadata=METADATA[kind], dpi=dpi)
    return buffer.getvalue()


def check_figure(path: str) -> None:
    """Refuse a path that cannot become a figure, before anything is computed."""
    from sensorsim.errors import InputError
    from sensorsim.files import check_target

    if Path(path).suffix.lstrip(".").lower() not in FORMATS:
        raise InputError(f"{path} is not a figure; give a name that ends in {', '.join('.' + f for f in FORMATS)}.")
    check_target(path)


def write_figure(figure: Any, path: str, dpi: int = 150) -> None:
    """The figure in a file, in the form that its name says."""
    from sensorsim.files import write_whole

    write_whole(path, picture(figure, Path(path).suffix.lstrip(".").lower(), dpi))


def save_both(figure: Any, stem: Path, dpi: int = 160) -> list[Path]:
    """The figure as SVG, to print at any size, and as PNG, to show; `stem` is the path without an ending."""
    from sensorsim.files import write_whole

    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in ("svg", "png")]
    for path in paths:
        write_whole(path, picture(figure, path.suffix[1:], dpi))
    return paths


def apart(heights: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Heights in ascending order, moved as little as possible (least squares) until they are `gap` apart.

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
