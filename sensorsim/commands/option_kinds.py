"""Kinds of option values: how one is read from text, checked, completed by a shell and described.

A kind knows what a value may be, whether it was typed in a shell or passed in Python, so nothing is checked twice.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

from sensorsim._util.errors import InputError
from sensorsim._util.hints import did_you_mean

MOST_DIGITS = 300  # of a whole number: more would not fit into a sentence
MOST_HEADER = 1 << 16  # bytes of a CSV header that is read for completion
Names = Callable[[], Iterable[str]]


class Kind:
    """Any text. Subclasses say which Python types they take and how text becomes one of them."""

    metavar: str | None = None
    takes: tuple[type, ...] = (str,)
    words = "text"
    schema: Mapping[str, Any] = {"type": "string"}
    several = False  # given more than once in a shell, a sequence in Python
    count = 1  # words that one option takes

    def read(self, label: str, text: str) -> Any:
        """Return the value of a typed text."""
        return text

    def check(self, label: str, value: Any) -> Any:
        """Return the value as the command uses it; raise InputError where it is none of this kind."""
        if not self.accepts(value):
            raise InputError(f"{label} is of type {type(value).__name__}; give {self.words}.")
        if isinstance(value, str) and "\0" in value:
            raise InputError(f"{label} holds a zero byte, which no name and no number has.")
        return value

    def accepts(self, value: Any) -> bool:
        return isinstance(value, self.takes) and not (isinstance(value, bool) and bool not in self.takes)

    def complete(self, incomplete: str, given: Mapping[str, Any]) -> "tuple[str, list[str]]":
        """Return what a shell should complete: "plain" with names, "file" or "dir"."""
        return "plain", []


class Flag(Kind):
    """True or False; `off` is the option that says False."""

    takes, words, schema = (bool,), "True or False", {"type": "boolean"}

    def __init__(self, off: str = "") -> None:
        self.off = off


class Whole(Kind):
    """A whole number; `spelled` also reads 2^14, 2^2+1 and 1e8."""

    words, takes = "a whole number", (Integral,)

    def __init__(self, least: int | None = None, most: int | None = None, spelled: bool = False) -> None:
        self.least, self.most, self.spelled = least, most, spelled
        self.metavar = "count" if spelled else "integer"
        ends = {"minimum": least, "maximum": most}
        self.schema = {"type": "integer", **{name: end for name, end in ends.items() if end is not None}}

    def read(self, label: str, text: str) -> int:
        try:
            return _spelled(text) if self.spelled else int(text)
        except ValueError:
            example = ", as in 16384, 2^14 or 1e8" if self.spelled else ""
            raise InputError(f"{label} is {text}; give a whole number{example}.") from None

    def check(self, label: str, value: Any) -> int:
        number = int(super().check(label, value))
        if abs(number) >= 10**MOST_DIGITS:
            raise InputError(f"{label} has a number of more than {MOST_DIGITS} digits; give a shorter one.")
        _within(label, number, self.least, self.most)
        return number


class Number(Kind):
    """A real number; `above` excludes the lower end."""

    words, takes, metavar = "a number", (Real,), "number"

    def __init__(self, least: float | None = None, most: float | None = None, above: float | None = None) -> None:
        self.least, self.most, self.above = least, most, above
        ends = {"minimum": least, "maximum": most, "exclusiveMinimum": above}
        self.schema = {"type": "number", **{name: end for name, end in ends.items() if end is not None}}

    def read(self, label: str, text: str) -> float:
        try:
            return float(text)
        except ValueError:
            raise InputError(f"{label} is {text}; give a number.") from None

    def check(self, label: str, value: Any) -> float:
        try:
            number = float(super().check(label, value))
        except OverflowError:
            raise InputError(f"{label} is too large a number; give a smaller one.") from None
        if number != number:
            raise InputError(f"{label} is not a number; give one.")
        if self.above is not None and number <= self.above:
            raise InputError(f"{label} is {value}; give a number above {self.above:g}.")
        _within(label, number, self.least, self.most)
        return number


class Budget(Kind):
    """An epsilon or delta, kept as it was written so that no digit is lost."""

    takes, words, metavar = (str, Real, Decimal), "a number", "number"
    schema: Mapping[str, Any] = {"type": ["number", "string"]}


class Choice(Kind):
    """One of a few names, which are listed in the help."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.metavar, self.schema = f"[{'|'.join(names)}]", {"enum": list(names)}

    def check(self, label: str, value: Any) -> str:
        name: str = super().check(label, value)
        if name not in self.names:
            hint = did_you_mean(name, self.names)
            raise InputError(f"{label} is {name!r}{hint}; give one of {', '.join(self.names)}.")
        return name

    def complete(self, incomplete: str, given: Mapping[str, Any]) -> tuple[str, list[str]]:
        return "plain", [name for name in self.names if name.startswith(incomplete)]


