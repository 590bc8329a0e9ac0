"""What a public function is called with, looked at before it begins: each value is of a type that its signature names.

The types are those of the annotations, so that no function checks them again. What a value may be is the function's
own to say.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import wraps
from numbers import Integral, Real
from types import UnionType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, get_args, get_origin

from sensorsim._util.errors import RENAMED, InputError

if TYPE_CHECKING:
    from inspect import BoundArguments

Given = ParamSpec("Given")
Answer = TypeVar("Answer")

MOST_DIGITS = 300  # of a whole number that is given: a float can hold it, and a sentence can say it
NONE = type(None)
# By type: what it is called in a sentence.
WORDS: dict[Any, str] = {
    **{int: "a whole number", float: "a number", Decimal: "a Decimal", bool: "True or False", str: "text"},
    **{bytes: "bytes", os.PathLike: "a path", Sequence: "a list", tuple: "a pair", Mapping: "a dict"},
    **{Iterable: "several of them", Callable: "a function", NONE: "None"},
}
# As an annotation in quotes calls them.
NAMED = {getattr(kind, "__name__", ""): kind for kind in WORDS} | {"None": NONE, "os.PathLike": os.PathLike}


def checked(function: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """A function whose calls are looked at first; the packages that can be called do so themselves."""

    @wraps(function)
    def made(*given: Given.args, **named: Given.kwargs) -> Answer:
        call = checked_call(function, given, named)
        return function(*call.args, **call.kwargs)

    return made


def one_sentence(method: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """Return the constructor of a class with a missing or an unknown argument refused in one sentence."""
    from inspect import signature

    takes = signature(method)
    name, names = method.__qualname__.partition(".")[0], ", ".join([*takes.parameters][1:])

    @wraps(method)
    def made(*given: Given.args, **named: Given.kwargs) -> Answer:
        try:
            takes.bind(*given, **named)
        except TypeError as error:
            raise InputError(f"{name}: {error}; it takes {names}.") from None
        return method(*given, **named)

    return made


def checked_call(function: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]) -> "BoundArguments":
    """Refuse a value of another type than the function takes, and a number that no sentence could say.

    A number of numpy becomes Python's own, which alone can be of any size, and is what JSON holds.
    """
    from inspect import signature

    takes = signature(function)
    try:
        call = takes.bind_partial(*given, **named)
        for name, value in call.arguments.items():
            one = hasattr(value, "dtype") and getattr(value, "shape", None) == ()
            call.arguments[name] = made = value.item() if one else value
            check_value(name, made, takes.parameters[name].annotation)
        return takes.bind(*call.args, **call.kwargs)  # refuses what is missing
    except TypeError as error:
        raise InputError(f"{function.__name__}: {error}; see help(sensorsim.{function.__name__}).") from None


def check_value(name: str, value: Any, annotation: Any) -> None:
    """One of them."""
    options = {parameter: option for option, parameter in RENAMED.items()}
    option = f"--{options.get(name, name.replace('_', '-'))}"
    kinds = list(_kinds(annotation))
    if kinds and not any(_is(value, kind) for kind in kinds):
        allowed = [WORDS.get(get_origin(kind) or kind, f"a {getattr(kind, '__name__', kind)}") for kind in kinds]
        raise InputError(f"{option} is of type {type(value).__name__}; give {' or '.join(dict.fromkeys(allowed))}.")
    if any(map(_is_endless, value if isinstance(value, list | tuple) else (value,))):
        raise InputError(f"{option} has a number of more than {MOST_DIGITS} digits; give a shorter one.")
    if isinstance(value, str) and "\0" in value:
        raise InputError(f"{option} has a letter that is a zero byte; leave that out.")


def listed(names: str | Sequence[str]) -> list[str]:
    """Names between commas, or several, each once."""
    parts = names.split(",") if isinstance(names, str) else names
    return list(dict.fromkeys(name.strip() for name in parts if name.strip()))


def _kinds(annotation: Any) -> Iterator[Any]:
    """The types of an annotation: classes, or the name of one that is not imported; nothing where all are taken."""
    if isinstance(annotation, str):
        parts = [part.strip() for part in annotation.split("|")]
        yield from (NAMED.get(part.partition("[")[0], part) for part in parts)
    elif isinstance(annotation, UnionType):
        for part in get_args(annotation):
            yield from _kinds(part)
    elif annotation is None:
        yield NONE
    elif annotation is not Any:
        yield annotation


def _are(values: Iterable[Any], annotation: Any) -> bool:
    kinds = list(_kinds(annotation))
    return not kinds or all(any(_is(value, kind) for kind in kinds) for value in values)


def _is(value: Any, kind: Any) -> bool:
    if isinstance(kind, str):  # of a module that may not be imported yet; then the value is none of its
        return kind in (each.__name__ for each in type(value).__mro__)
    of, inner = get_origin(kind) or kind, get_args(kind)
    if of in (int, float):
        return isinstance(value, Integral if of is int else Real) and not isinstance(value, bool)
    if of is tuple and inner[-1:] == (...,):
        return isinstance(value, tuple | list) and _are(value, inner[0])
    if of is tuple:
        pair = isinstance(value, tuple | list) and len(value) == len(inner)
        return pair and all(_are([one], part) for one, part in zip(value, inner, strict=True))
    if of is Sequence:
        several = all(hasattr(value, name) for name in ("__len__", "__iter__", "__getitem__"))
        if not several or isinstance(value, str | bytes | Mapping):
            return False
        return inner in ((), (Any,)) or (getattr(value, "ndim", 1) == 1 and _are(value, inner[0]))
    if of is Callable:
        return callable(value)
    return isinstance(value, of)


def _is_endless(value: Any) -> bool:
    return isinstance(value, int) and abs(value) >= 10**MOST_DIGITS
