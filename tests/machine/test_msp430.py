"""The MSP430: compiled kernels against the kernels, our interpreter against mspdebug's simulator, published figures."""

import random
import re
import shutil
import subprocess

import numpy as np
import pytest

from sensorsim._util.errors import InputError
from sensorsim._util.files import fill
from sensorsim.costing.chips import load_published
from sensorsim.costing.prices import load_cpu
from sensorsim.language.c.declarations import known_tables
from sensorsim.language.c.identifiers import Names
from sensorsim.language.c.translation_units import c_sources
from sensorsim.language.load import shipped
from sensorsim.machine.counting import Tally
from sensorsim.machine.elf import Program, Section, read_elf
from sensorsim.machine.harness import CoreRun
from sensorsim.machine.interpreted import Signature, compile_with_runtime, signature_of
from sensorsim.machine.machine_cost import machine_cost
from sensorsim.machine.msp430 import ARGUMENTS, EXIT, FLOOR, STACK, Msp430Counter, Msp430Machine, form_of, kind_at
from sensorsim.machine.targets import COUNTED
from sensorsim.machine.vectors import edge_vectors, expected, random_vectors

# Kernels that do not multiply: mspdebug's simulator has no MPY32.
COMPARED = ("spof_lean.spof_lean", "chacha20.chacha20", "checksum.crc32", "journal.write_slot", "packet.pack_number",
            "rows.rows_scan", "dinar.dinar", "dpsgd.total")  # fmt: skip


def cycles(msp):
    """Return what ran since the last `forget`, by the table."""
    return Msp430Counter(msp, load_cpu("msp430")).add_up(Tally()).price


def compiled(tmp_path, name):
    kernel = shipped()[name]
    target, function = tmp_path / name, Names([kernel], "ss_").functions[kernel]
    fill(target, c_sources([kernel], "ss_", known_tables([kernel], "ss_"), ""))
    out = tmp_path / f"{name}.elf"
    sources = sorted((target / "src").glob("*.c"))
    compile_with_runtime(COUNTED["msp430"], sources, [target / "include", target / "src"], function, out)
    return kernel, function, Msp430Machine(read_elf(out.read_bytes()), {function: signature_of(kernel)}), out


def from_c(tmp_path, text, **signatures):
    source, out = tmp_path / "c.c", tmp_path / "c.elf"
    source.write_text("#include <stdint.h>\n" + text)
    compile_with_runtime(COUNTED["msp430"], [source], [], next(iter(signatures)), out)
    return Msp430Machine(read_elf(out.read_bytes()), signatures)


def test_arguments_lie_where_the_eabi_puts_them(tmp_path):
    """r12 to r15, a long one split when half of it fits, the rest on the stack."""
    text = """
    uint32_t all(uint8_t a, uint32_t b, uint32_t c, uint8_t d, uint16_t e, uint32_t f);
    uint32_t all(uint8_t a, uint32_t b, uint32_t c, uint8_t d, uint16_t e, uint32_t f)
    { return a + (b << 1) + (c << 2) + ((uint32_t)d << 3) + ((uint32_t)e << 4) + (f << 5); }
    """
    values = [200, 0x89ABCDEF, 0xFEDC1234, 33, 0x5678, 0xCAFE0001]
    msp = from_c(tmp_path, text, all=Signature((1, 4, 4, 1, 2, 4), 4))
    assert msp.call("all", values) == sum(value << place for place, value in enumerate(values)) % 2**32


