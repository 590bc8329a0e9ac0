"""Verify: the machine code gives Numba's bits, and what is counted is what ran."""

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from exported import refresh

from sensorsim._util.errors import FailedProofError, InputError
from sensorsim._util.files import fill
from sensorsim.codegen.kernels_package import make_package
from sensorsim.codegen.manifest import open_package
from sensorsim.codegen.package_options import Options
from sensorsim.codegen.write import write_folder
from sensorsim.commands.program import main
from sensorsim.costing.prices import Cpu, load_cpu
from sensorsim.language.load import find, shipped
from sensorsim.machine.counting import BlockCounter, Tally
from sensorsim.machine.elf import read_elf
from sensorsim.machine.emulator import Machine
from sensorsim.machine.harness import run_on_core
from sensorsim.machine.instructions import Decoder
from sensorsim.machine.targets import TARGETS, TRAP, compile_elf, zig_cc
from sensorsim.machine.vectors import edge_vectors, expected
from sensorsim.verification.bits import Effort, Work
from sensorsim.verification.verification import verify

FEW = Effort(host=400, core=200, edges=16)
DEBUG = ("-O0", "-fno-sanitize=all")  # ziglang adds the sanitizer to a debug build


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    folder = tmp_path_factory.mktemp("verify") / "package"
    write_folder(folder, make_package(Options(("spof", "release_stairs"))))
    return folder


def machine_for(name, source, entry, folder, options=()):
    fill(folder, {"try.c": source})
    out = compile_elf(TARGETS[name], [folder / "try.c"], [], entry, folder / f"{name}.elf", options)
    return Machine(TARGETS[name], read_elf(out.read_bytes()))


def counted(machine, name):
    return BlockCounter(machine, Decoder(TARGETS[name], load_cpu(TARGETS[name].cpu)))


def test_bits_counts_and_memory_on_one_core(package):
    report = verify(package, ["host", "cortex-m3"], FEW)
    assert report.passed
    results = {(result.kernel, result.target): result for result in report.results}
    assert {place: result.differing_bits for place, result in results.items()} == {
        ("spof_lean", "host"): 0,
        ("release_stairs", "host"): 0,
        ("spof_lean", "cortex-m3"): 0,
        ("release_stairs", "cortex-m3"): 0,
    }
    spof = results["spof_lean", "cortex-m3"]
    assert spof.vectors > 200 and spof.sequences == 1 and spof.varying == ()
    assert spof.proved_same_path and spof.constant_time
    assert spof.instructions.min == spof.instructions.max == sum(spof.classes.values())
    assert spof.classes["store"] == 2 * 14  # alpha2 and alpha3 of 14 features
    assert spof.classes["load"] >= 3 * 14  # x, word and noise
    assert spof.price.mean > spof.instructions.mean
    assert spof.ram_bytes == 0
    assert spof.runtime == ()
    assert report.ubsan_vectors > 400


def altered(package, folder):
    """A copy whose C is altered together with its hash in the manifest: only running it can tell."""
    copy = shutil.copytree(package, folder / "package")
    source = copy / "src" / "ss_spof_lean.c"
    source.write_text(source.read_text().replace("ss_asr(noisy, 1U)", "ss_asr(noisy, 2U)"))
    refresh(copy)
    return copy


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cortex-m3"])
def test_altered_code_with_its_hash_altered_too_fails_when_run(target, package, tmp_path, capsys):
    copy = altered(package, tmp_path)
    with pytest.raises(SystemExit) as caught:
        main(["verify", str(copy), "--target", target, "--random-core", "50", "--random-host", "50"])
    assert caught.value.code == 1
    message = f"the self-test fails on {target} at vector 1 (ss_spof_lean): the C and the kernel differ there"
    assert message in " ".join(capsys.readouterr().out.split())
    with pytest.raises(SystemExit) as caught:
        main(["verify", str(package / "absent")])
    assert caught.value.code == 2
    assert "no package" in capsys.readouterr().err


