"""Distributions over devices, from histograms: what people spent, and what batteries gave."""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sensorsim.device.firmware import Firmware
    from sensorsim.fleet.counts import Counts, Whole
    from sensorsim.fleet.energy import Board
    from sensorsim.fleet.settings import Settings

QUANTILES = {"least": 0.0, "5 %": 0.05, "median": 0.5, "95 %": 0.95, "most": 1.0}
DELTA = 1e-6
NANOJOULES_PER_JOULE = 10**9
NANOJOULES_PER_MICROJOULE = 1000


@dataclass(frozen=True, eq=False)
class Spread:
    """A histogram over devices: bin i has those from begins(i)·step to begins(i + 1)·step - 1. Numbers are never said
    too small."""

    devices: "Whole"
    step: int
    begins: Callable[[int], int] = int  # bins of one step each

    def quantile(self, share: float) -> int:
        """At least this share of the devices have at most so much."""
        upto = self.devices.cumsum()
        every = int(upto[-1])
        rank = min(max(ceil(share * every), 1), every)
        place = int(upto.searchsorted(rank)) if every else 0
        return self.begins(place + 1) * self.step - 1

    def quantiles(self) -> dict[str, int]:
        return {name: self.quantile(share) for name, share in QUANTILES.items()}

    @property
    def overflows(self) -> bool:
        """Whether the last bin, which holds all that is beyond, has any."""
        return bool(self.devices[-1])


@dataclass(frozen=True)
class Wear:
    """Releases of a person over all days, and their epsilon: basic, and at delta by privacy-loss distributions."""

    delta: float
    median_releases: int
    median_basic: float
    median_at_delta: float
    most_releases: int
    most_basic: float
    most_at_delta: float

    @classmethod
    def of(cls, firmware: "Firmware", spent: Spread) -> "Wear":
        from sensorsim.accounting.composition import of_releases

        median, most = spent.quantile(0.5), spent.quantile(1.0)
        of_median, of_most = (of_releases(firmware.table, releases, DELTA) for releases in (median, most))
        return cls(DELTA, median, *of_median, most, *of_most)


@dataclass(frozen=True, eq=False)
class Used:
    """Energy of devices over all days, in nanojoules; the mean is exact, quantiles are to a bin of the histogram: to
    its step, or to 1/256 of themselves where that is more."""

    spread: Spread
    mean: float
    days: int
    parts: dict[str, float]  # of the mean: releases, openings, stores

    def share(self, board: "Board | None", nanojoule: float) -> float | None:
        """Of a charge of the battery."""
        return None if board is None or not board.joule else nanojoule / NANOJOULES_PER_JOULE / board.joule

    def to_dict(self, board: "Board | None") -> dict[str, Any]:
        named = {} if board is None else {"chip": board.chip, "radio": board.radio, "battery_mah": board.battery_mah}
        quantiles = {name: nanojoule / NANOJOULES_PER_MICROJOULE for name, nanojoule in self.spread.quantiles().items()}
        return {
            **named,
            "mean_uJ": self.mean / NANOJOULES_PER_MICROJOULE,
            "mean_uJ_per_day": self.mean / NANOJOULES_PER_MICROJOULE / self.days,
            "parts_uJ": {name: nanojoule / NANOJOULES_PER_MICROJOULE for name, nanojoule in self.parts.items()},
            "devices_uJ": quantiles,
            "step_uJ": self.spread.step / NANOJOULES_PER_MICROJOULE,
            "most_is_at_least": self.spread.overflows,
            "share_of_battery": self.share(board, self.mean),
        }


def spent_of(settings: "Settings", counts: "Counts") -> Spread:
    return Spread(counts.spent, settings.spent_step)


def used_of(settings: "Settings", counts: "Counts") -> Used | None:
    from sensorsim.fleet.counts import begins

    prices, devices = settings.prices, int(counts.energy.sum())
    if not devices:
        return None
    parts = {
        "releases": counts.outcome("released") * prices.release / devices,
        "openings": counts.outcome("opens") * prices.open / devices,
        "stores": counts.outcome("stores") * prices.store / devices,
    }
    mean = sum(parts.values())
    return Used(Spread(counts.energy, prices.step, begins), mean, settings.days, parts) if mean else None
