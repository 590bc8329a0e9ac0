"""Privacy amplification: Gaussian sums, with and without Poisson sampling, and packets that are shuffled.

Poisson sampling
----------------
Every record joins every sum with the same probability q ("rate"), independently, and nobody sees who joined. A record
moves a sum by at most C. Noise has a standard deviation of multiplier·C. The worst pair of neighbours is the mixtures

    P = sum over j of Bin(j; k, q)·N(j, multiplier²)      Q = sum over j of Bin(j; k, q)·N(-j, multiplier²)

where k records of a person (usually one) are replaced. If they are removed or added instead, which is what most
libraries count, Q = N(0, multiplier²).

Proof. Given all other records, both outputs are mixtures of normals around the sums V_S of the parts v_i of those
records i that joined; under the other data set v_i' replaces v_i. Against a normal at zero, the densities are sums of
exp(V·g - |V|²/2), g normal: numbers u_S for P and w_S for Q. At alpha = exp(epsilon) the hockey stick is the mean of
max(0, linear function), with weights above zero on each u and below zero on each w: a convex function. Along a path of
covariances its mean changes by half the sum of (change of covariance)·(second derivative)·(product of two of these
numbers), so it grows with each variance, with each covariance of two u or two w, and as the covariance of a u and a w
falls. All are extreme together: parts of full length C, all v along one line, all v' against it. That is P and Q. For
alpha below 1 swap the two. Steps compose, also if later steps depend on earlier ones.

Shuffling
---------
Packets that reach the analyst in one batch, without identity, hide among each other. The epsilon of the batch, at a
delta, is against an analyst who sees nothing but the shuffled packets. It holds on top of the local epsilon0 and never
replaces it: who sees packets before they are shuffled learns up to epsilon0. A batch has one packet of each person, and
no packet carries a serial number, a sequence number or a time.

Let R be any release with epsilon0 and delta = 0, and let two people's records be x0 and x1. Then R(x0) is
e/(e+1)·Q0 + 1/(e+1)·Q1 and R(x1) the same with Q0 and Q1 exchanged, e = exp(epsilon0) (Kairouz, Oh and Viswanath 2015);
so Q0 + Q1 = R(x0) + R(x1). A release of any other record is at least exp(-epsilon0)·(R(x0) + R(x1))/2: with probability
p = exp(-epsilon0) it is a clone, and drawn from Q0 or Q1 with even odds. For any other packets of the batch, the two
cases are no easier to distinguish than, with C ~ Bin(n-1, p), A ~ Bin(C, 1/2) and D ~ Bernoulli(e/(e+1)),

    P = (A + D, C - A + 1 - D)    and    Q = (A + 1 - D, C - A + D)

(Feldman, McMillan and Talwar, "Hiding among the clones", FOCS 2021, section 3). Their later p = 2/(e+1) ("Stronger
privacy amplification by shuffling", SODA 2023) is not used in general: by the authors' errata its theorems hold only
for some releases. It does hold for two symbols of one feature, and `clone_probability` gives it for those tables.

Given C = c, P/Q rises with the first count a, so the hockey-stick divergence is a difference of two tails of
Bin(c, 1/2). P and Q are mirror images: both directions are equal. More clones never help to distinguish (one can add
them oneself), so runs of neighbouring c count as the smallest c of the run, and the tails of C at their smallest c.
Both round up. Every binomial probability is taken to be wrong by one part in 10^9, to the bad side; they are right to
one in 10^10 (tests/accounting/test_shuffle.py). The result is an upper bound, above the exact sum by less than 1 %.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp, ndtr
from scipy.stats import binom, norm

from sensorsim._util.errors import InputError
from sensorsim.accounting.composition import CELLS, compose, from_cells, prove

REPLACED = ((1, -1),)  # direction of the sums under P and under Q
REMOVED = ((1, 0), (0, -1))  # removing a record, and adding one
MOST_TOGETHER = 256  # records of a person in one sum; above, no amplification is claimed
TRUNCATED = 1e-4  # share of delta for the truncated tails of all steps
BISECTIONS = 48
GRID_POINTS = 2 * CELLS  # of a composition: many steps with a small loss each need a finer grid
MOST_CELLS = 1 << 13  # of one step

MOST_PACKETS = 10**8
MOST_EPSILON = 100.0  # exp(-100) of 10^8 packets are clones: above, no amplification is claimed
LEAST_DELTA = 1e-15
PMF_ERROR = 1e-9  # relative error of a binomial probability
TAIL_SDS = 11.0  # standard deviations of C on either side that are summed; the tails count too
RUNS = 1500  # number of runs of c

TOLERANCE = 1e-6  # of epsilon, relative to epsilon0; rounded up


# ---- Gaussian noise, which composes in closed form: k draws moved by mu are one moved by mu·sqrt(k)


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return the delta of Gaussian noise moved by mu standard deviations (Balle and Wang 2018)."""
    first = 0.5 * math.erfc(-(mu / 2 - epsilon / mu) / math.sqrt(2))
    second = 0.5 * math.erfc((mu / 2 + epsilon / mu) / math.sqrt(2))
    return max(0.0, first - math.exp(epsilon) * second) if second > 0 else first


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the epsilon at delta of Gaussian noise moved by mu standard deviations."""
    return _least(lambda e: gaussian_delta(mu, e) <= delta)


@lru_cache(maxsize=64)
def noise_multiplier_for(epsilon: float, delta: float, draws: int) -> float:
    """Return the sd over C with which `draws` noisy clipped sums of a record are (epsilon, delta)-private."""
    return 2 * math.sqrt(draws) * _least(lambda inverse: inverse > 0 and gaussian_delta(1 / inverse, epsilon) <= delta)


def _least(enough: Callable[[float], bool]) -> float:
    """Return the smallest positive number that is enough, to 1e-12 of itself, on the safe side."""
    low, high = 0.0, 1.0
    while not enough(high):
        low, high = high, 2 * high
        if high > 1e6:
            return math.inf
    if enough(0.0):
        return 0.0
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def poisson_epsilon(
    multiplier: float,
    rate: float,
    steps: int,
    delta: float,
    records: int = 1,
    relation: tuple[tuple[int, int], ...] = REPLACED,
) -> float:
    """Return a close upper bound of the epsilon at delta of `steps` noisy sums."""
    if not 0 < rate <= 1:
        raise InputError(f"a sampling rate of {rate}; give a probability above 0 and at most 1.")
    # How many of a person's records meet in one sum at most, but for a probability that counts as truncated.
    together = min(records, int(binom.isf(TRUNCATED * delta / steps, records, rate)) + 1)
    if rate == 1 or together > MOST_TOGETHER:  # count as if everyone always joined, an upper bound
        moved = max(p - q for p, q in relation)
        return gaussian_epsilon(moved * records * math.sqrt(steps) / multiplier, delta)
    weights = binom.pmf(range(together + 1), records, rate)
    reach = float(norm.isf(TRUNCATED * delta / steps)) * multiplier
    found = []
    for signs in relation:
        pair = _Pair(multiplier, weights, signs)
        low, high = min(signs) * together - reach, max(signs) * together + reach
        span = float(pair.loss(high) - pair.loss(low))
        step = max(span * steps / GRID_POINTS, span / MOST_CELLS)
        found.append(compose([(pair.distribution(low, high, step), steps)]).epsilon(delta))
    return max(found)


@lru_cache(maxsize=64)
def poisson_multiplier(wanted: float, delta: float, steps: int, rate: float) -> float:
    """Return the sd over C with which a record that may be replaced spends `wanted`, to 1e-3 on the safe side."""
    high = noise_multiplier_for(wanted, delta, steps)
    if rate == 1:
        return high
    low = high * rate
    while poisson_epsilon(low, rate, steps, delta) <= wanted:
        high, low = low, low / 2
    while high / low > 1 + 1e-3:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if poisson_epsilon(middle, rate, steps, delta) <= wanted else (middle, high)
    return high


class _Pair(NamedTuple):
    """The mixtures P and Q of one sum: normals around 0, 1, 2 … times the sign, with these weights."""

    multiplier: float
    weights: Any
    signs: tuple[int, int]

    def loss(self, x: Any) -> Any:
        """Return log(P/Q) at x. It grows with x, since the normals of P are to the right of those of Q."""

        def log_density(sign: int) -> Any:  # against a normal at zero
            moved = sign * np.arange(len(self.weights)) / self.multiplier
            exponent = np.asarray(x)[..., None] / self.multiplier * moved - moved**2 / 2
            return logsumexp(exponent, axis=-1, b=self.weights)

        return log_density(self.signs[0]) - log_density(self.signs[1])

    def distribution(self, low: float, high: float, step: float) -> Any:
        """Return the losses between x = low and x = high on a grid; the mass outside counts as infinite."""
        first, last = math.floor(self.loss(low) / step), math.ceil(self.loss(high) / step)
        losses = np.arange(first, last + 1) * step
        left, edges = np.full(len(losses), low), np.full(len(losses), high)
        for _ in range(BISECTIONS):  # for the x of each loss
            middle = (left + edges) / 2
            less = self.loss(middle) < losses
            left, edges = np.where(less, middle, left), np.where(less, edges, middle)
        edges[0], edges[-1] = low, high
        cells = []
        for sign in self.signs:  # the masses between edges, each computed from the nearer tail
            z = (edges[:, None] - sign * np.arange(len(self.weights))) / self.multiplier
            a, b = z[:-1], z[1:]
            cells.append(np.where(a > 0, ndtr(-a) - ndtr(-b), ndtr(b) - ndtr(a)) @ self.weights)
        # What rounding may take from each cell is added to the mass that counts as infinite.
        infinite = max(0.0, 1 - float(cells[0].sum())) + len(cells[0]) * 2.0**-52
        cells_p, cells_q = (np.append(masses, 0.0) for masses in cells)
        return from_cells(cells_p, cells_q, step, first, infinite)


# ---- shuffling


def shuffled_delta(epsilon0: float, n: int, epsilon: float, clone: float | None = None) -> float:
    """Return an upper bound of the delta at `epsilon` when n packets of epsilon0 each are shuffled.

    `clone` is the probability that a packet is a clone, by default exp(-epsilon0): see `clone_probability`.
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
    """Return an upper bound of the epsilon at `delta`, at most epsilon0, when n packets of epsilon0 are shuffled."""
    clone = _checked(epsilon0, n, clone)
    if not LEAST_DELTA <= delta < 1:
        raise InputError(f"delta is {delta}; give {LEAST_DELTA:g} or more, below 1.")
    if epsilon0 > MOST_EPSILON:
        return float(epsilon0)
    starts, masses = _clones(n - 1, clone)
    low, high = 0.0, float(epsilon0)
    if _divergence(epsilon0, low, starts, masses) <= delta:
        return low
    while high - low > TOLERANCE * epsilon0 * min(1.0, high):
        middle = (low + high) / 2
        enough = _divergence(epsilon0, middle, starts, masses) <= delta
        low, high = (low, middle) if enough else (middle, high)
    return high


