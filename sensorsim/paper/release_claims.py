"""Claims on releases: their privacy loss by the definition, what it covers, environmental noise, noise in tables."""

import math
import random
from collections.abc import Callable, Sequence

from sensorsim.accounting import sensitivities as sensitivity
from sensorsim.mechanisms import nominal_scale, spent
from sensorsim.paper.recompute import CONSTANT, Found, L, N, claim, derived_verdict, verdict_over

WEIGHTS = "Appendix on weights and environmental noise"
EPSILON, EPOCHS, RECORDS = 1.0, 10, 31
DRAWS = 100
HS = (0.1, 0.5, 0.9)
W = [2.0] * N
FAR = 1e6
TINY = 1e-9  # rounding errors
LAPLACE = {2: 2.0, 4: 24.0}  # moments of Lap(1): k!
ZERO, ONE = (0.5, -0.25), (-0.5, 0.25)  # alpha2 and alpha3 as printed at x = 0 and x = 1


def largest_loss(first: Sequence[float], second: Sequence[float], scale: float) -> float:
    """Return the largest log of p(q)/p'(q) over all q, for Laplace noise of one scale on each coordinate.

    It is piecewise linear in each q_i, with corners at the peaks of both densities, and constant beyond them.
    """
    corners = [(a, b, -FAR, FAR) for a, b in zip(first, second, strict=True)]
    return sum(max((abs(b - q) - abs(a - q)) / scale for q in places) for places in corners for a, b in [places[:2]])


@claim("dp-sum", "Proposition on SPOF's epsilon-DP", "n sums alpha2 + alpha3 with Lap(Delta/epsilon) are epsilon-DP")
def dp_sum() -> Found:
    """largest log ratio of the two densities over all outputs, every feature 0 against every feature 1, epsilon = 1"""
    scale = sensitivity.spof(N) / EPSILON
    loss = largest_loss([sum(ZERO)] * N, [sum(ONE)] * N, scale)
    less = ": the two move against each other, so less is spent than allowed" if loss < EPSILON else ""
    return f"{loss:.4f}{less}", loss <= EPSILON + TINY


@claim("dp-both", "Algorithm 1, Step 5", "both coefficients with Lap(Delta/(sqrt(2)·epsilon)) are epsilon-DP")
def dp_both() -> Found:
    """largest log ratio of the joint densities of all 2n noisy coefficients, epsilon = 1, no constant; and by the
    accounting of `sensorsim train`"""
    scale = nominal_scale("spof", EPSILON, N)
    loss = largest_loss([*ZERO] * N, [*ONE] * N, scale)
    accounted = spent("spof", EPSILON, features=N).epsilon
    text = f"{loss:.4f} by the densities, {accounted:.4f} by the accounting"
    return text, max(loss, accounted) <= EPSILON + TINY


@claim("dp-split", "Section on loss stabilization, M_i = M_i,1 + M_i,2",
       "a Laplace variable is the sum of two i.i.d. Laplace variables")  # fmt: skip
def dp_split() -> Found:
    """kurtosis, fourth moment over squared variance: of a Laplace variable, and of the sum of two"""
    variance, fourth = LAPLACE[2], LAPLACE[4]
    one, two = fourth / variance**2, (2 * fourth + 6 * variance**2) / (2 * variance) ** 2
    return f"{one:g} of one, {two:g} of the sum of two", one == two


@claim("dp-variance", "Section on loss stabilization, Step 5",
       "Lap(Delta/(sqrt(2)·epsilon)) has half of the variance (Delta/epsilon)²")  # fmt: skip
def dp_variance() -> Found:
    """the variance of Lap(d) is 2d², as the preliminaries say; d as printed, Delta/epsilon = 1"""
    has = 2 * (1 / sensitivity.JOINT_RELEASE_FACTOR) ** 2
    return f"{has:g}·(Delta/epsilon)²", math.isclose(has, 0.5)


@claim("dp-constant", "Proposition on the stabilization constant",
       "noise of scale Delta_hat, with c_j = c·h_j, keeps epsilon-DP")  # fmt: skip