def test_other_bits_or_a_stop_of_the_build_with_ubsan_is_a_failed_proof(package, tmp_path, monkeypatch):
    work = Work(open_package(altered(package, tmp_path)), tmp_path, FEW, 0)
    with pytest.raises(
        FailedProofError, match=r"UBSan fails at vector 1 \(ss_spof_lean\): the C and the kernel differ"
    ):
        work.without_undefined_behaviour(work.package.kernels[0])

    def stop(self, name, arguments):
        raise InputError(f"{name} stopped on k7.")

    monkeypatch.setattr(Machine, "call", stop)
    with pytest.raises(FailedProofError, match="undefined behaviour: ss_spof_lean stopped on k7"):
        work.without_undefined_behaviour(work.package.kernels[0])


def test_json_has_a_version_and_every_number(package, capsys):
    few = ["--target", "cortex-m3", "--random-core", "50", "--random-host", "50"]
    main(["verify", str(package), *few, "--format", "json"])
    data = json.loads(capsys.readouterr().out)
    assert data["schema_version"] == 2
    assert data["passed"] is True
    assert data["results"][0]["cost_unit"] == "cycles"
    assert data["results"][0]["classes"]["branch"] > 0
    assert data["results"][0]["sequences_by_secret"] == 1


def test_counts_are_those_of_code_counted_by_hand(tmp_path):
    """On the M3: 3 instructions around a loop of 4, so 3 + 4n, counted from the disassembly below."""
    source = (
        "__attribute__((naked)) void ss_f(void);\n__attribute__((naked)) void ss_f(void) { __asm__("
        '"movs r1, #0\\n1: adds r1, r1, r0\\nnop\\nsubs r0, r0, #1\\nbne 1b\\nmovs r0, r1\\nbx lr\\n"); }\n'
    )
    machine = machine_for("cortex-m3", source, "ss_f", tmp_path, ("-Wno-language-extension-token", "-Wno-pedantic"))
    counter, tally = counted(machine, "cortex-m3"), Tally()
    for n in (1, 2, 10):
        assert machine.call("ss_f", [n]) == n * (n + 1) // 2
        counter.take(tally)
    assert tally.instructions == [3 + 4 * n for n in (1, 2, 10)]
    branch = load_cpu("cortex-m3").instruction("BNE", "rel", 32)
    back = load_cpu("cortex-m3").instruction("BX", "r", 32).typical
    assert tally.prices == [2 + 3 * n + branch.max * (n - 1) + branch.min + back for n in (1, 2, 10)]
    assert len(tally.sequences) == 3
    assert list(tally.varying.values()) == ["ss_f: bne #0x10002"]


def test_stack_is_painted_and_measured(tmp_path):
    source = (
        "#include <stdint.h>\nuint32_t ss_f(uint32_t n);\nuint32_t ss_f(uint32_t n)\n{\n"
        "    volatile uint32_t room[100];\n"
        "    for (uint32_t i = 0U; i < 100U; i++) {\n        room[i] = n;\n    }\n    return room[n];\n}\n"
    )
    machine = machine_for("cortex-m3", source, "ss_f", tmp_path)
    assert machine.call("ss_f", [7]) == 7
    assert 400 <= machine.stack_bytes() <= 440


def test_undefined_behaviour_traps(tmp_path):
    source = "#include <stdint.h>\nint32_t ss_f(int32_t a);\nint32_t ss_f(int32_t a)\n{\n    return a + 1;\n}\n"
    machine = machine_for("k7", source, "ss_f", tmp_path, TRAP)
    assert machine.call("ss_f", [5]) == 6
    with pytest.raises(InputError, match="ss_f stopped on k7"):
        machine.call("ss_f", [2**31 - 1])


def test_an_instruction_without_a_row_has_no_price_and_is_named(tmp_path):
    source = 'void ss_f(void);\nvoid ss_f(void) { __asm__("cpuid" ::: "eax", "ebx", "ecx", "edx"); }\n'
    machine = machine_for("k7", source, "ss_f", tmp_path, ("-Wno-language-extension-token", "-Wno-pedantic"))
    counter, tally = counted(machine, "k7"), Tally()
    machine.call("ss_f", [])
    counter.take(tally)
    assert tally.price is None
    assert tally.parts[next(iter(tally.parts))].classes["other"] == 1
    assert any(note.startswith("cpuid: no price: k7.csv has no row") for note in tally.notes)


