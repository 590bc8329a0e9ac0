"""What one record of one mechanism costs, part by part."""

from collections.abc import Mapping
from typing import Any, NamedTuple

PARTS = ("arithmetic", "random words", "journal", "on air")
NANOJOULES_PER_MICROJOULE = 1000
MICROJOULES_PER_JOULE = 1_000_000
SECONDS_PER_DAY = 86_400


class Part(NamedTuple):
    """A part of a record: cycles of the core, and energy; None where the chip's table has no figure."""

    cycles: float
    nJ: float | None  # noqa: N815 - the unit's own spelling


class RecordCost(NamedTuple):
    """One record of one mechanism."""

    mechanism: str
    title: str
    random_bits: int
    bytes_sent: int
    packets: int
    parts: Mapping[str, Part]
    sending_seconds: float  # on the air
    busy_seconds: float  # that the radio takes for it: a day has room for so many

    @property
    def cycles(self) -> float:
        return sum(part.cycles for part in self.parts.values())

    @property
    def microjoule(self) -> float | None:
        """All parts together; None where one of them is not known."""
        return self.upto(PARTS[-1])

    def upto(self, last: str) -> float | None:
        """The parts to `last`, in their order, in microjoules."""
        parts = [self.parts[name].nJ for name in PARTS[: PARTS.index(last) + 1]]
        known = [nanojoule for nanojoule in parts if nanojoule is not None]
        return sum(known) / NANOJOULES_PER_MICROJOULE if len(known) == len(parts) else None

    def share(self, name: str) -> float | None:
        """How many per cent of the energy a part is."""
        whole, part = self.microjoule, self.parts[name].nJ
        return None if not whole or part is None else 100 * part / NANOJOULES_PER_MICROJOULE / whole

    def a_day(self, records: float) -> float | None:
        """Microjoules of so many records a day; None where the radio cannot send so many, or a part is not known."""
        whole = self.microjoule
        return None if whole is None or not self.fits(records) else whole * records

    def fits(self, records: float) -> bool:
        """Whether the radio can send so many in a day."""
        return records * self.busy_seconds <= SECONDS_PER_DAY

    def duty_percent(self, records: float) -> float:
        """How much of a day so many records are on the air."""
        return 100 * records * self.sending_seconds / SECONDS_PER_DAY

    def a_charge(self, joule: float) -> float | None:
        """How many such records so much energy pays for."""
        whole = self.microjoule
        return joule / (whole / MICROJOULES_PER_JOULE) if whole else None

    def to_dict(self, per_day: float, joule: float | None = None) -> dict[str, Any]:
        """For so many records a day, and for a battery of so much energy if there is one."""
        whole = self.microjoule
        charge = {} if joule is None else {"records_per_charge": self.a_charge(joule)}
        return {
            "title": self.title,
            "cycles": self.cycles,
            "uJ": whole,
            "uJ_per_day": self.a_day(per_day),
            **charge,
            "random_bits": self.random_bits,
            "bytes_sent": self.bytes_sent,
            "packets": self.packets,
            "on_air_seconds": self.sending_seconds,
            "duty_percent": self.duty_percent(per_day) if self.fits(per_day) else None,
            "parts": {
                name: {
                    "cycles": part.cycles,
                    "uJ": None if part.nJ is None else part.nJ / NANOJOULES_PER_MICROJOULE,
                    "share_percent": self.share(name),
                }
                for name, part in self.parts.items()
            },
        }
