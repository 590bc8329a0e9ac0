"""Three columns by construction: a secret branch, a secret address and a secret division each show in their own."""

import re
from dataclasses import replace

import pytest

from sensorsim._util.errors import InputError
from sensorsim._util.files import fill
from sensorsim.codegen.kernels_package import make_package
from sensorsim.codegen.manifest import open_package
from sensorsim.codegen.package_options import Options
from sensorsim.codegen.write import write_folder
from sensorsim.machine.counting import Spread
from sensorsim.machine.elf import read_elf
from sensorsim.machine.emulator import Machine
from sensorsim.machine.targets import COUNTED, SHOWN, TARGETS, Ziglang, check_targets, compile_elf
from sensorsim.machine.watching import Watch
from sensorsim.verification.bits import Effort, KernelResult, Work
from sensorsim.verification.kernel_timing import TimedOperation, describe_leaks, timing_cells, timing_lines
from sensorsim.verification.sensor_timing import CallResult, Calls, Touches, timing_proofs
from sensorsim.verification.verification import paths

KERNELS = """
from sensorsim.kernels.formats import WORD32
from sensorsim.language import Q, and_, divu, geu, kernel, min_, mulu, xor

ENTRY = Q("entry", "u32", 0, 0, 2**32 - 1, "an entry of a table; nothing secret")
COUNT = Q("count", "u32", 0, 1, 1000, "a public number")
SIGNED = Q("signed", "i32", 0, -2**30, 2**30, "a secret number", secret=True)


@kernel(exposes={"branch": "a test"})
def branches(word: WORD32) -> WORD32:
    if geu(word, 2147483648):
        word = xor(word, 5)
        word = and_(word, 77)
    return word


@kernel(exposes={"address": "a test"})
def looks_up(word: WORD32, table: ENTRY["16"]) -> WORD32:
    return table[and_(word, 15)]


@kernel(exposes={"operation": "a test"})
def divides(word: WORD32, count: COUNT) -> WORD32:
    return divu(word, count)


@kernel()
def divides_in_public(word: WORD32, a: ENTRY, count: COUNT) -> WORD32:
    return xor(word, divu(a, count))


@kernel()
def multiplies(word: WORD32, a: WORD32) -> WORD32:
    return xor(mulu(and_(word, 65535), and_(a, 65535)), a)


@kernel(exposes={"operation": "a test"})
def multiplies_and_divides(word: WORD32, count: COUNT) -> WORD32:
    return divu(mulu(and_(word, 65535), and_(word, 32767)), count)


@kernel(exposes={"branch": "a test"})
def multiplies_on_one_way(word: WORD32, a: WORD32) -> WORD32:
    if geu(word, 2147483648):
        a = mulu(and_(word, 65535), and_(a, 65535))
    return a


@kernel()
def mixes(word: WORD32, table: ENTRY["16"]) -> WORD32:
    for i in range(16):
        word = xor(word, table[i])
    return word


@kernel()
def smaller(a: SIGNED, b: SIGNED) -> SIGNED:
    return min_(a, b)
"""
FEW = Effort(host=100, core=80, edges=16, watched=40)
CORES = ("cortex-m0plus", "cortex-m4", "rv32imc")


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    folder = tmp_path_factory.mktemp("timing")
    (folder / "timed.py").write_text(KERNELS, "utf-8")
    write_folder(folder / "package", make_package(Options((str(folder / "timed.py"),))))
    (folder / "build").mkdir()
    return Work(open_package(folder / "package"), folder / "build", FEW, 0)


def on(work, target, name):
    (kernel,) = (kernel for kernel in work.package.kernels if kernel.name == name)
    result = work.on_core(TARGETS[target], kernel)
    assert result.differing_bits == 0
    assert result.passed
    return result


@pytest.mark.parametrize("target", CORES)
def test_what_depends_on_nothing_is_proved_in_all_three(work, target):
    result = on(work, target, "mixes")
    assert timing_cells(result) == ("proved", "proved", "none")
    assert result.sequences_by_secret == result.addresses_by_secret == 1
    assert timing_lines(result) == []


