"""Claims on the loss: derivatives, coefficients of its polynomial, noisy inputs, the error of the Taylor polynomial."""

import math
import random
from fractions import Fraction
from itertools import pairwise

from sensorsim.accounting.sensitivities import noisy_inputs, noisy_inputs_printed, sigmoid, softplus, spof
from sensorsim.paper.recompute import Found, L, N, claim, derived_verdict

SECTION = "Section on noiseless inputs"
NOISY = "Appendix on noisy inputs"
POINTS = (-2.0, -0.5, 0.0, 0.5, 2.0)
XS = (0.0, 0.2, 0.5, 0.9, 1.0)
STEP = 1e-3  # of finite differences; their error is about its square
CLOSE = 1e-5
B = Fraction(3)  # the factor b of noisy inputs


def alpha3(x: Fraction) -> Fraction:
    """Return the coefficient of z² as printed."""
    return x / 2 - Fraction(1, 4)


def part(k: int, x: float, z: float) -> float:
    """Return f_1 = x·log(1 + e^-z) or f_2 = (1 - x)·log(1 + e^z)."""
    return x * softplus(-z) if k == 1 else (1 - x) * softplus(z)


def first(k: int, x: float, a: float) -> float:
    """Return the first derivative of a part by finite differences."""
    return (part(k, x, a + STEP) - part(k, x, a - STEP)) / (2 * STEP)


def second(k: int, x: float, a: float) -> float:
    """Return the second derivative of a part by finite differences."""
    return (part(k, x, a + STEP) - 2 * part(k, x, a) + part(k, x, a - STEP)) / STEP**2


@claim("loss-first", f"{SECTION}, first derivatives", "f_1' = -x/(1 + e^a) and f_2' = (1 - x)/(1 + e^-a)")
def loss_first() -> Found:
    """differences of both parts of the cross-entropy at 5 values of a and 5 of x"""
    off = max(
        max(abs(first(1, x, a) + x * sigmoid(-a)), abs(first(2, x, a) - (1 - x) * sigmoid(a)))
        for x in XS
        for a in POINTS
    )
    return f"off by {off:.0e} at most, the error of a difference", off < CLOSE


@claim("loss-second", f"{SECTION}, second derivatives", "f_2'' = -(1 - x)e^-a/(1 + e^-a)²")
def loss_second() -> Found:
    """second differences of (1 - x)·log(1 + e^z) at 5 values of a and 5 of x"""
    off = max(abs(second(2, x, a) + (1 - x) * sigmoid(a) * sigmoid(-a)) for x in XS for a in POINTS)
    text = f"{second(2, 0.0, 0.0):+.4f} at x = 0, a = 0, where {-(sigmoid(0) ** 2):+.4f} is printed"
    return text if off > CLOSE else "as printed", off < CLOSE


@claim("loss-half", f"{SECTION}, from the Taylor expansion to the user's loss", "the factor of (z - a)² is f''")
def loss_half() -> Found:
    """the second-order coefficient of the expansion of one part, f''(a)/2!, beside the printed one at x = 1, a = 0"""
    z = 1e-2
    quadratic = (part(1, 1.0, z) + part(1, 1.0, -z) - 2 * part(1, 1.0, 0.0)) / (2 * z**2)
    printed = sigmoid(0) * sigmoid(0)
    why = ": 1/2! is dropped" if abs(2 * quadratic - printed) < CLOSE else ""
    return f"{quadratic:.4f}, printed as {printed:.4f}{why}", abs(quadratic - printed) < CLOSE


@claim("loss-alpha1", f"{SECTION}, loss at a = 0", "alpha1 = log 2, whatever x is")
def loss_alpha1() -> Found:
    """both parts at z = 0, for 5 values of x"""
    values = {round(part(1, x, 0.0) + part(2, x, 0.0), 12) for x in XS}
    text = ", ".join(f"{value:.6f}" for value in sorted(values))
    return text, values == {round(math.log(2), 12)}


