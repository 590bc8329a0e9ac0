"""Write the compiled loop of a batch: block by block, first the random words, then the records.

A kernel whose last loop `batch_split` can split runs in two parts over a whole block, and one with pointers in LANES
blocks side by side. Any other kernel is called record by record.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from sensorsim.language import ir
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
LANES = 16
GATHERED = 1024  # features of a lane that the second part takes at once, or those of one record


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
    if split is None:
        return _Calls(kernel, roles, fill).made()
    return (_Lanes if split.cells else _Block)(kernel, roles, fill, split).made()


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


class _Lanes(_Block):
    """LANES blocks run side by side.

    A turn draws the words of one record of each block; moves all pointers, which vectorises; and loads what they point
    to. Every few records the second part runs over what has gathered.
    """

    def element(self, node: ir.Load | ir.Store) -> str:
        if node.array in self.roles.drawn:  # the words of the lanes are side by side
            return f"{variable(node.array)}[t_place({self.cast('index', node.index)} * {LANES} + lane)]"
        return super().element(node)

    def made(self) -> Callable[..., None]:
        split, turns = self.split, self.turns
        lines = self.head(("cells", "held", *self.scratch))
        lines += [f" {variable(name)} = flat_{name}" for name in self.roles.drawn]
        lines += self.block(split.fixed, 1) if split.fixed else []
        lines += [f" few = most(1, least({BLOCK}, {GATHERED} // {turns}))", f" room = few * {turns}"]
        lines += [f" for block in range(first, last, {BLOCK * LANES}):", f"  for lane in range({LANES}):"]
        for k, (array, place) in enumerate(split.cells.values()):
            lines += [f"   cells[{k * LANES} + lane] = start_{array}[{place}]"]
        lines += [f"  for begin in range(0, least({BLOCK}, last - block), few):"]
        lines += [f"   end = least(begin + few, {BLOCK}, last - block)", "   for r in range(begin, end):"]
        lines += [f"    fill(words, state, block // {LANES} + r)", *self.below_limits("    ")]
        lines += self.calls() + self.chain() + self.gather()
        lines += [f"   for lane in range({LANES}):", f"    place = block + lane * {BLOCK} + begin"]
        lines += ["    rows = least(end - begin, last - place)", "    if rows > 0:"]
        lines += [line for line in self.joined("place", 5) if "= flat_" in line and "[" in line]
        lines += [f"     z_{array} = {array}[lane * room : lane * room + rows * {turns}]" for array in self.scratch]
        lines += self.second(tuple(f"z_{array}" for array in self.scratch), 5)
        return self.with_arrays(self.compiled_loop(lines), self.arrays)

    def arrays(self, turns: int) -> list[Any]:
        split = self.split
        cells = np.zeros(LANES * len(split.cells), np.uint32)
        held = np.zeros(LANES * turns * max(1, len(split.held)), np.uint32)
        return [cells, held, *(np.zeros(LANES * max(turns, GATHERED), NUMPY[kind]) for kind in split.kept.values())]

    def calls(self) -> Lines:
        """Write the calls before the loop, for one record of each lane."""
        once = self.split.once
        if not once:
            return []
        lines = [f"    for lane in range({LANES}):", f"     row = block + lane * {BLOCK} + r", "     if row < last:"]
        used = {part.name for part in ir.walk(*once) if isinstance(part, ir.Name)}
        used |= {part.array for part in ir.walk(*once) if isinstance(part, ir.Load | ir.Store | ir.Whole)}
        for name in self.kernel.parameters:
            lines += self.record(name, "t_place(row)", 6) if name in self.roles.rows & used else []
        return lines + self.block(once, 6)

    def chain(self) -> Lines:
        """Write the chain as a function of its own, whose few arrays LLVM can tell apart."""
        split = self.split
        used = {part.name for part in ir.walk(*split.chain, split.last) if isinstance(part, ir.Name)}
        fixed = {let.name for let in split.fixed}
        names = [*sorted(used & (self.roles.shared | fixed)), *self.roles.drawn]
        given = ", ".join(["cells", "held", *map(variable, names)])
        lines = [f"def chain({given}):", f" for {self.counter} in range({self.turns}):"]
        lines += [f"  for lane in range({LANES}):"]
        cells = {name: f"cells[t_place({place * LANES} + lane)]" for place, name in enumerate(split.cells)}
        lines += [f"   {variable(name)} = t_{self.kernel.names[name]}({cell})" for name, cell in cells.items()]
        lines += self.block(split.chain, 3)
        lines += [f"   {cell} = {variable(name)}" for name, cell in cells.items()]
        lines += [f"   {self.held_at(place)} = {variable(name)}" for place, name in enumerate(split.held)]
        self.scope["chain"] = jit(self.function("chain", lines), **OUTER)
        return [f"    chain({given})"]

    def held_at(self, place: int) -> str:
        row = f"({self.counter} * {len(self.split.held)} + {place})"
        return f"held[t_place({row} * {LANES} + lane)]"

    def gather(self) -> Lines:
        held = self.split.held
        lines = [f"    for lane in range({LANES}):", f"     at = lane * room + (r - begin) * {self.turns}"]
        lines += [f"     for {self.counter} in range({self.turns}):"]
        lines += [f"      {variable(name)} = t_{held[name]}({self.held_at(place)})" for place, name in enumerate(held)]
        return [*lines, *self.block(self.split.first, 6), *self.save(f"t_place(at + {self.counter})", 6)]