def dp_constant() -> Found:
    """log ratio of one noisy coefficient at outputs further and further out, for two records whose hidden units, and so
    whose scales, differ; epsilon = 1, c = 2.5, encoder weights 1/sqrt(n)"""

    def scale(x: float) -> float:
        c_j = CONSTANT * L * sensitivity.sigmoid(N * x / math.sqrt(N))
        return sensitivity.stabilized_printed(c_j, N) / (sensitivity.JOINT_RELEASE_FACTOR * EPSILON)

    wide, narrow = scale(1.0), scale(0.0)
    losses = [math.log(narrow / wide) + abs(q - ZERO[0]) / narrow - abs(q - ONE[0]) / wide for q in (1e3, 1e4, 1e5)]
    accounted = spent("spof", EPSILON, c=CONSTANT, features=N)
    text = f"scales {narrow:.0f} and {wide:.0f}; at outputs of 10^3, 10^4, 10^5 the log ratio is "
    text += ", ".join(f"{loss:.3g}" for loss in losses) + (": it has no bound" if wide != narrow else "")
    return text, math.isfinite(accounted.epsilon) and max(losses) <= EPSILON


@claim("dp-epochs", "Algorithm 1; Section on loss stabilization", "training spends epsilon")
def dp_epochs() -> Found:
    """fresh noise for a record in each of 10 epochs, composed: basic, and at delta = 10^-6 by loss distributions;
    epsilon = 1, no constant"""
    many = spent("spof", EPSILON, draws=EPOCHS, features=N)
    once = spent("spof", EPSILON, features=N)
    text = f"{many.basic:.2f} basic, {many.epsilon:.2f} at delta = {many.delta:g}; noise drawn once and used again: "
    return f"{text}{once.epsilon:.2f}", many.epsilon <= EPSILON + TINY


@claim("dp-weights", "Section on loss stabilization, end",
       "the weights are covered, being learned from the perturbed loss")  # fmt: skip
def dp_weights() -> Found:
    """the decoder's gradient of two records that released the same noisy coefficients, in a net of random weights: it
    is h·(alpha2 + 2·alpha3·z), and h and z read the record itself"""
    rng = random.Random(0)
    W = [[rng.uniform(-1, 1) for _ in range(L)] for _ in range(N)]
    V = [[rng.uniform(-1, 1) for _ in range(N)] for _ in range(L)]
    alpha2, alpha3 = ([rng.gauss(0, 1) for _ in range(N)] for _ in range(2))

    def gradient(x: list[float]) -> list[float]:
        h = [sensitivity.sigmoid(sum(x[i] * W[i][k] for i in range(N))) for k in range(L)]
        z = [sum(h[k] * V[k][i] for k in range(L)) for i in range(N)]
        return [h[k] * (alpha2[i] + 2 * alpha3[i] * z[i]) for k in range(L) for i in range(N)]

    apart = max(abs(a - b) for a, b in zip(gradient([0.0] * N), gradient([1.0] * N), strict=True))
    covers = {reads: spent("spof", EPSILON, forward=reads).covers.value for reads in ("raw", "released")}
    text = (
        f"the gradients differ by up to {apart:.2f}; the epsilon covers: {covers['raw']} where the forward pass reads "
    )
    return f"{text}raw values, {covers['released']} where it reads released ones", apart == 0


@claim("dp-users", "Section on loss stabilization, parallel composition", "privacy loss does not add up over users")
def dp_users() -> Found:
    """largest log ratio of the release of m users together, of whom one changes, for m = 1, 2, 5"""
    scale = nominal_scale("spof", EPSILON, N)
    losses = [largest_loss([*ZERO] * N * m, [*ONE] * N + [*ZERO] * N * (m - 1), scale) for m in (1, 2, 5)]
    return ", ".join(f"{loss:.4f}" for loss in losses), max(losses) <= losses[0] + TINY