@pytest.mark.parametrize("target", CORES)
def test_a_secret_branch_is_in_the_first_column_and_named(work, target):
    result = on(work, target, "branches")
    path, _, operations = timing_cells(result)
    assert re.fullmatch(r"no, 2 in \d+ tried", path) or result.sequences == 1  # a compiler may make it a choice
    if result.sequences == 2:
        (line,) = result.varying
        assert re.search(r"^ss_branches \(`b\w+.*` at 0x[0-9a-f]+\): depends on `if geu\(word, 2147483648\)`", line)
    else:
        assert path == f"no by its source, {result.tried} tried"
    assert operations == "none"


@pytest.mark.parametrize("target", CORES)
def test_a_secret_address_is_in_the_second_column_and_named(work, target):
    result = on(work, target, "looks_up")
    path, addresses, operations = timing_cells(result)
    assert (path, operations) == ("proved", "none")
    # 40 calls in two sets of one public input each: one address for each of 16 entries at most
    assert 2 <= result.addresses_by_secret <= 16
    assert addresses == f"no, {result.addresses_by_secret} in {result.watched} tried"
    (line,) = timing_lines(result)
    assert re.search(
        r"not the same addresses .* ss_looks_up \(`.*(ldr|lw).*` at 0x[0-9a-f]+\): the read of table", line
    )


@pytest.mark.parametrize(
    ("target", "shown"),
    [
        ("cortex-m3", "1 division (2–12 cycles)"),
        pytest.param("cortex-m4", "1 division (2–12 cycles)", marks=pytest.mark.slow),
        pytest.param("cortex-m33", "1 division (2–11 cycles)", marks=pytest.mark.slow),
        ("cortex-m0plus", "1 __aeabi_uidiv"),
        ("rv32ec", "1 __udivsi3"),
        pytest.param("rv32imc", "1 division (", marks=pytest.mark.slow),
        pytest.param("rv32emc", "1 division (", marks=pytest.mark.slow),
        ("cv32e40p", "1 division (3–35 cycles)"),
        pytest.param("k7", "1 division (", marks=pytest.mark.slow),
    ],
)
def test_a_secret_division_is_in_the_third_column_on_every_core(work, target, shown):
    result = on(work, target, "divides")
    assert timing_cells(result)[2].startswith(shown)
    assert not result.same_time


@pytest.mark.parametrize("target", ["cortex-m4", "cv32e40p"])
def test_a_division_that_no_secret_reaches_is_proved(work, target):
    result = on(work, target, "divides_in_public")
    assert [operation.count for operation in result.operations] == [1]
    assert timing_cells(result) == ("proved", "proved", "none on secrets, proved")


@pytest.mark.parametrize("target", ["cortex-m0plus", "rv32ec"])
def test_a_public_division_by_the_runtime_is_tried_and_not_proved(work, target):
    result = on(work, target, "divides_in_public")
    assert result.operations
    assert not any(operation.on_data for operation in result.operations)
    assert timing_cells(result)[2].startswith("none on secrets")
    assert not result.proved_same_path


@pytest.mark.parametrize("target", ["rv32emc", "rv32ec"])
def test_a_product_takes_one_path_without_a_multiplier_too(work, target):
    assert timing_cells(on(work, target, "multiplies")) == ("proved", "proved", "none")


class Called(Ziglang):
    """A build that takes the compiler's own product where the core has no multiplier."""

    def elf(self, target, sources, include, entry, out, options=()):
        return super().elf(target, sources, include, entry, out, (*options, "-DSS_HW_MUL"))


