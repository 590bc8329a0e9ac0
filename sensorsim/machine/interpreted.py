"""What the small cores have in common whose interpreter is ours: memory in an array, and a report of what ran.

They stand where `machine.emulator.Machine` does, and are read and written as through unicorn.
"""

from typing import Any, ClassVar, NamedTuple

from sensorsim.machine.elf import Program
from sensorsim.machine.harness import TooLargeError


class Places(NamedTuple):
    """Where things lie in memory: what a call is given, and the end of the room for it, below the stack."""

    arguments: int
    floor: int


class Signature(NamedTuple):
    """The bytes of each parameter, and of the result; 0 for none."""

    parameters: tuple[int, ...]
    result: int


class InterpretedMachine:
    """A core with a program and its variables in memory. Each core fills these in, and runs its calls."""

    title: ClassVar[str]  # for messages
    places: ClassVar[Places]
    path_at: ClassVar[int]  # in the report: a hash of the way, and of the addresses
    addresses_at: ClassVar[int]
    memory: Any  # signed words, a byte in each: see the interpreters
    counts: Any
    taken: Any
    report: Any

    def __init__(self, program: Program, signatures: dict[str, Signature]) -> None:
        self.program, self.signatures, self.deepest = program, signatures, 0
        self.uc = self

    def rooms(self) -> tuple[Any, ...]:
        """The memories that hold what is written for a call."""
        return (self.memory,)

    def mem_write(self, address: int, content: bytes) -> None:
        import numpy as np

        first, end = self.places
        if address < first or address + len(content) > end:
            raise TooLargeError(f"the arguments take more than the {end - first} bytes of the emulated {self.title}.")
        for room in self.rooms():
            room[address : address + len(content)] = np.frombuffer(content, np.uint8)

    def mem_read(self, address: int, size: int) -> bytes:
        content: bytes = self.memory[address : address + size].astype("uint8").tobytes()
        return content

    def forget(self) -> None:
        """Set the counts back to zero."""
        self.counts[:] = 0
        self.taken[:] = 0

    @property
    def fingerprint(self) -> int:
        """A hash of the way that the last call took through its branches."""
        return int(self.report[self.path_at])

    @property
    def addresses(self) -> int:
        """A hash of the data addresses that the last call read and wrote, in their order."""
        return int(self.report[self.addresses_at])

    def stack_bytes(self) -> int:
        """The deepest stack of all calls, return address and arguments passed on the stack included."""
        return self.deepest