def clone_probability(table: Any) -> float:
    """Return the probability that a packet through this table is a clone, for `shuffled_epsilon`.

    For two symbols of one feature, from the table's counts: let A and B be the releases at the knots where symbol 1 is
    least and most likely. All releases are mixtures of these two, so they are the worst pair (the divergence is
    convex), and a release of any x is at least the smaller of A and B. That is p·(A + B)/2 with p = min over symbols of
    2·min(A, B)/(A + B), which is 2/(e+1) where the table is symmetric. For every other table exp(-epsilon0), which
    needs nothing but epsilon0.
    """
    if table.features == 1 and table.symbols == 2:
        pairs = [(min(column), max(column)) for column in zip(*table.extremes(), strict=True)]
        return math.nextafter(float(min(Fraction(2 * least, least + most) for least, most in pairs)), 0.0)
    proved = prove(table).epsilon_record
    if proved is None:
        raise InputError(f"this {table.kind} table proves no epsilon, so nothing is said of its shuffling; use rows.")
    return math.exp(-float(proved)) * (1 - PMF_ERROR)


def _divergence(epsilon0: float, epsilon: float, starts: Any, masses: Any) -> float:
    """Return the hockey-stick divergence of P and Q: the weighted sum over c.

    Given c, P(a) - exp(epsilon)·Q(a) is positive from a threshold on: above it P is u·b(a-1) - v·b(a), b the
    probabilities of Bin(c, 1/2), with u - v = 1 - exp(epsilon). The sum is u·b(t-1) - (exp(epsilon) - 1)·P(Bin >= t).
    """
    top = 1 / (1 + math.exp(-epsilon0))  # probability of D = 1
    u = -math.expm1(epsilon - epsilon0) * top
    v = u + math.expm1(epsilon)
    threshold = np.minimum(np.floor((starts + 1) * (v / (u + v))), starts) + 1  # 1 … c + 1, where v/(u + v) is 1 too
    one = u * binom.pmf(threshold - 1, starts, 0.5) * (1 + PMF_ERROR)
    tail = binom.sf(threshold - 1, starts, 0.5) * (1 - PMF_ERROR)
    each = np.maximum(0.0, one - math.expm1(epsilon) * tail)
    return min(1.0, float((masses * each).sum()) * (1 + PMF_ERROR))


