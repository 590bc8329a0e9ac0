"""The AVR: our interpreter beside the manual and simavr, compiled kernels beside the kernels, prices beside simavr."""

import random
import subprocess
from itertools import pairwise
from statistics import mean

import numpy as np
import pytest
from simulated_avr import build_simavr, in_simavr

from sensorsim._util.errors import InputError
from sensorsim._util.files import fill
from sensorsim.costing.prices import load_cpu
from sensorsim.costing.pricing import list_forms
from sensorsim.language.c.declarations import known_tables
from sensorsim.language.c.identifiers import Names
from sensorsim.language.c.translation_units import c_sources
from sensorsim.language.load import shipped
from sensorsim.machine import avr_core as core
from sensorsim.machine.avr import (
    CLANG,
    GCC,
    AvrCounter,
    AvrMachine,
    compile_avr,
    usual_compiler,
    verify_avr,
)
from sensorsim.machine.avr_decode import BRANCHES, ENCODINGS, NAMES, SKIPS, class_and_prices, decode, instructions
from sensorsim.machine.counting import Tally
from sensorsim.machine.elf import Program, Section, read_elf
from sensorsim.machine.harness import CoreRun
from sensorsim.machine.interpreted import Signature, compile_loop, signature_of
from sensorsim.machine.vectors import edge_vectors, expected, of_one_call, random_vectors

# Clocks of AVRe in the instruction set manual; every other instruction takes one.
TWO = "ADIW SBIW MUL MULS MULSU LD LDD LDS ST STD STS PUSH POP RJMP"
CLOCKS = {**dict.fromkeys(TWO.split(), 2), **dict.fromkeys(("LPM", "JMP", "RCALL"), 3)}
CLOCKS |= dict.fromkeys(("CALL", "RET"), 4)


def machine(words, **functions):
    """A program of these words; functions by the address of their first word, each with its signature."""
    data = b"".join(word.to_bytes(2, "little") for word in words)
    symbols = {name: (2 * at, 2) for name, (at, _) in functions.items()}
    program = Program((Section(".text", 0, data, False, True),), symbols)
    return AvrMachine(program, {name: signature for name, (_, signature) in functions.items()})


def compiled(tmp_path, text, compiler=CLANG, **signatures):
    source, out = tmp_path / "c.c", tmp_path / "c.elf"
    source.write_text("#include <stdint.h>\n" + text)
    compile_avr([source], [], next(iter(signatures)), out, compiler)
    return AvrMachine(read_elf(out.read_bytes()), signatures)


def source_of(kernel, folder):
    if not folder.exists():
        fill(folder, c_sources([kernel], "ss_", known_tables([kernel], "ss_"), ""))
    return sorted((folder / "src").glob("*.c")), [folder / "include", folder / "src"]


def test_instructions_are_read_as_the_manual_encodes_them():
    known = {
        (0x0F2A, 0): ("ADD", 18, 26, 0),
        (0x94F8, 0): ("BCLR", 0, 0, 7),  # CLI
        (0x9616, 0): ("ADIW", 26, 0, 6),
        (0x01AB, 0): ("MOVW", 20, 22, 0),
        (0x9180, 0x0123): ("LDS", 24, 0, 0x123),
        (0x940E, 0x0040): ("CALL", 0, 0, 0x40),
        (0xA18F, 0): ("LDD_Y", 24, 0, 39),
        (0x932D, 0): ("ST_XI", 18, 0, 0),
        (0xF7F1, 0): ("BRBC", 1, 0, 0x7F),  # BRNE
        (0xCFFF, 0): ("RJMP", 0, 0, 0x80),
        (0xBFDE, 0): ("OUT", 29, 0x3E, 0),
        (0xFD97, 0): ("SBRC", 25, 0, 7),
    }
    for (word, following), fields in known.items():
        one = decode(word, following, 0x80)
        assert (one.name, one.d, one.r, one.k) == fields


def test_a_word_that_is_no_instruction_is_none():
    assert decode(0x95F9, 0, 0) is None
    with pytest.raises(InputError, match="stopped on avr at address 0x0: there is no instruction"):
        machine([0x95F9], f=(0, Signature((), 0))).call("f", [])


