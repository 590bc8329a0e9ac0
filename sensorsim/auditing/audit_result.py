"""The result of an audit: what each interim look found, the verdict, and its JSON and CSV forms."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from sensorsim._util.results import Result, bars

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMA = 2


class Event(NamedTuple):
    """The most revealing event: with the requested confidence it costs more than `bound`."""

    of: str
    inputs: tuple[str, str]  # the likelier first, if the bound is above 0
    bound: float
    claimed: float
    rates: tuple[float, float]

    @property
    def leaks(self) -> bool:
        return self.bound > self.claimed

    def to_dict(self) -> dict[str, Any]:
        return {
            "of": self.of,
            "inputs": list(self.inputs),
            "epsilon_claimed": self.claimed,
            "epsilon_bound": self.bound,
            "rate_likelier": self.rates[0],
            "rate_other": self.rates[1],
        }


class Check(NamedTuple):
    """The worst chi-square test of its kind. `p_value` is multiplied by `tests`, their number."""

    of: str
    input: str
    chi_square: float
    degrees: int
    p_value: float
    tests: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Return the test for JSON, which has no infinity."""
        return self._asdict() | {"chi_square": self.chi_square if math.isfinite(self.chi_square) else None}


@dataclass(frozen=True)
class Look:
    """An interim look: the draws so far, and what they show."""

    draws: int
    packets: int
    distribution: Check | None  # None: no distribution is known to compare with
    dependence: Check | None  # None: nothing need be independent
    event: Event
    allowed: float  # a p-value below this rejects: the share of this look in the error probability

    @property
    def matches(self) -> bool:
        return self.distribution is None or self.distribution.p_value >= self.allowed

    @property
    def independent(self) -> bool:
        return self.dependence is None or self.dependence.p_value >= self.allowed

    @property
    def passed(self) -> bool:
        return self.matches and self.independent and not self.event.leaks

    def to_dict(self) -> dict[str, Any]:
        return {
            "draws": self.draws,
            "packets": self.packets,
            "p_allowed": self.allowed,
            "distribution": self.distribution and self.distribution.to_dict(),
            "dependence": self.dependence and self.dependence.to_dict(),
            "event": self.event.to_dict(),
            "matches": self.matches,
            "independent": self.independent,
            "leaks": self.event.leaks,
            "passed": self.passed,
        }


@dataclass(frozen=True, repr=False)
class Audit(Result):
    """All looks, in order. The last one decides: a look that finds something ends the audit."""

    mechanism: str
    sees: str
    words: str  # their generator
    seed: int
    confidence: float
    asked: int  # draws
    per_record: int  # draws in a packet
    claimed: float  # epsilon of a packet
    inputs: tuple[str, ...]
    looks: tuple[Look, ...]
    recovered: bool  # some field has one value for each of the first two inputs: it reveals x exactly
    rarest: float  # a leak in one field of a smaller share of the packets is beyond these draws

    name: str = ""  # of what was audited

    @property
    def verdict(self) -> str:
        """Say in one line whether there is a leak, a dependence, a mismatch, or nothing."""
        last, event = self.last, self.last.event
        if event.leaks and self.recovered:
            return "LEAK: every packet gives x away exactly."
        if event.leaks:
            return f"LEAK: {event.of} costs more than {event.bound:.4g}, {event.claimed:.4g} was claimed."
        if last.dependence is not None and not last.independent:
            return f"DEPENDENT: {last.dependence.of} are not independent, so what they cost together is not certified."
        if last.distribution is not None and not last.matches:
            return f"MISMATCH: {last.distribution.of} does not follow the distribution that the certificate is about."
        return "No leak found. That is no proof; the proof is the certificate (sensorsim noise check)."

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
        return {
            "schema_version": SCHEMA,
            "file": self.name,
            "mechanism": self.mechanism,
            "sees": self.sees,
            "words": self.words,
            "seed": self.seed,
            "words_are_secret": False,
            "inputs": list(self.inputs),
            "confidence": self.confidence,
            "draws_asked": self.asked,
            "draws": self.draws,
            "packets": self.last.packets,
            "per_record": self.per_record,
            "epsilon_claimed": self.claimed,
            "looks": [look.to_dict() for look in self.looks],
            "recovered": self.recovered,
            "rarest_leak_seen": self.rarest,
            "matches": self.matches,
            "independent": self.independent,
            "leaks": self.leaks,
            "passed": self.passed,
            "verdict": self.verdict,
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each look, for CSV."""
        made = []
        for look in self.looks:
            event = look.event.to_dict()
            made.append(
                {
                    "file": self.name,
                    "mechanism": self.mechanism,
                    "draws": look.draws,
                    "packets": look.packets,
                    "p_distribution": look.distribution.p_value if look.distribution else None,
                    "p_dependence": look.dependence.p_value if look.dependence else None,
                    "event": event.pop("of"),
                    **{key: value for key, value in event.items() if key != "inputs"},
                    "passed": look.passed,
                    "verdict": self.verdict if look is self.last else "",
                }
            )
        return made

    def figure(self) -> "Figure":
        """Draw the lower bound after each look, and the claim."""
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
