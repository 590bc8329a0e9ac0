"""Counting by running: the kernel on counting values.

The kernel's own code runs over globals in which every primitive counts itself, arrays count loads and stores, `range`
counts the loop, and lengths and loop counters count their own arithmetic. The numbers it computes are the real ones.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from sensorsim.kernels.language import Kernel, Primitive, rebind

Counts = Counter[tuple[str, str]]  # (step, operation class): how often

OWN_STEP = "loops and memory"  # what a mechanism does outside the steps the paper names
PER_ITERATION = ("INDEX", "COMPARE", "BRANCH")  # a counted loop: increment, compare, branch back
LOOP_EXIT = ("COMPARE", "BRANCH")


def trace(kernel: Kernel, arguments: dict[str, Any]) -> Counts:
    """Run the kernel on these arguments (lists for arrays, as `kernels.arguments` makes them) and count."""
    counter = _Tracer()
    values = [counter.wrap(arguments[name]) for name in kernel.parameters]
    counter.reader(kernel)(*values)
    return counter.counts


class _Tracer:
    def __init__(self) -> None:
        self.counts: Counts = Counter()
        self.step = OWN_STEP
        self.readers: dict[Any, Callable[..., Any]] = {}

    def count(self, *operations: str) -> None:
        for operation in operations:
            self.counts[self.step, operation] += 1

    def wrap(self, value: Any) -> Any:
        return _Array(self, value) if isinstance(value, list) else _Index(value, self)

    def reader(self, source: Kernel | Primitive) -> Callable[..., Any]:
        """The counting form of a kernel or primitive."""
        if source not in self.readers:
            make = self._kernel if isinstance(source, Kernel) else self._primitive
            self.readers[source] = make(source)
        return self.readers[source]

    def _primitive(self, source: Primitive) -> Callable[..., Any]:
        def counted(*values: Any) -> Any:
            self.count(*source.operations)
            result = source.function(*map(int, values))
            return _Flag(result, self) if source.result == "flag" else result

        return counted

    def _kernel(self, source: Kernel) -> Callable[..., Any]:
        def replace(name: str, value: Any) -> Any:
            if name == "range":
                return self._range
            return self.reader(value) if isinstance(value, Kernel | Primitive) else value

        run = rebind(source.function, replace)

        def stepped(*values: Any) -> Any:
            before = self.step
            self.step = source.step or before
            result = run(*values)
            self.step = before
            return result

        return stepped

    def _range(self, *bounds: int) -> Iterator[int]:
        for i in range(*bounds):
            self.count(*PER_ITERATION)
            yield _Index(i, self)
        self.count(*LOOP_EXIT)


class _Array:
    """A list that counts its loads and stores."""

    def __init__(self, tracer: _Tracer, values: list[int]) -> None:
        self.tracer, self.values = tracer, values

    def __getitem__(self, i: int) -> int:
        self.tracer.count("LOAD")
        return self.values[i]

    def __setitem__(self, i: int, value: int) -> None:
        self.tracer.count("STORE")
        self.values[i] = int(value)


class _Flag(int):
    """The result of a comparison: an `if` on it is a branch."""

    def __new__(cls, value: bool, tracer: _Tracer) -> "_Flag":
        made = super().__new__(cls, value)
        made.tracer = tracer
        return made

    tracer: _Tracer

    def __bool__(self) -> bool:
        self.tracer.count("BRANCH")
        return int(self) != 0


class _Index(int):
    """A length or loop counter: arithmetic on it is index arithmetic."""

    def __new__(cls, value: int, tracer: _Tracer) -> "_Index":
        made = super().__new__(cls, value)
        made.tracer = tracer
        return made

    tracer: _Tracer


def _index_operation(name: str) -> Callable[..., _Index]:
    plain = getattr(int, name)

    def operation(self: _Index, *others: int) -> _Index:
        self.tracer.count("INDEX")
        return _Index(plain(int(self), *(int(other) for other in others)), self.tracer)

    return operation


for _name in ("add", "sub", "mul", "lshift", "rshift"):
    setattr(_Index, f"__{_name}__", _index_operation(f"__{_name}__"))
    setattr(_Index, f"__r{_name}__", _index_operation(f"__r{_name}__"))
_Index.__neg__ = _index_operation("__neg__")  # type: ignore[method-assign]
