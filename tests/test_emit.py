"""The emitter: every kernel and every primitive has C that means the same; what has none is an error with its place."""

import ctypes
import importlib.util
import itertools
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from sensorsim.kernels import language, ops
from sensorsim.kernels.language import Primitive

from sensorsim.export.emit import Constants, EmitError, function, signature
from sensorsim.export.harness import differing_bits, driver_source, load_host, run_on_host
from sensorsim.export.sources import c_sources, choose, known_tables, load_kernels, with_prefix
from sensorsim.export.targets import compile_host
from sensorsim.export.vectors import TYPICAL, edge_vectors, expected, random_vectors
from sensorsim.export.write import fill

EDGES = [0, 1, 2, 3, 31, 32767, 32768, 65535, 2**30, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 2, 2**32 - 1]


def module_from(path, monkeypatch):
    """A kernel module read from another file, with a registry of its own."""
    monkeypatch.setattr(language, "KERNELS", {})
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, path.stem, module)
    spec.loader.exec_module(module)
    return module


def library(kernels, folder, prefix="ss_", options=()):
    texts = c_sources(kernels, prefix, known_tables(kernels, prefix), "")
    drivers = "".join(driver_source(kernel, prefix) for kernel in kernels)
    texts["drive.c"] = f'#include "{prefix}kernels.h"\n{drivers}'
    fill(folder, texts)
    sources = [*sorted((folder / "src").glob("*.c")), folder / "drive.c"]
    return texts, load_host(compile_host(sources, [folder / "include", folder / "src"], folder / "kernels.so", options))


def off(host, kernel, count=300):
    """How many bits of random and edge vectors differ between the library and Numba."""
    total = 0
    for make in (random_vectors, edge_vectors):
        vectors = make(kernel, TYPICAL, count, 1)
        total += differing_bits(run_on_host(host, vectors), expected(vectors))
    return total


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
    ours = [kernel for kernel in load_kernels().values() if kernel.path.parent == Path(ops.__file__).parent]
    kernels = [kernel for kernel in ours if kernel.name.endswith("_lean") == (variant == "lean")]
    for path, text in c_sources(kernels, "ss_", known_tables(kernels, "ss_"), "").items():
        assert text.isascii(), path
        assert max(map(len, text.splitlines())) <= 120, path
        for word in ("float", "double", "malloc", "#include <stdio.h>", "#include <string.h>", "long long"):
            assert word not in text.replace("no float", ""), (path, word)


def test_every_primitive_means_in_c_what_it_means_in_python(tmp_path):
    """Each primitive at every pair (or triple) of edge values, compiled for the host."""
    primitives = [value for value in vars(ops).values() if isinstance(value, Primitive)]
    arithmetic = c_sources(choose(["root"], "lean"), "ss_", [], "")["src/ss_arithmetic.h"]
    types = {"i32": "int32_t", "u32": "uint32_t", "flag": "bool"}
    lines = ['#include "ss_arithmetic.h"']
    for p in primitives:
        head = ", ".join(f"{types[kind]} a{i}" for i, kind in enumerate(p.operands))
        body = p.c.format(*(f"a{i}" for i in range(len(p.operands))))
        lines.append(
            f"{types[p.result]} try_{p.name}({head});\n{types[p.result]} try_{p.name}({head}) {{ return {body}; }}"
        )
    fill(tmp_path, {"ss_arithmetic.h": arithmetic, "try.c": "\n".join(lines) + "\n"})
    for options in ((), ("-DSS_NO_HW_DIV",)):
        host = load_host(compile_host([tmp_path / "try.c"], [tmp_path], tmp_path / f"try{len(options)}.so", options))
        tried = sum(compare_primitive(host, p) for p in primitives)
        assert tried > 3000


def compare_primitive(host, primitive):
    ctype = {"i32": ctypes.c_int32, "u32": ctypes.c_uint32, "flag": ctypes.c_bool}
    run = getattr(host, f"try_{primitive.name}")
    run.restype = ctype[primitive.result]
    run.argtypes = [ctype[kind] for kind in primitive.operands]
    values = {"i32": [int(np.int32(np.uint32(v))) for v in EDGES], "u32": EDGES, "flag": [False, True]}
    wraps = primitive.name.startswith("wrapping") or primitive.result == "u32" or primitive.operations == ()
    tried = 0
    for operands in itertools.product(*(values[kind] for kind in primitive.operands)):
        count = operands[-1]
        shifts = {"SHIFT", "ROTATE"} & set(primitive.operations) and len(operands) == 2
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
    ("root", "root", "return minu(x, v)", "return maxu(x, v)"),
    ("release", "release", "min_(max_(noisy, lowest), limit)", "min_(min_(noisy, lowest), limit)"),
    pytest.param(
        *("chacha20", "chacha20", "wrapping_addu(block[i], state[i])", "xor(block[i], state[i])"),
        marks=pytest.mark.slow,
    ),
]


