"""Compile functions with Numba, and store their machine code for later processes.

Numba's `cache=True` notices changes of one source file only. Here each function has a fingerprint: a hash of its code,
of the values that it refers to, and of all that it calls. A function to store gets a wrapper in a file named after the
fingerprint, and Numba caches the wrapper beside that file. So a change in any callee leads to another file.

The fingerprint is part of a function's name as well. Machine code from the cache brings the symbols of another process
with it, and the linker picks either of two functions with one symbol.
"""

import hashlib
import os
import platform
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numba
import numpy as np
from numba.core import event
from numba.core.dispatcher import Dispatcher

from sensorsim._util import disk_cache as store
from sensorsim._util import progress

COMPILING = "compiling kernels, for this time and the next"
# Functions of these packages change with their versions only, and the versions are part of a fingerprint.
FIXED = ("builtins", "math", "operator", "numpy", "numba", "llvmlite")
PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...))
_made: dict[Any, Any] = {}


def jit(function: Callable[..., Any], *, kept: bool = False, **options: Any) -> Callable[..., Any]:
    """Return `numba.njit(**options)(function)`, and the same object for the same fingerprint.

    `kept` stores the machine code, which includes all callees. It is for functions that Python calls.
    """
    try:
        mark = fingerprint(function, options)
    except UnknownError:
        unknown: Callable[..., Any] = numba.njit(**options)(function)
        return unknown
    if mark not in _made:
        _made[mark] = numba.njit(**options)(_renamed(function, mark))
    place = _source_file(mark) if kept else None
    if place is None:
        made: Callable[..., Any] = _made[mark]
        return made
    if place not in _made:
        _made[place] = numba.njit(cache=True, **options)(_wrapper(_made[mark], place))
    stored: Callable[..., Any] = _made[place]
    return stored


def callback(function: Callable[..., Any], signature: Any) -> Any:
    """Return `numba.cfunc(signature)(function)`, which C calls by its address, with stored machine code."""
    mark = fingerprint(function, {"callback": str(signature)})
    place, inner = _source_file(mark), numba.njit(_renamed(function, mark))
    if place is None:
        return numba.cfunc(signature)(inner.py_func)
    return numba.cfunc(signature, cache=True)(_wrapper(inner, place))


def _source_file(mark: str) -> Path | None:
    """Return the file in the cache that stands for a function, written once; None if there is no cache to trust."""
    place = store.private_folder(store.MACHINE_CODE / "__pycache__")  # where Numba stores what belongs to the file
    if place is None:
        return None
    path = place.parent.absolute() / f"{mark}.py"
    return path if path.is_file() or store.write(path, f"# {mark}\n".encode()) else None


def _wrapper(inner: Any, place: Path) -> Callable[..., Any]:
    """Return a plain function, located in that file, that calls the compiled one, a global that Numba does not hash."""
    code = inner.py_func.__code__
    names = ", ".join(code.co_varnames[: code.co_argcount])
    scope: dict[str, Any] = {"inner": inner, "__name__": __name__}
    exec(compile(f"def wrapper({names}):\n return inner({names})\n", str(place), "exec"), scope)
    function: Callable[..., Any] = scope["wrapper"]
    function.__qualname__ = f"wrapper_{place.stem[:32]}"
    return function


def _renamed(function: Any, mark: str) -> Callable[..., Any]:
    """Return the same function under a name that no other has."""
    made = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    made.__kwdefaults__, made.__doc__, made.__module__ = function.__kwdefaults__, function.__doc__, __name__
    made.__qualname__ = f"{function.__name__}_{mark[:32]}"
    return made


class UnknownError(Exception):
    """A function refers to a value that may differ in another process: its machine code is not stored."""


def fingerprint(function: Callable[..., Any], options: dict[str, Any]) -> str:
    """Return 64 hexadecimal digits that depend on all that the machine code of a function depends on."""
    made = _Fingerprint()
    made.add("options", sorted(options.items()), _environment())
    made.function(function)
    return made.hash.hexdigest()


