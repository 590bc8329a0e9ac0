"""Discrete Laplace noise, drawn exactly: P(z) = (1 - p)/(1 + p)·p^|z| with p = exp(-1/t), t a whole number.

Privacy: for whole numbers y and y' with |y - y'| <= d, every output of y + z and y' + z has likelihoods whose ratio is
at most exp(d/t): pure epsilon d/t, delta = 0. This is a statement on what the program does, since no decision in it
depends on a rounded number: every one compares whole numbers that are uniform without any bias. What remains assumed
is that the words are uniform and secret (see `Words`). The time of a draw depends on its value: not for a device.

The method is that of Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy" (2020), algorithms
1 and 2, with t/1 as the scale:

* u uniform below t, kept with probability exp(-u/t), otherwise all over again;
* v, how often in a row an event of probability exp(-1) happens; then u + t·v is geometric with p;
* a sign; -0 is drawn again, as 0 would otherwise come twice.

An event of probability exp(-g), 0 <= g <= 1, needs no exponential: draw events of probability g/1, g/2, g/3, … until
one fails. The number of successes is even with probability 1 - g + g²/2! - g³/3! + … = exp(-g). An event g/k is two
independent ones, g = u/t and 1/k, so no product grows with k. The successes of 1/1, 1/2, 1/3, … in a row are at least
k with probability 1/k!, which one word decides for all k up to 20: 7·20! < 2^64 is a multiple of every such k!.

Overflow: 7·20! < 2^64; 2·q·t < 2^64, where q is the largest whole number with q·t < 2^63; and v is below 2^22, so that
u + t·v < 2^62. A larger v has probability exp(-2^22), and is an error in place of a draw.
"""

import math
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from sensorsim.errors import InputError
from sensorsim.privacy.words import Shape, Words

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

LARGEST_T = 1 << 40
WORDS_A_DRAW = 8  # about 7.1 on average
MOST_WORDS = 1 << 15  # at once: 256 KB, which stay in the cache
MOST_TIMES = 1 << 22
SHORT = -1  # in place of a number: the words have run out


def discrete_laplace(shape: Shape, t: int, words: Words) -> "npt.NDArray[np.int64]":
    """Independent draws of P(z) ∝ exp(-|z|/t)."""
    import numpy as np

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
        ready = ready[read:]  # of a draw that was not finished, every word is read again: none may be dropped
    return draws


@cache
def _compiled() -> Callable[..., Any]:
    """`fill(draws, words, t)`: draws until either ends; how many are done, and how many words they took."""
    import numpy as np

    from sensorsim.language.numba_backend.jit import jit

    u64 = np.uint64
    one = u64(1)
    at_least = np.array([7 * math.factorial(20) // math.factorial(k) for k in range(21)], np.uint64)
    helper = partial(jit, error_model="numpy", nogil=True)

    @helper
    def below(words, at, limit):  # type: ignore[no-untyped-def]
        """The place of the next word below the limit: that word is uniform there. The end where there is none."""
        while at < words.size and words[at] >= limit:
            at += 1
        return at

    @helper
    def further(words, at):  # type: ignore[no-untyped-def]
        """How `in_a_row` goes on from the event 1/21, which is reached once in 20!: a word for each."""
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
        """How many of the events 1/1, 1/2, 1/3, … happen before one fails, and the place of the next word."""
        at = below(words, at, at_least[0])
        if at >= words.size:
            return SHORT, at
        word, run = words[at], 1
        for k in range(2, 8):  # without a branch, which the processor would guess wrong
            run += word < at_least[k]
        while 7 <= run < 20 and word < at_least[run + 1]:
            run += 1
        return (run, at + 1) if run < 20 else further(words, at + 1)

    @helper
    def times(words, at):  # type: ignore[no-untyped-def]
        """v: how often in a row an event of probability exp(-1) happens."""
        for v in range(MOST_TIMES):
            run, at = in_a_row(words, at)
            if run & 1 or run == SHORT:
                return (SHORT if run == SHORT else v), at
        raise OverflowError("a draw does not fit in 64 bits")

    @helper
    def one_draw(words, at, t, q):  # type: ignore[no-untyped-def]
        """2·|z| + sign, and the place of the next word. A word below 2·q·t is a sign, and u and a remainder below q."""
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
