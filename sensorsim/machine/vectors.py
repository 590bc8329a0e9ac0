"""Generate inputs for a kernel from its declared formats, and the outputs that Numba and plain Python compute."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from sensorsim._util.errors import InputError
from sensorsim.language.arguments import array_length, bounds
from sensorsim.language.kernel import Kernel
from sensorsim.language.types import Array, Below, Kind, Length, Q, numpy_name

RESULT = "returns"
SHARED = 64  # arrays longer than this are tables: drawn once for a whole set of vectors


@dataclass(frozen=True)
class Vectors:
    """Hold arguments of many calls: scalars of shape (count,), arrays (count, size), or (1, size) if shared."""

    kernel: Kernel
    lengths: dict[str, int]
    count: int
    values: dict[str, Any]

    def of(self, call: int) -> dict[str, Any]:
        """Return the arguments of one call; arrays are one-dimensional views."""
        made = {**self.lengths, **{name: value[call % len(value)] for name, value in self.values.items()}}
        return {name: made[name] for name in self.kernel.parameters}

    def only(self, call: int) -> "Vectors":
        """Return that call alone."""
        values = {name: value[call % len(value)][None] for name, value in self.values.items()}
        return Vectors(self.kernel, self.lengths, 1, values)

    def some(self, count: int) -> "Vectors":
        """Return at most `count` of the calls, evenly chosen: the first edges differ in a few arguments only."""
        chosen = [place * self.count // count for place in range(count)] if count < self.count else range(self.count)
        values = {name: value if len(value) == 1 else value[list(chosen)] for name, value in self.values.items()}
        return Vectors(self.kernel, self.lengths, len(chosen), values)

    def holding(self, fixed: Mapping[str, Any]) -> "Vectors":
        """Return the calls with these arguments in all of them: a number for a scalar, a list for an array."""
        import numpy as np

        values = dict(self.values)
        for name, given in fixed.items():
            known = values[name]
            same = np.broadcast_to(np.array(given, known.dtype), (len(known), *known.shape[1:]))
            values[name] = np.array(same, order="C")  # C reads it by address
        return Vectors(self.kernel, self.lengths, self.count, values)


def with_one_public_input(vectors: Vectors) -> Vectors:
    """Return the same secrets with the public inputs of the first call: only the secrets change."""
    import numpy as np

    values = dict(vectors.values)
    for name, kind in vectors.kernel.parameters.items():
        if name in values and not _element(kind).secret:
            values[name] = np.array(np.broadcast_to(values[name][:1], values[name].shape), order="C")
    return Vectors(vectors.kernel, vectors.lengths, vectors.count, values)


def random_vectors(kernel: Kernel, lengths: Mapping[str, int], count: int, seed: int) -> Vectors:
    """Draw uniformly over the declared range of every value; lengths that are not given are typical."""
    import numpy as np

    generator = np.random.default_rng(seed)
    draw = partial(generator.integers, endpoint=True)
    return _shuffled(_fill(kernel, lengths, count, draw, share=True), generator)


def edge_vectors(kernel: Kernel, lengths: Mapping[str, int], count: int, seed: int) -> Vectors:
    """Set every parameter to its least and largest value in all combinations, then mix edges element by element."""
    import numpy as np

    generator = np.random.default_rng(seed)

    def draw(lo: int, hi: int, shape: tuple[int, ...]) -> Any:
        near = [0, 1, -1, *(sign * (1 << k) + off for k in (14, 15, 30) for sign in (1, -1) for off in (-1, 0, 1))]
        edges = sorted({lo, min(lo + 1, hi), hi, max(hi - 1, lo), *(v for v in near if lo <= v <= hi)})
        return generator.choice(np.array(edges), shape)

    made = _shuffled(_fill(kernel, lengths, count, draw, share=False), generator)
    own = {name: (least_first(range(limit), size), largest_first(range(limit), size))
           for name, limit, size in orders(kernel, made.lengths)}  # fmt: skip
    names = [name for name, kind in kernel.parameters.items() if name in made.values and not _given(kind)]
    for call, ends in enumerate(itertools.islice(itertools.product((0, 1), repeat=len(names)), count)):
        for name, end in zip(names, ends, strict=True):
            ends_of = own.get(name) or bounds(_element(kernel.parameters[name]), made.lengths)
            made.values[name][call] = ends_of[end]
    return made


def orders(kernel: Kernel, lengths: Mapping[str, int]) -> Iterator[tuple[str, int, int]]:
    """Yield the arrays that hold no value twice: name, upper bound of the values, length."""
    for name, kind in kernel.arrays.items():
        if isinstance(kind.element, Below) and kind.element.once and not _given(kind):
            limit, size = lengths[kind.element.limit], array_length(kernel, name, lengths)
            if size > limit:
                raise InputError(f"kernel {kernel.name}: {name} has {size} values below {limit}, none of them twice.")
            yield name, limit, size


def least_first(values: range, count: int) -> list[int]:
    """Return the `count` least values in ascending order."""
    return list(values[:count])


def largest_first(values: range, count: int) -> list[int]:
    """Return the `count` largest values in descending order."""
    return list(values[::-1][:count])


def _shuffled(vectors: Vectors, generator: Any) -> Vectors:
    """Shuffle every array that holds no value twice."""
    import numpy as np

    for name, limit, size in orders(vectors.kernel, vectors.lengths):
        rows = vectors.values[name]
        every = np.broadcast_to(np.arange(limit, dtype=rows.dtype), (len(rows), limit))
        rows[:] = generator.permuted(every, axis=1)[:, :size]
    return vectors


def of_one_call(kernel: Kernel, inputs: Mapping[str, Any]) -> Vectors:
    """Return the vectors of one call with these arguments: numbers and lists."""
    import numpy as np

    lengths = {name: inputs[name] for name, kind in kernel.parameters.items() if isinstance(kind, Length)}
    others = {name: kind for name, kind in kernel.parameters.items() if name not in lengths}
    values = {name: np.array([inputs[name]], _dtype(kind)) for name, kind in others.items()}
    return Vectors(kernel, lengths, 1, values)


def expected(vectors: Vectors) -> dict[str, Any]:
    """Return what the kernel compiled by Numba writes and returns, for every call."""
    from sensorsim.language.numba_backend.batch import batch_of

    kernel, given = vectors.kernel, dict(vectors.lengths)
    for name, value in vectors.values.items():
        if not _given(kernel.parameters[name]):
            shared = len(value) == 1 < vectors.count and name in kernel.arrays
            given[name] = value[0] if shared else value
    return batch_of(kernel, vectors.count, given)


def by_plain_python(kernel: Kernel, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the plain Python function writes and returns for one call with lists and whole numbers."""
    check_vectors(kernel)
    values = {name: list(value) if isinstance(value, list) else value for name, value in arguments.items()}
    result = kernel(*values.values())
    outputs = {name: [int(v) for v in values[name]] for name in kernel.parameters if name in kernel.written}
    return outputs if kernel.result is None else {**outputs, RESULT: int(result)}


