"""The C reader: every kernel and primitive has C that means the same; what has none is an error with its place."""

import ctypes
import itertools
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from compiled_c import library, off

from sensorsim._util.files import fill
from sensorsim.codegen.package_options import choose
from sensorsim.language import primitives
from sensorsim.language.arguments import arguments, lengths_to_check
from sensorsim.language.c.comments import with_prefix
from sensorsim.language.c.declarations import known_tables
from sensorsim.language.c.helpers import HEADER
from sensorsim.language.c.identifiers import Names
from sensorsim.language.c.translation_units import c_sources
from sensorsim.language.load import find, load_file, shipped
from sensorsim.language.parse import LanguageError
from sensorsim.language.primitive import Primitive
from sensorsim.machine.harness import differing_bits, load_host, run_on_host
from sensorsim.machine.targets import TRAP, compile_host
from sensorsim.machine.vectors import as_arrays, by_plain_python, expected, of_one_call, random_vectors

EDGES = [0, 1, 2, 3, 31, 32767, 32768, 65535, 2**30, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 2, 2**32 - 1]


def bodies(text):
    """The code without its comments."""
    import re

    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def test_reads_as_a_person_would_write_it():
    (kernel,) = choose(["spof"], "lean")
    text = c_sources([kernel], "ss_", [], "")["src/ss_spof_lean.c"]
    assert text.endswith(
        """{
    for (uint32_t i = 0U; i < n; i++) {
        const int32_t noisy = ss_perturb(ss_linear(ss_feature(x[i])),
                                         noise[ss_pick(word[i], mask)]);
        alpha2[i] = noisy;
        alpha3[i] = ss_quadratic_of(noisy);
    }
}
"""
    )


@pytest.mark.parametrize("variant", ["paper", "lean"])
def test_sources_are_plain_freestanding_c(variant):
    kernels = [kernel for kernel in shipped().values() if kernel.name.endswith("_lean") == (variant == "lean")]
    for path, text in c_sources(kernels, "ss_", known_tables(kernels, "ss_"), "").items():
        assert text.isascii(), path
        assert max(map(len, text.splitlines())) <= 120, path
        for word in ("float", "double", "malloc", "#include <stdio.h>", "#include <string.h>", "long long"):
            assert word not in text.replace("no float", ""), (path, word)


def test_every_primitive_means_in_c_what_it_means_in_python(tmp_path):
    """Each primitive at every pair (or triple) of edge values, compiled for the host."""
    every = [value for value in vars(primitives).values() if isinstance(value, Primitive)]
    helpers = dict.fromkeys(text for p in every for text in p.helpers)
    arithmetic = "\n".join([HEADER, *helpers, "#endif\n"])
    types = {"i32": "int32_t", "i64": "int64_t", "u32": "uint32_t", "flag": "uint32_t"}
    lines = ['#include "ss_arithmetic.h"']
    forms = [(p, field, getattr(p, field)) for p in every for field in ("c", "c_test") if getattr(p, field)]
    near = [(p, "c_near", p.c.replace("(", "_near(", 1)) for p in every if p.c.startswith("ss_")]
    forms += [(p, field, form) for p, field, form in near if form.partition("(")[0] + "(" in arithmetic]
    for p, field, form in forms:
        head = ", ".join(f"{types[kind]} a{i}" for i, kind in enumerate(p.operands))
        body = form.format(*(f"a{i}" for i in range(len(p.operands))))
        start = f"{types[p.result]} try_{field}_{p.name}({head})"
        lines.append(f"{start};\n{start} {{ return {body}; }}")
    fill(tmp_path, {"ss_arithmetic.h": arithmetic, "try.c": "\n".join(lines) + "\n"})
    for options in ((), ("-DSS_NO_HW_DIV", "-DSS_NO_HW_MUL")):
        host = load_host(compile_host([tmp_path / "try.c"], [tmp_path], tmp_path / f"try{len(options)}.so", options))
        tried = sum(compare_primitive(host, p, field) for p, field, _ in forms)
        assert tried > 4000


