"""Emulate a core: call a compiled function and see which basic blocks ran.

The hook that unicorn calls at the start of every block is itself machine code (a Numba callback), so that counting
costs little: it counts the block, notes whether the block before it ended in a taken branch, and folds the block's
address into a fingerprint of the executed sequence.
"""

import ctypes
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from sensorsim._util.errors import FailedProofError, InputError
from sensorsim.machine.abi import (
    ARGUMENT_BYTES,
    EXIT_BYTES,
    MOST_RANGES,
    STACK_BYTES,
    Abi,
    code_ranges,
    free_places,
    program_pages,
)
from sensorsim.machine.elf import Program
from sensorsim.machine.targets import Target

PORT = 0x100  # behind the exit: functions that the host implements, each RETURN_BYTES long; none is counted
RETURN_BYTES = 16
PAINT = 0xA5
PRIME = 0x100000001B3  # of FNV-1a, which folds one number after the other into a fingerprint

# The hook's memory, in 64-bit words: a head, with the ranges of code in it (start, size, first slot), then four
# words for each byte of code: how often a block began there, how often it ended in a jump, its size, and an entry of
# the list of blocks seen.
FINGERPRINT, SEEN, LAST, LAST_END, RANGES, FIRST = 0, 1, 2, 3, 4, 8
HEAD = FIRST + 3 * MOST_RANGES
COUNT, TAKEN, SIZE, LIST, STEP = 0, 1, 2, 3, 4
HOOKED = 1 << 40  # more than the hook's memory can hold
CALL_SECONDS = 20.0  # of processor time that one call may take: a process that was suspended is not blamed


class EndlessError(FailedProofError):
    """Report a call that was stopped because it did not return."""


class Machine:
    """Run functions of a program on an emulated core."""

    limit = CALL_SECONDS
    late = False  # whether the watchdog stopped the last call

    def __init__(self, target: Target, program: Program) -> None:
        import numpy as np
        import unicorn

        self.target, self.program = target, program
        self.places = free_places(program)
        self.abi = Abi(target, self.places)
        self.uc = self.abi.uc
        for start, end in program_pages(program):
            try:
                self.uc.mem_map(start, end - start)
            except unicorn.UcError as error:
                raise InputError(f"no memory for the program at 0x{start:x} ({error}); link it elsewhere.") from None
        self.uc.mem_map(self.places.exit, EXIT_BYTES)
        self.uc.mem_map(self.places.arguments, ARGUMENT_BYTES)
        self.uc.mem_map(self.places.stack, STACK_BYTES)
        self.load()
        self.abi.start(program)
        self.ranges = code_ranges(program)
        self.state = np.zeros(HEAD + STEP * sum(size for _, size in self.ranges), np.uint64)
        self.state[RANGES], slot = len(self.ranges), 0
        for place, (start, size) in enumerate(self.ranges):
            self.state[FIRST + 3 * place : FIRST + 3 * place + 3] = start, size, slot
            slot += size
        for start, size in self.ranges:
            state = self.state.ctypes.data
            add_c_hook(self.uc, unicorn.UC_HOOK_BLOCK, _block_callback(), state, start, start + size - 1)
        self.paint()

    def load(self) -> None:
        """Fill memory as a startup does: variables with their initial values, the others with zero."""
        for section in sorted(self.program.sections, key=lambda section: not section.zero):
            self.uc.mem_write(section.address, section.data)

    def call(self, name: str, arguments: Sequence[int]) -> int:
        """Run the function; `arguments` are words: numbers, or addresses of what was written before."""
        from unicorn import UcError

        address, _ = self.program.symbols[name]
        self.state[FINGERPRINT] = self.state[LAST_END] = 0
        self.interruption: Exception | None = None
        _watchdog.begin(self)
        try:
            result = self.abi.call(address, arguments)
            if self.interruption is not None:
                raise self.interruption
            if self.late and self.abi.program_counter() & ~1 != self.places.exit:
                raise EndlessError(f"{name} does not end on {self.target.name}: stopped after {self.limit:g} s.")
            return result
        except UcError as error:
            where = self.abi.program_counter()
            raise InputError(f"{name} stopped on {self.target.name} at address 0x{where:x}: {error}.") from None
        finally:
            _watchdog.end(self)

    def play(self, functions: Sequence[Callable[..., int]]) -> list[int]:
        """Return addresses that the program may call; each call runs a function of the host.

        A function takes as many words as it has parameters. An exception in one stops the core, as a power cut does,
        and is raised by `call`.
        """
        from inspect import signature

        from unicorn import UC_HOOK_CODE

        sizes = [len(signature(function).parameters) for function in functions]
        first = self.places.exit + PORT
        places = [first + RETURN_BYTES * place for place in range(len(functions))]
        for place in places:
            self.uc.mem_write(place, self.abi.returns)

        def answer(uc: Any, address: int, size: int, data: Any) -> None:
            which = (address - first) // RETURN_BYTES
            try:
                self.abi.answer(functions[which](*self.abi.given(sizes[which])))
            except Exception as error:
                self.interruption = error
                uc.emu_stop()

        self.uc.hook_add(UC_HOOK_CODE, answer, begin=first, end=places[-1])
        self.uc.ctl_flush_tb()
        return [place | self.abi.thumb for place in places]

    def blocks(self) -> Any:
        """Return (start, size, count, taken) of each block that ran since the last `forget`, as four columns."""
        import numpy as np

        words, slots = self._seen()
        starts, sizes = np.array(self.ranges, np.int64).T
        firsts = np.cumsum(sizes) - sizes
        owners = np.searchsorted(firsts, slots, side="right") - 1
        columns = [slots - firsts[owners] + starts[owners], *(words[slots, what] for what in (SIZE, COUNT, TAKEN))]
        return np.stack([column.astype(np.int64) for column in columns], axis=1)

    def forget(self) -> None:
        """Reset the counts."""
        words, slots = self._seen()
        words[slots, COUNT] = 0
        words[slots, TAKEN] = 0
        self.state[SEEN] = 0

    def _seen(self) -> tuple[Any, Any]:
        """Return the hook's four words of each byte of code, and the slots of blocks that ran."""
        words = self.state[HEAD:].reshape(-1, STEP)
        return words, words[: int(self.state[SEEN]), LIST].astype("int64")

    @property
    def fingerprint(self) -> int:
        """Return a hash of the sequence of blocks that the last call executed."""
        return int(self.state[FINGERPRINT])

    def paint(self) -> None:
        """Fill the stack with a pattern, to measure its depth later."""
        self.uc.mem_write(self.places.stack, bytes([PAINT]) * STACK_BYTES)

    def stack_bytes(self) -> int:
        """Return the deepest stack since `paint`, arguments passed on the stack included."""
        touched = bytes(self.uc.mem_read(self.places.stack, STACK_BYTES)).lstrip(bytes([PAINT]))
        return max(0, len(touched) - self.abi.top)

    def read_code(self, address: int, size: int) -> bytes:
        """Return bytes of the program in memory."""
        return bytes(self.uc.mem_read(address, size))


