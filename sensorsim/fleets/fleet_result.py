"""The result of a simulated fleet: estimates and truth, spent budgets, energy, packets."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sensorsim._util.results import Result
from sensorsim._util.terminal import counted
from sensorsim.fleets.estimates import DELTA, Coverage, Estimate, Spread, Used, Wear, estimates, number_of
from sensorsim.noise.certificate import format_epsilon as epsilon

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sensorsim.datasets.public_ranges import Range
    from sensorsim.fleets.counts import Counts
    from sensorsim.fleets.energy import Board
    from sensorsim.fleets.settings import Settings

SCHEMA_VERSION = 1
CONTENT = "result of a fleet simulated by sensorsim"
OF_RELEASED = ("lost", "received")
OF_RECORDS = ("passed over", "released", "spent", "no entropy", "no store", "bad journal", "bad clock", "cut")
OF_DEVICES = ("resets", "opens", "stores", "stuck devices")


@dataclass(frozen=True)
class Feature:
    """Estimates of one feature over all periods."""

    feature: int
    name: str
    periods: int  # all, each with its interval
    whole_periods: int  # those of all their days: count and half are means over these
    count: float | None  # values that came for one estimate, on average
    half: float | None  # mean half width of the people's interval
    coverage: Coverage
    coverage_of_records: Coverage
    range: "Range | None"

    @property
    def half_in_unit(self) -> float | None:
        return None if self.half is None or self.range is None else self.half * self.range.span


@dataclass(frozen=True)
class Outcome:
    """How many records, packets or devices had an outcome."""

    name: str
    count: int
    of: str  # what the share is of
    share: float | None


@dataclass(frozen=True, eq=False, repr=False)
class FleetResult(Result):
    """The result of a fleet, computed from its sums. Estimates are of `every` days each."""

    settings: "Settings"
    counts: "Counts"
    every: int = 7
    board: "Board | None" = None  # whose battery the energy is a share of

    def __post_init__(self) -> None:
        number_of(self.settings, self.every)

    def title(self) -> str:
        share = self.coverage.share
        intervals = counted(self.coverage.intervals, "interval")
        covered = "" if share is None else f", {100 * share:.1f} % of {intervals} hold"
        devices, days = counted(self.settings.devices, "device"), counted(self.settings.days, "day")
        received = counted(self.counts.outcome("received"), "packet")
        return f"FleetResult({devices}, {days}, {received}{covered})"

    def facts(self) -> dict[str, str]:
        firmware = self.settings.firmware
        worst = epsilon(self.worst_period, 6)
        facts = {"simulation": "seeded, with the truth beside the estimates: nothing of it is private"}
        facts["epsilon"] = f"{firmware.epsilon} a release, proved; at most {worst} of {firmware.budget} in a period"
        facts["estimates"] = f"of {self.every} days each" + (f", ±{self.half:.4f} of a range" if self.half else "")
        return facts | {one.name: f"{one.count:,}" for one in self.outcomes}

    def figure(self) -> "Figure":
        """Draw a page of figures."""
        from sensorsim.fleets.fleet_page import page

        made: Figure = page(self)
        return made

    @cached_property
    def estimates(self) -> tuple[Estimate, ...]:
        """Return an estimate of each feature in each period; one over all days for a sketch."""
        return estimates(self.settings, self.counts, self.every)

    def reckon(self, progress: Callable[[int], None]) -> None:
        """Compute the estimates now, and report how many are done: they may take minutes."""
        self.__dict__["estimates"] = estimates(self.settings, self.counts, self.every, progress)

    @property
    def of_people(self) -> str:
        """Return whose mean the people's truth is: with a sketch, unreleased records are unknown."""
        return "all released records" if self.settings.firmware.sketch else "all people's records"

    @cached_property
    def coverage(self) -> Coverage:
        """Return the coverage of the mean over all records of these days."""
        return Coverage.of([one.covered for one in self.estimates])

    @cached_property
    def coverage_of_records(self) -> Coverage:
        """Return the coverage of the mean over the received records."""
        return Coverage.of([one.covered_of_records for one in self.estimates])

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """Return the estimates of each feature, summed up over its periods."""
        by_name: dict[tuple[int, str], list[Estimate]] = {}
        for one in self.estimates:
            by_name.setdefault((one.feature, one.name), []).append(one)
        ranges, made = self.settings.people.ranges, []
        for (feature, name), found in by_name.items():
            whole = [one for one in found if one.whole]
            known = None if ranges is None or self.settings.firmware.sketch else ranges[feature]
            covered = Coverage.of([one.covered for one in found])
            of_records = Coverage.of([one.covered_of_records for one in found])
            count, half = _mean([float(one.count) for one in whole]), _mean([one.half for one in whole])
            made.append(Feature(feature, name, len(found), len(whole), count, half, covered, of_records, known))
        return tuple(made)

    @cached_property
    def _whole(self) -> list[Estimate]:
        return [one for one in self.estimates if one.whole]

    @property
    def half(self) -> float | None:
        """Return the mean half width of the people's intervals over whole periods and features."""
        return _mean([one.half for one in self._whole])

    @property
    def count(self) -> float | None:
        """Return the mean number of values of an estimate."""
        return _mean([float(one.count) for one in self._whole])

    @property
    def error_sd(self) -> float | None:
        """Return the standard deviation of the estimates about the people's truth."""
        return _root_mean_square([one.error for one in self._whole])

    @property
    def foretold_sd(self) -> float | None:
        """Return the standard deviation for the worst people of these means, which a plan assumes."""
        return _root_mean_square([one.foretold_sd for one in self._whole if one.error is not None])

    @cached_property
    def spent(self) -> Spread:
        """Return the releases of a person over all days, as the journals counted them."""
        return Spread(self.counts.spent, self.settings.spent_step)

    @cached_property
    def used(self) -> Used | None:
        """Return the energy of a device over all days; None without prices, or if nothing was done."""
        from sensorsim.fleets.counts import begins

        counts, prices, devices = self.counts, self.settings.prices, int(self.counts.energy.sum())
        if not devices:
            return None
        parts = {
            "releases": counts.outcome("released") * prices.release / devices,
            "openings": counts.outcome("opens") * prices.open / devices,
            "stores": counts.outcome("stores") * prices.store / devices,
        }
        mean = sum(parts.values())
        return Used(Spread(counts.energy, prices.step, begins), mean, self.settings.days, parts) if mean else None

    @cached_property
    def wear(self) -> Wear:
        """Return the epsilon of the median person, and of the person with the most releases."""
        from sensorsim.accounting.composition import of_releases

        table, median, most = self.settings.firmware.table, self.spent.quantile(0.5), self.spent.quantile(1.0)
        return Wear(DELTA, median, *of_releases(table, median, DELTA), most, *of_releases(table, most, DELTA))

    @property
    def worst_period(self) -> Fraction:
        """Return the largest epsilon of a device in one budget period, by its journal or by its packets."""
        return int(self.counts.worst.max()) * Fraction(self.settings.firmware.epsilon)

    @property
    def over_budget(self) -> bool:
        """Return whether a person spent more than the budget of a period: never, unless the device model is wrong."""
        return self.worst_period > Fraction(self.settings.firmware.budget)

    @cached_property
    def outcomes(self) -> tuple[Outcome, ...]:
        """Return how many records, packets and devices had each outcome."""
        from sensorsim.fleets.counts import OUTCOMES

        made = []
        for name in OUTCOMES:
            of = "released" if name in OF_RELEASED else "devices" if name in OF_DEVICES else "records"
            whole = self.settings.devices if of == "devices" else self.counts.outcome(of)
            count = self.counts.outcome(name)
            made.append(Outcome(name, count, of, count / whole if whole else None))
        return tuple(made)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each feature and period."""
        return [asdict(one) | {"half": one.half} for one in self.estimates]

    def to_dict(self) -> dict[str, Any]:
        """Return everything, for JSON."""
        from sensorsim.hospital.confidence import LEVEL

        firmware, each = self.settings.firmware, float(self.settings.firmware.epsilon)
        journal, sent = (int(most) * each for most in self.counts.worst)
        spend = {
            "epsilon_of_a_release": each,
            "budget_epsilon": float(firmware.budget),
            "budget_days": firmware.budget_days,
            "most_in_a_period": journal,
            "most_sent_in_a_period": sent,
            "over_budget": self.over_budget,
            "people": {name: {"releases": n, "epsilon": n * each} for name, n in self.spent.quantiles().items()},
            **asdict(self.wear),
        }
        return {
            "schema_version": SCHEMA_VERSION,
            "content": CONTENT,
            "simulation": True,
            "private": False,
            "settings": self.settings.to_dict(),
            "data": self.settings.people.source,
            "every_days": self.every,
            "confidence": LEVEL,
            "people_are": self.of_people,
            "coverage": _coverages(self),
            **{name: getattr(self, name) for name in ("half", "count", "error_sd", "foretold_sd")},
            "features": [_feature_dict(one) for one in self.features],
            "spend": spend,
            "packets": [asdict(one) for one in self.outcomes],
            "energy": None if self.used is None else self.used.to_dict(self.board),
            "estimates": self.rows(),
        }


def _coverages(of: FleetResult | Feature) -> dict[str, Any]:
    """Return both coverages of a result or of a feature, for JSON."""
    both = {"people": of.coverage, "records": of.coverage_of_records}
    return {
        name: {**asdict(one), "share": one.share, "low": one.limits[0], "high": one.limits[1]}
        for name, one in both.items()
    }


def _feature_dict(one: Feature) -> dict[str, Any]:
    unit = {} if one.range is None else {"half_in_unit": one.half_in_unit, "unit": one.range.unit}
    plain = {name: getattr(one, name) for name in ("feature", "name", "periods", "whole_periods", "count", "half")}
    return {**plain, **unit, "coverage": _coverages(one)}


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _root_mean_square(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.sqrt(math.fsum(value * value for value in known) / len(known)) if known else None