@pytest.mark.slow
def test_a_missing_price_is_told_and_the_bits_are_compared_all_the_same(package, monkeypatch, capsys):
    known = Cpu.instruction

    def without_loads(self, mnemonic, operands, width):
        if mnemonic == "LDRH":
            raise InputError("cortex-m3.csv has no row for the instruction LDRH; add one with its source.")
        return known(self, mnemonic, operands, width)

    monkeypatch.setattr(Cpu, "instruction", without_loads)
    report = verify(package, ["cortex-m3"], FEW)
    assert report.passed
    assert all(result.price is None and result.instructions.mean > 0 for result in report.results)
    main(["verify", str(package), "--target", "cortex-m3", "--random-core", "50", "--random-host", "50"])
    out = capsys.readouterr().out
    assert "no price" in out
    assert "cortex-m3: ldrh: no price: cortex-m3.csv has no row" in out or "cortex-m3: ldrh.w: no price" in out


def test_every_kernel_runs_at_short_odd_long_and_typical_lengths(package):
    opened = open_package(package)
    work = Work(opened, Path(), FEW, 0)
    for kernel in opened.kernels:
        ran = [vectors.lengths for vectors, _ in work.sets(kernel)]
        for name, kind in kernel.lengths.items():
            assert {*kind.tests, kind.typical} <= {lengths[name] for lengths in ran}, (kernel.name, name)


PUBLIC = """
from sensorsim.kernels.formats import WORD32
from sensorsim.language import Q, and_, geu, kernel, max_, min_, sub, u32, xor

BYTE = Q("byte", "i8", 0, -128, 127, "")
ROUNDS = Q("rounds", "u8", 0, 0, 9, "as many rounds as one likes")


@kernel()
def mixed(word: WORD32, rounds: ROUNDS) -> WORD32:
    for i in range(rounds):
        word = xor(word, u32(i))
    return word


@kernel()
def narrow(a: BYTE, b: BYTE) -> BYTE:
    return min_(sub(0, max_(a, b)), 127)


@kernel(exposes={"branch": "a test"})
def leaky(word: WORD32) -> WORD32:
    if geu(word, 2147483648):
        word = xor(word, 5)
        word = and_(word, 77)
    return word
"""


@pytest.mark.slow
def test_public_inputs_may_change_the_path_and_secret_ones_may_not(tmp_path):
    (tmp_path / "public.py").write_text(PUBLIC, "utf-8")
    write_folder(tmp_path / "package", make_package(Options((str(tmp_path / "public.py"),))))
    report = verify(tmp_path / "package", ["host", *TARGETS], FEW)
    assert {result.differing_bits for result in report.results} == {0}  # narrow arguments and results on every core
    mixed, _, leaky = (result for result in report.results if result.target == "cortex-m0plus")
    assert mixed.sequences > 5  # one for each number of rounds
    assert mixed.sequences_by_secret == 1 and mixed.proved_same_path and mixed.passed
    assert leaky.passed and not leaky.proved_same_path  # it says that it does not
    assert not replace(leaky, declared=(), sequences_by_secret=2).passed


