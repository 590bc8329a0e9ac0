"""Find faults of any figure: texts on texts, texts cut off, axes that end where nothing can be."""

import itertools
import re

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.legend import Legend
from matplotlib.text import Text

TOUCH = 1.0  # pixels that the boxes of two texts may share: a letter does not fill its box
# Axes of quantities that may be negative.
BELOW_ZERO = re.compile(
    r"log|expansion point|noise, in ranges|output, in ranges|R²|stabilization|weight|symbol|hidden unit|^$|accuracy"
)
OF_ACCURACY = re.compile(r"accuracy|intervals that hold")


def shown_texts(figure):
    """Return every text that is drawn; a tick out of its axis has a label that is not."""
    hidden = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            slack = 1e-9 * (high - low)
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                if not low - slack <= tick.get_loc() <= high + slack or not axes.axison:
                    hidden |= {id(tick.label1), id(tick.label2)}
    texts = (text for text in figure.findobj(Text) if text.get_text().strip() and text.get_visible())
    return [text for text in texts if id(text) not in hidden]


def words_of(figure):
    return " ".join(" ".join(text.get_text() for text in shown_texts(figure)).split())


def faults(figure):
    """Sentences, each with the texts that it is about."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    # of an annotation the letters alone, without its arrow
    boxes = [(text.get_text(), Text.get_window_extent(text, renderer)) for text in shown_texts(figure)]
    found = []
    for (one, a), (other, b) in itertools.combinations(boxes, 2):
        if min(a.x1, b.x1) - max(a.x0, b.x0) > TOUCH and min(a.y1, b.y1) - max(a.y0, b.y0) > TOUCH:
            found.append(f"{one!r} lies on {other!r}")
    page = figure.bbox
    for text, box in boxes:
        if box.x0 < -1 or box.y0 < -1 or box.x1 > page.width + 1 or box.y1 > page.height + 1:
            found.append(f"{text!r} is cut off")
    for legend in figure.findobj(Legend):
        box = legend.get_window_extent(renderer)
        for axes in figure.axes:
            panel = axes.patch.get_window_extent(renderer)
            wide, tall = min(box.x1, panel.x1) - max(box.x0, panel.x0), min(box.y1, panel.y1) - max(box.y0, panel.y0)
            if legend.get_texts() and wide > 2 and tall > 2:
                found.append(f"the legend {legend.get_texts()[0].get_text()!r} … lies on a panel")
    return found + [fault for axes in figure.axes for fault in (*_ends(axes), *_alike(axes))]


def _ends(axes):
    """Limits and ticks where the quantity cannot be."""
    if not axes.axison:
        return
    for axis in (axes.xaxis, axes.yaxis):
        title, (low, high) = axis.get_label_text(), sorted(axis.get_view_interval())
        if low < 0 and not BELOW_ZERO.search(title):
            yield f"{title!r} begins at {low:g}"
        if OF_ACCURACY.search(title) and high > 100:
            yield f"{title!r} ends at {high:g}"
        for label in axis.get_ticklabels():
            percent = re.fullmatch(r"([\d.]+) %", label.get_text())
            if percent and float(percent[1]) > 100:
                yield f"a tick says {label.get_text()}"


def _alike(axes):
    """Lines of one legend that only a colour tells apart, and bars that only a colour does."""
    lines = [line for line in axes.lines if not line.get_label().startswith("_")]
    for one, other in itertools.combinations(lines, 2):
        looks = [(each.get_linestyle(), each._dash_pattern, each.get_marker(), each.get_linewidth())
                 for each in (one, other)]  # fmt: skip
        light = [_light(each.get_color()) for each in (one, other)]
        if looks[0] == looks[1] and abs(light[0] - light[1]) < 0.2:
            yield f"{one.get_label()!r} and {other.get_label()!r} look alike in grey"
    bars = [bars for bars in axes.containers if bars.patches and not bars.get_label().startswith("_")]
    for one, other in itertools.combinations(bars, 2):
        (a, b) = (each.patches[0] for each in (one, other))
        if a.get_hatch() == b.get_hatch() and abs(_light(a.get_facecolor()) - _light(b.get_facecolor())) < 0.14:
            yield f"{one.get_label()!r} and {other.get_label()!r} look alike in grey"


def _light(colour):
    red, green, blue = to_rgb(colour)
    return 0.30 * red + 0.59 * green + 0.11 * blue
