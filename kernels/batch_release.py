"""Releases in batches, for simulation: many records, one or more threads, no allocation inside.

The record kernels run unchanged inside a compiled loop. Their words come from one of two generators, both a function of
the seed and the record's number alone, so that a result is reproducible and does not depend on the number of threads:

* `fast`: a keyed hash of a counter, made to vectorise. Even, and no secret.
* `chacha20`: the kernel of that name, its key drawn from the seed. The stream that a device would use, but a seed of a
  few digits is no secret either: a device takes its key from a true generator.
"""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
import numpy.typing as npt
from sensorsim.kernels.batch import BLOCK, Records, Seed, Words, in_threads
from sensorsim.kernels.chacha20 import CONSTANTS, chacha20
from sensorsim.kernels.compiled import compiled
from sensorsim.kernels.formats import HALF
from sensorsim.kernels.release import pick_stair, release_sampled, stairs
from sensorsim.kernels.table_arguments import table_arguments

from sensorsim.errors import InputError

if TYPE_CHECKING:
    from sensorsim.privacy.tables import NoiseTable

Picks = npt.NDArray[np.uint32]
GENERATORS = ("fast", "chacha20")
CIPHER_WORDS = 16
u32, i32, u64 = numba.uint32, numba.int32, numba.uint64


def release_records(
    x: Records,
    table: "NoiseTable",
    seed: Seed = 0,
    threads: int = 1,
    generator: str = "fast",
    out: Words | None = None,
) -> Words:
    """`release` on every row of x. Divide by `table.gain` for an unbiased estimate of x - 1/2."""
    count, n = x.shape
    if n > table.release:
        raise InputError(
            f"the table is certified for {table.release} released features and these records have {n}; make it with "
            f"--release {n}, or release fewer."
        )
    y = np.empty((count, n), np.int32) if out is None else out
    run, state, noise = _release_runner(generator), generator_state(seed), table_arguments(table)
    flat = np.ascontiguousarray(x).reshape(-1)

    def part(first: int, last: int) -> None:
        words, entries = np.empty(BLOCK * n, np.uint32), np.empty(BLOCK * n, np.int8)
        run(flat, *noise, state.copy(), first, last, words, entries, y.reshape(-1))

    in_threads(part, count, threads)
    return y


def release_sampled_records(
    x: Records,
    table: "NoiseTable",
    seed: Seed = 0,
    threads: int = 1,
    generator: str = "fast",
    out: tuple[Picks, Words] | None = None,
) -> tuple[Picks, Words]:
    """`release_sampled` on every row of x: which `table.release` features of it, and their values."""
    count, n = x.shape
    k = table.release
    if k > n:
        raise InputError(f"the table releases {k} features of a record and these records have {n}; make it for them.")
    chosen, y = out or (np.empty((count, k), np.uint32), np.empty((count, k), np.int32))
    run, state, noise = _sampled_runner(generator), generator_state(seed), table_arguments(table)

    def part(first: int, last: int) -> None:
        words, order = np.empty((BLOCK, 2 * k), np.uint32), np.empty(n, np.uint32)
        run(x, *noise, state.copy(), first, last, words, order, chosen, y)

    in_threads(part, count, threads)
    return chosen, y


def generator_state(seed: Seed) -> npt.NDArray[np.uint32]:
    """Sixteen words for either generator: ChaCha20's constants, a key from the seed, the block's number (two words, as
    in the original ChaCha) and a nonce of zero.
    """
    key = np.random.SeedSequence(seed).generate_state(8, np.uint32)
    return np.concatenate([np.array(CONSTANTS, np.uint32), key, np.zeros(4, np.uint32)])


@cache
def generator_fill(generator: str) -> Callable[..., Any]:
    """`fill(words, state, number)`: the words of one block of records; their count is a multiple of 16."""
    if generator not in GENERATORS:
        raise InputError(f"generator {generator!r} is not known; choose fast or chacha20.")
    inlined = numba.njit(nogil=True, error_model="numpy", _nrt=False, forceinline=True)
    if generator == "fast":
        fill_fast: Callable[..., Any] = inlined(_fill_fast)
        return fill_fast
    block = compiled(chacha20)

    def fill(words, state, number):  # type: ignore
        blocks = words.shape[0] // CIPHER_WORDS
        for b in range(blocks):
            at = u64(number) * u64(blocks) + u64(b)
            state[12], state[13] = u32(at), u32(at >> u64(32))
            block(state, words[b * CIPHER_WORDS : (b + 1) * CIPHER_WORDS])

    fill_cipher: Callable[..., Any] = inlined(fill)
    return fill_cipher


def _fill_fast(words, state, number):  # type: ignore
    """A 32-bit hash of the place in the block, under a key that is a hash of the block's number."""
    key = _mix(u32(number) ^ state[4])
    key = _mix(key ^ u32(u64(number) >> u64(32)) ^ state[5])
    for j in range(words.shape[0]):
        words[j] = _mix(u32(u32(j) * u32(0x9E3779B9)) ^ key)


@numba.njit(nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def _mix(v: Any) -> Any:
    v = u32((v ^ (v >> u32(16))) * u32(0x21F0AAAD))
    v = u32((v ^ (v >> u32(15))) * u32(0x735A2D97))
    return u32(v ^ (v >> u32(15)))


@cache
def _release_runner(generator: str) -> Callable[..., Any]:
    """`release` on records first … last, its two steps in two passes over a block: the second then vectorises."""
    fill, pick, step = generator_fill(generator), compiled(pick_stair), compiled(stairs)

    def run(x, table, limit, drop, stair_bits, state, first, last, words, entries, y):  # type: ignore
        size = words.shape[0]
        n = size // BLOCK
        limit, drop, stair_bits = i32(limit), u32(drop), u32(stair_bits)
        mask, centre = u32((u32(1) << stair_bits) - u32(1)), i32(HALF + (1 << (stair_bits - 1)))
        for block in range(first, last, BLOCK):
            fill(words, state, block // BLOCK)
            for j in range(size):
                entries[j] = pick(table, words[j], drop)
            start, stop = block * n, min(block + BLOCK, last) * n
            features, noisy = x[start:stop], y[start:stop]
            for j in range(stop - start):
                noisy[j] = step(features[j], entries[j], words[j], mask, centre, i32(-limit), limit, stair_bits)

    compiled_run: Callable[..., Any] = numba.njit(nogil=True, error_model="numpy", _nrt=False)(run)
    return compiled_run


@cache
def _sampled_runner(generator: str) -> Callable[..., Any]:
    fill, record = generator_fill(generator), compiled(release_sampled)

    def run(x, table, limit, drop, stair_bits, state, first, last, words, order, chosen, y):  # type: ignore
        n, k = x.shape[1], y.shape[1]
        flat = words.reshape(words.shape[0] * words.shape[1])
        for block in range(first, last, BLOCK):
            fill(flat, state, block // BLOCK)
            for i in range(n):  # a fixed start for each block, so that threads do not matter
                order[i] = i
            for r in range(block, min(block + BLOCK, last)):
                sizes = n, k, u32(drop), u32(stair_bits)
                record(x[r], table, words[r - block], i32(limit), order, chosen[r], y[r], *sizes)

    compiled_run: Callable[..., Any] = numba.njit(nogil=True, error_model="numpy", _nrt=False)(run)
    return compiled_run
