"""All that is kept of received packets, and its file: exact sums that can be added up over files, clinics and weeks."""

import hashlib
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from operator import add
from pathlib import Path
from typing import Any

from sensorsim._util.files import of_version, strict_json
from sensorsim.errors import InputError
from sensorsim.hospital.expected import REASONS, STAIRS_COLUMNS, Expected
from sensorsim.kernels.formats import DIRECTION_BITS, LIMIT, N
from sensorsim.privacy.kinds.rows import MOST_SYMBOLS

SCHEMA_VERSION = 1
CONTENT = "packets received by sensorsim"
MOST_JSON, MOST_BYTES = 1 << 25, 1 << 28  # a CSV may keep many days apart
MOST_ROWS = 1 << DIRECTION_BITS.hi  # directions of a sketch: more than there can be features
MOST_PACKETS = 1 << 50
BY_CHANCE = 1e-6  # that other packets have the same sums: above, the same sums are no reason to refuse them


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

    @classmethod
    def of(
        cls,
        expected: Expected,
        sums: Iterable[Iterable[int]],
        accepted: int,
        empty: int = 0,
        rejected: dict[str, int] | None = None,
    ) -> "Statistics":
        """Sums of packets that were expected."""
        refused = dict.fromkeys(REASONS, 0) | (rejected or {})
        shape = (expected.identity, f"{expected.epsilon:f}", expected.n, expected.k, expected.columns)
        return cls(*shape, tuple(map(tuple, sums)), accepted, empty, refused)

    @classmethod
    def none(cls, expected: Expected) -> "Statistics":
        """Of no packets at all."""
        return cls.of(expected, [[0] * len(expected.columns)] * expected.n, 0)

    def __add__(self, other: "Statistics") -> "Statistics":
        """Of the packets of both, to the last digit: neither order nor division shows."""
        mine, theirs = ((each.identity, each.n, each.k, each.columns) for each in (self, other))
        if mine != theirs:
            raise InputError(
                "sums of two tables, encoders or sketches do not add up; add those whose packets were made with one."
            )
        return replace(
            self,
            sums=tuple(tuple(map(add, *rows)) for rows in zip(self.sums, other.sums, strict=True)),
            accepted=self.accepted + other.accepted,
            empty=self.empty + other.empty,
            rejected={reason: self.rejected[reason] + other.rejected[reason] for reason in REASONS},
        )

    @property
    def counts(self) -> list[int]:
        """Values received of each feature."""
        return [row[0] if self.columns == STAIRS_COLUMNS else sum(row) for row in self.sums]

    @property
    def digest(self) -> bytes | None:
        """The same for the same sums, in whatever form they were kept; None where two hospitals may well have them."""
        told = (self.sums, self.accepted, self.empty, [self.rejected[reason] for reason in REASONS])
        return None if self._again > BY_CHANCE else hashlib.sha256(repr(told).encode()).digest()

    @property
    def _again(self) -> float:
        """How likely as many packets of the same people give just these counts again; sums of values never do."""
        if self.columns == STAIRS_COLUMNS:
            return 0.0 if self.accepted else 1.0
        log = 0.0
        for row in self.sums:
            seen = [count for count in row if count]
            every = sum(seen)
            log += math.lgamma(every + 1)
            log += sum(count * math.log(count / every) - math.lgamma(count + 1) for count in seen)
        return math.exp(log)

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
    from sensorsim.hospital.columnar_reading import parquet_sums
    from sensorsim.hospital.reading import MAGIC

    try:
        with Path(path).open("rb") as file:
            content = file.read(len(MAGIC))
            if content == MAGIC:
                return parquet_sums(file, str(path))
            content += file.read(MOST_BYTES)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; give a file of `sensorsim receive --out`.") from None
    return parse_received(content, str(path))


def parse_received(content: bytes, name: str) -> Statistics:
    """The same from the bytes of a JSON or a CSV."""
    from sensorsim.hospital.columnar_reading import csv_sums

    return csv_sums(content, name) if not content.lstrip().startswith(b"{") else _parse_json(content, name)


def _parse_json(content: bytes, name: str) -> Statistics:
    try:
        read: Any = strict_json(content) if len(content) <= MOST_JSON else {}
        found = of_version(read, CONTENT, SCHEMA_VERSION, newer(name))
        return parse_sums(found)
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, RecursionError):
        raise altered(name) from None


def newer(name: str) -> str:
    return f"{name} has a newer schema version than {SCHEMA_VERSION}, which this sensorsim reads; update sensorsim."


def altered(name: str) -> InputError:
    return InputError(
        f"{name} is no file of `sensorsim receive --out`, or was altered; write it again from the packets."
    )


def parse_sums(found: dict[str, Any]) -> Statistics:
    """Statistics from what `to_dict` gives; ValueError, KeyError or TypeError where no packets can have given it."""
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
