"""Several calls of a kernel at once, in the lanes of vector registers.

Every array has its lanes side by side: element k of lane l is at k·LANES + l. Loops stay loops; the straight run of
statements between them becomes one loop over the lanes, in which elements at fixed places are held in locals. LLVM
turns that loop into vector instructions. For kernels whose loops and places are the same for all calls, as a cipher's.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sensorsim.errors import InputError
from sensorsim.language import ir
from sensorsim.language.run.inline import Inliner
from sensorsim.language.run.text import Lines, Text, variable

if TYPE_CHECKING:
    from sensorsim.language.kernel import Kernel


def lanes_text(kernel: "Kernel", lanes: int, compiled: Callable[[Any], Any]) -> Any:
    """A plain function with the kernel's arrays, each as many times as long as there are lanes."""
    text = _Lanes(kernel, lanes, compiled)
    if kernel.result is not None or len(kernel.arrays) != len(kernel.parameters):
        raise InputError(f"{kernel.name} cannot run in lanes: it has parameters other than arrays, or a result.")
    lines = [f"def kernel({', '.join(map(variable, kernel.parameters))}):"]
    return text.function("kernel", lines + text.runs(Inliner().body(kernel.body), 1))


class _Lanes(Text):
    def __init__(self, kernel: "Kernel", lanes: int, compiled: Callable[[Any], Any]) -> None:
        super().__init__(compiled)
        self.kernel, self.lanes = kernel, lanes
        self.held: dict[tuple[str, int], str] = {}  # elements in locals, in this run
        self.direct: set[str] = set()  # arrays of this run with a place that is not fixed

    def runs(self, statements: Sequence[ir.Statement], indent: int) -> Lines:
        lines: Lines = []
        run: list[ir.Let | ir.Store] = []
        for node in statements:
            if isinstance(node, ir.Let | ir.Store):
                run.append(node)
                continue
            loads = isinstance(node, ir.For) and any(isinstance(at, ir.Load) for at in ir.walk(node.first, node.last))
            if not isinstance(node, ir.For) or loads:
                raise InputError(f"{node.at}: {self.kernel.name} cannot run in lanes: `{ir.shown(node)}`.")
            lines += self.run(run, indent)
            run = []
            ends = f"{self.cast('index', node.first)}, {self.cast('index', node.last)}"
            lines += [f"{' ' * indent}for {variable(node.counter)} in range({ends}):"]
            lines += self.runs(node.body, indent + 1)
        return lines + self.run(run, indent)

    def run(self, statements: Iterable[ir.Let | ir.Store], indent: int) -> Lines:
        """One straight run for all lanes."""
        nodes = list(statements)
        touched = [part for part in ir.walk(*nodes) if isinstance(part, ir.Load | ir.Store)]
        self.direct = {part.array for part in touched if not isinstance(part.index, ir.Const)}
        self.held = {}
        pad, body, written = " " * indent, list[str](), dict[tuple[str, int], None]()
        for node in nodes:
            before = set(self.held)
            for part in ir.walk(node):
                if isinstance(part, ir.Load) and (cell := self.cell(part)) is not None and cell not in before:
                    body += [f"{pad} {self.hold(cell)} = {self.place(*cell)}"]
                    before.add(cell)
            stored = self.cell(node) if isinstance(node, ir.Store) else None
            if stored is None:
                body += self.statement(node, indent + 1)
            else:
                assert isinstance(node, ir.Store)
                kind = self.kernel.arrays[node.array].storage[0] + "32"
                value = self.expression(node.value)
                body += [f"{pad} {self.hold(stored)} = t_{kind}({value})"]
                written[stored] = None
        body += [f"{pad} {self.place(*cell)} = {self.held[cell]}" for cell in written]
        return [f"{pad}for lane in range({self.lanes}):", *body] if body else []

    def cell(self, node: ir.Load | ir.Store) -> tuple[str, int] | None:
        fixed = isinstance(node.index, ir.Const) and node.array not in self.direct
        return (node.array, node.index.value) if fixed and isinstance(node.index, ir.Const) else None

    def hold(self, cell: tuple[str, int]) -> str:
        return self.held.setdefault(cell, f"c_{cell[0]}_{cell[1]}")

    def place(self, array: str, index: int) -> str:
        return f"{variable(array)}[t_place({index * self.lanes} + lane)]"

    def element(self, node: ir.Load | ir.Store) -> str:
        cell = self.cell(node)
        if cell is not None and cell in self.held:
            return self.held[cell]
        return f"{variable(node.array)}[t_place({self.cast('index', node.index)} * {self.lanes} + lane)]"
