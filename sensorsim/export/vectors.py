"""Inputs for a kernel, made from its declared formats, and what Numba and plain Python make of them."""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from sensorsim.export.ctext import storage
from sensorsim.export.emit import written
from sensorsim.kernels.arguments import array_length, bounds
from sensorsim.kernels.formats import Array, Below, Length, Q
from sensorsim.kernels.language import Kernel

RESULT = "returns"
# A wearable's record; a length that is not named here takes its least value.
TYPICAL = {"n": 14, "l": 7, "size": 256, "mask": 255, "k": 3, "drop": 24, "stair_bits": 10}
SHARED = 64  # arrays longer than this are tables: drawn once for a whole set of vectors


@dataclass(frozen=True)
class Vectors:
    """Arguments of many calls: scalars have shape (count,), arrays (count, size), or (1, size) where all share one."""

    kernel: Kernel
    lengths: dict[str, int]
    count: int
    values: dict[str, Any]

    def of(self, call: int) -> dict[str, Any]:
        """The arguments of one call; arrays are one-dimensional views."""
        made: dict[str, Any] = dict(self.lengths)
        for name, value in self.values.items():
            made[name] = value[call % len(value)]
        return {name: made[name] for name in self.kernel.parameters}


def lengths_for(kernel: Kernel, given: Mapping[str, int] = TYPICAL) -> dict[str, int]:
    """A value for each length of the kernel, within what it allows."""
    kinds = {name: kind for name, kind in kernel.parameters.items() if isinstance(kind, Length)}
    chosen = {name: min(max(given.get(name, kind.lo), kind.lo), kind.hi) for name, kind in kinds.items()}
    return {name: min(value, chosen.get(kinds[name].at_most or "", value)) for name, value in chosen.items()}


def random_vectors(kernel: Kernel, lengths: Mapping[str, int], count: int, seed: int) -> Vectors:
    """Even draws over the whole declared range of every value."""
    import numpy as np

    generator = np.random.default_rng(seed)

    def draw(lo: int, hi: int, shape: tuple[int, ...]) -> Any:
        return generator.integers(lo, hi, shape, endpoint=True)

    return _fill(kernel, lengths, count, draw, share=True)


def edge_vectors(kernel: Kernel, lengths: Mapping[str, int], count: int, seed: int) -> Vectors:
    """Every parameter at its least and its largest value, in all combinations, then edges mixed element by element."""
    import numpy as np

    generator = np.random.default_rng(seed)

    def draw(lo: int, hi: int, shape: tuple[int, ...]) -> Any:
        near = [0, 1, -1, *(sign * (1 << k) + off for k in (14, 15, 30) for sign in (1, -1) for off in (-1, 0, 1))]
        edges = sorted({lo, min(lo + 1, hi), hi, max(hi - 1, lo), *(v for v in near if lo <= v <= hi)})
        return generator.choice(np.array(edges), shape)

    made = _fill(kernel, lengths, count, draw, share=False)
    names = [name for name, kind in kernel.parameters.items() if name in made.values and not _given(kind)]
    for call, ends in enumerate(itertools.islice(itertools.product((0, 1), repeat=len(names)), count)):
        for name, end in zip(names, ends, strict=True):
            kind = kernel.parameters[name]
            made.values[name][call] = bounds(_element(kind), made.lengths)[end]
    return made


def of_one_call(kernel: Kernel, inputs: Mapping[str, Any]) -> Vectors:
    """One call with these arguments: numbers and lists."""
    import numpy as np

    values = {}
    for name, kind in kernel.parameters.items():
        if not isinstance(kind, Length):
            values[name] = np.array([inputs[name]], _dtype(_element(kind)))
    lengths = {name: inputs[name] for name, kind in kernel.parameters.items() if isinstance(kind, Length)}
    return Vectors(kernel, lengths, 1, values)


