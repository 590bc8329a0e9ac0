"""Declare options once: the kinds of their values, and what each field of a dataclass says about its own.

A kind knows what a value may be, whether it was typed in a shell or passed in Python, so nothing is checked twice. A
dataclass whose fields are declared with `option` checks them with `check_declared`; commands take such fields over.
"""

import dataclasses
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from importlib import import_module
from numbers import Integral, Real
from typing import Any, NamedTuple

from sensorsim._util.errors import InputError, option_name
from sensorsim._util.hints import did_you_mean

MOST_DIGITS = 300  # of a whole number: more would not fit into a sentence
MOST_HEADER = 1 << 16  # bytes of a CSV header that is read for completion
Names = Callable[[], Iterable[str]]
REQUIRED = dataclasses.MISSING


class Kind:
    """Any text. Subclasses say which Python types they take and how text becomes one of them."""

    metavar: str | None = None
    takes: tuple[type, ...] = (str,)
    words = "text"
    schema: Mapping[str, Any] = {"type": "string"}
    bounds = ""  # for the help
    several = False  # given more than once in a shell, a sequence in Python
    count = 1  # words that one option takes

    def read(self, label: str, text: str) -> Any:
        """Return the value of a typed text."""
        return text

    def check(self, label: str, value: Any) -> Any:
        """Return the value as the command uses it; raise InputError where it is none of this kind."""
        if isinstance(value, int) and abs(value) >= 10**MOST_DIGITS:
            raise InputError(f"{label} has a number of more than {MOST_DIGITS} digits; give a shorter one.")
        if isinstance(value, str) and (not value or "\0" in value):
            fault = "holds a zero byte, which no name and no number has" if value else "is empty"
            raise InputError(f"{label} {fault}; give it a value, or leave it out.")
        if not self.accepts(value):
            raise InputError(f"{label} is of type {type(value).__name__}; give {self.words}.")
        return value

    def accepts(self, value: Any) -> bool:
        """Return whether the value is of a type of this kind."""
        return isinstance(value, self.takes) and not (isinstance(value, bool) and bool not in self.takes)

    def complete(self, incomplete: str, given: Mapping[str, Any]) -> "tuple[str, list[str]]":
        """Return what a shell should complete: "plain" with names, "file" or "dir"."""
        return "plain", []


class Flag(Kind):
    """True or False; `off` is the option that says False."""

    takes: tuple[type, ...] = (bool,)
    words, schema = "True or False", {"type": "boolean"}

    def __init__(self, off: str = "") -> None:
        self.off = off


class Bounded(Kind):
    """A number between ends, which `above` and `below` exclude."""

    type_in_schema = "number"

    def __init__(
        self,
        least: float | None = None,
        most: float | None = None,
        above: float | None = None,
        below: float | None = None,
    ) -> None:
        self.least, self.most, self.above, self.below = least, most, above, below
        ends = {"from": least, "above": above, "to": most, "below": below}
        self.bounds = " ".join(f"{word} {end:g}" for word, end in ends.items() if end is not None)
        named = {"minimum": least, "maximum": most, "exclusiveMinimum": above, "exclusiveMaximum": below}
        self.schema = {"type": self.type_in_schema, **{name: end for name, end in named.items() if end is not None}}

    def check_ends(self, label: str, number: float) -> None:
        """Raise InputError where a number lies outside."""
        if (self.above is not None and number <= self.above) or (self.below is not None and number >= self.below):
            raise InputError(f"{label} is {number}; give a number {self.bounds}.")
        if (self.least is None or number >= self.least) and (self.most is None or number <= self.most):
            return
        low, high = (f"{end:g}" if isinstance(end, float) else str(end) for end in (self.least, self.most))
        allowed = f"a number from {low} to {high}"
        if self.most is None:
            allowed = f"{low} or more"
        elif self.least is None:
            allowed = f"{high} or less"
        raise InputError(f"{label} is {number}; give {allowed}.")


