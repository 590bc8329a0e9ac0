"""The exceptions that a user sees as one sentence, in the words of where it is read.

A sentence is written once, with the options of the command line: "give --records-per-day". In Python the same sentence
names the parameter: "give records_per_day=". `in_python` translates, and `InputError` asks for it when it is shown.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

# Parameters that are not called as their options are: words that Python keeps, and the paper's own name.
RENAMED = {"for": "goal", "clip": "C"}
# What may follow an option in a sentence and is no value of it.
NO_VALUES = (
    *("and", "be", "both", "builds", "can", "command", "exports", "first", "for", "go", "goes", "has", "in", "is"),
    *(
        "keeps",
        "leaves",
        "names",
        "need",
        "needs",
        "of",
        "on",
        "only",
        "or",
        "out",
        "shapes",
        "takes",
        "tell",
        "than",
        "that",
    ),
    *("then", "to", "too", "where", "with", "at", "between", "within", "as", "are", "cannot", "changes", "from"),
    *("a", "compares", "if", "which", "writes"),
)
# A command to type stays as it is; an option may have a value behind it: a number, a name in capitals, a word.
_OPTION = re.compile(
    r"`[^`]*`"
    r"|\bsensorsim(?: [a-z]+)+(?: --[a-z-]+(?: [^\s;,]+)?)*"
    r"|(?<![\w-])--(?P<name>[a-z][a-z0-9-]*)"
    r"(?: (?P<value>-?[0-9](?:[\w.^+-]*[\w^+-])?|[A-Za-z_]\w*(?:=[\w….]*[\w…])?))?"
)
_told = {"command line": False}


def in_python(text: str) -> str:
    """A sentence for the command line as one for Python: every option as the parameter that it sets."""
    return _OPTION.sub(_parameter, text)


def _parameter(found: re.Match[str]) -> str:
    option, value = found["name"], found["value"]
    if option is None or option == "help":  # a command that is shown as one
        return found[0]
    name = f"{RENAMED.get(option, option.replace('-', '_'))}="
    if value is None:
        return name
    if value in NO_VALUES:
        return f"{name} {value}"
    return name + (repr(value) if value.islower() and not value[0].isdigit() else value)


@contextmanager
def on_the_command_line() -> Iterator[None]:
    """Errors that are shown within name options."""
    before, _told["command line"] = _told["command line"], True
    try:
        yield
    finally:
        _told["command line"] = before


class InputError(ValueError):
    """Bad input. The message is one sentence: what was wrong, what is allowed, what to do.

    The command line prints it and exits with code 2; a notebook sees an ordinary exception, in its own words.
    """

    def __str__(self) -> str:
        text = super().__str__()
        return text if _told["command line"] else in_python(text)


class FailedProofError(InputError):
    """What was to be proved does not hold: no fault of the input, so the command line exits with code 1."""

    exit_code = 1
