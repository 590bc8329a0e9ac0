"""An epsilon in few digits is never less than what it was."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sensorsim.privacy.rounded import epsilon, epsilon_to


@given(st.decimals("1e-6", "1e6", places=12), st.integers(1, 8))
def test_never_less(value, digits):
    assert Decimal(epsilon(value, digits)) >= value
    assert value <= Decimal(epsilon_to(value, digits)) < value + Decimal(1).scaleb(-digits)
    assert Decimal(epsilon(Fraction(value), digits)) >= value


@given(st.floats(1e-6, 1e6))
def test_a_float_is_what_its_certain_digits_say(value):
    certain = Decimal(f"{value:.12g}")
    assert certain <= Decimal(epsilon(value)) <= certain * Decimal("1.0011")


def test_by_hand():
    assert [epsilon(value) for value in (Decimal("0.999949"), 1.6, 13.99929, 1.23401)] == ["1", "1.6", "14", "1.235"]
    assert epsilon(0.1 + 0.2) == "0.3"  # the last digits of a float are of the arithmetic
    assert epsilon(Fraction(1, 3)) == "0.3334" and epsilon(123456.0) == "123500" and epsilon(float("inf")) == "no bound"
    assert epsilon_to(float("inf"), 2) == "–"
    assert [epsilon_to(value, 2) for value in (1.599958, 1.601, 1.6 + 4e-13, None)] == ["1.60", "1.61", "1.60", "–"]


@pytest.mark.parametrize("value", [0.5, 2.0, Decimal("1.6")])
def test_what_is_short_stays(value):
    assert Decimal(epsilon(value)) == Decimal(str(value))
