"""What an audit looks at: the packets that an observer of the radio sees, one row for each record, in time order."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sensorsim.kernels.formats import FRAC

if TYPE_CHECKING:
    import numpy as np

    Record = np.ndarray[Any, Any]  # whole numbers in Q15, one for each feature; or rows of them to draw features from
    Packets = np.ndarray[Any, Any]  # whole numbers, one row for each record, one column for each field
    Distribution = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]  # values, and their probabilities

ONE = 1 << FRAC
PARTS, VALUES = 8, 16  # the range is drawn from in so many parts, at so many values of each
Seed = Sequence[int]
Words = Callable[[Seed, int, int], Any]  # words(seed, records, words of a record), in place of a generator's


class Field(NamedTuple):
    """A column of the packets."""

    name: str
    cost: float  # the epsilon that this column alone may cost
    slack: float = 0.0  # what a probability that is expected of it may be off by, as a share of itself


class Input(NamedTuple):
    """A record to draw with, and how many of the draws it gets beside the others."""

    name: str
    record: "Record"
    weight: int = 1


class Source(NamedTuple):
    """`draw(x, count, seed)` gives the packets of `count` records x (see `repeat`), made from fresh words."""

    mechanism: str
    sees: str
    claimed: float  # the epsilon of one whole packet, against that of any other record
    per_record: int  # released values in a packet: what is counted as draws
    fields: tuple[Field, ...]
    inputs: tuple[Input, ...]  # the first two are the pair that is told apart best
    draw: "Callable[[Record, int, Seed], Packets]"
    expected: "Callable[[Record, int], Distribution | None]"  # of a column; None where it is not known
    independent: "Callable[[Record], bool] | None"
    """Whether the columns of a packet are independent at this x. None: not even packets are, as in a capture."""
    words: str = "given"  # where they come from


def usual_inputs(features: int) -> tuple[Input, ...]:
    """Return the ends of the range, which a sound mechanism tells apart best, and inputs between and above them.

    The last ones cover the whole range: in each of its parts every feature of every record is one of several values,
    picked at random.
    """
    import numpy as np

    def alike(value: int) -> "Record":
        return np.full(features, value, np.uint16)

    odd = (np.arange(1, features + 1) * 10923 % ONE | 1).astype(np.uint16)
    step = ONE // (PARTS * VALUES)
    values = np.arange(PARTS * VALUES) * step + np.random.default_rng(0).integers(0, step, PARTS * VALUES)
    parts = np.repeat(values.astype(np.uint16), features).reshape(PARTS, VALUES, features)
    return (
        Input("0", alike(0), 8),
        Input("1", alike(ONE), 8),
        Input("1/4", alike(ONE // 4), 2),
        Input("1/2", alike(ONE // 2), 2),
        Input("odd values", odd, 2),
        Input("above 1", alike(2 * ONE - 1), 2),
        *(Input(f"{part}/{PARTS} … {part + 1}/{PARTS}", parts[part]) for part in range(PARTS)),
    )


def repeat(x: "Record", count: int, seed: Seed) -> "Record":
    """Return `count` records: all x, or where x has rows, each feature from one of them, picked at random."""
    import numpy as np

    if x.ndim == 1:
        return np.tile(x, (count, 1))
    rows = np.random.default_rng((*seed, 1)).integers(0, len(x), (count, x.shape[1]))
    return x[rows, np.arange(x.shape[1])]


def is_even(record: "Record") -> bool:
    """Return whether every feature has the same value, or is picked from the same values."""
    return bool((record.T[0] == record.T).all())


def mix(parts: "Sequence[Distribution]") -> "Distribution":
    """Return the mean of some distributions: that of one of them, picked at random."""
    import numpy as np

    if all(part is parts[0] for part in parts):
        return parts[0]
    every, places = np.unique(np.concatenate([values for values, _ in parts]), return_inverse=True)
    shares = np.concatenate([probabilities for _, probabilities in parts]) / len(parts)
    return every, np.bincount(places, shares)


def pairs_of_inputs(inputs: Sequence[Input]) -> list[tuple[int, int]]:
    """Which inputs to tell apart: the first two, and each of the others against the one of them that is further off."""
    pairs = [(0, 1)]
    for number, other in enumerate(inputs[2:], 2):
        far = [abs(other.record.astype(int) - inputs[end].record.astype(int)).sum() for end in (0, 1)]
        pairs.append((int(far[1] > far[0]), number))
    return pairs
