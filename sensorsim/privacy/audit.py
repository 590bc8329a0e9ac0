"""Audit: run the real kernel on two inputs and look for a leak, as an attacker would.

Two questions. Do the outputs follow the distribution that the certificate is about (chi-square)? And how much does one
observation tell of x: a lower bound on epsilon that is wrong with probability 1 - confidence at most. The event that
tells most is chosen on one half of the draws, and its probabilities are bounded on the other half (Clopper–Pearson),
so choosing cannot flatter it. A bound above what the table claims is a leak. No leak found is no proof: that is what
the certificate is for.
"""

import math
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from sensorsim.errors import InputError
from sensorsim.privacy.observers import KERNEL_FRAC, Observer, make_observer
from sensorsim.privacy.outputs import output_counts

if TYPE_CHECKING:
    import numpy as np

    from sensorsim.privacy.tables import NoiseTable

INPUTS = (0, 1 << KERNEL_FRAC)  # the two ends of the range of x
MOST_CELL_BITS = 23
CHUNK = 1 << 19  # draws made at once
EXPECTED = 50.0  # draws that a group of cells should have for the chi-square test
FEW_GROUPS = 256
FEWEST_DRAWS = 1000


@dataclass(frozen=True)
class Audit:
    """What was found. Rates and bounds are of one observation."""

    mechanism: str
    sees: str
    draws: int
    confidence: float
    chi_square: float
    degrees: int
    p_value: float  # of outputs at least as far from the certificate's distribution
    epsilon_claimed: float
    epsilon_bound: float  # one observation costs more than this
    event_rates: tuple[float, float]  # how often the best event happened, under the likelier input and the other
    per_record: int  # such observations, with independent draws: their epsilons add up
    recovered: bool  # each input gave one observation only: x is read off exactly

    @property
    def matches(self) -> bool:
        return self.p_value >= 1 - self.confidence

    @property
    def leaks(self) -> bool:
        return self.epsilon_bound > self.epsilon_claimed

    @property
    def passed(self) -> bool:
        return self.matches and not self.leaks


def audit(
    table: "NoiseTable",
    mechanism: str | None = None,
    draws: int = 10**8,
    seed: int = 0,
    confidence: float = 0.9999,
    threads: int = 1,
    progress: Callable[[int], None] = lambda drawn: None,
) -> Audit:
    """Draw from the kernel, half with x = 0 and half with x = 1, and examine what comes out."""
    if draws < FEWEST_DRAWS:
        raise InputError(f"draws is {draws}; an audit needs at least {FEWEST_DRAWS}, and finds more with 10^8.")
    if not 0.5 <= confidence < 1:
        raise InputError(f"confidence is {confidence}; give a number from 0.5 to below 1, as in 0.9999.")
    observer = make_observer(table, mechanism)
    bits = _cell_bits(table)
    outputs, seen = _collect(observer, bits, draws, seed, threads, progress)
    chi_square, degrees, p_value = _compare(table, observer, outputs, bits)
    bound, rates = epsilon_bound(seen[0], seen[1], confidence)
    supports = [_support(seen[0, i] + seen[1, i]) for i in (0, 1)]
    recovered = len(supports[0]) == len(supports[1]) == 1 and bool(supports[0][0] != supports[1][0])
    return Audit(
        observer.mechanism,
        observer.sees,
        int(seen.sum()),
        confidence,
        chi_square,
        degrees,
        p_value,
        observer.claimed,
        bound,
        rates,
        table.release,
        recovered,
    )


def epsilon_bound(
    choose: "np.ndarray[Any, Any]", test: "np.ndarray[Any, Any]", confidence: float
) -> tuple[float, tuple[float, float]]:
    """The largest lower bound on epsilon over the events chosen, and the rates of the event that gives it.

    Rows are the two inputs, columns the cells. Candidates are sets of cells, neighbouring cells taken together at every
    power of two; the error probability is shared among all of them.
    """
    import numpy as np

    scales = range(choose.shape[1].bit_length() - 1)
    error = (1 - confidence) / (2 * 2 * len(scales))
    best = (0.0, (0.0, 0.0))
    coarse, again = choose.astype(np.int64), test.astype(np.int64)
    for _ in scales:
        for likelier in (0, 1):
            event = _best_event(coarse[likelier], coarse[1 - likelier])
            hits, misses = again[likelier][event].sum(), again[1 - likelier][event].sum()
            trials, others = again[likelier].sum(), again[1 - likelier].sum()
            low, high = _at_least(hits, trials, error), _at_most(misses, others, error)
            bound = math.log(low / high) if low > 0 else 0.0
            if bound > best[0]:
                best = (bound, (float(hits / trials), float(misses / others)))
        coarse, again = (counts[:, ::2] + counts[:, 1::2] for counts in (coarse, again))
    return best


def _best_event(p: Any, q: Any) -> Any:
    """The cells, likeliest ratio first, up to where the bound that they would give is largest."""
    import numpy as np

    cells = np.flatnonzero(p)
    order = cells[np.argsort((q[cells] + 0.5) / (p[cells] + 0.5), kind="stable")]
    hits, misses = np.cumsum(p[order]), np.cumsum(q[order])
    low = hits - 5 * np.sqrt(hits)
    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.where(low > 0, np.log(low / (misses + 5 * np.sqrt(misses) + 12)), -np.inf)
    return order[: int(np.argmax(score)) + 1]


