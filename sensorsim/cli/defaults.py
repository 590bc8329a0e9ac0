"""Options with the defaults of the function that a command is a layer of: no default is written a second time."""

from collections.abc import Callable
from inspect import signature
from typing import Any, TypeVar

import click

from sensorsim._util.errors import RENAMED

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
Option = Callable[..., Callable[[Decorated], Decorated]]


def default_of(function: Callable[..., Any], name: str) -> Any:
    """The default of a parameter."""
    return signature(function).parameters[name].default


def options_of(function: Callable[..., Any]) -> Option[Any]:
    """`click.option`, with the default of the parameter that an option sets."""

    def option(flag: str, *names: str, **more: Any) -> Callable[[Decorated], Decorated]:
        word = flag.split("/")[0].removeprefix("--")
        default = default_of(function, RENAMED.get(word, word.replace("-", "_")))
        if default not in (None, ()):  # what these mean is said in the option's own words
            more = {"default": default, "show_default": "/" in flag or (default is not False and default != ""), **more}
        return click.option(flag, *names, **more)

    return option
