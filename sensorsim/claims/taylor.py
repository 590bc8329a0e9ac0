"""The Taylor polynomial of the loss: the bound of its error, and what the bound takes for granted."""

import math
from fractions import Fraction
from itertools import pairwise

from sensorsim.claims.claim import Found, claim, whether
from sensorsim.claims.loss import SECTION, alpha3, part


def derivatives(most: int) -> list[Fraction]:
    """Of log(1 + e^z) at 0, from the first to the most-th, exactly: s' = s(1 - s) as polynomials in s = sigma(z)."""
    polynomial, found = [Fraction(0), Fraction(1)], []
    for _ in range(most):
        found.append(sum((factor / 2**power for power, factor in enumerate(polynomial)), Fraction(0)))
        slope = [power * factor for power, factor in enumerate(polynomial)][1:]
        polynomial = [Fraction(0)] * (len(slope) + 2)
        for power, factor in enumerate(slope):
            polynomial[power + 1] += factor
            polynomial[power + 2] -= factor
    return found


@claim(
    "taylor-premise",
    "Appendix on the approximation error, before the bound",
    "there is a G with |f^(r)(a)| <= G for all r >= 3",
    how="derivatives of log(1 + e^z) at 0 as exact fractions up to order 40; the series converges only for "
    "|z| < pi, so they grow like r!/pi^r",
)
def taylor_premise() -> Found:
    sizes = [abs(value) for value in derivatives(40)]
    if not all(b > a for a, b in pairwise(sizes[5::2])):  # those of odd order are 0
        return Found(f"at most {float(max(sizes)):g}", whether(True))
    orders = [next(r for r, size in enumerate(sizes, 1) if size > limit) for limit in (1, 1000, 10**9)]
    text = f"above 1 at order {orders[0]}, above 1000 at {orders[1]}, above 10^9 at {orders[2]}, and still growing"
    return Found(text, whether(False))


def taylor_error(delta: float, true: bool = False) -> float:
    """The largest E = loss - polynomial over x in 0 … 1 and |z| <= delta; linear in x, so at an end."""
    zs = [delta * k / 50 for k in range(-50, 51)]

    def error(x: float, z: float) -> float:
        curved = 0.125 if true else float(alpha3(Fraction(x)))
        return part(1, x, z) + part(2, x, z) - (math.log(2) + (0.5 - x) * z + curved * z**2)

    return max(error(x, z) for x in (0.0, 1.0) for z in zs)


def taylor_bound(delta: float, G: float) -> float:
    """2G(e^delta - 1 - delta - delta²/2)."""
    return 2 * G * (math.expm1(delta) - delta - delta**2 / 2)


@claim(
    "taylor-bound",
    "Proposition on the approximation error, eq. for E_j",
    "E_j <= 2G(e^delta - 1 - delta - delta²/2)",
    how="largest error of the printed polynomial at a = 0 over x and |z| <= delta, beside the bound for G = "
    "1/8 and G = 1000, as delta falls",
)
def taylor_bound_claim() -> Found:
    deltas = (1.0, 0.1, 1e-2, 1e-3, 1e-4)
    broken = {G: next((d for d in deltas if taylor_error(d) > taylor_bound(d, G)), None) for G in (0.125, 1000.0)}
    told = [
        f"G = {G:g}: at delta = {d:g} the error is {taylor_error(d):.3g}, the bound {taylor_bound(d, G):.3g}"
        for G, d in broken.items()
        if d is not None
    ]
    right = all(taylor_error(d, true=True) <= taylor_bound(d, 0.125) for d in deltas)
    text = "; ".join(told) or "at every delta"
    return Found(
        text + ("; with the coefficient 1/8 the bound is kept" if right else ""),
        whether(all(d is None for d in broken.values())),
    )


@claim(
    "taylor-limit",
    f"{SECTION}, after the bound",
    "E_j goes to 0 as delta does",
    how="largest error of the printed polynomial at five delta, each a tenth of the last",
)
def taylor_limit() -> Found:
    errors = [taylor_error(10.0**-k) for k in range(5)]
    falls = all(b < a / 50 for a, b in pairwise(errors))
    return Found(", ".join(f"{error:.2g}" for error in errors), whether(falls))
