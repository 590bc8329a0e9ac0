"""What the range reader knows at one point of a kernel."""

from typing import NamedTuple

from sensorsim.language.intervals import Span, Value
from sensorsim.language.ir import Node, Place
from sensorsim.language.parse import LanguageError
from sensorsim.language.polynomial import Polynomial
from sensorsim.language.ranges.written import Written
from sensorsim.language.types import Array


class RangeError(LanguageError):
    """Something that cannot be proved; the message names file, line and interval."""

    def __init__(self, at: Place, what: str) -> None:
        super().__init__(f"{at}: {what}.")
        self.at = at


class Proof(NamedTuple):
    """What was proved: the widest interval at each line, of the result, and of the operands of each operation."""

    kernel: str
    lines: dict[Place, tuple[int, int]]
    result: tuple[int, int] | None
    operands: dict[Node, tuple[tuple[int, int], ...]]


class Cells(NamedTuple):
    """An array: whose it is, what its elements are declared as, how long it is."""

    owner: str
    kind: Array
    element: Span
    size: Polynomial


class State(NamedTuple):
    """What is known at one point: of names, and which cells of `out` arrays are written."""

    names: dict[str, Value]
    written: Written

    def copy(self) -> "State":
        return State(dict(self.names), dict(self.written))
