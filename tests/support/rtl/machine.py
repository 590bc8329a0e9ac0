"""A simulated core that is called like the emulated one: the same memory, the same arguments, cycles as well."""

import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

from sensorsim.machine.abi import STACK_BYTES, free_places
from sensorsim.machine.elf import Program

START, MARK = 0x8080, 0xF0000000  # as in bench.cpp
EMPTY = 0x9000  # a function that only returns
PAGE = 4096
ZERO, RA, SP, A0, S0 = 0, 1, 2, 10, 8


class SimulatedMachine:
    """A machine for `CoreRun`; `cycles` is of the last call."""

    def __init__(self, simulator: Path, program: Program) -> None:
        self.simulator, self.program, self.uc = simulator, program, self
        self.places = free_places(program)
        self.pages: dict[int, bytearray] = {}
        for section in program.sections:
            self.mem_write(section.address, section.data)
        self.mem_write(EMPTY, struct.pack("<I", 0x00008067))  # jalr x0, 0(ra), aligned as functions are
        self.overhead = 0
        self.overhead = self.run(EMPTY, [])[0]
        self.cycles = 0

    def mem_write(self, address: int, data: bytes) -> None:
        for place, byte in enumerate(data, address):
            self.pages.setdefault(place // PAGE, bytearray(PAGE))[place % PAGE] = byte

    def mem_read(self, address: int, size: int) -> bytes:
        return bytes(self.pages.get(k // PAGE, bytes(PAGE))[k % PAGE] for k in range(address, address + size))

    def call(self, name: str, arguments: Sequence[int]) -> int:
        """Run the function; its cycles are those of a call less those of a call of a function that only returns."""
        self.cycles, result = self.run(self.program.symbols[name][0], arguments)
        return result

    def run(self, function: int, arguments: Sequence[int]) -> tuple[int, int]:
        rest = arguments[8:]
        stack = self.places.stack + STACK_BYTES - 64 - 4 * len(rest) & ~15
        self.mem_write(stack, struct.pack(f"<{len(rest)}I", *rest))
        self.mem_write(START, _startup(function, arguments[:8], stack))
        text = "".join(f"{number * PAGE:x} {page.hex()}\n" for number, page in self.pages.items())
        done = subprocess.run([self.simulator], input=text, capture_output=True, text=True, check=True)
        head, *stored = done.stdout.splitlines()
        for line in stored:
            start, content = line.split()
            self.pages[int(start, 16) // PAGE] = bytearray.fromhex(content)
        cycles, result = head.split()
        return int(cycles) - self.overhead, int(result, 16)


def _startup(function: int, arguments: Sequence[int], stack: int) -> bytes:
    """Load the registers, store to MARK, call, store the result to MARK + 4. Every instruction has 32 bits."""
    words: list[int] = []
    for register, value in ((SP, stack), (S0, MARK), *((A0 + k, value) for k, value in enumerate(arguments))):
        words += _load_constant(register, value)
    words.append(_store(ZERO, S0, 0))
    words.append(_jump(RA, function - (START + 4 * len(words))))
    words.append(_store(A0, S0, 4))
    words.append(_jump(ZERO, 0))  # for ever
    return struct.pack(f"<{len(words)}I", *words)


def _load_constant(register: int, value: int) -> tuple[int, int]:
    low = (value & 0xFFF ^ 0x800) - 0x800
    upper = value - low & 0xFFFFF000
    return upper | register << 7 | 0x37, (low & 0xFFF) << 20 | register << 15 | register << 7 | 0x13  # lui, addi


def _store(source: int, base: int, offset: int) -> int:
    return source << 20 | base << 15 | 2 << 12 | offset << 7 | 0x23  # sw, offset below 32


def _jump(link: int, by: int) -> int:
    bits = (by >> 20 & 1) << 31 | (by >> 1 & 0x3FF) << 21 | (by >> 11 & 1) << 20 | (by >> 12 & 0xFF) << 12
    return bits | link << 7 | 0x6F  # jal
