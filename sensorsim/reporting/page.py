"""Compute the values of a page and render it from templates/ as one file without script or request."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from functools import cache
from os import fspath
from shlex import quote
from typing import TYPE_CHECKING, Any

from sensorsim._util.files import Name, check_targets, write_whole
from sensorsim._util.results import Result, bars
from sensorsim._util.terminal import counted
from sensorsim.costing.cost_text import LEFT_OUT, SHOWN, describe_record, format_short
from sensorsim.costing.record_energy import MICROJOULES_PER_JOULE, NANOJOULES_PER_MICROJOULE, PARTS, WholeRecord
from sensorsim.noise.certificate import format_epsilon as epsilon
from sensorsim.planning.deployment import span
from sensorsim.reporting.findings import Findings, Progress, Rival, compute_findings
from sensorsim.reporting.request import FILES, ReportRequest

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.figure import Figure

SCHEMA_VERSION = 1
TITLE = "What a private record costs, protects and delivers"
SECTIONS = {"costs": "Costs", "protects": "Protects", "delivers": "Delivers", "firmware": "Firmware",
            "claims": "Claims", "made": "How it was made"}  # fmt: skip
UNINFORMATIVE = 0.5  # a half width of half the range says nothing
WIDTH = 340  # as wide as a phone
CHARACTER, BOLD_CHARACTER = 6.6, 7.6  # largest width of a character at the font size of the style sheet
SUFFIXES = ((10**9, 10**9, "G"), (10**6, 10**6, "M"), (10**4, 1000, "k"))  # from, divisor, suffix


@dataclass(frozen=True, repr=False)
class Report(Result):
    """A page and the values in it."""

    findings: Findings
    html: str

    def title(self) -> str:
        return f"{TITLE}: {len(self.html.encode()):,} bytes of HTML; .write(path) keeps it"

    def facts(self) -> dict[str, str]:
        return {name: f"{value}, {note}" for name, value, note in headlines(self.findings)}

    def rows(self) -> list[dict[str, Any]]:
        """Return the plan's lines, and the energy of each mechanism's record by component."""
        lines = [(one["name"], one["value"], one["unit"]) for one in self.findings.plan.rows()]
        lines += [(f"{one['mechanism']}, {one['part']}", one["uJ"], "µJ") for one in self.findings.record.rows()]
        return [{"name": name, "value": value, "unit": unit} for name, value, unit in lines]

    def to_dict(self) -> dict[str, Any]:
        found = self.findings
        return {
            "schema_version": SCHEMA_VERSION,
            "plan": found.plan.to_dict(),
            "record": found.record.to_dict(),
            "cores": [asdict(one) for one in found.cores],
            "rivals": [asdict(one) for one in found.rivals],
            "claims": None if found.claims is None else [asdict(one) for one in found.claims],
            "settings": [one.to_dict() for one in found.settings.values()],
            "versions": dict(found.versions),
        }

    def figure(self) -> "Figure":
        record = self.findings.record
        costs = {cost.title: cost.microjoule for cost in record.costs.values()}
        return bars(f"Energy of one record on {record.chip.name}", costs, "µJ")

    def _repr_html_(self) -> str:
        return _render("notebook.html", self.findings)

    def write(self, path: Name) -> None:
        """Write the page; raise InputError if `path` cannot be written, or is a file that the page was made from."""
        from sensorsim.costing.chips import own_files

        request = self.findings.request
        read = [*(getattr(request, name) for name in FILES), *own_files(request.chip)]
        check_targets([fspath(path)], read=read)
        write_whole(path, self.html)


def make_report(request: ReportRequest, told: Progress = lambda text: None) -> Report:
    """Make one page on what a private record costs, protects and delivers; `told` is called with each step."""
    found = compute_findings(request, told)
    return Report(found, render_page(found))


def render_page(found: Findings) -> str:
    """Render the page. The same findings give the same bytes."""
    return _render("page.html", found)


def headlines(found: Findings) -> list[tuple[str, str, str]]:
    """Return the four headlines: a name, the number, and a note on what it is."""
    request, costs, person = found.request, found.plan.costs, found.month
    records = costs.microjoule and found.record.joule and found.record.joule * MICROJOULES_PER_JOULE / costs.microjoule
    battery = f"; a battery of {request.battery_mah:g} mAh pays for {large(records)}" if records else ""
    energy = "not known" if costs.microjoule is None else f"{format_short(costs.microjoule)} µJ"
    estimates = f"every mean {span(request.every)}, {counted(request.devices, 'device')}, 95 %"
    releases = counted(person.releases, "release")
    return [
        ("costs a record", energy, f"{number(costs.cycles)} cycles{battery}"),
        ("protects a record", f"ε {bound(found.certificate.epsilon_record)}",
         "delta 0, for every pair of records; proved just now"),
        ("protects a person", f"ε {epsilon(person.basic)}", f"in any 30 days, {releases} at most; delta 0"),
        ("delivers", f"±{percent(found.plan.half)}", f"of a range: {estimates}"),
    ]  # fmt: skip


def bound(value: Decimal | float | None, otherwise: str = "without bound") -> str:
    """Format an epsilon, or say `otherwise` where there is no bound."""
    return otherwise if value is None else epsilon(value)


def large(count: float) -> str:
    """Format a large number in words, as in 95 million."""
    named = ((10**9, "billion"), (10**6, "million"))
    return next((f"{count / size:.3g} {name}" for size, name in named if count >= size), f"{count:,.0f}")


def score(value: float | None) -> str:
    """Format an accuracy with two decimals; a dash where there is none."""
    return "–" if value is None else f"{round(value, 2) + 0.0:.2f}"  # + 0.0: no -0.00


def number(value: float | None, digits: int = 4) -> str:
    """Format a number with `digits` digits, or whole with separators from a thousand on; a dash where there is none."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.{digits}g}"


