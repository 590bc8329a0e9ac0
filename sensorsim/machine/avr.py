"""Build a kernel for an AVR, call it, price what it executes, and verify its bits.

An ATmega1284P's core (AVRe+) with 64 KB of data memory, more than the chip has, so that the arguments of any kernel
fit. Calls follow the convention of avr-gcc, which clang shares. Code is by an avr-gcc that is installed, or else by the
clang of ziglang with a small runtime of ours.
"""

import shutil
from collections.abc import Iterable, Sequence
from importlib.resources import as_file, files
from itertools import pairwise
from pathlib import Path
from typing import Any

from sensorsim._util.errors import InputError
from sensorsim.costing.prices import Cpu, load_cpu
from sensorsim.language.kernel import Kernel
from sensorsim.machine import avr_core as core
from sensorsim.machine.avr_decode import BRANCHES, SKIPS, Decoded, class_and_prices, instructions
from sensorsim.machine.counting import Tally
from sensorsim.machine.elf import Program, read_elf
from sensorsim.machine.harness import CoreRun, TooLargeError, run_on_core
from sensorsim.machine.instructions import Instruction
from sensorsim.machine.interpreted import (
    DATA,
    InterpretedCounter,
    InterpretedMachine,
    Places,
    Signature,
    compile_with_runtime,
    link_flags,
    signature_of,
)
from sensorsim.machine.targets import (
    COUNTED,
    OPTIMIZE,
    SECTIONS,
    WARNINGS,
    compiler_version,
    run_compiler,
    write_script,
)
from sensorsim.machine.vectors import Vectors, with_one_public_input

ARGUMENTS, FLOOR, STACK = 0x4000, 0xF000, 0xFFFF  # variables below the arguments; the stack from the top to its floor
FIRST_REGISTER, LAST_REGISTER = 8, 26  # arguments fill r25 down to r8
CLANG, GCC = "clang", "avr-gcc"
AVR = COUNTED["avr"]


class AvrMachine(InterpretedMachine):
    """Run functions of a program on an interpreted AVR."""

    title, places, stack = "AVR", Places(ARGUMENTS, FLOOR), STACK

    def __init__(self, program: Program, signatures: dict[str, Signature]) -> None:
        import numpy as np

        sections = [(s, s.address - DATA if s.address >= DATA else s.address) for s in program.sections]
        code = max(place + len(section.data) for section, place in sections if section.address < DATA)
        self.flash = np.full(max(0x10000, code), 255, np.int32)
        self.memory = np.zeros(0x10000, np.int32)  # signed words, a byte in each: see the interpreter
        for section, place in sections:
            room = self.memory if section.address >= DATA else self.flash
            if section.address >= DATA and place + len(section.data) > ARGUMENTS:
                raise InputError(f"{section.name} does not fit the emulated AVR's 16 KB; export fewer tables.")
            room[place : place + len(section.data)] = np.frombuffer(section.data, np.uint8)
        self.decoded: list[Decoded | None] = [
            *(one for _, one in instructions(self.flash[: code + code % 2].astype(np.uint8).tobytes())),
            None,
        ]
        self.code = np.array([core.row(*two) for two in pairwise(self.decoded)], np.int64)
        super().__init__(program, signatures, len(self.code))

    def call(self, name: str, arguments: Sequence[int]) -> int:
        """Run the function; `arguments` are numbers, or addresses of what was written before."""
        signature, memory, end = self.signatures[name], self.memory, len(self.code)
        memory[: core.SREG + 1] = 0  # r1 is 0 between functions
        on_stack = self._pass(zip(arguments, signature.parameters, strict=True))
        stack = STACK - len(on_stack)
        memory[stack + 1 : STACK + 1] = list(on_stack)
        memory[stack], memory[stack - 1] = end & 255, end >> 8  # the return address, as CALL leaves it
        stack -= 2
        memory[core.SPL], memory[core.SPH] = stack & 255, stack >> 8
        start = self.program.symbols[name][0] // 2
        self.run(name, core.loop, self.code, self.flash, memory, end, start=start, stack=stack, unit=2)
        first = 22 if signature.result > 2 else 24  # four bytes in r22 to r25, two in r24 and r25
        return sum(int(memory[first + place]) << 8 * place for place in range(signature.result))

    def _pass(self, arguments: Iterable[tuple[int, int]]) -> bytes:
        """Fill the registers and return the bytes for the stack: all from the first argument that does not fit."""
        register, rest = LAST_REGISTER, b""
        for value, size in arguments:
            content = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
            register -= size + size % 2
            if register >= FIRST_REGISTER:
                self.memory[register : register + size] = list(content)
            else:
                register = 0
                rest += content
        return rest

    def rooms(self) -> tuple[Any, ...]:
        """Return data memory and flash: a table may be read from the same address of either (SS_FLASH)."""
        return self.memory, self.flash

    @property
    def ram_bytes(self) -> int:
        """Return the size of variables and tables in data memory."""
        return sum(len(section.data) for section in self.program.sections if section.address >= DATA)


