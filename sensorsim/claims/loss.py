"""The loss: its derivatives, the coefficients of its polynomial, the error of the polynomial, noisy inputs."""

import math
import random
from fractions import Fraction

from sensorsim.accounting.sensitivities import noisy_inputs, noisy_inputs_printed, sigmoid, softplus, spof
from sensorsim.claims.claim import Found, as_arithmetic, claim, whether

SECTION = "Section on noiseless inputs"
NOISY = "Appendix on noisy inputs"
POINTS = (-2.0, -0.5, 0.0, 0.5, 2.0)
XS = (0.0, 0.2, 0.5, 0.9, 1.0)
STEP = 1e-3  # of differences; their error is about its square
CLOSE = 1e-5
N, L = 14, 7
B = Fraction(3)  # a factor of noisy inputs


def alpha3(x: Fraction) -> Fraction:
    """The coefficient of z² as printed."""
    return x / 2 - Fraction(1, 4)


def part(k: int, x: float, z: float) -> float:
    """f_1 = x·log(1 + e^-z) or f_2 = (1 - x)·log(1 + e^z)."""
    return x * softplus(-z) if k == 1 else (1 - x) * softplus(z)


def first(k: int, x: float, a: float) -> float:
    """The first derivative of a part, by differences."""
    return (part(k, x, a + STEP) - part(k, x, a - STEP)) / (2 * STEP)


def second(k: int, x: float, a: float) -> float:
    """The second."""
    return (part(k, x, a + STEP) - 2 * part(k, x, a) + part(k, x, a - STEP)) / STEP**2


@claim(
    "loss-first",
    f"{SECTION}, first derivatives",
    "f_1' = -x/(1 + e^a) and f_2' = (1 - x)/(1 + e^-a)",
    how="differences of both parts of the cross-entropy at 5 values of a and 5 of x",
)
def loss_first() -> Found:
    off = max(
        max(abs(first(1, x, a) + x * sigmoid(-a)), abs(first(2, x, a) - (1 - x) * sigmoid(a)))
        for x in XS
        for a in POINTS
    )
    return Found(f"off by {off:.0e} at most, the error of a difference", whether(off < CLOSE))


@claim(
    "loss-second",
    f"{SECTION}, second derivatives",
    "f_2'' = -(1 - x)e^-a/(1 + e^-a)²",
    how="second differences of (1 - x)·log(1 + e^z) at 5 values of a and 5 of x",
)
def loss_second() -> Found:
    off = max(abs(second(2, x, a) + (1 - x) * sigmoid(a) * sigmoid(-a)) for x in XS for a in POINTS)
    text = f"{second(2, 0.0, 0.0):+.4f} at x = 0, a = 0, where {-(sigmoid(0) ** 2):+.4f} is printed"
    return Found(text if off > CLOSE else "as printed", whether(off < CLOSE))


@claim(
    "loss-half",
    f"{SECTION}, from the Taylor expansion to the user's loss",
    "the factor of (z - a)² is f''",
    how="the second-order coefficient of the expansion of one part, f''(a)/2!, beside the printed one at x = 1, a = 0",
)
def loss_half() -> Found:
    z = 1e-2
    quadratic = (part(1, 1.0, z) + part(1, 1.0, -z) - 2 * part(1, 1.0, 0.0)) / (2 * z**2)
    printed = sigmoid(0) * sigmoid(0)
    why = ": 1/2! is dropped" if abs(2 * quadratic - printed) < CLOSE else ""
    return Found(f"{quadratic:.4f}, printed as {printed:.4f}{why}", whether(abs(quadratic - printed) < CLOSE))


@claim(
    "loss-alpha1",
    f"{SECTION}, loss at a = 0",
    "alpha1 = log 2, whatever x is",
    how="both parts at z = 0, for 5 values of x",
)
def loss_alpha1() -> Found:
    values = {round(part(1, x, 0.0) + part(2, x, 0.0), 12) for x in XS}
    text = ", ".join(f"{value:.6f}" for value in sorted(values))
    return Found(text, whether(values == {round(math.log(2), 12)}))


