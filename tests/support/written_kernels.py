"""Kernels as firmware authors write them from an empty file, each in the ways that come to mind first."""
# ruff: noqa: F403, F405 - the language is imported as in a notebook

import math

from sensorsim.language import *

SAMPLE = Q("sample", "i16", 15, -(2**15), 2**15 - 1, "a sample", secret=True)
LEVEL = Q("level", "i16", 0, -(2**15), 2**15 - 1, "a sample that is public")
STATE = Q("state", "i32", 20, -(2**31), 2**31 - 1, "state of a filter", secret=True)
COEFFICIENT = Q("coefficient", "i16", 14, -(2**15), 2**15 - 1, "-2 to 2")
LONG = Q("long", "i32", 31, -(2**31), 2**31 - 1, "a whole word", secret=True)
WEIGHT = Q("weight", "i32", 31, -(2**31), 2**31 - 1, "a weight that is public")
WORD = Q("word", "u32", 0, 0, 2**32 - 1, "any word")
BYTE = Q("byte", "u8", 0, 0, 255, "a byte", secret=True)
PLAIN = Q("plain", "u8", 0, 0, 255, "a byte that is public")
N = Length("n", 1, 1000, "samples", typical=32, tests=(1, 5, 65))
TAPS = Length("taps", 1, 64, "taps of a filter", typical=16, tests=(1, 7, 64))
COUNT = Q("count", "u32", 0, 0, 1000, "how many")


# biquad with saturation


@kernel(step="biquad")
def biquad(x: SAMPLE["n"], y: out(SAMPLE["n"]), b: COEFFICIENT["3"], a: COEFFICIENT["2"], n: N) -> None:
    """Direct form I, the sum in 64 bits."""
    x1 = i32(0)
    x2 = i32(0)
    y1 = i32(0)
    y2 = i32(0)
    for i in range(n):
        total = mul64(b[0], x[i])
        total = mac(total, b[1], x1)
        total = mac(total, b[2], x2)
        total = sub64(total, mul64(a[0], y1))
        total = sub64(total, mul64(a[1], y2))
        now = min_(max_(narrow(total, 14), -32768), 32767)
        x2 = x1
        x1 = i32(x[i])
        y2 = y1
        y1 = now
        y[i] = now


@kernel(step="biquad")
def biquad_transposed(
    x: SAMPLE["n"], y: out(SAMPLE["n"]), b: COEFFICIENT["3"], a: COEFFICIENT["2"], state: STATE["2"], n: N
) -> None:
    """Direct form II transposed over a state that stays, every sum saturated."""
    s1 = state[0]
    s2 = state[1]
    for i in range(n):
        now = asr(saturating_add(mul(b[0], x[i]), s1), 14)
        now = max_(min_(now, 32767), -32768)
        s1 = saturating_add(saturating_sub(mul(b[1], x[i]), mul(a[0], now)), s2)
        s2 = saturating_sub(mul(b[2], x[i]), mul(a[1], now))
        y[i] = now
    state[0] = s1
    state[1] = s2


# FIR over a ring buffer


@kernel(step="fir")
def fir(x: SAMPLE["taps"], h: COEFFICIENT["taps"], newest: Below("taps"), taps: TAPS) -> SAMPLE:
    """From the newest sample backwards, 0 to the last by a comparison."""
    total = i64(0)
    at = newest
    for k in range(taps):
        total = mac(total, x[at], h[k])
        if geu(at, 1):
            at = subu(at, 1)
        else:
            at = u32(taps - 1)
    return max_(min_(narrow(total, 15), 32767), -32768)


@kernel(step="fir")
def fir_signed(x: SAMPLE["taps"], h: COEFFICIENT["taps"], newest: Below("taps"), taps: TAPS) -> LONG:
    """An index that may be below 0, and is brought back by the length."""
    total = i64(0)
    for k in range(taps):
        at = sub(i32(newest), k)
        if lt(at, 0):
            at = add(at, taps)
        total = mac(total, h[k], x[at])
    return narrow(total, 15)


