"""Fixed-point formats: rounding and saturation by hand, and against apytypes."""

from fractions import Fraction

import pytest
from apytypes import APyFixed, OverflowMode, QuantizationMode
from hypothesis import given, settings
from hypothesis import strategies as st
from sensorsim.kernels.formats import EXP_TABLE, X

from sensorsim._util.errors import InputError
from sensorsim.language import Q
from sensorsim.language.types import STORAGE

HALVES = [Fraction(n, 4) for n in range(-8, 9)]  # -2 … 2 in quarters
TO_EVEN = [-2, -2, -2, -1, -1, -1, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2]
WHOLE = Q("whole", "i8", 0, -128, 127, "eight bits, no fraction")
Q7 = Q("test", "i8", 5, -128, 127, "eight bits, five of them fraction")


def test_halves_go_to_the_even_number():
    assert [WHOLE.quantise(value) for value in HALVES] == TO_EVEN


def test_what_does_not_fit_saturates():
    assert [Q7.quantise(value) for value in (4, -5, 3)] == [127, -128, 96]
    assert Q7.value(96) == 3
    assert Q("narrow", "i8", 5, -10, 20, "").quantise(4) == 20


@settings(derandomize=True)
@given(st.integers(-(2**14), 2**14 - 1))
def test_quantise_agrees_with_apytypes(bits):
    wide = APyFixed(bits, int_bits=7, frac_bits=8)
    peer = wide.cast(int_bits=3, frac_bits=5, quantization=QuantizationMode.RND_CONV, overflow=OverflowMode.SAT)
    assert float(Q7.value(Q7.quantise(Fraction(bits, 2**8)))) == float(peer)


def test_a_format_that_does_not_fit_its_storage_is_refused():
    with pytest.raises(InputError, match="does not fit"):
        Q("wrong", "i8", 0, 0, 128, "")


def test_the_feature_format_is_sixteen_bits_with_one_exactly():
    assert (X.lo, X.hi) == STORAGE["u16"]
    assert X.quantise(1) == 32768


def test_the_table_of_powers():
    # e^-4, e^-1/16, e^0, e^1 and e^4 by an independent calculator, times 2^11, to the nearest whole number
    assert [EXP_TABLE[k] for k in (0, 63, 64, 80, 128)] == [38, 1924, 2048, 5567, 111817]
