"""Run vectors through compiled code: on the host through a shared library, on a core through the emulator."""

import ctypes
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError
from sensorsim.language.c.comments import C_TYPES
from sensorsim.language.kernel import Kernel
from sensorsim.language.types import Array, Length
from sensorsim.machine.abi import ARGUMENT_BYTES
from sensorsim.machine.counting import CallCounter, Tally
from sensorsim.machine.emulator import Machine
from sensorsim.machine.vectors import RESULT, Vectors

if TYPE_CHECKING:
    from sensorsim.machine.interpreted import InterpretedMachine


class TooLargeError(InputError):
    """Report arguments that do not fit the emulated memory."""


GUARD = 16  # bytes behind every array on a core, which must stay as they are
GUARD_BYTE = 0x5C


def differing_bits(got: dict[str, Any], want: dict[str, Any]) -> int:
    """Count the bits of all outputs that differ."""
    import numpy as np

    total = 0
    for name, values in want.items():
        a, b = (np.ascontiguousarray(array).view(np.uint8).ravel() for array in (got[name], values))
        total += int(np.bitwise_count(a ^ b).sum())
    return total


def driver_source(kernel: Kernel, function: str) -> str:
    """Return a C function that calls the kernel's for many vectors; `_step` is 0 for an array that all calls share."""
    parameters, passed = ["uint32_t driver_calls"], []
    for name, kind in kernel.parameters.items():
        if isinstance(kind, Length):
            parameters.append(f"uint32_t {name}_all")
            passed.append(f"{name}_all")
            continue
        const = "" if name in kernel.written else "const "
        parameters += [f"{const}{C_TYPES[kind.storage]} *{name}_all", f"uint32_t {name}_step"]
        at = f"{name}_all + ((uint64_t){name}_step * driver_call)"
        passed.append(at if isinstance(kind, Array) else f"*({at})")
    call = f"{function}({', '.join(passed)})"
    if kernel.result is not None:
        parameters.append(f"{C_TYPES[kernel.result.storage]} *driver_result")
    head = f"void {function}_driver({', '.join(parameters)})"
    body = f"driver_result[driver_call] = {call};" if kernel.result is not None else f"{call};"
    loop = "for (uint32_t driver_call = 0U; driver_call < driver_calls; driver_call++)"
    return f"{head};\n{head}\n{{\n    {loop} {{\n        {body}\n    }}\n}}\n"


def run_on_host(library: ctypes.CDLL, vectors: Vectors, function: str) -> dict[str, Any]:
    """Return the outputs of all calls of the C function."""
    import numpy as np

    kernel = vectors.kernel
    outputs: dict[str, Any] = {}
    arguments: list[Any] = [ctypes.c_uint32(vectors.count)]
    for name, kind in kernel.parameters.items():
        if isinstance(kind, Length):
            arguments.append(ctypes.c_uint32(vectors.lengths[name]))
            continue
        values = vectors.values[name]
        if name in kernel.written:
            values = outputs[name] = np.array(np.broadcast_to(values, (vectors.count, *values.shape[1:])))
        step = 0 if len(values) == 1 else values[0].size
        arguments += [ctypes.c_void_p(values.ctypes.data), ctypes.c_uint32(step)]
    if kernel.result is not None:
        outputs[RESULT] = np.zeros(vectors.count, C_TYPES[kernel.result.storage].removesuffix("_t"))
        arguments.append(ctypes.c_void_p(outputs[RESULT].ctypes.data))
    getattr(library, f"{function}_driver")(*arguments)
    return outputs