@kernel()
def push(x: SAMPLE["taps"], sample: SAMPLE, at: Below("taps"), taps: TAPS) -> Below("taps"):
    """Write the newest sample; returns where the next one goes."""
    x[at] = sample
    following = addu(at, 1)
    if equ(following, taps):
        return u32(0)
    return following


@kernel(step="fir")
def fir_masked(x: SAMPLE["16"], h: COEFFICIENT["16"], sample: SAMPLE, at: WORD) -> SAMPLE:
    """A ring of 16, its index by a mask; 32-bit sums, saturated."""
    x[and_(at, 15)] = sample
    total = i32(0)
    for k in range(16):
        total = saturating_add(total, mul(h[k], x[and_(wrapping_subu(at, k), 15)]))
    return asr(total, 16)


# moving median of five


@kernel(step="median")
def middle(a: SAMPLE, b: SAMPLE, c: SAMPLE) -> SAMPLE:
    """The middle one of three."""
    return max_(min_(a, b), min_(max_(a, b), c))


@kernel(step="median")
def median(x: SAMPLE["n + 4"], y: out(SAMPLE["n"]), n: N) -> None:
    """Every five samples as one."""
    for i in range(n):
        a = min_(x[i], x[i + 1])
        b = max_(x[i], x[i + 1])
        c = min_(x[i + 2], x[i + 3])
        d = max_(x[i + 2], x[i + 3])
        low = max_(a, c)
        high = min_(b, d)
        y[i] = middle(low, high, x[i + 4])


@kernel(step="median")
def median_sorted(x: LEVEL["n"], window: out(LEVEL["5"]), y: out(LEVEL["n - 4"]), n: Length("n", 5, 999, "")) -> None:
    """By insertion into a window that is kept sorted, with branches on public samples."""
    for i in range(n - 4):
        for k in range(5):
            window[k] = x[i + k]
        for k in range(4):
            for j in range(4 - k):
                low = window[j]
                high = window[j + 1]
                if lt(high, low):
                    window[j] = high
                    window[j + 1] = low
        y[i] = window[2]


# CORDIC

ANGLES = tuple(round(math.atan(2.0**-k) * 2**16) for k in range(16))
ANGLE = Q("angle", "i32", 16, 0, 2**16, "radians of a step")
TURNED = Q("turned", "i32", 16, -(2**18), 2**18, "radians", secret=True)
AXIS = Q("axis", "i32", 16, -(2**26), 2**26, "a coordinate", secret=True)
STEPS = Length("steps", 1, 16, "rotations", typical=16, tests=(1, 3, 16))
ATAN = Array(ANGLE, "16", contents=ANGLES)


@kernel(step="cordic")
def cordic(x: AXIS, y: AXIS, atan: ATAN) -> TURNED:
    """The angle of a vector, by selects."""
    a = x
    b = y
    turned = i32(0)
    for k in range(16):
        up = ge(b, 0)
        over = asr(a, k)
        across = asr(b, k)
        a = add(a, select(up, across, sub(0, across)))
        b = sub(b, select(up, over, sub(0, over)))
        turned = add(turned, select(up, atan[k], sub(0, atan[k])))
    return turned


POINT = Q("point", "i32", 14, -(2**26), 2**26, "a coordinate")
TURN = Q("turn", "i32", 16, -(2**17), 2**17, "radians")


@kernel(step="cordic")
def cordic_rotate(angle: TURN, xy: out(POINT["2"]), atan: Array(ANGLE, "steps", contents=ANGLES), steps: STEPS) -> None:
    """Cosine and sine by branches on a public angle, as many rotations as asked for."""
    x = i32(9949)
    y = i32(0)
    z = angle
    for i in range(steps):
        dx = asr(y, i)
        dy = asr(x, i)
        if ge(z, 0):
            x = sub(x, dx)
            y = add(y, dy)
            z = sub(z, atan[i])
        else:
            x = add(x, dx)
            y = sub(y, dy)
            z = add(z, atan[i])
    xy[0] = x
    xy[1] = y


