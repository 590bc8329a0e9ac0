"""The exceptions that a user sees as one sentence, in the words of where it is read.

A sentence is written once, with the options of the command line: "give --records-per-day". In Python the same sentence
names the parameter: "give records_per_day=". `in_python` translates, and `InputError` asks for it when it is shown.
"""

import re
from collections.abc import Iterable, Iterator
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
    *("a", "compares", "give", "if", "which", "writes"),
)
# A command to type stays as it is; an option may have a value behind it: a number, a name in capitals, a word.
_OPTION = re.compile(
    r"`[^`]*`"
    r"|\bsensorsim(?: [a-z]+)+(?: --[a-z-]+(?: [^\s;,]+)?)*"
    r"|(?<![\w-])--(?P<name>[a-z][a-z0-9-]*)"
    r"(?: (?P<value>-?[0-9](?:[\w.^+-]*[\w^+-])?|[A-Za-z_]\w*(?:=[\w….]*[\w…])?))?"
)
_told = {"command line": False}
MOST_LETTERS = 290  # of a sentence on the command line, with what stands before it
MOST_IN_PYTHON = 400  # of one in Python, which names parameters: beyond it a value was repeated whole
LONG = 120  # letters of a word in Python: a longer one is a value that was repeated whole
SHORT = 60  # letters that are left of what was typed, at most, where the sentence is too long
LEAST = 24  # letters that are left of any word


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


def option_name(flag: str) -> str:
    """Name an option in the words of the caller: `--budget-days` in a shell, `budget_days` in Python."""
    return f"--{flag}" if _told["command line"] else RENAMED.get(flag, flag.replace("-", "_"))


@contextmanager
def on_the_command_line() -> Iterator[None]:
    """Errors that are shown within name options."""
    before, _told["command line"] = _told["command line"], True
    try:
        yield
    finally:
        _told["command line"] = before


def shortened(sentence: str, words: Iterable[str] = ()) -> str:
    """Return one printable line below 300 characters.

    What was typed (`words`) is cut first, then the longest words, then the middle.
    """
    text = one_line(sentence)
    for word in sorted({one_line(word) for word in words}, key=len, reverse=True):
        if len(text) <= MOST_LETTERS:
            return text
        if len(word) > SHORT:
            text = text.replace(word, cut(word, SHORT))
    while len(text) > MOST_LETTERS:
        longest = max(text.split(" "), key=len)
        if len(longest) <= LEAST:
            return cut(text, MOST_LETTERS)
        text = text.replace(longest, cut(longest, max(LEAST, len(longest) - len(text) + MOST_LETTERS)))
    return text


def one_line(text: str) -> str:
    """Return one line, without what a terminal would obey; a letter that stands for no character is none."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def cut(text: str, most: int) -> str:
    """Return both ends of a text, `most` characters in all."""
    tail = most // 3
    return text if len(text) <= most else f"{text[: most - tail - 1]}…{text[len(text) - tail :]}"


class InputError(ValueError):
    """Bad input. The message is one sentence: what was wrong, what is allowed, what to do.

    The command line prints it and exits with code 2; a notebook sees an ordinary exception, in its own words.
    """

    def __str__(self) -> str:
        text = super().__str__()
        if _told["command line"]:  # there the words that were typed are known, and are shortened first
            return text
        text = " ".join(cut(word, SHORT) if len(word) > LONG else word for word in in_python(text).split(" "))
        return text if len(text) <= MOST_IN_PYTHON else shortened(text)


class FailedProofError(InputError):
    """What was to be proved does not hold: no fault of the input, so the command line exits with code 1."""

    exit_code = 1


class UnableError(InputError):
    """This machine cannot do the work now: a folder without room, a tool that does not end. It proves nothing."""
