"""Record what a call touches: a fingerprint of the data addresses that it reads and writes, and of chosen operands.

Everything has the same address in every call of one set of vectors, and the stack begins at the same place, so
addresses can be compared as they are. The hook for addresses is machine code, as that for blocks; it still makes a
call several times slower, so a few hundred calls are watched, not all.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from itertools import zip_longest
from typing import Any, NamedTuple

from sensorsim.machine.emulator import PRIME, Machine, add_c_hook

WORD = (1 << 64) - 1


class Touched(NamedTuple):
    """Hold fingerprints of one call: the blocks that ran, the addresses of data, the operands at the watched places."""

    path: int
    addresses: int
    operands: Mapping[int, int]


class Watch:
    """Watch the calls of a machine within `with Watch(…) as watch`; `take` after each call."""

    def __init__(self, machine: Machine, places: Mapping[int, Sequence[str]]) -> None:
        """Watch `places`: addresses of instructions, and the registers whose values are folded there."""
        import numpy as np

        self.machine, self.places = machine, places
        self.state = np.zeros(1, np.uint64)
        self.operands: dict[int, int] = {}

    def __enter__(self) -> "Watch":
        from unicorn import UC_HOOK_CODE, UC_HOOK_MEM_READ, UC_HOOK_MEM_WRITE

        kinds, state = UC_HOOK_MEM_READ | UC_HOOK_MEM_WRITE, self.state.ctypes.data
        self._hook = add_c_hook(self.machine.uc, kinds, _memory_callback(), state, 1, 0)  # every address
        stem = {"x86": "X86", "thumb": "ARM", "riscv32": "RISCV"}[self.machine.target.family]
        constants = import_module(f"unicorn.{stem.lower()}_const")
        every = {name for names in self.places.values() for name in names}  # as a disassembly names them
        registers = {name: int(getattr(constants, f"UC_{stem}_REG_{name.upper()}")) for name in every}

        def seen(uc: Any, address: int, size: int, data: Any) -> None:
            known = self.operands.get(address, 0)
            for name in self.places[address]:
                known = (known ^ (int(uc.reg_read(registers[name])) + 1)) * PRIME & WORD
            self.operands[address] = known

        add = self.machine.uc.hook_add
        self._seen = [add(UC_HOOK_CODE, seen, begin=place, end=place) for place in self.places]
        self.machine.uc.ctl_flush_tb()  # code that was translated before calls no new hook
        return self

    def __exit__(self, *_: object) -> None:
        from unicorn.unicorn_py3 import unicorn as binding

        if status := binding.uclib.uc_hook_del(self.machine.uc._uch, self._hook):
            raise RuntimeError(f"unicorn kept the memory hook (error {status})")
        remove_hooks(self.machine.uc, self._seen)

    def take(self) -> Touched:
        """Return what the last call touched, and reset."""
        touched = Touched(self.machine.fingerprint, int(self.state[0]), self.operands)
        self.state[0], self.operands = 0, {}
        self.machine.forget()
        return touched


class Steps:
    """Record every block and every data access of a call in order: slow, for two calls that differ."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.blocks: list[tuple[int, int]] = []  # address and size
        self.accesses: list[tuple[int, int]] = []  # address of the instruction, and of the data
        self.at = 0

    def __enter__(self) -> "Steps":
        from unicorn import UC_HOOK_BLOCK, UC_HOOK_CODE, UC_HOOK_MEM_READ, UC_HOOK_MEM_WRITE

        add = self.machine.uc.hook_add
        self._hooks = [
            add(UC_HOOK_BLOCK, lambda uc, address, size, _: self.blocks.append((address, size))),
            add(UC_HOOK_CODE, lambda uc, address, size, _: setattr(self, "at", address)),
            add(
                UC_HOOK_MEM_READ | UC_HOOK_MEM_WRITE,
                lambda uc, kind, address, size, value, _: self.accesses.append((self.at, address)),
            ),
        ]
        self.machine.uc.ctl_flush_tb()
        return self

    def __exit__(self, *_: object) -> None:
        remove_hooks(self.machine.uc, self._hooks)

    def take(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Return blocks and accesses of the last call, and reset."""
        taken = self.blocks, self.accesses
        self.blocks, self.accesses = [], []
        self.machine.forget()
        return taken


def remove_hooks(uc: Any, hooks: Sequence[Any]) -> None:
    """Remove hooks, and the translated code that calls them."""
    for hook in hooks:
        uc.hook_del(hook)
    uc.ctl_flush_tb()


def first_difference(one: Sequence[tuple[int, int]], other: Sequence[tuple[int, int]]) -> int | None:
    """Return the index of the first entry in which two lists differ; None where they are equal."""
    pairs = enumerate(zip_longest(one, other))
    return next((place for place, (a, b) in pairs if a != b), None)


@cache
def _memory_callback() -> Any:
    """Compile the hook: void (uc, kind, address, size, value, memory)."""
    import numba

    pointers = numba.types.voidptr, numba.types.CPointer(numba.uint64)
    signature = numba.void(pointers[0], numba.int32, numba.uint64, numba.int32, numba.int64, pointers[1])

    def touched(uc: Any, kind: Any, address: Any, size: Any, value: Any, memory: Any) -> None:
        word = numba.uint64
        state = numba.carray(memory, 1)
        what = (word(address) << word(5)) ^ (word(size) << word(1)) ^ word(kind & 1)
        state[0] = (state[0] ^ (what + word(1))) * word(PRIME)

    return numba.cfunc(signature)(touched)
