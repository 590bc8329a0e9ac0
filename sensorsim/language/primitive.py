"""A primitive: one operation on values, and everything about it in one object."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from sensorsim._util.errors import InputError
from sensorsim.language.c.helpers import standard_helpers
from sensorsim.language.ir import Place

TYPES = ("u32", "i32", "i64", "flag")
NONE: Mapping[str, float] = MappingProxyType({})


class Primitive(NamedTuple):
    """One operation on values.

    `function` says what it returns for every input, in plain Python that Numba compiles; a result that does not fit
    wraps at 32 bits. What a field leaves out is refused by the reader that needs it, never guessed.
    """

    name: str
    function: Callable[..., Any]
    operations: tuple[str, ...]  # the machine operations it is, by class
    operands: tuple[str, ...]
    result: str
    interval: Callable[..., Any] | None  # the result's span from the operands' (see `intervals`)
    needs: Callable[..., str | None] | None  # what the operands must be besides words of their type, or what is wrong
    wraps: bool  # a result that leaves its type is meant
    c: str  # the C expression, operands in braces; its own helper functions begin with ss_
    c_test: str  # of a comparison: its form as the condition of an `if`, where a branch is meant
    # C functions that these call, each emitted once, in this order. A function ss_f_near beside ss_f is called where
    # the difference of the operands is proved to fit a signed word.
    helpers: tuple[str, ...]
    # For each operand: the cores on which the time depends on it, by name, or as an operation class: those whose table
    # gives it a range of prices. None: not known, so no secret may reach it.
    varies: tuple[tuple[str, ...], ...] | None
    prices: Mapping[str, float]  # by processor, in the unit of its table: for an operation class of your own
    at: Place

    def __call__(self, *values: Any) -> Any:
        return self.function(*values)

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


def primitive(
    *operations: str,
    operands: str,
    result: str,
    interval: Callable[..., Any] | None = None,
    needs: Callable[..., str | None] | None = None,
    wraps: bool = False,
    c: str = "",
    c_test: str = "",
    helper: str | tuple[str, ...] = (),
    varies: tuple[tuple[str, ...], ...] | None = None,
    prices: Mapping[str, float] = NONE,
) -> Callable[[Callable[..., Any]], Primitive]:
    """Declare a primitive; see `Primitive` for what each part is. `operands` are types with spaces: "u32 u32".

    `varies=()` says that its time depends on no operand on any processor. Without `helper`, the functions of
    `arithmetic.h` that `c` calls come along.
    """

    def declare(function: Callable[..., Any]) -> Primitive:
        kinds, name = tuple(operands.split()), function.__name__
        at = Place(function.__code__.co_filename, function.__code__.co_firstlineno)
        wrong = ""
        for kind in {*kinds, result} - {*TYPES}:
            wrong = f"has the type {kind!r}; give u32, i32, i64 or flag"
        if function.__code__.co_argcount != len(kinds):
            wrong = f"takes other arguments than operands={operands!r}"
        elif not operations and name not in TYPES:
            wrong = "names no operation class, so it would cost nothing"
        elif varies and len(varies) != len(kinds):
            wrong = f"says for {len(varies)} operands on which cores they take longer, and it has {len(kinds)}"
        if wrong:
            raise InputError(f"{at}: primitive {name} {wrong}.")
        helpers = (helper,) if isinstance(helper, str) else helper or standard_helpers(c)
        timing = ((),) * len(kinds) if varies == () else varies
        return Primitive(
            *(name, function, operations, kinds, result, interval, needs, wraps, c, c_test, helpers),
            *(timing, prices, at),
        )

    return declare
