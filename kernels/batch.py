"""Batch forms for simulation: many records, noise indices from a fast generator, one or more threads.

The record kernels run unchanged inside a compiled loop that allocates nothing. The generator is a counter-based hash:
fast and even, and no secret; a device draws its indices from a true or cryptographic generator. Give `out` to reuse the
result arrays of an earlier call.

Results do not depend on the number of threads: the words of a record follow from the seed and the record's number.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from sensorsim.kernels.compiled import compiled
from sensorsim.kernels.dpsgd import dpsgd
from sensorsim.kernels.dpsgd_lean import dpsgd_lean
from sensorsim.kernels.formats import EXP_TABLE, EXP_ZERO, HALF
from sensorsim.kernels.root import root
from sensorsim.kernels.spof import spof
from sensorsim.kernels.spof_lean import spof_lean

Records = npt.NDArray[np.uint16]
Words = npt.NDArray[np.int32]
Pair = tuple[Words, Words]
Seed = int | Sequence[int]

BLOCK = 64  # records whose random words are made at once: long enough to vectorise, small enough for the first cache
u32, i32 = numba.uint32, numba.int32


@numba.njit(nogil=True, error_model="numpy", _nrt=False, forceinline=True)
def fill(words: Any, key: Any, counter: Any, mask: Any) -> None:
    """Fill a block with even pseudo-random words below mask+1 <= 2^16, two from each 32-bit hash of (key, counter)."""
    half = words.shape[0] // 2
    for j in range(half):
        v = u32(u32(u32(counter) + u32(j)) * u32(0x9E3779B9)) ^ key
        v = u32((v ^ (v >> u32(16))) * u32(0x21F0AAAD))
        v = u32((v ^ (v >> u32(15))) * u32(0x735A2D97))
        v ^= v >> u32(15)
        words[j] = v & mask
        words[half + j] = (v >> u32(16)) & mask


def spof_records(
    x: Records, weights: Words, constant: int, noise: Words, seed: Seed = 0, threads: int = 1, out: Pair | None = None
) -> Pair:
    """`spof` on every row of x: the two perturbed coefficients of each feature. `weights` is n·l long."""
    count, n = x.shape
    alpha2, alpha3 = out or (np.empty((count, n), np.int32), np.empty((count, n), np.int32))
    run = _spof_runner()

    def part(first: int, last: int) -> None:
        words, cursor, stabilized = np.empty((BLOCK, 2 * n), np.uint32), np.empty(2, np.uint32), np.empty_like(weights)
        run(x, weights, constant, noise, key_of(seed), first, last, words, cursor, stabilized, alpha2, alpha3)

    in_threads(part, count, threads)
    return alpha2, alpha3


def dpsgd_records(
    x: Records, clip: int, noise: Words, a: int = EXP_ZERO, seed: Seed = 0, threads: int = 1, out: Words | None = None
) -> Words:
    """`dpsgd` on every row of x: the clipped, perturbed gradient of each feature."""
    count, n = x.shape
    noisy = np.empty((count, n), np.int32) if out is None else out
    run, exp = _dpsgd_runner(), np.array(EXP_TABLE, np.uint32)

    def part(first: int, last: int) -> None:
        words, cursor = np.empty((BLOCK, n), np.uint32), np.empty(1, np.uint32)
        gradient, square, clipped = np.empty(n, np.int32), np.empty(n, np.uint32), np.empty(n, np.int32)
        scratch = words, cursor, gradient, square, clipped
        run(x, a, exp, clip, noise, key_of(seed), first, last, *scratch, noisy)

    in_threads(part, count, threads)
    return noisy


def spof_lean_records(x: Records, noise: Words, seed: Seed = 0, threads: int = 1, out: Pair | None = None) -> Pair:
    """`spof_lean` on every row of x: alpha2 and alpha3 of each feature, from one draw."""
    count, n = x.shape
    alpha2, alpha3 = out or (np.empty((count, n), np.int32), np.empty((count, n), np.int32))
    run = _spof_lean_runner()

    def part(first: int, last: int) -> None:
        run(x, noise, key_of(seed), first, last, np.empty((BLOCK, n), np.uint32), alpha2, alpha3)

    in_threads(part, count, threads)
    return alpha2, alpha3


def dpsgd_lean_records(
    x: Records, clip: int, noise: Words, sigma: int = HALF, seed: Seed = 0, threads: int = 1, out: Words | None = None
) -> Words:
    """`dpsgd_lean` on every row of x: the clipped, perturbed gradient of each feature."""
    count, n = x.shape
    noisy = np.empty((count, n), np.int32) if out is None else out
    run = _dpsgd_lean_runner()

    def part(first: int, last: int) -> None:
        run(x, sigma, clip, noise, key_of(seed), first, last, np.empty((BLOCK, n), np.uint32), noisy)

    in_threads(part, count, threads)
    return noisy


def roots(values: npt.NDArray[np.uint32], out: npt.NDArray[np.uint32] | None = None) -> npt.NDArray[np.uint32]:
    """`root` of every word."""
    result = np.empty_like(values) if out is None else out
    _roots_runner()(values, result)
    return result


def in_threads(part: Callable[[int, int], None], count: int, threads: int) -> None:
    """Run `part(first, last)` over all records, in as many threads, split at whole blocks."""
    blocks = -(-count // BLOCK)
    threads = max(1, min(threads, blocks, os.cpu_count() or 1))
    edges = [min(count, BLOCK * (blocks * t // threads)) for t in range(threads + 1)]
    if threads == 1:
        part(0, count)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(part, edges[:-1], edges[1:]))


def key_of(seed: Seed) -> Any:
    """The generator's key: seeds that differ little give keys that differ much."""
    return np.uint32(np.random.SeedSequence(seed).generate_state(1)[0])


