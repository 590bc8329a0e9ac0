"""Privacy-loss distributions on a grid, composed by FFT with safe rounding; Gaussian noise in closed form.

A pair of distributions (P, Q) has the loss log(P/Q) under P. A loss between two grid points is split between them
so that the masses under P and under Q are both preserved; the hockey-stick curve then touches the true one at every
grid point and lies above it between ("connect the dots", Doroshenko et al. 2022). A split moves no loss up by more than
one grid step, so the curve of n composed pairs, read n steps further right, lies below the true one: that brackets
the discretisation error.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

CELLS = 1 << 19  # grid points of a composition, unless a step is given


@dataclass(frozen=True)
class PLD:
    """Masses at (first + i)*step, a mass at infinity, the number of composed pairs, and the error of the sums."""

    step: float
    first: int
    masses: Any
    infinite: float
    composed: int = 1
    error: float = 0.0

    def delta(self, epsilon: float) -> float:
        """Return an upper bound of the hockey-stick divergence at epsilon, error included."""
        return min(1.0, self._divergence(epsilon) + self.error)

    def delta_below(self, epsilon: float) -> float:
        """Return a lower bound of it: the curve one grid step further right for each composed pair."""
        return max(0.0, self._divergence(epsilon + self.composed * self.step) - self.error)

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon, to 1e-9, at which `delta` is enough; infinity if none is."""
        low, high = 0.0, max(0.0, (self.first + len(self.masses)) * self.step)
        if self.delta(high) > delta:
            return math.inf
        if self.delta(low) <= delta:
            return 0.0
        while high - low > 1e-9 * max(1.0, high):
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return high

    def _divergence(self, epsilon: float) -> float:
        import numpy as np

        start = max(0, math.floor(epsilon / self.step) - self.first)
        losses = (self.first + np.arange(start, len(self.masses))) * self.step
        return float(self.infinite + (self.masses[start:] * np.maximum(0.0, -np.expm1(epsilon - losses))).sum())


def from_counts(p: Any, q: Any, step: float) -> PLD:
    """Return the PLD of two distributions given as counts over the same outputs, of equal sums."""
    import numpy as np

    total = p.sum()
    finite = (p > 0) & (q > 0)
    mass_p, mass_q = p[finite] / total, q[finite] / total
    cell = np.floor(np.log(p[finite] / q[finite]) / step).astype(np.int64)
    first = int(cell.min()) if len(cell) else 0
    size = int(cell.max()) - first + 2 if len(cell) else 1
    cells = np.bincount(cell - first, mass_p, size), np.bincount(cell - first, mass_q, size)
    return from_cells(*cells, step, first, float(p[q == 0].sum() / total))


def laplace(shift: float, step: float) -> PLD:
    """Return the PLD of Laplace noise of scale 1 and its copy moved by `shift`: two atoms and a density between."""
    import numpy as np

    first, last = math.floor(-shift / step), math.floor(shift / step)
    edges = np.clip(np.arange(first, last + 2) * step, -shift, shift)
    cells_p = np.diff(np.exp((edges - shift) / 2)) / 2  # density exp((loss - shift)/2)/4 under P
    cells_q = -np.diff(np.exp((-edges - shift) / 2)) / 2  # and exp((-loss - shift)/2)/4 under Q
    cells_p, cells_q = np.append(cells_p, 0.0), np.append(cells_q, 0.0)
    cells_p[0] += math.exp(-shift) / 2
    cells_q[0] += 0.5
    cells_p[last - first] += 0.5
    cells_q[last - first] += math.exp(-shift) / 2
    return from_cells(cells_p, cells_q, step, first, 0.0)


def pure(epsilon: float, step: float) -> PLD:
    """Return the worst PLD of any mechanism with delta = 0: randomised response."""
    import numpy as np

    high = 1 / (1 + math.exp(-epsilon))
    pair = np.array([high, high * math.exp(-epsilon)])  # 1 - high would lose the digits of a small number
    return from_counts(pair, pair[::-1], step)


def dominating(pairs: Iterable[tuple[Any, Any]]) -> tuple[Any, Any]:
    """Return counts (p, q) that dominate each of these pairs of counts of the same sum.

    The hockey stick of a pair at alpha is the most of p(S) - alpha*q(S) over sets S of outputs. So the largest curve of
    all pairs is that of the upper hull of all points (q(S), p(S)), with S the outputs of the largest ratios; a side of
    the hull is an output of the pair found. All is in integers, and ratios of counts below 2^26 differ as floats.
    """
    import numpy as np

    best: dict[int, int] = {}
    for p, q in pairs:
        p, q = np.asarray(p), np.asarray(q)
        with np.errstate(divide="ignore", invalid="ignore"):
            order = np.argsort(np.nan_to_num(-(p / q)), kind="stable")
        for across, up in zip(q[order].cumsum().tolist(), p[order].cumsum().tolist(), strict=True):
            best[across] = max(up, best.get(across, 0))
    hull: list[tuple[int, int]] = [(0, 0)]
    for x, y in sorted(best.items()):
        while len(hull) > 1 and _turn(hull[-2], hull[-1], (x, y)) >= 0:
            hull.pop()
        hull.append((x, y))
    sides = np.diff(np.array(hull), axis=0)
    return sides[:, 1], sides[:, 0]


def _turn(a: tuple[int, int], b: tuple[int, int], c: tuple[int, int]) -> int:
    """Return a number above 0 where the path from a over b to c turns left, 0 where it is straight."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def compose(parts: Sequence[tuple[PLD, int]]) -> PLD:
    """Compose independent releases: part i `times` times. One FFT per part, one back."""
    import numpy as np

    step = parts[0][0].step
    if any(part.step != step for part, _ in parts):
        raise ValueError("privacy-loss distributions of different steps cannot be composed")
    length = sum((len(part.masses) - 1) * times for part, times in parts) + 1
    size = 1 << (length - 1).bit_length()
    product = np.ones(size // 2 + 1, dtype=complex)
    finite, composed = 1.0, 0
    for part, times in parts:
        product *= np.fft.rfft(part.masses, size) ** times
        finite *= (1 - part.infinite) ** times
        composed += times * part.composed
    masses = np.maximum(0.0, np.fft.irfft(product, size)[:length])
    # Every factor has modulus at most 1, so the powers lose at most `composed` times the rounding of one transform
    # (log2(size) units in the last place of the 2-norm, which is at most 1); over `length` points the 1-norm is at most
    # sqrt(length) times that. A split is off by a few units in the last place of the mass it moves, times its loss.
    unit = 2.0**-53
    reach = max(max(-part.first, part.first + len(part.masses)) for part, _ in parts) * step
    error = unit * (math.sqrt(length) * (composed + 1) * size.bit_length() + 8 * composed * (1 + reach))
    first = sum(part.first * times for part, times in parts)
    return PLD(step, first, masses, 1 - finite, composed, min(1.0, error))


def step_for(span: float, composed: int) -> float:
    """Return a grid step with which `composed` pairs of losses within ±span take at most CELLS points."""
    return max(2 * span * composed / CELLS, 1e-6)


def from_cells(cells_p: Any, cells_q: Any, step: float, first: int, infinite: float) -> PLD:
    """Split each cell's masses between its two grid points: a + b = p and a*exp(-low) + b*exp(-high) = q."""
    import numpy as np

    low = (first + np.arange(len(cells_p))) * step
    b = (cells_p - cells_q * np.exp(low)) / -math.expm1(-step)
    b = np.clip(b, 0.0, cells_p)
    masses = np.append(cells_p - b, 0.0)
    masses[1:] += b
    return PLD(step, first, masses, infinite)


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