def test_every_instruction_has_the_clocks_of_the_manual():
    cpu = load_cpu("avr")
    for name in NAMES:
        (one,) = [one for _, one in instructions(_some_word(name, random.Random(1)).to_bytes(2, "little"))][:1]
        _, price, taken, note = class_and_prices(one, 1, cpu)
        assert not note, f"{name}: {note}"
        if name in BRANCHES + SKIPS:
            assert (price, taken) == (1, 2)
            assert class_and_prices(one, 2, cpu)[2] == (2 if name.startswith("BR") else 3)
        else:
            assert price == taken == CLOCKS.get(one.mnemonic, 1), name


def test_arguments_lie_where_avr_gcc_puts_them(tmp_path):
    """Registers from r25 down in even pairs, then the stack; results of one, two and four bytes."""
    text = """
    uint32_t all(uint8_t a, uint32_t b, uint16_t c, uint8_t d, uint32_t e, uint32_t f, uint16_t g, uint8_t h);
    uint32_t all(uint8_t a, uint32_t b, uint16_t c, uint8_t d, uint32_t e, uint32_t f, uint16_t g, uint8_t h)
    { return a + (b << 1) + ((uint32_t)c << 2) + ((uint32_t)d << 3) + (e << 4) + (f << 5) + ((uint32_t)g << 6)
        + ((uint32_t)h << 7); }
    """
    values = [200, 0x89ABCDEF, 0xFEDC, 33, 0x12345678, 0xCAFE0001, 0xBEEF, 255]
    for compiler in {CLANG, usual_compiler()}:
        avr = compiled(tmp_path, text, compiler, all=Signature((1, 4, 2, 1, 4, 4, 2, 1), 4))
        assert avr.call("all", values) == sum(value << place for place, value in enumerate(values)) % 2**32


@pytest.mark.parametrize("size", [1, 2, 4])
def test_the_runtime_for_clang_multiplies_and_divides(size, tmp_path):
    bits, draw = 8 * size, random.Random(size)
    u, i, both = f"uint{bits}_t", f"int{bits}_t", Signature((size, size), size)
    text = ""
    for name, kind, operator in (("f", u, "*"), ("g", u, "/"), ("h", u, "%"), ("p", i, "/"), ("q", i, "%")):
        text += f"{kind} {name}({kind} a, {kind} b);\n"
        text += f"{kind} {name}({kind} a, {kind} b) {{ return ({kind})(a {operator} b); }}\n"
    for name in "fghpq":
        avr = compiled(tmp_path, text, CLANG, **{name: both})
        for _ in range(100):
            a, b = (draw.getrandbits(draw.randint(1, bits)) or 1 for _ in range(2))
            if name == "f":
                want = a * b
            elif name in "gh":
                want = a // b if name == "g" else a % b
            else:
                c, d = (value - (value >> bits - 1 << bits) for value in (a, b))
                quotient = abs(c) // abs(d) * (1 if (c < 0) == (d < 0) else -1)
                want = quotient if name == "p" else c - d * quotient
            assert avr.call(name, [a, b]) == want % 2**bits, (name, a, b)
    # r1 is 0 again, as every function expects
    assert avr.memory[1] == 0


def test_a_secret_branch_is_another_way_and_a_secret_index_other_addresses(tmp_path):
    text = """
    uint8_t branch(uint8_t a) { if (a & 1) { __asm volatile("nop\\n nop"); } return 0; }
    uint8_t table[256];
    uint8_t look(uint8_t a) { return table[a]; }
    """
    one = Signature((1,), 1)
    for name, ways, places in (("branch", 2, 1), ("look", 1, 4)):
        avr = compiled(tmp_path, text.replace("uint8_t branch(", "uint8_t branch(uint8_t a);\nuint8_t branch(").replace(
            "uint8_t look(", "uint8_t look(uint8_t a);\nuint8_t look("), CLANG, **{name: one})  # fmt: skip
        seen, touched = set(), set()
        for value in (0, 1, 2, 3):
            avr.call(name, [value])
            seen.add(avr.fingerprint)
            touched.add(avr.addresses)
        assert (len(seen), len(touched)) == (ways, places), name


