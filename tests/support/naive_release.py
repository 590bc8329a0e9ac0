"""Obvious loops for the release kernels and ChaCha20. Shares no code with them."""

import struct
from collections.abc import Sequence

import naive_rows

D = 1 << 15


def release(x: int, table: Sequence[int], word: int, limit: int, stair_bits: int) -> int:
    """Return one released value, by the definition in integers of any size."""
    S, k = 2**stair_bits, (len(table) - 1).bit_length()
    A = table[word // 2 ** (32 - k)]
    U = word % S - S // 2
    y = min(x, D) - D // 2 + S * A + U
    return max(-limit, min(limit, y))


def release_sampled(
    x: Sequence[int], table: Sequence[int], words: Sequence[int], limit: int, stair_bits: int, k: int, order: list[int]
) -> tuple[list[int], list[int]]:
    """Picked features and their values."""
    return naive_rows.sampled(x, words, k, order, lambda value, word: release(value, table, word, limit, stair_bits))


def chacha20_block(key: bytes, counter: int, nonce: bytes) -> bytes:
    """The block function of RFC 8439 over bytes."""
    start = list(struct.unpack("<16I", b"expand 32-byte k" + key + struct.pack("<I", counter) + nonce))
    s = list(start)
    for _ in range(10):
        for a, b, c, d in [(i, 4 + i, 8 + i, 12 + i) for i in range(4)]:
            _quarter(s, a, b, c, d)
        for a, b, c, d in [(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4) for i in range(4)]:
            _quarter(s, a, b, c, d)
    return struct.pack("<16I", *[(u + v) % 2**32 for u, v in zip(s, start, strict=True)])


def _quarter(s: list[int], a: int, b: int, c: int, d: int) -> None:
    for to, by, turned, places in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        s[to] = (s[to] + s[by]) % 2**32
        mixed = s[turned] ^ s[to]
        s[turned] = (mixed * 2**places) % 2**32 + mixed // 2 ** (32 - places)
