"""Place arguments, stack and exit of an emulated program in memory, and call it by its calling convention."""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sensorsim._util.errors import InputError
from sensorsim.machine.elf import Program
from sensorsim.machine.targets import Target

PAGE = 4096
ARGUMENT_BYTES, STACK_BYTES, EXIT_BYTES = 1 << 22, 1 << 16, PAGE
MOST_CODE = 16 << 20
MOST_RANGES = 8  # of code: flash, functions in RAM, a boot loader
NEAR = 1 << 16  # code that is closer together is one range
# Candidates, the usual one first. Cortex-M executes nothing from 0x40000000 on, so the exit lies below.
EXITS = (0xF000, 0x0FFFF000, 0x1FFFF000, 0x2FFFF000, 0x3FFFF000, 0x00FFF000)
ARGUMENT_PLACES = (0x30000000, 0x28000000, 0x38000000, 0x50000000, 0x70000000)
STACK_PLACES = (0x40000000, 0x48000000, 0x58000000, 0x78000000, 0x18000000)


@dataclass(frozen=True)
class Places:
    """Hold the addresses of what the emulator adds to a program."""

    exit: int
    arguments: int
    stack: int


def program_pages(program: Program) -> list[tuple[int, int]]:
    """Return (start, end) of the memory that the program takes, in whole pages."""
    return _merge_ranges((s.address & -PAGE, s.end + PAGE - 1 & -PAGE) for s in program.sections)


def free_places(program: Program) -> Places:
    """Return the usual places, or others where the program overlaps them."""
    taken, found = program_pages(program), []
    for places, size in ((EXITS, EXIT_BYTES), (ARGUMENT_PLACES, ARGUMENT_BYTES), (STACK_PLACES, STACK_BYTES)):
        free = (place for place in places if all(place + size <= start or end <= place for start, end in taken))
        found.append(next(free, None))
    if None in found:
        raise InputError("the program leaves no room beside it for arguments and a stack; link it to fewer places.")
    return Places(*found)  # type: ignore[arg-type]


def code_ranges(program: Program) -> list[tuple[int, int]]:
    """Return (start, size) of the ranges that hold code."""
    ranges = _merge_ranges(((s.address, s.end) for s in program.sections if s.code), NEAR)
    if not ranges:
        raise InputError("the program has no code in it; give the ELF file that is flashed.")
    if len(ranges) > MOST_RANGES or sum(end - start for start, end in ranges) > MOST_CODE:
        raise InputError(
            f"the program has code in {len(ranges)} stretches of {sum(b - a for a, b in ranges) >> 10} KiB; "
            f"{MOST_RANGES} of {MOST_CODE >> 20} MiB together are allowed, so link a smaller one."
        )
    return [(start, end - start) for start, end in ranges]


def _merge_ranges(ranges: Iterable[tuple[int, int]], near: int = 0) -> list[tuple[int, int]]:
    made: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if made and start <= made[-1][1] + near:
            made[-1] = (made[-1][0], max(end, made[-1][1]))
        else:
            made.append((start, end))
    return made


class Abi:
    """Call functions of a core: the first arguments in registers, the others on the stack.

    x86 (cdecl) has all of them on the stack, and the return address below them; other cores have a link register.
    """

    top = 64  # bytes above the first argument that the stack pointer starts below

    def __init__(self, target: Target, places: Places) -> None:
        import unicorn

        self.places, self.thumb, self.link = places, int(target.family == "thumb"), None
        names: tuple[str, ...] = ()
        if target.family == "x86":
            from unicorn import x86_const as known

            self.uc, self.returns = unicorn.Uc(unicorn.UC_ARCH_X86, unicorn.UC_MODE_32), b"\xc3"  # ret
            prefix, result, sp, pc = "UC_X86_REG_", "EAX", "ESP", "EIP"
        elif target.family == "thumb":
            from unicorn import arm_const as known

            mode, self.returns = unicorn.UC_MODE_THUMB | unicorn.UC_MODE_MCLASS, b"\x70\x47"  # bx lr
            self.uc = unicorn.Uc(unicorn.UC_ARCH_ARM, mode)
            self.uc.ctl_set_cpu_model(getattr(known, f"UC_CPU_ARM_{target.model}"))
            names, self.link = ("R0", "R1", "R2", "R3"), known.UC_ARM_REG_LR
            prefix, result, sp, pc = "UC_ARM_REG_", "R0", "SP", "PC"
        else:
            from unicorn import riscv_const as known

            self.uc, self.returns = unicorn.Uc(unicorn.UC_ARCH_RISCV, unicorn.UC_MODE_RISCV32), b"\x82\x80"  # c.jr ra
            # The ABI of RV32E has six registers for arguments.
            names, self.link = tuple(f"A{k}" for k in range(6 if "+e" in target.mcpu else 8)), known.UC_RISCV_REG_RA
            prefix, result, sp, pc = "UC_RISCV_REG_", "A0", "SP", "PC"
            self.global_pointer = known.UC_RISCV_REG_GP
        self.inputs = tuple(getattr(known, prefix + name) for name in names)
        self.result, self.sp, self.pc = (getattr(known, prefix + name) for name in (result, sp, pc))

    def start(self, program: Program) -> None:
        """Set the register that a startup for RISC-V would set."""
        if program.global_pointer is not None and hasattr(self, "global_pointer"):
            self.uc.reg_write(self.global_pointer, program.global_pointer)

    def call(self, address: int, arguments: Sequence[int]) -> int:
        """Run a function until it returns, and return its result."""
        rest = arguments[len(self.inputs) :]
        stack = self.places.stack + STACK_BYTES - self.top - 4 * len(rest) & ~15
        if self.link is None:
            rest, stack = (self.places.exit, *rest), stack - 4
        else:
            self.uc.reg_write(self.link, self.places.exit | self.thumb)
        if rest:
            self.uc.mem_write(stack, struct.pack(f"<{len(rest)}I", *rest))
        for register, value in zip(self.inputs, arguments, strict=False):
            self.uc.reg_write(register, value)
        self.uc.reg_write(self.sp, stack)
        self.uc.emu_start(address | self.thumb, self.places.exit)
        return int(self.uc.reg_read(self.result)) & 0xFFFFFFFF

    def given(self, count: int) -> tuple[int, ...]:
        """Return the first words that the program passed to a function of the host; no more than registers hold."""
        if not self.inputs:
            return struct.unpack(f"<{count}I", self.uc.mem_read(self.uc.reg_read(self.sp) + 4, 4 * count))
        return tuple(int(self.uc.reg_read(register)) & 0xFFFFFFFF for register in self.inputs[:count])

    def answer(self, value: int) -> None:
        """Return a value from a function of the host."""
        self.uc.reg_write(self.result, value)

    def program_counter(self) -> int:
        return int(self.uc.reg_read(self.pc))