class AvrCounter(InterpretedCounter):
    """Add up what the machine executes."""

    def decode(self, start: int, size: int) -> list[Instruction]:
        """Price the instruction at an address."""
        one, after = self.machine.decoded[start // 2 :][:2]
        kind, price, taken, note = class_and_prices(one, after.words if after else 1, self.cpu)
        conditional = one.name in BRANCHES + SKIPS
        return [Instruction(start, one.text, kind, price, taken, conditional, note, price, taken)]


def compile_avr(sources: Sequence[Path], include: Sequence[Path], entry: str, out: Path, compiler: str = CLANG) -> Path:
    """Compile and link one function with all it needs; warnings are errors."""
    if compiler == CLANG:
        with as_file(files("sensorsim.machine") / "avr_clang.h") as before:
            return compile_with_runtime(AVR, sources, include, entry, out, ("-include", str(before)))
    # GNU C, as only there a table can stay in flash (__flash); clang puts tables into data memory.
    flags = ["-std=gnu99", *OPTIMIZE[1:], f"-mmcu={AVR.mcpu}", *SECTIONS[:2], *WARNINGS[:2]]
    files_in = [*(f"-I{folder}" for folder in include), *map(str, sources)]
    link = link_flags(write_script("avr.ld", entry, out), entry)
    run_compiler([GCC, *flags, *files_in, *link, "-lgcc", "-o", str(out)])
    return out


def avr_compiler() -> str:
    """Return the version of the compiler that is used."""
    if usual_compiler() == CLANG:
        return compiler_version()
    return run_compiler([GCC, "--version"]).splitlines()[0]


def usual_compiler() -> str:
    """Choose avr-gcc where it is installed: clang for AVR makes branches of some selects that are written without."""
    return GCC if shutil.which(GCC) else CLANG


def avr_machine(
    sources: Sequence[Path], include: Sequence[Path], function: str, kernel: Kernel, build: Path, compiler: str = ""
) -> AvrMachine:
    """Compile the kernel's function and load it; by avr-gcc where it is installed and no compiler is named."""
    out = build / f"{function}-{AVR.name}.elf"
    compile_avr(sources, include, function, out, compiler or usual_compiler())
    return AvrMachine(read_elf(out.read_bytes()), {function: signature_of(kernel)})


def load_avr(cpu: Cpu, *function: Any) -> tuple[AvrMachine, AvrCounter]:
    """Compile a kernel's function, load it, and return the machine and its counter."""
    machine = avr_machine(*function)
    return machine, AvrCounter(machine, cpu)


def verify_avr(
    sources: Sequence[Path],
    include: Sequence[Path],
    function: str,
    kernel: Kernel,
    sets: Sequence[tuple[Vectors, dict[str, Any]]],
    build: Path,
    compiler: str = "",
    counted: int = 2,
    watched: int = 200,
) -> dict[str, Any]:
    """Return the fields of a verification's result: bits of all sets, counts of the last ones.

    A set that does not fit 64 KB is left out, unless it is counted. No instruction of an AVR takes longer for some
    operands than for others: time can only depend on the path and, on other cores, on the addresses.
    """
    machine = avr_machine(sources, include, function, kernel, build, compiler)
    cpu: Cpu = load_cpu(AVR.cpu)
    counter, tally = AvrCounter(machine, cpu), Tally()
    bits = count = 0
    for place, (vectors, want) in enumerate(sets, counted - len(sets)):
        try:
            bits += run_on_core(machine, vectors, want, function, counter if place >= 0 else None, tally)
        except TooLargeError:
            if place >= 0:
                raise
            continue
        count += vectors.count
    if not tally.calls:
        raise InputError(f"no vectors of {function} were counted on {AVR.name}; give at least one set.")
    paths, addresses, tried = _count_paths(machine, [vectors for vectors, _ in sets[-counted:]], function, watched)
    return {
        "kernel": kernel.name,
        "target": AVR.name,
        "vectors": count,
        "differing_bits": bits,
        "lengths": sets[-1][0].lengths,
        "instructions": tally.spread,
        "classes": tally.mean("classes"),
        "price": tally.price,
        "unit": cpu.unit,
        "table": cpu.name,
        "table_notes": tuple(sorted(tally.notes)),
        "flash_bytes": machine.program.flash_bytes,
        "ram_bytes": machine.ram_bytes,
        "stack_bytes": machine.stack_bytes(),
        "runtime": tuple(sorted(name for _, name in counter.owners if name.startswith("__"))),
        "sequences": len(tally.sequences),
        "sequences_by_secret": paths,
        "varying": tuple(f"{text} at 0x{at:x}" for at, text in sorted(tally.varying.items())),
        "tried": tally.calls,
        "watched": tried,
        "addresses_by_secret": addresses,
    }


def _count_paths(machine: AvrMachine, sets: Sequence[Vectors], function: str, watched: int) -> tuple[int, int, int]:
    """Return the most paths, and the most address lists on one path, when only secrets change; and the calls."""
    paths = places = tried = 0
    for vectors in sets:
        run = CoreRun(machine, with_one_public_input(vectors), function)
        seen: set[int] = set()
        touched: dict[int, set[int]] = {}  # by path
        for call in run.calls():
            seen.add(machine.fingerprint)
            if call < watched // len(sets):
                touched.setdefault(machine.fingerprint, set()).add(machine.addresses)
                tried += 1
        machine.forget()
        paths, places = max(paths, len(seen)), max(places, *map(len, touched.values()))
    return paths, places, tried
