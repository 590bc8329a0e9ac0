"""Write the compiled loop of a batch: block by block, first the random words, then the records.

A kernel whose last loop `batch_split` can split runs in two parts over a whole block. Any other kernel is called record
by record.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from sensorsim.language.arguments import polynomial
from sensorsim.language.kernel import Kernel
from sensorsim.language.numba_backend import OUTER, compiled
from sensorsim.language.numba_backend.batch_split import Roles, Split, split_loop
from sensorsim.language.numba_backend.compile import NUMPY
from sensorsim.language.numba_backend.generators import below
from sensorsim.language.numba_backend.jit import jit
from sensorsim.language.numba_backend.python_source import Lines, Source, variable
from sensorsim.language.types import Array, Below, word

BLOCK = 64  # records whose words are drawn at once: they stay in the first cache


def limit_of(kernel: Kernel, name: str) -> str | None:
    """Return the length below which a drawn word must be, if there is one."""
    kind = kernel.parameters[name]
    element = kind.element if isinstance(kind, Array) else kind
    return element.limit if isinstance(element, Below) else None


@cache
def runner(kernel: Kernel, roles: Roles, fill: Callable[..., Any] | None) -> Callable[..., None]:
    """Return the compiled loop: run(first, last, state of the generator, words, parameters in order, starts of the
    state, words for those below a limit, results)."""
    split = split_loop(kernel, roles)
    return _Calls(kernel, roles, fill).made() if split is None else _Block(kernel, roles, fill, split).made()


class _Calls(Source):
    """The kernel is called record by record."""

    def __init__(self, kernel: Kernel, roles: Roles, fill: Callable[..., Any] | None) -> None:
        super().__init__(compiled)
        self.kernel, self.roles = kernel, roles
        self.limits = {name: limit_of(kernel, name) for name in roles.drawn}
        self.scope |= {"fill": fill, "below": below, "least": min, "most": max}

    def made(self) -> Callable[..., None]:
        roles = self.roles
        whole = not (roles.drawn or roles.state)  # nothing to do at the start of a block
        lines = self.blocks("last - first" if whole else str(BLOCK))
        lines += [line for name in roles.state for line in self.reset(name)]
        call = f"{self.named('k', self.kernel)}({', '.join(map(variable, self.kernel.parameters))})"
        result = "result[t_place(block + r)] = " if self.kernel.result is not None else ""
        lines += ["  for r in range(rows):"]
        for name in self.kernel.parameters:
            lines += self.record(name, "t_place(r)" if name in roles.drawn else "t_place(block + r)", 3)
        return self.compiled_loop([*lines, f"   {result}{call}"])

    def compiled_loop(self, lines: Lines) -> Callable[..., None]:
        return jit(self.function("batch", lines), kept=True, **OUTER)

    def head(self, more: tuple[str, ...]) -> Lines:
        kernel, roles = self.kernel, self.roles
        names = [f"a_{name}" for name in kernel.parameters] + [f"start_{name}" for name in roles.state]
        names += [f"raw_{name}" for name, limit in self.limits.items() if limit is not None]
        names += ["result"] if kernel.result is not None else []
        lines = [f"def batch(first, last, state, words, {', '.join([*names, *more])}):"]
        return lines + [line for name in kernel.parameters for line in self.bound_once(name)]

    def bound_once(self, name: str) -> Lines:
        """Bind a parameter before the loop, if all records share it; else its rows as one long row."""
        kind, roles = self.kernel.parameters[name], self.roles
        if not isinstance(kind, Array):
            return [f" {variable(name)} = t_{word(kind)}(a_{name})"] if name in roles.shared else []
        if name in roles.rows or name in roles.drawn:
            return [f" flat_{name} = a_{name}.reshape(a_{name}.size)"]
        return [f" {variable(name)} = a_{name}"]

    def blocks(self, step: str, more: tuple[str, ...] = ()) -> Lines:
        lines = [*self.head(more), f" for block in range(first, last, {step}):"]
        lines += [f"  rows = least({step}, last - block)"]
        lines += [f"  fill(words, state, block // {BLOCK})"] if self.roles.drawn else []
        return lines + self.below_limits("  ")

    def below_limits(self, pad: str) -> Lines:
        arrays = self.kernel.arrays
        return [
            f"{pad}below(raw_{name}, {'flat' if name in arrays else 'a'}_{name}, {variable(limit)})"
            for name, limit in self.limits.items()
            if limit is not None
        ]

    def reset(self, name: str) -> Lines:
        return [f"  for k in range(start_{name}.shape[0]):", f"   a_{name}[k] = start_{name}[k]"]

    def record(self, name: str, row: str, indent: int) -> Lines:
        """Bind a parameter that each record has its own of."""
        kind, one = self.kernel.parameters[name], f"a_{name}[{row}]"
        if name not in self.roles.rows and name not in self.roles.drawn:
            return []
        return [f"{' ' * indent}{variable(name)} = " + (one if isinstance(kind, Array) else f"t_{word(kind)}({one})")]


class _Block(_Calls):
    """Both parts of a loop run over the joined rows of a block."""

    def __init__(self, kernel: Kernel, roles: Roles, fill: Callable[..., Any] | None, split: Split) -> None:
        super().__init__(kernel, roles, fill)
        self.split, self.counter = split, variable(split.counter)
        self.turns = self.cast("index", split.last)
        self.scratch = tuple(f"s_{place}" for place in range(len(split.kept)))

    def made(self) -> Callable[..., None]:
        split = self.split
        lines = self.blocks(str(BLOCK), self.scratch) + (self.block(split.fixed, 2) if split.fixed else [])
        lines += self.joined("block", 2)
        if split.first:
            lines += [f"  for {self.counter} in range(rows * {self.turns}):", *self.block(split.first, 3)]
            lines += self.save(f"t_place({self.counter})", 3)
        return self.with_arrays(self.compiled_loop(lines + self.second(self.scratch, 2)), self.arrays)

    def arrays(self, turns: int) -> list[Any]:
        return [np.empty(BLOCK * turns, NUMPY[kind]) for kind in self.split.kept.values()]

    def with_arrays(self, function: Callable[..., None], arrays: Callable[[int], list[Any]]) -> Callable[..., None]:
        """Return the loop with scratch arrays, which are made before it starts."""
        size, names = polynomial(self.split.last), list(self.kernel.parameters)

        def run(first: int, last: int, state: Any, words: Any, *values: Any) -> None:
            turns = size.value({name: values[names.index(name)] for name in self.kernel.lengths})
            function(first, last, state, words, *values, *arrays(turns))

        return run

    def joined(self, place: str, indent: int) -> Lines:
        """Bind the rows from `place` on as one long row."""
        lines: Lines = []
        for name in self.kernel.arrays:
            if name in self.roles.drawn:
                lines += [f"{' ' * indent}{variable(name)} = flat_{name}"]
            elif name in self.roles.rows:
                size = f"a_{name}.shape[1]"
                part = f"flat_{name}[{place} * {size} : ({place} + rows) * {size}]"
                lines += [f"{' ' * indent}{variable(name)} = {part}"]
        return lines

    def save(self, place: str, indent: int) -> Lines:
        pairs = zip(self.scratch, self.split.kept, strict=True)
        return [f"{' ' * indent}{array}[{place}] = {variable(name)}" for array, name in pairs]

    def second(self, scratch: tuple[str, ...], indent: int) -> Lines:
        pad = " " * indent
        lines = [f"{pad}for {self.counter} in range(rows * {self.turns}):"]
        for array, (name, kind) in zip(scratch, self.split.kept.items(), strict=True):
            lines += [f"{pad} {variable(name)} = t_{kind[0]}32({array}[t_place({self.counter})])"]
        return lines + self.block(self.split.second, indent + 1)