@claim("dp-level", "Section on loss stabilization, end", "privacy is at the level of users, not of samples")
def dp_level() -> Found:
    """what a user with one record spends, and one with 31, a month of days; epsilon = 1, noise drawn once"""
    one, month = (spent("dpsgd", EPSILON, features=N, records=records) for records in (1, RECORDS))
    text = f"DP-SGD's gradients: {one.epsilon:g} with one record, {month.basic:g} with {RECORDS} (basic), "
    text += f"{month.epsilon:.2f} at delta = {month.delta:g}"
    return text, verdict_over(each.epsilon <= EPSILON + TINY for each in (one, month))


@claim("dp-sgd", "Section on DP-SGD", "DP-SGD with Lap(Delta_SGD/epsilon) is epsilon-DP")
def dp_sgd() -> Found:
    """by the accounting of `sensorsim train`, epsilon = 1, C = 4: gradients at a = 0, and at the prediction"""
    found = {point: spent("dpsgd", EPSILON, point=point).epsilon for point in ("zero", "prediction")}
    text = f"{found['zero']:g} at a = 0"
    text += (
        f"; at the prediction {found['prediction']:g}"
        if math.isfinite(found["prediction"])
        else ("; at the prediction no bound, since z reads the record")
    )
    return text, verdict_over(value <= EPSILON + TINY for value in found.values())


@claim("dp-inputs", "Appendix on DP with noisy inputs", "noise of scale b_j·Delta/epsilon keeps epsilon-DP")
def dp_inputs() -> Found:
    """by the accounting: b_j is made of the record's own hidden units, so the scale is private; sigma = 5"""
    found = spent("spof", EPSILON, sigma=5.0)
    text = f"{found.epsilon:g}" if math.isfinite(found.epsilon) else f"no bound: {found.why}"
    return text, found.epsilon <= EPSILON + TINY


@claim("dp-fm", "Introduction; Section on loss stabilization, end", "FM is SPOF with m = 1 and no constant")
def dp_fm() -> Found:
    """both kernels on the same record, table and strides, SPOF's constant 0: the same coefficients bit for bit"""
    from sensorsim.kernels.spof import fm, spof

    rng = random.Random(0)
    x, noise, stride = (
        [rng.randrange(top) for _ in range(many)] for top, many in ((1 << 15, N), (1 << 10, 64), (64, 2 * N))
    )
    made = []
    for kernel in (fm, spof):
        alpha2, alpha3 = [0] * N, [0] * N
        first = ([0] * (N * L), 0) if kernel is spof else ()
        last = ([0] * (N * L),) if kernel is spof else ()
        sizes = (N, L, 64) if kernel is spof else (N, 64)
        kernel(x, *first, noise, stride, [0, 0], *last, alpha2, alpha3, *sizes)
        made.append((alpha2, alpha3))
    same = made[0] == made[1]
    return f"the same in all {2 * N} coefficients" if same else "they differ", same


def factor(y: float, h: float) -> float:
    """Return b = y/(1 + h(y - 1)), where y = e^D."""
    return y / (1 + h * (y - 1))


@claim("noise-variance", f"{WEIGHTS}, Var(W n)", "Var(W n) = sigma²·norm(W)")
def noise_variance() -> Found:
    """sum of the squared weights, sigma = 1, for a W of 14 entries 2"""
    true, norm = sum(w * w for w in W), math.sqrt(sum(w * w for w in W))
    return f"{true:g} = norm(W)², where norm(W) = {norm:.3f}", math.isclose(true, norm)


@claim("noise-inverse", f"{WEIGHTS}, y as a function of x", "y = x/(1 - hx + h)")
def noise_inverse() -> Found:
    """b of 5 values y at 3 values of h, put back"""

    def back(inverse: str) -> bool:
        pairs = [(y, h, factor(y, h)) for y in (0.1, 0.5, 1.0, 2.0, 9.0) for h in HS]
        if inverse == "printed":
            return all(math.isclose(x / (1 - h * x + h), y) for y, h, x in pairs)
        return all(math.isclose(x * (1 - h) / (1 - h * x), y) for y, h, x in pairs)

    x = factor(2.0, 0.5)
    text = f"at y = 2, h = 0.5 it gives {x / (1 - 0.5 * x + 0.5):.3f}"
    return text + ("; y = x(1 - h)/(1 - hx) gives y back" if back("true") else ""), back("printed")


