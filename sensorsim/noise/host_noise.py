"""Noise drawn on the host: uniform words, floats, normals, and exact discrete Laplace noise.

Words come from the ChaCha20 of the kernels. With a key of the operating system noise made from them may protect a
record. A seed reproduces the same words for a replication; anyone who knows it can remove the noise.

Discrete Laplace noise is P(z) = (1 - p)/(1 + p)·p^|z| with p = exp(-1/t), t a whole number. For whole numbers y and y'
with |y - y'| <= d, the likelihood ratio of every output of y + z and y' + z is at most exp(d/t): pure epsilon d/t,
delta = 0. This holds for the program as it runs: every decision compares uniform whole numbers, and none depends on a
rounded number. The only assumption is that the words are uniform and secret (see `Words`). The time of a draw depends
on its value, so this is not for a device.

The method is that of Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy" (2020), algorithms
1 and 2, with t/1 as the scale:

* u uniform below t, accepted with probability exp(-u/t), otherwise start again;
* v, how often in a row an event of probability exp(-1) happens; then u + t·v is geometric with p;
* a sign; -0 is drawn again, as 0 would otherwise come twice.

An event of probability exp(-g), 0 <= g <= 1, needs no exponential: draw events of probability g/1, g/2, g/3, … until
one fails. The number of successes is even with probability 1 - g + g²/2! - g³/3! + … = exp(-g). An event g/k is two
independent ones, g = u/t and 1/k, so no product grows with k. The successes of 1/1, 1/2, 1/3, … in a row are at least
k with probability 1/k!, which one word decides for all k up to 20: 7·20! < 2^64 is a multiple of every such k!.

Overflow: 7·20! < 2^64; 2·q·t < 2^64, where q is the largest whole number with q·t < 2^63; and v is below 2^22, so that
u + t·v < 2^62. A larger v has probability exp(-2^22), and raises an error.
"""

import math
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sensorsim._util.errors import InputError
from sensorsim._util.uncopyable import Single, process

if TYPE_CHECKING:
    from sensorsim.language.numba_backend.generators import Seed

BLOCK = 1 << 13  # words generated at once: 64 KB, which stay in the cache
LARGEST_T = 1 << 40
WORDS_A_DRAW = 8  # about 7.1 on average
MOST_WORDS = 1 << 15  # at once: 256 KB, which stay in the cache
MOST_TIMES = 1 << 22
SHORT = -1  # instead of a number: not enough words

Shape = int | tuple[int, ...]


