"""Pack what a release sends, bit by bit. Nothing in it is secret any more.

    4 bits layout, 16 bits identity of the table, 16 bits epoch and 16 bits number where asked for, the features that
    were picked, their values, zeros up to a whole byte

Bit i is bit i mod 8 of byte i / 8; numbers stand with their lowest bit first.
"""

from dataclasses import dataclass

from sensorsim.kernels.formats import BYTE, LIMIT, NUMBER, RELEASED, SYMBOL, K, N

from sensorsim.language import Below, Length, Q, add, and_, kernel, or_, out, shlu, shru, u32

VERSION = 1
LAYOUT_BITS, IDENTITY_BITS, NUMBER_BITS = 4, 16, 16
HEAD_BITS = LAYOUT_BITS + IDENTITY_BITS
WITH_EPOCH, WITH_SEQUENCE = 4, 8  # bits of the layout beside the version

NUMBERS = {"epoch": WITH_EPOCH, "sequence": WITH_SEQUENCE}  # what a packet may carry beside the release, in this order

BYTES = Length("bytes", 3, 2**16, "bytes of a packet", typical=4, tests=(3, 4, 57))
AT = Length("at", 0, 2**18, "the first bit that is free", typical=20, tests=(0, 20, 53))
FROM_BIT = Length("from_bit", 0, 2**19, "the first bit that is free", typical=20, tests=(0, 20, 53))
BITS = Length("bits", 1, 25, "bits of one value", typical=3, tests=(1, 5, 25))
VALUES = Length("k", 1, 4096, "values of a packet", typical=3, tests=(1, 3, 4096))
HEAD = Q("head", "u32", 0, 0, 2**HEAD_BITS - 1, "layout and identity of the table")


@dataclass(frozen=True)
class Layout:
    """The fields of a packet, in bits, in their order: which bits mean what."""

    identity: int  # the first two bytes of the table's identity, the first the lower
    features: int  # of which `released` are in a packet
    released: int
    value_bits: int
    numbers: tuple[str, ...] = ()

    @property
    def code(self) -> int:
        """Return the first four bits: the version, and which numbers follow."""
        return VERSION + sum(NUMBERS[name] for name in self.numbers)

    @property
    def head(self) -> int:
        """Return the first twenty bits as a number."""
        return self.code | self.identity << LAYOUT_BITS

    @property
    def which_bits(self) -> int:
        """Return how many bits name one feature; none where all are released."""
        return (self.features - 1).bit_length() if self.released < self.features else 0

    def number_at(self, name: str) -> int:
        """Return the bit where epoch or sequence begins."""
        return HEAD_BITS + NUMBER_BITS * self.numbers.index(name)

    @property
    def chosen_at(self) -> int:
        """Return the bit where the features that were picked begin."""
        return HEAD_BITS + NUMBER_BITS * len(self.numbers)

    @property
    def values_at(self) -> int:
        """Return the bit where the values begin."""
        return self.chosen_at + self.released * self.which_bits

    @property
    def bits(self) -> int:
        return self.values_at + self.released * self.value_bits

    @property
    def bytes(self) -> int:
        return (self.bits + 7) // 8

    def first_picked(self, packet: bytes) -> int:
        """Return the first feature that a packet names, or the direction of a sketch."""
        return int.from_bytes(packet, "little") >> self.chosen_at & ((1 << self.which_bits) - 1)

    def fields(self) -> list[tuple[str, int, int]]:
        """Return (what, first bit, bits) of every field; for people and for a README."""
        found = [("layout version and what follows", 0, LAYOUT_BITS), ("identity of the table", LAYOUT_BITS, 16)]
        found += [(name, self.number_at(name), NUMBER_BITS) for name in self.numbers]
        if self.which_bits:
            found.append(("features", self.chosen_at, self.released * self.which_bits))
        found.append(("values", self.values_at, self.released * self.value_bits))
        if self.bits % 8:
            found.append(("zeros", self.bits, -self.bits % 8))
        return found


@kernel(step="packet")
def put(packet: BYTE["(from_bit + bits + 7) >> 3"], value: NUMBER, from_bit: FROM_BIT, bits: BITS) -> None:
    """Put the low bits of a value, from one bit of the packet on; those bits must be zero before.

    Scaling and overflow: one bit at a time; a byte gets no more than its eight.
    """
    for i in range(bits):
        one = and_(shru(value, i), 1)
        packet[(from_bit + i) >> 3] = or_(packet[(from_bit + i) >> 3], shlu(one, and_(from_bit + i, 7)))


@kernel(step="packet")
def pack_head(packet: out(BYTE["bytes"]), head: HEAD, bytes: BYTES) -> None:
    """Begin an empty packet with its first 20 bits; all that follows is put into zeros.

    Scaling and overflow: 20 bits are two bytes and a half.
    """
    for i in range(bytes):
        packet[i] = 0
    packet[0] = and_(head, 255)
    packet[1] = and_(shru(head, 8), 255)
    packet[2] = shru(head, 16)


@kernel(step="packet")
def pack_number(packet: BYTE["(at + 16 + 7) >> 3"], number: NUMBER, at: AT) -> None:
    """Pack the low 16 bits of a number.

    Scaling and overflow: see put.
    """
    put(packet, number, at, 16)


@kernel(step="packet")
def pack_chosen(
    packet: BYTE["(at + k * bits + 7) >> 3"], chosen: Below("n")["k"], at: AT, n: N, k: K, bits: BITS
) -> None:
    """Pack which features were released, `bits` bits each, enough for n - 1.

    Scaling and overflow: see put.
    """
    for j in range(k):
        put(packet, chosen[j], at + j * bits, bits)


@kernel(step="packet")
def pack_symbols(packet: BYTE["(at + k * bits + 7) >> 3"], y: SYMBOL["k"], at: AT, k: VALUES, bits: BITS) -> None:
    """Pack released symbols, `bits` bits each.

    Scaling and overflow: see put.
    """
    for j in range(k):
        put(packet, y[j], at + j * bits, bits)


@kernel(step="packet")
def pack_values(
    packet: BYTE["(at + k * bits + 7) >> 3"], y: RELEASED["k"], limit: LIMIT, at: AT, k: VALUES, bits: BITS
) -> None:
    """Pack released values with the limit added, so that none is below zero, `bits` bits each.

    Scaling and overflow: a value is within ±limit, at most 2^23, so the sum is 0 to 2^24 and fits 25 bits.
    """
    for j in range(k):
        value = u32(add(y[j], limit))
        put(packet, value, at + j * bits, bits)
