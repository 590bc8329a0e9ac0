"""An emulated core: call a compiled function and see which basic blocks ran.

The hook that unicorn calls at the start of every block is itself machine code (a Numba callback), so that counting
costs little: it counts the block, notes whether the block before it ended in a taken branch, and folds the block's
address into a fingerprint of the executed sequence.
"""

import ctypes
import struct
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from sensorsim.errors import FailedProofError, InputError
from sensorsim.machine.elf import Program
from sensorsim.machine.memory import (
    ARGUMENT_BYTES,
    ARGUMENT_PLACES,
    EXIT_BYTES,
    MOST_RANGES,
    STACK_BYTES,
    STACK_PLACES,
    Places,
    code_ranges,
    pages,
    places_beside,
)
from sensorsim.machine.targets import Target

ARGUMENTS, STACK = ARGUMENT_PLACES[0], STACK_PLACES[0]  # the usual places; `Machine.places` has those of a program
PORT = 0x100  # behind the exit: functions of a board that the host plays, each RETURN_BYTES long; none is counted
RETURN_BYTES = 16
PAINT = 0xA5

# The hook's memory, in 64-bit words: a head, with the stretches of code in it (start, size, first slot), then four
# words for each byte of code: how often a block began there, how often it ended in a jump, its size, and an entry of
# the list of blocks seen.
FINGERPRINT, SEEN, LAST, LAST_END, RANGES, FIRST = 0, 1, 2, 3, 4, 8
HEAD = FIRST + 3 * MOST_RANGES
COUNT, TAKEN, SIZE, LIST, STEP = 0, 1, 2, 3, 4
HOOKED = 1 << 40  # more than the hook's memory can hold
CALL_SECONDS = 20.0  # of processor time that one call may take: a process that was suspended is not blamed


class EndlessError(FailedProofError):
    """A call that was stopped because it did not return."""


class Machine:
    """A core with a program loaded, ready to be called."""

    limit = CALL_SECONDS
    late = False  # whether the watchdog stopped the last call

    def __init__(self, target: Target, program: Program) -> None:
        import numpy as np
        import unicorn

        self.target, self.program = target, program
        self.places = places_beside(program)
        self.abi = _ABIS[target.family](target)
        self.abi.places = self.places
        self.uc = self.abi.open()
        for start, end in pages(program):
            try:
                self.uc.mem_map(start, end - start)
            except unicorn.UcError as error:
                raise InputError(f"no memory for the program at 0x{start:x} ({error}); link it elsewhere.") from None
        for start, size in (
            (self.places.exit, EXIT_BYTES),
            (self.places.arguments, ARGUMENT_BYTES),
            (self.places.stack, STACK_BYTES),
        ):
            self.uc.mem_map(start, size)
        self.load()
        self.abi.start(self.uc, program)
        self.failure: type[Exception] = unicorn.UcError
        self.ranges = code_ranges(program)
        self.state = np.zeros(HEAD + STEP * sum(size for _, size in self.ranges), np.uint64)
        self.state[RANGES], slot = len(self.ranges), 0
        for place, (start, size) in enumerate(self.ranges):
            self.state[FIRST + 3 * place : FIRST + 3 * place + 3] = start, size, slot
            slot += size
        self._hooks = [_add_block_hook(self.uc, self.state.ctypes.data, *one) for one in self.ranges]
        self.paint()

    def load(self) -> None:
        """Memory as a startup leaves it: variables hold their first values, the others are zero."""
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
            result = int(self.abi.call(self.uc, address, arguments))
            if self.interruption is not None:
                raise self.interruption
            if self.late and self.abi.program_counter(self.uc) & ~1 != self.places.exit:
                raise EndlessError(f"{name} does not end on {self.target.name}: stopped after {self.limit:g} s.")
            return result
        except UcError as error:
            where = self.abi.program_counter(self.uc)
            raise InputError(f"{name} stopped on {self.target.name} at address 0x{where:x}: {error}.") from None
        finally:
            _watchdog.end(self)

    def play(self, functions: Sequence[Callable[..., int]]) -> list[int]:
        """Addresses that the program may call as functions; each call is answered by the host's function.

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
                self.abi.answer(uc, functions[which](*self.abi.given(uc, sizes[which])))
            except Exception as error:
                self.interruption = error
                uc.emu_stop()

        self.uc.hook_add(UC_HOOK_CODE, answer, begin=first, end=places[-1])
        self.uc.ctl_flush_tb()
        return [place | self.abi.thumb for place in places]

    def blocks(self) -> Any:
        """(start, size, count, taken) of each block that ran since the last `forget`, as an array of four columns."""
        import numpy as np

        words = self._words()
        slots = words[: int(self.state[SEEN]), LIST].astype(np.int64)
        starts, sizes = np.array(self.ranges, np.int64).T
        firsts = np.cumsum(sizes) - sizes
        owners = np.searchsorted(firsts, slots, side="right") - 1
        columns = [slots - firsts[owners] + starts[owners], *(words[slots, what] for what in (SIZE, COUNT, TAKEN))]
        return np.stack([column.astype(np.int64) for column in columns], axis=1)

    def forget(self) -> None:
        """Set the counts back to zero."""
        import numpy as np

        words = self._words()
        slots = words[: int(self.state[SEEN]), LIST].astype(np.int64)
        words[slots, COUNT] = 0
        words[slots, TAKEN] = 0
        self.state[SEEN] = 0

    def _words(self) -> Any:
        """The hook's four words of each byte of code."""
        return self.state[HEAD:].reshape(-1, STEP)

    @property
    def fingerprint(self) -> int:
        """A hash of the sequence of blocks that the last call executed."""
        return int(self.state[FINGERPRINT])

    def paint(self) -> None:
        """Fill the stack with a pattern, to see later how deep it went."""
        self.uc.mem_write(self.places.stack, bytes([PAINT]) * STACK_BYTES)

    def stack_bytes(self) -> int:
        """The deepest stack since `paint`, arguments passed on the stack included."""
        touched = bytes(self.uc.mem_read(self.places.stack, STACK_BYTES)).lstrip(bytes([PAINT]))
        return max(0, len(touched) - int(self.abi.top))

    def read_code(self, address: int, size: int) -> bytes:
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
            with suppress(RuntimeError):  # no thread can be started here: then nobody stops a call
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