# table interpolation

SINE = tuple(round(32767 * math.sin(math.pi * k / 128)) for k in range(257))
ENTRY = Q("entry", "i16", 15, -32767, 32767, "a sine")
PHASE = Q("phase", "u16", 16, 0, 65535, "of a turn")
SINES = Array(ENTRY, "257", contents=SINE)


@kernel(step="interpolation")
def interpolate_weights(phase: PHASE, table: SINES) -> ENTRY:
    """a (1 - f) + b f, rounded."""
    at = shru(phase, 8)
    part = i32(and_(phase, 255))
    rest = sub(256, part)
    total = add(mul(table[at], rest), mul(table[addu(at, 1)], part))
    return asr(add(total, 128), 8)


# binary search


@kernel(step="search")
def search(x: LEVEL["n"], key: LEVEL, n: N) -> COUNT:
    """The first place at or above the key, n where there is none."""
    low = u32(0)
    high = u32(n)
    for _ in range(10):
        if geu(low, high):
            break
        mid = shru(addu(low, high), 1)
        if ge(x[mid], key):
            high = mid
        else:
            low = addu(mid, 1)
    return low


FOUND = Q("found", "i32", 0, -1, 999, "a place, or -1")


@kernel(step="search")
def search_inclusive(x: LEVEL["n"], key: LEVEL, n: N) -> FOUND:
    """The place of the key, -1 where it is not there."""
    low = i32(0)
    high = i32(n - 1)
    for _ in range(n):
        if lt(high, low):
            return -1
        mid = asr(add(low, high), 1)
        value = x[mid]
        if eq(value, key):
            return mid
        if lt(value, key):
            low = add(mid, 1)
        else:
            high = sub(mid, 1)
    return -1


# run-length coding

RUN = Q("run", "u16", 0, 0, 1000, "how often")
RUN8 = Q("run", "u8", 0, 0, 255, "how often")


@kernel(step="runs")
def encode_runs(x: PLAIN["n"], values: out(PLAIN["n"]), runs: out(RUN["n"]), n: N) -> COUNT:
    """Two arrays, the last run after the loop."""
    count = u32(0)
    last = u32(x[0])
    run = u32(1)
    for i in range(1, n):
        if equ(x[i], last):
            run = addu(run, 1)
        else:
            values[count] = last
            runs[count] = run
            count = addu(count, 1)
            last = u32(x[i])
            run = u32(1)
    values[count] = last
    runs[count] = run
    return addu(count, 1)


@kernel(step="runs")
def encode_pairs(x: PLAIN["n"], packed: out(PLAIN["2 * n"]), n: N) -> Q("bytes", "u32", 0, 0, 2000, ""):
    """Pairs of a byte and its run, at most 255, in one array."""
    place = u32(0)
    last = u32(x[0])
    run = u32(0)
    for i in range(n):
        same = equ(x[i], last)
        if same:
            if ltu(run, 255):
                run = addu(run, 1)
            else:
                packed[place] = run
                packed[addu(place, 1)] = last
                place = addu(place, 2)
                run = u32(1)
        else:
            packed[place] = run
            packed[addu(place, 1)] = last
            place = addu(place, 2)
            last = x[i]
            run = u32(1)
    return place


@kernel(step="runs")
def encode_scanning(x: PLAIN["n"], values: out(PLAIN["n"]), runs: out(RUN["n"]), n: N) -> COUNT:
    """A loop over runs, and one inside that ends where the level changes."""
    count = u32(0)
    at = u32(0)
    for _ in range(n):
        if geu(at, n):
            break
        run = u32(0)
        for k in range(n):
            if geu(addu(at, k), n) or neu(x[addu(at, k)], x[at]):
                break
            run = addu(run, 1)
        values[count] = x[at]
        runs[count] = run
        count = addu(count, 1)
        at = addu(at, run)
    return count


