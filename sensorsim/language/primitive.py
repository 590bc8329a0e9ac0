"""A primitive: one operation on values, and everything about it in one object."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from sensorsim._util.errors import InputError
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
    c_near: str  # a cheaper one, where the difference of the operands is proved to fit a signed word
    c_test: str  # of a comparison: its form as the condition of an `if`, where a branch is meant
    helpers: tuple[str, ...]  # C functions that these call, each emitted once, in this order
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
    c_near: str = "",
    c_test: str = "",
    helper: str | tuple[str, ...] = (),
    varies: tuple[tuple[str, ...], ...] | None = None,
    prices: Mapping[str, float] = NONE,
) -> Callable[[Callable[..., Any]], Primitive]:
    """Declare a primitive; see `Primitive` for what each part is. `operands` are types with spaces: "u32 u32".

    `varies=()` says that its time depends on no operand on any processor.
    """

    def declare(function: Callable[..., Any]) -> Primitive:
        kinds = tuple(operands.split())
        at = Place(function.__code__.co_filename, function.__code__.co_firstlineno)
        for kind in (*kinds, result):
            if kind not in TYPES:
                text = f"has the type {kind!r}; give u32, i32, i64 or flag"
                raise InputError(f"{at}: primitive {function.__name__} {text}.")
        if function.__code__.co_argcount != len(kinds):
            raise InputError(f"{at}: primitive {function.__name__} takes other arguments than operands={operands!r}.")
        if not operations and function.__name__ not in TYPES:
            raise InputError(f"{at}: primitive {function.__name__} names no operation class, so it would cost nothing.")
        if varies and len(varies) != len(kinds):
            text = f"says for {len(varies)} operands on which cores they take longer"
            raise InputError(f"{at}: primitive {function.__name__} {text}, and it has {len(kinds)}.")
        helpers = (helper,) if isinstance(helper, str) else helper
        return Primitive(
            function.__name__, function, operations, kinds, result, interval, needs, wraps, c, c_near, c_test, helpers,
            ((),) * len(kinds) if varies == () else varies, prices, at,
        )  # fmt: skip

    return declare
