"""Random events of a device: numbers derived from the fleet's seed, the device, the day and the question.

Nothing is drawn in sequence, so a device behaves the same in any batch. splitmix64 (Steele,
Lea and Flood 2014) mixes; the noise of releases does not come from here.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from sensorsim.language.numba_backend import OUTER
from sensorsim.language.numba_backend.jit import jit

SCALE = 2.0**-53
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
# Questions; those about a day or a record are asked with its number.
OF_ENTROPY, OF_START, OF_STUCK, OF_STUCK_DAY, OF_RESET, OF_CUT, OF_CUT_PLACE, OF_CUT_MODE, OF_LOSS, OF_SKEW = range(10)


def fast(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function with Numba on its first call: code that allocates nothing and holds no lock of Python's."""
    return jit(function, **OUTER)


@fast
def multiply_shifted(z: Any) -> Any:
    """Apply splitmix64 to its counter, up to the last shift."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    return (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)


@fast
def mix(z: Any) -> Any:
    """Return the splitmix64 number after z, a bijection of 64-bit words."""
    z = multiply_shifted(np.uint64(z) + GOLDEN)
    return z ^ (z >> np.uint64(31))


@fast
def random_bits(seed: int, device: int, question: int, number: int) -> Any:
    """Return 64 bits for one question about one device."""
    return mix(mix(mix(mix(seed) ^ np.uint64(device)) ^ np.uint64(question)) ^ np.uint64(number))


@fast
def happens(chance: float, seed: int, device: int, question: int, number: int) -> Any:
    """Return whether an event of this probability happens; probability 1 always does."""
    return np.float64(random_bits(seed, device, question, number) >> np.uint64(11)) * SCALE < chance


@fast
def one_of(count: int, seed: int, device: int, question: int, number: int) -> Any:
    """Return a whole number from 0 to count - 1."""
    return np.int64(random_bits(seed, device, question, number) % np.uint64(count))
