"""Kernels that nobody wrote: what is proved of them holds, and every reader gives the same answers."""

import ctypes
import itertools
import random

import numpy as np
import pytest
import usual_kernels
from checking import Checker, TooLongError, WrongError, load
from doubtful_kernels import NEVER, PRELUDE
from doubtful_places import MAY
from generated_kernels import arguments_of, copied, declared, lengths_to_try, written
from hypothesis import given, settings
from hypothesis import strategies as st

from sensorsim._util.errors import InputError
from sensorsim.language import LanguageError, ir
from sensorsim.language.arguments import array_length, bounds
from sensorsim.language.c.identifiers import Names
from sensorsim.language.c.translation_units import c_sources
from sensorsim.language.count import count
from sensorsim.language.kernel import reachable
from sensorsim.language.types import Array
from sensorsim.machine.targets import TRAP, compile_host

BATCHES = [0, *(pytest.param(batch, marks=pytest.mark.slow) for batch in range(1, 6))]
PER_BATCH = 25
LONGEST = 20_000  # steps of a run
MOST = 800_000  # of a run that must show a fault
BY_NUMBA = 6  # of a batch: Numba takes a second to compile one
SHARE = 0.5  # of the generated kernels are proved, or the tests below say little
CTYPES = {name: getattr(ctypes, f"c_{'u' if name[0] == 'u' else ''}int{name[1:]}") for name in
          ("u8", "u16", "u32", "i8", "i16", "i32")}  # fmt: skip


def proved(seeds):
    """The generated kernels that the range check accepts, by seed."""
    found = {}
    for seed in seeds:
        try:
            kernel = declared(seed)
            kernel.prove()
        except InputError:
            continue
        found[seed] = kernel
    return found


def runs(kernel, seed, many=6, each=2):
    """Arguments, with what the naive interpreter makes of them, which stops where the proof is wrong."""
    chosen = random.Random(seed)
    for lengths in lengths_to_try(kernel, many):
        for _ in range(each):
            arguments = arguments_of(kernel, lengths, chosen)
            filled, checker = copied(arguments), Checker(kernel.prove(), LONGEST)
            try:
                result = checker.run(kernel, filled)
            except TooLongError:
                break
            yield arguments, (result, {name: filled[name] for name in kernel.arrays}, checker.ways)


def assert_same(kernel, wanted, result, arrays, who):
    assert result == wanted[0], (who, kernel.at)
    for name, cells in wanted[1].items():
        pairs = zip(cells, arrays[name], strict=True)
        assert all(cell is None or cell == other for cell, other in pairs), (who, kernel.at, name)


def assert_counts_agree(kernel, arguments, counts, ways):
    """Counted by reading: where there is no `if`, or each took the same way."""
    if len(ways) == 2:
        return False
    try:
        read = kernel.formula(otherwise=ways == {False})
    except LanguageError:
        return False
    known = {name: value for name, value in arguments.items() if name not in kernel.arrays}
    expected = {key: value.value(known) for key, value in read.items()}
    assert {key: value for key, value in expected.items() if value} == counts, kernel.at
    return True


def watched(kernel):
    """What `count` calls for each value: it must lie in the interval of its line."""
    lines = kernel.prove().lines

    def watch(node, value):
        if not (isinstance(node, ir.Let) and node.type == "flag"):
            lo, hi = lines[node.at]
            assert lo <= value <= hi, (node.at, value)

    return watch


def assert_sound(kernel, seed, many=6, each=2):
    """Plain Python, the counting interpreter and the naive one agree, inside what was proved; how often counts did."""
    agreed = 0
    for arguments, wanted in runs(kernel, seed, many, each):
        plain, counted = copied(arguments), copied(arguments)
        assert_same(kernel, wanted, kernel(*plain.values()), plain, "plain Python")
        counts = count(kernel, counted, watched(kernel))
        assert_same(kernel, wanted, wanted[0], counted, "count")
        agreed += assert_counts_agree(kernel, arguments, counts, wanted[2])
    return agreed


@settings(max_examples=50, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1))
def test_what_is_proved_holds(seed):
    for kernel in proved([seed]).values():
        assert_sound(kernel, seed)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_what_is_proved_holds_for_many(block):
    for seed, kernel in proved(range(10**6 + block * 200, 10**6 + block * 200 + 200)).items():
        assert_sound(kernel, seed, 16, 3)


