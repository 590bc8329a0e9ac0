"""`report(…)`: the page as one value, for the command line and for notebooks."""

from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sensorsim.files import Name, check_targets, write_whole
from sensorsim.report.asked import FILES, Wanted
from sensorsim.report.gather import Findings, Told, gather
from sensorsim.report.page import TITLE, page
from sensorsim.results import Result, bars

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMA_VERSION = 1


@dataclass(frozen=True, repr=False)
class Report(Result):
    """A page and the values in it."""

    findings: Findings
    html: str

    def title(self) -> str:
        return f"{TITLE}: {len(self.html.encode()):,} bytes of HTML; .write(path) keeps it"

    def facts(self) -> dict[str, str]:
        from sensorsim.report.opening import headlines

        return {name: f"{value}, {note}" for name, value, note in headlines(self.findings)}

    def rows(self) -> list[dict[str, Any]]:
        """The plan's lines, and the energy of each mechanism's record by its parts."""
        lines = [(one["name"], one["value"], one["unit"]) for one in self.findings.plan.rows()]
        lines += [(f"{one['mechanism']}, {one['part']}", one["uJ"], "µJ") for one in self.findings.record.rows()]
        return [{"name": name, "value": value, "unit": unit} for name, value, unit in lines]

    def to_dict(self) -> dict[str, Any]:
        from sensorsim.report.settings import settings

        found = self.findings
        claims = None if found.claims is None else [asdict(one) for one in found.claims]
        return {
            "schema_version": SCHEMA_VERSION,
            "plan": found.plan.to_dict(),
            "record": found.record.to_dict(),
            "cores": [asdict(one) for one in found.cores],
            "rivals": [asdict(one) for one in found.rivals],
            "claims": claims,
            "settings": [one.to_dict() for one in settings(found).values()],
            "versions": dict(found.versions),
        }

    def figure(self) -> "Figure":
        record = self.findings.record
        costs = {cost.title: cost.microjoule for cost in record.costs.values()}
        return bars(f"Energy of one record on {record.chip.name}", costs, "µJ")

    def _repr_html_(self) -> str:
        """The answer alone: a notebook has a style of its own."""
        from sensorsim.report.opening import opening
        from sensorsim.report.parts import tag

        return tag("section", tag("h2", TITLE), opening(self.findings))

    def write(self, path: Name) -> None:
        """Whole or not at all."""
        check_page(path, self.findings.wanted)
        write_whole(path, self.html)


def check_page(path: Name, wanted: Wanted) -> None:
    """Refuse a place that the page cannot be written to, or that it is read from."""
    from os import fspath

    from sensorsim.cost.chips import own_files

    check_targets([fspath(path)], read=[*(getattr(wanted, name) for name in FILES), *own_files(wanted.chip)])


def report(
    n: int = Wanted.n,
    l: int = Wanted.l,
    devices: int = Wanted.devices,
    records_per_day: int = Wanted.records_per_day,
    budget_epsilon: Decimal | float | str = Wanted.budget_epsilon,
    budget_days: int = Wanted.budget_days,
    every: int = Wanted.every,
    chip: str | None = Wanted.chip,
    radio: str = Wanted.radio,
    battery_mah: float = Wanted.battery_mah,
    sweep: Name | None = Wanted.sweep,
    package: Name | None = Wanted.package,
    fleet: Name | None = Wanted.fleet,
    noise: Name | None = Wanted.noise,
    claims: bool = Wanted.claims,
    told: Told = lambda text: None,
) -> Report:
    """One page on what a private record costs, protects and delivers: `.write(path)` keeps it.

    `sweep`, `package` and `fleet` are what the commands of these names wrote; `noise` is a table in place of the one
    that the plan would choose. `told` hears what is being done.
    """
    chosen = (n, l, devices, records_per_day, budget_epsilon, budget_days, every, chip, radio, battery_mah)
    found = gather(Wanted(*chosen, sweep, package, fleet, noise, claims), told)
    return Report(found, page(found))
