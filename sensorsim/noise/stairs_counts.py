"""Stairs: noise counts on a staircase, with a privacy bound that is proved in integers, and their design.

    y = clamp(x_q - D/2 + S*A + U, -limit, +limit)        D = 2^frac_bits, S = D/r a stair, r a power of two
    A = table[k secret uniform bits]                      -K..K, counts c_0, c_1 … c_K on either side
    U = log2(S) secret uniform bits - S/2                 limit = S*(K - (r+1)/2)

x_q is any of 0..D. A change of x moves the noise that explains y by at most D = r*S lattice steps, so by at most r
stairs, partial ones included: floor((z+D)/S) = floor(z/S) + r. Inside the limits y therefore has a likelihood ratio
of at most max(c_i/c_j) over |i-j| <= r, stairs K excluded, for a noise below -(K-1/2)*S or from (K-1/2)*S on is
clamped for every x. At the upper end y = limit has c_K when x = 0 and c_K + c_(K-1) + … + c_(K-r) when x = 1. At
the lower end one more lattice point belongs to the atom, for both x, and the ratio of its two counts is one of
those inside, so the atom's ratio lies between (mediant). Hence delta = 0 and

    exp(eps0) = max( c_i/c_j over |i-j| <= r,   1 + (c_(K-1) + … + c_(K-r)) / c_K ).

With the r outermost stairs alike, E[y] = gain*(x_q - D/2 - 1/2) exactly, gain = 1 - (2*c_K + r*c_(K-1))/2^k:
dividing by the gain, which is public, gives an unbiased estimate of x.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sensorsim.noise.certificate import exp_bounds

STAIRS_PER_RANGE = (1, 2, 4, 8, 16, 32)
MOST_CLAMPED = 0.95  # default share of draws that the ends may take: only the estimate counts


@dataclass(frozen=True)
class Stairs:
    """Counts c_0 … c_K, r stairs to the range of x."""

    counts: tuple[int, ...]
    per_range: int

    @property
    def gain(self) -> float:
        """Return the slope of E[y] against x: the share of draws that are not clamped."""
        total = 2 * sum(self.counts) - self.counts[0]
        return 1 - (2 * self.counts[-1] + self.per_range * self.counts[-2]) / total


def best_sd(epsilon: float) -> float:
    """Return the standard deviation of Geng and Viswanath's best staircase for a range of 1."""
    b = math.exp(-epsilon)
    gamma = -b / (1 - b) + ((b - 2 * b**2 + 2 * b**4 - b**5) / 2) ** (1 / 3) / (1 - b) ** 2
    return staircase_sd(epsilon, gamma)


def staircase_sd(epsilon: float, gamma: float) -> float:
    """Return the sd of a staircase: a centre of half-width gamma, steps of width 1, each b times the last."""
    b = math.exp(-epsilon)
    # Second moment of the step from k-1+gamma to k+gamma, (3k² + 3k(2g-1) + 3g² - 3g + 1)/3, summed over b^k.
    s0, s1, s2 = b / (1 - b), b / (1 - b) ** 2, b * (1 + b) / (1 - b) ** 3
    moment = gamma**3 / 3 + s2 + s1 * (2 * gamma - 1) + s0 * (gamma**2 - gamma + 1 / 3)
    return math.sqrt(moment / (gamma + s0))


def estimate_sd(stairs: Stairs) -> float:
    """Return the standard deviation of the unbiased estimate y/gain at its worst x, for a range of 1."""
    return math.sqrt(max(_variances(stairs, (0.0, 0.25, 0.5))))


def estimate_sd_mean(stairs: Stairs) -> float:
    """Return the root of its mean variance over all x, by the midpoints of 64 parts; by symmetry of half of them."""
    middles = tuple((k + 0.5) / 64 for k in range(32))
    found = _variances(stairs, middles)
    return math.sqrt(sum(found) / len(found))


def _variances(stairs: Stairs, distances: tuple[float, ...]) -> list[float]:
    """Return variances of the unbiased estimate, for x at these distances from the middle of its range."""
    import numpy as np

    counts, r = stairs.counts, stairs.per_range
    K = len(counts) - 1
    limit = (K - (r + 1) / 2) / r
    weight = np.array([*counts[:0:-1], *counts], dtype=float)
    weight /= weight.sum()
    edges = (np.arange(-K, K + 2) - 0.5) / r
    found = []
    for v in distances:
        second = float((weight * r * np.diff(_clamped_square(edges + v, limit))).sum())
        found.append((second - (stairs.gain * v) ** 2) / stairs.gain**2)
    return found


def noise_sd(stairs: Stairs) -> float:
    """Return the standard deviation of the noise S*A + U before the clamp, for a range of 1."""
    square = 2 * sum(c * j * j for j, c in enumerate(stairs.counts))
    return math.sqrt(square / (2 * sum(stairs.counts) - stairs.counts[0]) + 1 / 12) / stairs.per_range


def stairs_ratio(counts: dict[int, int], per_range: int, stair: int, top: int) -> Fraction | None:
    """Return the largest likelihood ratio over all inputs and outputs (proof above), or None if it has no bound."""
    r = per_range
    if len(counts) < 2 * top:  # some stair but the lowest is empty
        return None
    c = [counts.get(j, 0) for j in range(-top, top + 1)]
    if min(c[1:]) <= 0:  # the lower end may be empty: one lattice point of the next stair is clamped for every x
        return None
    worst = Fraction(1)
    inside = c[1:-1]
    for j in range(len(inside)):
        window = inside[j : j + r + 1]
        worst = max(worst, Fraction(max(window), min(window)))
    upper = Fraction(sum(c[-1 - r :]), c[-1])
    one_more = c[r + 1] if r + 1 < len(c) else 0
    lower = Fraction(stair * sum(c[: r + 1]) + one_more, stair * c[0] + c[1])
    return max(worst, upper, lower)


