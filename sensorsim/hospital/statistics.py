"""All that is kept of received packets, and its file: exact sums that can be added up over files, clinics and weeks."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sensorsim.errors import InputError
from sensorsim.files import of_version, strict_json
from sensorsim.hospital.expected import REASONS, STAIRS_COLUMNS, Expected
from sensorsim.kernels.formats import DIRECTION_BITS, LIMIT, N
from sensorsim.privacy.kinds.rows import MOST_SYMBOLS

SCHEMA_VERSION = 1
CONTENT = "packets received by sensorsim"
MOST_BYTES = 1 << 25
MOST_ROWS = 1 << DIRECTION_BITS.hi  # directions of a sketch: more than there can be features
MOST_PACKETS = 1 << 50


@dataclass(frozen=True)
class Statistics:
    """Sufficient statistics: the packets themselves are not needed any more."""

    identity: str  # of the table, and of the encoder or sketch where there is one
    epsilon: str  # of one packet
    n: int
    k: int
    columns: tuple[str, ...]  # the symbols, or count, sum and sum_of_squares
    sums: tuple[tuple[int, ...], ...]  # a row for each feature, or for each direction of a sketch
    accepted: int
    empty: int
    rejected: dict[str, int]

    @property
    def counts(self) -> list[int]:
        """Values received of each feature."""
        return [row[0] if self.columns == STAIRS_COLUMNS else sum(row) for row in self.sums]

    def to_dict(self) -> dict[str, Any]:
        made = {name: getattr(self, name) for name in ("identity", "epsilon", "n", "k", "accepted", "empty")}
        sums = {name: [row[i] for row in self.sums] for i, name in enumerate(self.columns)}
        return {**made, "rejected": dict(self.rejected), "sums": sums}

    def check(self, expected: Expected, name: str) -> None:
        """Refuse what no packets of this table can have given."""
        if self.identity != expected.identity:
            raise InputError(
                f"{name} is of another table, encoder or sketch; give the ones that its packets were made with."
            )
        sound = (self.n, self.k, self.columns) == (expected.n, expected.k, expected.columns)
        limit = expected.limit
        if limit is not None and sound:
            sound = all(abs(y) <= c * limit and y * y <= c * squares <= (c * limit) ** 2 for c, y, squares in self.sums)
        if not sound:
            raise InputError(f"{name} has sums that no packets of this table give; write it again from the packets.")


def read_received(path: str | os.PathLike[str]) -> Statistics:
    """What `sensorsim receive --out` wrote, checked; `receive` with its table makes means of it again."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; give a file of `sensorsim receive --out`.") from None
    return parse_received(content, str(path))


def parse_received(content: bytes, name: str) -> Statistics:
    """The same from the file's bytes."""
    try:
        newer = (
            f"{name} has a newer schema version than {SCHEMA_VERSION}, which this sensorsim reads; update sensorsim."
        )
        read: Any = strict_json(content) if len(content) <= MOST_BYTES else {}
        found = of_version(read, CONTENT, SCHEMA_VERSION, newer)
        return _parse(found)
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError(
            f"{name} is no file of `sensorsim receive --out`, or was altered; write it again from the packets."
        ) from None


def _parse(found: dict[str, Any]) -> Statistics:
    n, k = _whole(found["n"], 1, MOST_ROWS), _whole(found["k"], 1, N.hi)
    columns, sums = _sums(found["sums"], n)
    rejected = {reason: _whole(found["rejected"][reason]) for reason in REASONS}
    accepted, empty = _whole(found["accepted"]), _whole(found["empty"])
    identity, epsilon = found["identity"], found["epsilon"]
    named = isinstance(identity, str) and isinstance(epsilon, str) and len(bytes.fromhex(identity)) == 32
    made = Statistics(identity, epsilon, n, k, columns, sums, accepted, empty, rejected)
    even = max(made.counts) <= accepted and sum(made.counts) == k * accepted
    if not (named and even and len(epsilon) <= 40 and k <= n):
        raise ValueError("totals")
    return made


def _sums(found: dict[str, Any], n: int) -> tuple[tuple[str, ...], tuple[tuple[int, ...], ...]]:
    columns = tuple(found)
    symbols = tuple(str(symbol) for symbol in range(len(columns)))
    if columns != STAIRS_COLUMNS and (columns != symbols or not 2 <= len(columns) <= MOST_SYMBOLS):
        raise ValueError("columns")
    lists = []
    for name in columns:
        most = MOST_PACKETS * {"sum": LIMIT.hi, "sum_of_squares": LIMIT.hi**2}.get(name, 1)
        lists.append([_whole(value, -most if name == "sum" else 0, most) for value in found[name]])
    if {len(values) for values in lists} != {n}:
        raise ValueError("features")
    return columns, tuple(zip(*lists, strict=True))


def _whole(value: object, least: int = 0, most: int = MOST_PACKETS) -> int:
    if type(value) is not int or not least <= value <= most:
        raise ValueError("whole number")
    return value