class Whole(Bounded):
    """A whole number; `spelled` also reads 2^14, 2^2+1 and 1e8."""

    words, takes, type_in_schema = "a whole number", (Integral,), "integer"

    def __init__(self, least: int | None = None, most: int | None = None, spelled: bool = False) -> None:
        super().__init__(least, most)
        self.spelled, self.metavar = spelled, "count" if spelled else "integer"

    def read(self, label: str, text: str) -> int:
        try:
            return _spelled(text) if self.spelled else int(text)
        except ValueError:
            example = ", as in 16384, 2^14 or 1e8" if self.spelled else ""
            raise InputError(f"{label} is {text}; give a whole number{example}.") from None

    def check(self, label: str, value: Any) -> int:
        number = int(super().check(label, value))
        self.check_ends(label, number)
        return number


class Number(Bounded):
    """A real number."""

    words, takes, metavar = "a number", (Real,), "number"

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
        self.check_ends(label, number)
        return number


class Budget(Kind):
    """An epsilon or delta, kept as it was written so that no digit is lost."""

    takes, words, metavar = (str, Real, Decimal), "a number", "number"
    schema: Mapping[str, Any] = {"type": ["number", "string"]}


class Choice(Kind):
    """One of a few values, which are listed in the help."""

    def __init__(self, *values: str | int) -> None:
        self.values = {str(value): value for value in values}
        self.takes = (type(values[0]),)
        self.words = f"one of {', '.join(self.values)}"
        self.metavar, self.schema = f"[{'|'.join(self.values)}]", {"enum": list(values)}

    def read(self, label: str, text: str) -> str | int:
        return self.values.get(text, text)

    def check(self, label: str, value: Any) -> str | int:
        if not isinstance(value, str):
            super().check(label, value)
        if value not in self.values.values():
            raise InputError(f"{label} is {value!r}{did_you_mean(value, self.values)}; give {self.words}.")
        found: str | int = value
        return found

    def complete(self, incomplete: str, given: Mapping[str, Any]) -> tuple[str, list[str]]:
        return "plain", [name for name in self.values if name.startswith(incomplete)]


class Known(Kind):
    """A name from a list that is read when a shell asks for it; the command itself checks the name.

    `several` takes names between commas, or a sequence in Python; `files` also takes a file of the user's own.
    """

    def __init__(self, names: Names, several: bool = False, files: bool = False, metavar: str = "name") -> None:
        self.names, self.comma, self.files, self.metavar = names, several, files, metavar
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
        super().__init__(_names("datasets.public_ranges:ready_ranges"), several, metavar=metavar)

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
        is_open = value is None or (isinstance(value, str) and value in self.signs)
        return None if is_open else self.kind.check(label, value)


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


class Function(Kind):
    """A function; of Python only."""

    words, schema = "a function", {}

    def accepts(self, value: Any) -> bool:
        return callable(value)


class Free(Kind):
    """A value of any type that the command itself checks; a shell gives text."""

    def __init__(self, metavar: str = "text", schema: Mapping[str, Any] | None = None) -> None:
        self.metavar, self.schema = metavar, schema or {}

    def accepts(self, value: Any) -> bool:
        return True


class Declared(NamedTuple):
    """The declaration of one option, beside its default."""

    kind: Kind
    help: str
    flag: str  # the option's name in a shell, without dashes; empty for the field's own name
    argument: bool  # a word without an option's name in a shell
    default_text: str  # what the default means, where it is None
    shell: bool  # False: of the Python function only
    lock: str  # with --lock and --check: "keep" the value, "ask" for it each time, "refuse" the option


def option(
    default: Any,
    kind: Kind,
    help: str,
    *,
    flag: str = "",
    argument: bool = False,
    default_text: str = "",
    shell: bool = True,
    lock: str = "keep",
) -> Any:
    """Declare one option of a command; REQUIRED in place of the default makes it required."""
    declared = Declared(kind, help, flag, argument, default_text, shell, lock)
    return dataclasses.field(default=default, metadata={"option": declared})


