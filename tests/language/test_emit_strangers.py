"""The C of a stranger's kernel: what stands above it, primitives of its own, names that collide, notebook cells."""

import ctypes

import pytest
from compiled_c import library, off

from sensorsim.codegen.package_options import choose
from sensorsim.language.c.translation_units import c_sources
from sensorsim.language.load import find
from sensorsim.language.parse import LanguageError


def test_every_function_says_what_is_proved_of_it():
    (kernel,) = choose(["release_stairs"], "lean")
    texts = c_sources([kernel], "ss_", [], "")
    assert "Proved: returns 0 .. 32768; no operation wraps and no index leaves its array" in texts["src/ss_spof.h"]
    for path, functions in (("src/ss_stairs.h", 2), ("src/ss_release_kernels.c", 1), ("include/ss_kernels.h", 1)):
        assert texts[path].count("* Proved: ") == texts[path].count("* Secrecy: ") == functions, path
    header = " ".join(texts["include/ss_kernels.h"].replace("*", " ").split())
    assert "on a core with a data cache keep the table in memory that is not cached" in header


OWN = '''
from sensorsim.language import Q, Span, addu, kernel, primitive

WORD = Q("word", "u32", 0, 0, 2**32 - 1, "")
TEXT = """\\
/* a * a, the upper word. */
static inline uint32_t ss_square(uint32_t a)
{{
    return (uint32_t)(((uint64_t)a * a) >> 32);
}}
"""


@primitive("MUL", operands="u32", result="u32", interval=lambda a: Span(0, 2**32 - 1), {form})
def square(a):
    return (a * a) >> 32


@kernel()
def energy(a: WORD) -> WORD:
    """A stranger's operation."""
    return square(a)
'''


def own(folder, form):
    folder.mkdir()
    (folder / "own.py").write_text(OWN.format(form=form), "utf-8")
    return find(str(folder / "own.py:energy"))


def test_a_stranger_s_primitive_brings_its_own_c(tmp_path):
    kernels = own(tmp_path / "a", 'c="ss_square({0})", helper=TEXT')
    texts, host = library(kernels, tmp_path / "package", prefix="acme_")
    assert texts["src/acme_arithmetic.h"].count("static inline uint32_t acme_square(uint32_t a)") == 1
    assert "acme_asr" not in texts["src/acme_arithmetic.h"]  # only what is used
    run = host.acme_energy
    run.restype, run.argtypes = ctypes.c_uint32, [ctypes.c_uint32]
    assert [run(a) for a in (0, 2**16, 2**32 - 1)] == [0, 1, 2**32 - 2]


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ('c=""', r"own\.py:\d+: in kernel energy, the primitive square \(own\.py:\d+\) has no C form"),
        ('c="ss_square({0})"', r"own\.py:\d+: .* calls ss_square, which no helper= of it defines"),
        ('c="{0} * {1}"', r"own\.py:\d+: .* has braces for other operands"),
    ],
)
def test_a_missing_c_form_is_an_error_with_its_place(form, message, tmp_path):
    with pytest.raises(LanguageError, match=message):
        c_sources(own(tmp_path / "a", form), "ss_", [], "")


def test_two_helpers_of_one_name_are_refused(tmp_path):
    one = own(tmp_path / "a", 'c="ss_square({0})", helper=TEXT')
    other = own(tmp_path / "b", 'c="ss_square({0})", helper=TEXT.replace("32", "31")')
    with pytest.raises(LanguageError, match=r"own\.py:\d+: the helper ss_square\(\) has another text"):
        c_sources([*one, *other], "ss_", [], "")


