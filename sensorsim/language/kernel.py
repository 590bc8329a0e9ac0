"""A kernel: a function over 32-bit integers that is read once and answers for itself.

@kernel(step="average")
def blend(old: UNIT, x: X, rate: RATE) -> UNIT: …

blend(0, 32768, 3)          runs it in plain Python
blend.count(rate=3)         operations, counted by running
blend.formula()             operations, counted by reading: polynomials in the lengths
blend.prove()               no value leaves its type, no index its array, for any input
blend.secrecy()             what an observer with a stopwatch learns of the secret parameters
blend.run(old=…, x=…)       Numba, one call
blend.batch(x=…, …)         Numba, many records, with a generator for the random words
blend.c()                   C99
"""

import sys
from collections.abc import Callable, Mapping
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import FunctionType, MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError
from sensorsim.language.ir import Ask, Call, Expression, Node, Place, Statement, walk
from sensorsim.language.parse import LanguageError, Parsed, parse
from sensorsim.language.types import Array, Below, Kind, Length, Q, Struct

if TYPE_CHECKING:
    from sensorsim.language.count import Counts
    from sensorsim.language.formula import Formula
    from sensorsim.language.ranges import Proof
    from sensorsim.language.secrecy import Secrecy

MOST_ROUNDS = 5_000_000  # of loops that are counted one by one
EXPOSURES = ("branch", "loop", "address", "operation", "port", "result")
OURS = "sensorsim.kernels."  # the kernels that ship: above the language, so looked up by path, never imported
NOTHING: Mapping[str, str] = MappingProxyType({})


