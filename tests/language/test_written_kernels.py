"""Kernels that people write work at first try: counted, proved, run in Python and Numba, emitted, verified."""

import random
import zlib
from pathlib import Path

import numpy as np
import pytest
import written_kernels
from checking import load
from click.testing import CliRunner
from written_kernels import ANGLES, SINE

from sensorsim.commands.program import group
from sensorsim.language import Kernel, primitives
from sensorsim.language.arguments import arguments, array_length
from sensorsim.language.count import count
from sensorsim.language.numba_backend import compiled
from sensorsim.language.ranges import RangeError

WRITTEN = {name: value for name, value in vars(written_kernels).items() if isinstance(value, Kernel)}
FILE = Path(written_kernels.__file__)
LEAST, MOST = -(2**31), 2**31 - 1


def saturated(value, least=LEAST, most=MOST):
    return min(max(value, least), most)


def truncated(a, b):
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


# Naive references: Python's own whole numbers, lists and libraries. Each takes the kernel's inputs by name and returns
# what the kernel returns, or what it writes by name.


def biquad(x, b, a, n, **_):
    before, after = [0, 0], [0, 0]
    found = []
    for value in x:
        total = b[0] * value + b[1] * before[0] + b[2] * before[1] - a[0] * after[0] - a[1] * after[1]
        found.append(saturated(total >> 14, -32768, 32767))
        before, after = [value, before[0]], [found[-1], after[0]]
    return {"y": found}


def biquad_transposed(x, b, a, state, n, **_):
    first, second = state
    found = []
    for value in x:
        now = saturated(saturated(b[0] * value + first) >> 14, -32768, 32767)
        first = saturated(saturated(b[1] * value - a[0] * now) + second)
        second = saturated(b[2] * value - a[1] * now)
        found.append(now)
    return {"y": found, "state": [first, second]}


def products(x, h, start, step):
    return sum(h[k] * x[(start + step * k) % len(x)] for k in range(len(h)))


def fir_masked(x, h, sample, at):
    x = [sample if place == at % 16 else value for place, value in enumerate(x)]
    total = 0
    for k in range(16):
        total = saturated(total + h[k] * x[(at - k) % 16])
    return {"x": x, "returns": total >> 16}


def push(x, sample, at, taps):
    return {"x": [sample if place == at else value for place, value in enumerate(x)], "returns": (at + 1) % taps}


def vector_angle(x, y, steps):
    turned = 0
    for k in range(steps):
        sign = 1 if y >= 0 else -1
        x, y, turned = x + sign * (y >> k), y - sign * (x >> k), turned + sign * ANGLES[k]
    return turned


def rotated(angle, steps, **_):
    x, y = 9949, 0
    for k in range(steps):
        sign = 1 if angle >= 0 else -1
        x, y, angle = x - sign * (y >> k), y + sign * (x >> k), angle - sign * ANGLES[k]
    return {"xy": [x, y]}