def test_a_skip_over_one_cycle_is_no_other_way_and_over_two_it_is():
    # sbrc r24, 0; inc r24; ret: two cycles whether it skips or not. With adiw (two cycles) it is another time.
    for body, ways, cycles in ((0x9583, 1, {6}), (0x9601, 2, {6, 7})):
        avr = machine([0xFD80, body, 0x9508], f=(0, Signature((1,), 1)))
        counter, tally = AvrCounter(avr, load_cpu("avr")), Tally()
        for value in (4, 5):
            avr.call("f", [value])
            counter.take(tally)
        assert len(tally.sequences) == ways and set(tally.prices) == cycles


def test_a_program_that_does_not_end_or_fills_memory_is_stopped(monkeypatch):
    monkeypatch.setattr("sensorsim.machine.interpreted.LIMIT", 1000)
    with pytest.raises(InputError, match="it does not end"):
        machine([0xCFFF], f=(0, Signature((), 0))).call("f", [])
    with pytest.raises(InputError, match="stack is deeper than 4095 bytes"):
        monkeypatch.setattr("sensorsim.machine.interpreted.LIMIT", 1 << 20)
        machine([0xDFFF], f=(0, Signature((), 0))).call("f", [])  # calls itself


def test_a_kernel_has_the_same_bits_on_an_avr_and_an_altered_one_has_not(tmp_path):
    kernel = shipped()["spof_lean.spof_lean"]
    sources, include = source_of(kernel, tmp_path / "c")
    sets = [(v, expected(v)) for v in (edge_vectors(kernel, {}, 16, 1), random_vectors(kernel, {}, 40, 1))]
    for compiler in {CLANG, usual_compiler()}:
        found = verify_avr(sources, include, "ss_spof_lean", kernel, sets, tmp_path, compiler)
        assert found["differing_bits"] == 0 and found["vectors"] == 56 and found["unit"] == "cycles"
        assert found["flash_bytes"] < 500 and 0 < found["stack_bytes"] < 64 and found["table_notes"] == ()
        assert found["sequences_by_secret"] == 1 or compiler == CLANG
        assert found["addresses_by_secret"] > 1  # the noise table is read at a secret place, as its proof says
    sources[0].write_text(sources[0].read_text().replace("word & mask", "(word >> 1) & mask"))
    assert verify_avr(sources, include, "ss_spof_lean", kernel, sets, tmp_path, CLANG)["differing_bits"] > 0


def test_arguments_that_do_not_fit_are_left_out_and_said_when_counted(tmp_path):
    kernel = shipped()["spof_lean.spof_lean"]
    sources, include = source_of(kernel, tmp_path / "c")
    small, large = random_vectors(kernel, {}, 3, 1), random_vectors(kernel, {"n": 4096}, 1, 1)
    sets = [(v, expected(v)) for v in (large, small, small)]
    assert verify_avr(sources, include, "ss_spof_lean", kernel, sets, tmp_path, CLANG)["vectors"] == 6
    with pytest.raises(InputError, match="more than the 45056 bytes"):
        verify_avr(sources, include, "ss_spof_lean", kernel, sets[::-1], tmp_path, CLANG)


# Against simavr: nothing below shares code with the interpreter but the encodings it draws words from.


def _pattern(name):
    return ENCODINGS.split()[2 * NAMES.index(name) + 1].rstrip("*")


def _some_word(name, draw, registers=(0x1E, 0x3D, 0x3E, 0x3F)):
    """A word of that instruction, its fields random; I/O registers only those that hold what is written."""
    place = draw.choice(registers if name in ("IN", "OUT") else registers[:1])
    bits, address = "", f"{place:06b}"[-_pattern(name).count("A") or 6 :]
    for letter in _pattern(name):
        if letter == "A":
            bits, address = bits + address[0], address[1:]
        else:
            bits += letter if letter in "01" else str(draw.getrandbits(1))
    return int(bits, 2)