class Known(Kind):
    """A name from a list that is read when a shell asks for it; the command itself checks the name.

    `several` takes names between commas, or a sequence in Python; `files` also takes a file of the user's own.
    """

    def __init__(self, names: Names, several: bool = False, files: bool = False, metavar: str = "name") -> None:
        self.names, self.comma, self.files = names, several, files
        self.metavar = metavar
        self.takes = (str, os.PathLike) if files else (str,)
        self.words = "text or a list of texts" if several else "text"

    def accepts(self, value: Any) -> bool:
        if self.comma and isinstance(value, Sequence) and not isinstance(value, str | bytes):
            return all(isinstance(one, str) for one in value)
        return super().accepts(value)

    def complete(self, incomplete: str, given: Mapping[str, Any]) -> tuple[str, list[str]]:
        before, comma, last = incomplete.rpartition(",") if self.comma else ("", "", incomplete)
        taken = before.split(",")
        found = [name for name in self.known(given) if name.startswith(last) and name not in taken]
        files = self.files and incomplete and not comma
        return "file" if files else "plain", [f"{before}{comma}{name}" for name in found]

    def known(self, given: Mapping[str, Any]) -> Iterable[str]:
        return self.names()


class Columns(Known):
    """Columns of the CSV file that the option `data` names, or else those with public ranges."""

    def __init__(self, several: bool = True, metavar: str = "A,B") -> None:
        super().__init__(_ready_columns, several, metavar=metavar)

    def known(self, given: Mapping[str, Any]) -> Iterable[str]:
        data = given.get("data")
        return _read_header(data) if isinstance(data, str) else self.names()


class Path(Kind):
    """A path that is read; Python may also pass an object of a class named in `objects`."""

    takes: tuple[type, ...] = (str, os.PathLike)
    words = "a path"
    shell = "file"

    def __init__(self, metavar: str = "file", *objects: str) -> None:
        self.metavar, self.objects = metavar, objects
        if objects:
            self.words = f"a path or a {' or '.join(objects)}"

    def accepts(self, value: Any) -> bool:
        return super().accepts(value) or any(each.__name__ in self.objects for each in type(value).__mro__)

    def check(self, label: str, value: Any) -> Any:
        if value == "":
            raise InputError(f"{label} is empty; give it a value, or leave it out.")
        return super().check(label, value)

    def complete(self, incomplete: str, given: Mapping[str, Any]) -> tuple[str, list[str]]:
        return self.shell, []


class Folder(Path):
    """A folder that is read."""

    shell = "dir"


class Output(Path):
    """A path that is written, checked before the command begins; `-` sends a file to standard output.

    `form` is file, folder, database or several (files). With `endings` a file must have one of them.
    """

    def __init__(self, form: str = "file", endings: tuple[str, ...] = (), metavar: str = "file") -> None:
        super().__init__(metavar)
        self.form, self.endings = form, endings
        self.shell = "dir" if form == "folder" else "file"