def as_arrays(kernel: Kernel, outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the outputs of one call in the shape of `expected`."""
    import numpy as np

    kinds = {**kernel.parameters, RESULT: kernel.result}
    return {name: np.array([value], _dtype(kinds[name])) for name, value in outputs.items()}


def check_vectors(kernel: Kernel) -> None:
    """Check that a kernel can be called with numbers alone."""
    if kernel.records:
        raise InputError(
            f"{kernel.name} takes a record, and is verified with what it is part of: export a sensor and `verify` it."
        )


def _fill(kernel: Kernel, lengths: Mapping[str, int], count: int, draw: Callable[..., Any], share: bool) -> Vectors:
    check_vectors(kernel)
    import numpy as np

    known = kernel.lengths_at(lengths)
    values: dict[str, Any] = {}
    for name, kind in kernel.parameters.items():
        if isinstance(kind, Length):
            continue
        dtype = np.dtype(_dtype(kind))
        if not isinstance(kind, Array):
            values[name] = draw(*bounds(kind, known), (count,)).astype(dtype)
            continue
        size = array_length(kernel, name, known)
        if kind.contents:
            values[name] = np.array([kind.contents[:size]], dtype)
        elif kind.written:
            values[name] = np.zeros((count, size), dtype)
        else:
            rows = 1 if share and size > SHARED and name not in kernel.written else count
            values[name] = draw(*bounds(kind.element, known), (rows, size)).astype(dtype)
    return Vectors(kernel, known, count, values)


def _given(kind: Any) -> bool:
    """Return whether a parameter's content is fixed: a constant table, or an array that is only written."""
    return isinstance(kind, Array) and (kind.contents is not None or kind.written)


def _element(kind: Kind | None) -> Q | Below:
    value = kind.element if isinstance(kind, Array) else kind
    assert isinstance(value, Q | Below)
    return value


def _dtype(kind: Kind | None) -> str:
    return numpy_name(_element(kind).storage)
