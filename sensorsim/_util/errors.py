"""Exceptions that a user sees as one sentence, and the words of where it is read.

Messages name options as a shell does: "give --records-per-day". In Python the same message names the parameter.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeVar, get_args, get_origin

Given = ParamSpec("Given")
Answer = TypeVar("Answer")

# A command between backquotes stays as it is.
OPTION = re.compile(r"`[^`]*`|(?<![\w-])--([a-z][a-z0-9-]*)")
RENAMED = {"for": "goal", "clip": "C"}  # options whose parameters have other names
_in_shell = [False]
MOST_LETTERS = 290  # of a sentence on the command line, with what stands before it
MOST_IN_PYTHON = 400  # of one in Python, which names parameters: beyond it a value was repeated whole
LONG = 120  # letters of a word in Python: a longer one is a value that was repeated whole
SHORT = 60  # letters that are left of what was typed, at most, where the sentence is too long


def option_name(flag: str, parameter: str = "") -> str:
    """Name an option in the words of the caller: `--budget-days` in a shell, `budget_days` in Python."""
    return f"--{flag}" if _in_shell[-1] else parameter or RENAMED.get(flag) or flag.replace("-", "_")


@contextmanager
def on_the_command_line() -> Iterator[None]:
    """Let messages inside name options as a shell does."""
    _in_shell.append(True)
    try:
        yield
    finally:
        _in_shell.pop()


def shortened(sentence: str, words: Iterable[str] = ()) -> str:
    """Return one printable line below 300 characters.

    What was typed (`words`) is cut first, then other long words, then the middle.
    """
    text = one_line(sentence)
    for word in [*sorted({one_line(word) for word in words}, key=len, reverse=True), *text.split(" ")]:
        if len(text) > MOST_LETTERS and len(word) > SHORT:
            text = text.replace(word, cut(word, SHORT))
    return cut(text, MOST_LETTERS)


def one_line(text: str) -> str:
    """Return one line, without what a terminal would obey; a letter that stands for no character is none."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def cut(text: str, most: int) -> str:
    """Return both ends of a text, `most` characters in all."""
    tail = most // 3
    return text if len(text) <= most else f"{text[: most - tail - 1]}…{text[len(text) - tail :]}"


class InputError(ValueError):
    """Bad input. The message is one sentence: what was wrong, what is allowed, what to do.

    The command line prints it and exits with code 2; a notebook sees an ordinary exception that names parameters.
    """

    def __str__(self) -> str:
        text = super().__str__()
        if _in_shell[-1]:  # the program shortens the words that were typed first
            return text
        text = OPTION.sub(lambda found: option_name(found[1]) if found[1] else found[0], text)
        text = " ".join(cut(word, SHORT) if len(word) > LONG else word for word in text.split(" "))
        return text if len(text) <= MOST_IN_PYTHON else shortened(text)


class FailedProofError(InputError):
    """A proof that fails: no fault of the input, so the command line exits with code 1."""

    exit_code = 1


class UnableError(InputError):
    """This machine cannot do the work now: a folder without room, a tool that does not end. It proves nothing."""


def check_type(name: str, value: object, annotation: Any) -> None:
    """Raise InputError unless the value is of a type of the annotation, whose classes may be named in quotes."""
    kinds = annotation.split(" | ") if isinstance(annotation, str) else get_args(annotation) or (annotation,)
    kinds = (annotation,) if get_origin(annotation) is tuple else kinds
    numbers: dict[Any, Any] = {int: Integral, float: Real}
    for kind in kinds:
        if isinstance(kind, str):
            fits = kind in [each.__name__ for each in type(value).__mro__]
        else:
            fits = isinstance(value, numbers.get(kind, get_origin(kind) or kind)) and not isinstance(value, bool)
        if fits:
            return
    words = {"NoneType": "None", "int": "a whole number", "float": "a number", "str": "text", "tuple": "a tuple"}
    names = [kind if isinstance(kind, str) else kind.__name__ for kind in kinds]
    allowed = " or ".join(words.get(name, f"a {name}") for name in names)
    raise InputError(f"{name} is of type {type(value).__name__}; give {allowed}.")


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
