"""Pure Python, Numba and the naive reference agree bit for bit."""

import functools

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sensorsim.kernels.dpsgd import dpsgd
from sensorsim.kernels.dpsgd_lean import difference, dpsgd_lean
from sensorsim.kernels.formats import EXP_TABLE, HALF
from sensorsim.kernels.noise import advance
from sensorsim.kernels.root import root
from sensorsim.kernels.spof import feature, linear, quadratic, spof
from sensorsim.kernels.spof_lean import spof_lean

from sensorsim.language import Array, Below, Q
from sensorsim.language.arguments import arguments
from sensorsim.language.numba_backend import compiled

NUMPY = {"u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "i8": np.int8, "i16": np.int16, "i32": np.int32}
ALL_X = range(2**16)


def typed(kernel, values):
    """The arguments as Numba takes them: arrays and words in the declared storage."""
    made = []
    for name, kind in kernel.parameters.items():
        element = kind.element if isinstance(kind, Array) else kind
        if isinstance(element, Below):
            kind_of = np.uint32
        elif isinstance(element, Q):
            kind_of = NUMPY[element.storage]
        else:
            kind_of = int
        made.append(np.array(values[name], kind_of) if isinstance(kind, Array) else kind_of(values[name]))
    return made


def run_both(kernel, values):
    """Run pure Python and Numba; check that they leave the same bits in every array; return the arrays by name."""
    plain = {name: list(value) if isinstance(value, list) else value for name, value in values.items()}
    fast = typed(kernel, values)
    returned = kernel(*plain.values())
    assert returned == compiled(kernel)(*fast)
    for (name, kind), array in zip(kernel.parameters.items(), fast, strict=True):
        if isinstance(kind, Array):
            assert array.tolist() == plain[name], name
    return plain


def records(kernel, **lengths):
    """Random arguments of the kernel, any value of each declared format, often its ends."""

    @st.composite
    def build(draw):
        sizes = {name: draw(strategy) for name, strategy in lengths.items()}

        def value(name, lo, hi):
            return draw(st.one_of(st.integers(lo, hi), st.sampled_from([lo, hi])))

        return arguments(kernel, sizes, value)

    return build()


@pytest.mark.parametrize(
    ("kernel", "reference"), [(linear, naive.alpha2), (quadratic, naive.alpha3)], ids=["alpha2", "alpha3"]
)
def test_coefficients_for_every_feature(kernel, reference):
    fast, saturate = compiled(kernel), compiled(feature)
    for x in ALL_X:
        expected = reference(x)
        assert kernel(feature(x)) == expected
        assert fast(saturate(np.uint16(x))) == expected


@pytest.mark.parametrize("a", [0, 64, 100, 128])
def test_lean_gradient_equals_the_printed_one_for_every_feature(a):
    """With sigma hoisted, one feature at a time, never clipped: `dpsgd` and `dpsgd_lean` give the same bits."""
    sigma = naive.logistic(EXP_TABLE[a])
    printed, lean, exp = compiled(dpsgd), compiled(dpsgd_lean), np.array(EXP_TABLE, np.uint32)
    noise, zero, cursor = np.array([0, 0], np.int32), np.zeros(1, np.uint32), np.zeros(1, np.uint32)
    gradient, square = np.zeros(1, np.int32), np.zeros(1, np.uint32)
    clipped, one, other = np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros(1, np.int32)
    for value in ALL_X:
        x = np.array([value], np.uint16)
        printed(x, a, exp, np.uint32(4096), noise, zero, cursor, gradient, square, clipped, one, 1, 2, len(exp))
        lean(x, np.int32(sigma), np.uint32(4096), noise, zero, other, 1, 1)
        assert one[0] == other[0] == difference(sigma, value) == sigma - naive.feature(value)


def test_advance_for_every_pointer_and_stride():
    fast = compiled(advance)
    for size in (2, 256):
        for cursor in range(size):
            for stride in range(size):
                expected = naive.advance(cursor, stride, size)
                assert fast(np.uint32(cursor), np.uint32(stride), size) == expected
    for cursor in range(16):
        assert [advance(cursor, stride, 16) for stride in range(16)] == [(cursor + s) % 16 for s in range(16)]


@settings(max_examples=60, deadline=None)
@given(records(spof, n=st.integers(1, 20), l=st.integers(1, 9), size=st.sampled_from([2, 4, 64])))
def test_spof(values):
    after = run_both(spof, values)
    names = ("x", "weights", "constant", "noise", "stride", "cursor")
    expected = naive.spof(*(values[name] for name in names))
    assert (after["stabilized"], after["alpha2"], after["alpha3"], after["cursor"]) == expected


@settings(max_examples=60, deadline=None)
@given(records(dpsgd, n=st.integers(1, 20), size=st.sampled_from([2, 4, 64]), exp_size=st.just(len(EXP_TABLE))))
def test_dpsgd(values):
    after = run_both(dpsgd, values)
    power = EXP_TABLE[values["a"]]
    expected = naive.dpsgd(values["x"], power, values["clip"], values["noise"], values["stride"], values["cursor"][0])
    assert (after["noisy"], after["cursor"][0]) == expected


@settings(max_examples=60, deadline=None)
@given(records(spof_lean, n=st.integers(1, 20), mask=st.sampled_from([1, 3, 63])))
def test_spof_lean(values):
    after = run_both(spof_lean, values)
    assert (after["alpha2"], after["alpha3"]) == naive.spof_lean(values["x"], values["noise"], values["word"])


@settings(max_examples=100, deadline=None)
@given(records(dpsgd_lean, n=st.integers(1, 20), mask=st.sampled_from([1, 3, 63])))
def test_dpsgd_lean(values):
    after = run_both(dpsgd_lean, values)
    names = ("x", "sigma", "clip", "noise", "word")
    assert after["noisy"] == naive.dpsgd_lean(*(values[name] for name in names))


@settings(max_examples=60, deadline=None)
@given(records(dpsgd_lean, n=st.integers(1, 20), mask=st.just(1)))
def test_lean_clipping_stays_within_rounding_of_the_printed_one(values):
    """One reciprocal in place of n divisions: the clipped gradient may differ by its roundings, never grow past C."""
    values["noise"] = [0] * len(values["noise"])
    gradient = [values["sigma"] - naive.feature(x) for x in values["x"]]
    printed = naive.clipped_by_division(gradient, values["clip"])
    lean = run_both(dpsgd_lean, values)["noisy"]
    norm = max(1, naive.root(sum(g * g >> 10 for g in gradient)))
    for a, b in zip(printed, lean, strict=True):
        assert abs(a - b) <= 2 + abs(a) * 2 / norm  # the norm's own unit, and one unit for each rounding


def test_root_at_every_square_and_beside_it():
    fast = compiled(root)
    for s in range(2**16):
        square = s * s
        assert fast(np.uint32(square)) == s
        assert fast(np.uint32(square + 2 * s)) == s  # one below the next square
    for v in [*range(300), 2**32 - 1, 2**31, 2**31 - 1]:
        assert root(v) == naive.root(v)


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_root_anywhere(v):
    assert root(v) == compiled(root)(np.uint32(v)) == naive.root(v)


@functools.cache
def _root_faults():
    import numba

    fast = compiled(root)

    @numba.njit(parallel=True)
    def faults(first, last):
        wrong = 0
        for v in numba.prange(first, last):
            s = np.uint64(fast(numba.uint32(v)))
            wrong += (s * s > np.uint64(v)) or ((s + np.uint64(1)) * (s + np.uint64(1)) <= np.uint64(v))
        return wrong

    return faults


@pytest.mark.slow
def test_root_is_exact_for_every_word():
    assert _root_faults()(0, 2**32) == 0


def test_lean_kernels_never_clip_at_the_papers_sizes():
    """n = 14 and C = 4: every |A_i| < 1, so the norm is below sqrt(14) and the gradient passes unchanged."""
    for x in (0, 32768):
        noisy = [0] * 14
        dpsgd_lean([x] * 14, HALF, 4096, [0, 0], [0] * 14, noisy, 14, 1)
        assert noisy == [HALF - x] * 14
