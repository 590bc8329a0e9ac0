"""Random words for batches. Both generators are a function of the key and the block's number alone, so that a result
can be had again and does not depend on the number of threads:

* `chacha20`: the kernel of that name, several blocks at once. What a device would use. Its key comes from the operating
  system unless a seed is given; a seed of a few digits is no secret.
* `fast`: a keyed hash of a counter, for benchmarks and audits. Even, and no secret: its key is 32 bits for each block,
  few enough to try them all against some released values.
"""

import secrets
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numba
import numba.extending
import numpy as np
import numpy.typing as npt

from sensorsim.errors import InputError
from sensorsim.language.run import INLINED, OUTER, compiled
from sensorsim.language.run.jit import jit
from sensorsim.language.run.lanes import lanes_text

GENERATORS = ("chacha20", "fast")
LANES = 8
CIPHER = 16  # words of a cipher block, and of its state
Seed = int | Sequence[int] | None
u32, u64, i64 = numba.uint32, numba.uint64, numba.int64


def generator_state(seed: Seed) -> npt.NDArray[np.uint32]:
    """ChaCha20's constants, a key, the block's number (two words, as in the original ChaCha), a nonce of zero; and room
    for the lanes. The key is from the operating system, or from the seed.
    """
    from sensorsim.kernels.chacha20 import CONSTANTS

    if seed is None:
        key: npt.NDArray[Any] = np.frombuffer(secrets.token_bytes(32), np.uint32)
    else:
        try:
            key = np.random.SeedSequence(seed).generate_state(8, np.uint32)
        except (TypeError, ValueError) as error:
            raise InputError(f"seed {seed!r} is no whole number of 0 or more, nor several; give one.") from error
    return np.concatenate([np.array(CONSTANTS, np.uint32), key, np.zeros(4 + 2 * CIPHER * LANES, np.uint32)])


@cache
def generator_fill(generator: str) -> Callable[..., Any]:
    """`fill(words, state, number)`: the words of one block of records; their count is a multiple of 16."""
    if generator not in GENERATORS:
        raise InputError(f"generator {generator!r} is not known; choose {' or '.join(GENERATORS)}.")
    made: Callable[..., Any] = jit(_cipher_fill() if generator == "chacha20" else _fill_fast, **INLINED)
    return made


def _fill_fast(words, state, number):  # type: ignore[no-untyped-def]
    """A 32-bit hash of the place in the block, under a key that is a hash of the block's number."""
    key = _mix(u32(u32(number) ^ state[4]))
    key = _mix(u32(key ^ u32(u64(number) >> u64(32)) ^ state[5]))
    for j in range(words.shape[0]):
        words[j] = _mix(u32(u32(u32(j) * u32(0x9E3779B9)) ^ key))


@numba.extending.intrinsic
def _mix(context, v):  # type: ignore[no-untyped-def]
    """An even hash of a word. As LLVM's own 32-bit operations: Numba's have 64 bits, which halves the lanes."""

    def made(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        word = arguments[0]
        for turn, factor in ((16, 0x21F0AAAD), (15, 0x735A2D97), (15, 1)):
            word = builder.xor(word, builder.lshr(word, word.type(turn)))
            word = builder.mul(word, word.type(factor)) if factor > 1 else word
        return word

    return u32(u32), made


def _cipher_fill() -> Callable[..., Any]:
    """Blocks of the cipher in order, as many at once as there are lanes."""
    from sensorsim.kernels.chacha20 import chacha20

    blocks_at_once = jit(lanes_text(chacha20, LANES, compiled), **OUTER)

    def fill(words, state, number):  # type: ignore[no-untyped-def]
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
            blocks_at_once(begin, done)
            out = words[b * CIPHER : min(b + LANES, blocks) * CIPHER]
            if blocks - b >= LANES:  # a fixed number of lanes, innermost: LLVM then moves whole vectors
                for k in range(CIPHER):
                    for lane in range(LANES):
                        out[lane * CIPHER + k] = done[k * LANES + lane]
            else:
                for lane in range(blocks - b):
                    for k in range(CIPHER):
                        out[lane * CIPHER + k] = done[k * LANES + lane]

    return fill


def words_below(limit: int, count: int) -> int:
    """How many uniform words `below` takes for so many results; `count` is even."""
    return count // 2 if _halved(limit) else count


def _halved(limit: int) -> bool:
    return limit & (limit - 1) == 0 and limit <= 1 << 16


def _below(words, found, limit):  # type: ignore[no-untyped-def]
    """Words below `limit` from uniform ones.

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