class _Watchdog:
    """Stop calls that take too long: one thread for all machines, as a timer of unicorn's costs 90 us in each call."""

    def __init__(self) -> None:
        self.running: dict[Machine, float] = {}  # until when
        self.thread = threading.Thread()

    def begin(self, machine: Machine) -> None:
        """Start the clock of a call."""
        machine.late = False
        self.running[machine] = time.process_time() + machine.limit
        if not self.thread.is_alive():  # none yet, or this process was forked
            self.thread = threading.Thread(target=self._watch, daemon=True)
            with suppress(RuntimeError):  # where no thread can be started, no call is stopped
                self.thread.start()

    def end(self, machine: Machine) -> None:
        """Stop the clock of a call."""
        self.running.pop(machine, None)

    def _watch(self) -> None:
        while True:
            time.sleep(0.5)
            for machine, end in list(self.running.items()):
                if time.process_time() > end:
                    machine.late = True
                    machine.uc.emu_stop()


_watchdog = _Watchdog()


@cache
def _block_callback() -> Any:
    """Compile the hook: void (uc, address, size, memory)."""
    import numba

    from sensorsim.language.numba_backend.jit import callback

    signature = numba.void(numba.types.voidptr, numba.uint64, numba.uint32, numba.types.CPointer(numba.uint64))

    def block(uc: Any, address: Any, size: Any, memory: Any) -> None:
        word = numba.uint64
        state = numba.carray(memory, HOOKED)
        at = word(FIRST)
        while at < word(FIRST) + word(3) * state[RANGES] and address - state[at] >= state[at + word(1)]:
            at += word(3)
        if at >= word(FIRST) + word(3) * state[RANGES]:
            return
        slot = address - state[at] + state[at + word(2)]
        here = word(HEAD) + word(STEP) * slot
        # FNV-1a over block addresses
        state[FINGERPRINT] = (state[FINGERPRINT] ^ (slot + word(1))) * word(PRIME)
        if state[LAST_END] != word(0) and state[LAST_END] != address:
            state[word(HEAD) + word(STEP) * state[LAST] + word(TAKEN)] += word(1)
        if state[here + word(COUNT)] == word(0):
            state[word(HEAD) + word(STEP) * state[SEEN] + word(LIST)] = slot
            state[SEEN] += word(1)
            state[here + word(SIZE)] = word(size)
        state[here + word(COUNT)] += word(1)
        state[LAST] = slot
        state[LAST_END] = address + word(size)

    return callback(block, signature)


def add_c_hook(uc: Any, kind: int, callback: Any, memory: int, first: int, last: int) -> Any:
    """Register a compiled hook for addresses from `first` to `last`; return its handle.

    Unicorn's Python interface only takes Python functions, its C interface any.
    """
    from unicorn.unicorn_py3 import unicorn as binding

    handle = ctypes.c_size_t()
    function, state = ctypes.cast(callback.address, ctypes.c_void_p), ctypes.c_void_p(memory)
    ends = ctypes.c_uint64(first), ctypes.c_uint64(last)
    status = binding.uclib.uc_hook_add(uc._uch, ctypes.byref(handle), kind, function, state, *ends)
    if status:
        raise RuntimeError(f"unicorn refused a hook (error {status})")
    return handle