def expected(vectors: Vectors) -> dict[str, Any]:
    """What Numba's reading of the kernel writes and returns, for every call."""
    import numpy as np

    outputs = {name: _rows(vectors.values[name], vectors.count) for name in written(vectors.kernel)}
    result = np.zeros(vectors.count, np.dtype(_dtype(vectors.kernel.result)) if vectors.kernel.result else np.uint32)
    arguments = [
        outputs.get(name, vectors.values.get(name))
        for name in vectors.kernel.parameters
        if _is_value(vectors.kernel, name)
    ]
    _batch(vectors.kernel)(vectors.count, result, *arguments, *vectors.lengths.values())
    if vectors.kernel.result is not None:
        outputs[RESULT] = result
    return outputs


def by_plain_python(kernel: Kernel, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What the plain function writes and returns for one call with lists and whole numbers."""
    values = {name: list(value) if isinstance(value, list) else value for name, value in arguments.items()}
    result = kernel(*values.values())
    outputs = {name: [int(v) for v in values[name]] for name in kernel.parameters if name in written(kernel)}
    return outputs if kernel.result is None else {**outputs, RESULT: int(result)}


def as_arrays(kernel: Kernel, outputs: Mapping[str, Any]) -> dict[str, Any]:
    """The outputs of one call in the shape of `expected`."""
    import numpy as np

    kinds = {**kernel.parameters, RESULT: kernel.result}
    return {name: np.array([value], _dtype(_element(kinds[name]))) for name, value in outputs.items()}


@cache
def _batch(kernel: Kernel) -> Callable[..., None]:
    """A compiled loop over calls of the compiled kernel; `_k % len(a)` because shared arrays have one row."""
    import numba

    from sensorsim.kernels.compiled import compiled

    values = [name for name in kernel.parameters if _is_value(kernel, name)]
    lengths = [name for name in kernel.parameters if name not in values]
    passed = ", ".join(f"{name}[_k % len({name})]" if name in values else name for name in kernel.parameters)
    call = f"kernel({passed})"
    body = f"_out[_k] = {call}" if kernel.result is not None else call
    names = ", ".join([*values, *lengths])
    source = f"def batch(_count, _out, {names}):\n    for _k in range(_count):\n        {body}\n"
    scope: dict[str, Any] = {"kernel": compiled(kernel)}
    exec(source, scope)  # the text is made of the kernel's own parameter names
    loop: Callable[..., None] = numba.njit(error_model="numpy", nogil=True)(scope["batch"])
    return loop


def _fill(kernel: Kernel, lengths: Mapping[str, int], count: int, draw: Callable[..., Any], share: bool) -> Vectors:
    import numpy as np

    known = lengths_for(kernel, lengths)
    values: dict[str, Any] = {}
    for name, kind in kernel.parameters.items():
        if isinstance(kind, Length):
            continue
        dtype = np.dtype(_dtype(_element(kind)))
        if not isinstance(kind, Array):
            values[name] = draw(*bounds(kind, known), (count,)).astype(dtype)
            continue
        size = array_length(kind, known)
        if kind.contents:
            values[name] = np.array([kind.contents], dtype)
        elif kind.written:
            values[name] = np.zeros((count, size), dtype)
        else:
            rows = 1 if share and size > SHARED and name not in written(kernel) else count
            values[name] = draw(*bounds(kind.element, known), (rows, size)).astype(dtype)
    return Vectors(kernel, known, count, values)


def _rows(value: Any, count: int) -> Any:
    import numpy as np

    return np.array(np.broadcast_to(value, (count, *value.shape[1:])))


def _given(kind: Any) -> bool:
    """Whether a parameter's content is not ours to choose: a constant table, or an array that is only written."""
    return isinstance(kind, Array) and (kind.contents is not None or kind.written)


def _is_value(kernel: Kernel, name: str) -> bool:
    return not isinstance(kernel.parameters[name], Length)


def _element(kind: Q | Below | Array) -> Q | Below:
    return kind.element if isinstance(kind, Array) else kind


def _dtype(kind: Q | Below) -> str:
    name = storage(kind)
    return ("uint" if name[0] == "u" else "int") + name[1:]