@pytest.mark.parametrize("name", ["multiplies", "multiplies_and_divides", "multiplies_on_one_way"])
def test_a_product_of_the_runtime_on_secrets_fails_whatever_is_declared_beside_it(work, name, tmp_path):
    """RV32E without M: __mulsi3 runs as many rounds as the operand has bits."""
    (kernel,) = (kernel for kernel in work.package.kernels if kernel.name == name)
    result = Work(work.package, tmp_path, FEW, 0, Called()).on_core(TARGETS["rv32ec"], kernel)
    assert result.differing_bits == 0 and not result.passed and not result.proved_same_path
    assert "time of 1 __mulsi3" in result.leaks
    (told,) = describe_leaks([result])
    assert "on rv32ec: secrets change the " in told and "1 __mulsi3" in told
    (proof,) = paths([result])
    assert not proof.passed and proof.detail == told and "proved" not in proof.detail
    if name == "multiplies":
        assert result.leaks[0].startswith("path (") and "__mulsi3 (`c.b" in told
    assert on(work, "rv32ec", name).leaks == ()


def test_a_call_of_the_sensor_fails_on_what_no_kernel_declares(work):
    """The decision alone: a path, an address or an operand that changes with the record."""
    spread, kernels = Spread(1, 1, 1), {one.name: one for one in work.package.kernels}

    def failed(path, addresses, operations, *names):
        release = CallResult("release", 9, spread, None, "cycles", 0, path, (), ())
        calls = Calls((release,), Touches(9, addresses, 1, "a load", operations), 0, ())
        package = replace(work.package, kernels=tuple(kernels[name] for name in names))
        return [one.name for one in timing_proofs(calls, package) if not one.passed]

    assert failed(1, 1, (), "mixes") == []
    assert failed(2, 1, (), "mixes", "looks_up") == ["path"]
    assert failed(2, 1, (), "mixes", "branches") == []
    assert failed(1, 2, (), "mixes", "branches") == ["addresses"]
    assert failed(1, 2, (), "mixes", "looks_up") == []
    assert failed(1, 1, ("a division",), "mixes", "looks_up") == ["operations"]
    assert failed(1, 1, ("a division",), "mixes", "divides") == []


def test_what_is_declared_passes_and_what_is_not_fails():
    """The decision alone, with results made by hand."""
    plain = KernelResult("k", "core", 1, 0, secrets=("x",), sequences=1, sequences_by_secret=1, addresses_by_secret=1)
    product, division = (TimedOperation(name, 1, None, None, True) for name in ("__mulsi3", "__udivsi3"))
    branch = replace(plain, sequences=3, sequences_by_secret=3)
    address = replace(plain, addresses_by_secret=2)
    slow, divides = replace(plain, operations=(product,)), replace(plain, operations=(division,))
    assert plain.passed and not any(one.passed for one in (branch, address, slow, divides))
    for one in (branch, address, slow, divides):
        assert replace(one, secrets=()).passed  # nothing is secret
        assert not replace(one, proved_same_path=True, proved_same_addresses=True, proved_operations=True).passed
        assert not next(paths([one])).passed
    declared = {"branch": (branch,), "loop": (branch,), "address": (address,), "operation": (branch, divides)}
    for kind, allowed in declared.items():
        for one in (branch, address, slow, divides):
            assert replace(one, declared=(kind,)).passed == (one in allowed), (kind, one)
    assert not replace(branch, declared=("operation",), own_sequences=2).passed  # not the runtime's division
    assert list(paths([replace(plain, sequences=None)])) == []  # this machine's own code is not watched


BRANCHY = """
#include <stdint.h>
int32_t ss_smaller(int32_t a, int32_t b);
int32_t ss_smaller(int32_t a, int32_t b) { if (a < b) { return a; } return b; }
"""


class Careless(Ziglang):
    """The same function as a careless hand and a debug build make it: a branch on the operands."""

    def elf(self, target, sources, include, entry, out, options=()):
        if entry == "ss_smaller":
            source = out.with_suffix(".c")
            source.write_text(BRANCHY, "utf-8")
            sources, options = [source], ("-O0", "-fno-sanitize=all")
        return super().elf(target, sources, include, entry, out, options)


@pytest.mark.parametrize("target", ["cortex-m3", "cortex-m4", "rv32imc"])
def test_a_branch_that_another_compiler_makes_breaks_the_proof(work, target, tmp_path):
    careless = Work(work.package, tmp_path, FEW, 0, Careless())
    (kernel,) = (kernel for kernel in work.package.kernels if kernel.name == "smaller")
    result = careless.on_core(TARGETS[target], kernel)
    assert result.differing_bits == 0
    assert result.leaks[0].startswith("path (")
    assert not result.passed
    assert any(re.search(r"ss_smaller \(`b\w+ .*` at 0x[0-9a-f]+", line) for line in result.varying)
    assert on(work, target, "smaller").proved_same_path