def test_the_debug_build_takes_one_path_too(package, tmp_path):
    """At -O0 a compiler makes of the source what it says: the choice must not be a branch there either."""
    (kernel,) = find("release_stairs")
    sources, include = sorted((package / "src").glob("*.c")), [package / "include", package / "src"]
    for name in ("cortex-m3", "cortex-m4", "cortex-m0plus", "rv32imc"):
        target = TARGETS[name]
        out = compile_elf(target, sources, include, "ss_release_stairs", tmp_path / f"{name}.elf", DEBUG)
        machine, tally = Machine(target, read_elf(out.read_bytes())), Tally()
        counter = counted(machine, name)
        vectors = edge_vectors(kernel, {}, 100, 5)
        assert run_on_core(machine, vectors, expected(vectors), "ss_release_stairs", counter, tally) == 0
        assert tally.constant_time, (name, tally.varying)


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["paper", "lean"])
def test_every_target_every_kernel(variant, tmp_path):
    kernels = ("spof", "dpsgd", "dp-zo", "release", "sampled", "release_stairs", "sampled_rows_lookup_one")
    kernels = (*kernels, "sampled_rows_bit_one", "sampled_rows_mirrored", "chacha20", "encoder", "root")
    write_folder(tmp_path / "package", make_package(Options(kernels, variant)))
    report = verify(tmp_path / "package", ["host", *TARGETS], Effort(host=100_000))
    assert report.passed
    assert len(report.results) == len(kernels) * (1 + len(TARGETS))
    assert sum(result.differing_bits for result in report.results) == 0
    for result in report.results:
        if result.target not in ("host", "rv32ec") and result.kernel.startswith(("spof", "release", "chacha20")):
            assert result.proved_same_path
            assert result.constant_time, (result.kernel, result.target)
        if result.target not in ("cortex-m0plus", "rv32ec"):
            assert result.runtime == ()


@pytest.mark.slow
def test_without_a_divider_the_package_s_own_takes_the_same_steps_for_all_operands(tmp_path):
    """SS_NO_HW_DIV on the M0+: nothing of the runtime, Numba's bits, and divisions that take no branch on data."""
    texts = make_package(Options(("dpsgd",), "paper"))
    for path in list(texts):
        if path.endswith("arithmetic.h"):
            texts[path] = "#define SS_NO_HW_DIV\n" + texts[path]
    fill(tmp_path, texts)
    kernel, target = shipped()["dpsgd.dpsgd"], TARGETS["cortex-m0plus"]
    sources, include = sorted((tmp_path / "src").glob("*.c")), [tmp_path / "include", tmp_path / "src"]
    program = read_elf(compile_elf(target, sources, include, "ss_dpsgd", tmp_path / "d.elf").read_bytes())
    assert [name for name in program.symbols if not name.startswith("ss_")] == []
    machine, tally = Machine(target, program), Tally()
    counter = counted(machine, "cortex-m0plus")
    vectors = edge_vectors(kernel, {}, 500, 3)
    assert run_on_core(machine, vectors, expected(vectors), "ss_dpsgd", counter, tally) == 0
    # 36 divisions of 32 steps each, whatever the operands, and choices that are no branches.
    assert tally.constant_time, tally.varying


