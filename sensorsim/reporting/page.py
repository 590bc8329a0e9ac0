"""`report(…)`: compute the values of a page and render it from templates/ as one file without script or request."""

from collections import Counter
from dataclasses import asdict, dataclass
from decimal import Decimal
from functools import cache
from os import fspath
from shlex import quote
from typing import TYPE_CHECKING, Any

from sensorsim._util.files import Name, check_targets, write_whole
from sensorsim._util.results import Result, bars
from sensorsim._util.terminal import counted
from sensorsim.costing.cost_text import LEFT_OUT, SHOWN, describe_record, format_short
from sensorsim.costing.record_energy import MICROJOULES_PER_JOULE, NANOJOULES_PER_MICROJOULE, PARTS
from sensorsim.noise.certificate import format_epsilon as epsilon
from sensorsim.planning.deployment import span
from sensorsim.reporting.charts import energy_chart, percent, precision_chart, rival_chart
from sensorsim.reporting.findings import Findings, Progress, compute_findings
from sensorsim.reporting.request import FILES, ReportRequest

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.figure import Figure

SCHEMA_VERSION = 1
TITLE = "What a private record costs, protects and delivers"
SECTIONS = {"costs": "Costs", "protects": "Protects", "delivers": "Delivers", "firmware": "Firmware",
            "claims": "Claims", "made": "How it was made"}  # fmt: skip
UNINFORMATIVE = 0.5  # a half width of half the range says nothing


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


def report(
    n: int = ReportRequest.n,
    l: int = ReportRequest.l,
    devices: int = ReportRequest.devices,
    records_per_day: int = ReportRequest.records_per_day,
    budget_epsilon: Decimal | float | str = ReportRequest.budget_epsilon,
    budget_days: int = ReportRequest.budget_days,
    every: int = ReportRequest.every,
    chip: str | None = ReportRequest.chip,
    radio: str = ReportRequest.radio,
    battery_mah: float = ReportRequest.battery_mah,
    sweep: Name | None = ReportRequest.sweep,
    package: Name | None = ReportRequest.package,
    fleet: Name | None = ReportRequest.fleet,
    noise: Name | None = ReportRequest.noise,
    claims: bool = ReportRequest.claims,
    told: Progress = lambda text: None,
) -> Report:
    """Make one page on what a private record costs, protects and delivers; `.write(path)` writes it.

    `sweep`, `package` and `fleet` are outputs of the commands of these names; `noise` is a table in place of the one
    that the plan would choose. `told` is called with the name of each step as it begins.
    """
    sizes = (n, l, devices, records_per_day, budget_epsilon, budget_days, every, chip, radio, battery_mah)
    found = compute_findings(ReportRequest(*sizes, sweep, package, fleet, noise, claims), told)
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
    for size, name in ((10**9, "billion"), (10**6, "million")):
        if count >= size:
            return f"{count / size:.3g} {name}"
    return f"{count:,.0f}"


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
