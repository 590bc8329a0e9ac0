"""Where a program lies in memory, and where there is room beside it for what the emulator needs."""

from collections.abc import Iterable
from dataclasses import dataclass

from sensorsim.errors import InputError
from sensorsim.machine.elf import Program

PAGE = 4096
ARGUMENT_BYTES, STACK_BYTES, EXIT_BYTES = 1 << 22, 1 << 16, PAGE
MOST_CODE = 16 << 20
MOST_RANGES = 8  # of code: flash, functions in RAM, a boot loader
NEAR = 1 << 16  # code that is closer together is one range
# Places to look at, the usual one first. Cortex-M executes nothing from 0x40000000 on, so the exit lies below.
EXITS = (0xF000, 0x0FFFF000, 0x1FFFF000, 0x2FFFF000, 0x3FFFF000, 0x00FFF000)
ARGUMENT_PLACES = (0x30000000, 0x28000000, 0x38000000, 0x50000000, 0x70000000)
STACK_PLACES = (0x40000000, 0x48000000, 0x58000000, 0x78000000, 0x18000000)


@dataclass(frozen=True)
class Places:
    """Addresses of what the emulator adds to a program."""

    exit: int
    arguments: int
    stack: int


def pages(program: Program) -> list[tuple[int, int]]:
    """(start, end) of the memory that the program takes, in whole pages."""
    return _merged((s.address & -PAGE, s.end + PAGE - 1 & -PAGE) for s in program.sections)


def places_beside(program: Program) -> Places:
    """The usual places, or others where the program lies there."""
    taken = pages(program)
    exit_at = _free(taken, EXITS, EXIT_BYTES)
    arguments = _free(taken, ARGUMENT_PLACES, ARGUMENT_BYTES)
    return Places(exit_at, arguments, _free(taken, STACK_PLACES, STACK_BYTES))


def code_ranges(program: Program) -> list[tuple[int, int]]:
    """(start, size) of the stretches that hold code."""
    ranges = _merged(((s.address, s.end) for s in program.sections if s.code), NEAR)
    if not ranges:
        raise InputError("the program has no code in it; give the ELF file that is flashed.")
    if len(ranges) > MOST_RANGES or sum(end - start for start, end in ranges) > MOST_CODE:
        raise InputError(
            f"the program has code in {len(ranges)} stretches of {sum(b - a for a, b in ranges) >> 10} KiB; "
            f"{MOST_RANGES} of {MOST_CODE >> 20} MiB together are allowed, so link a smaller one."
        )
    return [(start, end - start) for start, end in ranges]


def _merged(ranges: Iterable[tuple[int, int]], near: int = 0) -> list[tuple[int, int]]:
    made: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if made and start <= made[-1][1] + near:
            made[-1] = (made[-1][0], max(end, made[-1][1]))
        else:
            made.append((start, end))
    return made


def _free(taken: list[tuple[int, int]], places: Iterable[int], size: int) -> int:
    for place in places:
        if all(place + size <= start or end <= place for start, end in taken):
            return place
    raise InputError("the program leaves no room beside it for arguments and a stack; link it to fewer places.")
