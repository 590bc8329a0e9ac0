"""Words that are wrong in ways that firmware gets them wrong. Each word by itself is even; together they are not.

All are functions words(seed, count, width): one row of words for each record, in the order in which they are drawn.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.uint32]
CONSTANT = np.uint32(0x5BD1E995)
TAPS = 0xA3000000  # of a maximal Galois LFSR of 32 bits


def sound(seed: Sequence[int], count: int, width: int) -> Array:
    return np.random.default_rng(tuple(seed)).integers(0, 2**32, (count, width), np.uint32)


def paired(change: Callable[[Array], Array], along: str) -> Callable[[Sequence[int], int, int], Array]:
    """Return words of which every second one follows from the one before it, along features or records."""

    def words(seed: Sequence[int], count: int, width: int) -> Array:
        made = sound(seed, count, width)
        pairs = made.T if along == "features" else made
        pairs[1::2] = change(pairs[: len(pairs) // 2 * 2 : 2])
        return made

    words.__name__ = f"{change.__name__}_{along}"
    return words


def xor(words: Array) -> Array:
    return words ^ CONSTANT


# Antithetic: the noise of two features, or of a feature in two records, cancels.
antithetic_features, antithetic_records = (paired(np.invert, along) for along in ("features", "records"))
xor_features, xor_records = (paired(xor, along) for along in ("features", "records"))


def same_for_all_features(seed: Sequence[int], count: int, width: int) -> Array:
    return np.repeat(sound(seed, count, 1), width, axis=1)


def repeated_in_the_next_record(seed: Sequence[int], count: int, width: int) -> Array:
    """Records 1 and 2, 3 and 4 …: not those that an audit would pair first."""
    words = sound(seed, count, width)
    words[2::2] = words[1:-1:2]
    return words


def pool_of_five(seed: Sequence[int], count: int, width: int) -> Array:
    """Five records' worth of words, used in turn, and made anew every ten records."""
    fresh = sound(seed, count, width)
    number = np.arange(count)
    return fresh[np.where(number % 10 >= 5, number - 5, number)]


def lfsr(seed: Sequence[int], count: int, width: int) -> Array:
    """Advance one bit for each draw: a word has 31 bits of the one before."""
    state = int(sound(seed, 1, 1)[0, 0]) | 1
    made = np.empty(count * width, np.uint32)
    for i in range(len(made)):
        made[i] = state
        state = (state >> 1) ^ (TAPS if state & 1 else 0)
    return made.reshape(count, width)


def lcg(seed: Sequence[int], count: int, width: int) -> Array:
    """Use a linear congruential generator modulo 2^32: its top bits pass, its lowest bits have short periods."""
    state = int(sound(seed, 1, 1)[0, 0])
    made = np.empty(count * width, np.uint32)
    for i in range(len(made)):
        state = (1664525 * state + 1013904223) & 0xFFFFFFFF
        made[i] = state
    return made.reshape(count, width)


def choice_is_noise(seed: Sequence[int], count: int, width: int) -> Array:
    """For sampled releases: the word that picks a feature draws its noise too."""
    words = sound(seed, count, width)
    words[:, 1::2] = words[:, ::2]
    return words


def biased_choice(seed: Sequence[int], count: int, width: int) -> Array:
    """For sampled releases: an eighth of the picks are of the first feature."""
    words = sound(seed, count, width)
    words[:, ::2][sound((*seed, 1), count, width // 2) % 8 == 0] = 0
    return words


def sticky_choice(seed: Sequence[int], count: int, width: int) -> Array:
    """For sampled releases: a record picks the features of the one before it, every second time."""
    words = sound(seed, count, width)
    words[1::2, ::2] = words[: count // 2 * 2 : 2, ::2]
    return words


ALL_FEATURES = (
    *(antithetic_features, antithetic_records, xor_features, xor_records, same_for_all_features),
    *(repeated_in_the_next_record, pool_of_five, lfsr, lcg),
)
SOME_FEATURES = (choice_is_noise, biased_choice, sticky_choice, lfsr, antithetic_records)
