"""Record what a call touches: a fingerprint of the data addresses that it reads and writes, and of chosen operands.

Everything has the same address in every call of one set of vectors, and the stack begins at the same place, so
addresses can be compared as they are. The hook for addresses is machine code, as that for blocks; it still makes a
call several times slower, so a few hundred calls are watched, not all.
"""

from collections.abc import Mapping, Sequence
from functools import cache
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
        registers = {name: _register(self.machine, name) for names in self.places.values() for name in names}

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
        _delete_hook(self.machine.uc, self._hook)
        for hook in self._seen:
            self.machine.uc.hook_del(hook)
        self.machine.uc.ctl_flush_tb()

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

    def __enter__(self) -> "Steps":
        from unicorn import UC_HOOK_BLOCK, UC_HOOK_CODE, UC_HOOK_MEM_READ, UC_HOOK_MEM_WRITE

        uc, at = self.machine.uc, [0]
        self._hooks = [
            uc.hook_add(UC_HOOK_BLOCK, lambda uc, address, size, _: self.blocks.append((address, size))),
            uc.hook_add(UC_HOOK_CODE, lambda uc, address, size, _: at.__setitem__(0, address)),
            uc.hook_add(
                UC_HOOK_MEM_READ | UC_HOOK_MEM_WRITE,
                lambda uc, kind, address, size, value, _: self.accesses.append((at[0], address)),
            ),
        ]
        uc.ctl_flush_tb()
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            self.machine.uc.hook_del(hook)
        self.machine.uc.ctl_flush_tb()

    def take(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Return blocks and accesses of the last call, and reset."""
        taken = self.blocks, self.accesses
        self.blocks, self.accesses = [], []
        self.machine.forget()
        return taken


def first_difference(one: Sequence[tuple[int, int]], other: Sequence[tuple[int, int]]) -> int | None:
    """Return the index of the first entry in which two lists differ; None where they are equal."""
    for place, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return place
    return None if len(one) == len(other) else min(len(one), len(other))


def _register(machine: Machine, name: str) -> int:
    """Return unicorn's number of a register by its name in a disassembly."""
    from unicorn import arm_const, riscv_const, x86_const

    module, stem = {
        "x86": (x86_const, "UC_X86_REG_"),
        "thumb": (arm_const, "UC_ARM_REG_"),
        "riscv32": (riscv_const, "UC_RISCV_REG_"),
    }[machine.target.family]
    return int(getattr(module, stem + name.upper()))


@cache
def _memory_callback() -> Any:
    """Compile the hook: void (uc, kind, address, size, value, memory)."""
    import numba

    signature = numba.void(
        numba.types.voidptr,
        numba.int32,
        numba.uint64,
        numba.int32,
        numba.int64,
        numba.types.CPointer(numba.uint64),
    )

    def touched(uc: Any, kind: Any, address: Any, size: Any, value: Any, memory: Any) -> None:
        word = numba.uint64
        state = numba.carray(memory, 1)
        what = (word(address) << word(5)) ^ (word(size) << word(1)) ^ word(kind & 1)
        state[0] = (state[0] ^ (what + word(1))) * word(PRIME)

    return numba.cfunc(signature)(touched)


def _delete_hook(uc: Any, handle: Any) -> None:
    from unicorn.unicorn_py3 import unicorn as binding

    status = binding.uclib.uc_hook_del(uc._uch, handle)
    if status:
        raise RuntimeError(f"unicorn kept the memory hook (error {status})")