def _runner(function: Callable[..., Any]) -> Callable[..., Any]:
    compiled_runner: Callable[..., Any] = numba.njit(nogil=True, error_model="numpy", _nrt=False)(function)
    return compiled_runner


@cache
def _roots_runner() -> Callable[..., Any]:
    exact = compiled(root)

    def run(values, result):  # type: ignore
        for k in range(values.shape[0]):
            result[k] = exact(values[k])

    return _runner(run)


@cache
def _spof_runner() -> Callable[..., Any]:
    record = compiled(spof)

    def run(x, weights, constant, noise, key, first, last, words, cursor, stabilized, alpha2, alpha3):  # type: ignore
        n, size = x.shape[1], noise.shape[0]
        l = weights.shape[0] // n
        flat = words.reshape(words.shape[0] * words.shape[1])
        for block in range(first, last, BLOCK):
            fill(flat, key, block * n, u32(size - 1))
            cursor[0] = cursor[1] = 0
            for r in range(block, min(block + BLOCK, last)):
                stride = words[r - block]
                record(
                    x[r],
                    weights,
                    i32(constant),
                    noise,
                    stride,
                    cursor,
                    stabilized,
                    alpha2[r],
                    alpha3[r],
                    n,
                    l,
                    i32(size),
                )

    return _runner(run)


@cache
def _dpsgd_runner() -> Callable[..., Any]:
    record = compiled(dpsgd)

    def run(x, a, exp, clip, noise, key, first, last, words, cursor, gradient, square, clipped, noisy):  # type: ignore
        n, size = x.shape[1], noise.shape[0]
        flat = words.reshape(words.shape[0] * words.shape[1])
        for block in range(first, last, BLOCK):
            fill(flat, key, block * n, u32(size - 1))
            cursor[0] = 0
            for r in range(block, min(block + BLOCK, last)):
                scratch_and_sizes = gradient, square, clipped, noisy[r], n, i32(size), exp.shape[0]
                record(x[r], a, exp, u32(clip), noise, words[r - block], cursor, *scratch_and_sizes)

    return _runner(run)


@cache
def _spof_lean_runner() -> Callable[..., Any]:
    record = compiled(spof_lean)

    def run(x, noise, key, first, last, words, alpha2, alpha3):  # type: ignore
        n, mask = x.shape[1], u32(noise.shape[0] - 1)
        flat = words.reshape(words.shape[0] * words.shape[1])
        for block in range(first, last, BLOCK):
            fill(flat, key, block * n, mask)
            for r in range(block, min(block + BLOCK, last)):
                record(x[r], noise, words[r - block], alpha2[r], alpha3[r], n, mask)

    return _runner(run)


@cache
def _dpsgd_lean_runner() -> Callable[..., Any]:
    record = compiled(dpsgd_lean)

    def run(x, sigma, clip, noise, key, first, last, words, noisy):  # type: ignore
        n, mask = x.shape[1], u32(noise.shape[0] - 1)
        flat = words.reshape(words.shape[0] * words.shape[1])
        for block in range(first, last, BLOCK):
            fill(flat, key, block * n, mask)
            for r in range(block, min(block + BLOCK, last)):
                record(x[r], i32(sigma), u32(clip), noise, words[r - block], noisy[r], n, mask)

    return _runner(run)
