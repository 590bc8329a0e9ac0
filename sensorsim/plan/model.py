"""How good a model the packets of one estimate will teach: by simulation, as nothing closed says it.

The people are made here, the same for everyone: columns with means from 0.15 to 0.6, a third of their variance by one
factor that all share and a third by factors of three neighbours. Real people differ, and so will the figures. The
packets are the kernels' own; only their sums are kept, and the linear map is the hospital's.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from sensorsim.hospital.linear import Map
    from sensorsim.noise.noise_table import NoiseTable

PEOPLE = 20_000
MOST_PACKETS = 2_000_000  # more are taken as so many
AT_ONCE = 1 << 17
SEED = 20_180_419
DATA = f"{PEOPLE:,} synthetic records"


@dataclass(frozen=True)
class Foretold:
    """Accuracy is 100·(1 - mean squared error); R² is against the column means, which need no private map."""

    hidden: int
    packets: int  # that were simulated
    accuracy: float
    r2: float
    accuracy_of_half: float  # of answering one half always
    accuracy_of_means: float  # of answering the true column means always
    accuracy_without: float  # of the map that needs no packet
    data: str = DATA


def foretold(table: "NoiseTable", packets: int) -> Foretold:
    """Of a linear map through half as many numbers as there are features."""
    import numpy as np

    from sensorsim.hospital.linear import linear_map, nothing_known

    n, count = table.features, min(packets, MOST_PACKETS)
    people = made_people(n)
    hidden = max(1, n // 2)
    x = people / 2**15

    def percent(answer: Any) -> float:
        return 100 * (1 - float(((answer - x) ** 2).mean()))

    means, accuracy = percent(x.mean(axis=0)), percent(_answer(_learnt(table, people, count, hidden), x))
    without = percent(_answer(linear_map(nothing_known(np.arange(n)), hidden), x))
    r2 = 1 - (100 - accuracy) / (100 - means)
    return Foretold(hidden, count, accuracy, r2, percent(0.5), means, without)


def _answer(found: "Map", x: Any) -> Any:
    import numpy as np

    return np.clip(found.d + (x @ found.W + found.b) @ found.V, 0, 1)


def made_people(n: int) -> "npt.NDArray[np.uint16]":
    """Records of n features in Q15."""
    import numpy as np

    rng = np.random.default_rng(SEED)
    common = rng.standard_normal((PEOPLE, 1))
    near = np.repeat(rng.standard_normal((PEOPLE, -(-n // 3))), 3, axis=1)[:, :n]
    own = rng.standard_normal((PEOPLE, n))
    x = np.linspace(0.15, 0.6, n) + 0.15 * (common + near + own) / np.sqrt(3)
    return np.asarray(np.rint(np.clip(x, 0, 1) * 2**15).astype(np.uint16))


def _learnt(table: "NoiseTable", people: Any, packets: int, hidden: int) -> "Map":
    """Features first, then sketches about their means: as many of each as `share_of` says."""
    import numpy as np

    from sensorsim.device.sketch import sketch_records
    from sensorsim.hospital.learn import known_columns, learn, share_of, sketch_of
    from sensorsim.hospital.linear import linear_map

    n, rng = table.features, np.random.default_rng(SEED + 1)
    column_of = np.arange(n)
    sketches = round(packets * share_of(packets, n, table))
    sums = np.zeros((n, table.symbols or 2))
    for part, size in enumerate(_sizes(packets - sketches)):
        sums += _sums(table, people[rng.integers(0, PEOPLE, size)], [SEED, part])
    if not sketches:
        return linear_map(learn(table, sums, column_of), hidden)
    sketch = sketch_of(known_columns(table, sums, column_of), column_of)
    count, total = np.zeros(sketch.directions), np.zeros(sketch.directions)
    for part, size in enumerate(_sizes(sketches)):
        number, y = sketch_records(people[rng.integers(0, PEOPLE, size)], table, sketch, [SEED + 2, part])
        count += np.bincount(number, minlength=sketch.directions)
        total += np.bincount(number, table.estimate(y), minlength=sketch.directions)
    return linear_map(learn(table, sums, column_of, sketch, (count, total)), hidden)


def _sums(table: "NoiseTable", x: Any, seed: list[int]) -> Any:
    """Of every feature how often each symbol came, or how many values and their sum."""
    import numpy as np

    from sensorsim.noise.batch_release import sampled_records

    chosen, y = (part.ravel() for part in sampled_records(x, table, seed))
    if table.symbols is not None:
        flat = np.bincount(chosen.astype(np.int64) * table.symbols + y, minlength=table.features * table.symbols)
        return flat.reshape(table.features, table.symbols)
    values = [np.bincount(chosen, weight, table.features) for weight in (np.ones(len(y)), table.estimate(y))]
    return np.stack(values, axis=1)


def _sizes(records: int) -> list[int]:
    return [min(AT_ONCE, records - start) for start in range(0, records, AT_ONCE)]