class Open(Kind):
    """A number, or what stands for one that is to be solved for: '?', solve, or None in Python."""

    signs = ("?", "solve")

    def __init__(self, kind: Kind) -> None:
        self.kind, self.metavar, self.schema = kind, "number|'?'", {"type": ["number", "string", "null"]}

    def read(self, label: str, text: str) -> Any:
        try:
            return text if text in self.signs else self.kind.read(label, text)
        except InputError as error:
            raise InputError(f"{str(error).rstrip('.')}, or '?' or solve to have it solved for.") from None

    def check(self, label: str, value: Any) -> Any:
        return None if value is None or value in self.signs else self.kind.check(label, value)


class Several(Kind):
    """A sequence of values of one kind; a shell gives the option once for each."""

    several = True

    def __init__(self, kind: Kind, words: int = 0) -> None:
        self.kind, self.metavar = kind, kind.metavar
        self.several, self.count = not words, words or 1
        self.schema = {"type": "array", "items": dict(kind.schema)}

    def read(self, label: str, text: str) -> Any:
        return self.kind.read(label, text)

    def check(self, label: str, value: Any) -> tuple[Any, ...]:
        alone = self.kind.accepts(value) or not isinstance(value, Iterable)
        values = (value,) if alone else tuple(value)
        if self.count > 1 and len(values) != self.count:
            raise InputError(f"{label} takes {self.count} values; give as many.")
        return tuple(self.kind.check(label, one) for one in values)

    def complete(self, incomplete: str, given: Mapping[str, Any]) -> tuple[str, list[str]]:
        return self.kind.complete(incomplete, given)


class Free(Kind):
    """A value of any type that the command itself checks; a shell gives text."""

    def __init__(self, metavar: str = "text", schema: Mapping[str, Any] | None = None) -> None:
        self.metavar, self.schema = metavar, schema or {}

    def accepts(self, value: Any) -> bool:
        return True


def split_names(names: str | Sequence[str]) -> list[str]:
    """Split names between commas, or take a sequence of them; each name once."""
    parts = names.split(",") if isinstance(names, str) else names
    return list(dict.fromkeys(name.strip() for name in parts if name.strip()))


def _spelled(text: str) -> int:
    words, plus, more = text.partition("+")
    base, power_sign, power = words.partition("^")
    if not power_sign and not plus and "e" in text.lower():
        number = float(text)
        if not 0 <= number <= 1e18 or number != int(number):
            raise ValueError(text)
        return int(number)
    parts = [base, *([power] if power_sign else []), *([more] if plus else [])]
    if not all(part.isdecimal() and len(part) < 19 for part in parts) or (power_sign and int(power) > 64):
        raise ValueError(text)
    return (int(base) ** int(power) if power_sign else int(base)) + (int(more) if more else 0)


def _within(label: str, value: float, least: float | None, most: float | None) -> None:
    if (least is None or value >= least) and (most is None or value <= most):
        return
    if most is None:
        raise InputError(f"{label} is {value}; give {least} or more.")
    if least is None:
        raise InputError(f"{label} is {value}; give {most} or less.")
    raise InputError(f"{label} is {value}; give a number from {least} to {most}.")


def _ready_columns() -> list[str]:
    from sensorsim.datasets.public_ranges import ready_ranges

    return list(ready_ranges())


def _read_header(path: str) -> list[str]:
    """Return the column names of a CSV file; none where it cannot be read."""
    import csv
    from pathlib import Path as FilePath

    try:
        file = FilePath(path)
        if not file.is_file():  # reading a pipe would take data away from the command
            return []
        with file.open("rb") as opened:
            line = opened.readline(MOST_HEADER).decode("utf-8-sig")
        names = next(csv.reader([line.rstrip("\r\n")], strict=True), [])
    except (OSError, ValueError, csv.Error):
        return []
    return [name for name in names if name and name.isprintable() and "," not in name]