class Kernel:
    """A kernel and what is declared about it.

    `step` is the step of the algorithm that its operations belong to; a kernel without one counts toward its caller's.
    `split` names a parameter whose range the range check takes apart: a word one bit length at a time, an index one
    value at a time. `exposes` says what of its secrets the kernel's own lines show, and why that is accepted: a reason
    for each of branch, loop, address, operation, port, or result: what it returns is public.

    `lasting` and `apart` are for C alone: stores that stay although nobody reads them again, and a call whose stack
    lies below that of its caller, where it can be overwritten.

    `name` and `module` are those of the kernel where they are not the function's: of a kernel that a function declares
    for another one, as `release_rows_search` for `rows_search`, and in the module of that one.
    """

    at: Place
    parameters: dict[str, Kind]
    result: Q | Below | None
    sizes: dict[str, Expression]
    body: tuple[Statement, ...]
    names: dict[str, str]
    written: frozenset[str]
    records: dict[str, Struct]  # the parameters that are records; `parameters` has their fields

    def __init__(
        self,
        function: Callable[..., Any],
        step: str | None,
        split: str | None,
        exposes: Mapping[str, str],
        lasting: bool = False,
        apart: bool = False,
        name: str | None = None,
        module: str | None = None,
    ) -> None:
        self.declared, self.name, self.module = function, name or function.__name__, module or function.__module__
        self.step, self.split, self.exposes = step, split, dict(exposes)
        self.lasting, self.apart = lasting, apart
        self.doc = function.__doc__ or ""
        if not (self.module or "").startswith(OURS):  # a stranger's is refused where it is declared
            _ = self.read

    @cached_property
    def read(self) -> Parsed:
        """The function, read. Those that ship are read when they are first asked, so that a program starts fast."""
        return self.check(parse(self.declared, self.name))

    def check(self, read: Parsed) -> Parsed:
        """Refuse what is declared of the kernel and does not go with its parameters."""
        split = read.parameters.get(self.split) if self.split is not None else None
        if self.split is not None and (split is None or isinstance(split, Array)):
            raise LanguageError(
                f"{read.at}: kernel {self.name} splits {self.split}, which is no scalar parameter of it."
            )
        for kind in self.exposes:
            if kind not in EXPOSURES:
                raise LanguageError(f"{read.at}: kernel {self.name} exposes {kind!r}; give {', '.join(EXPOSURES)}.")
        return read

    def __getattr__(self, name: str) -> Any:
        """Return a part of what was read; the kernel is read when it is first asked for one."""
        if name not in Parsed._fields:
            raise AttributeError(f"a kernel has no {name}")
        value = self.__dict__[name] = getattr(self.read, name)
        return value

    @cached_property
    def function(self) -> Callable[..., Any]:
        return _bound(self.declared, self.read.used)

    def __call__(self, *values: Any) -> Any:
        return self.function(*values)

    def __repr__(self) -> str:
        return f"<kernel {self.qualified}>"

    def __reduce__(self) -> Any:  # for worker processes: found again by its name
        return _found_again, (self.module, self.name)

    @property
    def qualified(self) -> str:
        """The name with that of its module, as `dpsgd.total`; of a file of your own, with the file's."""
        ours = self.module.startswith(OURS)
        home = self.module.rpartition(".")[2] if ours or not self.at.name.endswith(".py") else self.home.stem
        return f"{home}.{self.name}"

    @property
    def path(self) -> Path:
        """Return the file that has its text."""
        return Path(self.at.file)

    @cached_property
    def home(self) -> Path:
        """Return the file of its module, which may bind a kernel whose text is in another one."""
        bound = self.module != self.declared.__module__
        return Path(str(getattr(sys.modules[self.module], "__file__", ""))) if bound else self.path

    @cached_property
    def file_doc(self) -> str | None:
        """Return what the kernel's file says of itself."""
        return getattr(sys.modules.get(self.declared.__module__), "__doc__", None)

    @cached_property
    def siblings(self) -> tuple[str, ...]:
        """Return the names of the kernels in the kernel's file; of one that ships, of all that ship."""
        from sensorsim.language.load import kernels_of, shipped

        if self.module.startswith("sensorsim."):
            return tuple(one.name for one in shipped().values())
        return tuple(kernels_of(sys.modules[self.module])) if self.module in sys.modules else ()

    @cached_property
    def lengths(self) -> dict[str, Length]:
        return {name: kind for name, kind in self.parameters.items() if isinstance(kind, Length)}

    @cached_property
    def arrays(self) -> dict[str, Array]:
        return {name: kind for name, kind in self.parameters.items() if isinstance(kind, Array)}

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """Every node of the body."""
        return tuple(walk(*self.body))

    @cached_property
    def asks(self) -> bool:
        """Return whether it asks the board for something, itself or in a kernel that it calls."""
        return any(isinstance(node, Ask) for node in self.nodes) or any(one.asks for one in self.called)

    @cached_property
    def called(self) -> tuple["Kernel", ...]:
        """The kernels that this one calls, in the order of their calls."""
        return tuple(dict.fromkeys(node.kernel for node in self.nodes if isinstance(node, Call)))

    def lengths_at(self, given: Mapping[str, int] = MappingProxyType({})) -> dict[str, int]:
        """A value for each length: the one given, or the typical one; InputError for one that is not allowed."""
        for name in given:
            if name not in self.lengths:
                own = ", ".join(self.lengths) or "none"
                raise InputError(f"{self.name} has no length {name}; its lengths are {own}.")
        chosen = {name: given.get(name, kind.typical) for name, kind in self.lengths.items()}
        for name, kind in self.lengths.items():
            if kind.at_most is not None and name not in given:
                chosen[name] = min(chosen[name], chosen[kind.at_most])
            most = min(kind.hi, chosen[kind.at_most] if kind.at_most is not None else kind.hi)
            if not kind.lo <= chosen[name] <= most:
                raise InputError(f"{name} = {chosen[name]} is outside {kind.lo} … {most} of {self.name}.")
        return chosen

    def count(self, **given: Any) -> "Counts":
        """How often each operation class runs in each step, counted by running one call.

        Lengths that are not given take their typical value; other parameters their least.
        """
        from sensorsim.language.arguments import arguments, bounds
        from sensorsim.language.count import count

        lengths = self.lengths_at({name: value for name, value in given.items() if name in self.lengths})
        values = arguments(self, lengths, lambda name, lo, hi: lo)
        for name, value in given.items():
            if name not in self.parameters:
                raise InputError(f"{self.name} has no parameter {name}; it has {', '.join(self.parameters)}.")
            kind = self.parameters[name]
            if not isinstance(kind, Length):
                numbers = value if isinstance(kind, Array) else [value]
                lo, hi = bounds(kind.element if isinstance(kind, Array) else kind, lengths)
                if len(numbers) != (len(values[name]) if isinstance(kind, Array) else 1):
                    raise InputError(f"{name} of {self.name} has {len(values[name])} elements, not {len(numbers)}.")
                if not all(lo <= number <= hi for number in numbers):
                    raise InputError(f"{name} of {self.name} is outside {lo} … {hi}.")
                values[name] = [int(number) for number in numbers] if isinstance(kind, Array) else int(value)
        return count(self, values, most=MOST_ROUNDS)

    def formula(self, otherwise: bool = False, **fixed: int) -> "Formula":
        """The same as polynomials in the lengths, counted by reading; `otherwise` takes the other way at each `if`."""
        from sensorsim.language.formula import formula

        return formula(self, otherwise, fixed)

    def prove(self) -> "Proof":
        """Prove that nothing wraps and no index leaves its array, for every input; RangeError names the line."""
        return self._proof

    @cached_property
    def _proof(self) -> "Proof":
        from sensorsim.language.ranges import prove

        return prove(self)

    def secrecy(self) -> "Secrecy":
        """Prove that no branch, loop, address or time of an operation depends on a secret, or say which line does."""
        return self._secrecy

    @cached_property
    def _secrecy(self) -> "Secrecy":
        from sensorsim.language.secrecy import secrecy

        return secrecy(self)

    def run(self, **values: Any) -> Any:
        """Run one call by Numba. Arrays that the kernel fills may be left out; return the result and what is filled."""
        from sensorsim.language.numba_backend import run

        return run(self, values)

    def batch(self, count: int | None = None, /, **values: Any) -> dict[str, Any]:
        """Many calls by Numba, with generator=, seed=, threads=, out=; see `sensorsim.language.numba_backend.batch`."""
        from sensorsim.language.numba_backend.batch import OPTIONS, batch_of

        if self.asks:
            raise InputError(f"{self.name} asks a board; run it with `compiled(kernel, board)`, one call at a time.")
        if name := next((name for name in OPTIONS if name in self.parameters), ""):
            raise InputError(
                f"{self.name} has a parameter {name}, which batch takes for its own option; give the parameters in a "
                "mapping to sensorsim.language.numba_backend.batch.batch_of, or rename it."
            )
        options = {name: values.pop(name) for name in OPTIONS if name in values}
        return batch_of(self, count, values, **options)

    def c(self, prefix: str = "ss_") -> dict[str, str]:
        """The kernel and all it calls as C99, by file name."""
        from sensorsim.language.c.translation_units import c_sources

        return c_sources([self], prefix, (), "")