def _at_least(hits: int, trials: int, error: float) -> float:
    """Clopper–Pearson: the probability is lower with probability `error` at most."""
    from scipy.special import betaincinv

    return float(betaincinv(hits, trials - hits + 1, error)) if hits else 0.0


def _at_most(hits: int, trials: int, error: float) -> float:
    from scipy.special import betaincinv

    return float(betaincinv(hits + 1, trials - hits, 1 - error)) if hits < trials else 1.0


def _cell_bits(table: "NoiseTable") -> int:
    """Outputs are counted modulo 2^bits: all of them where they fit, else folded, which can only hide a leak."""
    far = table.limit or max(-table.counts[0][0], table.counts[-1][0]) << table.stair_bits
    return min(MOST_CELL_BITS, (2 * (far + (2 << table.frac_bits))).bit_length())


def _collect(
    observer: Observer, bits: int, draws: int, seed: int, threads: int, progress: Callable[[int], None]
) -> tuple[Any, Any]:
    """Counts by half, input and cell: of the outputs, and of what the observer makes of them."""
    import numpy as np

    each = draws // 4
    outputs = np.zeros((2, 2, 1 << bits), np.uint32)
    seen: list[Any] = [outputs]  # the same counts, until an observer makes something else of the outputs
    lock = threading.Lock()

    def chunk(work: tuple[int, int, int, int]) -> None:
        half, which, number, size = work
        made, observed = observer.draw(INPUTS[which], size, (seed, half, which, number))
        with lock:
            _tally()(outputs[half, which], made, observer.shift)
            if observed is not made:
                if seen[0] is outputs:
                    seen[0] = np.zeros_like(outputs)
                _tally()(seen[0][half, which], observed, observer.shift)
            progress(size)

    with ThreadPoolExecutor(max(1, threads)) as pool:
        for _ in pool.map(chunk, _chunks(each)):
            pass
    return outputs, seen[0]


def _chunks(each: int) -> Iterator[tuple[int, int, int, int]]:
    for half in (0, 1):
        for which in (0, 1):
            for number, start in enumerate(range(0, each, CHUNK)):
                yield half, which, number, min(CHUNK, each - start)


@cache
def _tally() -> Callable[..., None]:
    """Add outputs to the counts of their cells; compiled once."""
    import numba

    def tally(counts, values, shift):  # type: ignore[no-untyped-def]
        mask = len(counts) - 1
        for value in values:
            counts[(value >> shift) & mask] += 1

    compiled: Callable[..., None] = numba.njit(nogil=True, error_model="numpy")(tally)
    return compiled


def _compare(table: "NoiseTable", observer: Observer, outputs: Any, bits: int) -> tuple[float, int, float]:
    """Chi-square of the outputs of both inputs against the distribution of the certificate.

    Once with fine groups, which show a flaw in the lowest bits, once with few, which show a small shift of many draws.
    The worse one is reported, with its p-value doubled for having had two tries.
    """
    from scipy.special import chdtrc

    pairs = []
    for which, x in enumerate(INPUTS):
        found = outputs[0, which].astype(float) + outputs[1, which]
        expected = _probabilities(table, observer, x, bits) * found.sum()
        if found[expected == 0].any():
            return math.inf, 0, 0.0  # an output that cannot be
        pairs.append((found, expected))
    total = pairs[0][0].sum()
    tests = []
    for least in (EXPECTED, max(EXPECTED, total / FEW_GROUPS)):
        parts = [chi_square(found, expected, least) for found, expected in pairs]
        statistic, degrees = sum(part[0] for part in parts), sum(part[1] - 1 for part in parts)
        tests.append((float(chdtrc(degrees, statistic)) if degrees else 1.0, statistic, degrees))
    p_value, statistic, degrees = min(tests)
    return statistic, degrees, min(1.0, len(tests) * p_value)


def chi_square(found: Any, expected: Any, least: float = EXPECTED) -> tuple[float, int]:
    """The statistic over groups of neighbouring cells, each with enough expected, and how many groups there are."""
    import numpy as np

    found, expected = found[expected > 0], expected[expected > 0]
    level = (np.cumsum(expected) - expected) // least
    group = np.cumsum(np.diff(level, prepend=0) > 0)
    wanted, had = np.bincount(group, expected), np.bincount(group, found)
    small = wanted < least / 5  # a rest that a large cell cut off
    if small.any():
        wanted = np.append(wanted[~small], wanted[small].sum())
        had = np.append(had[~small], had[small].sum())
    return float((np.square(had - wanted) / wanted).sum()), len(wanted)


def _probabilities(table: "NoiseTable", observer: Observer, x: int, bits: int) -> Any:
    """The exact distribution over the cells. SPOF releases 1/2 - x, so for it x is mirrored."""
    import numpy as np

    D = 1 << table.frac_bits
    x_q = x >> (KERNEL_FRAC - table.frac_bits)
    if observer.mechanism in ("release", "sampled"):
        first, counts = output_counts(table, x_q)
        places = first + np.arange(len(counts))
    else:
        places = (np.array([v for v, _ in table.counts]) << table.stair_bits) + D // 2 - x_q
        counts = np.array([c for _, c in table.counts])
    cells = np.bincount(places & ((1 << bits) - 1), counts, 1 << bits)
    return cells / cells.sum()


def _support(counts: Any) -> Any:
    import numpy as np

    return np.flatnonzero(counts)
