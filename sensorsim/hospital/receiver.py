"""Receive files of packets: count what is valid, estimate means with intervals. Memory is bounded for any file size."""

import io
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt

from sensorsim._util import progress
from sensorsim._util.errors import InputError
from sensorsim._util.results import Result
from sensorsim._util.terminal import counted
from sensorsim.hospital.confidence import LEVEL, law_of, mean_interval
from sensorsim.hospital.packets import (
    BINARY,
    HEX,
    MOST_SUMMED,
    READERS,
    STAIRS_COLUMNS,
    SUMS,
    Expected,
    Stream,
    Tally,
    detect_form,
    tally_packets,
)
from sensorsim.hospital.sum_files import CONTENT, SCHEMA_VERSION, Statistics, read_sums

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sensorsim.device.sketches import Sketch
    from sensorsim.encoders import Encoder
    from sensorsim.noise.noise_table import NoiseTable

Source = str | os.PathLike[str] | bytes  # a path, - for standard input, or bytes
PRIVACY = "local, per record"
SHOWN = 14  # features that a repr lists


@dataclass(frozen=True)
class FeatureMean:
    """Unbiased mean of a feature, which noise may put outside 0 … 1, and the limits of the mean of x."""

    feature: int  # as packets number it, from 0 on
    count: int
    mean: float | None  # None where nothing came
    low: float
    high: float


@dataclass(frozen=True)
class DirectionMean:
    """Unbiased mean of u·R² along a direction of a sketch: that of (s·(x - c))² where nothing is clipped."""

    direction: int
    count: int
    mean: float | None  # None where nothing came


@dataclass(frozen=True)
class SketchMean:
    """All directions together: the mean of u·R², about half the sum of the features' variances about the centre."""

    features: int  # of a record
    directions: int
    met: int  # directions of which a packet came
    root: float  # R
    mean: float | None
    low: float
    high: float


