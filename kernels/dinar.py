"""DINAR's noise pre-fetch: the circuit that C_N is taken from, with the two parts of it that C_N leaves out.

DINAR (Ganesan, Karyofyllis, Attai, Hamoda, Enright Jerger, HASP 2023) adds noise of any distribution in an accelerator
by reading it from a pool that was computed beforehand. Known of it here are its abstract, and what the SPOF paper says
of its figures: in Fig. 2a a sample takes two additions, a 2:1 multiplexer and a bit shifter "unused in DP"; Fig. 2b
scrambles the noise. The additions and the multiplexer are `advance`. Assumed are that the bit shifter halves a sample
some number of times, and that scrambling changes the order in which the pool is read: what else could be done to a
sample (flip its sign, add two) would fit some distributions only, and DINAR serves any.

Privacy: no epsilon holds for anything in this file.
* A pool is finite, and no shift and no order fills its holes: some output is possible for one value of a coefficient
  and impossible for another. Whoever knows the pool tells the two apart for certain.
* A fixed or public order is no secret: knowing the pool and one pointer, every later sample can be taken off again.
* Scrambling with bits that are public adds nothing; with bits that are used again, only what those few bits are worth.
  With fresh, secret, uniform bits the pointer is superfluous: `pick` does as much with one AND.
* Shifting changes the distribution. Every place halves the scale, so even for ideal Laplace noise it doubles epsilon,
  and samples that differed become equal.
What it is good for is cost: this is what noise costs in such hardware, beside C_N = 6 and beside `release`.
"""

from sensorsim.kernels.formats import (
    ALPHA,
    CACHED,
    ENTRIES,
    MASK,
    NOISE,
    NOISE_SHIFT,
    NOISY,
    POINTER,
    RANDOM,
    STRIDE,
    N,
)
from sensorsim.kernels.noise import advance
from sensorsim.kernels.spof import perturb

from sensorsim.language import and_, asr, kernel, out, xor


@kernel(step="bit shifter")
def dinar_shift(sample: NOISE, shift: NOISE_SHIFT) -> NOISE:
    """Fig. 2a, the bit shifter: the sample divided by 2^shift. One shift, which the paper's accounting does not price.

    Scaling and overflow: rounded down, so a sample only comes nearer to zero, or to -1 unit from below zero.
    """
    return asr(sample, shift)


@kernel(exposes={"address": CACHED})
def dinar_fetch(noise: NOISE["size"], cursor: POINTER["1"], stride: STRIDE, shift: NOISE_SHIFT, size: ENTRIES) -> NOISE:
    """Fig. 2a: move the pointer by a stride, read the sample there, scale it. C_N and a shift; `cursor` is kept.

    Scaling and overflow: as `advance` and `dinar_shift`.
    """
    place = advance(cursor[0], stride, size)
    cursor[0] = place
    return dinar_shift(noise[place], shift)


@kernel(step="scrambling")
def dinar_scramble(place: RANDOM, word: RANDOM, mask: MASK) -> RANDOM:
    """Fig. 2b, as assumed: the bits of `word` turn over bits of the address. XOR, AND.

    In a pool of mask+1 = 2^k samples every word is another order of the whole pool; in one of any other size some
    samples would come up twice and some never. The paper's accounting prices the AND and knows no XOR.

    Scaling and overflow: bits only; the result is at most mask.
    """
    return and_(xor(place, word), mask)


@kernel()
def dinar(
    coefficient: ALPHA["n"],
    noise: NOISE["size"],
    stride: STRIDE["n"],
    shift: NOISE_SHIFT,
    cursor: POINTER["1"],
    noisy: out(NOISY["n"]),
    n: N,
    size: ENTRIES,
) -> None:
    """Noise on n coefficients by Fig. 2a: 7n macro-operations on the K7 as the paper counts, n·(C_N + 1).

    Privacy: none; see the top of the file.

    Scaling and overflow: as `dinar_fetch` and `perturb`.
    """
    for i in range(n):
        sample = dinar_fetch(noise, cursor, stride[i], shift, size)
        noisy[i] = perturb(coefficient[i], sample)


@kernel(exposes={"address": CACHED})
def dinar_scrambled(
    coefficient: ALPHA["n"],
    noise: NOISE["size"],
    stride: STRIDE["n"],
    word: RANDOM["n"],
    shift: NOISE_SHIFT,
    cursor: POINTER["1"],
    noisy: out(NOISY["n"]),
    n: N,
    size: ENTRIES,
) -> None:
    """Noise on n coefficients by Fig. 2a and 2b. `size` is a power of two, and every coefficient has its own word.

    Privacy: none; see the top of the file.

    Scaling and overflow: as `dinar`; the scrambled address is at most size-1.
    """
    place = cursor[0]
    for i in range(n):
        place = advance(place, stride[i], size)
        noisy[i] = perturb(coefficient[i], dinar_shift(noise[dinar_scramble(place, word[i], size - 1)], shift))
    cursor[0] = place