@pytest.mark.parametrize("size", [2, 4])
def test_the_runtime_multiplies_divides_and_shifts(size, tmp_path):
    bits, draw = 8 * size, random.Random(size)
    u, i = f"uint{bits}_t", f"int{bits}_t"
    text = ""
    operators = {"f": (u, "*"), "g": (u, "/"), "p": (i, "/"), "l": (u, "<<"), "r": (u, ">>"), "s": (i, ">>")}
    for name, (kind, operator) in operators.items():
        second = "uint8_t" if operator in ("<<", ">>") else kind
        text += f"{kind} {name}({kind} a, {second} b);\n"
        text += f"{kind} {name}({kind} a, {second} b) {{ return ({kind})(a {operator} b); }}\n"
    for name in operators:
        shift = name in "lrs"
        msp = from_c(tmp_path, text, **{name: Signature((size, 1 if shift else size), size)})
        for _ in range(60):
            a = draw.getrandbits(draw.randint(1, bits)) or 1
            b = draw.randrange(bits) if shift else draw.getrandbits(draw.randint(1, bits)) or 1
            c, d = (value - (value >> bits - 1 << bits) for value in (a, b))
            sign = 1 if (c < 0) == (d < 0) else -1
            want = {"f": a * b, "g": a // b if b else 0, "p": sign * (abs(c) // max(abs(d), 1)),
                    "l": a << b % bits, "r": a >> b % bits, "s": c >> b % bits}[name]  # fmt: skip
            assert msp.call(name, [a, b]) == want % 2**bits, (name, a, b)


def test_classes_of_instructions():
    """By the words of a program: where a MOV goes and comes from says what it is; cycles as TI's manual has them."""
    clocks = {0x5C0D: 1, 0x4C2D: 2, 0x403C: 2, 0x431C: 1, 0x4C1D: 3, 0x5C8D: 4, 0x5C9D: 6, 0x3C00: 2, 0x2000: 2}
    for word, cycles in clocks.items():
        assert load_cpu("msp430").instruction(*form_of(word), 16).typical == cycles, hex(word)
    words = {
        0x5C0D: "add", 0x9C0D: "compare", 0xEC0D: "logic", 0x110C: "shift", 0x120A: "stack", 0x12B0: "call",
        0x3C00: "branch", 0x2000: "branch", 0x4130: "call", 0x4C00: "branch", 0x413A: "stack", 0x4C2D: "load",
        0x4C1D: "load", 0x4C0D: "move", 0x403C: "move", 0x4C8D: "store",
    }  # fmt: skip
    texts = [(word, 0, 0, kind) for word, kind in words.items()]
    texts += [(0x4C82, 0x4C8, 0, "multiply"), (0x4C82, 0x4C0, 0, "store"), (0x4092, 7, 0x4E2, "multiply")]
    for *code, kind in texts:
        data = b"".join(word.to_bytes(2, "little") for word in code)
        program = Program((Section(".text", 0x4400, data, False, True),), {"f": (0x4400, len(data))})
        assert kind_at(Msp430Machine(program, {"f": Signature((), 0)}), 0x4400) == kind, hex(code[0])


def test_cost_counts_on_an_msp430():
    """The door: `sensorsim cost --level machine --cpu msp430`, and by a chip with its core."""
    (case,) = machine_cost(2, 1, ["msp430"], "paper").cases[:1]
    assert case.cpu == "msp430" and case.unit == "cycles" and case.worst_case.cost is None
    assert sum(case.machine.counts.values()) == case.instructions > 0
    assert case.machine.total == sum(case.machine.costs.values()) > case.instructions
    assert {"add", "load", "store", "branch"} <= set(case.machine.counts)


def test_what_is_no_instruction_stops():
    program = Program((Section(".text", 0x4400, b"\x00\x00", False, True),), {"f": (0x4400, 2)})
    with pytest.raises(InputError, match="stopped on msp430 at address 0x4400: there is no instruction"):
        Msp430Machine(program, {"f": Signature((), 0)}).call("f", [])


def test_one_noised_value_takes_fewer_cycles_than_published_software_on_the_same_core(tmp_path):
    """Ours draws from a certified table; theirs computes a logarithm. Random words are counted in neither."""
    known = [row.cycles for row in load_published("msp430")]
    assert set(known) == {1436, 4043}
    ours = {}
    for name in ("stairs.release_stairs", "rows_search.release_rows_search", "spof_lean.spof_lean"):
        kernel, function, msp, _ = compiled(tmp_path, name)
        vectors = random_vectors(kernel, {"n": 1}, 20, 1)
        run = CoreRun(msp, vectors, function)
        worst = 0
        for _ in run.calls():
            worst = max(worst, cycles(msp))
            msp.forget()
        assert run.differing_bits(expected(vectors)) == 0
        ours[name] = worst
    assert max(ours.values()) < min(known)


