"""The result of a simulated fleet: estimates and truth, spent budgets, energy, packets."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sensorsim._util.results import Result
from sensorsim._util.terminal import counted
from sensorsim.fleets.estimates import Coverage, Estimate, Spread, Used, Wear, estimates, number_of, spent_of, used_of
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
        by_name: dict[tuple[int, str], list[Estimate]] = {}
        for one in self.estimates:
            by_name.setdefault((one.feature, one.name), []).append(one)
        return tuple(self._feature(*named, found) for named, found in by_name.items())

    @property
    def half(self) -> float | None:
        """Return the mean half width of the people's intervals over whole periods and features."""
        return _mean([one.half for one in self._whole(self.estimates)])

    @property
    def count(self) -> float | None:
        """Return the mean number of values of an estimate."""
        return _mean([float(one.count) for one in self._whole(self.estimates)])

    @property
    def error_sd(self) -> float | None:
        """Return the standard deviation of the estimates about the people's truth."""
        return _root_mean_square([one.error for one in self._judged])

    @property
    def foretold_sd(self) -> float | None:
        """Return the standard deviation for the worst people of these means, which a plan assumes."""
        return _root_mean_square([one.foretold_sd for one in self._judged])

    @cached_property
    def spent(self) -> Spread:
        """Return the releases of a person over all days, as the journals counted them."""
        return spent_of(self.settings, self.counts)

    @cached_property
    def used(self) -> Used | None:
        """Return the energy of a device over all days; None without prices, or if nothing was done."""
        return used_of(self.settings, self.counts)

    @cached_property
    def wear(self) -> Wear:
        """Return the epsilon of the median person, and of the person with the most releases."""
        return Wear.of(self.settings.firmware, self.spent)

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
        from sensorsim.fleets.counts import OUTCOMES

        return tuple(self._outcome(name) for name in OUTCOMES)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each feature and period."""
        return [asdict(one) | {"half": one.half} for one in self.estimates]

    def to_dict(self) -> dict[str, Any]:
        """Return everything, for JSON."""
        from sensorsim.hospital.confidence import LEVEL

        head = {"schema_version": SCHEMA_VERSION, "content": CONTENT, "simulation": True, "private": False}
        totals = {name: getattr(self, name) for name in ("half", "count", "error_sd", "foretold_sd")}
        coverage = {"people": _covered(self.coverage), "records": _covered(self.coverage_of_records)}
        return {
            **head,
            "settings": self.settings.to_dict(),
            "data": self.settings.people.source,
            "every_days": self.every,
            "confidence": LEVEL,
            "people_are": self.of_people,
            "coverage": coverage,
            **totals,
            "features": [_feature_dict(one) for one in self.features],
            "spend": self._spend(),
            "packets": [asdict(one) for one in self.outcomes],
            "energy": None if self.used is None else self.used.to_dict(self.board),
            "estimates": self.rows(),
        }

    def _spend(self) -> dict[str, Any]:
        firmware = self.settings.firmware
        epsilon = float(firmware.epsilon)
        quantiles = {name: {"releases": n, "epsilon": n * epsilon} for name, n in self.spent.quantiles().items()}
        period = {"budget_epsilon": float(firmware.budget), "budget_days": firmware.budget_days}
        journal, sent = (int(most) * epsilon for most in self.counts.worst)
        worst = {"most_in_a_period": journal, "most_sent_in_a_period": sent, "over_budget": self.over_budget}
        return {"epsilon_of_a_release": epsilon, **period, **worst, "people": quantiles, **asdict(self.wear)}

    def _feature(self, feature: int, name: str, found: list[Estimate]) -> Feature:
        whole = self._whole(found)
        ranges = self.settings.people.ranges
        known = None if ranges is None or self.settings.firmware.sketch else ranges[feature]
        covered = Coverage.of([one.covered for one in found]), Coverage.of([one.covered_of_records for one in found])
        count, half = _mean([float(one.count) for one in whole]), _mean([one.half for one in whole])
        return Feature(feature, name, len(found), len(whole), count, half, *covered, known)

    def _outcome(self, name: str) -> Outcome:
        of = "records"
        if name in OF_RELEASED:
            of = "released"
        elif name in OF_DEVICES:
            of = "devices"
        count = self.counts.outcome(name)
        whole = self.settings.devices if of == "devices" else self.counts.outcome(of)
        return Outcome(name, count, of, count / whole if whole else None)

    @staticmethod
    def _whole(found: Sequence[Estimate]) -> list[Estimate]:
        return [one for one in found if one.whole]

    @property
    def _judged(self) -> list[Estimate]:
        return [one for one in self._whole(self.estimates) if one.error is not None]


def _covered(coverage: Coverage) -> dict[str, Any]:
    low, high = coverage.limits
    return {**asdict(coverage), "share": coverage.share, "low": low, "high": high}


def _feature_dict(one: Feature) -> dict[str, Any]:
    unit = {} if one.range is None else {"half_in_unit": one.half_in_unit, "unit": one.range.unit}
    plain = {name: getattr(one, name) for name in ("feature", "name", "periods", "whole_periods", "count", "half")}
    coverage = {"people": _covered(one.coverage), "records": _covered(one.coverage_of_records)}
    return {**plain, **unit, "coverage": coverage}


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _root_mean_square(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.sqrt(math.fsum(value * value for value in known) / len(known)) if known else None
