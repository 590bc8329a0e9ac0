"""A packet: what a release sends, packed bit by bit. Nothing in it is secret any more.

    4 bits layout, 16 bits identity of the table, 16 bits epoch and 16 bits number where asked for, the features that
    were picked, their values, zeros up to a whole byte

Bit i is bit i mod 8 of byte i / 8; numbers stand with their lowest bit first.
"""

from sensorsim.kernels.formats import BYTE, LIMIT, NUMBER, RELEASED, SYMBOL, K, N

from sensorsim.language import Below, Length, Q, add, and_, kernel, or_, out, shlu, shru, u32

VERSION = 1
LAYOUT_BITS, IDENTITY_BITS, NUMBER_BITS = 4, 16, 16
HEAD_BITS = LAYOUT_BITS + IDENTITY_BITS
WITH_EPOCH, WITH_SEQUENCE = 4, 8  # bits of the layout beside the version

BYTES = Length("bytes", 3, 2**16, "bytes of a packet", typical=4, tests=(3, 4, 57))
AT = Length("at", 0, 2**18, "the first bit that is free", typical=20, tests=(0, 20, 53))
FROM_BIT = Length("from_bit", 0, 2**19, "the first bit that is free", typical=20, tests=(0, 20, 53))
BITS = Length("bits", 1, 25, "bits of one value", typical=3, tests=(1, 5, 25))
VALUES = Length("k", 1, 4096, "values of a packet", typical=3, tests=(1, 3, 4096))
HEAD = Q("head", "u32", 0, 0, 2**HEAD_BITS - 1, "layout and identity of the table")


@kernel(step="packet")
def put(packet: BYTE["(from_bit + bits + 7) >> 3"], value: NUMBER, from_bit: FROM_BIT, bits: BITS) -> None:
    """The low bits of a value, from one bit of the packet on; those bits must be zero before.

    Scaling and overflow: one bit at a time; a byte gets no more than its eight.
    """
    for i in range(bits):
        one = and_(shru(value, i), 1)
        packet[(from_bit + i) >> 3] = or_(packet[(from_bit + i) >> 3], shlu(one, and_(from_bit + i, 7)))


@kernel(step="packet")
def pack_head(packet: out(BYTE["bytes"]), head: HEAD, bytes: BYTES) -> None:
    """An empty packet with its first 20 bits; all that follows is put into zeros.

    Scaling and overflow: 20 bits are two bytes and a half.
    """
    for i in range(bytes):
        packet[i] = 0
    packet[0] = and_(head, 255)
    packet[1] = and_(shru(head, 8), 255)
    packet[2] = shru(head, 16)


@kernel(step="packet")
def pack_number(packet: BYTE["(at + 16 + 7) >> 3"], number: NUMBER, at: AT) -> None:
    """The low 16 bits of a number.

    Scaling and overflow: see put.
    """
    put(packet, number, at, 16)


@kernel(step="packet")
def pack_chosen(
    packet: BYTE["(at + k * bits + 7) >> 3"], chosen: Below("n")["k"], at: AT, n: N, k: K, bits: BITS
) -> None:
    """Which features were released, `bits` bits each, enough for n - 1.

    Scaling and overflow: see put.
    """
    for j in range(k):
        put(packet, chosen[j], at + j * bits, bits)


@kernel(step="packet")
def pack_symbols(packet: BYTE["(at + k * bits + 7) >> 3"], y: SYMBOL["k"], at: AT, k: VALUES, bits: BITS) -> None:
    """Released symbols, `bits` bits each.

    Scaling and overflow: see put.
    """
    for j in range(k):
        put(packet, y[j], at + j * bits, bits)


@kernel(step="packet")
def pack_values(
    packet: BYTE["(at + k * bits + 7) >> 3"], y: RELEASED["k"], limit: LIMIT, at: AT, k: VALUES, bits: BITS
) -> None:
    """Released values with the limit added, so that none is below zero, `bits` bits each.

    Scaling and overflow: a value is within ±limit, at most 2^23, so the sum is 0 to 2^24 and fits 25 bits.
    """
    for j in range(k):
        value = u32(add(y[j], limit))
        put(packet, value, at + j * bits, bits)
