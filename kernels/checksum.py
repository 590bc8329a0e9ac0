"""CRC-32, that of zlib, Ethernet and PNG: half a byte at a time with a table of sixteen words."""

from sensorsim.kernels.formats import BYTE, NUMBER, SIZE

from sensorsim.language import Array, Length, and_, kernel, not_, shru, u32, xor


def _table() -> tuple[int, ...]:
    """Entry i is i carried through four steps of the polynomial 0xEDB88320, low bits first."""
    made = []
    for i in range(16):
        for _ in range(4):
            i = i >> 1 ^ (0xEDB88320 if i & 1 else 0)
        made.append(i)
    return tuple(made)


CRC_SIZE = Length("crc_size", 16, 16, "entries of the checksum's table")
CRC = Array(NUMBER, "crc_size", contents=_table())


@kernel(step="checksum")
def crc_step(sum: NUMBER, byte: BYTE, crc: CRC, crc_size: CRC_SIZE) -> NUMBER:
    """One byte more.

    Scaling and overflow: the place in the table is four bits; nothing wraps.
    """
    mixed = xor(sum, byte)
    half = xor(shru(mixed, 4), crc[and_(mixed, 15)])
    return xor(shru(half, 4), crc[and_(half, 15)])


@kernel(step="checksum")
def crc32(bytes: BYTE["size"], crc: CRC, size: SIZE, crc_size: CRC_SIZE) -> NUMBER:
    """The CRC-32 of some bytes: 0xCBF43926 for "123456789". It finds every damage of up to 32 bits in a row.

    Scaling and overflow: there is nothing to overflow.
    """
    sum = not_(u32(0))
    for i in range(size):
        sum = crc_step(sum, bytes[i], crc, crc_size)
    return not_(sum)
