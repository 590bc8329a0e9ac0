"""Running vectors through compiled code: on the host through a shared library, on a core through the emulator."""

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sensorsim.export.counting import BlockCounter, Tally
from sensorsim.export.ctext import C_TYPES, storage
from sensorsim.export.emit import written
from sensorsim.export.machine import ARGUMENT_BYTES, ARGUMENTS, Machine
from sensorsim.export.vectors import RESULT, Vectors
from sensorsim.kernels.formats import Array, Length
from sensorsim.kernels.language import Kernel

GUARD = 16  # bytes behind every array on a core, which must stay as they are
GUARD_BYTE = 0x5C


def differing_bits(got: dict[str, Any], want: dict[str, Any]) -> int:
    """How many bits of all outputs differ."""
    import numpy as np

    total = 0
    for name, values in want.items():
        a, b = (np.ascontiguousarray(array).view(np.uint8) for array in (got[name], values))
        if not np.array_equal(a, b):
            total += int(np.unpackbits(a.ravel() ^ b.ravel()).sum())
    return total


def driver_source(kernel: Kernel, prefix: str) -> str:
    """A C function that calls the kernel for many vectors; `_step` is 0 for an array that all calls share."""
    parameters, passed = ["uint32_t count"], []
    for name, kind in kernel.parameters.items():
        if isinstance(kind, Length):
            parameters.append(f"uint32_t {name}")
            passed.append(name)
            continue
        const = "" if name in written(kernel) else "const "
        element = C_TYPES[storage(kind.element if isinstance(kind, Array) else kind)]
        parameters += [f"{const}{element} *{name}_all", f"uint32_t {name}_step"]
        at = f"{name}_all + ((uint64_t){name}_step * call)"
        passed.append(at if isinstance(kind, Array) else f"*({at})")
    function = f"{prefix}{kernel.name}({', '.join(passed)})"
    result = C_TYPES[storage(kernel.result)] if kernel.result is not None else None
    if result:
        parameters.append(f"{result} *result")
    head = f"void drive_{kernel.name}({', '.join(parameters)})"
    body = f"result[call] = {function};" if result else f"{function};"
    return f"{head};\n{head}\n{{\n    for (uint32_t call = 0U; call < count; call++) {{\n        {body}\n    }}\n}}\n"


def run_on_host(library: ctypes.CDLL, vectors: Vectors) -> dict[str, Any]:
    """The outputs of all calls."""
    import numpy as np

    kernel = vectors.kernel
    outputs: dict[str, Any] = {}
    arguments: list[Any] = [ctypes.c_uint32(vectors.count)]
    for name, kind in kernel.parameters.items():
        if isinstance(kind, Length):
            arguments.append(ctypes.c_uint32(vectors.lengths[name]))
            continue
        values = vectors.values[name]
        if name in written(kernel):
            values = outputs[name] = np.array(np.broadcast_to(values, (vectors.count, *values.shape[1:])))
        step = 0 if len(values) == 1 else values[0].size
        arguments += [ctypes.c_void_p(values.ctypes.data), ctypes.c_uint32(step)]
    if kernel.result is not None:
        outputs[RESULT] = np.zeros(vectors.count, storage(kernel.result).replace("u", "uint").replace("i3", "int3"))
        arguments.append(ctypes.c_void_p(outputs[RESULT].ctypes.data))
    getattr(library, f"drive_{kernel.name}")(*arguments)
    return outputs


class CoreRun:
    """Vectors on an emulated core: where each argument lies, and one call after the other."""

    def __init__(self, machine: Machine, vectors: Vectors, prefix: str) -> None:
        import numpy as np

        self.machine, self.vectors = machine, vectors
        self.name = prefix + vectors.kernel.name
        self.filled = [name for name in vectors.kernel.parameters if name in written(vectors.kernel)]
        arrays = [name for name, kind in vectors.kernel.parameters.items() if isinstance(kind, Array)]
        place, self.address = ARGUMENTS, {}
        for name in sorted(arrays, key=lambda n: (n in self.filled, len(vectors.values[n]) > 1)):  # shared first
            if name in self.filled and not hasattr(self, "out_start"):
                self.out_start = place
            self.address[name] = place
            place += vectors.values[name][0].nbytes + GUARD + 3 & ~3
        self.out_start = getattr(self, "out_start", place)
        self.out_bytes = place - self.out_start
        if place > ARGUMENTS + ARGUMENT_BYTES:
            raise ValueError("the vectors do not fit the emulator's memory")
        machine.uc.mem_write(ARGUMENTS, bytes([GUARD_BYTE]) * (place - ARGUMENTS))
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

    def calls(self) -> Iterator[int]:
        """Run every call; yields its number, when its counts can be taken."""
        import numpy as np

        vectors, uc = self.vectors, self.machine.uc
        self.after = np.zeros_like(self.before)
        self.results = np.zeros(vectors.count, np.uint32)
        plan = [self._word(name) for name in vectors.kernel.parameters]
        for call in range(vectors.count):
            for name in self.inputs:
                uc.mem_write(self.address[name], vectors.values[name][call].tobytes())
            if self.out_bytes:
                uc.mem_write(self.out_start, self.before[call].tobytes())
            self.results[call] = self.machine.call(self.name, [p if isinstance(p, int) else int(p[call]) for p in plan])
            if self.out_bytes:
                self.after[call] = np.frombuffer(uc.mem_read(self.out_start, self.out_bytes), np.uint8)
            yield call

    def differing_bits(self, want: dict[str, Any]) -> int:
        """Of all outputs and of the guards behind them."""
        import numpy as np

        right = self.before.copy()
        for name in self.filled:
            self._part(right, name)[:] = np.ascontiguousarray(want[name]).view(np.uint8).reshape(len(right), -1)
        total = int(np.unpackbits(self.after ^ right).sum()) if not np.array_equal(self.after, right) else 0
        if RESULT in want:
            expected = want[RESULT].astype(np.int64) & 0xFFFFFFFF
            total += int(np.unpackbits((self.results ^ expected.astype(np.uint32)).view(np.uint8)).sum())
        return total

    def _part(self, region: Any, name: str) -> Any:
        start = self.address[name] - self.out_start
        return region[:, start : start + self.vectors.values[name][0].nbytes]

    def _word(self, name: str) -> Any:
        """An argument as a word, or as one word for each call."""
        if name in self.address:
            return self.address[name]
        if name in self.vectors.lengths:
            return self.vectors.lengths[name]
        return self.vectors.values[name].astype("int64") & 0xFFFFFFFF


def run_on_core(
    machine: Machine, vectors: Vectors, want: dict[str, Any], prefix: str, counter: BlockCounter | None, tally: Tally
) -> int:
    """Run all calls, count them where there is a counter, and return how many bits differ."""
    run = CoreRun(machine, vectors, prefix)
    for _ in run.calls():
        if counter is not None:
            counter.take(tally)
        else:
            machine.forget()
    return run.differing_bits(want)


def load_host(path: Path) -> ctypes.CDLL:
    return ctypes.CDLL(str(path))