TOUCHES = """
#include <stdint.h>
uint32_t ss_f(const uint32_t *table, uint32_t place, uint32_t divisor);
uint32_t ss_f(const uint32_t *table, uint32_t place, uint32_t divisor) { return table[place] / divisor; }
"""


@pytest.mark.parametrize("target", ["cortex-m3", "rv32imc"])
def test_fingerprints_follow_addresses_and_operands_and_nothing_else(target, tmp_path):
    (tmp_path / "f.c").write_text(TOUCHES, "utf-8")
    out = compile_elf(TARGETS[target], [tmp_path / "f.c"], [], "ss_f", tmp_path / "f.elf")
    machine = Machine(TARGETS[target], read_elf(out.read_bytes()))
    from sensorsim.costing.prices import load_cpu
    from sensorsim.machine.instructions import Decoder

    start, size = machine.program.symbols["ss_f"]
    decoder = Decoder(TARGETS[target], load_cpu(TARGETS[target].cpu))
    (divide,) = (one for one in decoder.block(start & ~1, machine.read_code(start & ~1, size)) if one.timed)
    table = machine.places.arguments
    machine.uc.mem_write(table, (7).to_bytes(4, "little") * 8)

    def touched(place, divisor):
        machine.call("ss_f", [table, place, divisor])
        return watch.take()

    with Watch(machine, {divide.address: divide.reads}) as watch:
        first, again, moved, other = touched(1, 3), touched(1, 3), touched(2, 3), touched(1, 4)
    assert first == again
    assert first.path == moved.path == other.path
    assert first.addresses == other.addresses != moved.addresses
    assert first.operands == moved.operands != other.operands
    assert machine.call("ss_f", [table, 5, 2]) == 3
    assert watch.take().addresses == 0  # outside of `with` nothing is watched


def test_texts_of_operations():
    assert TimedOperation("divisions", 36, 2.0, 12.0, True).text("cycles") == "36 divisions (2–12 cycles)"
    assert TimedOperation("divisions", 1, 38.0, 38.0, True).text("cycles") == "1 division (38 cycles, fewer by zero)"
    assert TimedOperation("__mulsi3", 3, None, None, True).text("cycles") == "3 __mulsi3"


def test_printed_dpsgd_never_takes_the_same_time_where_there_is_a_divider(tmp_path):
    """The paper's 36 divisions: 14 + 7 + 1 + 14."""
    from sensorsim.costing.prices import load_cpu
    from sensorsim.language.load import shipped
    from sensorsim.machine.counting import BlockCounter, Tally
    from sensorsim.machine.harness import CoreRun
    from sensorsim.machine.instructions import Decoder
    from sensorsim.machine.vectors import random_vectors, with_one_public_input
    from sensorsim.verification.kernel_timing import watch

    kernel = shipped()["dpsgd.dpsgd"]
    fill(tmp_path, kernel.c())
    sources, include = sorted(tmp_path.rglob("*.c")), [tmp_path / "include", tmp_path / "src"]
    vectors = with_one_public_input(random_vectors(kernel, {}, 30, 0))
    for name in ("cortex-m3", "cortex-m4"):
        elf = compile_elf(TARGETS[name], sources, include, "ss_dpsgd", tmp_path / f"{name}.elf")
        machine, tally = Machine(TARGETS[name], read_elf(elf.read_bytes())), Tally()
        counter = BlockCounter(machine, Decoder(TARGETS[name], load_cpu(name)))
        for _ in CoreRun(machine, vectors, "ss_dpsgd").calls():
            counter.take(tally)
        (divisions,) = watch([vectors], counter, tally, "ss_dpsgd", "ss_").operations
        assert divisions.on_data
        assert divisions.text("cycles") == "36 divisions (2–12 cycles)"


