"""Cores that our own interpreters run (AVR, MSP430): build for them, call a function, count and price what ran.

A machine of this module is used as `machine.emulator.Machine`: it is read and written as through unicorn.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from sensorsim._util.errors import InputError
from sensorsim.costing.prices import Cpu
from sensorsim.language.c.comments import C_TYPES
from sensorsim.language.kernel import Kernel
from sensorsim.language.types import Array, Length
from sensorsim.machine.counting import CallCounter
from sensorsim.machine.elf import Program
from sensorsim.machine.harness import TooLargeError
from sensorsim.machine.targets import Target, compile_object, run_compiler, write_script, zig_cc

POINTER = 2  # bytes
DATA = 0x800000  # where ELF files for an AVR have data memory
LIMIT = 1 << 33  # instructions of one call
DONE, NO_INSTRUCTION, TOO_LONG, TOO_DEEP = 0, 1, 2, 3  # how a run ended


# Indices of a run's report, in 64-bit words: where it stopped, fingerprints, the lowest stack pointer.
PC, PATH, ADDRESSES, LOWEST, REPORT = 0, 1, 2, 3, 4


class Places(NamedTuple):
    """Hold addresses: of the arguments of a call, and of the end of their room, below the stack."""

    arguments: int
    floor: int


class Signature(NamedTuple):
    """Hold the bytes of each parameter and of the result; 0 for none."""

    parameters: tuple[int, ...]
    result: int


def signature_of(kernel: Kernel) -> Signature:
    """Return the signature of a kernel's C function."""

    def size(kind: Any) -> int:
        if isinstance(kind, Array | Length):
            return POINTER if isinstance(kind, Array) else 4
        return int("".join(filter(str.isdigit, C_TYPES[kind.storage]))) // 8

    return Signature(tuple(map(size, kernel.parameters.values())), size(kernel.result) if kernel.result else 0)


@cache
def compile_loop(loop: Callable[..., int]) -> Any:
    """Compile the loop of an interpreter; some seconds the first time in a process that has no cache of it."""
    from sensorsim.language.numba_backend.jit import jit

    return jit(loop, kept=True, nogil=True)


def compile_with_runtime(
    target: Target, sources: Sequence[Path], include: Sequence[Path], entry: str, out: Path, options: Sequence[str] = ()
) -> Path:
    """Compile one function by clang and link it with our small runtime of the core; warnings are errors."""
    script = write_script(f"{target.name}.ld", entry, out)
    objects = [out.with_name(f"{out.stem}-{place}.o") for place in range(len(sources))]
    for source, file in zip(sources, objects, strict=True):
        compile_object(target, source, include, file, options)
    clang = [*zig_cc(), *target.clang]
    with as_file(files("sensorsim.machine") / f"{target.name}_runtime.S") as runtime:
        run_compiler([*clang, "-static", *link_flags(script, entry), *map(str, objects), str(runtime), "-o", str(out)])
    return out


def link_flags(script: Path, entry: str) -> list[str]:
    """Return the flags that link one function by a script."""
    return ["-nostdlib", "-Wl,--gc-sections", f"-Wl,-T,{script}", f"-Wl,--entry={entry}"]


class InterpretedMachine:
    """Run functions of a program on an interpreted core; each core has its own memory map and `call`."""

    title: ClassVar[str]  # for messages
    places: ClassVar[Places]
    stack: ClassVar[int]  # its top
    memory: Any  # signed words, a byte in each: see the interpreters

    def __init__(self, program: Program, signatures: dict[str, Signature], words: int) -> None:
        """Load a program with `words` words of code."""
        import numpy as np

        self.program, self.signatures, self.deepest = program, signatures, 0
        self.uc = self
        self.counts, self.taken = np.zeros((2, words), np.int64)
        self.report = np.zeros(REPORT, np.int64)

    def call(self, name: str, arguments: Sequence[int]) -> int:
        """Run the function; `arguments` are numbers, or addresses of what was written before."""
        raise NotImplementedError

    def rooms(self) -> tuple[Any, ...]:
        """Return the memories that hold what is written for a call."""
        return (self.memory,)

    def mem_write(self, address: int, content: bytes) -> None:
        """Write bytes of an argument."""
        import numpy as np

        first, end = self.places
        if address < first or address + len(content) > end:
            raise TooLargeError(f"the arguments take more than the {end - first} bytes of the emulated {self.title}.")
        for room in self.rooms():
            room[address : address + len(content)] = np.frombuffer(content, np.uint8)

    def mem_read(self, address: int, size: int) -> bytes:
        """Read bytes of data memory."""
        content: bytes = self.memory[address : address + size].astype("uint8").tobytes()
        return content

    def run(self, name: str, loop: Callable[..., int], *given: Any, start: int, stack: int, unit: int) -> None:
        """Run a loop from a place; InputError where it does not return. `unit` is how many bytes a place counts."""
        self.report[:] = [start, 1 + start, 1, stack]
        status = compile_loop(loop)(*given, self.counts, self.taken, self.report, LIMIT, self.places.floor)
        self.deepest = max(self.deepest, self.stack - int(self.report[LOWEST]))
        if status != DONE:
            address = unit * int(self.report[PC])
            deep = f"its stack is deeper than {self.stack - self.places.floor} bytes"
            why = {NO_INSTRUCTION: "there is no instruction", TOO_LONG: "it does not end", TOO_DEEP: deep}[status]
            raise InputError(f"{name} stopped on {self.title.lower()} at address 0x{address:x}: {why}.")

    def forget(self) -> None:
        """Reset the counts."""
        self.counts[:] = 0
        self.taken[:] = 0

    @property
    def fingerprint(self) -> int:
        """Return a hash of the path that the last call took through its branches."""
        return int(self.report[PATH])

    @property
    def addresses(self) -> int:
        """Return a hash of the data addresses that the last call read and wrote, in their order."""
        return int(self.report[ADDRESSES])

    def stack_bytes(self) -> int:
        """Return the deepest stack of all calls, return address and arguments passed on the stack included."""
        return self.deepest


class InterpretedCounter(CallCounter):
    """Add up what an interpreted machine executes; no price depends on operands. Every instruction is a block."""

    def __init__(self, machine: Any, cpu: Cpu) -> None:
        super().__init__(machine)
        self.cpu = cpu

    def blocks(self) -> Iterable[tuple[int, int, int, int]]:
        """Return the words of code that ran."""
        import numpy as np

        ran = np.flatnonzero(self.machine.counts)
        columns = 2 * ran, np.full_like(ran, 2), self.machine.counts[ran], self.machine.taken[ran]
        return np.stack(columns, axis=1).tolist()  # type: ignore[no-any-return]