def in_mspdebug(path, before, registers):
    """(instructions, cycles, memory of the arguments) of one call in mspdebug's simulator."""
    image = path.with_suffix(".raw")
    image.write_bytes(before[ARGUMENTS:FLOOR])
    commands = ["simio add tracer t", f"prog {path}", f"load_raw {image} {ARGUMENTS:#x}"]
    stack = before[registers[1] : registers[1] + 32]
    commands.append(f"mw {registers[1]:#x} " + " ".join(f"{byte:#x}" for byte in stack))
    commands += [f"set {place} {value:#x}" for place, value in enumerate(registers)]
    save = f"save_raw {ARGUMENTS:#x} {FLOOR - ARGUMENTS} {image}.out"
    commands += [f"setbreak {EXIT:#x}", "run", "simio info t", save]
    done = subprocess.run(["mspdebug", "-q", "-n", "sim", *commands], capture_output=True, text=True, check=True)
    counted = {key: int(value) for key, value in re.findall(r"(Instruction count|MCLK):\s+(\d+)", done.stdout)}
    return counted["Instruction count"], counted["MCLK"], path.with_name(image.name + ".out").read_bytes()


def its_cycles(code):
    """Cycles of an instruction in mspdebug: the older core's, and constants as if they came from memory."""
    word = int.from_bytes(code, "little")
    source = (0, 2, 1, 1)[word >> 4 & 3]
    if word >> 13 == 1:
        return 2
    if word >> 12 == 1:
        return 1 + source + {4: 2, 5: 3}.get(word >> 7 & 7, 0)
    return 1 + source + (3 if word >> 7 & 1 else 1 if word & 15 == 0 else 0)


@pytest.mark.slow
def test_kernels_do_in_mspdebug_what_they_do_here(tmp_path, monkeypatch):
    """The same bits and instructions in the same number, beside a simulator that shares nothing with ours."""
    if shutil.which("mspdebug") is None:
        pytest.skip("mspdebug is not installed")
    extra = set()
    for name in COMPARED:
        kernel, function, msp, path = compiled(tmp_path, name)
        before = {}

        def passing(arguments, msp=msp, before=before, real=msp._pass):
            before["rest"] = real(arguments)
            before["registers"] = [int(value) for value in msp.register]
            before["memory"] = bytearray(msp.memory[:0x10000].astype(np.uint8).tobytes())
            return before["rest"]

        monkeypatch.setattr(msp, "_pass", passing)
        next(iter(CoreRun(msp, random_vectors(kernel, {}, 1, 5), function).calls()))
        registers, memory = before["registers"], before["memory"]
        registers[0], registers[1] = msp.program.symbols[function][0], STACK - 2 * len(before["rest"]) - 2
        for place, word in enumerate([EXIT, *before["rest"]]):
            memory[registers[1] + 2 * place : registers[1] + 2 * place + 2] = word.to_bytes(2, "little")
        steps, cycles, after = in_mspdebug(path, bytes(memory), registers)
        assert after == msp.memory[ARGUMENTS:FLOOR].astype(np.uint8).tobytes(), name
        ran = {int(at): int(msp.counts[at]) for at in np.flatnonzero(msp.counts)}
        by_its_rule = sum(count * its_cycles(memory[2 * at : 2 * at + 2]) for at, count in ran.items())
        extra.add((steps - sum(ran.values()), cycles - by_its_rule))
    assert len(extra) == 1 and max(extra) <= (1, 4)  # what its `run` itself counts, the same for every kernel


QUICK = ("spof_lean.spof_lean", "rows_search.release_rows_search", "stairs.stairs")
CALLABLE = [name for name, kernel in shipped().items() if not kernel.records]


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n in QUICK else [pytest.mark.slow]) for n in CALLABLE])
def test_a_kernel_has_the_same_bits_on_an_msp430(name, tmp_path):
    kernel, function, msp, _ = compiled(tmp_path, name)
    for vectors in (edge_vectors(kernel, {}, 16, 1), random_vectors(kernel, {}, 20, 1)):
        run = CoreRun(msp, vectors, function)
        assert list(run.calls()) == list(range(vectors.count))
        assert run.differing_bits(expected(vectors)) == 0
    assert cycles(msp) > 0
