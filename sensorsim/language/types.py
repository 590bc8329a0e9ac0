"""Number formats and lengths: what a kernel's parameters are declared with.

`x: X["n"]` is an array of n values in the format X, `n: N` a length, `cursor: Below("size")` a word below another
parameter, as an index is below the length. A format may be `secret`: the secrecy reader then proves that nothing an
observer can time depends on it.
"""

from typing import TYPE_CHECKING, Any, dataclass_transform

from sensorsim._util.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    from sensorsim.language.kernel import Kernel

STORAGE = {
    "u8": (0, 2**8 - 1),
    "u16": (0, 2**16 - 1),
    "u32": (0, 2**32 - 1),
    "i8": (-(2**7), 2**7 - 1),
    "i16": (-(2**15), 2**15 - 1),
    "i32": (-(2**31), 2**31 - 1),
}
LIMITS = {**STORAGE, "i64": (-(2**63), 2**63 - 1)}  # of values; no memory holds an i64
LONGEST = 2**31 - 1  # a length fits a signed word, so that index arithmetic does
USUAL = 14  # features of a wearable's record: what a length without a typical value is taken near
LONG = 257  # a length without test values is tried up to here: past every unrolled loop, odd


def numpy_name(storage: str) -> str:
    """Return numpy's name of a storage type: uint16 for u16."""
    return ("uint" if storage[0] == "u" else "int") + storage[1:]


@dataclass_transform(frozen_default=True)
class Record:
    """Small frozen records, as `dataclass(frozen=True)` makes them, without its milliseconds per class at every start.

    A subclass declares its fields with annotations; a value behind one is its default.

    `class Node(Record, identity=True)` compares by identity, so that notes can be kept on a record.
    """

    _fields: tuple[str, ...] = ()
    _defaults: dict[str, Any] = {}  # noqa: RUF012 - replaced in every subclass

    def __init_subclass__(cls, identity: bool = False) -> None:
        own = tuple(cls.__annotations__)  # of this class alone, on every Python from 3.10 on
        cls._fields = (*cls._fields, *own)
        cls._defaults = {**cls._defaults, **{name: cls.__dict__[name] for name in own if name in cls.__dict__}}
        if identity:
            cls.__eq__ = object.__eq__  # type: ignore[method-assign]
            cls.__hash__ = object.__hash__  # type: ignore[method-assign]

    def __init__(self, *values: Any, **named: Any) -> None:
        state = self.__dict__
        if not named and len(values) == len(self._fields):  # nearly always
            state.update(zip(self._fields, values, strict=True))
            self.check()
            return
        if len(values) > len(self._fields):
            raise TypeError(f"{type(self).__name__} takes {len(self._fields)} values, not {len(values)}")
        state.update(self._defaults)
        state.update(zip(self._fields, values, strict=False))
        state.update(named)
        if len(state) != len(self._fields) or not named.keys() <= set(self._fields):
            wrong = sorted(set(self._fields) ^ state.keys())
            raise TypeError(f"{type(self).__name__} does not take these values: see {', '.join(wrong)}")
        self.check()

    def check(self) -> None:
        """For a subclass: refuse values that do not go together."""

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen; make another one")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(tuple(self.__dict__.values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={self.__dict__[name]!r}' for name in self._fields)})"


class Q(Record):
    """A fixed-point format: value = integer / 2^frac_bits, kept in `storage`, never outside lo … hi (ends included)."""

    name: str
    storage: str
    frac_bits: int
    lo: int
    hi: int
    about: str
    secret: bool = False  # a feature, a key, a random word, or what follows from one
    drawn: bool = False  # a uniform word that a generator makes

    def check(self) -> None:
        _whole(f"format {self.name}", self.frac_bits, self.lo, self.hi)
        if self.storage not in STORAGE:
            raise InputError(f"format {self.name}: storage {self.storage!r} is not one of {', '.join(STORAGE)}.")
        least, most = STORAGE[self.storage]
        if not least <= self.lo <= self.hi <= most:
            raise InputError(f"format {self.name}: {self.lo} … {self.hi} does not fit {self.storage}; widen either.")

    def __getitem__(self, length: str | int) -> "Array":
        return Array(self, str(length))

    def quantise(self, value: "float | Fraction") -> int:
        """The integer nearest to `value` (halves to even), or the end of the range that it lies beyond."""
        from fractions import Fraction  # here, because the command line starts without it

        nearest: int = round(Fraction(value) * 2**self.frac_bits)
        return min(max(nearest, self.lo), self.hi)

    def value(self, integer: int) -> "Fraction":
        """The real number that `integer` stands for."""
        from fractions import Fraction

        return Fraction(integer, 2**self.frac_bits)


class Below(Record):
    """An unsigned word below another parameter."""

    limit: str
    secret: bool = False
    drawn: bool = False
    once: bool = False  # an array of them holds no value twice, as an order does

    storage = "u32"

    def __getitem__(self, length: str | int) -> "Array":
        return Array(self, str(length))


class Array(Record):
    """An array parameter: its element format and its length, an expression in the kernel's lengths."""

    element: Q | Below
    length: str
    contents: tuple[int, ...] | None = None  # known entries, for constant tables
    written: bool = False  # the kernel writes a cell before it reads it
    cell: bool = False  # a field of a record that is one value
    ports: tuple["Port", ...] = ()  # a field of a record that stands for the board: what can be asked of it

    def check(self) -> None:
        if not isinstance(self.element, Q | Below) or not isinstance(self.length, str):
            raise InputError("an array has a format (Q) or Below(…) and a length in quotes: write X['n'] or X['16'].")
        _whole("a table's contents", *(self.contents or ()))

    @property
    def storage(self) -> str:
        return self.element.storage