def kernel(
    step: str | None = None,
    split: str | None = None,
    exposes: Mapping[str, str] = NOTHING,
    lasting: bool = False,
    apart: bool = False,
    name: str | None = None,
    module: str | None = None,
) -> Callable[[Callable[..., Any]], Kernel]:
    """Declare a kernel; see `Kernel` for what may be said of it."""
    if callable(step):
        code = step.__code__
        raise LanguageError(f"{Place(code.co_filename, code.co_firstlineno)}: write @kernel(), with parentheses.")

    def declare(function: Callable[..., Any]) -> Kernel:
        return Kernel(function, step, split, exposes, lasting, apart, name, module)

    return declare


def shipped_module(name: str = "") -> ModuleType:
    """Return a module of the kernels that ship, or their package."""
    return import_module(f"{OURS}{name}".rstrip("."))


def reachable(entries: "tuple[Kernel, ...] | list[Kernel]") -> list[Kernel]:
    """The kernels and all that they call, callees first."""
    order: dict[Kernel, None] = {}

    def visit(one: Kernel) -> None:
        if one not in order:
            for callee in one.called:
                visit(callee)
            order[one] = None

    for entry in entries:
        visit(entry)
    # Within a file the order of its source, which defines before it uses, is the one a reader knows.
    files = list(dict.fromkeys(one.at.file for one in order))
    return sorted(order, key=lambda one: (files.index(one.at.file), one.at.line))


def _bound(function: Callable[..., Any], used: Mapping[str, Any]) -> Callable[..., Any]:
    """The same code over the very names that were read, so that plain Python and the readers cannot come apart."""
    assert isinstance(function, FunctionType)
    names = {**used, "__builtins__": function.__globals__.get("__builtins__", __builtins__), "range": range}
    bound = FunctionType(function.__code__, names, function.__name__, None, function.__closure__)
    bound.__doc__, bound.__annotations__ = function.__doc__, function.__annotations__
    return bound


def _found_again(module: str, name: str) -> Kernel:
    found: Kernel = getattr(import_module(module), name)
    return found
