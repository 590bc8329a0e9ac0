"""What one record of one mechanism costs, part by part."""

from collections.abc import Mapping
from typing import Any, NamedTuple

PARTS = ("arithmetic", "random words", "journal", "on air")
NANOJOULES_PER_MICROJOULE = 1000


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

    def to_dict(self, per_day: float) -> dict[str, Any]:
        whole = self.microjoule
        return {
            "title": self.title,
            "cycles": self.cycles,
            "uJ": whole,
            "uJ_per_day": None if whole is None else whole * per_day,
            "random_bits": self.random_bits,
            "bytes_sent": self.bytes_sent,
            "packets": self.packets,
            "parts": {
                name: {
                    "cycles": part.cycles,
                    "uJ": None if part.nJ is None else part.nJ / NANOJOULES_PER_MICROJOULE,
                    "share_percent": self.share(name),
                }
                for name, part in self.parts.items()
            },
        }
