"""Build a kernel for an MSP430, call it on an interpreter of its 27 instructions, and price what it executes.

Code is by the clang of ziglang, with a small runtime that multiplies in the hardware multiplier MPY32. Arguments and
results follow the MSP430 EABI: r12 to r15, then the stack. Flags in the status register: bit 0 C, 1 Z, 2 N, 8 V. The
instructions of the extended core (MSP430X) that compilers for small memory leave alone are not there.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sensorsim._util.errors import InputError
from sensorsim.costing.prices import Cpu
from sensorsim.language.kernel import Kernel
from sensorsim.machine.elf import Program, read_elf
from sensorsim.machine.emulator import PRIME  # products keep their lower 64 bits
from sensorsim.machine.instructions import Instruction
from sensorsim.machine.interpreted import (
    ADDRESSES,
    DONE,
    LOWEST,
    NO_INSTRUCTION,
    PATH,
    TOO_DEEP,
    TOO_LONG,
    InterpretedCounter,
    InterpretedMachine,
    Places,
    Signature,
    compile_with_runtime,
    signature_of,
)
from sensorsim.machine.interpreted import PC as START
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
PC, SP, SR, CONSTANT = 0, 1, 2, 3
MOV, ADD, ADDC, SUBC, SUB, CMP, DADD, BIT, BIC, BIS, XOR, AND = range(4, 16)
RRC, SWPB, RRA, SXT, PUSH, CALL, RETI = range(7)
# The multiplier: 16-bit operands and result, 32-bit ones. Writing the last operand multiplies.
MPY, OP2, RESLO = 0x4C0, 0x4C8, 0x4CA
MPY32L, OP2L, OP2H, RES0 = 0x4D0, 0x4E0, 0x4E2, 0x4E4
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
        self.register[SP] = stack
        self.run(name, loop, self.memory, self.register, EXIT, start=start, stack=stack, unit=1)
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

    def decode(self, start: int, size: int) -> list[Instruction]:
        """Price the instruction at an address."""
        row = self.cpu.instruction(*form_of(self.machine.word(start)), 16)
        price, name, kind = float(row.typical), row.operation.lower(), kind_at(self.machine, start)
        return [Instruction(start, name, kind, price, price, name.endswith("cc"), row.flag("native"), price, price)]


def load_msp430(
    cpu: Cpu, sources: Sequence[Path], include: Sequence[Path], function: str, kernel: Kernel, build: Path
) -> tuple[Any, Any]:
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
        multiplies = word & 15 == SR and written in (OP2, OP2H)  # the last operand of a product
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
    mode, register = word >> 4 & 3, word & 15 if word >> 12 == 1 else word >> 8 & 15
    pointed = "i" if register == PC else "@"
    source = ("r", "x", pointed, pointed)[mode]
    if register == CONSTANT or (register == SR and mode > 1):
        source = "r"  # the constants 0, 1, 2, 4, 8 and -1 take no word
    if word >> 12 == 1:
        return SINGLE[word >> 7 & 7], source
    target = "x" if word >> 7 & 1 else "pc" if word & 15 == PC else "r"
    return DOUBLE[(word >> 12) - 4], f"{source},{target}"


def loop(memory: Any, register: Any, end: int, counts: Any, taken: Any, report: Any, limit: int, floor: int) -> int:
    """Run from report[START] until `end` is reached; return DONE, or why it stopped.

    `counts` has a place for each word of code. `memory` has a byte in each signed word: Numba would make floats of sums
    of signed and unsigned ones.
    """
    steps, path, places, lowest = 0, report[PATH], report[ADDRESSES], report[LOWEST]
    pc, status = report[START], DONE
    while pc != end:
        if steps >= limit:
            status = TOO_LONG
            break
        here, word = pc, memory[pc] | memory[pc + 1] << 8
        top = word >> 12
        counts[pc >> 1] += 1
        steps += 1
        pc = pc + 2 & 0xFFFF
        if top in (2, 3):
            kind, flags = word >> 10 & 7, register[SR]
            carry, zero, negative, over = flags & 1, flags >> 1 & 1, flags >> 2 & 1, flags >> 8 & 1
            differ = negative ^ over
            if (1 - zero, zero, 1 - carry, carry, negative, 1 - differ, differ, 1)[kind]:
                pc = pc + 2 * ((word & 0x3FF) - (word << 1 & 0x400)) & 0xFFFF
                taken[here >> 1] += 1
            if kind != 7:
                path = (path ^ pc) * PRIME
            continue
        if top == 0 or (top == 1 and word >= 0x1380):
            status, pc = NO_INSTRUCTION, here
            break
        small, mode = word >> 6 & 1, word >> 4 & 3
        source = word & 15 if top == 1 else word >> 8 & 15
        size, mask, sign = (1, 0xFF, 0x80) if small else (2, 0xFFFF, 0x8000)
        register[PC] = pc
        # The source: a constant, a register, or memory at `at`.
        at, value = -1, 0
        if source == CONSTANT:
            value = mode if mode < 3 else 0xFFFF
        elif source == SR and mode > 1:
            value = 2 << mode - 1
        elif mode == 0:
            value = register[source]
        elif mode == 1:
            base = 0 if source == SR else register[source]
            at = base + (memory[pc] | memory[pc + 1] << 8) & 0xFFFF
            register[PC] = pc + 2 & 0xFFFF
        else:
            at = register[source]
            if mode == 3:
                register[source] = at + (2 if source <= SP else size) & 0xFFFF
        if at >= 0:
            value = memory[at] if small else memory[at] | memory[at + 1] << 8
            if source != PC or mode == 1:  # a constant in the code is no data
                places = (places ^ at) * PRIME
        value &= mask
        flags = register[SR]
        carry, zero, negative, over = flags & 1, flags >> 1 & 1, flags >> 2 & 1, flags >> 8 & 1
        write, target, result = True, -1, 0
        if top == 1:
            kind = word >> 7 & 7
            if kind in (PUSH, CALL):
                register[SP] = register[SP] - 2 & 0xFFFF
                lowest = min(lowest, register[SP])
                if lowest < floor:
                    status, pc = TOO_DEEP, here
                    break
                pushed = value if kind == PUSH else register[PC]
                memory[register[SP]], memory[register[SP] + 1] = pushed & 255, pushed >> 8
                if kind == CALL:
                    register[PC] = value
                    path = (path ^ value) * PRIME
                pc = register[PC]
                continue
            if kind == SWPB:
                result = value >> 8 | (value & 255) << 8
            elif kind == SXT:
                result = value & 255 | (0xFF00 if value & 128 else 0)
                negative, zero, over = result >> 15, 1 if result == 0 else 0, 0
                carry = 1 - zero
            else:
                high = carry * sign if kind == RRC else value & sign
                result = value >> 1 | high
                carry, zero, over = value & 1, 1 if result == 0 else 0, 0
                negative = 1 if result & sign else 0
            target, d = at, source
            if kind == SXT:
                small, mask = 0, 0xFFFF
        else:
            d = word & 15
            if word >> 7 & 1:
                pc = register[PC]
                base = 0 if d == SR else register[d]
                target = base + (memory[pc] | memory[pc + 1] << 8) & 0xFFFF
                register[PC] = pc + 2 & 0xFFFF
                old = memory[target] if small else memory[target] | memory[target + 1] << 8
                places = (places ^ target) * PRIME
            else:
                old = register[d] & mask
            if top == MOV:
                result = value
            elif top in (ADD, ADDC, SUB, SUBC, CMP):
                if top in (SUB, SUBC, CMP):
                    value = value ^ mask
                total = old + value + (carry if top in (ADDC, SUBC) else 0 if top == ADD else 1)
                result = total & mask
                carry, zero, negative = 1 if total > mask else 0, 1 if result == 0 else 0, 1 if result & sign else 0
                over = 1 if (old ^ result) & (value ^ result) & sign else 0
                write = top != CMP
            elif top in (BIT, AND, XOR):
                result = old ^ value if top == XOR else old & value
                zero, negative = 1 if result == 0 else 0, 1 if result & sign else 0
                carry = 1 - zero
                over = 1 if top == XOR and old & value & sign else 0
                write = top != BIT
            elif top == BIC:
                result = old & ~value & mask
            elif top == BIS:
                result = old | value
            else:
                status, pc = NO_INSTRUCTION, here  # DADD: no compiler makes one
                break
        if top == 1 or top in (ADD, ADDC, SUB, SUBC, CMP, BIT, AND, XOR):
            register[SR] = flags & ~0x107 | over << 8 | negative << 2 | zero << 1 | carry
        if write:
            if target < 0:
                register[d] = result & mask
                if d == PC:
                    path = (path ^ result) * PRIME
                elif d == SP:
                    lowest = min(lowest, result)
            else:
                memory[target] = result & 255
                if not small:
                    memory[target + 1] = result >> 8
                if target == OP2:
                    product = (memory[MPY] | memory[MPY + 1] << 8) * result
                    for place in range(4):
                        memory[RESLO + place] = product >> 8 * place & 255
                elif target == OP2H:
                    low = memory[OP2L] | memory[OP2L + 1] << 8
                    one = memory[MPY32L] | memory[MPY32L + 1] << 8
                    two = memory[MPY32L + 2] | memory[MPY32L + 3] << 8
                    middle = (one * low >> 16) + two * low + one * result
                    product = (one * low & 0xFFFF) | (middle & 0xFFFF) << 16  # its lower 32 bit: no kernel reads more
                    for place in range(4):
                        memory[RES0 + place] = product >> 8 * place & 255
        pc = register[PC]
    report[START], report[PATH], report[ADDRESSES], report[LOWEST] = pc, path, places, lowest
    return status