def compare_primitive(host, primitive, field):
    ctype = {"i32": ctypes.c_int32, "i64": ctypes.c_int64, "u32": ctypes.c_uint32, "flag": ctypes.c_uint32}
    run = getattr(host, f"try_{field}_{primitive.name}")
    run.restype = ctype[primitive.result]
    run.argtypes = [ctype[kind] for kind in primitive.operands]
    values = {"i32": [int(np.int32(np.uint32(v))) for v in EDGES], "u32": EDGES, "flag": [False, True]}
    values["i64"] = [*values["i32"], 2**61, -(2**61), 2**32, 2**33 - 1, -(2**45) + 1]  # no two leave 64 bits
    wraps = primitive.name.startswith("wrapping") or primitive.result == "u32" or primitive.operations == ()
    tried = 0
    for operands in itertools.product(*(values[kind] for kind in primitive.operands)):
        if field == "c_near" and not (-(2**31) < operands[0] - operands[1] < 2**31 and operands[0] < 2**32 - 1):
            continue
        count = operands[-1]
        shifts = primitive.needs is not None and {"SHIFT", "ROTATE"} & set(primitive.operations)
        if shifts and not primitive.name.startswith("rot") * 1 <= count < 32:
            continue
        if primitive.name in ("add", "sub", "mul") and not wraps:
            exact = {"add": sum(operands), "sub": operands[0] - operands[1], "mul": operands[0] * operands[1]}
            if not -(2**31) <= exact[primitive.name] < 2**31:
                continue  # signed overflow: the range check proves that it never happens
        assert run(*operands) == primitive(*operands), (primitive.name, operands)
        tried += 1
    return tried


CHANGES = [
    ("spof_lean", "spof_lean", "sub(0, asr(noisy, 1))", "add(0, asr(noisy, 1))"),
    ("root", "root", "return minu(x, v)", "return minu(minu(x, 999), v)"),
    ("stairs", "stairs", "max_(min_(noisy, limit), lowest)", "max_(max_(noisy, limit), lowest)"),
    pytest.param(
        *("chacha20", "chacha20", "wrapping_addu(block[i], state[i])", "xor(block[i], state[i])"),
        marks=pytest.mark.slow,
    ),
]


@pytest.mark.parametrize(("module", "name", "old", "new"), CHANGES)
def test_a_changed_operator_changes_the_c_and_the_bits_still_agree(module, name, old, new, tmp_path):
    original = shipped()[f"{module}.{name}"]
    text = original.path.read_text("utf-8")
    assert text.count(old) == 1
    path = tmp_path / f"changed_{module}.py"
    path.write_text(text.replace(old, new).replace("import kernel,", "import add, kernel,"), "utf-8")
    if "import and_, asr, kernel" in text:
        path.write_text(path.read_text("utf-8").replace("import and_,", "import add, and_,"), "utf-8")
    changed = getattr(load_file(path), name)
    texts, host = library([changed], tmp_path / "package")
    before = c_sources([original], "ss_", [], "")[f"src/ss_{module}.c"]
    after = texts[f"src/ss_changed_{module}.c"]
    assert bodies(before) != bodies(after).replace(f"changed_{module}", module)
    assert off(host, changed) == 0
    original_vectors = random_vectors(original, {}, 50, 1)
    want, got = expected(original_vectors), run_on_host(host, original_vectors, f"ss_{name}")
    assert differing_bits(got, want) > 0, "the change must show"


def test_a_kernel_that_was_asked_for_and_is_called_by_another_is_one_function(tmp_path):
    kernels = choose(["root", "dpsgd"], "lean")
    texts, host = library(kernels, tmp_path)
    assert "src/ss_root.h" not in texts
    assert off(host, kernels[0]) == 0


def test_another_prefix_reaches_every_name(tmp_path):
    kernels = choose(["root"], "lean")
    texts, host = library(kernels, tmp_path, prefix="acme_")
    assert off(host, kernels[0], function="acme_root") == 0
    assert not any("ss_" in text or "SS_" in text for text in texts.values())
    assert with_prefix("SS_NO_HW_DIV ss_div", "acme_") == "ACME_NO_HW_DIV acme_div"


