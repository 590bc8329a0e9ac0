"""What a packet must look like to be received: that of one table, and of one encoder or sketch where there is one."""

from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING

from sensorsim.device.firmware import Firmware
from sensorsim.kernels.packet import NUMBERS, Layout

if TYPE_CHECKING:
    from sensorsim.device.sketch import Sketch
    from sensorsim.encoders import Encoder
    from sensorsim.privacy.tables import NoiseTable

# Why a packet is refused, the first that applies, and how that is said.
REASONS = {
    "length": "of another length",
    "hex": "not hexadecimal",
    "layout": "of another layout version",
    "identity": "of another table, encoder or sketch",
    "padding": "with padding that is not zero",
    "feature": "of a feature that is not there",
    "repeated": "with a feature twice",
    "value": "with a value that is not there",
}
STAIRS_COLUMNS = ("count", "sum", "sum_of_squares")


@dataclass(frozen=True)
class Expected:
    """The table is proved when this is made, whatever its file says."""

    firmware: Firmware

    @classmethod
    def of(cls, table: "NoiseTable", encoder: "Encoder | None" = None, sketch: "Sketch | None" = None) -> "Expected":
        return cls(Firmware(table, encoder, sketch=sketch))

    @property
    def table(self) -> "NoiseTable":
        return self.firmware.table

    @property
    def n(self) -> int:
        """What packets speak of: features of a record, hidden units of an encoder, or directions of a sketch."""
        return self.firmware.features

    @property
    def k(self) -> int:
        return self.firmware.k

    @property
    def epsilon(self) -> Decimal:
        """Of one packet, as certified."""
        return self.firmware.epsilon

    @property
    def identity(self) -> str:
        return self.firmware.identity.hex()

    @cached_property
    def layouts(self) -> dict[int, Layout]:
        """By the first four bits of a packet: with and without the numbers that it may carry."""
        plain = self.firmware.layout
        subsets = [[name for bit, name in enumerate(NUMBERS) if which >> bit & 1] for which in range(1 << len(NUMBERS))]
        every = [replace(plain, numbers=tuple(names)) for names in subsets]
        return {layout.code: layout for layout in every}

    @cached_property
    def lengths(self) -> set[int]:
        """Of packets, in bytes."""
        return {layout.bytes for layout in self.layouts.values()}

    @cached_property
    def limit(self) -> int | None:
        """Of a released value, which is then a number; None where it is a symbol."""
        found: int | None = self.firmware.arguments.get("limit")
        return found

    @cached_property
    def most(self) -> int:
        """The largest that a value's field may hold."""
        return len(self.table.distribution(0)[0]) - 1 if self.limit is None else 2 * self.limit

    @property
    def columns(self) -> tuple[str, ...]:
        """What is kept of a feature: how often each symbol came, or three sums over its values."""
        if self.limit is None:
            return tuple(str(symbol) for symbol in range(self.most + 1))
        return STAIRS_COLUMNS
