"""Entropy sources of a simulated sensor: functions from a count to as many bytes.

Use `SystemEntropy`. The others are for trials: a reproducible source, and sources that break as those on boards do. One
that fails raises OSError, as a board's returns something other than 0.
"""

import os
import random
from collections.abc import Callable, Iterable
from itertools import chain

from sensorsim._util.errors import InputError
from sensorsim._util.uncopyable import Single, process

Entropy = Callable[[int], bytes]


class SystemEntropy:
    """The operating system's generator, which makes a simulated release private."""

    def __call__(self, count: int) -> bytes:
        return os.urandom(count)


class SeededEntropy:
    """Reproducible bytes from a seed, by splitmix64 (Steele, Lea and Flood 2014). Not private: for replication only.

    A byte is bits 32 … 39 of the next number before its last step, so a few lines of C on a board give the same ones.
    """

    def __init__(self, seed: int) -> None:
        if type(seed) is not int or not 0 <= seed < 1 << 64:
            raise InputError(f"seed {seed!r} is no whole number from 0 to 2^64-1; give one.")
        self.seed = self.state = seed

    def __repr__(self) -> str:
        return f"SeededEntropy({self.seed}), not private"

    def __call__(self, count: int) -> bytes:
        made = bytearray()
        for _ in range(count):
            z = self.state = (self.state + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
            z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
            z = (z ^ z >> 27) * 0x94D049BB133111EB & 0xFFFFFFFFFFFFFFFF
            made.append(z >> 32 & 255)
        return bytes(made)


class StuckEntropy:
    """A dead source: one byte for ever."""

    def __init__(self, byte: int = 0x55) -> None:
        self.byte = byte

    def __call__(self, count: int) -> bytes:
        return bytes([self.byte]) * count


class BiasedEntropy:
    """A source that leans: each bit is one with probability p, by a seeded generator. Not private."""

    def __init__(self, p: float, seed: int = 0) -> None:
        if not 0 <= p <= 1:
            raise InputError(f"a bit is one with probability {p}; give a number from 0 to 1.")
        self.p, self._random = p, random.Random(seed)

    def __call__(self, count: int) -> bytes:
        return bytes(sum((self._random.random() < self.p) << bit for bit in range(8)) for _ in range(count))


class FailingEntropy:
    """A source that works for some calls and then fails."""

    def __init__(self, after_calls: int = 0, source: Entropy | None = None) -> None:
        self.calls_left, self.source = after_calls, source or SystemEntropy()

    def __call__(self, count: int) -> bytes:
        if self.calls_left == 0:
            raise OSError("the source of entropy fails")
        self.calls_left -= 1
        return self.source(count)


class ListedEntropy(Single):
    """The bytes that are given, once and to one process; then it fails. Not private."""

    instead = "make a list of other bytes"

    def __init__(self, chunks: bytes | Iterable[bytes]) -> None:
        self._process = process()
        self.left = chunks if isinstance(chunks, bytes) else bytes(chain.from_iterable(chunks))

    def __call__(self, count: int) -> bytes:
        if self._process != process():
            raise OSError("the list of entropy belongs to the process that this one was forked from")
        if len(self.left) < count:
            raise OSError(f"{count} bytes were asked for and {len(self.left)} are left of the list")
        given, self.left = self.left[:count], self.left[count:]
        return given