def test_names_and_files_that_collide_get_others(tmp_path):
    """A stranger's spof.py with a kernel `total` that calls dpsgd's, and another number under the name HALF."""
    (tmp_path / "spof.py").write_text(
        "from sensorsim.kernels.dpsgd import total as theirs\n"
        "from sensorsim.kernels.formats import ALPHA, SQUARE, WORD32, X, N\n"
        "from sensorsim.kernels.spof import feature, linear\n"
        "from sensorsim.language import add, addu, kernel\n"
        "HALF = 3\n"
        "@kernel()\ndef total(square: SQUARE['n'], n: N) -> WORD32:\n    return theirs(square, n)\n"
        "@kernel()\ndef both(x: X) -> ALPHA:\n    return add(linear(feature(x)), HALF)\n",
        "utf-8",
    )
    kernels = find(str(tmp_path / "spof.py"))
    texts, host = library(kernels, tmp_path / "package")
    assert {"src/ss_spof.h", "src/ss_spof_2.c", "src/ss_dpsgd.h"} <= set(texts)
    assert "return ss_dpsgd_total(square, n);" in texts["src/ss_spof_2.c"]
    assert {"#define SS_HALF_3 3", "#define SS_HALF_16384 16384"} <= set(texts["src/ss_constants.h"].splitlines())
    assert sum(off(host, kernel) for kernel in kernels) == 0


def test_comments_come_from_a_cell_that_has_no_file():
    """As a notebook does it: a cell in Python's line cache."""
    import linecache

    text = (
        "from sensorsim.kernels.formats import ALPHA\nfrom sensorsim.language import kernel, sub\n"
        "@kernel()\ndef cell(a: ALPHA) -> ALPHA:\n    # typed, not saved\n    return sub(0, a)\n"
    )
    name = "<ipython-input-7-abc>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    scope = {"__name__": "__main__"}
    exec(compile(text, name, "exec"), scope)
    assert "    /* typed, not saved */\n    return 0 - a;" in scope["cell"].c()["src/ss_notebook.c"]


PLAIN = """
from sensorsim.kernels.formats import WORD32, X
from sensorsim.language import Length, Q, geu, i32, kernel, u32
H = Q("h", "i16", 0, -5, 5, "h")
"""


def plain(folder, text):
    folder.mkdir(exist_ok=True)
    (folder / "plain.py").write_text(PLAIN + text, "utf-8")
    return find(str(folder / "plain.py"))


def without_warnings(kernels, folder):
    """The package's C, compiled by the compiler and by gcc with all warnings as errors; it gives Numba's bits."""
    from sensorsim.machine.targets import check_with_gcc

    texts, host = library(kernels, folder)
    check_with_gcc(sorted((folder / "src").glob("*.c")), [folder / "include", folder / "src"])
    assert sum(off(host, kernel) for kernel in kernels) == 0
    return texts


def test_a_parameter_that_is_given_a_value_and_never_read_is_no_warning(tmp_path):
    text = "@kernel()\ndef k(x: H, y: X) -> X:\n    x = i32(5)\n    return y\n"
    made = without_warnings(plain(tmp_path, text), tmp_path / "package")["src/ss_plain.c"]
    assert "    int32_t x_now = x;\n    (void)x_now; /* not used */\n    x_now = 5;\n" in made


def test_names_in_capitals_are_not_those_of_macros(tmp_path):
    text = (
        "@kernel()\ndef k(UINT32_MAX: WORD32, NULL: H['SIZE_MAX'], SIZE_MAX: Length('SIZE_MAX', 1, 9, '')) -> WORD32:\n"
        "    EOF = UINT32_MAX\n    INT8_MIN = i32(0)\n    for I in range(SIZE_MAX):\n        INT8_MIN = i32(NULL[I])\n"
        "    if geu(u32(INT8_MIN), EOF):\n        EOF = u32(7)\n    return EOF\n"
    )
    kernels = plain(tmp_path, text)
    texts = without_warnings(kernels, tmp_path / "package")
    assert "ss_k(uint32_t UINT32_MAX_, const int16_t NULL_[], uint32_t SIZE_MAX_);" in texts["include/ss_kernels.h"]


@pytest.mark.parametrize("other", ["f", "u32(f)"])
def test_a_value_beside_itself_is_no_comparison_of_c(other, tmp_path):
    text = f"@kernel()\ndef k(f: WORD32) -> WORD32:\n    if geu(f, {other}):\n        f = 7\n    return f\n"
    made = without_warnings(plain(tmp_path, text), tmp_path / "package")["src/ss_plain.c"]
    assert "    if (ss_geu(f, f) != 0U) {" in made