@pytest.mark.parametrize(("module", "name", "old", "new"), CHANGES)
def test_a_changed_operator_changes_the_c_and_the_bits_still_agree(module, name, old, new, tmp_path, monkeypatch):
    original = load_kernels()[name]
    text = original.path.read_text("utf-8")
    assert text.count(old) == 1
    body = text.replace(old, new)
    if "add(" in new and module == "spof_lean":
        body = body.replace("import and_, asr, sub", "import add, and_, asr, sub")
    path = tmp_path / f"changed_{module}.py"
    path.write_text(body, "utf-8")
    changed = getattr(module_from(path, monkeypatch), name)
    texts, host = library([changed], tmp_path / "package")
    before = c_sources([original], "ss_", [], "")[f"src/ss_{module}.c"]
    after = texts[f"src/ss_changed_{module}.c"]
    assert before != after.replace(f"changed_{module}", module)
    assert off(host, changed) == 0
    original_vectors = random_vectors(original, TYPICAL, 50, 1)
    want, got = expected(original_vectors), run_on_host(host, original_vectors)
    assert differing_bits(got, want) > 0, "the change must show"


def test_a_kernel_that_was_asked_for_and_is_called_by_another_is_one_function(tmp_path):
    kernels = choose(["root", "dpsgd"], "lean")
    texts, host = library(kernels, tmp_path)
    assert "src/ss_root.h" not in texts
    assert off(host, kernels[0]) == 0


def test_another_prefix_reaches_every_name(tmp_path):
    kernels = choose(["root"], "lean")
    texts, host = library(kernels, tmp_path, prefix="acme_")
    assert off(host, kernels[0]) == 0
    assert not any("ss_" in text or "SS_" in text for text in texts.values())
    assert with_prefix("SS_NO_HW_DIV ss_div", "acme_") == "ACME_NO_HW_DIV acme_div"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("    while n:\n        pass\n", "while n"),
        ("    x[0] = x[0] + x[1]\n", "is a value; use a primitive"),
        ("    x[0] = i32(x[0]) ** 2\n", "has no C form"),
        ("    for i in range(n - 2):\n        x[i] = x[i]\n", "may be negative"),
        ("    y = 5\n    x[0] = y\n", "leaves open the type"),
        ("    x[0] = len(x)\n", "has no C form"),
        ("    if x[0]:\n        x[0] = x[1]\n", "is no comparison"),
        ("    x[0] = bare(x[0])\n", "the primitive bare has no C form"),
    ],
)
def test_what_has_no_c_form_is_an_error_with_file_and_line(body, message, tmp_path, monkeypatch):
    path = tmp_path / "odd.py"
    path.write_text(
        "from sensorsim.kernels.formats import ALPHA, N, Below\n"
        "from sensorsim.kernels.language import kernel, primitive\n"
        "from sensorsim.kernels.ops import i32\n"
        "@primitive('ADD', operands='i32', result='i32')\n"
        "def bare(a):\n    return a\n"
        "@kernel()\n"
        f"def odd(x: ALPHA['n'], n: N) -> None:\n{body}",
        "utf-8",
    )
    odd = module_from(path, monkeypatch).odd
    with pytest.raises(EmitError, match=message) as caught:
        function(odd, Constants("ss_"), signature(odd, "ss_"))
    assert "odd.py:" in str(caught.value)


def test_a_value_made_in_a_branch_and_read_after_it_is_declared_before_it(tmp_path, monkeypatch):
    path = tmp_path / "later.py"
    path.write_text(
        "from sensorsim.kernels.formats import ALPHA, N, out\n"
        "from sensorsim.kernels.language import kernel\n"
        "from sensorsim.kernels.ops import add, ge, sub\n"
        "@kernel()\n"
        "def later(x: ALPHA['n'], y: out(ALPHA['n']), n: N) -> None:\n"
        "    for i in range(n):\n"
        "        if ge(x[i], 0):\n            size = add(x[i], 0)\n"
        "        else:\n            size = sub(0, x[i])\n"
        "        # the magnitude\n"
        "        y[i] = size\n",
        "utf-8",
    )
    later = module_from(path, monkeypatch).later
    texts, host = library([later], tmp_path / "package")
    assert "        int32_t size = 0;\n        if (x[i] >= 0) {" in texts["src/ss_later.c"]
    assert "/* the magnitude */" in texts["src/ss_later.c"]
    assert off(host, later) == 0


def test_gcc_agrees(tmp_path):
    """The peer compiler, where there is one."""
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("no gcc on this machine")
    import subprocess

    kernels = choose(["spof", "release"], "lean")
    library(kernels, tmp_path)
    flags = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror", "-shared", "-fPIC"]
    sources = [str(p) for p in sorted((tmp_path / "src").glob("*.c"))] + [str(tmp_path / "drive.c")]
    include = [f"-I{tmp_path / 'include'}", f"-I{tmp_path / 'src'}"]
    subprocess.run([gcc, *flags, *include, *sources, "-o", str(tmp_path / "gcc.so")], check=True)
    host = load_host(Path(tmp_path / "gcc.so"))
    assert sum(off(host, kernel) for kernel in kernels) == 0
