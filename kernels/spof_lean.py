"""SPOF as a firmware engineer would ship it: one draw per feature, nothing computed twice."""

from sensorsim.kernels.formats import CACHED, MASK, NOISE, NOISY, RANDOM, N, X
from sensorsim.kernels.spof import feature, linear, perturb

from sensorsim.language import and_, asr, kernel, out, sub


@kernel(step="perturbation")
def pick(word: RANDOM, mask: MASK) -> RANDOM:
    """A uniform index into a table of mask+1 = 2^k entries, from a secret random word. One AND.

    Same distribution as `advance` with uniform secret strides, and no state to keep.

    Scaling and overflow: the index is at most mask.
    """
    return and_(word, mask)


@kernel(step="coefficients")
def quadratic_of(noisy: NOISY) -> NOISY:
    """alpha3 = -alpha2/2, of the noisy alpha2: post-processing, one shift and one subtraction.

    Scaling and overflow: half of a value below 2^31, rounded down, then negated.
    """
    return sub(0, asr(noisy, 1))


@kernel(exposes={"address": CACHED})
def spof_lean(
    x: X["n"],
    noise: NOISE["mask + 1"],
    word: RANDOM["n"],
    alpha2: out(NOISY["n"]),
    alpha3: out(NOISY["n"]),
    n: N,
    mask: MASK,
) -> None:
    """One record with one draw per feature. Another mechanism than `spof`, and a better one:

    * At a = 0 alpha3 = -alpha2/2 exactly, so one noisy scalar u = 0.5 - x + noise gives both coefficients by
      post-processing: one draw, L1 sensitivity n instead of 3n/2.
    * The stabilization constant does not change between records: add it to the weights once, not here.
    * The index is k secret random bits: one AND in place of two additions and a multiplexer.

    Privacy: epsilon-DP for the record only with ideal noise of scale n/epsilon. No finite table of Laplace samples
    gives that, and none is certified for this kernel; what is certified is `rows` and `stairs`.

    Scaling and overflow: u is Q15.15, at most 2^30 + 2^15; alpha3 is u/2 rounded down, negated.
    """
    for i in range(n):
        noisy = perturb(linear(feature(x[i])), noise[pick(word[i], mask)])
        alpha2[i] = noisy
        alpha3[i] = quadratic_of(noisy)