@kernel(step="runs")
def decode_runs(values: PLAIN["m"], runs: RUN8["m"], x: out(PLAIN["n"]), n: N, m: Length("m", 1, 99, "")) -> COUNT:
    """Back again, as far as there is room."""
    at = u32(0)
    for k in range(m):
        for _ in range(runs[k]):
            if geu(at, n):
                break
            x[at] = values[k]
            at = addu(at, 1)
    return at


# CRC-32

POLYNOMIAL = 0xEDB88320


def _table():
    found = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (POLYNOMIAL if value & 1 else 0)
        found.append(value)
    return tuple(found)


CRCS = Array(WORD, "256", contents=_table())


@kernel(step="crc")
def crc32(data: BYTE["n"], n: N) -> WORD:
    """Bit by bit, in the same time for all data."""
    crc = u32(0xFFFFFFFF)
    for i in range(n):
        crc = xor(crc, data[i])
        for _ in range(8):
            mask = wrapping_subu(0, and_(crc, 1))
            crc = xor(shru(crc, 1), and_(POLYNOMIAL, mask))
    return not_(crc)


@kernel(step="crc")
def crc32_table(data: PLAIN["n"], table: CRCS, n: N) -> WORD:
    """By a table of 256."""
    crc = u32(0xFFFFFFFF)
    for i in range(n):
        crc = xor(table[and_(xor(crc, data[i]), 255)], shru(crc, 8))
    return not_(crc)


# matrix-vector product

ROWS = Length("rows", 1, 64, "rows", typical=8, tests=(1, 5, 64))
COLUMNS = Length("columns", 1, 64, "columns", typical=8, tests=(1, 3, 64))


@kernel(step="product")
def multiply(
    m: WEIGHT["rows * columns"], x: LONG["columns"], y: out(LONG["rows"]), rows: ROWS, columns: COLUMNS
) -> None:
    """Whole words; 64 products of 2^62 would not fit, so each is shifted first."""
    for r in range(rows):
        total = i64(0)
        for c in range(columns):
            total = add64(total, asr64(mul64(m[r * columns + c], x[c]), 6))
        y[r] = narrow(total, 25)


SMALL = Q("small", "i32", 24, -(2**25) + 1, 2**25 - 1, "a weight that is public")


# div(sum, n)


@kernel(step="mean", exposes={"operation": "the divider ends early, and the mean is published"})
def mean(x: SAMPLE["n"], n: N) -> SAMPLE:
    """The mean, rounded toward zero."""
    total = i32(0)
    for i in range(n):
        total = add(total, x[i])
    return div(total, n)


@kernel(step="mean")
def mean_rounded(x: LEVEL["n"], n: N) -> Q("mean", "i16", 0, -(2**15), 2**15 - 1, ""):
    """The mean by steps of a running one."""
    total = i32(0)
    for i in range(n):
        total = add(total, x[i])
    half = n >> 1
    if lt(total, 0):
        return max_(div(sub(total, half), n), -32768)
    return min_(div(add(total, half), n), 32767)


# Goertzel

TONE = Q("tone", "i32", 30, -(2**31), 2**31 - 1, "2 cos w, Q30")
POWER = Q("power", "i32", 0, -(2**31), 2**31 - 1, "power of a tone", secret=True)


@kernel(step="goertzel")
def goertzel(x: SAMPLE["n"], coefficient: TONE, n: N) -> POWER:
    """Saturated states, products in 64 bits."""
    s1 = i32(0)
    s2 = i32(0)
    for i in range(n):
        s0 = saturating_sub(saturating_add(narrow(mul64(coefficient, s1), 30), x[i]), s2)
        s2 = s1
        s1 = s0
    power = add64(asr64(mul64(s1, s1), 2), asr64(mul64(s2, s2), 2))
    power = sub64(power, asr64(mul64(narrow(mul64(coefficient, s1), 30), s2), 2))
    return narrow(power, 14)