STARTUP = """
#include <stdint.h>
#include "ss_kernels.h"
#include "ss_selftest.h"
extern uint32_t _stack_top;
void reset(void);
static uint32_t semihost(uint32_t op, const void *arg)
{
    register uint32_t r0 __asm__("r0") = op;
    register const void *r1 __asm__("r1") = arg;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}
__attribute__((section(".vectors"), used)) const void *const vectors[] = { &_stack_top, (const void *)reset };
void reset(void)
{
    const uint32_t failed = ss_selftest();
    const uint32_t stop[2] = { 0x20026U, failed };
    (void)semihost(0x20U, stop);
    for (;;) {
    }
}
"""
LINK = """
ENTRY(reset)
SECTIONS
{
    . = 0x0;
    .text : { KEEP(*(.vectors)) *(.text*) *(.rodata*) }
    . = 0x20000000;
    .data : { *(.data*) }
    .bss : { *(.bss*) *(COMMON) }
    _stack_top = 0x20100000;
    /DISCARD/ : { *(.ARM.exidx*) *(.comment) *(.note*) }
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_another_compiler_and_another_emulator_agree(compiler, tmp_path):
    """Debian's arm-none-eabi-gcc and qemu-system-arm: the same bits, and for one binary the same instruction count."""
    if shutil.which("arm-none-eabi-gcc") is None or shutil.which("qemu-system-arm") is None:
        pytest.skip("needs arm-none-eabi-gcc and qemu-system-arm (apt-get install gcc-arm-none-eabi qemu-system-arm)")
    fill(tmp_path, make_package(Options(("spof", "dpsgd", "release_stairs"), "paper")))
    fill(tmp_path, {"start.c": STARTUP, "link.ld": LINK})
    sources = [*sorted((tmp_path / "src").glob("*.c")), tmp_path / "test" / "ss_selftest.c", tmp_path / "start.c"]
    common = ["-std=gnu99", "-O2", "-ffreestanding", "-nostdlib"]
    script, elf = tmp_path / "link.ld", tmp_path / "selftest.elf"
    if compiler == "gcc":
        command = ["arm-none-eabi-gcc", "-mcpu=cortex-m3", "-mthumb", *common, "-fno-tree-loop-distribute-patterns"]
        command += ["-Wall", "-Wextra", "-Wconversion", "-Werror", f"-T{script}"]
    else:
        command = [*zig_cc(), "-target", "thumb-freestanding-eabi", "-mcpu=cortex_m3", *common, "-static"]
        command += ["-fno-unroll-loops", "-fno-unwind-tables", f"-Wl,-T,{script}"]
    include = [f"-I{tmp_path / name}" for name in ("include", "src", "test")]
    subprocess.run([*command, *include, *map(str, sources), "-o", str(elf)], check=True)
    run = subprocess.run(
        [
            *("qemu-system-arm", "-M", "mps2-an385", "-kernel", str(elf), "-nographic", "-monitor", "none"),
            *("-serial", "none", "-semihosting-config", "enable=on,target=native"),
            *("-singlestep" if _old_qemu() else "-accel", *(() if _old_qemu() else ("tcg,one-insn-per-tb=on",))),
            *("-d", "exec,nochain", "-D", str(tmp_path / "trace.txt")),
        ],
        timeout=120,
    )
    assert run.returncode == 0, f"golden vector {run.returncode} differs under {compiler}"
    executed = _executed_in_selftest(tmp_path / "trace.txt", elf)
    assert executed == _unicorn_count(elf)


def _old_qemu():
    text = subprocess.run(["qemu-system-arm", "--version"], capture_output=True, text=True).stdout
    return int(text.split("version ")[1].split(".")[0]) < 8


def _executed_in_selftest(trace: Path, elf: Path) -> int:
    """How many instructions qemu executed from the call of ss_selftest to its return: one line of trace each."""
    start, size = read_elf(elf.read_bytes()).symbols["reset"]
    start &= ~1
    inside = range(start, start + size)
    count = 0
    for line in trace.read_text().splitlines():
        if line.startswith("Trace"):
            pc = int(line.split("[")[1].split("/")[1], 16)
            count += pc not in inside
    return count


def _unicorn_count(elf: Path) -> int:
    """The same from unicorn, which counts every instruction with a hook of its own."""
    import unicorn
    from unicorn import arm_const

    program = read_elf(elf.read_bytes())
    uc = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_THUMB | unicorn.UC_MODE_MCLASS)
    uc.ctl_set_cpu_model(arm_const.UC_CPU_ARM_CORTEX_M3)
    uc.mem_map(0, 1 << 20)
    uc.mem_map(0x20000000, 1 << 20)
    for section in program.sections:
        uc.mem_write(section.address, section.data)
    sizes: list[int] = []
    uc.hook_add(unicorn.UC_HOOK_BLOCK, lambda uc, address, size, _: sizes.append((address, size)))
    uc.reg_write(arm_const.UC_ARM_REG_SP, 0x200FFF00)
    uc.reg_write(arm_const.UC_ARM_REG_LR, 0x80001)
    uc.emu_start(program.symbols["ss_selftest"][0] | 1, 0x80000)
    assert uc.reg_read(arm_const.UC_ARM_REG_R0) == 0
    decoder = Decoder(TARGETS["cortex-m3"], load_cpu("cortex-m3"))
    lengths = {}
    for address, size in set(sizes):
        lengths[address, size] = len(list(decoder.capstone.disasm(bytes(uc.mem_read(address, size)), address)))
    return sum(lengths[block] for block in sizes)
