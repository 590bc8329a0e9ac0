"""One line of a plan: what it says, and the call that says it again."""

from typing import Any, NamedTuple


class Line(NamedTuple):
    """`how` is a Python expression of public functions; `table` in it is the plan's noise table."""

    name: str
    value: Any
    unit: str
    how: str

    def to_dict(self) -> dict[str, Any]:
        return self._asdict()
