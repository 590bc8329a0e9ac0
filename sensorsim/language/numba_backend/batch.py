"""Run a kernel on many records with one compiled loop, which is compiled once for each way to give the parameters.

    release.batch(x=records, table=entries, limit=limit, stair_bits=10)          a dict with the array y

Arrays with a row for each record are per record, one-dimensional ones are shared. An array that the kernel both reads
and writes (a pointer, an order) and that is given once is state: it starts as given, is passed from record to record,
and starts again at every block of BLOCK records, so that the number of threads never changes a result. Numbers are
shared or one for each record. What a format declares as drawn, and is not given, comes from the generator.

Which words a record gets follows from the seed and the number of the record. The compiled loop allocates nothing.
"""

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from sensorsim._util.errors import InputError
from sensorsim.language.kernel import Kernel
from sensorsim.language.numba_backend import RETURNS
from sensorsim.language.numba_backend.batch_loops import BLOCK, Roles, limit_of, runner
from sensorsim.language.numba_backend.compile import array, dtype, given, lengths_of, scalar
from sensorsim.language.numba_backend.generators import CIPHER, Seed, generator_fill, generator_state, words_below
from sensorsim.language.types import Array, Length

OPTIONS = ("generator", "seed", "threads", "out")  # keywords of `batch` that are no parameters of the kernel
NO_WORDS = np.zeros(0, np.uint32)