ODD = '''"""Kernels that use every corner: /* not closed, closed */ and α."""

from sensorsim.kernels.formats import ALPHA, WORD32, N
from sensorsim.language import (
    Length, Q, add, addu, and_, ge, geu, i32, kernel, max_, maxu, min_, minu, mulu, out, selectu, shlu, shru, sub, u32,
)

SMALL = Q("small", "u8", 0, 0, 7, "")
BYTE = Q("byte", "i8", 0, -128, 127, "")
WIDE = Q("wide", "i32", 0, -(2**31), 2**31 - 1, "")
CHECK = 3  # the name of a macro that every package has
LOWEST = -(2**31)
TWO = Length("n", 2, 4096, "two or more")


@kernel()
def late(x: ALPHA["n"], y: out(ALPHA["n"]), n: N) -> None:
    for i in range(n):
        if ge(x[i], 0):
            size = add(x[i], 0)
        else:
            size = sub(0, x[i])
        # the magnitude
        y[i] = size


@kernel()
def early(a: BYTE, b: SMALL) -> WIDE:
    """Returns early; `b` gets a new value that its byte cannot hold. */"""
    if ge(a, 100):
        return i32(LOWEST)
    b = addu(shlu(b, 6), CHECK)
    large = geu(b, 200)
    unused = add(a, 1)
    if large:
        return i32(b)
    return i32(selectu(large, 1, b))


@kernel()
def rounds(limit: SMALL, step: SMALL, n: TWO) -> WORD32:
    """Loops to values, to differences, and in rounds that nobody counts."""
    total = u32(0)
    for _ in range(limit):
        for _ in range(3):
            total = and_(addu(total, 1), 1023)
    for i in range(n - 2):
        total = and_(addu(total, u32(i)), 1023)
    for i in range(1, step):
        total = and_(addu(total, u32(i)), 1023)
    for i in range(n):
        for j in range(n - i):
            total = and_(addu(total, and_(u32(((j + 3) >> 1) - 4), 7)), 1023)
    return total


@kernel()
def numbers(a: WORD32) -> WORD32:
    """Numbers alone: nothing of it may be computed in a short int."""
    high = shlu(1, 20)
    product = add(30000, 30000)
    mixed = addu(shlu(3, and_(a, 15)), shru(40000, 3))
    return addu(addu(and_(high, 65535), u32(product)), addu(mixed, addu(and_(u32(-1), 7), mulu(u32(300), u32(300)))))


@kernel()
def asr(new: SMALL, ss_late: SMALL, unused: SMALL) -> SMALL:
    """Called as a helper, with parameters that C or C++ has other plans for."""
    return minu(new, ss_late)


@kernel()
def ignores(new: SMALL, y: out(WORD32["n"]), n: N) -> None:
    """Calls for nothing, and fills."""
    asr(new, new, new)
    for i in range(n):
        y[i] = u32(i)


@kernel()
def clamps(a: WIDE, b: WIDE, c: ALPHA, d: WORD32, e: SMALL) -> WIDE:
    """Far operands and near ones."""
    far = min_(max_(a, b), 5)
    near = min_(max_(c, -7), 5)
    wide = minu(maxu(d, 9), 4294967295)
    close = maxu(minu(e, 3), 2)
    return add(and_(u32(far), 1), add(near, i32(and_(addu(and_(wide, 255), close), 255))))
'''


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    folder = tmp_path_factory.mktemp("odd")
    (folder / "odd.py").write_text(ODD, "utf-8")
    kernels = find(str(folder / "odd.py"))
    texts, host = library(kernels, folder / "package")
    return {kernel.name: kernel for kernel in kernels}, texts, host, folder / "package"


@pytest.mark.parametrize("name", ["late", "early", "rounds", "numbers", "clamps"])
def test_every_corner_of_the_language_gives_the_same_bits(odd, name):
    kernels, _, host, _ = odd
    assert off(host, kernels[name]) == 0
    for n in (2, 3, 5) if "n" in kernels[name].lengths else ():
        assert off(host, kernels[name], 60, {"n": n}) == 0


def test_a_value_made_in_a_branch_and_read_after_it_is_declared_before_it(odd):
    text = odd[1]["src/ss_odd.c"]
    assert "        int32_t size = 0;\n        if (x[i] >= 0) {" in text
    assert "/* the magnitude */" in text
    assert "alpha" in text.splitlines()[0]  # what is not ASCII is spelled, what would end a comment does not


def test_parameters_that_get_new_values_flags_and_what_nobody_reads(odd):
    text = odd[1]["src/ss_odd.c"]
    assert "uint32_t b_now = b;" in text
    assert "const uint32_t large = ss_geu_near(b_now, 200U);" in text  # a value: 0 or 1, no branch
    assert "if (large != 0U) {" in text
    assert "(void)unused; /* not used */" in text
    assert "return INT32_MIN;" in text or "return SS_LOWEST;" in text
    assert "for (uint32_t round = 0U; round < limit; round++) {" in text
    assert "for (uint32_t round2 = 0U; round2 < 3U; round2++) {" in text
    assert "for (uint32_t i = 0U; i < (n - 2U); i++) {" in text
    assert "for (uint32_t j = 0U; j < (n - i); j++) {" in text
    assert "(void)ss_odd_asr(new_, new_, new_);" in text
    assert "#define SS_CHECK_ 3U /* the name of a macro" in odd[1]["src/ss_constants.h"]


