"""The packet on the air: which bits mean what. The kernels of kernels/packet.py write it, a hospital reads it."""

from collections.abc import Iterable
from dataclasses import dataclass

from sensorsim.errors import InputError
from sensorsim.kernels.packet import HEAD_BITS, LAYOUT_BITS, NUMBER_BITS, VERSION, WITH_EPOCH, WITH_SEQUENCE

NUMBERS = {"epoch": WITH_EPOCH, "sequence": WITH_SEQUENCE}  # what a packet may carry beside the release, in this order


@dataclass(frozen=True)
class Layout:
    """The fields of a packet, in bits, in their order."""

    identity: int  # the first two bytes of the table's identity, the first the lower
    features: int  # of which `released` are in a packet
    released: int
    value_bits: int
    numbers: tuple[str, ...] = ()

    @property
    def code(self) -> int:
        """The first four bits: the version, and which numbers follow."""
        return VERSION + sum(NUMBERS[name] for name in self.numbers)

    @property
    def head(self) -> int:
        """The first twenty bits as a number."""
        return self.code | self.identity << LAYOUT_BITS

    @property
    def which_bits(self) -> int:
        """Bits that name one feature; none where all are released."""
        return (self.features - 1).bit_length() if self.released < self.features else 0

    def number_at(self, name: str) -> int:
        """Where epoch or sequence begins."""
        return HEAD_BITS + NUMBER_BITS * self.numbers.index(name)

    @property
    def chosen_at(self) -> int:
        return HEAD_BITS + NUMBER_BITS * len(self.numbers)

    @property
    def values_at(self) -> int:
        return self.chosen_at + self.released * self.which_bits

    @property
    def bits(self) -> int:
        return self.values_at + self.released * self.value_bits

    @property
    def bytes(self) -> int:
        return (self.bits + 7) // 8

    def fields(self) -> list[tuple[str, int, int]]:
        """(what, first bit, bits) of every field; for people and for a README."""
        found = [("layout version and what follows", 0, LAYOUT_BITS), ("identity of the table", LAYOUT_BITS, 16)]
        found += [(name, self.number_at(name), NUMBER_BITS) for name in self.numbers]
        if self.which_bits:
            found.append(("features", self.chosen_at, self.released * self.which_bits))
        found.append(("values", self.values_at, self.released * self.value_bits))
        if self.bits % 8:
            found.append(("zeros", self.bits, -self.bits % 8))
        return found


def numbers_named(names: Iterable[str]) -> tuple[str, ...]:
    """The numbers, checked, each once and in the packet's order."""
    wanted = list(names)
    for name in wanted:
        if name not in NUMBERS:
            raise InputError(f"a packet has no number {name!r}; give some of {', '.join(NUMBERS)}.")
    return tuple(name for name in NUMBERS if name in wanted)
