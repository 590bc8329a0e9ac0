"""The primitives: hand-computed values, and the same bits from Numba."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sensorsim import language
from sensorsim.costing.prices import cpu_names, load_cpu
from sensorsim.language import Primitive, Span, primitives
from sensorsim.language.numba_backend import compiled
from sensorsim.language.secrecy import uneven_cores
from sensorsim.language.types import STORAGE

PRIMITIVES = {name: value for name, value in vars(primitives).items() if isinstance(value, Primitive)}
LEAST, MOST, ALL = -(2**31), 2**31 - 1, 2**32 - 1

# name: operations, then (operands, result) computed by hand
KNOWN = {
    "i32": ((), [((ALL,), -1), ((2**31,), LEAST), ((5,), 5)]),
    "u32": ((), [((-1,), ALL), ((LEAST,), 2**31), ((5,), 5)]),
    "add": (("ADD",), [((2, 3), 5), ((MOST, 1), LEAST), ((LEAST, -1), MOST)]),
    "sub": (("SUB",), [((2, 3), -1), ((LEAST, 1), MOST), ((0, LEAST), LEAST)]),
    "mul": (("MUL",), [((-3, 7), -21), ((65536, 65536), 0), ((MOST, 2), -2), ((LEAST, -1), LEAST)]),
    "div": (("DIV",), [((7, 2), 3), ((-7, 2), -3), ((7, -2), -3), ((-7, -2), 3), ((5, 0), 0), ((LEAST, -1), LEAST)]),
    "shl": (("SHIFT",), [((3, 4), 48), ((-3, 4), -48), ((1, 31), LEAST)]),
    "asr": (("SHIFT",), [((48, 4), 3), ((-1, 1), -1), ((-5, 1), -3), ((LEAST, 31), -1)]),
    "sign_mask": (("SHIFT",), [((-1,), ALL), ((0,), 0), ((MOST,), 0), ((LEAST,), ALL)]),
    "addu": (("ADD",), [((2, 3), 5), ((ALL, 1), 0)]),
    "subu": (("SUB",), [((3, 2), 1), ((0, 1), ALL)]),
    "mulu": (("MUL",), [((3, 7), 21), ((ALL, ALL), 1), ((65536, 65536), 0)]),
    "divu": (("DIV",), [((7, 2), 3), ((ALL, 1), ALL), ((ALL, ALL), 1), ((5, 0), 0)]),
    "shlu": (("SHIFT",), [((3, 4), 48), ((ALL, 1), ALL - 1), ((3, 31), 2**31)]),
    "shru": (("SHIFT",), [((48, 4), 3), ((ALL, 31), 1), ((5, 1), 2)]),
    "and_": (("AND",), [((12, 10), 8), ((ALL, 5), 5)]),
    "or_": (("OR",), [((12, 10), 14), ((ALL, 5), ALL)]),
    "not_": (("NOT",), [((0,), ALL), ((ALL,), 0), ((5,), ALL - 5)]),
    "ge": (("COMPARE",), [((1, 1), True), ((-1, 0), False), ((0, LEAST), True)]),
    "geu": (("COMPARE",), [((1, 1), True), ((0, 1), False), ((ALL, 0), True)]),
    "selectu": (("SELECT",), [((True, 1, 2), 1), ((False, 1, 2), 2), ((True, ALL, 0), ALL)]),
    "minu": (("COMPARE", "SELECT"), [((1, 2), 1), ((2, 1), 1), ((ALL, 0), 0), ((3, 3), 3)]),
    "maxu": (("COMPARE", "SELECT"), [((1, 2), 2), ((2, 1), 2), ((ALL, 0), ALL), ((3, 3), 3)]),
    "min_": (("COMPARE", "SELECT"), [((1, 2), 1), ((2, -1), -1), ((LEAST, MOST), LEAST), ((-3, -3), -3)]),
    "max_": (("COMPARE", "SELECT"), [((1, 2), 2), ((2, -1), 2), ((LEAST, MOST), MOST), ((-3, -3), -3)]),
    "wrapping_addu": (("ADD",), [((2, 3), 5), ((ALL, 1), 0), ((2**31, 2**31), 0)]),
    "wrapping_subu": (("SUB",), [((3, 2), 1), ((0, 1), ALL)]),
    "wrapping_mulu": (("MUL",), [((3, 7), 21), ((65536, 65536), 0), ((ALL, ALL), 1)]),
    "wrapping_shlu": (("SHIFT",), [((3, 4), 48), ((ALL, 31), 2**31), ((2**31, 1), 0)]),
    "xor": (("XOR",), [((12, 10), 6), ((ALL, 5), ALL - 5)]),
    "rotlu": (("ROTATE",), [((1, 1), 2), ((2**31, 1), 1), ((0x12345678, 8), 0x34567812)]),
    "lt": (("COMPARE",), [((1, 1), False), ((-1, 0), True), ((0, LEAST), False)]),
    "ltu": (("COMPARE",), [((1, 1), False), ((0, 1), True), ((ALL, 0), False)]),
    "eq": (("COMPARE",), [((1, 1), True), ((-1, 1), False)]),
    "equ": (("COMPARE",), [((ALL, ALL), True), ((0, 1), False)]),
    "ne": (("COMPARE",), [((1, 1), False), ((-1, 1), True)]),
    "neu": (("COMPARE",), [((ALL, ALL), False), ((0, 1), True)]),
    "select": (("SELECT",), [((True, -1, 2), -1), ((False, -1, 2), 2)]),
    "saturating_add": (
        ("ADD", "NOT", "AND", "SELECT", "XOR", "XOR", "XOR", "SHIFT", "SHIFT"),
        [((2, 3), 5), ((MOST, 1), MOST), ((LEAST, -1), LEAST), ((MOST, LEAST), -1)],
    ),
    "saturating_sub": (
        ("SUB", "AND", "SELECT", "XOR", "XOR", "XOR", "SHIFT", "SHIFT"),
        [((2, 3), -1), ((LEAST, 1), LEAST), ((0, LEAST), MOST), ((MOST, -1), MOST)],
    ),
    "saturating_addu": (("ADD", "COMPARE", "SUB", "OR"), [((2, 3), 5), ((ALL, 1), ALL), ((2**31, 2**31), ALL)]),
    "saturating_subu": (("SUB", "COMPARE", "SUB", "AND", "NOT"), [((3, 2), 1), ((0, 1), 0), ((ALL, ALL), 0)]),
}
COMPARISONS = {"ge", "geu", "lt", "ltu", "eq", "equ", "ne", "neu"}
FIXED_SHIFTS = {"sign_mask", "saturating_add", "saturating_sub"}  # by a number that is always the same
WORDS = {
    "i32": st.one_of(st.integers(LEAST, MOST), st.sampled_from([LEAST, LEAST + 1, -1, 0, 1, MOST])),
    "u32": st.one_of(st.integers(0, ALL), st.sampled_from([0, 1, 2**31 - 1, 2**31, ALL])),
    "flag": st.booleans(),
}
TYPES = {"i32": np.int32, "u32": np.uint32, "flag": np.bool_}
SHIFTS = {"shl", "asr", "shlu", "shru", "rotlu", "wrapping_shlu"}


def test_every_primitive_has_known_answers_a_range_rule_and_a_c_form():
    long = {name for name, one in PRIMITIVES.items() if "i64" in (one.result, *one.operands)}  # test_written_kernels
    assert set(PRIMITIVES) - long == set(KNOWN) and len(long) == 7
    assert all(primitive.interval for primitive in PRIMITIVES.values())
    assert all(primitive.c for primitive in PRIMITIVES.values())
    assert all(getattr(language, name) is primitive for name, primitive in PRIMITIVES.items())


@pytest.mark.parametrize("name", KNOWN)
def test_known_answers(name):
    operations, cases = KNOWN[name]
    assert PRIMITIVES[name].operations == operations
    for operands, result in cases:
        assert PRIMITIVES[name](*operands) == result, operands


@pytest.mark.parametrize("name", sorted(set(KNOWN) - {"i32", "u32"}))  # the casts are Numba's own
@settings(max_examples=150, deadline=None, derandomize=True)
@given(data=st.data())
def test_numba_gives_the_same_bits(name, data):
    primitive = PRIMITIVES[name]
    kinds = list(primitive.operands)
    values = [data.draw(WORDS[kind]) for kind in kinds]
    if name in SHIFTS:
        values[1] = data.draw(st.integers(1, 31))
    typed = [TYPES[kind](value) for kind, value in zip(kinds, values, strict=True)]
    assert int(compiled(primitive)(*typed)) == int(primitive(*values))


@pytest.mark.parametrize("name", sorted(set(KNOWN) - COMPARISONS - {"i32", "u32", "select", "selectu", "sign_mask"}))
@settings(max_examples=100, deadline=None, derandomize=True)
@given(data=st.data())
def test_the_range_rule_holds_what_the_primitive_returns(name, data):
    """An interval rule is sound when every result of values inside the operands' intervals is inside the result's."""
    primitive = PRIMITIVES[name]
    spans, inside = [], []
    for place, kind in enumerate(primitive.operands):
        word = st.integers(1, 31) if name in SHIFTS and place == 1 else WORDS[kind]
        lo, hi = sorted(data.draw(st.tuples(word, word)))
        spans.append(Span(lo, hi))
        inside.append(data.draw(st.integers(lo, hi)))
    if name in ("div", "divu") and spans[1].lo <= 0 <= spans[1].hi:
        return  # the range check refuses a divisor that may be zero
    span = primitive.interval(*spans)
    least, most = STORAGE[primitive.result]
    if least <= span.lo and span.hi <= most:  # else the range check refuses the kernel
        assert span.lo <= primitive(*inside) <= span.hi, (inside, str(span))


TIMED = {"MUL", "DIV", "SHIFT", "ROTATE", "ADD", "SUB", "AND", "OR", "XOR", "NOT"}


def uneven(operation, signed):
    """The processors whose tables give one operation on words more than one time."""
    prices = {name: load_cpu(name).price(operation, 32, signed, "native") for name in cpu_names()}
    return {name for name, price in prices.items() if price.min != price.max}


@pytest.mark.parametrize("name", sorted(set(KNOWN) - FIXED_SHIFTS))
def test_the_processors_on_which_time_varies_are_those_of_the_tables(name):
    primitive = PRIMITIVES[name]
    cores = {core for operand in primitive.varies for operation in operand for core in uneven_cores(operation)}
    signed = "i32" in primitive.operands
    assert cores == {core for op in primitive.operations if op in TIMED for core in uneven(op, signed)}
    assert len(primitive.varies) == len(primitive.operands)