class Length(Record):
    """A whole-number parameter that bounds loops and arrays.

    `typical` is what costs are shown at; `tests` are the values (short, odd, long) that every check runs at. Both have
    sensible values when left out.
    """

    name: str
    lo: int
    hi: int
    about: str
    at_most: str | None = None  # another length of the same kernel that this one never exceeds
    typical: int = -1
    tests: tuple[int, ...] = ()

    storage = "u32"

    def check(self) -> None:
        _whole(f"length {self.name}", self.lo, self.hi, self.typical, *self.tests)
        if not 0 <= self.lo <= self.hi <= LONGEST:
            raise InputError(f"length {self.name}: {self.lo} … {self.hi} is not within 0 … {LONGEST}.")
        typical = min(max(USUAL, self.lo), self.hi) if self.typical < 0 else self.typical
        tests = self.tests or tuple(sorted({self.lo, min(self.lo | 1 + 2, self.hi), min(max(LONG, self.lo), self.hi)}))
        if not all(self.lo <= value <= self.hi for value in (typical, *tests)):
            raise InputError(f"length {self.name}: a typical or test value is outside {self.lo} … {self.hi}.")
        self.__dict__.update(typical=typical, tests=tests)


class Port(Record):
    """A call that only the board can answer, and all that may be assumed of it.

    `buffer` is the format of the bytes that it is given, as out(…) where it may write them: as many as are passed and
    no more, each within the format, whether or not it fails. What it returns lies within `result`. What it costs is the
    board's, and no operation of the kernel.
    """

    name: str
    takes: tuple[Q, ...]
    buffer: Array | None
    result: Q
    about: str
    fails: bool = True  # it returns 0, or anything else where it failed: an int in C


class Struct(Record):
    """A record: named fields, each a format, an array of a fixed size or a `board`; passed by reference."""

    name: str
    fields: dict[str, Array]
    about: dict[str, str]  # of each field

    def __hash__(self) -> int:
        return hash(self.name)

    def extends(self, other: "Struct") -> bool:
        """Return whether this record can be passed for another: the same name, and all of its fields first."""
        return self.name == other.name and [*self.fields.items()][: len(other.fields)] == [*other.fields.items()]

    def with_fields(self, **more: "tuple[Q | Array, str]") -> "Struct":
        """Return this record with more fields at its end."""
        added = struct(self.name, **more)
        return Struct(self.name, {**self.fields, **added.fields}, {**self.about, **added.about})


class Rest(Record):
    """A pack of parameters: those of a kernel but for the `others`, which its caller passes itself."""

    kernel: "Kernel"
    others: tuple[str, ...]


def rest(kernel: "Kernel", *others: str) -> Rest:
    """Declare a pack: `*bound: rest(draw, "x", "word")`, passed on as `draw(x, word, *bound)`."""
    return Rest(kernel, others)


def struct(name: str, **fields: "tuple[Q | Array, str]") -> Struct:
    """Declare a record: for each field its format or array, and what it is for."""
    kinds = {field: Array(kind, "1", cell=True) if isinstance(kind, Q) else kind for field, (kind, _) in fields.items()}
    for field, kind in kinds.items():
        if not isinstance(kind, Array) or not (kind.ports or kind.length.isdigit()):
            raise InputError(f"field {field} of {name} is no format (Q) and no array of a fixed size, as X['16'].")
    return Struct(name, kinds, {field: about for field, (_, about) in fields.items()})


def board(*ports: Port) -> Array:
    """Declare the field of a record that stands for the board."""
    return Array(Q("board", "u32", 0, 0, 0, "the board"), "1", ports=ports)


def grouped(parameters: "Mapping[str, Kind]") -> dict[str, list[str]]:
    """Return the parameters as they were declared: a record with the names of all its fields, others with their own."""
    found: dict[str, list[str]] = {}
    for name in parameters:
        found.setdefault(name.partition(".")[0], []).append(name)
    return found


Scalar = Q | Below | Length
Kind = Scalar | Array


def out(array: Array) -> Array:
    """The same array, as one that the kernel fills."""
    if not isinstance(array, Array):
        raise InputError("out(…) is for an array, as out(X['n']); a single value is what a kernel returns.")
    return Array(array.element, array.length, array.contents, written=True)


def _whole(what: str, *values: object) -> None:
    for value in values:
        if type(value) is not int:
            raise InputError(f"{what}: {value!r} is no whole number.")


def word(kind: Kind) -> str:
    """The type that a value of this parameter has inside a kernel: u32, i32, or index for a length."""
    return "index" if isinstance(kind, Length) else kind.storage[0] + "32"


def power_of_two(value: int) -> str:
    """A large number as it was meant: 2^30, -2^30-32768, 2^32-1."""
    size = abs(value)
    if size < 2**16:
        return str(value)
    bits = (size + 1).bit_length() - 1  # of the power just below, or one above
    sign = "-" if value < 0 else ""
    rest = size - 2**bits
    if abs(rest) > 2**16:
        return str(value)
    return f"{sign}2^{bits}" + (f"{sign or '+'}{rest}" if rest > 0 else "-1" if rest < 0 else "")
