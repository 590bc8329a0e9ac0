"""An AVR with a program loaded: call a compiled function, see what it executed.

An ATmega1284P's core (AVRe+) with 64 KB of data memory, more than the chip has, so that the arguments of any kernel
fit. Calls follow the convention of avr-gcc, which clang shares. What `machine.emulator.Machine` is for other cores:
the same vectors run on it through `machine.harness.run_on_core`.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from sensorsim.errors import InputError
from sensorsim.language.c.comments import C_TYPES
from sensorsim.language.kernel import Kernel
from sensorsim.language.types import Array, Length
from sensorsim.machine import avr_core as core
from sensorsim.machine.avr_decode import Decoded, instructions
from sensorsim.machine.elf import Program
from sensorsim.machine.interpreted import InterpretedMachine, Places, Signature

DATA = 0x800000  # where ELF files have data memory
ARGUMENTS, FLOOR, STACK = 0x4000, 0xF000, 0xFFFF  # variables below the arguments; the stack from the top to its floor
LIMIT = 1 << 33  # instructions of one call
FIRST_REGISTER, LAST_REGISTER = 8, 26  # arguments fill r25 down to r8
POINTER = 2  # bytes


def signature_of(kernel: Kernel) -> Signature:
    """How the kernel's C function is called."""
    kinds = kernel.parameters.values()
    sizes = tuple(POINTER if isinstance(kind, Array) else 4 if isinstance(kind, Length) else _bytes(kind.storage)
                  for kind in kinds)  # fmt: skip
    return Signature(sizes, _bytes(kernel.result.storage) if kernel.result is not None else 0)


def _bytes(storage: str) -> int:
    return int("".join(filter(str.isdigit, C_TYPES[storage]))) // 8


class AvrMachine(InterpretedMachine):
    """A core with a program in its flash and its variables in place."""

    title, places = "AVR", Places(ARGUMENTS, FLOOR)
    path_at, addresses_at = core.PATH, core.ADDRESSES

    def __init__(self, program: Program, signatures: dict[str, Signature]) -> None:
        import numpy as np

        super().__init__(program, signatures)
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
            one for _, one in instructions(self.flash[: code + code % 2].astype(np.uint8).tobytes())
        ]
        self.code = np.array(
            [core.row(*two) for two in zip(self.decoded, [*self.decoded[1:], None], strict=True)], np.int64
        )
        self.counts, self.taken = np.zeros((2, len(self.code)), np.int64)
        self.report = np.zeros(core.REPORT, np.int64)

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
        self.report[:] = [start, 0, 1 + start, 1, stack]
        run = core.interpreter()
        status = run(self.code, self.flash, memory, self.counts, self.taken, self.report, end, LIMIT, FLOOR)
        self.deepest = max(self.deepest, STACK - int(self.report[core.LOWEST]))
        if status != core.DONE:
            raise InputError(f"{name} stopped on avr at address 0x{2 * int(self.report[core.PC]):x}: {_WHY[status]}.")
        first = 22 if signature.result > 2 else 24  # four bytes in r22 to r25, two in r24 and r25
        return sum(int(memory[first + place]) << 8 * place for place in range(signature.result))

    def _pass(self, arguments: Iterable[tuple[int, int]]) -> bytes:
        """Fill the registers; what goes on the stack: from the first argument that does not fit, all of them."""
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
        """Data memory, and the same addresses in flash: a table may be read from either (SS_FLASH)."""
        return self.memory, self.flash

    @property
    def ram_bytes(self) -> int:
        """Variables and tables in data memory."""
        return sum(len(section.data) for section in self.program.sections if section.address >= DATA)


_WHY: dict[Any, str] = {
    core.NO_INSTRUCTION: "there is no instruction",
    core.TOO_LONG: "it does not end",
    core.TOO_DEEP: f"its stack is deeper than {STACK - FLOOR} bytes",
}