@dataclass(frozen=True, repr=False)
class Received(Result):
    """Everything that packets of one table have to say."""

    table: "NoiseTable"
    statistics: Statistics
    sketch: "Sketch | None" = None  # the sums are then of directions

    @property
    def accepted(self) -> int:
        return self.statistics.accepted

    @property
    def rejected(self) -> int:
        return sum(self.statistics.rejected.values())

    def _means(self, scale: float = 1.0) -> list[tuple[int, int, float | None]]:
        """Return number, count and mean of each feature or direction."""
        totals, counts = self.total_and_count()
        pairs = zip((totals * scale).tolist(), counts.tolist(), strict=True)
        return [(i, count, total / count if count else None) for i, (total, count) in enumerate(pairs)]

    @cached_property
    def features(self) -> tuple[FeatureMean, ...]:
        """Return a row for each feature, with an interval of the mean over the received records; none for a sketch."""
        if self.sketch is not None:
            return ()
        law = law_of(self.table)
        return tuple(
            FeatureMean(i, count, mean, *mean_interval(law, mean or 0.0, count)) for i, count, mean in self._means()
        )

    @cached_property
    def directions(self) -> tuple[DirectionMean, ...]:
        """Return a row for each direction of a sketch; none without one."""
        if self.sketch is None:
            return ()
        return tuple(DirectionMean(*row) for row in self._means(self.sketch.root**2))

    @cached_property
    def sketched(self) -> SketchMean | None:
        """Return the mean over all directions, with an interval of the mean over the received records."""
        if self.sketch is None:
            return None
        totals, counts = self.total_and_count()
        count, square = int(counts.sum()), self.sketch.root**2
        mean = float(totals.sum()) / count if count else None
        low, high = mean_interval(law_of(self.table), mean or 0.0, count)
        scaled = None if mean is None else square * mean
        met = int(np.count_nonzero(counts))
        return SketchMean(
            self.sketch.n, self.sketch.directions, met, self.sketch.root, scaled, square * low, square * high
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each feature, or for each direction of a sketch."""
        return [asdict(row) for row in (self.directions if self.sketch else self.features)]

    def total_and_count(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """Return the sum of each feature's unbiased values and their number; of a sketch those of u in 0 … 1."""
        found = self.statistics
        counts = np.array(found.counts, np.int64)
        if found.columns == STAIRS_COLUMNS:  # the estimate is linear, so it maps the mean to the mean
            means = [float(self.table.estimate(row[1] / row[0])) if row[0] else 0.0 for row in found.sums]
            return counts * np.array(means), counts
        values = self.table.estimate(np.arange(len(found.columns)))
        return np.array(found.sums, np.float64) @ values, counts

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON; `read_received` reads it back, from the sums alone."""
        head = {"schema_version": SCHEMA_VERSION, "content": CONTENT, "kind": self.table.kind, "privacy": PRIVACY}
        means = {"features": self.rows()} if self.sketched is None else {"sketch": asdict(self.sketched)}
        return {**head, **self.statistics.to_dict(), "confidence": LEVEL, **means}

    def title(self) -> str:
        refused = f"{self.rejected:,} refused, {self.statistics.empty:,} empty"
        return f"{counted(self.accepted, 'packet')} accepted, {refused}"

    def facts(self) -> dict[str, str]:
        found = self.statistics
        facts = {"epsilon": f"{found.epsilon} per packet, as proved here: {PRIVACY}"}
        facts["table"] = (
            f"{self.table.kind}, {found.k} of {counted(found.n, 'value')} in a packet, identity {found.identity[:16]}"
        )
        if self.sketched is not None:
            facts["mean square"] = f"{self.sketched.low:.5f} … {self.sketched.high:.5f} along a direction (95 %)"
        for row in self.features[:SHOWN]:
            mean = "–" if row.mean is None else f"{row.mean:.5f}"
            facts[f"feature {row.feature}"] = f"{mean}, 95 % within {row.low:.5f} … {row.high:.5f}"
        if len(self.features) > SHOWN:
            facts["…"] = f"{len(self.features) - SHOWN} more: to_frame() has them"
        return facts

    def figure(self) -> "Figure":
        from sensorsim._util.results import whiskers

        found = [(row.mean, row.low, row.high) for row in self.features]
        names, most = [f"feature {row.feature}, {row.count:,}" for row in self.features], 1.0
        axis = "mean of x, 0 … 1, and its 95 % interval, after the number of values that came"
        if self.sketched is not None:
            found, names = [(self.sketched.mean, self.sketched.low, self.sketched.high)], ["mean square"]
            axis, most = "mean square along a direction, and its 95 % interval", float(self.sketched.root) ** 2
        made: Figure = whiskers(self.title(), names, found, axis, most)
        return made


def receive(
    packets: Source | Iterable[Source],
    table: "NoiseTable",
    encoder: "Encoder | None" = None,
    form: str | None = None,
    sketch: "Sketch | None" = None,
) -> Received:
    """Receive packets that sensors made with this table, and with this encoder or sketch where there is one.

    `packets` is a file or several: packets that follow each other, or one a line in hexadecimal, or a CSV or Parquet
    with a column `packet`, or a file of `sensorsim receive --out`. Its content decides, unless `form` is "binary" or
    "hex". Bytes are the content of a file, a list of bytes is a list of packets. Invalid packets are refused and
    counted by reason. A file that is given twice is an error, as are the same sums in two files: packets would count
    twice.
    """
    if form not in (None, BINARY, HEX):
        raise InputError(f"form is {form}; packets are {BINARY} or {HEX}, or leave it out.")
    expected = Expected.of(table, encoder, sketch)
    total = Statistics.none(expected)
    given = [packets] if isinstance(packets, str | os.PathLike | bytes) else list(packets)
    single = [] if isinstance(packets, bytes) else [source.hex() for source in given if isinstance(source, bytes)]
    if single:
        lines = io.BytesIO("\n".join(single).encode())
        total += _receive_file(Stream(lines, "the packets"), HEX, expected)[0]
        given = [source for source in given if not isinstance(source, bytes)]
    seen: dict[bytes | tuple[int, int], str] = {}  # names by inode, and by content or sums
    for source in given:
        with open_source(source) as stream:
            _check_new(seen, _inode(stream.file), stream.name)
            found, digest, what = _receive_file(stream, form, expected)
            _check_new(seen, digest, stream.name, what)
            total += found
    return Received(table, total, sketch)


def _check_new(
    seen: dict[bytes | tuple[int, int], str], mark: bytes | tuple[int, int] | None, name: str, what: str = "content"
) -> None:
    """Refuse a file whose inode, content or sums an earlier one has."""
    if mark in seen:
        which = "is given twice" if seen[mark] == name else f"and {seen[mark]} have the same {what}"
        raise InputError(f"{name} {which}, and a packet counts once; leave one of them out.")
    if mark is not None:
        seen[mark] = name


def _inode(file: BinaryIO) -> tuple[int, int] | None:
    """Return device and inode of a regular file; None of anything else."""
    try:
        found = os.fstat(file.fileno())
    except (OSError, ValueError):  # bytes in memory
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def _receive_file(stream: Stream, form: str | None, expected: Expected) -> tuple[Statistics, bytes | None, str]:
    """Return the sums of a file, a digest of its content or sums, and which of the two it is of."""
    form = detect_form(stream, form)
    if form == SUMS:
        found = read_sums(stream)
        found.check(expected, stream.name)
        return found, found.digest, "sums"
    total, tally = Statistics.none(expected), Tally.of(expected)

    def statistics() -> Statistics:
        return Statistics.of(expected, tally.sums(), tally.accepted, tally.empty, tally.rejected)

    for block in READERS[form](stream, expected, tally):
        tally_packets(block, expected, tally)
        if tally.accepted >= MOST_SUMMED:
            total += statistics()
            tally.clear()
    return total + statistics(), stream.digest(), "content"


@contextmanager
def open_source(source: Source) -> Iterator[Stream]:
    """Open a source, with its name for messages; report one that may have to be waited for."""
    if isinstance(source, bytes):
        yield Stream(io.BytesIO(source), "the packets")
        return
    name = "standard input" if source == "-" else str(source)
    with progress.step(f"waiting for packets from {name}, up to its end" if is_stream(source) else "reading packets"):
        if source == "-":
            yield Stream(sys.stdin.buffer, name)
            return
        try:
            mode = Path(source).stat().st_mode
            if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
                raise InputError(f"{source} is a device and has no end; give a file or a pipe of packets, or - .")
            with Path(source).open("rb") as file:  # waits for the writer of a pipe
                yield Stream(file, name)
        except OSError as error:
            raise InputError(f"cannot read {source}: {error.strerror}; give a file of packets.") from None


def is_stream(source: Source) -> bool:
    """Return whether a source can be read only once: standard input, or a pipe."""
    try:
        return source == "-" or (not isinstance(source, bytes) and Path(source).is_fifo())
    except (OSError, ValueError):
        return False
