"""What an audit found, look by look."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from sensorsim.results import Result, bars

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Event(NamedTuple):
    """The event that tells most: with the confidence asked for, it costs more than `bound`."""

    of: str
    inputs: tuple[str, str]  # the likelier first, where the bound is above 0
    bound: float
    claimed: float
    rates: tuple[float, float]

    @property
    def leaks(self) -> bool:
        return self.bound > self.claimed


class Check(NamedTuple):
    """The worst chi-square test of its kind. `p_value` is multiplied by `tests`, how many there were."""

    of: str
    input: str
    chi_square: float
    degrees: int
    p_value: float
    tests: int = 1


@dataclass(frozen=True)
class Look:
    """The draws so far, and what they show."""

    draws: int
    packets: int
    distribution: Check | None  # None: no distribution is known to compare with
    dependence: Check | None  # None: nothing need be independent
    event: Event
    allowed: float  # a p-value below this is no chance: the share of this look in the error probability

    @property
    def matches(self) -> bool:
        return self.distribution is None or self.distribution.p_value >= self.allowed

    @property
    def independent(self) -> bool:
        return self.dependence is None or self.dependence.p_value >= self.allowed

    @property
    def passed(self) -> bool:
        return self.matches and self.independent and not self.event.leaks


@dataclass(frozen=True, repr=False)
class Audit(Result):
    """All looks, in order. The last one decides: one that finds something certain ends the audit."""

    mechanism: str
    sees: str
    words: str  # where they come from
    seed: int
    confidence: float
    asked: int  # draws
    per_record: int  # draws in a packet
    claimed: float  # epsilon of a packet
    inputs: tuple[str, ...]
    looks: tuple[Look, ...]
    recovered: bool  # each of the first two inputs gave one value only of some field: x is read off exactly
    rarest: float  # what shows in one field of a smaller share of the packets is beyond these draws

    name: str = ""  # of what was audited

    @property
    def verdict(self) -> str:
        from sensorsim.privacy.audit.described import verdict

        return verdict(self)

    def title(self) -> str:
        return f"{self.name or self.mechanism}: {self.verdict}"

    def facts(self) -> dict[str, str]:
        event = self.last.event
        return {
            "draws": f"{self.draws:,} of {self.asked:,}, in {len(self.looks)} looks, seed {self.seed}",
            "observed": self.sees,
            "claimed": f"epsilon {self.claimed:.6g} for a packet",
            "measured": f"more than {event.bound:.6g} with confidence {self.confidence:g}; claimed {event.claimed:.6g}",
        }

    def to_dict(self) -> dict[str, Any]:
        from sensorsim.privacy.audit.described import data

        return data(self.name, self)

    def rows(self) -> list[dict[str, Any]]:
        from sensorsim.privacy.audit.described import rows

        return rows(self.name, self)

    def figure(self) -> "Figure":
        """The lower bound after each look, and what is claimed."""
        found: dict[str, float | None] = {f"{look.draws:,} draws": look.event.bound for look in self.looks}
        axis = f"lower bound of epsilon by the worst event, confidence {self.confidence:g}"
        title = f"{self.name or self.mechanism}, {self.draws:,} draws, seed {self.seed}: {self.verdict}"
        return bars(title, found, axis, line=(self.last.event.claimed, "claimed"))

    @property
    def last(self) -> Look:
        return self.looks[-1]

    @property
    def draws(self) -> int:
        return self.last.draws

    @property
    def matches(self) -> bool:
        return self.last.matches

    @property
    def independent(self) -> bool:
        return self.last.independent

    @property
    def leaks(self) -> bool:
        return self.last.event.leaks

    @property
    def passed(self) -> bool:
        return self.last.passed
