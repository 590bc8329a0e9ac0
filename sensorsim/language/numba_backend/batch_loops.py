"""Write the compiled loop of a batch: block by block, first the random words, then the records.

A kernel that only draws each feature, as a release does by y[i] = draw(x[i], word[i], …), runs over all records of a
block as over one long record, in loops that vectorise. Any other kernel is called record by record.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from sensorsim.language import ir
from sensorsim.language.kernel import Kernel
from sensorsim.language.numba_backend import OUTER, compiled
from sensorsim.language.numba_backend.compile import NUMPY, TYPES
from sensorsim.language.numba_backend.generators import below
from sensorsim.language.numba_backend.jit import jit
from sensorsim.language.python_source import Lines, Source, variable
from sensorsim.language.types import Array, Below, word

BLOCK = 64  # records whose words are drawn at once: they stay in the first cache


class Roles(NamedTuple):
    """How each parameter of a kernel is given to a batch."""

    rows: frozenset[str]  # one for each record
    shared: frozenset[str]
    state: tuple[str, ...]
    drawn: tuple[str, ...]
    scratch: tuple[str, ...]


def limit_of(kernel: Kernel, name: str) -> str | None:
    """Return the length below which a drawn word must be, if there is one."""
    kind = kernel.parameters[name]
    element = kind.element if isinstance(kind, Array) else kind
    return element.limit if isinstance(element, Below) else None


@cache
def runner(kernel: Kernel, roles: Roles, fill: Callable[..., Any] | None) -> Callable[..., None]:
    """Return the compiled loop: run(first, last, state of the generator, words, parameters in order, starts of the
    state, words for those below a limit, results)."""
    call = draw_of(kernel, roles)
    return _Calls(kernel, roles, fill).made() if call is None else _Draws(kernel, roles, fill).loop_of(call)


def draw_of(kernel: Kernel, roles: Roles) -> ir.Call | None:
    """Return the call where a kernel is one loop of draws, y[i] = draw(x[i], word[i], …), whose rows can be joined."""
    match kernel.body:
        case (
            ir.For(first=ir.Const(value=0), last=ir.Name() as last, body=(ir.Store(value=ir.Call() as call),)) as loop,
        ):
            elements = [part for part in (loop.body[0], *call.arguments) if isinstance(part, ir.Store | ir.Load)]
        case _:
            return None
    joined = roles.rows | {*roles.drawn}
    for part in elements:
        at_counter = isinstance(part.index, ir.Name) and part.index.name == loop.counter
        if not (at_counter and part.array in joined and ir.same(kernel.sizes[part.array], last)):
            return None
    for (name, kind), argument in zip(call.kernel.parameters.items(), call.arguments, strict=True):
        if isinstance(argument, ir.Load):
            continue
        given = (
            argument.name if isinstance(argument, ir.Name) else argument.array if isinstance(argument, ir.Whole) else ""
        )
        if given != name or name not in roles.shared or kind.storage[0] != kernel.parameters[name].storage[0]:
            return None
    *lets, end = call.kernel.body
    names = [let.name for let in lets if isinstance(let, ir.Let)]
    fresh = len({*names}) == len(names) and not {*names} & {*kernel.parameters, *call.kernel.parameters}
    plain = isinstance(end, ir.Return) and len(names) == len(lets) and not _reads_array(end)
    picks = [let for let in lets if _reads_array(let)]
    early = all(_names(let) <= call.kernel.parameters.keys() and let.type in ("u32", "i32") for let in picks)
    return call if fresh and plain and early else None


class _Calls(Source):
    """The kernel is called record by record."""

    def __init__(self, kernel: Kernel, roles: Roles, fill: Callable[..., Any] | None) -> None:
        super().__init__(compiled, TYPES)
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


class _Draws(_Calls):
    """A draw runs over the joined rows of a block.

    What it picks from its tables goes through scratch arrays: the loop that picks touches random places, and the loop
    behind it, which is arithmetic alone, vectorises.
    """

    def loop_of(self, call: ir.Call) -> Callable[..., None]:
        picks = [let for let in call.kernel.body if isinstance(let, ir.Let) and _reads_array(let)]
        scratch = {let.name: f"s_{let.name}" for let in picks}
        loop = self.kernel.body[0]
        assert isinstance(loop, ir.For) and isinstance(loop.last, ir.Name) and isinstance(loop.body[0], ir.Store)
        head = f"  for i in range(rows * {self.expression(loop.last)}):"
        lines = self.blocks(str(BLOCK), tuple(scratch.values()))
        for name in self.kernel.arrays:
            if name in self.roles.rows:
                lines += [f"  j_{name} = flat_{name}[block * a_{name}.shape[1] : (block + rows) * a_{name}.shape[1]]"]
            elif name in self.roles.drawn:
                lines += [f"  j_{name} = flat_{name}"]
        given = [
            f"   {variable(name)} = t_{word(kind)}(j_{part.array}[t_place(i)])"
            for (name, kind), part in zip(call.kernel.parameters.items(), call.arguments, strict=True)
            if isinstance(part, ir.Load)
        ]
        if picks:
            stores = [f"   {array}[t_place(i)] = {variable(name)}" for name, array in scratch.items()]
            lines += [head, *given, *self.block(picks, 3), *stores]
        lines += [head, *given]
        for node in call.kernel.body:
            if isinstance(node, ir.Let) and node in picks:
                lines += [f"   {variable(node.name)} = t_{node.type}({scratch[node.name]}[t_place(i)])"]
            elif isinstance(node, ir.Let):
                lines += self.statement(node, 3)
            elif isinstance(node, ir.Return) and node.value is not None:
                lines += [f"   j_{loop.body[0].array}[t_place(i)] = {self.expression(node.value)}"]
        function = self.compiled_loop(lines)
        place = list(self.kernel.parameters).index(loop.last.name)

        def run(first: int, last: int, state: Any, words: Any, *values: Any) -> None:
            function(first, last, state, words, *values,
                     *(np.empty(BLOCK * values[place], NUMPY[let.type]) for let in picks))  # fmt: skip

        return run


def _names(node: ir.Node) -> set[str]:
    return {part.name for part in ir.walk(node) if isinstance(part, ir.Name)}


def _reads_array(node: ir.Node) -> bool:
    return any(isinstance(part, ir.Load | ir.Whole) for part in ir.walk(node))
