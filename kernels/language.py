"""The small typed language that kernels are written in.

A kernel is a plain Python function over 32-bit integers. It may use

* primitives (`kernels/ops.py`) for every operation on values,
* Python's own `+ - * << >>` on loop counters and lengths only: that is index arithmetic,
* `a[i]` to load and store, `for … in range(…)`, `if` on a comparison, and calls of other kernels.

Nothing here runs a kernel in any special way: calling a `Kernel` calls the plain function. The readers (Numba, the
two counters, the range check, the C emitter) either walk `Kernel.tree` or run the same code object over other
globals with `rebind`.
"""

import ast
import types
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

KERNELS: dict[str, "Kernel"] = {}


@dataclass(frozen=True, eq=False)
class Primitive:
    """One operation on values: what it returns for every input (the function) and which machine operations it is."""

    name: str
    function: Callable[..., Any]
    operations: tuple[str, ...]
    operands: tuple[str, ...]
    result: str
    c: str

    def __call__(self, *values: Any) -> Any:
        return self.function(*values)


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel and what is declared about it.

    `step` is the step of the algorithm that its operations belong to; a kernel without one counts toward its caller's.
    `split` names a parameter whose range the range check takes apart (see `sensorsim.ranges`).
    """

    name: str
    function: Callable[..., Any]
    step: str | None
    split: str | None

    def __call__(self, *values: Any) -> Any:
        return self.function(*values)

    @property
    def path(self) -> Path:
        return Path(self.function.__code__.co_filename)

    @property
    def doc(self) -> str:
        return self.function.__doc__ or ""

    @cached_property
    def tree(self) -> ast.FunctionDef:
        """The kernel's own syntax tree, with the line numbers of its file."""
        for node in _module_tree(self.path).body:
            if isinstance(node, ast.FunctionDef) and node.name == self.name:
                return node
        raise LookupError(f"{self.path} has no function {self.name} at its top level")

    @property
    def parameters(self) -> dict[str, Any]:
        """Each parameter's name and declared format, in order."""
        return {name: kind for name, kind in self.function.__annotations__.items() if name != "return"}

    @property
    def result(self) -> Any:
        """The declared format of the returned value, or None."""
        return self.function.__annotations__.get("return")

    def resolve(self, name: str) -> Any:
        """What a global name means inside the kernel: another kernel, a primitive, a constant."""
        return self.function.__globals__[name]


def primitive(*operations: str, operands: str, result: str, c: str = "") -> Callable[[Callable[..., Any]], Primitive]:
    """Declare a primitive: its operation classes, the types of operands and result, its C expression."""

    def declare(function: Callable[..., Any]) -> Primitive:
        return Primitive(function.__name__, function, operations, tuple(operands.split()), result, c)

    return declare


def kernel(step: str | None = None, split: str | None = None) -> Callable[[Callable[..., Any]], Kernel]:
    """Declare a kernel; see `Kernel` for `step` and `split`."""

    def declare(function: Callable[..., Any]) -> Kernel:
        made = Kernel(function.__name__, function, step, split)
        if made.name in KERNELS and KERNELS[made.name].path != made.path:
            raise ValueError(f"two kernels are called {made.name}")
        KERNELS[made.name] = made
        return made

    return declare


def rebind(function: Callable[..., Any], replace: Callable[[str, Any], Any]) -> Callable[..., Any]:
    """The same code over other globals: `replace(name, value)` says what each global name becomes.

    `range` is offered too, so that a reader can see loops.
    """
    own = function.__globals__
    names = {name: replace(name, own[name]) for name in function.__code__.co_names if name in own}
    if "range" in function.__code__.co_names:
        names["range"] = replace("range", range)
    names["__builtins__"] = own["__builtins__"]
    names["__name__"] = own["__name__"]
    return types.FunctionType(function.__code__, names, function.__name__)


@cache
def _module_tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"), str(path))
