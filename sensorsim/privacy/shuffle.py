"""What shuffling adds: packets that reach the analyst in one batch, without identity, hide among each other.

This is the epsilon of the batch, at a delta, against an analyst who sees nothing but the shuffled packets. It holds on
top of the local epsilon0 and never replaces it: who sees packets before they are shuffled learns up to epsilon0. A
batch has one packet of each person, and no packet carries a serial number, a sequence number or a time.

The bound. Let R be any release with epsilon0 and delta = 0, and let two people's records be x0 and x1. Then R(x0) is
e/(e+1)·Q0 + 1/(e+1)·Q1 and R(x1) the same with Q0 and Q1 exchanged, e = exp(epsilon0) (Kairouz, Oh and Viswanath 2015);
so Q0 + Q1 = R(x0) + R(x1). A release of any other record is at least exp(-epsilon0)·(R(x0) + R(x1))/2: with probability
p = exp(-epsilon0) it is a clone, and drawn from Q0 or Q1 with even odds. Whatever else is in the batch, the two cases
are no easier to tell apart than, with C ~ Bin(n-1, p), A ~ Bin(C, 1/2) and D ~ Bernoulli(e/(e+1)),

    P = (A + D, C - A + 1 - D)    and    Q = (A + 1 - D, C - A + D)

(Feldman, McMillan and Talwar, "Hiding among the clones", FOCS 2021, section 3). Their later p = 2/(e+1) ("Stronger
privacy amplification by shuffling", SODA 2023) is not used in general: by the authors' errata its theorems hold only
for some releases. It does hold for two symbols of one feature, and `clone_probability` gives it for those tables.

The numbers. Given C = c, P/Q rises with the first count a, so the hockey-stick divergence is a difference of two tails
of Bin(c, 1/2). P and Q are mirror images: both directions are equal. More clones never help to tell apart (one can add
them oneself), so runs of neighbouring c count as the smallest c of the run, and the tails of C at their smallest c.
Both round up. Every binomial probability is taken to be wrong by one part in 10^9, to the bad side; they are right to
one in 10^10 (tests/test_shuffle.py). What is returned is an upper bound, and above the exact sum by less than 1 %.
"""

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sensorsim.errors import InputError

if TYPE_CHECKING:
    from sensorsim.privacy.tables import NoiseTable

MOST_PACKETS = 10**8
MOST_EPSILON = 100.0  # exp(-100) of 10^8 packets are clones: above, nothing is gained and nothing is said
LEAST_DELTA = 1e-15
WRONG = 1e-9  # what a binomial probability may be wrong by, relative
SPREADS = 11.0  # standard deviations of C on either side that are summed; what is outside counts too
RUNS = 1500  # into which these are cut
FEW = 1100  # throws of a coin; 2^-FEW is no float
NEAR = 1e-6  # to which epsilon is solved, relative to epsilon0; upwards


def shuffled_delta(epsilon0: float, n: int, epsilon: float, clone: float | None = None) -> float:
    """An upper bound of the delta that remains at `epsilon` when n packets of epsilon0 each are shuffled.

    `clone` is the chance that a packet is a clone, exp(-epsilon0) where none is given: see `clone_probability`.
    """
    clone = _checked(epsilon0, n, clone)
    if not 0 <= epsilon < math.inf:
        raise InputError(f"epsilon is {epsilon}; give a number of 0 or more.")
    if epsilon >= epsilon0:
        return 0.0
    if epsilon0 > MOST_EPSILON:
        return 1.0
    starts, masses = _clones(n - 1, clone)
    return _divergence(epsilon0, epsilon, starts, masses)


def shuffled_epsilon(epsilon0: float, n: int, delta: float, clone: float | None = None) -> float:
    """The epsilon at `delta` when n packets of epsilon0 each are shuffled: an upper bound, never above epsilon0."""
    clone = _checked(epsilon0, n, clone)
    _check_delta(delta)
    if epsilon0 > MOST_EPSILON:
        return float(epsilon0)
    starts, masses = _clones(n - 1, clone)
    low, high = 0.0, float(epsilon0)
    if _divergence(epsilon0, low, starts, masses) <= delta:
        return low
    while high - low > NEAR * epsilon0 * min(1.0, high):
        middle = (low + high) / 2
        enough = _divergence(epsilon0, middle, starts, masses) <= delta
        low, high = (low, middle) if enough else (middle, high)
    return high


def closed_form_epsilon(epsilon0: float, n: int, delta: float) -> float | None:
    """The published bound, for comparison: "Hiding among the clones", theorem 3.1, as its authors compute it.

    None where its condition, epsilon0 <= log(n / (16 log(4/delta))), does not hold.
    """
    _checked(epsilon0, n, None)
    _check_delta(delta)
    logarithm = math.log(4 / delta)
    if epsilon0 > math.log(n / (16 * logarithm)):
        return None
    e = math.exp(epsilon0)
    spread = 8 * math.sqrt(e * logarithm / n) + 8 * e / n
    first = math.log1p(spread)
    return math.log1p(-math.expm1(-epsilon0) / (1 + math.exp(-epsilon0 - first)) * spread)


