"""What a compiled function follows from, as one hash: its code, the values that it refers to, and all that it calls.

Two functions with the same fingerprint become the same machine code. What cannot be told apart for certain has no
fingerprint (`UnknownError`): such a function is compiled in every process, and never kept.
"""

import dis
import hashlib
import os
import platform
from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import version
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numba
import numba.extending
import numpy as np
from numba.core.dispatcher import Dispatcher

# What these packages define stays as it is while their versions, which are part of the fingerprint, do.
FIXED = ("builtins", "math", "operator", "numpy", "numba", "llvmlite")
PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...))
ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME")
ADDRESS = " at 0x"


class UnknownError(Exception):
    """The function refers to something of which it is not known whether it stays the same."""


def fingerprint(function: Callable[..., Any], options: dict[str, Any]) -> str:
    """Of a plain function that is compiled with these options; 64 hexadecimal digits."""
    made = _Fingerprint()
    made.say("compiled with", repr(sorted(options.items())), surroundings())
    made.function(function)
    return made.hash.hexdigest()


@cache
def surroundings() -> str:
    """The versions of those who compile, and the settings that Numba reads from the environment."""
    versions = (platform.python_implementation(), platform.python_version(), numba.__version__, version("llvmlite"))
    settings = sorted((name, value) for name, value in os.environ.items() if name.startswith("NUMBA_"))
    return repr((versions, np.__version__, platform.machine(), platform.system(), settings))


def type_text(kind: Any) -> str:
    """One of Numba's types in full: its own text names a tuple's class, but not the class's fields.

    The type of a function names it by its address, where another process has another function: that is no text.
    """
    if ADDRESS in repr(kind):
        raise UnknownError(kind)
    fields = getattr(kind, "fields", None)
    inner = [*getattr(kind, "types", ())] if hasattr(kind, "types") else []
    if isinstance(fields, tuple) and hasattr(kind, "instance_class"):
        place = f"{kind.instance_class.__module__}.{kind.instance_class.__qualname__}"
        return f"{kind} {place} {fields} [{', '.join(map(type_text, inner))}]"
    return f"{kind} [{', '.join(map(type_text, inner))}]" if inner else repr(kind)


class _Fingerprint:
    def __init__(self) -> None:
        self.hash = hashlib.sha256()
        self.seen: dict[int, int] = {}  # what was gone through already, so that a function may call itself
        self.alive: list[Any] = []

    def say(self, *words: str | bytes) -> None:
        for word in words:
            data = word if isinstance(word, bytes) else word.encode("utf-8", "surrogatepass")
            self.hash.update(len(data).to_bytes(8, "little") + data)

    def once(self, value: Any) -> bool:
        """Whether this is the first time that the value is met."""
        first = id(value) not in self.seen
        self.say("number", str(self.seen.setdefault(id(value), len(self.seen))))
        self.alive.append(value)  # so that no other gets its identity
        return first

    # functions

    def function(self, function: Any) -> None:
        if not isinstance(function, FunctionType):
            raise UnknownError(function)
        if not self.once(function):
            return
        self.code(function.__code__)
        self.value(function.__defaults__)
        self.value(tuple(sorted((function.__kwdefaults__ or {}).items())))
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        steps = list(_steps(function.__code__))
        attributes = sorted({step.argval for step in steps if step.opname in ATTRIBUTES})
        for name in sorted({step.argval for step in steps if step.opname in GLOBALS}):
            if name in function.__globals__:
                self.say("global", name)
                self.value(function.__globals__[name], attributes)
        for name, cell in sorted(cells.items()):
            self.say("cell", name)
            try:
                self.value(cell.cell_contents, attributes)
            except ValueError:  # not yet filled
                raise UnknownError(name) from None

    def code(self, code: CodeType) -> None:
        self.say("code", code.co_code, code.co_exceptiontable, str(code.co_flags))
        self.say(repr((code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_name)))
        self.say(repr((code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)))
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self.code(constant)
            else:
                self.value(constant)

    # values

    def value(self, value: Any, attributes: list[str] | None = None) -> None:
        """What a name means. Of a module those of `attributes` count that it has."""
        if isinstance(value, Dispatcher):
            self.say("compiled", repr(sorted(value.targetoptions.items())))
            self.function(value.py_func)
        elif isinstance(value, numba.types.Type):
            self.say("type", type_text(value))
        elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
            self.say("array", repr((value.dtype.str, value.shape, value.strides)), value.tobytes())
        elif isinstance(value, np.generic):
            self.say("number", value.dtype.str, value.tobytes())
        elif type(value) in PLAIN:
            self.say(type(value).__name__, repr(value))
        elif isinstance(value, tuple | frozenset):
            self.several(value)
        elif isinstance(value, ModuleType):
            self.module(value, attributes or [])
        elif isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"):
            self.say("tuple of names", value.__qualname__, repr(value._fields))
        elif type(value).__name__ == "_Intrinsic" and isinstance(getattr(value, "_defn", None), FunctionType):
            self.say("intrinsic")
            self.function(value._defn)
        elif _is_fixed(value):
            self.say("fixed", value.__module__ or "", getattr(value, "__qualname__", value.__name__))
        else:
            raise UnknownError(value)

    def several(self, values: Any) -> None:
        self.say(type(values).__name__, repr(getattr(values, "_fields", ())), str(len(values)))
        for one in sorted(values, key=repr) if isinstance(values, frozenset) else values:
            self.value(one)

    def module(self, module: ModuleType, attributes: list[str]) -> None:
        self.say("module", module.__name__)
        if module.__name__.partition(".")[0] not in FIXED:
            for name in attributes:
                if hasattr(module, name):
                    self.say("attribute", name)
                    self.value(getattr(module, name), attributes)


def _is_fixed(value: Any) -> bool:
    """Whether a function or class is one of the interpreter's, or of a package whose version we note."""
    if not isinstance(value, type | BuiltinFunctionType | FunctionType | np.ufunc) and not callable(value):
        return False
    place = getattr(value, "__module__", None) or ("numpy" if isinstance(value, np.ufunc) else "")
    return place.partition(".")[0] in FIXED and hasattr(value, "__name__")


def _steps(code: CodeType) -> Iterator[dis.Instruction]:
    """The instructions of a function and of those inside it."""
    yield from dis.get_instructions(code)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _steps(constant)