def sentence(text: str) -> str:
    """Capitalise a text and end it with a full stop."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def printable(value: object) -> object:
    """Replace characters of untrusted text that no browser shows; markup of the templates stays as it is."""
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    return "".join(one if one.isprintable() or one == "\n" else "\N{REPLACEMENT CHARACTER}" for one in value)


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("sensorsim.reporting")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, finalize=printable, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True, extensions=["jinja2.ext.do"],
    )  # fmt: skip
    filters = (bound, counted, large, number, percent, quote, score, sentence, span)
    environment.filters |= {function.__name__: function for function in filters}
    environment.filters |= {"epsilon": epsilon, "short": format_short}
    return environment


def _render(template: str, found: Findings) -> str:
    from sensorsim.paper.recompute import MARKS

    shown = {name: title for name, title in SECTIONS.items() if name != "claims" or found.claims is not None}
    verdicts = Counter(one.verdict for one in found.claims or ())
    return _environment().get_template(template).render(
        found=found, request=found.request, plan=found.plan, record=found.record, settings=found.settings,
        title=TITLE, sections=shown, headlines=headlines(found), left_out=LEFT_OUT.strip(), marks=MARKS,
        verdicts={name: verdicts[name] for name in MARKS if verdicts[name]},
        mechanisms=[found.record.costs[name] for name in SHOWN if name in found.record.costs], parts=PARTS,
        nanojoules=NANOJOULES_PER_MICROJOULE, uninformative=UNINFORMATIVE,
        board=describe_record(found.record).replace("; choose with --chip", ""),
        energy_chart=energy_chart(found.record),
        precision_chart=precision_chart(found.curve, found.request.devices), rival_chart=rival_chart(found.rivals),
    )  # fmt: skip


# ── figures: geometry that templates/macros.html draws as SVG ──


@dataclass
class Chart:
    """A figure of WIDTH by `height`. Classes are those of the style sheet; `description` is read to the blind."""

    name: str
    title: str
    height: float
    description: str = ""
    rects: list[tuple[float, float, float, float, str]] = field(default_factory=list)  # x, y, width, height, class
    lines: list[tuple[str, str]] = field(default_factory=list)  # points, class
    dots: list[tuple[float, float]] = field(default_factory=list)
    texts: list[tuple[float, float, str, str, str]] = field(default_factory=list)  # x, y, text, class, anchor
    width: int = WIDTH

    def text(self, x: float, y: float, text: str, css: str = "", anchor: str = "start") -> None:
        """Place text at (x, y), which is its start, middle or end."""
        self.texts.append((x, y, text, css, anchor))

    def line(self, points: Iterable[tuple[float, float]], css: str) -> None:
        """Draw a line through the points."""
        self.lines.append((" ".join(f"{x:.1f},{y:.1f}" for x, y in points), css))


def percent(share: float) -> str:
    """Format a share with three digits, as in 24.2 %."""
    return f"{100 * share:.3g} %"


def energy_chart(record: WholeRecord) -> Chart | None:
    """Draw one stacked bar per mechanism; None where the chip has no figure for the energy of a part."""
    costs = [record.costs[name] for name in SHOWN if name in record.costs and record.costs[name].microjoule]
    if not costs:
        return None
    chart = Chart("energy", "Energy of one record by component", 46 * len(costs) + 48)
    for place, name in enumerate(PARTS):
        x, y = WIDTH / 2 * (place % 2), 4.0 + 20 * (place // 2)
        chart.rects.append((x, y, 12, 12, f"part{place}"))
        chart.text(x + 18, y + 10, name)
    longest, descriptions = max(cost.microjoule or 0.0 for cost in costs), []
    for row, cost in enumerate(costs):
        x, y = 0.0, 62.0 + 46 * row
        energies = {name: (cost.parts[name].nJ or 0.0) / NANOJOULES_PER_MICROJOULE for name in PARTS}
        chart.text(0, y, cost.title)
        chart.text(WIDTH, y, f"{format_short(cost.microjoule)} µJ", "strong", "end")
        for place, energy in enumerate(energies.values()):
            width = WIDTH * energy / longest
            chart.rects.append((x, y + 7, width, 18, f"part{place}"))
            if width > len(format_short(energy)) * CHARACTER + 8:
                chart.text(x + width / 2, y + 20, format_short(energy), f"on{place}", "middle")
            x += width
        parts = ", ".join(f"{name} {format_short(energy)}" for name, energy in energies.items())
        descriptions.append(f"{cost.title}: {format_short(cost.microjoule)} µJ ({parts})")
    chart.description = f"{'; '.join(descriptions)}."
    return chart


def rival_chart(rivals: Sequence[Rival]) -> Chart:
    """Draw one bar per mechanism for its standard deviation, the plan's own in bold."""
    left, longest = 122, max(one.sd for one in rivals)
    chart = Chart("rivals", "Standard deviation of the estimate, in ranges of x", 24 * len(rivals))
    for row, one in enumerate(rivals):
        y, width, css = 24 * row, (WIDTH - left - 60) * one.sd / longest, "strong" if one.own else ""
        chart.text(0, y + 14, one.name, css)
        chart.rects.append((left, y + 3, width, 15, "part3" if one.own else "part2"))
        chart.text(left + width + 6, y + 14, f"{one.sd:.4g}", css)
    chart.description = ", ".join(f"{one.name} {one.sd:.4g}" for one in rivals) + "."
    return chart