@claim("noise-derivative", f"{WEIGHTS}, dy/dx", "dy/dx = (1 + h)/(1 - hx + h)²")
def noise_derivative() -> Found:
    """differences of the printed y, and of y = x(1 - h)/(1 - hx), at x = 0.8 for 3 values of h"""
    x, step = 0.8, 1e-5

    def close(y: Callable[[float, float], float]) -> bool:
        return all(
            math.isclose((y(x + step, h) - y(x - step, h)) / (2 * step), (1 + h) / (1 - h * x + h) ** 2, rel_tol=1e-6)
            for h in HS
        )

    follows, stands = close(lambda x, h: x / (1 - h * x + h)), close(lambda x, h: x * (1 - h) / (1 - h * x))
    return "follows from the printed y" if follows else "does not follow", derived_verdict(follows, stands)


@claim("noise-max", "Section on noisy inputs; figure of the lower bound",
       "Pr[b_max <= 1] >= {} for a large sigma", "0.5")  # fmt: skip
def noise_max(printed: str) -> Found:
    """Phi(ln(1/l)/s)^100 at h = 0, exactly, for standard deviations s from 0.1 to 10^6"""
    from sensorsim.training.run_figures import probability_below_one

    most = max(probability_below_one(10.0**k) for k in range(-1, 7))
    return f"below {most:.1e} for every s: at most 0.5^{DRAWS}", most >= float(printed)


@claim("noise-one", "Section on noisy inputs, Proposition on b_j",
       "Pr[b_max <= 1] >= {}, were it the largest of one draw", "0.5")  # fmt: skip
def noise_one(printed: str) -> Found:
    """Phi(ln(1/l)/s) at h = 0, one draw in place of 100, for s from 0.1 to 10^6"""
    from sensorsim.training.run_figures import probability_below_one

    most = max(probability_below_one(10.0**k, 1) for k in range(-1, 7))
    return f"below {most:.6f} for every s", most >= float(printed)


@claim("noise-sum", "Section on noisy inputs, Proposition on b_j", "Pr[b_j < 1] >= {}", "0.5")
def noise_sum(printed: str) -> Found:
    """b_j drawn 5000 times from weights in -10 to 10 and records in 0 to 1, as in the paper's example, sigma = 1 and 5;
    seed 0"""
    from sensorsim.training.run_figures import share_below_one

    shares = {sigma: share_below_one(sigma) for sigma in (1.0, 5.0)}
    text = ", ".join(f"{share:.4f} at sigma = {sigma:g}" for sigma, share in shares.items())
    return text, max(shares.values()) >= float(printed)


@claim("noise-h", f"{WEIGHTS}, figure of the density", "b_max changes only slightly with h")
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
    return f"{text} (as printed; as it holds)", all(a / b < 2 for a, b in found)


@claim("noise-table", "Appendix on perturbation complexities, C_N",
       "precomputed samples of Laplace noise give epsilon-DP")  # fmt: skip
def noise_table() -> Found:
    """a table of rounded Laplace samples, epsilon = 1.6 on one feature: likelihood ratios of its outputs, exactly"""
    from sensorsim.noise.noise_table import make_table

    made = make_table("naive", "1.6", release=1)
    proof = made.certificate
    assert proof
    why = "outputs that one record can give and another cannot; " if proof.epsilon_record is None else ""
    text = f"{why}delta at the nominal epsilon {proof.delta_record:.3f}"
    held = proof.holds(made.epsilon)
    return "every ratio is within the budget" if held else text, held


@claim("noise-order", "Appendix on perturbation complexities, pre-fetching",
       "pre-fetched samples keep a record private")  # fmt: skip
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
    return f"{hits} of 100 records recovered bit for bit", hits == 0
