"""The one door to Numba: functions compiled once, for this process and for those that come after it.

Numba's own `cache=True` looks at one file, and is stale when a function that is called from another one changes. Here a
function is known by its fingerprint, which covers all that it calls. The fingerprint is also part of its name: machine
code that comes from the store brings the names of another process with it, and of two functions that had one name the
linker would take either.
"""

import hashlib
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numba
from numba.core import event, serialize
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult

from sensorsim._util import disk_cache as store
from sensorsim._util import progress
from sensorsim.language.run.fingerprint import UnknownError, fingerprint, type_text

COMPILING = "compiling kernels, for this time and the next"
_made: dict[str, Any] = {}


def jit(function: Callable[..., Any], *, kept: bool = False, **options: Any) -> Callable[..., Any]:
    """`numba.njit(**options)(function)`; the same function for the same fingerprint. What is `kept` goes to the store:
    the functions that Python calls, which hold all that they call in turn."""
    try:
        mark = fingerprint(function, options)
    except UnknownError:
        unknown: Callable[..., Any] = numba.njit(**options)(function)
        return unknown
    if mark not in _made:
        _made[mark] = numba.njit(**options)(_named(function, mark))
    made: Callable[..., Any] = _made[mark]
    if kept and not isinstance(_made[mark]._cache, _Kept):
        _made[mark]._cache = _Kept(mark)
    return made


def callback(function: Callable[..., Any], signature: Any) -> Any:
    """`numba.cfunc(signature)(function)`, which C calls by its address; it comes from the store where it is known."""
    from numba.core import sigutils
    from numba.core.ccallback import CFunc

    mark = fingerprint(function, {"callback": str(signature)})
    made: Any = CFunc(_named(function, mark), sigutils.normalize_signature(signature), locals={}, options={})
    made._cache = _Kept(mark)
    made.compile()
    return made


def _named(function: Any, mark: str) -> Callable[..., Any]:
    """The same function under a name that no other has."""
    made = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    made.__kwdefaults__, made.__doc__, made.__module__ = function.__kwdefaults__, function.__doc__, __name__
    made.__qualname__ = f"{function.__name__}_{mark[:32]}"
    return made


class _Told(event.Listener):  # type: ignore[misc]
    """Says that something is compiled, while it is; Numba compiles one thing at a time."""

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


event.register("numba:compile", _Told())


class _Kept(NullCache):  # type: ignore[misc]
    """What Numba asks for machine code before it compiles, and gives it to afterwards."""

    def __init__(self, mark: str) -> None:
        self.mark = mark

    def name(self, signature: Any, codegen: Any) -> str | None:
        """Of the machine code for these types of arguments; None where they mean something in this process alone."""
        try:
            arguments = [type_text(kind) for kind in signature]
        except UnknownError:
            return None
        return hashlib.sha256(repr((self.mark, arguments, codegen.magic_tuple())).encode()).hexdigest()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        target_context.refresh()
        sig = getattr(sig, "args", sig)  # a callback's has its result too
        if not isinstance(sig, tuple):
            return None
        name = self.name(sig, target_context.codegen())
        data = None if name is None else store.load(name)
        if data is None:
            return None
        try:
            return CompileResult._rebuild(target_context, *serialize.loads(data))
        except Exception:  # whatever it was, it can be compiled
            return None

    def save_overload(self, sig: Any, cres: Any) -> None:
        sig = getattr(sig, "args", sig)
        if not isinstance(sig, tuple) or store.folder() is None or cres.library.has_dynamic_globals or cres.lifted:
            return
        name = self.name(sig, cres.codegen)
        if name is None:
            return
        try:
            data = serialize.dumps(cres._reduce())
        except Exception:  # something in it has no bytes
            return
        store.save(name, data)