class _Abi:
    """How a function is called on a core, and where it returns to."""

    places: Places

    def start(self, uc: Any, program: Program) -> None:
        """Registers that a startup would set."""


class _X86(_Abi):
    """cdecl: every argument on the stack."""

    top = 64  # bytes above the first argument that the stack pointer starts below
    thumb = 0
    returns = b"\xc3"  # ret

    def __init__(self, target: Target) -> None:
        pass

    def open(self) -> Any:
        from unicorn import UC_ARCH_X86, UC_MODE_32, Uc

        return Uc(UC_ARCH_X86, UC_MODE_32)

    def call(self, uc: Any, address: int, arguments: Sequence[int]) -> int:
        from unicorn.x86_const import UC_X86_REG_EAX, UC_X86_REG_ESP

        words = struct.pack(f"<{len(arguments) + 1}I", self.places.exit, *arguments)
        stack = (
            self.places.stack + STACK_BYTES - self.top - len(words) + 4 & ~15
        ) - 4  # 16-byte aligned before the call
        uc.mem_write(stack, words)
        uc.reg_write(UC_X86_REG_ESP, stack)
        uc.emu_start(address, self.places.exit)
        return int(uc.reg_read(UC_X86_REG_EAX))

    def given(self, uc: Any, count: int) -> tuple[int, ...]:
        """The first words that the program passed to a function of the host."""
        from unicorn.x86_const import UC_X86_REG_ESP

        return struct.unpack(f"<{count}I", uc.mem_read(uc.reg_read(UC_X86_REG_ESP) + 4, 4 * count))

    def answer(self, uc: Any, value: int) -> None:
        from unicorn.x86_const import UC_X86_REG_EAX

        uc.reg_write(UC_X86_REG_EAX, value)

    def program_counter(self, uc: Any) -> int:
        from unicorn.x86_const import UC_X86_REG_EIP

        return int(uc.reg_read(UC_X86_REG_EIP))


class _Registers(_Abi):
    """The first arguments in registers, the others on the stack."""

    top = 64
    thumb = 0

    def __init__(self, target: Target) -> None:
        self.target = target

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
        """The first words that the program passed to a function of the host; no more than registers hold."""
        return tuple(int(uc.reg_read(register)) & 0xFFFFFFFF for register in self.inputs[:count])

    def answer(self, uc: Any, value: int) -> None:
        uc.reg_write(self.inputs[0], value)

    def program_counter(self, uc: Any) -> int:
        return int(uc.reg_read(self.pc))

    returns: bytes
    inputs: tuple[int, ...]
    sp: int
    link: int
    pc: int


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


_ABIS: dict[str, Any] = {"x86": _X86, "thumb": _Arm, "riscv32": _RiscV}


@cache
def _block_callback() -> Any:
    """The hook, compiled: void (uc, address, size, memory)."""
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
        state[FINGERPRINT] = (state[FINGERPRINT] ^ (slot + word(1))) * word(0x100000001B3)
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


def _add_block_hook(uc: Any, memory: int, start: int, size: int) -> Any:
    """Register the compiled hook for a stretch of code.

    Unicorn's Python interface only takes Python functions, its C interface any.
    """
    from unicorn import UC_HOOK_BLOCK
    from unicorn.unicorn_py3 import unicorn as binding

    handle = ctypes.c_size_t()
    add = binding.uclib.uc_hook_add
    status = add(
        uc._uch,
        ctypes.byref(handle),
        UC_HOOK_BLOCK,
        ctypes.cast(_block_callback().address, ctypes.c_void_p),
        ctypes.c_void_p(memory),
        ctypes.c_uint64(start),
        ctypes.c_uint64(start + size - 1),
    )
    if status:
        raise RuntimeError(f"unicorn refused the block hook (error {status})")
    return handle
