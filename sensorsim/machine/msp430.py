"""Build a kernel for an MSP430, call it and price what it executes.

Code is by the clang of ziglang, with a small runtime that multiplies in the hardware multiplier. Arguments and results
follow the MSP430 EABI: r12 to r15, then the stack.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sensorsim._util.errors import InputError
from sensorsim.costing.prices import Cpu
from sensorsim.language.kernel import Kernel
from sensorsim.machine import msp430_core as core
from sensorsim.machine.elf import Program, read_elf
from sensorsim.machine.interpreted import (
    InterpretedCounter,
    InterpretedMachine,
    Places,
    Priced,
    Signature,
    compile_with_runtime,
    signature_of,
)
from sensorsim.machine.targets import COUNTED

ARGUMENTS, FLOOR, STACK, EXIT = 0x8000, 0xF000, 0xFFE0, 0xFFF0
FIRST, LAST = 12, 16  # registers of arguments
DOUBLE = ("MOV", "ADD", "ADDC", "SUBC", "SUB", "CMP", "DADD", "BIT", "BIC", "BIS", "XOR", "AND")
SINGLE = ("RRC", "SWPB", "RRA", "SXT", "PUSH", "CALL", "RETI")
KINDS = {
    **dict.fromkeys(("ADD", "ADDC", "SUB", "SUBC", "DADD"), "add"),
    **dict.fromkeys(("BIC", "BIS", "XOR", "AND", "SXT"), "logic"),
    **dict.fromkeys(("RRC", "RRA", "SWPB"), "shift"),
    **dict.fromkeys(("CMP", "BIT"), "compare"),
    **dict.fromkeys(("JMP", "Jcc"), "branch"),
    **dict.fromkeys(("CALL", "RETI"), "call"),
    "PUSH": "stack",
}
POPS = 0x0130  # of a MOV: the source is what the stack pointer points to, and the pointer moves on


class Msp430Machine(InterpretedMachine):
    """Run functions of a program on an interpreted MSP430."""

    title, places, stack = "MSP430", Places(ARGUMENTS, FLOOR), STACK

    def __init__(self, program: Program, signatures: dict[str, Signature]) -> None:
        import numpy as np

        super().__init__(program, signatures, 0x8000)
        self.memory = np.zeros(0x10002, np.int32)
        for section in program.sections:
            if section.address + len(section.data) > ARGUMENTS:
                raise InputError(f"{section.name} does not fit the emulated MSP430's memory; export fewer tables.")
            self.memory[section.address : section.address + len(section.data)] = np.frombuffer(section.data, np.uint8)
        self.register = np.zeros(16, np.int64)

    def call(self, name: str, arguments: Sequence[int]) -> int:
        """Run the function; `arguments` are numbers, or addresses of what was written before."""
        signature, start = self.signatures[name], self.program.symbols[name][0]
        self.register[:] = 0
        on_stack = self._pass(list(zip(arguments, signature.parameters, strict=True)))
        stack = STACK - 2 * len(on_stack) - 2
        for place, word in enumerate([EXIT, *on_stack]):
            self.memory[stack + 2 * place], self.memory[stack + 2 * place + 1] = word & 255, word >> 8
        self.register[core.SP] = stack
        self.run(name, core.loop, self.memory, self.register, EXIT, start=start, stack=stack, unit=1)
        word = int(self.register[FIRST]) | int(self.register[FIRST + 1]) << 16
        return word & (1 << 8 * signature.result) - 1

    def _pass(self, arguments: Sequence[tuple[int, int]]) -> list[int]:
        """Fill the registers and return the words for the stack. A long one that half fits is split."""
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


class Msp430Counter(InterpretedCounter):
    """Add up what the machine executes. No cycle count of this core depends on whether a branch is taken."""

    def price(self, place: int) -> Priced:
        """Price the instruction at a place."""
        word = self.machine.word(2 * place)
        row = self.cpu.instruction(*form_of(word), 16)
        price, name = float(row.typical), row.operation
        kind, branches = kind_at(self.machine, 2 * place), name.endswith("cc")
        return Priced(kind, price, price, row.flag("native"), name.lower(), "a branch", branches)


def load_msp430(cpu: Cpu, sources: Sequence[Path], include: Sequence[Path], function: str, kernel: Kernel, build: Path
                ) -> tuple[Any, Any]:  # fmt: skip
    """Compile the kernel's function, load it, and return the machine and its counter."""
    out = compile_with_runtime(COUNTED["msp430"], sources, include, function, build / f"{function}-msp430.elf")
    machine = Msp430Machine(read_elf(out.read_bytes()), {function: signature_of(kernel)})
    return machine, Msp430Counter(machine, cpu)


def kind_at(machine: Msp430Machine, address: int) -> str:
    """Return the class of the instruction at an address."""
    word = machine.word(address)
    name, operands = form_of(word)
    source, _, target = operands.partition(",")
    if target == "pc":
        return "call" if word & 0x0F30 == POPS else "branch"
    if name != "MOV":
        return KINDS[name]
    if target == "x":
        written = machine.word(address + (4 if source in ("x", "i") else 2))
        multiplies = word & 15 == core.SR and written in (core.OP2, core.OP2H)  # the last operand of a product
        return "multiply" if multiplies else "store"
    if source in ("@", "x"):
        return "stack" if word & 0x0F30 == POPS else "load"
    return "move"


def form_of(word: int) -> tuple[str, str]:
    """Return the name of an instruction and its operands as the table has them.

    r: register, i: constant, @: memory that a register points to, x: memory with an address word, pc: the program
    counter is written.
    """
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
