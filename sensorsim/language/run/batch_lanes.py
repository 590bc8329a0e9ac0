"""The compiled loop of a batch whose records carry pointers: LANES blocks of records at a time, see `chains`.

A turn draws the words of one record of each block, side by side; moves all pointers, which vectorises; does the rest of
the first pass for each record; and every few records runs the second pass over what has gathered.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from sensorsim.language import ir
from sensorsim.language.arguments import polynomial
from sensorsim.language.kernel import Kernel
from sensorsim.language.run import OUTER, compiled
from sensorsim.language.run.chains import Chains
from sensorsim.language.run.jit import jit
from sensorsim.language.run.passes import Passes
from sensorsim.language.run.text import Lines, Text, variable
from sensorsim.language.run.values import NUMPY
from sensorsim.language.types import Array, word

LANES = 16
GATHERED = 1024  # features of a lane that the second pass takes at once, or those of one record


class LanesRunner(Text):
    """`run(first, last, state of the generator, words, parameters, starts, words below a limit)` for whole groups."""

    def __init__(self, kernel: Kernel, roles: Any, fill: Any, below: Any, passes: Passes, chains: Chains) -> None:
        super().__init__(compiled)
        self.kernel, self.roles, self.passes, self.chains = kernel, roles, passes, chains
        self.scope |= {"fill": fill, "below": below, "least": min, "most": max}
        self.turns = self.cast("index", passes.last)

    def element(self, node: ir.Load | ir.Store) -> str:
        if node.array in self.roles.drawn:  # the words of the lanes are side by side
            return f"{variable(node.array)}[t_place({self.cast('index', node.index)} * {LANES} + lane)]"
        return super().element(node)

    def made(self, limits: dict[str, str | None], block: int) -> Callable[..., None]:
        kernel, roles, passes = self.kernel, self.roles, self.passes
        names = [f"a_{name}" for name in kernel.parameters] + [f"start_{name}" for name in roles.state]
        names += [f"raw_{name}" for name, limit in limits.items() if limit is not None]
        rooms = [f"s_{place}" for place in range(len(passes.kept))]
        lines = [f"def batch(first, last, state, words, {', '.join(names)}, cells, held, {', '.join(rooms)}):"]
        lines += [line for name in kernel.parameters for line in self.bound_once(name)]
        lines += self.block(passes.fixed, 1) if passes.fixed else []
        lines += [f" few = most(1, least({block}, {GATHERED} // {self.turns}))", f" room = few * {self.turns}"]
        lines += [f" for block in range(first, last, {block * LANES}):", *self.start()]
        lines += [f"  for begin in range(0, least({block}, last - block), few):"]
        lines += [f"   end = least(begin + few, {block}, last - block)", "   for r in range(begin, end):"]
        lines += [f"    fill(words, state, block // {LANES} + r)"]
        for name, limit in limits.items():
            flat = "flat" if name in kernel.arrays else "a"
            lines += [f"    below(raw_{name}, {flat}_{name}, {variable(limit)})"] if limit is not None else []
        lines += self.calls(block) + self.chain_call() + self.rest()
        lines += [f"   for lane in range({LANES}):", f"    place = block + lane * {block} + begin"]
        lines += ["    rows = least(end - begin, last - place)", "    if rows > 0:", *self.joined(), *self.second()]
        return self.with_room(jit(self.function("batch", lines), kept=True, **OUTER))

    def with_room(self, function: Callable[..., None]) -> Callable[..., None]:
        """Room for the lanes, made before the compiled loop starts."""
        size, places, chains = polynomial(self.passes.last), list(self.kernel.parameters), self.chains
        kinds = list(self.passes.kept.values())

        def run(first: int, last: int, state: Any, words: Any, *values: Any) -> None:
            turns = size.value({name: values[places.index(name)] for name in self.kernel.lengths})
            cells = np.zeros(LANES * len(chains.cells), np.uint32)
            held = np.zeros(LANES * turns * max(1, len(chains.held)), np.uint32)
            rooms = [np.zeros(LANES * max(turns, GATHERED), NUMPY[kind]) for kind in kinds]
            function(first, last, state, words, *values, cells, held, *rooms)

        return run

    def bound_once(self, name: str) -> Lines:
        kind, roles = self.kernel.parameters[name], self.roles
        if not isinstance(kind, Array):
            return [f" {variable(name)} = t_{word(kind)}(a_{name})"] if name in roles.shared else []
        lines = [f" flat_{name} = a_{name}.reshape(a_{name}.size)"] if name in roles.rows or name in roles.drawn else []
        if name in roles.rows:
            return lines
        return [*lines, f" {variable(name)} = {'flat' if name in roles.drawn else 'a'}_{name}"]

    def start(self) -> Lines:
        cells = enumerate(self.chains.cells.values())
        stores = [f"   cells[{k * LANES} + lane] = start_{array}[{place}]" for k, (array, place) in cells]
        return [f"  for lane in range({LANES}):", *stores]

    def calls(self, block: int) -> Lines:
        if not self.chains.once:
            return []
        lines = [f"    for lane in range({LANES}):", f"     row = block + lane * {block} + r", "     if row < last:"]
        parts = list(ir.walk(*self.chains.once))
        used = {part.name for part in parts if isinstance(part, ir.Name)}
        used |= {part.array for part in parts if isinstance(part, ir.Load | ir.Store | ir.Whole)}
        for name, kind in self.kernel.parameters.items():
            if name in self.roles.rows and name in used:
                one = f"a_{name}[t_place(row)]"
                lines += [f"      {variable(name)} = " + (one if isinstance(kind, Array) else f"t_{word(kind)}({one})")]
        return lines + self.block(self.chains.once, 6)

    def chain_call(self) -> Lines:
        """All pointers moved through one record: a function of its own, whose few arrays LLVM can tell apart."""
        chains, passes = self.chains, self.passes
        used = {part.name for part in ir.walk(*chains.chain, passes.last) if isinstance(part, ir.Name)}
        fixed = {let.name for let in passes.fixed}
        names = [variable(name) for name in sorted(used & (self.roles.shared | fixed))]
        names += [variable(name) for name in self.roles.drawn if name in self.kernel.arrays]
        given = ", ".join(["cells", "held", *names])
        lines = [f"def chain({given}):", f" for {variable(passes.counter)} in range({self.turns}):"]
        lines += [f"  for lane in range({LANES}):"]
        for place, name in enumerate(chains.cells):
            lines += [f"   {variable(name)} = t_{self.kernel.names[name]}(cells[t_place({place * LANES} + lane)])"]
        lines += self.block(chains.chain, 3)
        for place, name in enumerate(chains.cells):
            lines += [f"   cells[t_place({place * LANES} + lane)] = {variable(name)}"]
        lines += [f"   {self.held_at(place)} = {variable(name)}" for place, name in enumerate(chains.held)]
        self.scope["chain"] = jit(self.function("chain", lines), **OUTER)
        return [f"    chain({given})"]

    def held_at(self, place: int) -> str:
        row = f"({variable(self.passes.counter)} * {len(self.chains.held)} + {place})"
        return f"held[t_place({row} * {LANES} + lane)]"

    def rest(self) -> Lines:
        held, counter = self.chains.held, variable(self.passes.counter)
        lines = [f"    for lane in range({LANES}):", f"     at = lane * room + (r - begin) * {self.turns}"]
        lines += [f"     for {counter} in range({self.turns}):"]
        lines += [f"      {variable(name)} = t_{held[name]}({self.held_at(place)})" for place, name in enumerate(held)]
        lines += self.block(self.chains.rest, 6)
        for place, name in enumerate(self.passes.kept):
            lines += [f"      s_{place}[t_place(at + {counter})] = {variable(name)}"]
        return lines

    def joined(self) -> Lines:
        lines: Lines = []
        for name in self.kernel.arrays:
            if name in self.roles.rows:
                size = f"a_{name}.shape[1]"
                lines += [f"     {variable(name)} = flat_{name}[place * {size} : (place + rows) * {size}]"]
        for place in range(len(self.passes.kept)):
            lines += [f"     z_{place} = s_{place}[lane * room : lane * room + rows * {self.turns}]"]
        return lines

    def second(self) -> Lines:
        counter = variable(self.passes.counter)
        lines = [f"     for {counter} in range(rows * {self.turns}):"]
        for place, (name, kind) in enumerate(self.passes.kept.items()):
            lines += [f"      {variable(name)} = t_{kind[0]}32(z_{place}[t_place({counter})])"]
        return lines + self.block(self.passes.second, 6)
