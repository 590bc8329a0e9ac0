"""The setting of each part of a page: that of its plan, and that of each file of an earlier command.

Numbers of different settings are never put together: the headline is of the plan alone, and every other part begins
with its own setting and with what of it is not the plan's.
"""

from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sensorsim.noise.certificate import format_epsilon as epsilon
from sensorsim.report.parts import Column, Markup, paragraph, table
from sensorsim.terminal import counted

if TYPE_CHECKING:
    from sensorsim.noise.noise_table import NoiseTable
    from sensorsim.report.gather import Findings

PLAN, SWEEP, FLEET, PACKAGE = "the plan", "the sweep", "the fleet", "the package"
COMPARED = ("features", "epsilon", "mechanism")


@dataclass(frozen=True)
class Setting:
    """What the numbers of one part are of; the epsilons are those asked for, of a record."""

    of: str
    features: int
    epsilon: tuple[Decimal, ...]
    mechanism: tuple[str, ...]
    records: str

    def words(self, name: str) -> str:
        """Return one of its values as text."""
        value = getattr(self, name)
        if name == "epsilon":
            return ", ".join(map(epsilon, value)) or "none"
        return ", ".join(value) if isinstance(value, tuple) else str(value)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"epsilon": [float(one) for one in self.epsilon], "mechanism": list(self.mechanism)}


def settings(found: "Findings") -> dict[str, Setting]:
    """Return the setting of each part, the plan's first."""
    asked, kind = found.plan.asked, found.plan.table
    records = f"{counted(found.wanted.records_per_day, 'record')} a day of {counted(found.wanted.devices, 'device')}"
    made = [Setting(PLAN, asked.n, (kind.epsilon,), _mechanism(kind), records)]
    if found.sweep is not None:
        cells, sweep = found.sweep.cells, found.sweep
        asked_for = sorted({one.nominal_epsilon for one in cells if one.nominal_epsilon is not None})
        names = tuple(dict.fromkeys(one.mechanism for one in cells))
        records = f"{counted(sweep.rows, 'row')} of {sweep.source}"
        made.append(Setting(SWEEP, sweep.n, tuple(Decimal(str(one)) for one in asked_for), names, records))
    if found.fleet is not None:
        chosen, kind = found.fleet.settings, found.fleet.settings.firmware.table
        records = f"{counted(found.fleet.counts.outcome('records'), 'record')} of {counted(chosen.devices, 'device')}"
        made.append(Setting(FLEET, len(chosen.people.columns), (kind.epsilon,), _mechanism(kind), records))
    if found.package is not None and found.package.table is not None:
        kind = found.package.table
        made.append(Setting(PACKAGE, kind.features, (kind.epsilon,), _mechanism(kind), "no records"))
    return {one.of: one for one in made}


def setting_of(found: "Findings", name: str) -> list[Markup]:
    """Return the line that begins a part: its setting, and what of it is not the plan's. A part may have none."""
    known = settings(found)
    if name not in known:
        return []
    one, plan = known[name], known[PLAN]
    told = f"Setting of {name}: {counted(one.features, 'feature')}, epsilon {one.words('epsilon')}, mechanism "
    told += f"{one.words('mechanism')}, {one.records}."
    other = [f"{what} {plan.words(what)}" for what in COMPARED if getattr(one, what) != getattr(plan, what)]
    if other:
        told += f" It is not the plan's ({', '.join(other)}): its numbers do not belong beside those of the plan."
    return [paragraph(told, class_="setting")]


def overview(found: "Findings") -> list[Markup]:
    """Return a table of all settings, where there is more than the plan's."""
    known = settings(found)
    if len(known) == 1:
        return []
    columns = [Column("part"), Column("features", True), Column("epsilon of a record, asked"), Column("mechanism"),
               Column("records")]  # fmt: skip
    rows = [[one.of, *(one.words(name) for name in (*COMPARED, "records"))] for one in known.values()]
    return [table("Settings: the numbers above are of the plan alone", columns, rows)]


def _mechanism(kind: "NoiseTable") -> tuple[str, ...]:
    return ("sampled" if kind.sampled else "release",)