def _cases(draw, count):
    """(name, case) for every instruction: one word at 100 with random registers, flags and memory around it."""
    for name in NAMES:
        made = 0
        while made < count:
            word, second = _some_word(name, draw), draw.randrange(0x110, 0x300)
            one = decode(word, second, 100)
            if one is None or one.name != name or _undefined(one):
                continue
            if name in ("RJMP", "RCALL") and not 0 < one.k < 399:
                continue
            if name in ("JMP", "CALL"):
                word, second = 0x940C if name == "JMP" else 0x940E, draw.randrange(399)
            code = bytearray(800)
            after = second if one.words == 2 else draw.choice((0x0000, 0x9100, 0x2FFF, 0xCFFF))
            code[200:204] = word.to_bytes(2, "little") + after.to_bytes(2, "little")
            memory = [draw.choice((0, 1, 127, 128, 255, draw.getrandbits(8))) for _ in range(32)]
            memory += [0] * 0xE0 + [draw.getrandbits(8) for _ in range(0x300)]
            memory[0x3E], memory[core.SREG] = draw.getrandbits(8), draw.getrandbits(8)
            memory[core.SPL], memory[core.SPH] = 0x80 + draw.randrange(64), 2
            for pointer in (26, 28, 30):
                memory[pointer], memory[pointer + 1] = draw.getrandbits(8) | 0x10, draw.choice((1, 2))
            yield name, (bytes(code), 200, 0xFFFFFF, 1, memory)
            made += 1


def _undefined(one):
    """A store of half of the pointer that it moves: the manual leaves it open."""
    pointer = {"X": 26, "Y": 28, "Z": 30}.get(one.name.partition("_")[2].strip("ID"))
    return bool(pointer) and one.name[-2:] != "_X" and one.name[2] != "D" and one.d in (pointer, pointer + 1)


