"""Generate the random words of batches. Both generators depend on the key and the block's number alone, so results are
reproducible and independent of the number of threads:

* `chacha20`: the kernel of that name, several blocks at once. It is what a device would use. The key comes from the
  operating system unless a seed is given; a seed of a few digits is no secret.
* `fast`: a keyed hash of a counter, for benchmarks and audits. Uniform, and no secret: its key is 32 bits for each
  block, few enough to try them all against some released values.
"""

import secrets
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numba
import numba.extending
import numpy as np
import numpy.typing as npt

from sensorsim._util.errors import InputError
from sensorsim.language.kernel import shipped_module
from sensorsim.language.numba_backend import INLINED, OUTER
from sensorsim.language.numba_backend.jit import jit

GENERATORS = ("chacha20", "fast")
LANES = 8
CIPHER = 16  # words of a cipher block, and of its state
Seed = int | Sequence[int] | None
u32, u64, i64 = numba.uint32, numba.uint64, numba.int64


def generator_state(seed: Seed) -> npt.NDArray[np.uint32]:
    """Return ChaCha20's constants, a key, the block's number (two words, as in the original ChaCha), a nonce of zero,
    and space for the lanes. The key is from the operating system, or from the seed.
    """
    if seed is None:
        key: npt.NDArray[Any] = np.frombuffer(secrets.token_bytes(32), np.uint32)
    else:
        try:
            key = np.random.SeedSequence(seed).generate_state(8, np.uint32)
        except (TypeError, ValueError) as error:
            raise InputError(f"seed {seed!r} is no whole number of 0 or more, nor several; give one.") from error
    return np.concatenate(
        [np.array(shipped_module("chacha20").CONSTANTS, np.uint32), key, np.zeros(4 + 2 * CIPHER * LANES, np.uint32)]
    )


@cache
def generator_fill(generator: str) -> Callable[..., Any]:
    """Return `fill(words, state, number)`, which makes the words of one block of records; their count is a multiple of
    16."""
    if generator not in GENERATORS:
        raise InputError(f"generator {generator!r} is not known; choose {' or '.join(GENERATORS)}.")
    made: Callable[..., Any] = jit(_fill_cipher if generator == "chacha20" else _fill_fast, **INLINED)
    return made


def _fill_fast(words, state, number):  # type: ignore[no-untyped-def]
    """Hash the place in the block, under a key that is a hash of the block's number."""
    key = _mix(u32(u32(number) ^ state[4]))
    key = _mix(u32(key ^ u32(u64(number) >> u64(32)) ^ state[5]))
    for j in range(words.shape[0]):
        words[j] = _mix(u32(u32(u32(j) * u32(0x9E3779B9)) ^ key))


