"""The compiled loop of a batch, as text: block by block, words first, then the records.

Where `passes` can take the kernel's last loop apart, a block runs in two passes; otherwise the kernel is called for one
record after the other.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from sensorsim.language.kernel import Kernel
from sensorsim.language.run import OUTER, compiled
from sensorsim.language.run.batch_lanes import LanesRunner
from sensorsim.language.run.chains import Chains, chains_of
from sensorsim.language.run.generators import below
from sensorsim.language.run.jit import jit
from sensorsim.language.run.passes import Passes, two_passes
from sensorsim.language.run.text import Lines, Text, variable
from sensorsim.language.run.values import NUMPY
from sensorsim.language.types import Array, Below, word

BLOCK = 64  # records whose words are drawn at once: they stay in the first cache


class Roles(NamedTuple):
    """How each parameter is given."""

    rows: frozenset[str]  # one for each record
    shared: frozenset[str]
    state: tuple[str, ...]
    drawn: tuple[str, ...]
    scratch: tuple[str, ...]


def limit_of(kernel: Kernel, name: str) -> str | None:
    """The length below which a drawn word is to be, if there is one."""
    kind = kernel.parameters[name]
    element = kind.element if isinstance(kind, Array) else kind
    return element.limit if isinstance(element, Below) else None


@cache
def runner(kernel: Kernel, roles: Roles, fill: Callable[..., Any] | None) -> Callable[..., None]:
    """`run(first, last, state of the generator, words, parameters in order, starts of the state, words for those
    below a limit, results)`."""
    plain = _Runner(kernel, roles, fill)
    found = lanes_of(kernel, roles)
    if found is None or plain.passes is None:
        return plain.made()
    limits = {name: limit_of(kernel, name) for name in roles.drawn}
    return LanesRunner(kernel, roles, fill, below, plain.passes, found).made(limits, BLOCK)


@cache
def lanes_of(kernel: Kernel, roles: Roles) -> Chains | None:
    """The chains of a kernel that runs several blocks side by side when its parameters are given so, else None."""
    passes = _passes(kernel, roles)
    return chains_of(kernel, passes, roles.state, roles.drawn, roles.shared) if passes is not None else None


def _passes(kernel: Kernel, roles: Roles) -> Passes | None:
    by_row = frozenset(name for name in (*roles.rows, *roles.drawn) if name in kernel.arrays)
    return two_passes(kernel, by_row, roles.shared)


class _Runner(Text):
    def __init__(self, kernel: Kernel, roles: Roles, fill: Callable[..., Any] | None) -> None:
        super().__init__(compiled)
        self.kernel, self.roles = kernel, roles
        self.scope |= {"fill": fill, "below": below, "least": min}
        self.passes = _passes(kernel, roles)

    def made(self) -> Callable[..., None]:
        kernel, roles = self.kernel, self.roles
        names = [f"a_{name}" for name in kernel.parameters] + [f"start_{name}" for name in roles.state]
        names += [f"raw_{name}" for name in roles.drawn if limit_of(kernel, name) is not None]
        names += ["result"] if kernel.result is not None else []
        kept = [f"s_{place}" for place in range(len(self.passes.kept))] if self.passes is not None else []
        lines = [f"def batch(first, last, state, words, {', '.join(names + kept)}):"]
        lines += [line for name in kernel.parameters for line in self.bound_once(name)]
        whole = not (roles.drawn or roles.state or self.passes)  # nothing to do at the start of a block
        step = "last - first" if whole else str(BLOCK)
        lines += [f" for block in range(first, last, {step}):", f"  rows = least({step}, last - block)"]
        lines += [f"  fill(words, state, block // {BLOCK})"] if roles.drawn else []
        lines += [line for name in roles.drawn for line in self.drawn_below(name)]
        lines += [line for name in roles.state for line in self.reset(name)]
        lines += self.calls() if self.passes is None else self.in_passes(self.passes)
        function = jit(self.function("batch", lines), kept=True, **OUTER)
        return function if self.passes is None else self.with_scratch(function, self.passes)

    def with_scratch(self, function: Callable[..., None], passes: Passes) -> Callable[..., None]:
        """The scratch arrays, made before the compiled loop starts."""
        import numpy as np

        from sensorsim.language.arguments import polynomial

        size, places = polynomial(passes.last), list(self.kernel.parameters)

        def run(first: int, last: int, state: Any, words: Any, *values: Any) -> None:
            lengths = {name: values[places.index(name)] for name in self.kernel.lengths}
            scratch = [np.empty(BLOCK * size.value(lengths), NUMPY[kind]) for kind in passes.kept.values()]
            function(first, last, state, words, *values, *scratch)

        return run

    # the parameters

    def bound_once(self, name: str) -> Lines:
        kind, roles = self.kernel.parameters[name], self.roles
        if not isinstance(kind, Array):
            return [f" {variable(name)} = t_{word(kind)}(a_{name})"] if name in roles.shared else []
        if name in roles.rows or name in roles.drawn:
            return [f" flat_{name} = a_{name}.reshape(a_{name}.size)"]
        return [f" {variable(name)} = a_{name}"]

    def drawn_below(self, name: str) -> Lines:
        limit, flat = limit_of(self.kernel, name), "flat" if name in self.kernel.arrays else "a"
        return [f"  below(raw_{name}, {flat}_{name}, {variable(limit)})"] if limit is not None else []

    def reset(self, name: str) -> Lines:
        return [f"  for k in range(start_{name}.shape[0]):", f"   a_{name}[k] = start_{name}[k]"]

    def record(self, indent: int) -> Lines:
        """The parameters of one record."""
        pad, lines = " " * indent, list[str]()
        for name, kind in self.kernel.parameters.items():
            row = "t_place(r)" if name in self.roles.drawn else "t_place(block + r)"
            if name in self.roles.rows or name in self.roles.drawn:
                one = f"a_{name}[{row}]"
                lines += [f"{pad}{variable(name)} = " + (one if isinstance(kind, Array) else f"t_{word(kind)}({one})")]
        return lines

    # the records of a block

    def calls(self) -> Lines:
        call = f"{self.named('k', self.kernel)}({', '.join(map(variable, self.kernel.parameters))})"
        last = f"   result[t_place(block + r)] = {call}" if self.kernel.result is not None else f"   {call}"
        return ["  for r in range(rows):", *self.record(3), last]

    def in_passes(self, passes: Passes) -> Lines:
        counter, scratch = variable(passes.counter), {name: f"s_{k}" for k, name in enumerate(passes.kept)}
        turns = self.cast("index", passes.last)
        lines: Lines = []
        if passes.flat:
            lines += self.block(passes.fixed, 2) if passes.fixed else []
            lines += self.joined()
        if passes.first and passes.flat:
            lines += [f"  for {counter} in range(rows * {turns}):", *self.block(passes.first, 3)]
            lines += [f"   {room}[t_place({counter})] = {variable(name)}" for name, room in scratch.items()]
        elif passes.first or not passes.flat:
            lines += ["  for r in range(rows):", *self.record(3)]
            lines += self.block(passes.front, 3) if passes.front else []
            lines += [f"   for {counter} in range({turns}):", *self.block(passes.first, 4)]
            place = f"t_place(r * {turns} + {counter})"
            lines += [f"    {room}[{place}] = {variable(name)}" for name, room in scratch.items()]
            lines += self.block(passes.tail, 3) if passes.tail else []
            lines += self.block(passes.fixed, 2) if passes.fixed else []
            lines += self.joined()
        lines += [f"  for {counter} in range(rows * {turns}):"]
        lines += [f"   {variable(name)} = {self.read(name, room, passes)}" for name, room in scratch.items()]
        return lines + self.block(passes.second, 3)

    def read(self, name: str, room: str, passes: Passes) -> str:
        kind = passes.kept[name][0] + "32"
        return f"t_{kind}({room}[t_place({variable(passes.counter)})])"

    def joined(self) -> Lines:
        """The rows of this block as one long row."""
        lines: Lines = []
        for name in self.kernel.arrays:
            if name in self.roles.drawn:
                lines += [f"  {variable(name)} = flat_{name}"]
            elif name in self.roles.rows:
                size = f"a_{name}.shape[1]"
                lines += [f"  {variable(name)} = flat_{name}[block * {size} : (block + rows) * {size}]"]
        return lines
