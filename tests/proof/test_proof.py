"""Machine code against kernels for every input: meanings of primitives, proofs that hold, faults that are found."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("bitwuzla")
pytest.importorskip("pypcode")

from bitwuzla import Kind

from sensorsim._util.files import fill
from sensorsim.language import primitives
from sensorsim.language.c.declarations import known_tables
from sensorsim.language.c.identifiers import Names
from sensorsim.language.c.translation_units import c_sources
from sensorsim.language.load import find
from sensorsim.language.primitive import Primitive
from sensorsim.machine.elf import read_elf
from sensorsim.machine.targets import TARGETS, compile_elf
from sensorsim.proof.bitvectors import Solver, known, manager, signed, unknown
from sensorsim.proof.equivalence import PROVED, REFUTED, prove_function
from sensorsim.proof.kernel_meaning import MEANINGS

SHIPPED = {one.name: one for one in vars(primitives).values() if isinstance(one, Primitive)}
WIDTH = {"u32": 32, "i32": 32, "i64": 64, "flag": 1}
EDGES = (0, 1, 2, 5, 31, 2**15, 2**31 - 1, 2**31, 2**32 - 1)


def as_python(bits, kind):
    return signed(bits, WIDTH[kind]) if kind[0] == "i" else bool(bits) if kind == "flag" else bits


def as_bits(value, kind):
    return int(value) & ((1 << WIDTH[kind]) - 1)


def expected(one, numbers):
    """What the primitive's own Python function gives, as bits."""
    return as_bits(one(*(as_python(n, kind) for n, kind in zip(numbers, one.operands, strict=True))), one.result)


def operand(kind):
    return st.one_of(st.sampled_from(EDGES), st.integers(0, 2**64 - 1)).map(lambda n: n & ((1 << WIDTH[kind]) - 1))


def in_range(name, numbers):
    """Shift counts are 0 … 31, and those of a rotation 1 … 31."""
    if name in ("shl", "shlu", "asr", "shru", "wrapping_shlu", "asr64", "narrow"):
        return [numbers[0], numbers[1] % 32]
    return [numbers[0], numbers[1] % 31 + 1] if name == "rotlu" else numbers


def test_every_primitive_has_a_meaning_on_bit_vectors():
    assert MEANINGS.keys() == SHIPPED.keys()


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_a_meaning_is_that_of_the_python_function(name):
    one = SHIPPED[name]

    @settings(deadline=None)
    @given(st.tuples(*map(operand, one.operands)))
    def check(drawn):
        numbers = in_range(name, list(drawn))
        made = MEANINGS[name](*(known(n, WIDTH[kind]) for n, kind in zip(numbers, one.operands, strict=True)))
        assert made.number is not None
        assert made.number & ((1 << WIDTH[one.result]) - 1) == expected(one, numbers)

    check()


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_the_solver_agrees_with_what_is_computed_at_once(name):
    one, solver = SHIPPED[name], Solver(20)
    for place in range(3):
        numbers = in_range(name, [EDGES[(7 * place + i) % len(EDGES)] & ((1 << WIDTH[k]) - 1)
                                  for i, k in enumerate(one.operands, 5)])  # fmt: skip
        inputs = [unknown(f"{name}_{place}_{i}", WIDTH[kind]) for i, kind in enumerate(one.operands)]
        made = MEANINGS[name](*inputs)
        fixed = [manager.mk_term(Kind.EQUAL, [value.term, known(n, value.width).term])
                 for value, n in zip(inputs, numbers, strict=True)]  # fmt: skip
        wanted = manager.mk_term(Kind.EQUAL, [made.term, known(expected(one, numbers), made.width).term])
        assert solver.holds(wanted, fixed), (name, numbers)


def build(name, target, folder, change=("", "")):
    """A kernel's compiled function, with one text of its C replaced by another."""
    (kernel,) = find(name)
    texts = c_sources([kernel], "ss_", known_tables([kernel], "ss_"), "")
    if change[0]:
        (path,) = (path for path, text in texts.items() if f"ss_{kernel.name}(" in text and change[0] in text)
        texts[path] = texts[path].replace(*change)
    fill(folder, texts)
    function = Names([kernel], "ss_").functions[kernel]
    sources = sorted((folder / "src").glob("*.c"))
    out = compile_elf(TARGETS[target], sources, [folder / "include", folder / "src"], function, folder / "out.elf")
    return kernel, read_elf(out.read_bytes()), TARGETS[target], function, kernel.lengths_at({})


@pytest.mark.parametrize("target", ["cortex-m0plus", "cortex-m4", "rv32imc", "k7"])
@pytest.mark.parametrize("name", ["rows_search.sampled_rows_search_one", "chacha20.chacha20", "packet.pack_head"])
def test_compiled_kernels_are_proved_for_every_input(name, target, tmp_path):
    found = prove_function(*build(name, target, tmp_path))
    assert (found.outcome, found.reason) == (PROVED, "")
    assert found.instructions > 0


@pytest.mark.parametrize("target", ["cortex-m0plus", "rv32imc"])
def test_paths_that_fork_on_public_values_are_joined_where_they_meet(target, tmp_path):
    found = prove_function(*build("journal.spend", target, tmp_path))
    assert (found.outcome, found.reason, found.paths) == (PROVED, "", 1)


@pytest.mark.parametrize("target", ["cortex-m0plus", "rv32imc"])
def test_a_fault_on_one_of_the_joined_paths_is_found(target, tmp_path):
    wrong = ("return ss_geu_near(spent, budget);", "return ss_geu_near(spent, budget) ^ (uint32_t)(now == 77U);")
    found = prove_function(*build("journal.spend", target, tmp_path, wrong))
    assert found.outcome == REFUTED
    assert found.counterexample["now"] == 77


@pytest.mark.parametrize("target", ["cortex-m0plus", "rv32imc", "k7"])
def test_one_wrong_word_in_2_to_32_is_found(target, tmp_path):
    wrong = ("return ", "return (uint32_t)(word == 0x9E3779B9U) ^ ")
    found = prove_function(*build("choice.choose", target, tmp_path, wrong))
    assert found.outcome == REFUTED
    assert found.counterexample["word"] == 0x9E3779B9


def test_a_branch_on_a_secret_is_found(tmp_path):
    branch = ("return ", 'if (word == 0x9E3779B9U) { __asm__ volatile("nop"); }\n    return ')
    found = prove_function(*build("choice.choose", "cortex-m0plus", tmp_path, branch))
    assert found.outcome == REFUTED
    assert "branch" in found.reason


def test_a_store_outside_of_the_outputs_is_found(tmp_path):
    store = ("return ", "*(volatile uint32_t *)0x20000000U = word;\n    return ")
    found = prove_function(*build("choice.choose", "rv32imc", tmp_path, store))
    assert found.outcome == REFUTED
    assert "writes" in found.reason
