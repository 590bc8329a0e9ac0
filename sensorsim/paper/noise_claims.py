"""Claims on the factor b of environmental noise, and on noise that is read from a table."""

import math
import random
from collections.abc import Callable

from sensorsim.paper.claim import Found, L, N, claim, derived_verdict, verdict

APPENDIX = "Appendix on weights and environmental noise"
DRAWS = 100
HS = (0.1, 0.5, 0.9)
W = [2.0] * N


def factor(y: float, h: float) -> float:
    """Return b = y/(1 + h(y - 1)), where y = e^D."""
    return y / (1 + h * (y - 1))


@claim("noise-variance", f"{APPENDIX}, Var(W n)", "Var(W n) = sigma²·norm(W)")
def noise_variance() -> Found:
    """sum of the squared weights, sigma = 1, for a W of 14 entries 2"""
    true, norm = sum(w * w for w in W), math.sqrt(sum(w * w for w in W))
    return Found(f"{true:g} = norm(W)², where norm(W) = {norm:.3f}", verdict(math.isclose(true, norm)))


@claim("noise-inverse", f"{APPENDIX}, y as a function of x", "y = x/(1 - hx + h)")
def noise_inverse() -> Found:
    """b of 5 values y at 3 values of h, put back"""

    def back(inverse: str) -> bool:
        pairs = [(y, h, factor(y, h)) for y in (0.1, 0.5, 1.0, 2.0, 9.0) for h in HS]
        if inverse == "printed":
            return all(math.isclose(x / (1 - h * x + h), y) for y, h, x in pairs)
        return all(math.isclose(x * (1 - h) / (1 - h * x), y) for y, h, x in pairs)

    x = factor(2.0, 0.5)
    text = f"at y = 2, h = 0.5 it gives {x / (1 - 0.5 * x + 0.5):.3f}"
    return Found(text + ("; y = x(1 - h)/(1 - hx) gives y back" if back("true") else ""), verdict(back("printed")))


@claim("noise-derivative", f"{APPENDIX}, dy/dx", "dy/dx = (1 + h)/(1 - hx + h)²")
def noise_derivative() -> Found:
    """differences of the printed y, and of y = x(1 - h)/(1 - hx), at x = 0.8 for 3 values of h"""
    x, step = 0.8, 1e-5

    def close(y: Callable[[float, float], float]) -> bool:
        return all(
            math.isclose((y(x + step, h) - y(x - step, h)) / (2 * step), (1 + h) / (1 - h * x + h) ** 2, rel_tol=1e-6)
            for h in HS
        )

    follows, stands = close(lambda x, h: x / (1 - h * x + h)), close(lambda x, h: x * (1 - h) / (1 - h * x))
    return Found("follows from the printed y" if follows else "does not follow", derived_verdict(follows, stands))


@claim(
    "noise-max", "Section on noisy inputs; figure of the lower bound", "Pr[b_max <= 1] >= {} for a large sigma", "0.5"
)
def noise_max(printed: str) -> Found:
    """Phi(ln(1/l)/s)^100 at h = 0, exactly, for standard deviations s from 0.1 to 10^6"""
    from sensorsim.training.run_figures import probability_below_one

    most = max(probability_below_one(10.0**k) for k in range(-1, 7))
    return Found(f"below {most:.1e} for every s: at most 0.5^{DRAWS}", verdict(most >= float(printed)))


@claim(
    "noise-one",
    "Section on noisy inputs, Proposition on b_j",
    "Pr[b_max <= 1] >= {}, were it the largest of one draw",
    "0.5",
)
def noise_one(printed: str) -> Found:
    """Phi(ln(1/l)/s) at h = 0, one draw in place of 100, for s from 0.1 to 10^6"""
    from sensorsim.training.run_figures import probability_below_one

    most = max(probability_below_one(10.0**k, 1) for k in range(-1, 7))
    return Found(f"below {most:.6f} for every s", verdict(most >= float(printed)))


@claim("noise-sum", "Section on noisy inputs, Proposition on b_j", "Pr[b_j < 1] >= {}", "0.5")
def noise_sum(printed: str) -> Found:
    """b_j drawn 5000 times from weights in -10 to 10 and records in 0 to 1, as in the paper's example, sigma = 1 and 5;
    seed 0"""
    from sensorsim.training.run_figures import share_below_one

    shares = {sigma: share_below_one(sigma) for sigma in (1.0, 5.0)}
    text = ", ".join(f"{share:.4f} at sigma = {sigma:g}" for sigma, share in shares.items())
    return Found(text, verdict(max(shares.values()) >= float(printed)))


@claim("noise-h", f"{APPENDIX}, figure of the density", "b_max changes only slightly with h")
def noise_h() -> Found:
    """median of b_max at h = 0 and h = 0.5 for sigma = 1, in closed form, with the printed inverse and variance and
    with those that hold"""
    from statistics import NormalDist

    from sensorsim.training.run_figures import spread

    rank = NormalDist().inv_cdf(0.5 ** (1 / DRAWS))

    def median(h: float, printed: bool) -> float:
        y = math.exp(rank * spread(1.0, printed))
        return L * (y * (1 + h) / (1 + h * y) if printed else factor(y, h))

    found = [(median(0.0, printed), median(0.5, printed)) for printed in (True, False)]
    text = "; ".join(f"{a:.2g} and {b:.3g}" for a, b in found)
    return Found(f"{text} (as printed; as it holds)", verdict(all(a / b < 2 for a, b in found)))


@claim(
    "noise-table", "Appendix on perturbation complexities, C_N", "precomputed samples of Laplace noise give epsilon-DP"
)
def noise_table() -> Found:
    """a table of rounded Laplace samples, epsilon = 1.6 on one feature: likelihood ratios of its outputs, exactly"""
    from sensorsim.noise.noise_table import make_table

    made = make_table("naive", "1.6", release=1)
    proof = made.certificate
    assert proof
    why = "outputs that one record can give and another cannot; " if proof.epsilon_record is None else ""
    text = f"{why}delta at the nominal epsilon {proof.delta_record:.3f}"
    held = proof.holds(made.epsilon)
    return Found("every ratio is within the budget" if held else text, verdict(held))


@claim(
    "noise-order", "Appendix on perturbation complexities, pre-fetching", "pre-fetched samples keep a record private"
)
def noise_order() -> Found:
    """the SPOF kernel on 100 records of one feature, strides 1, read by someone who knows the table: x from alpha2 less
    the noise of its place"""
    from sensorsim.kernels.spof import fm

    rng = random.Random(0)
    size, half = 256, 1 << 14
    noise, cursor, hits = [rng.randrange(-(1 << 18), 1 << 18) for _ in range(size)], [0, 0], 0
    for record in range(100):
        x, alpha2, alpha3 = rng.randrange((1 << 15) + 1), [0], [0]
        fm([x], noise, [1, 1], cursor, alpha2, alpha3, 1, size)
        hits += half - (alpha2[0] - noise[(record + 1) % size]) == x
    return Found(f"{hits} of 100 records recovered bit for bit", verdict(hits == 0))