@claim(
    "loss-alpha2",
    f"{SECTION}, loss at a = 0",
    "alpha2 = 0.5 - x",
    how="differences of the loss at z = 0, for 5 values of x",
)
def loss_alpha2() -> Found:
    off = max(abs(first(1, x, 0.0) + first(2, x, 0.0) - (0.5 - x)) for x in XS)
    return Found(f"off by {off:.0e} at most", whether(off < CLOSE))


@claim(
    "loss-alpha3",
    f"{SECTION}, loss at a = 0",
    "alpha3 = 0.5x - 0.25",
    how="the printed general coefficient (2x - 1)/(2 + e^a + e^-a) at a = 0; and the second-order coefficient"
    " of the loss by differences",
)
def loss_alpha3() -> Found:
    follows = all(abs((2 * x - 1) / 4 - float(alpha3(Fraction(x)))) < CLOSE for x in XS)
    true = [(second(1, x, 0.0) + second(2, x, 0.0)) / 2 for x in XS]
    stands = all(abs(t - float(alpha3(Fraction(x)))) < CLOSE for t, x in zip(true, XS, strict=True))
    constant = " for every x: a public constant" if max(true) - min(true) < CLOSE else ""
    text = f"the last line {'follows' if follows else 'does not follow'}; the coefficient is {min(true):.4f} to "
    return Found(f"{text}{max(true):.4f}{constant}", as_arithmetic(follows, stands))


@claim(
    "loss-bounded",
    f"{SECTION}; Algorithm 1, Step 7",
    "training minimises the loss of the printed coefficients",
    how="whether alpha2·z + alpha3·z² has a lower bound, for every x: it has where alpha3 > 0, or both are 0",
)
def loss_bounded() -> Found:
    grid = [Fraction(k, 100) for k in range(101)]
    without = [x for x in grid if alpha3(x) < 0 or (alpha3(x) == 0 and x != Fraction(1, 2))]
    at = Fraction(0)
    value = (Fraction(1, 2) - at) * 1000 + alpha3(at) * 1000**2
    if not without:
        return Found("bounded for every x", whether(True))
    text = f"no lower bound for {len(without)} of {len(grid)} values of x, {float(min(without)):g} to "
    text += f"{float(max(without)):g}; at x = 0, z = 1000 the loss is {float(value):g}"
    return Found(text, whether(False))


@claim(
    "loss-constant",
    "Appendix on the stabilization constant, loss with c_j",
    "alpha2(z + c) + alpha3(z + c)² has the linear coefficient alpha2(1 + 2c)",
    how="the coefficient of z in fractions, at 11 values of x and c = 5/2; alpha3 = -alpha2/2 as printed",
)
def loss_constant() -> Found:
    c = Fraction(5, 2)

    def linear(x: Fraction) -> Fraction:
        def value(z: int) -> Fraction:
            return (Fraction(1, 2) - x) * (z + c) + alpha3(x) * (z + c) ** 2

        return (value(1) - value(-1)) / 2

    xs = [Fraction(k, 10) for k in range(11)]
    as_printed = all(linear(x) == (Fraction(1, 2) - x) * (1 + 2 * c) for x in xs)
    as_found = all(linear(x) == (Fraction(1, 2) - x) * (1 - c) for x in xs)
    text = f"{float(linear(xs[0])):g} at x = 0, c = 2.5, printed {0.5 * (1 + 2 * float(c)):g}"
    return Found(text + ("; alpha2(1 - c) at every x" if as_found else ""), whether(as_printed))


def in_front(noise: float, h: float) -> float:
    """b_j,i as printed: what a hidden unit is multiplied by when its weighted sum is noisy."""
    e = math.exp(noise)
    return e / (1 + (e - 1) * h)


@claim(
    "inputs-h",
    f"{NOISY}, eq. for b_j,i",
    "the noisy hidden unit is b_j,i times the clean one",
    how="both sides at 200 random weighted sums and noises",
)
def inputs_h() -> Found:
    rng = random.Random(0)
    worst = 0.0
    for _ in range(200):
        clean, noise = rng.uniform(-3, 3), rng.gauss(0, 2)
        h = sigmoid(clean)
        worst = max(worst, abs(in_front(noise, h) * h - sigmoid(clean + noise)))
    return Found(f"off by {worst:.0e} at most", whether(worst < 1e-12))