@claim("loss-alpha2", f"{SECTION}, loss at a = 0", "alpha2 = 0.5 - x")
def loss_alpha2() -> Found:
    """differences of the loss at z = 0, for 5 values of x"""
    off = max(abs(first(1, x, 0.0) + first(2, x, 0.0) - (0.5 - x)) for x in XS)
    return f"off by {off:.0e} at most", off < CLOSE


@claim("loss-alpha3", f"{SECTION}, loss at a = 0", "alpha3 = 0.5x - 0.25")
def loss_alpha3() -> Found:
    """the printed general coefficient (2x - 1)/(2 + e^a + e^-a) at a = 0; and the second-order coefficient of the loss
    by differences"""
    follows = all(abs((2 * x - 1) / 4 - float(alpha3(Fraction(x)))) < CLOSE for x in XS)
    true = [(second(1, x, 0.0) + second(2, x, 0.0)) / 2 for x in XS]
    stands = all(abs(t - float(alpha3(Fraction(x)))) < CLOSE for t, x in zip(true, XS, strict=True))
    constant = " for every x: a public constant" if max(true) - min(true) < CLOSE else ""
    text = f"the last line {'follows' if follows else 'does not follow'}; the coefficient is {min(true):.4f} to "
    return f"{text}{max(true):.4f}{constant}", derived_verdict(follows, stands)


@claim("loss-bounded", f"{SECTION}; Algorithm 1, Step 7", "training minimises the loss of the printed coefficients")
def loss_bounded() -> Found:
    """whether alpha2·z + alpha3·z² has a lower bound, for every x: it has where alpha3 > 0, or both are 0"""
    grid = [Fraction(k, 100) for k in range(101)]
    without = [x for x in grid if alpha3(x) < 0 or (alpha3(x) == 0 and x != Fraction(1, 2))]
    at = Fraction(0)
    value = (Fraction(1, 2) - at) * 1000 + alpha3(at) * 1000**2
    if not without:
        return "bounded for every x", True
    text = f"no lower bound for {len(without)} of {len(grid)} values of x, {float(min(without)):g} to "
    text += f"{float(max(without)):g}; at x = 0, z = 1000 the loss is {float(value):g}"
    return text, False


@claim("loss-constant", "Appendix on the stabilization constant, loss with c_j",
       "alpha2(z + c) + alpha3(z + c)² has the linear coefficient alpha2(1 + 2c)")  # fmt: skip
def loss_constant() -> Found:
    """the coefficient of z in fractions, at 11 values of x and c = 5/2; alpha3 = -alpha2/2 as printed"""
    c = Fraction(5, 2)

    def linear(x: Fraction) -> Fraction:
        def value(z: int) -> Fraction:
            return (Fraction(1, 2) - x) * (z + c) + alpha3(x) * (z + c) ** 2

        return (value(1) - value(-1)) / 2

    xs = [Fraction(k, 10) for k in range(11)]
    as_printed = all(linear(x) == (Fraction(1, 2) - x) * (1 + 2 * c) for x in xs)
    as_found = all(linear(x) == (Fraction(1, 2) - x) * (1 - c) for x in xs)
    text = f"{float(linear(xs[0])):g} at x = 0, c = 2.5, printed {0.5 * (1 + 2 * float(c)):g}"
    return text + ("; alpha2(1 - c) at every x" if as_found else ""), as_printed


def noise_factor(noise: float, h: float) -> float:
    """Return b_j,i as printed: the factor on a hidden unit when its weighted sum is noisy."""
    e = math.exp(noise)
    return e / (1 + (e - 1) * h)


@claim("inputs-h", f"{NOISY}, eq. for b_j,i", "the noisy hidden unit is b_j,i times the clean one")
def inputs_h() -> Found:
    """both sides at 200 random weighted sums and noises"""
    rng = random.Random(0)
    worst = 0.0
    for _ in range(200):
        clean, noise = rng.uniform(-3, 3), rng.gauss(0, 2)
        h = sigmoid(clean)
        worst = max(worst, abs(noise_factor(noise, h) * h - sigmoid(clean + noise)))
    return f"off by {worst:.0e} at most", worst < 1e-12