def test_a_kernel_named_like_a_helper_has_another_name(odd):
    kernels, texts, host, _ = odd
    assert "uint8_t ss_odd_asr(uint8_t new_, uint8_t ss_late_, uint8_t unused)" in texts["include/ss_kernels.h"]
    assert off(host, kernels["asr"], function="ss_odd_asr") == 0


def test_nothing_is_computed_in_a_short_int(odd):
    text = odd[1]["src/ss_odd.c"]
    assert "(uint32_t)1U << 20U" in text
    assert "(int32_t)30000 + 30000" in text
    assert "ss_mulu(300U, 300U)" in " ".join(text.split())
    assert "((uint32_t)3U << (a & 15U)) + ((uint32_t)40000U >> 3U)" in text
    rounding = c_sources(choose(["row_of"], "lean"), "ss_", [], "")["src/ss_rows.c"]
    assert "((uint32_t)1U << shift) - 1U" in rounding


def test_a_core_with_a_short_int_takes_the_sources(odd, tmp_path):
    """With avr-gcc, where it is installed, without a warning."""
    avr = shutil.which("avr-gcc")
    if avr is None:
        pytest.skip("no avr-gcc on this machine")
    kernels = choose(["spof", "dpsgd", "dp-zo", "release", "sampled", "sampled_stairs", "encoder", "chacha20"], "paper")
    fill(tmp_path, c_sources(kernels, "ss_", known_tables(kernels, "ss_"), ""))
    for folder in (tmp_path, odd[3]):
        for source in sorted((folder / "src").glob("*.c")):
            flags = ["-mmcu=atmega328p", "-std=c99", "-O2", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"]
            include = [f"-I{folder / 'include'}", f"-I{folder / 'src'}"]
            subprocess.run([avr, *flags, *include, "-c", str(source), "-o", str(tmp_path / "x.o")], check=True)


def test_near_clamps_stand_where_the_difference_is_proved_to_fit_and_nowhere_else(odd):
    text = odd[1]["src/ss_odd.c"]
    assert "far = ss_min(ss_max(a, b), 5);" in text
    assert "near = ss_min_near(ss_max_near(c, -7), 5);" in text
    assert "wide = ss_minu(ss_maxu(d, 9U), 0xFFFFFFFFU);" in text
    assert "close = ss_maxu_near(ss_minu_near(e, 3U), 2U);" in text


def test_gcc_agrees(tmp_path):
    """The peer compiler, where there is one."""
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("no gcc on this machine")
    kernels = choose(["spof", "release", "release_stairs"], "lean")
    library(kernels, tmp_path)
    flags = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror", "-shared", "-fPIC"]
    sources = [str(p) for p in sorted((tmp_path / "src").glob("*.c"))] + [str(tmp_path / "drive.c")]
    include = [f"-I{tmp_path / 'include'}", f"-I{tmp_path / 'src'}"]
    subprocess.run([gcc, *flags, *include, *sources, "-o", str(tmp_path / "gcc.so")], check=True)
    host = load_host(Path(tmp_path / "gcc.so"))
    assert sum(off(host, kernel) for kernel in kernels) == 0


def test_random_kernels_give_the_bits_of_plain_python(tmp_path):
    """Kernels that nobody thought of, without a warning and with traps for undefined behaviour."""
    import random

    from generated_kernels import written

    kernels = []
    for seed in (*range(12), 48, 92, 122, 154, 265, 364, 425, 466):
        (tmp_path / f"made_{seed}.py").write_text(written(seed), "utf-8")
        (kernel,) = find(f"{tmp_path / f'made_{seed}.py'}:k")
        try:
            kernel.prove()
        except LanguageError:
            continue
        kernels.append(kernel)
    assert len(kernels) > 8
    _, host = library(kernels, tmp_path / "package", options=TRAP)
    names, chosen = Names(kernels, "ss_"), random.Random(1)
    for kernel, lengths in [(one, lengths) for one in kernels for lengths in lengths_to_check(one)[:3]]:
        for _ in range(5):
            values = arguments(kernel, lengths, lambda name, lo, hi: chosen.choice([lo, hi, chosen.randint(lo, hi)]))
            want = as_arrays(kernel, by_plain_python(kernel, values))
            got = run_on_host(host, of_one_call(kernel, values), names.functions[kernel])
            assert differing_bits(got, want) == 0, (kernel, values)