@pytest.mark.parametrize("batch", BATCHES)
def test_all_readers_agree(batch, tmp_path):
    kernels = proved(range(batch * PER_BATCH, (batch + 1) * PER_BATCH))
    assert len(kernels) >= SHARE * PER_BATCH
    agreed = [assert_sound(kernel, seed) for seed, kernel in kernels.items()]
    assert sum(map(bool, agreed)) >= len(kernels) / 3  # where counting by reading says something
    for seed, kernel in list(kernels.items())[:BY_NUMBA]:
        for arguments, wanted in runs(kernel, seed, each=1):
            got = kernel.run(**arguments)
            arrays = got if isinstance(got, dict) else {}
            result = arrays.get("returns") if isinstance(got, dict) else got
            assert_same(kernel, wanted, result, {**arguments, **arrays}, "Numba")
    functions = in_c(list(kernels.values()), tmp_path)
    for seed, kernel in kernels.items():
        for arguments, wanted in runs(kernel, seed):
            assert_same(kernel, wanted, *functions[kernel](arguments), "C")


def in_c(kernels, folder):
    """The kernels as functions of one shared library, compiled to stop at undefined behaviour."""
    names = Names(kernels, "g_")
    for path, text in c_sources(kernels, "g_", (), "").items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text)
    sources = sorted((folder / "src").glob("*.c"))
    include = [folder / "include", folder / "src"]
    library = ctypes.CDLL(str(compile_host(sources, include, folder / "kernels.so", TRAP)))

    def function(kernel):
        called = getattr(library, names.functions[kernel])
        called.restype = CTYPES[kernel.result.storage] if kernel.result is not None else None

        def call(arguments):
            arrays, passed = {}, []
            for name, kind in kernel.parameters.items():
                if isinstance(kind, Array):
                    plain = np.dtype(("uint" if kind.storage[0] == "u" else "int") + kind.storage[1:])
                    arrays[name] = np.array(arguments[name], plain)
                    passed.append(ctypes.c_void_p(arrays[name].ctypes.data))
                else:
                    passed.append(CTYPES[kind.storage](arguments[name]))
            result = called(*passed)
            return result, {name: cells.tolist() for name, cells in arrays.items()}

        return call

    return {kernel: function(kernel) for kernel in kernels}


@pytest.mark.parametrize("seed", range(0, 60, 5))
def test_a_second_declaration_gives_the_same_proof_and_text(seed):
    texts = []
    for _ in range(2):
        try:
            kernel = declared(seed)
            proof = kernel.prove()
        except InputError as error:
            texts.append(str(error))
            continue
        texts.append((proof.lines, proof.result, list(proof.operands.values()), kernel.c()))
    assert texts[0] == texts[1]


# each spoils the text of a well-formed kernel; the second is what the message says
SPOILED = {
    "an operator": ("    return ", "    x9 = u32(1) + n\n    return ", "uses `.` on u32"),
    "while": ("    return ", "    while p1:\n        p1 = u32(0)\n    return ", "while"),
    "an unknown name": ("    return ", "    x9 = addu(nowhere, 1)\n    return ", "nowhere"),
    "a statement after the end": (None, "    return 0\n", "never reached|returns something else"),
    "a float": ("    return ", "    x9 = add(1.5, 1)\n    return ", "1.5"),
    "too many arguments": ("    return ", "    x9 = add(1, 1, 1)\n    return ", "3 arguments"),
}


@pytest.mark.parametrize("fault", SPOILED)
def test_a_spoiled_kernel_is_refused_at_its_declaration(fault):
    before, after, message = SPOILED[fault]
    spoiled = 0
    for seed in range(30):
        text = written(seed)
        try:
            load(text)
        except LanguageError:
            continue
        head, mark, tail = text.rpartition(before) if before else (text, " ", "")
        if not mark:
            continue
        spoiled += 1
        with pytest.raises(LanguageError, match=rf"^<generated \d+>:\d+: .*({message})"):
            load(head + after + tail if before else text + after)
    assert spoiled > 5


# Kernels that a careless proof would accept