class CoreRun:
    """Place vectors in the memory of an emulated core and call the function with each."""

    def __init__(self, machine: "Machine | InterpretedMachine", vectors: Vectors, function: str) -> None:
        import numpy as np

        self.machine, self.vectors, self.name = machine, vectors, function
        self.filled = [name for name in vectors.kernel.parameters if name in vectors.kernel.written]
        arrays = [name for name, kind in vectors.kernel.parameters.items() if isinstance(kind, Array)]
        first = place = machine.places.arguments
        self.address: dict[str, int] = {}
        for name in sorted(arrays, key=lambda n: (n in self.filled, len(vectors.values[n]) > 1)):  # shared first
            self.address[name] = place
            place += vectors.values[name][0].nbytes + GUARD + 3 & ~3
        self.out_start = min((self.address[name] for name in self.filled), default=place)
        self.out_bytes = place - self.out_start
        if place > first + ARGUMENT_BYTES:
            raise TooLargeError(f"the arguments of {function} take {place - first} bytes, {ARGUMENT_BYTES} fit.")
        machine.uc.mem_write(first, bytes([GUARD_BYTE]) * (place - first))
        own = [name for name in arrays if name not in self.filled]
        self.inputs = [name for name in own if len(vectors.values[name]) > 1]
        for name in own:
            machine.uc.mem_write(self.address[name], vectors.values[name][0].tobytes())
        # What the output region holds before each call: initial values, and guards between them.
        self.before = np.full((vectors.count, self.out_bytes), GUARD_BYTE, np.uint8)
        for name in self.filled:
            values = vectors.values[name]
            values = np.ascontiguousarray(np.broadcast_to(values, (vectors.count, *values.shape[1:])))
            self._part(self.before, name)[:] = values.view(np.uint8).reshape(vectors.count, -1)

    def calls(self, which: Iterable[int] | None = None) -> Iterator[int]:
        """Run every call, or those; yield its number when its counts can be taken."""
        import numpy as np

        vectors, uc = self.vectors, self.machine.uc
        self.after = np.zeros_like(self.before)
        self.results = np.zeros(vectors.count, np.uint32)
        fixed = {**vectors.lengths, **self.address}  # others have a word for each call
        plan = [
            fixed[name] if name in fixed else vectors.values[name].astype("int64") & 0xFFFFFFFF
            for name in vectors.kernel.parameters
        ]
        for call in range(vectors.count) if which is None else which:
            for name in self.inputs:
                uc.mem_write(self.address[name], vectors.values[name][call].tobytes())
            if self.out_bytes:
                uc.mem_write(self.out_start, self.before[call].tobytes())
            self.results[call] = self.machine.call(self.name, [p if isinstance(p, int) else int(p[call]) for p in plan])
            if self.out_bytes:
                self.after[call] = np.frombuffer(uc.mem_read(self.out_start, self.out_bytes), np.uint8)
            yield call

    def differing_bits(self, want: dict[str, Any]) -> int:
        """Count the bits that differ in all outputs and in the guards behind them."""
        import numpy as np

        right = self.before.copy()
        for name in self.filled:
            self._part(right, name)[:] = np.ascontiguousarray(want[name]).view(np.uint8).reshape(len(right), -1)
        total = int(np.bitwise_count(self.after ^ right).sum())
        if RESULT in want:  # of a narrow result only its own bits count: a caller must not look at the others
            returned = self.results.astype(want[RESULT].dtype)
            total += differing_bits({RESULT: returned}, {RESULT: want[RESULT]})
        return total

    def _part(self, region: Any, name: str) -> Any:
        start = self.address[name] - self.out_start
        return region[:, start : start + self.vectors.values[name][0].nbytes]


def run_on_core(
    machine: "Machine | InterpretedMachine",
    vectors: Vectors,
    want: dict[str, Any],
    function: str,
    counter: CallCounter | None,
    tally: Tally,
) -> int:
    """Run all calls, count them where there is a counter, and return how many bits differ."""
    run = CoreRun(machine, vectors, function)
    for _ in run.calls():
        if counter is not None:
            counter.take(tally)
        else:
            machine.forget()
    return run.differing_bits(want)


def load_host(path: Path) -> ctypes.CDLL:
    """Load a shared library."""
    return ctypes.CDLL(str(path))