@pytest.mark.slow
def test_measured_at_the_package_s_own_sizes_and_constants(tmp_path):
    from dataclasses import replace

    from sensorsim.codegen.sensor_package import default_table
    from sensorsim.noise.table_file import write_table
    from sensorsim.verification.bits import fixed_arguments

    table = replace(default_table(), features=9)
    path = tmp_path / "table.txt"
    write_table(path, table)
    write_folder(tmp_path / "package", make_package(Options(("sampled",), noise=path)))
    package = open_package(tmp_path / "package")
    (kernel,) = package.kernels
    lengths, values = fixed_arguments(package, kernel)
    _, entries = table.c_array()
    assert lengths["n"] == 9
    assert values["table"] == list(entries)
    result = Work(package, tmp_path, FEW, 0).on_core(TARGETS["cortex-m4"], kernel)
    assert result.lengths == lengths
    assert result.differing_bits == 0


def test_new_targets_and_their_names():
    assert set(SHOWN) < set(TARGETS)
    assert {"cortex-m33", "rv32emc", "cv32e40p"} <= set(check_targets(TARGETS))
    assert TARGETS["cv32e40p"].mcpu == TARGETS["rv32imc"].mcpu
    with pytest.raises(InputError, match="not known; there are host, k7"):
        check_targets(["rv64"])


def test_an_avr_is_compared_and_counted_and_never_called_proved(work):
    (kernel,) = (kernel for kernel in work.package.kernels if kernel.name == "mixes")
    result = work.on_core(COUNTED["avr"], kernel)
    assert result.differing_bits == 0
    assert result.passed
    assert timing_cells(result) == (f"tried {result.tried}: yes", f"tried {result.watched}: yes", "none")
    assert result.price.mean >= result.instructions.mean
    assert check_targets(["avr"]) == ["avr"]


EIGHT = """
#include <stdint.h>
uint32_t ss_f(uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t e, uint32_t f, uint32_t g, uint32_t h);
uint32_t ss_f(uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t e, uint32_t f, uint32_t g, uint32_t h)
{ return a + 10U * b + 100U * c + 1000U * d + 10000U * e + 100000U * f + 1000000U * g + 10000000U * h; }
"""


@pytest.mark.parametrize("target", ["cortex-m33", "rv32imc", "rv32emc", "rv32ec", "k7"])
def test_arguments_beyond_the_registers_lie_on_the_stack(target, tmp_path):
    """RV32E passes six in registers, RV32I eight, Arm four, x86 none."""
    (tmp_path / "f.c").write_text(EIGHT, "utf-8")
    out = compile_elf(TARGETS[target], [tmp_path / "f.c"], [], "ss_f", tmp_path / "f.elf")
    assert Machine(TARGETS[target], read_elf(out.read_bytes())).call("ss_f", [1, 2, 3, 4, 5, 6, 7, 8]) == 87654321


@pytest.mark.slow
def test_every_shipped_kernel_can_be_exported_and_verified(tmp_path):
    """A package of each alone: its driver compiles, and its bits are the kernel's on this machine and on a core."""
    from sensorsim.language.load import shipped

    for name in (name for name, kernel in shipped().items() if not kernel.records):
        write_folder(tmp_path / name, make_package(Options((name,))))
        (tmp_path / "build" / name).mkdir(parents=True)
        work = Work(open_package(tmp_path / name), tmp_path / "build" / name, Effort(host=100, core=60, edges=16), 0)
        for kernel in work.package.kernels:
            for result in (work.on_host(kernel), work.on_core(TARGETS["cortex-m0plus"], kernel)):
                assert result.passed, (name, result.target, timing_lines(result))


@pytest.mark.parametrize("name", ["stairs.pick_stair", "spof.stabilize"])
def test_small_kernels_by_themselves(name, tmp_path):
    write_folder(tmp_path / "package", make_package(Options((name,))))
    work = Work(open_package(tmp_path / "package"), tmp_path, FEW, 0)
    (kernel,) = work.package.kernels
    assert work.on_host(kernel).passed
    assert work.on_core(TARGETS["rv32emc"], kernel).passed