def option_of(record: Any, name: str, **changed: Any) -> Any:
    """Declare an option as the field of another dataclass declares it; `changed` are its default or other parts."""
    field = record.__dataclass_fields__[name]
    metadata = {"option": field.metadata["option"]._replace(**{k: v for k, v in changed.items() if k != "default"})}
    kw_only = True if field.kw_only else dataclasses.MISSING
    return dataclasses.field(default=changed.get("default", field.default), metadata=metadata, kw_only=kw_only)


def check_declared(record: Any) -> None:
    """Check every declared field of a frozen dataclass; None stands for a value that is not given."""
    for field in dataclasses.fields(record):
        value, declared = getattr(record, field.name), field.metadata.get("option")
        if declared is None or value is None or (value is field.default and value in ("", ())):
            continue
        if getattr(value, "shape", None) == () and hasattr(value, "item"):  # a number of numpy
            value = value.item()
        object.__setattr__(record, field.name, declared.kind.check(label_of(field.name, declared), value))


def flag_of(name: str, declared: Declared) -> str:
    """Return the shell name of an option, without dashes."""
    return declared.flag or name.replace("_", "-")


def label_of(name: str, declared: Declared) -> str:
    """Name an option in the words of the caller: `--budget-days` in a shell, the field's name in Python."""
    return name if declared.argument else option_name(flag_of(name, declared), name)


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


def _read_header(path: str) -> list[str]:
    """Return the column names of a CSV file; none where it cannot be read."""
    import csv
    from pathlib import Path as FilePath

    if not FilePath(path).is_file():  # reading a pipe would take data away from the command
        return []
    try:
        with FilePath(path).open("rb") as opened:
            line = opened.readline(MOST_HEADER).decode("utf-8-sig")
        names = next(csv.reader([line.rstrip("\r\n")], strict=True), [])
    except (OSError, ValueError, csv.Error):
        return []
    return [name for name in names if name and name.isprintable() and "," not in name]


def _names(place: str, attribute: str = "") -> Names:
    """Return a function that lists names of another package when it is called, as in `costing.prices:cpu_names`."""

    def listed() -> list[str]:
        module, _, name = place.partition(":")
        found = getattr(import_module(f"sensorsim.{module}"), name)
        return [getattr(each, attribute) if attribute else each for each in (found() if callable(found) else found)]

    return listed


CPUS_KNOWN, MECHANISMS_KNOWN = _names("costing.prices:cpu_names"), _names("mechanisms:every", "name")
CPU, CPUS = Known(CPUS_KNOWN, files=True), Known(CPUS_KNOWN, several=True, files=True)
CHIP, RADIO = Known(_names("costing.chips:chip_names"), files=True), Known(_names("costing.chips:radio_names"))
MECHANISM, MECHANISMS = Known(MECHANISMS_KNOWN), Known(MECHANISMS_KNOWN, several=True, metavar="names")
KERNEL_FILE = "FILE.py[:NAME…]"
KERNEL = Known(_names("language.load:offered"), files=True, metavar=KERNEL_FILE)
TARGETS = Known(lambda: ["host", *_names("machine.targets:CORES")()], several=True, metavar="names")
TABLE_KIND, CLAIM = Known(_names("noise.kinds:KINDS")), Known(_names("paper.recompute:statements", "id"))
PACKET_NUMBERS = Known(_names("kernels.packet:NUMBERS"), several=True, metavar="names")
COLUMN, COLUMNS = Columns(several=False, metavar="column"), Columns()
FILE, TABLE, FOLDER = Path(), Path("table"), Folder("folder")
FIGURE = Output(endings=(".svg", ".png", ".pdf"))
SUMS = Output(endings=(".json", ".csv", ".parquet"))
MODEL, ENCODERS = Output(endings=(".safetensors", ".npz")), Output("several", endings=(".json",))
DATABASE, NEW_FOLDER = Output("database"), Output("folder", metavar="folder")