@claim(
    "inputs-z",
    f"{NOISY}, eq. for the noisy z",
    "the noisy z is b_j·z - t, b_j the sum of the l factors",
    how="both sides at 200 random decoder weights, weighted sums and noises: z from the noisy hidden units, and from "
    "the clean ones, their factors and t, what the sum of factors counts too much",
)
def inputs_z() -> Found:
    rng = random.Random(0)
    worst = 0.0
    for _ in range(200):
        w, clean = ([rng.uniform(-size, size) for _ in range(L)] for size in (1, 3))
        noise = [rng.gauss(0, 2) for _ in range(L)]
        h = [sigmoid(one) for one in clean]
        b = [in_front(one, h_r) for one, h_r in zip(noise, h, strict=True)]
        noisy = sum(w_r * sigmoid(one + more) for w_r, one, more in zip(w, clean, noise, strict=True))
        z = sum(w_r * h_r for w_r, h_r in zip(w, h, strict=True))
        t = sum((sum(b) - b_r) * w_r * h_r for b_r, w_r, h_r in zip(b, w, h, strict=True))
        worst = max(worst, abs(sum(b) * z - t - noisy))
    return Found(f"off by {worst:.0e} at most", whether(worst < 1e-12))


@claim(
    "inputs-revert",
    f"{NOISY}, n_j = 0",
    "without noise the coefficients b_j·alpha revert to alpha",
    how="b_j of l = 7 factors that are all 1, and the printed sensitivity with it",
)
def inputs_revert() -> Found:
    b_j = sum([1.0] * L)
    scaled = noisy_inputs_printed([1.0] * L, N)
    text = f"b_j = l = {b_j:g}, so the sensitivity is {scaled:g} where {spof(N):g} is without noise"
    return Found(text, whether(scaled == spof(N)))


@claim(
    "inputs-square",
    "Theorem on noisy inputs",
    "alpha3 becomes b_j·alpha3",
    how="coefficient of (z - t/b)² in alpha2·(b·z - t) + alpha3·(b·z - t)², exactly, at b = 3; the appendix "
    "itself has b^r for order r",
)
def inputs_square() -> Found:
    b, t, x = B, Fraction(1, 2), Fraction(1, 5)

    def value(u: int) -> Fraction:
        z = u + t / b
        return (Fraction(1, 2) - x) * (b * z - t) + alpha3(x) * (b * z - t) ** 2

    scale = (value(1) + value(-1)) / 2 / alpha3(x)
    text = f"it is scaled by {scale} at b = {b}; the sensitivity is then {noisy_inputs(float(b), N):g}, not "
    return Found(text + f"{float(b) * spof(N):g}", whether(scale == b))


@claim(
    "inputs-difference",
    "Appendix on noisy inputs and privacy, difference of sensitivities",
    "environmental noise adds 3(b_max - 1)/2 a feature to the sensitivity",
    how="2·max over x of the four printed derivatives with b = 3 and with b = 1; and with b² on those of second order",
)
def inputs_difference() -> Found:
    b = 3.0

    def summed(first: float, second: float) -> float:
        return 2 * max(x / 2 * first + x / 4 * second + (1 - x) / 2 * first + (1 - x) / 4 * second for x in XS)

    printed, line = 3 * (b - 1) / 2, summed(b, b) - summed(1, 1)
    true = noisy_inputs(b, 1) - noisy_inputs(1.0, 1)
    text = f"{line:g} at b = {b:g} from the printed coefficients, {true:g} with b²"
    return Found(text, as_arithmetic(math.isclose(line, printed), math.isclose(true, printed)))


@claim(
    "inputs-gradient",
    "Section on DP-SGD, noisy inputs",
    "environmental noise multiplies the gradient by b_j",
    how="differences of the loss of b·z - t over z, beside b times the first derivative at b·z - t, for 5 values of x",
)
def inputs_gradient() -> Found:
    b, t, z = 3.0, 0.5, 0.25
    off = 0.0
    for x in XS:
        up, down = (sum(part(k, x, b * (z + way) - t) for k in (1, 2)) for way in (STEP, -STEP))
        off = max(off, abs((up - down) / (2 * STEP) - b * (first(1, x, b * z - t) + first(2, x, b * z - t))))
    return Found(f"off by {off:.0e} at most", whether(off < CLOSE))
