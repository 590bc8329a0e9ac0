"""Sums of received packets: exact integers that add up over files, clinics and weeks, and their JSON form."""

import csv
import hashlib
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from operator import add
from typing import Any

from sensorsim._util.errors import InputError
from sensorsim._util.files import of_version, strict_json
from sensorsim.hospital.packet_tally import REASONS, STAIRS_COLUMNS, Expected
from sensorsim.kernels.formats import DIRECTION_BITS, LIMIT, N
from sensorsim.noise.kinds.rows_table import MOST_SYMBOLS

SCHEMA_VERSION = 1
CONTENT = "packets received by sensorsim"
MOST_JSON = 1 << 25
MOST_ROWS = 1 << DIRECTION_BITS.hi  # directions of a sketch: more than there can be features
MOST_PACKETS = 1 << 50
COINCIDENCE = 1e-6  # probability above which equal sums may well be those of different packets


@dataclass(frozen=True)
class Statistics:
    """Sufficient statistics: the packets themselves are no longer needed."""

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
        """Return the sums of packets that were expected."""
        refused = dict.fromkeys(REASONS, 0) | (rejected or {})
        shape = (expected.identity, f"{expected.epsilon:f}", expected.n, expected.k, expected.columns)
        return cls(*shape, tuple(map(tuple, sums)), accepted, empty, refused)

    @classmethod
    def of_tally(cls, expected: Expected, tally: Any) -> "Statistics":
        """Return the sums (features, columns) of packets of which none was refused: each has k values."""
        values = tally[:, 0].sum() if expected.columns == STAIRS_COLUMNS else tally.sum()
        return cls.of(expected, tally.tolist(), int(values) // expected.k)

    @classmethod
    def none(cls, expected: Expected) -> "Statistics":
        """Return empty statistics."""
        return cls.of(expected, [[0] * len(expected.columns)] * expected.n, 0)

    def __add__(self, other: "Statistics") -> "Statistics":
        """Return the statistics of both sets of packets, exactly, in any order and division."""
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
        """Number of values received of each feature."""
        return [row[0] if self.columns == STAIRS_COLUMNS else sum(row) for row in self.sums]

    @property
    def digest(self) -> bytes | None:
        """Hash of the sums, in any file form; None where two hospitals may well have equal sums."""
        content = (self.sums, self.accepted, self.empty, [self.rejected[reason] for reason in REASONS])
        return None if self._coincidence > COINCIDENCE else hashlib.sha256(repr(content).encode()).digest()

    @property
    def _coincidence(self) -> float:
        """Probability that as many packets of the same people give these counts again; sums of numbers never do."""
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
        """Refuse sums that no packets of this table can give."""
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


def parse_json(content: bytes, name: str) -> Statistics:
    """Parse the JSON of `receive --out`."""
    with refuse_altered(name):
        read: Any = strict_json(content) if len(content) <= MOST_JSON else {}
        return parse_sums(check_version(read, name))


def check_version(found: Any, name: str) -> Any:
    """Return what was read if it is of a known schema version."""
    newer = f"{name} has a newer schema version than {SCHEMA_VERSION}, which this sensorsim reads; update sensorsim."
    return of_version(found, CONTENT, SCHEMA_VERSION, newer)


@contextmanager
def refuse_altered(name: str) -> Iterator[None]:
    """Refuse a file that `receive --out` cannot have written; pass on the errors of pyarrow."""
    try:
        yield
    except (ValueError, LookupError, TypeError, RecursionError, csv.Error) as error:
        if isinstance(error, InputError) or type(error).__module__.startswith("pyarrow"):
            raise
        raise InputError(
            f"{name} is no file of `sensorsim receive --out`, or was altered; write it again from the packets."
        ) from None


def parse_sums(found: dict[str, Any]) -> Statistics:
    """Check the output of `Statistics.to_dict`; ValueError, KeyError or TypeError where no packets can give it."""
    n, k = _integer(found["n"], 1, MOST_ROWS), _integer(found["k"], 1, N.hi)
    columns, sums = _parse_columns(found["sums"], n)
    rejected = {reason: _integer(found["rejected"][reason]) for reason in REASONS}
    accepted, empty = _integer(found["accepted"]), _integer(found["empty"])
    identity, epsilon = found["identity"], found["epsilon"]
    named = isinstance(identity, str) and isinstance(epsilon, str) and len(bytes.fromhex(identity)) == 32
    made = Statistics(identity, epsilon, n, k, columns, sums, accepted, empty, rejected)
    even = max(made.counts) <= accepted and sum(made.counts) == k * accepted
    if not (named and even and len(epsilon) <= 40 and k <= n):
        raise ValueError("totals")
    return made


def _parse_columns(found: dict[str, Any], n: int) -> tuple[tuple[str, ...], tuple[tuple[int, ...], ...]]:
    columns = tuple(found)
    symbols = tuple(str(symbol) for symbol in range(len(columns)))
    if columns != STAIRS_COLUMNS and (columns != symbols or not 2 <= len(columns) <= MOST_SYMBOLS):
        raise ValueError("columns")
    lists = []
    for name in columns:
        most = MOST_PACKETS * {"sum": LIMIT.hi, "sum_of_squares": LIMIT.hi**2}.get(name, 1)
        lists.append([_integer(value, -most if name == "sum" else 0, most) for value in found[name]])
    if {len(values) for values in lists} != {n}:
        raise ValueError("features")
    return columns, tuple(zip(*lists, strict=True))


def _integer(value: object, least: int = 0, most: int = MOST_PACKETS) -> int:
    if type(value) is not int or not least <= value <= most:
        raise ValueError("integer")
    return value