@claim("inputs-z", f"{NOISY}, eq. for the noisy z", "the noisy z is b_j·z - t, b_j the sum of the l factors")
def inputs_z() -> Found:
    """both sides at 200 random decoder weights, weighted sums and noises: z from the noisy hidden units, and from the
    clean ones, their factors and t, what the sum of factors counts too much"""
    rng = random.Random(0)
    worst = 0.0
    for _ in range(200):
        w, clean = ([rng.uniform(-size, size) for _ in range(L)] for size in (1, 3))
        noise = [rng.gauss(0, 2) for _ in range(L)]
        h = [sigmoid(one) for one in clean]
        b = [noise_factor(one, h_r) for one, h_r in zip(noise, h, strict=True)]
        noisy = sum(w_r * sigmoid(one + more) for w_r, one, more in zip(w, clean, noise, strict=True))
        z = sum(w_r * h_r for w_r, h_r in zip(w, h, strict=True))
        t = sum((sum(b) - b_r) * w_r * h_r for b_r, w_r, h_r in zip(b, w, h, strict=True))
        worst = max(worst, abs(sum(b) * z - t - noisy))
    return f"off by {worst:.0e} at most", worst < 1e-12


@claim("inputs-revert", f"{NOISY}, n_j = 0", "without noise the coefficients b_j·alpha revert to alpha")
def inputs_revert() -> Found:
    """b_j of l = 7 factors that are all 1, and the printed sensitivity with it"""
    b_j = sum([1.0] * L)
    scaled = noisy_inputs_printed([1.0] * L, N)
    text = f"b_j = l = {b_j:g}, so the sensitivity is {scaled:g} where {spof(N):g} is without noise"
    return text, scaled == spof(N)


@claim("inputs-square", "Theorem on noisy inputs", "alpha3 becomes b_j·alpha3")
def inputs_square() -> Found:
    """coefficient of (z - t/b)² in alpha2·(b·z - t) + alpha3·(b·z - t)², exactly, at b = 3; the appendix itself has b^r
    for order r"""
    b, t, x = B, Fraction(1, 2), Fraction(1, 5)

    def value(u: int) -> Fraction:
        z = u + t / b
        return (Fraction(1, 2) - x) * (b * z - t) + alpha3(x) * (b * z - t) ** 2

    scale = (value(1) + value(-1)) / 2 / alpha3(x)
    text = f"it is scaled by {scale} at b = {b}; the sensitivity is then {noisy_inputs(float(b), N):g}, not "
    return text + f"{float(b) * spof(N):g}", scale == b


@claim("inputs-difference", "Appendix on noisy inputs and privacy, difference of sensitivities",
       "environmental noise adds 3(b_max - 1)/2 a feature to the sensitivity")  # fmt: skip
def inputs_difference() -> Found:
    """2·max over x of the four printed derivatives with b = 3 and with b = 1; and with b² on those of second order"""
    b = 3.0

    def summed(first: float, second: float) -> float:
        return 2 * max(x / 2 * first + x / 4 * second + (1 - x) / 2 * first + (1 - x) / 4 * second for x in XS)

    printed, line = 3 * (b - 1) / 2, summed(b, b) - summed(1, 1)
    true = noisy_inputs(b, 1) - noisy_inputs(1.0, 1)
    text = f"{line:g} at b = {b:g} from the printed coefficients, {true:g} with b²"
    return text, derived_verdict(math.isclose(line, printed), math.isclose(true, printed))


@claim("inputs-gradient", "Section on DP-SGD, noisy inputs", "environmental noise multiplies the gradient by b_j")
def inputs_gradient() -> Found:
    """differences of the loss of b·z - t over z, beside b times the first derivative at b·z - t, for 5 values of x"""
    b, t, z = 3.0, 0.5, 0.25
    off = 0.0
    for x in XS:
        up, down = (sum(part(k, x, b * (z + step) - t) for k in (1, 2)) for step in (STEP, -STEP))
        off = max(off, abs((up - down) / (2 * STEP) - b * (first(1, x, b * z - t) + first(2, x, b * z - t))))
    return f"off by {off:.0e} at most", off < CLOSE