@numba.extending.intrinsic
def _mix(context, v):  # type: ignore[no-untyped-def]
    """Hash a word, in LLVM's own 32-bit operations: Numba's have 64 bits, which halves the lanes."""

    def made(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        word = arguments[0]
        for turn, factor in ((16, 0x21F0AAAD), (15, 0x735A2D97), (15, 1)):
            word = builder.xor(word, builder.lshr(word, word.type(turn)))
            word = builder.mul(word, word.type(factor)) if factor > 1 else word
        return word

    return u32(u32), made


def _turned(v, bits):  # type: ignore[no-untyped-def]
    return u32((v << bits) | (v >> (u32(32) - bits)))


def _quarter_round(a, b, c, d):  # type: ignore[no-untyped-def]
    """Do the quarter round of RFC 8439, section 2.1."""
    a = u32(a + b)
    d = turned(u32(d ^ a), u32(16))
    c = u32(c + d)
    b = turned(u32(b ^ c), u32(12))
    a = u32(a + b)
    d = turned(u32(d ^ a), u32(8))
    c = u32(c + d)
    return a, turned(u32(b ^ c), u32(7)), c, d


def _four(words, k, lane):  # type: ignore[no-untyped-def]
    """Return words k … k+3 of a lane."""
    at = u64(k * LANES + lane)
    return words[at], words[at + u64(LANES)], words[at + u64(2 * LANES)], words[at + u64(3 * LANES)]


def _put_four(words, k, lane, w0, w1, w2, w3):  # type: ignore[no-untyped-def]
    at = u64(k * LANES + lane)
    words[at] = w0
    words[at + u64(LANES)] = w1
    words[at + u64(2 * LANES)] = w2
    words[at + u64(3 * LANES)] = w3


turned, quarter_round, four, put_four = (jit(each, **INLINED) for each in (_turned, _quarter_round, _four, _put_four))


def _double_round(words):  # type: ignore[no-untyped-def]
    """Do two rounds in each lane: word k of lane l is at k·LANES + l, so LLVM makes vector instructions of the loop."""
    for lane in range(LANES):
        a0, a1, a2, a3 = four(words, 0, lane)
        b0, b1, b2, b3 = four(words, 4, lane)
        c0, c1, c2, c3 = four(words, 8, lane)
        d0, d1, d2, d3 = four(words, 12, lane)
        a0, b0, c0, d0 = quarter_round(a0, b0, c0, d0)
        a1, b1, c1, d1 = quarter_round(a1, b1, c1, d1)
        a2, b2, c2, d2 = quarter_round(a2, b2, c2, d2)
        a3, b3, c3, d3 = quarter_round(a3, b3, c3, d3)
        a0, b1, c2, d3 = quarter_round(a0, b1, c2, d3)
        a1, b2, c3, d0 = quarter_round(a1, b2, c3, d0)
        a2, b3, c0, d1 = quarter_round(a2, b3, c0, d1)
        a3, b0, c1, d2 = quarter_round(a3, b0, c1, d2)
        put_four(words, 0, lane, a0, a1, a2, a3)
        put_four(words, 4, lane, b0, b1, b2, b3)
        put_four(words, 8, lane, c0, c1, c2, c3)
        put_four(words, 12, lane, d0, d1, d2, d3)


double_round = jit(_double_round, **INLINED)


def _cipher_blocks(begin, done):  # type: ignore[no-untyped-def]
    """Compute LANES blocks as the kernel `chacha20` does."""
    for k in range(CIPHER * LANES):
        done[k] = begin[k]
    for _ in range(10):
        double_round(done)
    for k in range(CIPHER * LANES):
        done[k] += begin[k]


cipher_blocks = jit(_cipher_blocks, **OUTER)


def _fill_cipher(words, state, number):  # type: ignore[no-untyped-def]
    """Compute blocks of the cipher in order, LANES at once."""
    blocks = words.shape[0] // CIPHER
    start = u64(number) * u64(blocks)
    begin = state[CIPHER : CIPHER * (LANES + 1)]
    done = state[CIPHER * (LANES + 1) : CIPHER * (2 * LANES + 1)]
    for k in range(CIPHER):
        for lane in range(LANES):
            begin[k * LANES + lane] = state[k]
    for b in range(0, blocks, LANES):
        for lane in range(LANES):
            at = start + u64(b) + u64(lane)
            begin[12 * LANES + lane] = u32(at)
            begin[13 * LANES + lane] = u32(at >> u64(32))
        cipher_blocks(begin, done)
        out = words[b * CIPHER : min(b + LANES, blocks) * CIPHER]
        if blocks - b >= LANES:  # a fixed number of lanes, innermost: LLVM then moves whole vectors
            for k in range(CIPHER):
                for lane in range(LANES):
                    out[lane * CIPHER + k] = done[k * LANES + lane]
        else:
            for lane in range(blocks - b):
                for k in range(CIPHER):
                    out[lane * CIPHER + k] = done[k * LANES + lane]


def words_below(limit: int, count: int) -> int:
    """Return how many uniform words `below` takes for `count` results; `count` is even."""
    return count // 2 if _halved(limit) else count


def _halved(limit: int) -> bool:
    return limit & (limit - 1) == 0 and limit <= 1 << 16


def _below(words, found, limit):  # type: ignore[no-untyped-def]
    """Turn uniform words into words below `limit`.

    A power of two takes bits, exactly; if it is at most 2^16, one word gives two results. Another limit takes the high
    part of a product: a value has a probability within 2^-32 of 1/limit, so one is up to limit/2^32 more likely than
    another.
    """
    mask = u32(limit - 1)
    if limit & (limit - 1) == 0 and limit <= 1 << 16:
        high = found[words.shape[0] :]
        for j in range(words.shape[0]):
            word = words[j]
            found[j] = word & mask
            high[j] = (word >> u32(16)) & mask
    elif limit & (limit - 1) == 0:
        for j in range(words.shape[0]):
            found[j] = words[j] & mask
    else:
        for j in range(words.shape[0]):
            found[j] = u32((u64(words[j]) * u64(limit)) >> u64(32))


below = jit(_below, **INLINED)