class Words(Single):
    """A stream of words, shared by threads; each word is given once. `private` is True only without a seed."""

    instead = "make a stream of its own instead"
    _block: npt.NDArray[np.uint64]  # words that are left

    def __init__(self, seed: "Seed" = None) -> None:
        from sensorsim.language.numba_backend.generators import generator_fill

        self.private = seed is None
        self._seed = seed
        self._fill = generator_fill("chacha20")
        self._number = 0
        self._key()

    def take(self, count: int) -> npt.NDArray[np.uint64]:
        """Return the next words of the stream: 3 and then 5 are the same words as 8."""
        if count < 0:
            raise InputError(f"{count} words were requested; request 0 or more.")
        with self.one_at_a_time:
            if self.private and self._process != process():
                self._key()  # a forked process has the key of its parent, and would give the same noise
            parts, left = [self._block[:0]], count
            while left:
                if not self._block.size:
                    self._block = np.empty(BLOCK, np.uint64)
                    self._fill(self._block.view(np.uint32), self._state, self._number)
                    self._number += 1
                parts.append(self._block[:left])
                self._block = self._block[left:]
                left -= parts[-1].size
            return np.concatenate(parts)

    def uniform(self, shape: Shape) -> npt.NDArray[np.float64]:
        """Return numbers in (0, 1): 53 bits of a word over 2^53. A 0 is drawn again, so logarithms are finite."""
        bits = self.take(_size(shape)) >> np.uint64(11)
        while (zero := bits == 0).any():
            bits[zero] = self.take(int(zero.sum())) >> np.uint64(11)
        return (bits.astype(np.float64) * 2.0**-53).reshape(shape)

    def normal(self, shape: Shape) -> npt.NDArray[np.float64]:
        """Return standard normal numbers, two from two uniform ones (Box and Muller); none is beyond 8.58."""
        size = _size(shape)
        u, v = self.uniform((2, (size + 1) // 2))
        length, turn = np.sqrt(-2 * np.log(u)), 2 * np.pi * v
        return np.concatenate([length * np.cos(turn), length * np.sin(turn)])[:size].reshape(shape)

    def _key(self) -> None:
        from sensorsim.language.numba_backend.generators import generator_state

        self._state = generator_state(self._seed)
        self._process = process()
        self._block: npt.NDArray[np.uint64] = np.empty(0, np.uint64)  # words that are left


def _size(shape: Shape) -> int:
    return math.prod(shape) if isinstance(shape, tuple) else int(shape)


# ---- discrete Laplace noise


def discrete_laplace(shape: Shape, t: int, words: Words) -> npt.NDArray[np.int64]:
    """Draw independent numbers with P(z) ∝ exp(-|z|/t)."""
    if isinstance(t, bool) or not isinstance(t, int | np.integer) or not 1 <= t <= LARGEST_T:
        raise InputError(f"t is {t!r}; give a scale that is a whole number from 1 to 2^40.")
    draws = np.empty(shape, np.int64)
    flat = draws.reshape(-1)
    fill, done = _compiled(), 0
    ready = np.empty(0, np.uint64)
    while done < flat.size:
        wanted = min(MOST_WORDS, WORDS_A_DRAW * (flat.size - done) + 64)
        ready = np.concatenate([ready, words.take(wanted)])
        some, read = fill(flat[done:], ready, int(t))
        done += some
        ready = ready[read:]  # an unfinished draw reads all its words again: none may be dropped
    return draws


@cache
def _compiled() -> Callable[..., Any]:
    """Compile `fill(draws, words, t)`, which returns the number of finished draws and of words that they took."""
    from sensorsim.language.numba_backend.jit import jit

    u64 = np.uint64
    one = u64(1)
    at_least = np.array([7 * math.factorial(20) // math.factorial(k) for k in range(21)], np.uint64)
    helper = partial(jit, error_model="numpy", nogil=True)

    @helper
    def below(words, at, limit):  # type: ignore[no-untyped-def]
        """Return the index of the next word below the limit, which is uniform there, or the end."""
        while at < words.size and words[at] >= limit:
            at += 1
        return at

    @helper
    def further(words, at):  # type: ignore[no-untyped-def]
        """Continue `in_a_row` from the event 1/21, which is reached once in 20!, with a word for each event."""
        run = 20
        while True:
            share = ~u64(0) // u64(run + 1)
            at = below(words, at, share * u64(run + 1))
            if at >= words.size:
                return SHORT, at
            if words[at] >= share:
                return run, at + 1
            run, at = run + 1, at + 1

    @helper
    def in_a_row(words, at):  # type: ignore[no-untyped-def]
        """Count the events 1/1, 1/2, 1/3, … that happen before one fails; also return the index of the next word."""
        at = below(words, at, at_least[0])
        if at >= words.size:
            return SHORT, at
        word, run = words[at], 1
        for k in range(2, 8):  # branch-free: the branch would be mispredicted
            run += word < at_least[k]
        while 7 <= run < 20 and word < at_least[run + 1]:
            run += 1
        return (run, at + 1) if run < 20 else further(words, at + 1)

    @helper
    def times(words, at):  # type: ignore[no-untyped-def]
        """Return v: how often in a row an event of probability exp(-1) happens."""
        for v in range(MOST_TIMES):
            run, at = in_a_row(words, at)
            if run & 1 or run == SHORT:
                return (SHORT if run == SHORT else v), at
        raise OverflowError("a draw does not fit in 64 bits")

    @helper
    def one_draw(words, at, t, q):  # type: ignore[no-untyped-def]
        """Return 2·|z| + sign, and the index of the next word. A word below 2·q·t is a sign, u and a rest below q."""
        limit = u64(2) * q * t
        while True:
            at = below(words, at, limit)
            if at >= words.size:
                return SHORT, at
            sign, u = words[at] & one, (words[at] >> one) // q
            most, at = in_a_row(words, at + 1)
            if most == SHORT:
                return SHORT, at
            run = 0
            while run < most:
                at = below(words, at, limit)
                if at >= words.size:
                    return SHORT, at
                happens = words[at] < u64(2) * q * u  # with probability u/t
                at += 1
                if not happens:
                    break
                run += 1
            if run & 1:
                continue
            v, at = times(words, at)
            if v == SHORT:
                return SHORT, at
            size = np.int64(u) + np.int64(t) * v
            if size > 0 or sign == 0:
                return 2 * size + np.int64(sign), at

    @partial(helper, kept=True)
    def fill(draws, words, t):  # type: ignore[no-untyped-def]
        q, at = u64(2**63 - 1) // u64(t), 0
        for j in range(draws.size):
            found, after = one_draw(words, at, u64(t), q)
            if found == SHORT:
                return j, at
            draws[j] = -(found >> 1) if found & 1 else found >> 1
            at = after
        return draws.size, at

    return fill