def derivatives(most: int) -> list[Fraction]:
    """Return the first `most` derivatives of log(1 + e^z) at 0, exactly, as polynomials in s: s' = s(1 - s)."""
    polynomial, found = [Fraction(0), Fraction(1)], []
    for _ in range(most):
        found.append(sum((factor / 2**power for power, factor in enumerate(polynomial)), Fraction(0)))
        slope = [power * factor for power, factor in enumerate(polynomial)][1:]
        polynomial = [Fraction(0)] * (len(slope) + 2)
        for power, factor in enumerate(slope):
            polynomial[power + 1] += factor
            polynomial[power + 2] -= factor
    return found


@claim("taylor-premise", "Appendix on the approximation error, before the bound",
       "there is a G with |f^(r)(a)| <= G for all r >= 3")  # fmt: skip
def taylor_premise() -> Found:
    """derivatives of log(1 + e^z) at 0 as exact fractions up to order 40; the series converges only for |z| < pi, so
    they grow like r!/pi^r"""
    sizes = [abs(value) for value in derivatives(40)]
    if not all(b > a for a, b in pairwise(sizes[5::2])):  # those of odd order are 0
        return f"at most {float(max(sizes)):g}", True
    orders = [next(r for r, size in enumerate(sizes, 1) if size > limit) for limit in (1, 1000, 10**9)]
    text = f"above 1 at order {orders[0]}, above 1000 at {orders[1]}, above 10^9 at {orders[2]}, and still growing"
    return text, False


def taylor_error(delta: float, true: bool = False) -> float:
    """Return the largest error of the polynomial over 0 <= x <= 1 and |z| <= delta; it is linear in x, so at an end."""
    zs = [delta * k / 50 for k in range(-50, 51)]

    def error(x: float, z: float) -> float:
        curved = 0.125 if true else float(alpha3(Fraction(x)))
        return part(1, x, z) + part(2, x, z) - (math.log(2) + (0.5 - x) * z + curved * z**2)

    return max(error(x, z) for x in (0.0, 1.0) for z in zs)


def taylor_bound(delta: float, G: float) -> float:
    """Return the printed bound 2G(e^delta - 1 - delta - delta²/2)."""
    return 2 * G * (math.expm1(delta) - delta - delta**2 / 2)


@claim("taylor-bound", "Proposition on the approximation error, eq. for E_j",
       "E_j <= 2G(e^delta - 1 - delta - delta²/2)")  # fmt: skip
def taylor_bound_claim() -> Found:
    """largest error of the printed polynomial at a = 0 over x and |z| <= delta, beside the bound for G = 1/8 and G =
    1000, as delta falls"""
    deltas = (1.0, 0.1, 1e-2, 1e-3, 1e-4)
    broken = {G: next((d for d in deltas if taylor_error(d) > taylor_bound(d, G)), None) for G in (0.125, 1000.0)}
    told = [
        f"G = {G:g}: at delta = {d:g} the error is {taylor_error(d):.3g}, the bound {taylor_bound(d, G):.3g}"
        for G, d in broken.items()
        if d is not None
    ]
    right = all(taylor_error(d, true=True) <= taylor_bound(d, 0.125) for d in deltas)
    text = "; ".join(told) or "at every delta"
    text += "; with the coefficient 1/8 the bound is kept" if right else ""
    return text, all(d is None for d in broken.values())


@claim("taylor-limit", f"{SECTION}, after the bound", "E_j goes to 0 as delta does")
def taylor_limit() -> Found:
    """largest error of the printed polynomial at five delta, each a tenth of the last"""
    errors = [taylor_error(10.0**-k) for k in range(5)]
    falls = all(b < a / 50 for a, b in pairwise(errors))
    return ", ".join(f"{error:.2g}" for error in errors), falls
