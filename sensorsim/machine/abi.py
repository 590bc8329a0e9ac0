"""Place arguments, stack and exit of an emulated program in memory, and call it by its calling convention."""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

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
    taken = program_pages(program)
    exit_at = _find_free(taken, EXITS, EXIT_BYTES)
    arguments = _find_free(taken, ARGUMENT_PLACES, ARGUMENT_BYTES)
    return Places(exit_at, arguments, _find_free(taken, STACK_PLACES, STACK_BYTES))


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


def _find_free(taken: list[tuple[int, int]], places: Iterable[int], size: int) -> int:
    for place in places:
        if all(place + size <= start or end <= place for start, end in taken):
            return place
    raise InputError("the program leaves no room beside it for arguments and a stack; link it to fewer places.")


class Abi:
    """Call functions of a core by its calling convention."""

    places: Places
    top = 64  # bytes above the first argument that the stack pointer starts below
    thumb = 0
    returns: bytes  # the instruction

    def __init__(self, target: Target) -> None:
        self.target = target

    def start(self, uc: Any, program: Program) -> None:
        """Set the registers that a startup would set."""


class _X86(Abi):
    """Call by cdecl: every argument on the stack."""

    returns = b"\xc3"  # ret

    def open(self) -> Any:
        from unicorn import UC_ARCH_X86, UC_MODE_32, Uc

        return Uc(UC_ARCH_X86, UC_MODE_32)

    def call(self, uc: Any, address: int, arguments: Sequence[int]) -> int:
        from unicorn.x86_const import UC_X86_REG_EAX, UC_X86_REG_ESP

        words = struct.pack(f"<{len(arguments) + 1}I", self.places.exit, *arguments)
        aligned = self.places.stack + STACK_BYTES - self.top - len(words) + 4 & ~15  # 16 bytes, before the call
        stack = aligned - 4
        uc.mem_write(stack, words)
        uc.reg_write(UC_X86_REG_ESP, stack)
        uc.emu_start(address, self.places.exit)
        return int(uc.reg_read(UC_X86_REG_EAX))

    def given(self, uc: Any, count: int) -> tuple[int, ...]:
        """Return the first words that the program passed to a function of the host."""
        from unicorn.x86_const import UC_X86_REG_ESP

        return struct.unpack(f"<{count}I", uc.mem_read(uc.reg_read(UC_X86_REG_ESP) + 4, 4 * count))

    def answer(self, uc: Any, value: int) -> None:
        from unicorn.x86_const import UC_X86_REG_EAX

        uc.reg_write(UC_X86_REG_EAX, value)

    def program_counter(self, uc: Any) -> int:
        from unicorn.x86_const import UC_X86_REG_EIP

        return int(uc.reg_read(UC_X86_REG_EIP))


class _Registers(Abi):
    """Call with the first arguments in registers, the others on the stack."""

    inputs: tuple[int, ...]
    sp: int
    link: int
    pc: int

    def call(self, uc: Any, address: int, arguments: Sequence[int]) -> int:
        rest = arguments[len(self.inputs) :]
        stack = self.places.stack + STACK_BYTES - self.top - 4 * len(rest) & ~15
        if rest:
            uc.mem_write(stack, struct.pack(f"<{len(rest)}I", *rest))
        for register, value in zip(self.inputs, arguments, strict=False):
            uc.reg_write(register, value)
        uc.reg_write(self.sp, stack)
        uc.reg_write(self.link, self.places.exit | self.thumb)
        uc.emu_start(address | self.thumb, self.places.exit)
        return int(uc.reg_read(self.inputs[0])) & 0xFFFFFFFF

    def given(self, uc: Any, count: int) -> tuple[int, ...]:
        """Return the first words that the program passed to a function of the host; no more than registers hold."""
        return tuple(int(uc.reg_read(register)) & 0xFFFFFFFF for register in self.inputs[:count])

    def answer(self, uc: Any, value: int) -> None:
        uc.reg_write(self.inputs[0], value)

    def program_counter(self, uc: Any) -> int:
        return int(uc.reg_read(self.pc))


class _Arm(_Registers):
    thumb = 1
    returns = b"\x70\x47"  # bx lr

    def open(self) -> Any:
        from unicorn import UC_ARCH_ARM, UC_MODE_MCLASS, UC_MODE_THUMB, Uc, arm_const

        uc = Uc(UC_ARCH_ARM, UC_MODE_THUMB | UC_MODE_MCLASS)
        uc.ctl_set_cpu_model(getattr(arm_const, f"UC_CPU_ARM_{self.target.model}"))
        self.inputs = tuple(getattr(arm_const, f"UC_ARM_REG_R{k}") for k in range(4))
        self.sp, self.link, self.pc = arm_const.UC_ARM_REG_SP, arm_const.UC_ARM_REG_LR, arm_const.UC_ARM_REG_PC
        return uc


class _RiscV(_Registers):
    returns = b"\x82\x80"  # c.jr ra

    def open(self) -> Any:
        from unicorn import UC_ARCH_RISCV, UC_MODE_RISCV32, Uc, riscv_const

        registers = 6 if "+e" in self.target.mcpu else 8  # the ABI of RV32E has six for arguments
        self.inputs = tuple(getattr(riscv_const, f"UC_RISCV_REG_A{k}") for k in range(registers))
        self.sp, self.link, self.pc = (getattr(riscv_const, f"UC_RISCV_REG_{name}") for name in ("SP", "RA", "PC"))
        return Uc(UC_ARCH_RISCV, UC_MODE_RISCV32)

    def start(self, uc: Any, program: Program) -> None:
        from unicorn.riscv_const import UC_RISCV_REG_GP

        if program.global_pointer is not None:
            uc.reg_write(UC_RISCV_REG_GP, program.global_pointer)


ABIS: dict[str, Any] = {"x86": _X86, "thumb": _Arm, "riscv32": _RiscV}
