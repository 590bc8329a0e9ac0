"""Kernels with one fault each, for the range check to refuse. Never run."""

from sensorsim.kernels.formats import ALPHA, NOISE, WORD32

from sensorsim.language import Length, Q, add, addu, divu, i32, kernel, minu, mulu, out, shl, sub, subu, u32

MANY = Length("n", 1, 4096, "")
WIDE = Q("wide", "i32", 15, -(2**31), 2**31 - 1, "")
LARGE = 2**31
DIGIT = Q("digit", "u32", 0, 0, 9, "")

# name: what the message says
FAULTS = {
    "overflows": "can be -2147483649 … 2147483646, outside i32",
    "sums_too_many": "outside i32",
    "squares_too_wide": "outside u32",
    "shifts_out": "outside i32",
    "goes_below_zero": "outside u32",
    "divides_by_zero": "may divide by zero",
    "reads_past_the_end": "its length is n",
    "reads_before_writing": "read before it is written",
    "stores_too_much": "where -32768 … 32768 is declared",
    "returns_too_much": "where 0 … 9 is declared",
    "wraps_in_a_view": "where -32768 … 32768 is declared",
    "shifts_too_far": "a count must be within 0 … 31",
    "passes_a_short_array": "has n elements, and last_of wants n \\+ 1",
    "passes_too_much": "where 0 … 9 is declared",
}


@kernel()
def overflows(a: WIDE) -> WIDE:
    return sub(a, 1)  # fault in overflows


@kernel()
def sums_too_many(a: NOISE["n"], n: MANY) -> WIDE:
    total = i32(0)
    for i in range(n):
        total = add(total, a[i])  # fault in sums_too_many
    return total


@kernel()
def squares_too_wide(a: WORD32) -> WORD32:
    return mulu(a, a)  # fault in squares_too_wide


@kernel()
def shifts_out(a: ALPHA) -> WIDE:
    return shl(a, 20)  # fault in shifts_out


@kernel()
def goes_below_zero(a: DIGIT) -> WORD32:
    less = subu(a, 1)  # fault in goes_below_zero
    return less


@kernel()
def divides_by_zero(a: WORD32, b: DIGIT) -> WORD32:
    return divu(a, b)  # fault in divides_by_zero


@kernel()
def reads_past_the_end(a: NOISE["n"], n: MANY) -> NOISE:
    last = a[n]  # fault in reads_past_the_end
    return last


@kernel()
def reads_before_writing(a: out(ALPHA["n"]), n: MANY) -> ALPHA:
    return a[0]  # fault in reads_before_writing


@kernel()
def stores_too_much(a: ALPHA, b: out(ALPHA["n"]), n: MANY) -> None:
    b[0] = add(a, 1)  # fault in stores_too_much


@kernel()
def returns_too_much(a: DIGIT) -> DIGIT:
    return addu(a, 1)  # fault in returns_too_much


@kernel()
def wraps_in_a_view(a: ALPHA) -> ALPHA:
    return minu(u32(a), LARGE)  # fault in wraps_in_a_view


@kernel()
def shifts_too_far(a: ALPHA, b: WORD32) -> WIDE:
    return shl(a, b)  # fault in shifts_too_far


@kernel()
def last_of(a: NOISE["n + 1"], n: MANY) -> NOISE:
    return a[n]


@kernel()
def passes_a_short_array(a: NOISE["n"], n: MANY) -> NOISE:
    return last_of(a, n)  # fault in passes_a_short_array


@kernel()
def digit_of(a: DIGIT) -> DIGIT:
    return a


@kernel()
def passes_too_much(a: WORD32) -> DIGIT:
    return digit_of(a)  # fault in passes_too_much
