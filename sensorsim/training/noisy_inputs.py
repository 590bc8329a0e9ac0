"""The paper's factor b under environmental noise: its printed density, the one that holds, and how often it is below 1.

b = e^D / (1 + (e^D - 1)·h) with D = Wᵀn normal. The paper bounds b_j, the sum of l such factors, by b_max: l times
the largest of |D| = 100 draws. Printed: D has variance sigma²·‖W‖, and b ↦ y = e^D is inverted as b/(1 - h·b + h).
What holds: variance sigma²·‖W‖², and y = b(1-h)/(1 - h·b). Both have a closed distribution function; no Monte Carlo
is needed for b_max.
"""

from __future__ import annotations

import math

import numpy as np

DRAWS, L, N = 100, 7, 14
SAMPLES = 5_000  # of b_j itself
WEIGHT_RANGE = 10.0  # the paper's example: W uniform in ±10
EXAMPLE_NORM = WEIGHT_RANGE * math.sqrt(N / 3)  # root mean square of ‖W‖


def spread(sigma: float, printed: bool, norm: float = EXAMPLE_NORM) -> float:
    """Standard deviation of D = Wᵀn."""
    return sigma * math.sqrt(norm) if printed else sigma * norm


def density_curve(h: float, sd: float, printed: bool, points: int = 4001) -> tuple[np.ndarray, np.ndarray]:
    """log10(b_max) and its density per decade, along ln y = s: for h > 0 nearly all of it lies within a hair of l/h."""
    from scipy.special import log_ndtr

    s = np.linspace(-5 * sd, 8 * sd, points)
    # ln b = ln y - ln(1 + h(y-1)) in truth, ln y + ln(1+h) - ln(1 + h·y) by the printed inverse
    if printed:
        below = np.logaddexp(0, s + math.log(h)) if h else np.zeros(points)
        log_b, log_slope = s + math.log1p(h) - below, -below
    else:
        below = np.logaddexp(math.log1p(-h), s + math.log(h)) if h else np.zeros(points)
        log_b, log_slope = s - below, math.log1p(-h) - below
    log_density = math.log(DRAWS) - 0.5 * (s / sd) ** 2 - math.log(sd * math.sqrt(2 * math.pi))
    log_density += (DRAWS - 1) * log_ndtr(s / sd) - log_slope + math.log(math.log(10))
    return (log_b + math.log(L)) / math.log(10), np.exp(np.clip(log_density, -700, 700))


def probability_below_one(sd: float, draws: int = DRAWS) -> float:
    """Pr[b_max <= 1] at h = 0: Phi(ln(1/l)/sd)^draws."""
    from scipy.special import log_ndtr

    return float(np.exp(draws * log_ndtr(-math.log(L) / sd)))


def share_below_one(sigma: float, samples: int = SAMPLES, seed: int = 0) -> float:
    """Pr[b_j < 1] by drawing b_j itself: W uniform in ±10, x uniform in 0 … 1, n of deviation sigma."""
    rng = np.random.default_rng(seed)
    W = rng.uniform(-WEIGHT_RANGE, WEIGHT_RANGE, (samples, L, N))
    x, noise = rng.random((samples, N, 1)), sigma * rng.standard_normal((samples, N, 1))
    clean = (W @ x)[..., 0]
    ratio = np.exp(np.logaddexp(0, -clean) - np.logaddexp(0, -clean - (W @ noise)[..., 0]))
    return float((ratio.sum(axis=1) < 1).mean())
