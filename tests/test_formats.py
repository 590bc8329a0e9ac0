"""Fixed-point formats: rounding and overflow by hand, and against apytypes."""

from fractions import Fraction

import pytest
from apytypes import APyFixed, OverflowMode, QuantizationMode
from hypothesis import given
from hypothesis import strategies as st
from sensorsim.kernels.formats import EXP_TABLE, STORAGE, Overflow, Q, Rounding, X, round_to_integer

HALVES = [Fraction(n, 4) for n in range(-8, 9)]  # -2 … 2 in quarters
BY_HAND = {
    Rounding.FLOOR: [-2, -2, -2, -2, -1, -1, -1, -1, 0, 0, 0, 0, 1, 1, 1, 1, 2],
    Rounding.ZERO: [-2, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2],
    Rounding.HALF_UP: [-2, -2, -1, -1, -1, -1, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2],
    Rounding.HALF_EVEN: [-2, -2, -2, -1, -1, -1, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2],
}
PEER_ROUNDING = {
    Rounding.FLOOR: QuantizationMode.TRN,
    Rounding.ZERO: QuantizationMode.TRN_ZERO,
    Rounding.HALF_UP: QuantizationMode.RND,
    Rounding.HALF_EVEN: QuantizationMode.RND_CONV,
}
PEER_OVERFLOW = {Overflow.WRAP: OverflowMode.WRAP, Overflow.SATURATE: OverflowMode.SAT}
Q7 = Q("test", "i8", 5, -128, 127, "eight bits, five of them fraction")


@pytest.mark.parametrize("rounding", Rounding)
def test_rounding_by_hand(rounding):
    assert [round_to_integer(value, rounding) for value in HALVES] == BY_HAND[rounding]


def test_overflow_by_hand():
    assert Q7.quantise(4, overflow=Overflow.SATURATE) == 127
    assert Q7.quantise(4, overflow=Overflow.WRAP) == -128
    assert Q7.quantise(-5, overflow=Overflow.SATURATE) == -128
    assert Q7.quantise(-5, overflow=Overflow.WRAP) == 96
    assert Q7.value(96) == 3


@given(st.integers(-(2**14), 2**14 - 1), st.sampled_from(Rounding), st.sampled_from(Overflow))
def test_quantise_agrees_with_apytypes(bits, rounding, overflow):
    wide = APyFixed(bits, int_bits=7, frac_bits=8)
    peer = wide.cast(int_bits=3, frac_bits=5, quantization=PEER_ROUNDING[rounding], overflow=PEER_OVERFLOW[overflow])
    ours = Q7.quantise(Fraction(bits, 2**8), rounding, overflow)
    assert float(Q7.value(ours)) == float(peer)


def test_a_format_that_does_not_fit_its_storage_is_refused():
    with pytest.raises(ValueError, match="does not fit"):
        Q("wrong", "i8", 0, 0, 128, "")


def test_the_feature_format_is_sixteen_bits_with_one_exactly():
    assert (X.lo, X.hi) == STORAGE["u16"]
    assert X.quantise(1) == 32768


def test_the_table_of_powers():
    # e^-4, e^-1/16, e^0, e^1 and e^4 by an independent calculator, times 2^11, to the nearest whole number
    assert [EXP_TABLE[k] for k in (0, 63, 64, 80, 128)] == [38, 1924, 2048, 5567, 111817]
