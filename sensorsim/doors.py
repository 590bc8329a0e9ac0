"""Packages that can be called: `sensorsim.cost` is a package, and `sensorsim.cost(n=14, l=7)` is what it is for.

A package of this name is an attribute of `sensorsim` as soon as anything of it is imported, so a function of the same
name would be there or not by the order of imports. The package itself is callable instead, whatever came before; its
signature and its documentation are those of the function, which is imported when one of them is asked for.
"""

import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from sensorsim.calls import checked_call

# By the package: where the function is that a call of it runs.
FUNCTIONS = {
    "sensorsim.audit": "sensorsim.api.auditing:audit",
    "sensorsim.cost": "sensorsim.cost.cost_report:cost",
    "sensorsim.plan": "sensorsim.api.planning:plan",
    "sensorsim.fleet": "sensorsim.api.fleets:fleet",
    "sensorsim.train": "sensorsim.api.training:train",
    "sensorsim.export": "sensorsim.api.firmware:export",
    "sensorsim.verify": "sensorsim.api.firmware:verify",
    "sensorsim.claims": "sensorsim.claims.recompute:claims",
    "sensorsim.report": "sensorsim.report.page:report",
}


def function_at(place: str) -> Callable[..., Any]:
    """What `module:name` is."""
    module, _, name = place.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found


class Door(ModuleType):
    """A package whose call is that of its function."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        function = function_at(FUNCTIONS[self.__name__])
        call = checked_call(function, args, options)
        return function(*call.args, **call.kwargs)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(function_at(FUNCTIONS[self.__name__]))

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        """Of the function, with its signature, and then what the package says of itself."""
        name, own = self.__name__.rpartition(".")[2], self.__dict__.get("__doc__") or ""
        function = function_at(FUNCTIONS[self.__name__])
        return f"{name}{inspect.signature(function)}\n\n{inspect.getdoc(function)}\n\n{own}"


def open_door(package: str) -> None:
    """Make a package callable; its `__init__` says so with `open_door(__name__)`."""
    sys.modules[package].__class__ = Door