@cache
def _environment() -> str:
    """Return the versions of the compilers and the settings that Numba reads from the environment."""
    versions = (platform.python_version(), numba.__version__, version("llvmlite"), np.__version__)
    settings = sorted(item for item in os.environ.items() if item[0].startswith("NUMBA_"))
    return repr((versions, platform.machine(), platform.system(), settings))


class _Fingerprint:
    def __init__(self) -> None:
        self.hash = hashlib.sha256()
        self.seen: dict[int, tuple[int, Any]] = {}  # functions by identity, so that a function may call itself

    def add(self, *parts: Any) -> None:
        for part in parts:
            data = part if isinstance(part, bytes) else repr(part).encode("utf-8", "surrogatepass")
            self.hash.update(len(data).to_bytes(8, "little") + data)

    def function(self, function: Any) -> None:
        if not isinstance(function, FunctionType):
            raise UnknownError(function)
        known = id(function) in self.seen
        self.add("function", self.seen.setdefault(id(function), (len(self.seen), function))[0])
        if known:
            return
        names = self.code(function.__code__)
        self.value((function.__defaults__, tuple(sorted((function.__kwdefaults__ or {}).items()))), names)
        for name in sorted(names & function.__globals__.keys()):
            self.add("global", name)
            self.value(function.__globals__[name], names)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            self.add("closure", name)
            try:
                self.value(cell.cell_contents, names)
            except ValueError:  # a cell without a value yet
                raise UnknownError(name) from None

    def code(self, code: CodeType) -> set[str]:
        """Add the code, and that of functions inside it; return the names that it may look up."""
        names = set(code.co_names)
        self.add("code", code.co_code, code.co_exceptiontable, code.co_flags, code.co_name, code.co_names)
        self.add(code.co_argcount, code.co_kwonlyargcount, code.co_varnames, code.co_freevars, code.co_cellvars)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                names |= self.code(constant)
            else:
                self.value(constant, names)
        return names

    def value(self, value: Any, names: set[str]) -> None:
        """Add a value; of a module, its attributes among `names`."""
        home = (getattr(value, "__module__", None) or type(value).__module__).partition(".")[0]
        if isinstance(value, Dispatcher):
            self.add("compiled", sorted(value.targetoptions.items()))
            self.function(value.py_func)
        elif isinstance(value, numba.types.Type):
            self.add("type", str(value))
        elif isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
            self.add("array", value.dtype.str, value.shape, value.strides, value.tobytes())
        elif type(value) in PLAIN:
            self.add(type(value).__name__, value)
        elif isinstance(value, tuple | frozenset):
            self.add(type(value).__name__, getattr(value, "_fields", ()), len(value))
            for part in sorted(value, key=repr) if isinstance(value, frozenset) else value:
                self.value(part, names)
        elif isinstance(value, ModuleType):
            self.add("module", value.__name__)
            if value.__name__.partition(".")[0] not in FIXED:
                for name in sorted(name for name in names if hasattr(value, name)):
                    self.add("attribute", name)
                    self.value(getattr(value, name), names)
        elif isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"):
            self.add("named tuple", value.__qualname__, value._fields)
        elif isinstance(getattr(value, "__wrapped__", None), FunctionType):  # an intrinsic of Numba's
            self.add("wrapped", type(value).__name__)
            self.function(value.__wrapped__)
        elif callable(value) and home in FIXED and hasattr(value, "__name__"):
            self.add("fixed", getattr(value, "__module__", ""), getattr(value, "__qualname__", value.__name__))
        else:
            self.function(value)


class _Progress(event.Listener):  # type: ignore[misc]
    """Show a progress message while Numba compiles; compilations nest."""

    def __init__(self) -> None:
        self.depth = 0
        self.step = progress.step(COMPILING)

    def on_start(self, event: Any) -> None:
        self.depth += 1
        if self.depth == 1:
            self.step = progress.step(COMPILING)
            self.step.__enter__()

    def on_end(self, event: Any) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.step.__exit__(None, None, None)


event.register("numba:compile", _Progress())