def clone_probability(table: "NoiseTable") -> float:
    """The chance that a packet through this table is a clone: what `shuffled_epsilon` may be given for it.

    For two symbols of one feature, from the table's counts: let A and B be the releases at the knots where symbol 1 is
    least and most likely. All releases are mixtures of these two, so they are the worst pair (the divergence is
    convex), and a release of any x is at least the smaller of A and B. That is p·(A + B)/2 with p = min over symbols of
    2·min(A, B)/(A + B), which is 2/(e+1) where the table is symmetric. For every other table exp(-epsilon0), which
    needs nothing but epsilon0.
    """
    from sensorsim.privacy.certificate import certify

    if table.features == 1 and table.symbols == 2:
        pairs = [(min(column), max(column)) for column in zip(*table.extremes(), strict=True)]
        return math.nextafter(float(min(Fraction(2 * least, least + most) for least, most in pairs)), 0.0)
    proved = certify(table).epsilon_record
    if proved is None:
        raise InputError(f"this {table.kind} table proves no epsilon, so nothing is said of its shuffling; use rows.")
    return math.exp(-float(proved)) * (1 - WRONG)


def _divergence(epsilon0: float, epsilon: float, starts: Any, masses: Any) -> float:
    """The hockey-stick divergence of P and Q: that of every c, weighed.

    Given c, P(a) - exp(epsilon)·Q(a) is positive from a threshold on: above it P is u·b(a-1) - v·b(a), b the chances of
    Bin(c, 1/2), with u - v = 1 - exp(epsilon). Summed up it is u·b(t-1) - (exp(epsilon) - 1)·P(Bin >= t).
    """
    import numpy as np
    from scipy.special import betainc

    top = 1 / (1 + math.exp(-epsilon0))  # chance of D = 1
    u = -math.expm1(epsilon - epsilon0) * top
    v = u + math.expm1(epsilon)
    threshold = np.floor((starts + 1) * (v / (u + v))) + 1  # 1 … c + 1
    one = u * _half(starts, threshold - 1) * (1 + WRONG)
    inside = threshold <= starts
    from_there = betainc(np.where(inside, threshold, 1.0), np.where(inside, starts - threshold + 1, 1.0), 0.5)
    tail = np.where(inside, from_there, 0.0)
    each = np.maximum(0.0, one - math.expm1(epsilon) * tail * (1 - WRONG))
    return min(1.0, float((masses * each).sum()) * (1 + WRONG))


def _half(c: Any, k: Any) -> Any:
    """The chance of k among c throws of a coin; in the form of Loader (2000) where c is large."""
    import numpy as np
    from scipy.special import betaln

    few = np.minimum(c, FEW)
    exact = np.exp(-betaln(np.minimum(k, few) + 1, np.maximum(few - k, 0) + 1) - np.log1p(few) - few * math.log(2))
    many = np.maximum(c, FEW)
    inner = np.clip(k, 1, many - 1)  # beyond, the chance is below 2^-FEW·FEW
    d = (2 * inner - many) / many
    exponent = many / 2 * ((1 + d) * np.log1p(d) + (1 - d) * np.log1p(-d))
    beyond = _stirling(many) - _stirling(inner) - _stirling(many - inner) - exponent
    large = np.exp(beyond) * np.sqrt(many / (2 * math.pi * inner * (many - inner)))
    return np.where(c < FEW, exact, large)


def _stirling(k: Any) -> Any:
    """log(k!) less Stirling's formula: to 10^-12 from 15 on; below, next to FEW, all is 0 anyway."""
    square = 1.0 / (k * k)
    return (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680))) / k


def _clones(others: int, clone: float) -> tuple[Any, Any]:
    """Runs of numbers of clones among the others: the smallest of each, and an upper bound of its probability."""
    import numpy as np
    from scipy.special import betainc, betaincc

    mean, spread = others * clone, math.sqrt(others * clone * (1 - clone))
    low = max(0, math.floor(mean - SPREADS * spread - SPREADS))
    high = min(others, math.ceil(mean + SPREADS * spread + SPREADS))
    width = -(-(high - low + 1) // RUNS)
    starts = np.arange(low, high + 1, width, dtype=np.float64)
    # From below up to the mean and from above down to it: a difference of two small numbers loses nothing.
    some = np.maximum(starts, 1)
    under = np.where(starts > 0, betaincc(some, others - some + 1, clone), 0.0)
    over = np.where(starts > 0, betainc(some, others - some + 1, clone), 1.0)
    rising, falling = np.diff(under, append=1.0), -np.diff(over, append=0.0)
    masses = np.where(starts + width <= mean, rising + WRONG * np.append(under[1:], 1.0), falling + WRONG * over)
    if low > 0:  # what is below the first run counts as no clone at all
        starts, masses = np.append(0.0, starts), np.append(under[0] * (1 + WRONG), masses)
    return starts, masses


def _checked(epsilon0: float, n: int, clone: float | None) -> float:
    if not 0 < epsilon0 < math.inf:
        raise InputError(f"epsilon0 is {epsilon0}; give what one packet costs, a number above 0.")
    if type(n) is not int or not 1 <= n <= MOST_PACKETS:
        raise InputError(f"{n} packets are shuffled; give a whole number from 1 to {MOST_PACKETS}.")
    if clone is None:
        return math.exp(-epsilon0) * (1 - WRONG)
    if not 0 <= clone <= 1:
        raise InputError(f"the chance of a clone is {clone}; give 0 to 1, or leave it out.")
    return float(clone)


def _check_delta(delta: float) -> None:
    if not LEAST_DELTA <= delta < 1:
        raise InputError(f"delta is {delta}; give {LEAST_DELTA:g} or more, below 1.")
