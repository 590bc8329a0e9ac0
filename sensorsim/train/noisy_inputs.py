"""The paper's factor b under environmental noise: its printed density, the one that holds, and how often it is below 1.

b = e^D / (1 + (e^D - 1)·h) with D = Wᵀn normal. The paper bounds b_j, the sum of l such factors, by b_max: l times the largest of
|D| = 100 draws. Printed: D has variance sigma²·‖W‖, and b ↦ y = e^D is inverted as b/(1 - h·b + h). What holds: variance
sigma²·‖W‖², and y = b(1-h)/(1 - h·b). Both have a closed distribution function; no Monte Carlo is needed for b_max.
"""

from __future__ import annotations

import math

import numpy as np

DRAWS, L, N = 100, 7, 14
WEIGHT_RANGE = 10.0  # the paper's example: W uniform in ±10
EXAMPLE_NORM = WEIGHT_RANGE * math.sqrt(N / 3)  # root mean square of ‖W‖


def spread(sigma: float, printed: bool, norm: float = EXAMPLE_NORM) -> float:
    """Standard deviation of D = Wᵀn."""
    return sigma * math.sqrt(norm) if printed else sigma * norm


def log10_density(log10_b: np.ndarray, h: float, sd: float, printed: bool) -> np.ndarray:
    """Density of log10(b_max): per decade, because b_max spans many."""
    from scipy.special import log_ndtr

    b = 10.0**log10_b / L
    top = (1 - h * b + h) if printed else (1 - h * b) / (1 - h)
    inside = top > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        log_y = np.log(np.where(inside, b / np.where(inside, top, 1.0), 1.0))
        # d ln y / d ln b = (1+h)/(1-hb+h) as printed, 1/(1-hb) in truth
        slope = (1 + h) / top if printed else 1 / ((1 - h) * top)
        log_density = -0.5 * (log_y / sd) ** 2 - math.log(sd * math.sqrt(2 * math.pi)) + np.log(slope)
    whole = np.log(DRAWS) + log_density + (DRAWS - 1) * log_ndtr(log_y / sd) + math.log(math.log(10))
    return np.where(inside, np.exp(np.minimum(whole, 700)), 0.0)


def probability_below_one(sd: float, draws: int = DRAWS) -> float:
    """Pr[b_max <= 1] at h = 0: Phi(ln(1/l)/sd)^draws."""
    from scipy.special import log_ndtr

    return float(np.exp(draws * log_ndtr(-math.log(L) / sd)))


def share_below_one(sigma: float, samples: int = 20_000, seed: int = 0) -> float:
    """Pr[b_j < 1] by drawing b_j itself: W uniform in ±10, x uniform in 0 … 1, n of deviation sigma."""
    rng = np.random.default_rng(seed)
    W = rng.uniform(-WEIGHT_RANGE, WEIGHT_RANGE, (samples, L, N))
    x, noise = rng.random((samples, N, 1)), sigma * rng.standard_normal((samples, N, 1))
    clean = (W @ x)[..., 0]
    ratio = np.exp(np.logaddexp(0, -clean) - np.logaddexp(0, -clean - (W @ noise)[..., 0]))
    return float((ratio.sum(axis=1) < 1).mean())
