"""An MSP430 with a program loaded: compile a kernel for it and call it.

Code by the clang of ziglang, with a small runtime of ours that multiplies in the hardware multiplier. A kernel's
arguments and results follow the MSP430 EABI: r12 to r15, then the stack.
"""

from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path

from sensorsim.errors import InputError
from sensorsim.language.kernel import Kernel
from sensorsim.machine import msp430_core as core
from sensorsim.machine.avr import signature_of
from sensorsim.machine.elf import Program, read_elf
from sensorsim.machine.interpreted import InterpretedMachine, Places, Signature
from sensorsim.machine.targets import MSP430, OPTIMIZE, SECTIONS, WARNINGS, run_compiler, zig_cc

ARGUMENTS, FLOOR, STACK, EXIT = 0x8000, 0xF000, 0xFFE0, 0xFFF0
LIMIT = 1 << 33
FIRST, LAST = 12, 16  # registers of arguments
_WHY = {
    core.NO_INSTRUCTION: "there is no instruction",
    core.TOO_LONG: "it does not end",
    core.TOO_DEEP: f"its stack is deeper than {STACK - FLOOR} bytes",
}
DOUBLE = ("MOV", "ADD", "ADDC", "SUBC", "SUB", "CMP", "DADD", "BIT", "BIC", "BIS", "XOR", "AND")
SINGLE = ("RRC", "SWPB", "RRA", "SXT", "PUSH", "CALL", "RETI")


def compile_msp430(sources: Sequence[Path], include: Sequence[Path], entry: str, out: Path) -> Path:
    """Compile and link one function with all it needs; warnings are errors."""
    own, script = files("sensorsim.machine"), out.with_suffix(".ld")
    script.write_text((own / "msp430.ld").read_text("utf-8").replace("@ENTRY@", entry))
    clang = [*zig_cc(), *MSP430.clang]
    made = [out.with_name(f"{out.stem}-{place}.o") for place in range(len(sources))]
    for source, made_file in zip(sources, made, strict=True):
        folders = [f"-I{folder}" for folder in include]
        run_compiler([*clang, *OPTIMIZE, *SECTIONS, *WARNINGS, *folders, "-c", str(source), "-o", str(made_file)])
    link = ["-static", "-nostdlib", "-Wl,--gc-sections", f"-Wl,-T,{script}", f"-Wl,--entry={entry}"]
    with as_file(own / "msp430_runtime.S") as runtime:
        run_compiler([*clang, *link, *map(str, made), str(runtime), "-o", str(out)])
    return out


class Msp430Machine(InterpretedMachine):
    """A core with a program and its variables in memory."""

    title, places = "MSP430", Places(ARGUMENTS, FLOOR)
    path_at, addresses_at = core.PATH, core.ADDRESSES

    def __init__(self, program: Program, signatures: dict[str, Signature]) -> None:
        import numpy as np

        super().__init__(program, signatures)
        self.memory = np.zeros(0x10002, np.int32)
        for section in program.sections:
            if section.address + len(section.data) > ARGUMENTS:
                raise InputError(f"{section.name} does not fit the emulated MSP430's memory; export fewer tables.")
            self.memory[section.address : section.address + len(section.data)] = np.frombuffer(section.data, np.uint8)
        self.register = np.zeros(16, np.int64)
        self.counts, self.taken = np.zeros((2, 0x8000), np.int64)
        self.report = np.zeros(core.REPORT, np.int64)

    def call(self, name: str, arguments: Sequence[int]) -> int:
        """Run the function; `arguments` are numbers, or addresses of what was written before."""
        signature, start = self.signatures[name], self.program.symbols[name][0]
        self.register[:] = 0
        on_stack = self._pass(list(zip(arguments, signature.parameters, strict=True)))
        stack = STACK - 2 * len(on_stack) - 2
        for place, word in enumerate([EXIT, *on_stack]):
            self.memory[stack + 2 * place], self.memory[stack + 2 * place + 1] = word & 255, word >> 8
        self.register[core.PC], self.register[core.SP] = start, stack
        self.report[:] = [0, 1 + start, 1, stack]
        run = core.interpreter()
        status = run(self.memory, self.register, self.counts, self.taken, self.report, EXIT, LIMIT, FLOOR)
        self.deepest = max(self.deepest, STACK - int(self.report[core.LOWEST]))
        if status != core.DONE:
            raise InputError(f"{name} stopped on msp430 at address 0x{self.register[core.PC]:x}: {_WHY[status]}.")
        word = int(self.register[FIRST]) | int(self.register[FIRST + 1]) << 16
        return word & (1 << 8 * signature.result) - 1

    def _pass(self, arguments: Sequence[tuple[int, int]]) -> list[int]:
        """Fill the registers; the words that go on the stack. A long one that half fits is split, the rest follow."""
        register, rest = FIRST, []
        for value, size in arguments:
            # A byte comes as a word that was extended with its sign, as `value` was.
            for word in (value >> 16 * place & 0xFFFF for place in range((size + 1) // 2)):
                if register < LAST:
                    self.register[register] = word
                    register += 1
                else:
                    rest.append(word)
        return rest

    def word(self, address: int) -> int:
        """Return the 16 bits at an address."""
        return int(self.memory[address]) | int(self.memory[address + 1]) << 8


def msp430_machine(
    sources: Sequence[Path], include: Sequence[Path], function: str, kernel: Kernel, build: Path
) -> Msp430Machine:
    """Compile the kernel's function and load it."""
    out = compile_msp430(sources, include, function, build / f"{function}-msp430.elf")
    return Msp430Machine(read_elf(out.read_bytes()), {function: signature_of(kernel)})


def form_of(word: int) -> tuple[str, str]:
    """The name of an instruction and its operands as the table has them: r register, i constant, @ memory that a
    register points to, x memory with an address word; pc where it writes the program counter."""
    if word >> 13 == 1:
        return "JMP" if word >> 10 & 7 == 7 else "Jcc", "rel"
    source = _source(word >> 4 & 3, word & 15 if word >> 12 == 1 else word >> 8 & 15)
    if word >> 12 == 1:
        return SINGLE[word >> 7 & 7], source
    target = "x" if word >> 7 & 1 else "pc" if word & 15 == core.PC else "r"
    return DOUBLE[(word >> 12) - 4], f"{source},{target}"


def _source(mode: int, register: int) -> str:
    if register == core.CONSTANT or mode == 0 or (register == core.SR and mode > 1):
        return "r"  # the constants 0, 1, 2, 4, 8 and -1 take no word
    if mode == 1:
        return "x"
    return "i" if register == core.PC else "@"