def batch_of(
    kernel: Kernel,
    count: int | None,
    values: Mapping[str, Any],
    generator: str = "chacha20",
    seed: Seed = None,
    threads: int = 1,
    out: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Call the kernel for every record; return the arrays that it writes, and `returns` if it returns something.

    `out` gives arrays to write to, with at least as many rows as there are records; None for an array that is not
    wanted. Without a seed the generator's key is from the operating system. `count` is needed where no parameter has
    rows. A drawn word below a limit that is no power of two is up to limit/2^32 more likely than another.
    """
    call = _Call(kernel, count, dict(out or {}), dict(values))
    if threads < 1:
        raise InputError(f"threads = {threads} is too few; give 1 or more.")
    fill = generator_fill(generator)  # also where nothing is drawn, so that a wrong name is always seen
    state = generator_state(seed) if call.drawn else NO_WORDS
    run = runner(kernel, call.roles, fill if call.drawn else None)

    def part(first: int, last: int) -> None:
        run(first, last, state.copy(), *call.arguments())

    if call.count:
        _in_threads(part, call.count, threads, BLOCK)
    return call.results


class _Call:
    """The arguments of a batch, checked, and the role of each parameter."""

    def __init__(self, kernel: Kernel, count: int | None, out: dict[str, Any], values: dict[str, Any]) -> None:
        values = given(kernel, values)
        for name in out:
            wanted = name == RETURNS if kernel.result is not None else False
            if not wanted and not (name in kernel.arrays and name in kernel.written):
                raise InputError(f"{kernel.name} does not write {name}; it writes {', '.join(_written(kernel))}.")
        self.kernel, self.out, self.values = kernel, out, values
        rows = {name: value.shape for name, value in values.items() if name not in kernel.lengths}
        counts = {shape[0] for name, shape in rows.items() if len(shape) == 1 + (name in kernel.arrays)}
        counts |= {count} if count is not None else set()
        if len(counts) != 1 or min(counts) < 0:
            some = " and ".join(map(str, sorted(counts)))
            raise InputError(f"{kernel.name} is given {some or 'no'} records; give every array with rows as many.")
        self.count = int(counts.pop())
        shapes = {name: np.shape(value) for name, value in [*out.items(), *values.items()] if name in kernel.arrays}
        self.lengths, self.sizes = lengths_of(kernel, values, shapes)
        self.per_record: dict[str, Any] = {}
        self.shared: dict[str, Any] = {}
        self.start: dict[str, Any] = {}
        self.drawn: dict[str, int] = {}
        self.scratch: list[str] = []
        self.results: dict[str, Any] = {}
        for name, kind in kernel.parameters.items():
            self.place(name, kind)
        self.returned = self.result()
        self.roles = Roles(
            frozenset(self.per_record), frozenset(self.shared), tuple(self.start), tuple(self.drawn),
            tuple(self.scratch),
        )  # fmt: skip
        own = [name for name in out if name in self.results]
        _no_overlap(kernel, own, self.results, [*self.per_record.items(), *self.shared.items()])

    def place(self, name: str, kind: Any) -> None:
        """Find the role of a parameter."""
        kernel, value = self.kernel, self.values.get(name)
        if isinstance(kind, Length):
            self.shared[name] = self.lengths[name]
        elif isinstance(kind, Array):
            self.place_array(name, kind, value)
        elif value is None:
            if not kind.drawn:
                raise InputError(f"{kernel.name} needs {name}; give a number, or one for each record.")
            self.drawn[name] = 1
        elif np.ndim(value):
            self.per_record[name] = array(kernel, name, value, (self.count,), self.lengths)
        else:
            self.shared[name] = scalar(kernel, name, value, self.lengths)

    def place_array(self, name: str, kind: Array, value: Any) -> None:
        kernel, size = self.kernel, self.sizes[name]
        written = name in kernel.written
        if kind.written and value is None:
            if name in self.out and self.out[name] is None:
                self.scratch.append(name)
            else:
                self.per_record[name] = self.results[name] = self.buffer(name, dtype(kind), (size,))
        elif value is None and kind.contents is not None:
            self.shared[name] = array(kernel, name, kind.contents[:size], (size,), self.lengths)
        elif value is None:
            if not kind.element.drawn or written:
                raise InputError(f"{kernel.name} needs the array {name} of {kind.length} values; give it.")
            self.drawn[name] = size
        elif np.ndim(value) == 2:
            made = array(kernel, name, value, (self.count, size), self.lengths, copy=written)
            self.per_record[name] = made
            if written:
                self.results[name] = made
        elif written:
            self.start[name] = array(kernel, name, value, (size,), self.lengths, copy=True)
        else:
            self.shared[name] = array(kernel, name, value, (size,), self.lengths)

    def buffer(self, name: str, kind: Any, shape: tuple[int, ...]) -> Any:
        """Return the array that is given to write to, or a new one."""
        made = self.out.get(name)
        if made is None:
            make = np.empty if name == RETURNS else np.zeros  # every call returns; not every cell need be written
            return make((self.count, *shape), kind)
        fits = isinstance(made, np.ndarray) and made.ndim == 1 + len(shape) and made.shape[1:] == shape
        if not fits or made.dtype != kind or len(made) < self.count or not made.flags.c_contiguous:
            wanted = " × ".join(map(str, (self.count, *shape)))
            raise InputError(f"out[{name!r}] is no contiguous array of {kind} with {wanted} values; give such a one.")
        return made

    def result(self) -> Any:
        if self.kernel.result is None:
            return None
        self.results[RETURNS] = self.buffer(RETURNS, dtype(self.kernel.result), ())
        return self.results[RETURNS]

    def arguments(self) -> list[Any]:
        """Return the arguments for one thread: what is shared, and its own arrays for words, state and scratch."""
        kernel = self.kernel
        limits = {name: limit_of(kernel, name) for name in self.drawn}
        needs = {
            name: BLOCK * size if limit is None else words_below(self.lengths[limit], BLOCK * size)
            for (name, size), limit in zip(self.drawn.items(), limits.values(), strict=True)
        }
        words, at = np.zeros(-(-sum(needs.values()) // CIPHER) * CIPHER, np.uint32), 0
        raw: dict[str, Any] = {}
        for name, need in needs.items():
            raw[name], at = words[at : at + need], at + need
        made: list[Any] = [words]
        for name, kind in kernel.parameters.items():
            if name in self.drawn:
                mine = raw[name] if limits[name] is None else np.zeros(BLOCK * self.drawn[name], np.uint32)
                made += [mine.reshape(BLOCK, -1) if isinstance(kind, Array) else mine]
            elif name in self.start:
                made += [self.start[name].copy()]
            elif name in self.scratch:
                made += [np.zeros(self.sizes[name], dtype(kind))]
            else:
                made += [self.per_record[name] if name in self.per_record else self.shared[name]]
        made += [self.start[name] for name in self.start]
        made += [raw[name] for name, limit in limits.items() if limit is not None]
        return made + ([self.returned] if self.returned is not None else [])


def _written(kernel: Kernel) -> list[str]:
    names = [name for name in kernel.arrays if name in kernel.written]
    return [*names, RETURNS] if kernel.result is not None else names or ["nothing"]


def _no_overlap(kernel: Kernel, own: list[str], results: Mapping[str, Any], others: list[tuple[str, Any]]) -> None:
    """Refuse an array to write to that is read, or written to under another name."""
    for name in own:
        result = results[name]
        for other, value in [*others, *results.items()]:
            if other != name and isinstance(value, np.ndarray) and value.ndim and np.may_share_memory(result, value):
                raise InputError(f"{name} and {other} of {kernel.name} share memory; give two arrays.")


def _in_threads(part: Callable[[int, int], None], count: int, threads: int, unit: int) -> None:
    """Run `part(first, last)` over all records, in as many threads, split at multiples of `unit` records."""
    if threads == 1:
        part(0, count)
        return
    units = -(-count // unit)
    threads = max(1, min(threads, units, os.cpu_count() or 1))
    edges = [min(count, unit * (units * t // threads)) for t in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(part, edges[:-1], edges[1:]))