def precision_chart(curve: Sequence[tuple[int, float]], devices: int) -> Chart:
    """Draw the half width over the number of devices, both axes logarithmic, with `devices` marked."""
    left, right, top, bottom = 60, WIDTH - 18, 30, 190
    xs, ys = [math.log10(count) for count, _ in curve], [math.log10(half) for _, half in curve]
    low, high = min(xs), max(max(xs), min(xs) + 0.1)
    least, most = math.floor(min(ys) * 2) / 2, max(ys) + 0.05

    def place(count: float, half: float) -> tuple[float, float]:
        x = left + (math.log10(count) - low) / (high - low) * (right - left)
        return x, bottom - (math.log10(half) - least) / (most - least) * (bottom - top)

    chart = Chart("precision", "The interval narrows with the number of devices", bottom + 42)
    chart.text(0, 13, "± share of the range, 95 %", "soft")
    for tick in _ticks(10**least, 10**most, (1, 2, 5)):
        y = place(curve[0][0], tick)[1]
        chart.line([(left, y), (right, y)], "grid")
        chart.text(left - 6, y + 4, percent(tick), "soft", "end")
    for tick in _ticks(curve[0][0], curve[-1][0], (1,)):
        x = place(tick, 10**least)[0]
        chart.line([(x, bottom), (x, bottom + 4)], "axis")
        chart.text(x, bottom + 18, _short_count(tick), "soft", "middle")
    chart.text(right, bottom + 36, "devices", "soft", "end")
    chart.line([(left, bottom), (right, bottom)], "axis")
    chart.line([place(*point) for point in curve], "curve")
    half = dict(curve)[devices]
    x, y = place(devices, half)
    chart.dots.append((x, y))
    label = f"{devices:,}: ±{percent(half)}"
    fits = x + 9 + len(label) * BOLD_CHARACTER < WIDTH
    chart.text(x + 9 if fits else WIDTH, y - 9, label, "strong", "start" if fits else "end")
    chart.description = ", ".join(f"{count:,} devices ±{percent(half)}" for count, half in curve) + "."
    return chart


def _ticks(low: float, high: float, steps: Sequence[int]) -> list[float]:
    """Return the multiples `steps` of powers of ten from low to high."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [step * 10.0**power for power in powers for step in steps]
    return [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]


def _short_count(count: float) -> str:
    """Format a count to fit below an axis: 1,000, 10k, 1M."""
    return next((f"{count / by:g}{suffix}" for least, by, suffix in SUFFIXES if count >= least), f"{count:,.0f}")