def _step(code, start, memory):
    """One step of ours: (program counter, memory, cycles by the table)."""
    words = [decode(0, 0, 0)] * (len(code) // 2)  # NOP everywhere but where the case has its words
    for at, one in instructions(code[start : start + 6], start):
        words[at] = one
    rows = np.array([core.row(*two) for two in pairwise([*words, None])], np.int64)
    counts, taken = np.zeros((2, len(rows)), np.int64)
    data, flash = np.zeros(0x10000, np.int32), np.full(0x10000, 255, np.int32)
    data[: len(memory)], flash[: len(code)] = memory, list(code)
    report = np.array([start // 2, 1, 1, 0xFFFF])
    compile_loop(core.loop)(rows, flash, data, -1, counts, taken, report, 1, 0)
    after = words[start // 2 + 1]
    _, price, jumped, _ = class_and_prices(words[start // 2], after.words if after else 1, load_cpu("avr"))
    skipped = taken.any() or counts.sum() == 2
    return 2 * report[core.PC], bytes(data[: len(memory)].astype(np.uint8)), jumped if skipped else price


@pytest.mark.slow
def test_every_instruction_does_what_simavr_does_in_as_many_cycles(tmp_path):
    program = build_simavr(tmp_path)
    names, cases = zip(*_cases(random.Random(7), 100), strict=True)
    assert set(names) == set(NAMES)
    answers = in_simavr(program, cases)
    for name, (code, start, _, _, memory), (_, pc, cycles, after) in zip(names, cases, answers, strict=True):
        assert _step(code, start, memory) == (pc, after, cycles), name


def callable_kernels():
    """Kernels that are called with numbers alone; those of a sensor take its record."""
    return [(name, kernel) for name, kernel in shipped().items() if not kernel.records]


def _beside_simavr(program, avr, counter, function, vectors):
    """Cycles of one call by our table and in simavr, net of the return; memory must be the same."""
    seen = {}

    def spy(*arguments, **more):
        seen["before"] = [int(value) for value in avr.memory]
        return type(avr).run(avr, *arguments, **more)

    avr.run = spy
    next(iter(CoreRun(avr, vectors, function).calls()))
    tally = Tally()
    counter.take(tally)
    code = avr.flash.astype(np.uint8).tobytes()
    start, end = avr.program.symbols[function][0], 2 * len(avr.code)
    ((steps, pc, cycles, after),) = in_simavr(program, [(code, start, end, 10**8, seen["before"])])
    assert pc == end and steps <= tally.instructions[0]
    ours = avr.memory.astype(np.uint8).tobytes()
    assert ours[0x100:] == after[0x100:] and ours[:32] == after[:32]
    return tally.prices[0], cycles


@pytest.mark.slow
def test_whole_kernels_take_the_cycles_of_simavr_as_the_table_says(tmp_path):
    if usual_compiler() != GCC:
        pytest.skip("avr-gcc is not installed")
    program, cpu = build_simavr(tmp_path), load_cpu("avr")
    errors = []
    for name, kernel in callable_kernels():
        sources, include = source_of(kernel, tmp_path / name)
        function = Names([kernel], "ss_").functions[kernel]
        compile_avr(sources, include, function, tmp_path / "k.elf", GCC)
        avr = AvrMachine(read_elf((tmp_path / "k.elf").read_bytes()), {function: signature_of(kernel)})
        found = random_vectors(kernel, {}, 1, 3)
        said, measured = _beside_simavr(program, avr, AvrCounter(avr, cpu), function, found)
        errors.append(abs(said / measured - 1) * 100)
    checked = cpu.checked
    version = subprocess.run([GCC, "--version"], capture_output=True, text=True).stdout.split()[2]
    assert checked.kernels == len(errors) and version in checked.against
    assert (f"{max(errors):.1f}", f"{mean(errors):.1f}") == (str(checked.largest), str(checked.mean))


@pytest.mark.slow
def test_kernel_level_ranges_hold_what_avr_gcc_makes(tmp_path):
    """What the kernels' operations cost at least and at most, and the cycles of the compiled code between them."""
    if usual_compiler() != GCC:
        pytest.skip("avr-gcc is not installed")
    cpu, ratios = load_cpu("avr"), []
    for form in list_forms("all"):
        kernel, record = form.kernel, form.record(14, 7)
        sources, include = source_of(kernel, tmp_path / form.name)
        function = Names([kernel], "ss_").functions[kernel]
        vectors = of_one_call(kernel, record)
        avr_vectors = [(vectors, expected(vectors))]
        cycles = verify_avr(sources, include, function, kernel, avr_vectors, tmp_path, GCC, counted=1)["price"].mean
        scalars = {name: value for name, value in record.items() if not isinstance(value, list)}
        counts = kernel.count(**scalars)
        low, typical, high = (
            sum(number * getattr(cpu.price(key[-1], 32, False, "native"), end) for key, number in counts.items())
            for end in ("min", "typical", "max")
        )
        assert low * 0.9 <= cycles <= high, form.name
        ratios.append(cycles / typical)
    assert 0.8 < np.exp(np.mean(np.log(ratios))) < 1.25 and max(ratios) < 2.3


@pytest.mark.slow
@pytest.mark.parametrize("compiler", [CLANG, GCC])
def test_every_kernel_has_the_same_bits_and_with_avr_gcc_its_proved_path(compiler, tmp_path):
    if compiler == GCC and usual_compiler() != GCC:
        pytest.skip("avr-gcc is not installed")
    for name, kernel in callable_kernels():
        sources, include = source_of(kernel, tmp_path / name)
        function = Names([kernel], "ss_").functions[kernel]
        sets = [(v, expected(v)) for v in (edge_vectors(kernel, {}, 16, 1), random_vectors(kernel, {}, 16, 1))]
        found = verify_avr(sources, include, function, kernel, sets, tmp_path, compiler)
        assert found["differing_bits"] == 0 and found["table_notes"] == () and found["price"] is not None, name
        proved = kernel.secrecy().secrets and kernel.secrecy().same_path
        assert found["sequences_by_secret"] == 1 or not proved or compiler == CLANG, name