def fill(epsilon: Fraction, entries: int, most_clamped: float, max_per_range: int) -> Stairs | None:
    """Return the stairs of `entries` entries with the best estimate and at most `most_clamped` of the draws clamped."""
    e = exp_bounds(epsilon)[0]
    best: tuple[float, Stairs] | None = None
    for r, g in _shapes(float(epsilon), max_per_range):
        for counts in _candidates(e, entries, most_clamped, r, g):
            stairs = Stairs(counts, r)
            if 1 - stairs.gain > most_clamped:
                continue
            sd = estimate_sd(stairs)
            if best is None or sd < best[0] * (1 - 1e-9):
                best = (sd, stairs)
    return best[1] if best else None


def _shapes(epsilon: float, max_per_range: int) -> list[tuple[int, int]]:
    """Return pairs (r, g), a centre of 2g+1 stairs, whose ideal staircase is near the best; the coarsest few."""
    goal = best_sd(epsilon)
    shapes = [(1, 0)]
    for r in STAIRS_PER_RANGE[1:]:
        if r <= max_per_range:
            shapes += [(r, g) for g in range(r) if staircase_sd(epsilon, (2 * g + 1) / (2 * r)) < 1.1 * goal]
    near = [s for s in shapes if staircase_sd(epsilon, (2 * s[1] + 1) / (2 * s[0])) < 1.02 * goal]
    finest = min(near, default=shapes[-1])[0]
    return [s for s in shapes if s[0] <= 2 * finest]


def _candidates(e: Fraction, entries: int, most_clamped: float, r: int, g: int) -> Iterator[tuple[int, ...]]:
    """Yield fillings from the outside in, by outermost count; a rest goes to the ends, an excess is cut at the top."""
    outer = 1
    while outer <= entries and 2 * r * outer <= most_clamped * entries * (e - 1):  # beyond, the ends clamp too much
        fitting = _levels_that_fit(e, outer, entries, r, g)
        for levels in range(max(1, fitting), fitting + 3):
            counts = _fit(e, _inward(e, outer, r, g, levels), entries, r, g + (levels - 1) * r)
            if counts:
                yield counts
        outer += 1 + outer // 32


def _levels_that_fit(e: Fraction, outer: int, entries: int, r: int, g: int) -> int:
    """Return how many levels the entries hold when the outermost stairs have `outer` each."""
    total, level, levels = 2 * math.ceil(r * outer / (e - 1)), outer, 0
    while True:
        total += 2 * r * level
        level = level * e.numerator // e.denominator
        if total + (2 * g + 1) * level > entries:
            return levels
        levels += 1


def _inward(e: Fraction, outer: int, r: int, g: int, levels: int) -> list[int]:
    """Return c_0 … c_K: `levels` levels of r stairs outside a centre of 2g+1, each the largest that the next allows."""
    level = [outer]
    for _ in range(levels):
        level.append(level[-1] * e.numerator // e.denominator)
    level.reverse()
    counts = [level[0]] * (g + 1)
    for count in level[1:]:
        counts += [count] * r
    end = Fraction(r * outer) / (e - 1)
    return [*counts, -(-end.numerator // end.denominator)]


def _fit(e: Fraction, counts: list[int], entries: int, r: int, free: int) -> tuple[int, ...] | None:
    """Make the counts sum to `entries`. Only stairs 0..free may be cut: the r outermost must stay alike."""
    counts = list(counts)
    if _total(counts) > entries:
        low, high = counts[free + 1], counts[0]  # the lowest cap leaves every level as low as the outermost
        while high - low > 1:
            cap = (low + high) // 2
            fits = _total([min(c, cap) for c in counts[:-1]] + counts[-1:]) <= entries
            low, high = (cap, high) if fits else (low, cap)
        capped = [min(c, low) for c in counts[: free + 1]]
        if (low + 1) <= e * low:  # cells at the cap may differ by one
            capped = _raise(capped, counts, entries - _total(capped + counts[free + 1 :]))
        counts[: free + 1] = capped
    left = entries - _total(counts)
    if left % 2:
        counts[0] -= 1  # the only stair without a mirror image
        left += 1
    if left < 0 or counts[0] < 1 or max(counts[: r + 1]) > e * counts[0]:
        return None
    counts[-1] += left // 2
    return tuple(counts)


def _raise(capped: list[int], wanted: list[int], left: int) -> list[int]:
    """Add one to stairs under the cap, in pairs, from the outside in, while entries are left."""
    for j in range(len(capped) - 1, 0, -1):
        if left < 2:
            break
        if capped[j] < wanted[j]:
            capped[j] += 1
            left -= 2
    return capped


def _total(counts: list[int]) -> int:
    return 2 * sum(counts) - counts[0]


def _clamped_square(t: Any, limit: float) -> Any:
    """Return the antiderivative of clamp(t, -limit, limit)²."""
    import numpy as np

    inside = np.clip(t, -limit, limit)
    return inside**3 / 3 + limit**2 * (t - inside)