def _clones(others: int, clone: float) -> tuple[Any, Any]:
    """Return runs of numbers of clones: the smallest number of each, and an upper bound of its probability."""
    mean, spread = others * clone, math.sqrt(others * clone * (1 - clone))
    low = max(0, math.floor(mean - TAIL_SDS * spread - TAIL_SDS))
    high = min(others, math.ceil(mean + TAIL_SDS * spread + TAIL_SDS))
    width = -(-(high - low + 1) // RUNS)
    starts = np.arange(low, high + 1, width, dtype=np.float64)
    # From below up to the mean and from above down to it: a difference of two small numbers loses nothing.
    under, over = binom.cdf(starts - 1, others, clone), binom.sf(starts - 1, others, clone)
    rising = np.diff(under, append=1.0) + PMF_ERROR * np.append(under[1:], 1.0)
    falling = PMF_ERROR * over - np.diff(over, append=0.0)
    masses = np.where(starts + width <= mean, rising, falling)
    if low > 0:  # the tail below the first run counts as no clone at all
        starts, masses = np.append(0.0, starts), np.append(under[0] * (1 + PMF_ERROR), masses)
    return starts, masses


def _checked(epsilon0: float, n: int, clone: float | None) -> float:
    """Return the probability of a clone."""
    if not 0 < epsilon0 < math.inf:
        raise InputError(f"epsilon0 is {epsilon0}; give what one packet costs, a number above 0.")
    if type(n) is not int or not 1 <= n <= MOST_PACKETS:
        raise InputError(f"{n} packets are shuffled; give a whole number from 1 to {MOST_PACKETS}.")
    if clone is None:
        return math.exp(-epsilon0) * (1 - PMF_ERROR)
    if not 0 <= clone <= 1:
        raise InputError(f"the chance of a clone is {clone}; give 0 to 1, or leave it out.")
    return float(clone)