def between(table, at, size):
    low, high = table[at // size : at // size + 2]
    return low, high, at % size


def interpolate_weights(phase, **_):
    low, high, part = between(SINE, phase, 256)
    return (low * (256 - part) + high * part + 128) >> 8


def found_at(x, key, **_):
    """Whether what the kernel returned is a place of the key."""
    return lambda place: (place == -1 and key not in x) or (place >= 0 and x[place] == key)


def runs_of(x):
    found = []
    for value in x:
        if found and found[-1][0] == value:
            found[-1][1] += 1
        else:
            found.append([value, 1])
    return found


def padded(values, size):
    return [*values, *[0] * (size - len(values))]


def encode_runs(x, n, **_):
    found = runs_of(x)
    values, runs = ([run[part] for run in found] for part in (0, 1))
    return {"values": padded(values, n), "runs": padded(runs, n), "returns": len(found)}


def encode_pairs(x, n, **_):
    packed = []
    for value, length in runs_of(x):
        while length > 0:
            packed += [min(length, 255), value]
            length -= 255
    packed = packed[:-2]  # the run that is not over stays with the caller
    return {"packed": padded(packed, 2 * n), "returns": len(packed)}


def decode_runs(values, runs, n, m, **_):
    found = [value for value, run in zip(values, runs, strict=True) for _ in range(run)][:n]
    return {"x": padded(found, n), "returns": len(found)}


def multiply(m, x, rows, columns, **_):
    terms = [[m[r * columns + c] * x[c] >> 6 for c in range(columns)] for r in range(rows)]
    return {"y": [saturated(sum(row) >> 25) for row in terms]}


def mean_rounded(x, n):
    total = sum(x)
    return saturated(truncated(total - n // 2 if total < 0 else total + n // 2, n), -32768, 32767)


def goertzel(x, coefficient, n):
    first, second = 0, 0
    for value in x:
        ahead = saturated(coefficient * first >> 30)
        first, second = saturated(saturated(ahead + value) - second), first
    ahead = saturated(coefficient * first >> 30)
    return saturated(((first * first >> 2) + (second * second >> 2) - (ahead * second >> 2)) >> 14)


def medians(x, size):
    return {"y": [sorted(x[i : i + 5])[2] for i in range(size)]}


REFERENCES = {
    "biquad": biquad,
    "biquad_transposed": biquad_transposed,
    "fir": lambda x, h, newest, taps: saturated(products(x, h, newest, -1) >> 15, -32768, 32767),
    "fir_signed": lambda x, h, newest, taps: products(x, h, newest, -1) >> 15,
    "push": push,
    "fir_masked": fir_masked,
    "middle": lambda a, b, c: sorted([a, b, c])[1],
    "median": lambda x, n, **_: medians(x, n),
    "median_sorted": lambda x, n, **_: {**medians(x, n - 4), "window": sorted(x[n - 5 :])},
    "cordic": lambda x, y, **_: vector_angle(x, y, 16),
    "cordic_rotate": rotated,
    "interpolate_weights": interpolate_weights,
    "search": lambda x, key, n: sum(value < key for value in x),
    "search_inclusive": found_at,
    "encode_runs": encode_runs,
    "encode_scanning": encode_runs,
    "encode_pairs": encode_pairs,
    "decode_runs": decode_runs,
    "crc32": lambda data, n: zlib.crc32(bytes(data)),
    "crc32_table": lambda data, n, **_: zlib.crc32(bytes(data)),
    "multiply": multiply,
    "mean": lambda x, n: truncated(sum(x), n),
    "mean_rounded": mean_rounded,
    "goertzel": goertzel,
}


def inputs(kernel, lengths, source):
    """Random arguments, often at the ends of their formats; sorted where a search wants that, in runs where coded."""
    extreme = source.random() < 0.3
    given = arguments(
        kernel, lengths, lambda name, lo, hi: source.choice((lo, hi)) if extreme else source.randint(lo, hi)
    )
    if kernel.name.startswith("search"):
        given["x"].sort()
        given["key"] = source.choice((given["key"], source.choice(given["x"])))
    if kernel.name.startswith("encode"):
        few = source.choice((1, 2, 256))
        given["x"] = [value % few for value in given["x"]]
    return given


def cases(kernel, source):
    chosen = [dict.fromkeys(kernel.lengths, -1)] + [None] * 40
    for case in chosen:
        lengths = {} if case is not None else {
            name: source.choice((kind.lo, *kind.tests, source.randint(kind.lo, min(kind.hi, 300))))
            for name, kind in kernel.lengths.items()
        }  # fmt: skip
        yield inputs(kernel, kernel.lengths_at(lengths), source)


def answer(kernel, returned, given):
    """What a run gave: the result, or the arrays that it wrote, with the result beside them."""
    written = {name: list(map(int, given[name])) for name in kernel.parameters if name in kernel.written}
    if kernel.result is None:
        return written
    return {**written, "returns": int(returned)} if written else int(returned)


@pytest.mark.parametrize("name", WRITTEN)
def test_it_is_proved_and_counted(name):
    kernel = WRITTEN[name]
    kernel.prove()
    assert kernel.secrecy().proved
    assert sum(kernel.count().values()) > 0
    secret = any(getattr(getattr(kind, "element", kind), "secret", False) for kind in kernel.parameters.values())
    assert secret == bool(kernel.secrecy().secrets)


@pytest.mark.parametrize("name", WRITTEN)
def test_python_and_the_counter_give_what_a_naive_reference_gives(name):
    kernel, source = WRITTEN[name], random.Random(name)
    spans = kernel.prove().lines
    for given in cases(kernel, source):
        wanted = REFERENCES[name](**{key: list(v) if isinstance(v, list) else v for key, v in given.items()})
        plain = {key: list(value) if isinstance(value, list) else value for key, value in given.items()}
        found = answer(kernel, kernel(*plain.values()), plain)
        assert wanted(found) if callable(wanted) else found == wanted

        def watch(node, value):
            lo, hi = (0, 1) if node.type == "flag" else spans[node.at]
            assert lo <= value <= hi

        count(kernel, given, watch)
        written = {key: given[key] for key in kernel.written}
        assert written == {key: plain[key] for key in kernel.written}


NUMBA = (
    "biquad",
    "fir_signed",
    "cordic_rotate",
    "interpolate_weights",
    "search",
    "encode_pairs",
    "multiply",
    "goertzel",
)


@pytest.mark.parametrize(
    "name", [name if name in NUMBA else pytest.param(name, marks=pytest.mark.slow) for name in WRITTEN]
)
def test_numba_gives_the_same(name):
    kernel, source = WRITTEN[name], random.Random(name)
    for given in cases(kernel, source):
        sizes = {key: array_length(kernel, key, given) for key in kernel.arrays}
        assert all(len(given[key]) == size for key, size in sizes.items())
        wanted = REFERENCES[name](**{key: list(v) if isinstance(v, list) else v for key, v in given.items()})
        found = kernel.run(**{key: value for key, value in given.items() if key not in kernel.arrays or value})
        if isinstance(found, dict):
            found = {key: value if key == "returns" else value.tolist() for key, value in found.items()}
        assert wanted(found) if callable(wanted) else found == wanted


def verified(name, targets, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(FILE.read_text("utf-8"), "utf-8")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(group, ["kernel", f"mine.py:{name}", "--verify", targets])
    assert done.exit_code == 0, done.output
    assert done.output.count("every bit is the same") == targets.count(",") + 1


@pytest.mark.parametrize("name", ["fir", "search", "encode_runs"])
def test_c_is_verified_on_this_machine(name, tmp_path, monkeypatch):
    verified(name, "host", tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITTEN)
def test_c_is_verified_on_small_cores(name, tmp_path, monkeypatch):
    verified(name, "host,cortex-m0plus,rv32imc", tmp_path, monkeypatch)


# the primitives that these need, against Python's whole numbers

ENDS = [0, 1, -1, 2, 0x7FFF, 0x8000, -0x8000, 0xFFFF, 0x10000, MOST, MOST - 1, LEAST, LEAST + 1]
TRUTH = {
    "eq": lambda a, b: a == b,
    "equ": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "neu": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "ltu": lambda a, b: a < b,
    "select": lambda flag, a, b: a if flag else b,
    "saturating_add": lambda a, b: saturated(a + b),
    "saturating_sub": lambda a, b: saturated(a - b),
    "saturating_addu": lambda a, b: min(a + b, 2**32 - 1),
    "saturating_subu": lambda a, b: max(a - b, 0),
    "add64": lambda a, b: a + b,
    "sub64": lambda a, b: a - b,
    "mul64": lambda a, b: a * b,
    "mac": lambda total, a, b: total + a * b,
    "asr64": lambda a, k: a >> k,
    "narrow": lambda a, k: saturated(a >> k),
    "i64": lambda a: a,
}
TYPES = {"i32": np.int32, "u32": np.uint32, "i64": np.int64, "flag": bool}


def word(kind, source):
    if kind == "flag":
        return source.random() < 0.5
    if kind == "i64":
        return source.randint(-(2 ** source.randint(0, 61)), 2 ** source.randint(0, 61))
    value = source.choice((source.choice(ENDS), source.randint(LEAST, MOST), source.randint(-300, 300)))
    return value if kind == "i32" else value % 2**32


@pytest.mark.parametrize("name", TRUTH)
def test_a_primitive_is_what_it_says(name):
    primitive, source = getattr(primitives, name), random.Random(name)
    numba = compiled(primitive) if name != "i64" else np.int64
    for _ in range(2000):
        given = [word(kind, source) for kind in primitive.operands]
        if name in ("asr64", "narrow"):
            given[1] = source.randint(0, 31)
        wanted = TRUTH[name](*given)
        assert primitive(*given) == wanted
        assert (
            int(numba(*(TYPES[kind](value) for kind, value in zip(primitive.operands, given, strict=True)))) == wanted
        )


HEAD = """from sensorsim.language import *
V = Q('v', 'i16', 0, -32768, 32767, '')
L = Q('l', 'i32', 0, -2**31, 2**31 - 1, '')
U = Q('u', 'u32', 0, 0, 99, '')
N = Length('n', 1, 50, '')
"""


UNPROVED = {
    "a sum of products beyond 64 bits": """
def k(x: L["n"], n: N) -> L:
    t = i64(0)
    for i in range(n):
        t = mac(t, x[i], x[i])
    return narrow(t, 31)
""",
    "a counter that grows by two": """
def k(x: U["n"], y: out(U["n"]), n: N) -> U:
    c = u32(0)
    for i in range(n):
        if geu(x[i], 5):
            y[c] = x[i]
            c = addu(c, 2)
    return 0
""",
    "a counter that is used after it grew": """
def k(x: U["n"], y: out(U["n"]), n: N) -> U:
    c = u32(0)
    for i in range(n):
        if geu(x[i], 5):
            c = addu(c, 1)
            y[c] = x[i]
    return 0
""",
    "a ring index one too far": """
def k(x: U["n"], at: Below("n"), n: N) -> U:
    following = addu(at, 1)
    if geu(following, n + 1):
        following = u32(0)
    return x[following]
""",
    "a search that looks at its end": """
def k(x: V["n"], key: V, n: N) -> U:
    lo = u32(0)
    hi = u32(n)
    for _ in range(9):
        mid = shru(addu(lo, hi), 1)
        if ge(x[mid], key):
            hi = mid
        else:
            lo = addu(mid, 1)
    return lo
""",
    "a mean over fewer": """
def k(x: V["n"], n: Length('n', 2, 50, '')) -> V:
    t = i32(0)
    for i in range(n):
        t = add(t, x[i])
    return div(t, n - 1)
""",
    "a mean over what may be 0": """
def k(x: V["n"], n: N) -> L:
    t = i32(0)
    c = i32(0)
    for i in range(n):
        if ge(x[i], 0):
            t = add(t, x[i])
            c = add(c, 1)
    return div(t, c)
""",
    "a weight above one": """
def k(a: V, b: V, f: Q('f', 'u16', 8, 0, 257, '')) -> V:
    return add(a, asr(mul(sub(b, a), f), 8))
""",
    "an interpolation from another start": """
def k(a: V, b: V, f: Q('f', 'u16', 8, 0, 256, '')) -> V:
    return add(b, asr(mul(sub(b, a), f), 8))
""",
    "read after it was left early": """
def k(x: U["n"], y: out(U["n"]), n: N) -> U:
    for i in range(n):
        if geu(x[i], 5):
            break
        y[i] = x[i]
    return y[0]
""",
    "a value from before it was left early": """
def k(x: U["n"], n: N) -> Q('r', 'u32', 0, 5, 99, ''):
    last = u32(7)
    for i in range(n):
        last = u32(x[i])
        if geu(last, 5):
            break
    return last
""",
}


@pytest.mark.parametrize("fault", UNPROVED)
def test_what_is_wrong_is_not_proved(fault):
    kernel = load(HEAD + "@kernel()" + UNPROVED[fault], "mine.py")["k"]
    with pytest.raises(RangeError):
        kernel.prove()


def test_a_loop_left_on_a_secret_is_a_finding():
    text = """
S = Q('s', 'u32', 0, 0, 99, '', secret=True)
@kernel()
def k(x: S["n"], y: out(U["n"]), n: N) -> U:
    count = u32(0)
    for i in range(n):
        if geu(x[i], 5):
            break
        count = addu(count, 1)
    return count
"""
    found = load(HEAD + text, "mine.py")["k"].secrecy()
    assert [finding.kind for finding in found.findings] == ["branch"]
    shown = load(HEAD + text.replace("return count", "y[minu(count, n - 1)] = 1\n    return count"), "mine.py")["k"]
    assert {finding.kind for finding in shown.secrecy().findings} == {"branch", "address"}