def small_runs(kernel):
    """Every mix of short lengths, and the longest, with edges."""
    chosen = random.Random(1)
    ends = [sorted({*range(kind.lo, min(kind.hi, kind.lo + 6) + 1), kind.hi}) for kind in kernel.lengths.values()]
    for values in itertools.product(*ends):
        lengths = dict(zip(kernel.lengths, values, strict=True))
        if any(kind.at_most and lengths[name] > lengths[kind.at_most] for name, kind in kernel.lengths.items()):
            continue
        elements = [kind.element if isinstance(kind, Array) else kind for name, kind in kernel.parameters.items()
                    if name not in kernel.lengths]  # fmt: skip
        if any(hi < lo for lo, hi in (bounds(kind, lengths) for kind in elements)):
            continue
        if max((array_length(kernel, name, lengths) for name in kernel.arrays), default=0) < 200_000:
            for _ in range(10 if max(values, default=0) > 100 else 300 if len(values) < 2 else 40):
                yield arguments_of(kernel, lengths, chosen)


def goes_wrong(kernel, proof):
    for arguments in small_runs(kernel):
        try:
            Checker(proof, MOST).run(kernel, arguments)
        except TooLongError:
            continue
        except WrongError as error:
            return str(error)
    return None


NEVER |= usual_kernels.NEVER
MAY |= usual_kernels.MAY


@pytest.mark.parametrize("title", NEVER)
def test_what_goes_wrong_is_not_proved(title):
    try:
        kernel = load(PRELUDE + NEVER[title])["k"]
    except LanguageError:
        return  # refused even earlier
    assert goes_wrong(kernel, None) is not None
    with pytest.raises(LanguageError, match=r"^<generated \d+>:\d+: in \w+, "):
        kernel.prove()


@pytest.mark.parametrize("title", MAY)
def test_what_is_right_is_proved(title):
    kernel = load(PRELUDE + MAY[title])["k"]
    assert goes_wrong(kernel, kernel.prove()) is None


ORDER = """
@kernel()
def f(a: W["n"], n: N) -> W:
    a[0] = addu(and_(a[0], 7), 1)
    return a[0]
@kernel()
def k(a: W["n"], n: N) -> W:
    return addu(and_(a[0], 15), and_(f(a, n), 15))
"""
LATE = """
@kernel()
def f(v: W, w: W) -> W:
    return selectu(geu(v, w), v, 0)
@kernel()
def g(a: W["n"], n: N) -> W:
    a[0] = and_(xor(a[0], 5), 7)
    return a[0]
@kernel()
def k(a: W["n"], n: N) -> W:
    return f(g(a, n), g(a, n))
"""
BOUND = """
@kernel()
def k(v: U) -> W:
    m = v
    r = u32(0)
    for i in range(m):
        m = minu(m, 2)
        r = addu(r, 1)
    return r
"""
CELL = """
@kernel()
def k(a: U["n"], n: N) -> W:
    r = u32(0)
    for i in range(a[0]):
        a[0] = 1
        r = addu(r, 1)
    return r
"""
SAME = """
@kernel()
def k(v: U) -> U:
    x = v
    x = x
    return x
"""


@pytest.mark.parametrize("text", [ORDER, LATE], ids=["order", "late"])
def test_a_call_that_writes_stands_alone(text):
    """C does not say in which order the parts of an expression run."""
    with pytest.raises(LanguageError, match="which writes an array, inside an expression; give its result a name"):
        load(PRELUDE + text)


@pytest.mark.parametrize("text", [BOUND, CELL, SAME], ids=["bound", "cell", "same"])
def test_c_keeps_the_order_of_evaluation(text, tmp_path):
    kernel = load(PRELUDE + text)["k"]
    assert assert_sound(kernel, 1, each=8) >= 0
    called = in_c([kernel], tmp_path)[kernel]
    for arguments, wanted in runs(kernel, 1, each=8):
        assert_same(kernel, wanted, *called(arguments), "C")


def test_every_kernel_behind_a_generated_one_is_read():
    """The generator uses the whole language."""
    seen = {type(node) for seed in range(60) for kernel in proved([seed]).values()
            for one in reachable([kernel]) for node in one.nodes}  # fmt: skip
    assert seen == {*ir.Expression.__args__, *ir.Statement.__args__, ir.Whole} - {ir.Ask}  # see test_records
