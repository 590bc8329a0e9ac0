"""Who wears the devices: days of people, in Q15. A device wears a person, and goes through that person's days in turn.

Devices that are more than the people start over with the first person, each on another day of theirs. So a million
devices need no million people: their noise is their own, and the truth that estimates are held against is that of the
days that were worn.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sensorsim._util.hints import did_you_mean
from sensorsim.errors import InputError
from sensorsim.ranges import brief

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from sensorsim.ranges import Range

MADE_PERSONS, MADE_DAYS = 2_000, 30


@dataclass(frozen=True, eq=False)
class People:
    """`records` is (days, n) in Q15, those of a person together; person p has `count[p]` of them from `first[p]` on."""

    columns: tuple[str, ...]
    records: "npt.NDArray[np.uint16]"
    first: "npt.NDArray[np.int64]"
    count: "npt.NDArray[np.int64]"
    source: str
    ranges: "tuple[Range, ...] | None" = field(default=None)

    @classmethod
    def of(
        cls, columns: Sequence[str], x: Any, person: Any, source: str, ranges: "Sequence[Range] | None" = None
    ) -> "People":
        """From values in 0 … 1 and a number for the person of each row; the rows of a person keep their order."""
        import numpy as np

        from sensorsim.kernels.formats import ONE

        values, persons = np.asarray(x, np.float64), np.asarray(person)
        if values.ndim != 2 or values.shape[1] != len(columns) or len(values) != len(persons) or not len(values):
            raise InputError("people are a table of one row or more, a column for each name and a person for each row.")
        if not (np.isfinite(values).all() and values.min() >= 0 and values.max() <= 1):
            raise InputError("a value of the people's days is outside 0 … 1; bring it there by a range.")
        order = np.argsort(persons, kind="stable")
        _, first, count = np.unique(persons[order], return_index=True, return_counts=True)
        records = np.ascontiguousarray(np.rint(values[order] * ONE).astype(np.uint16))
        return cls(tuple(columns), records, first.astype(np.int64), count.astype(np.int64), source,
                   None if ranges is None else tuple(ranges))  # fmt: skip

    @classmethod
    def generated(cls, columns: Sequence[str] | None = None, seed: int = 0) -> "People":
        """Synthetic people with days as those of the public Fitbit file: see train/synthetic.py."""
        from sensorsim.train.data import NUMERIC_COLUMNS, prepare
        from sensorsim.train.synthetic import make

        unknown = [name for name in columns or () if name not in NUMERIC_COLUMNS]
        if unknown:
            some, hint = ", ".join(NUMERIC_COLUMNS[:3]), did_you_mean(unknown[0], NUMERIC_COLUMNS)
            raise InputError(
                f"the generator has no column {brief(unknown[0])}{hint}; it has {some} and {len(NUMERIC_COLUMNS) - 3} "
                "more, as in the header of `sensorsim data make`: pick from these with --columns."
            )
        frame = make(rows=MADE_PERSONS * MADE_DAYS, persons=MADE_PERSONS, seed=seed)
        made = prepare(frame, m=1, columns=tuple(columns) if columns else None, source="the generator")
        return cls.of(made.columns, made.x, made.person, "synthetic", made.ranges)

    @classmethod
    def unknown(cls, columns: tuple[str, ...], digest: str) -> "People":
        """Return people of whom only the digest is known, for the results of a finished fleet."""
        import numpy as np

        none = np.empty(0, np.int64)
        people = cls(columns, np.empty((0, len(columns)), np.uint16), none, none, f"sha256 {digest[:12]}")
        people.__dict__["digest"] = digest
        return people

    @property
    def n(self) -> int:
        return len(self.columns)

    @cached_property
    def digest(self) -> str:
        """Of all that a fleet reads of them."""
        found = hashlib.sha256("\n".join(self.columns).encode())
        for part in (self.records, self.first, self.count):
            found.update(part.tobytes())
        return found.hexdigest()
