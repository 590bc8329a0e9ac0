"""Run an audit as a group-sequential test: growing batches, an interim look after each, early stopping.

The draws double from look to look, so each batch is as large as all before it: events are chosen on earlier batches
and measured on the fresh one. The error probability, 1 - confidence, is shared evenly among the looks; at each look a
third goes to distributions, a third to dependence, a third to events, each shared among all tests of its kind. The
probability of a false alarm over all looks is then at most 1 - confidence.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from sensorsim._util.errors import InputError
from sensorsim._util.results import Result, bars
from sensorsim.auditing import cell_counts
from sensorsim.auditing.hypothesis_tests import Counted, Look, count_events, interim_look, rarest
from sensorsim.auditing.packet_source import Source

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMA = 2
CHUNK = 1 << 19  # values drawn at once
FEWEST_DRAWS = 1000
FEWEST_PACKETS = 64
PILOT = 128  # packets of an input of weight 1 from which the cells are made, if there are enough
Progress = Callable[[int], None]
Batch = tuple[int, int]  # first packet and end, of each input, per unit of weight


@dataclass(frozen=True, repr=False)
class Audit(Result):
    """All looks, in order. The last one decides: a look that finds something ends the audit."""

    mechanism: str
    sees: str
    words: str  # their generator
    seed: int
    confidence: float
    asked: int  # draws
    per_record: int  # draws in a packet
    claimed: float  # epsilon of a packet
    inputs: tuple[str, ...]
    looks: tuple[Look, ...]
    recovered: bool  # some field has one value for each of the first two inputs: it reveals x exactly
    rarest: float  # a leak in one field of a smaller share of the packets is beyond these draws

    name: str = ""  # of what was audited

    @property
    def verdict(self) -> str:
        """Say in one line whether there is a leak, a dependence, a mismatch, or nothing."""
        last, event = self.last, self.last.event
        if event.leaks and self.recovered:
            return "LEAK: every packet gives x away exactly."
        if event.leaks:
            return f"LEAK: {event.of} costs more than {event.bound:.4g}, {event.claimed:.4g} was claimed."
        if last.dependence is not None and not last.independent:
            return f"DEPENDENT: {last.dependence.of} are not independent, so what they cost together is not certified."
        if last.distribution is not None and not last.matches:
            return f"MISMATCH: {last.distribution.of} does not follow the distribution that the certificate is about."
        return "No leak found. That is no proof; the proof is the certificate (sensorsim noise check)."

    def title(self) -> str:
        return f"{self.name or self.mechanism}: {self.verdict}"

    def facts(self) -> dict[str, str]:
        event = self.last.event
        return {
            "draws": f"{self.draws:,} of {self.asked:,}, in {len(self.looks)} looks, seed {self.seed}",
            "observed": self.sees,
            "claimed": f"epsilon {self.claimed:.6g} for a packet",
            "measured": f"more than {event.bound:.6g} with confidence {self.confidence:g}; claimed {event.claimed:.6g}",
        }

    def to_dict(self) -> dict[str, Any]:
        known = {name: getattr(self, name) for name in ("mechanism", "sees", "words", "seed")}
        return {
            "schema_version": SCHEMA,
            "file": self.name,
            **known,
            "words_are_secret": False,
            "inputs": list(self.inputs),
            "confidence": self.confidence,
            "draws_asked": self.asked,
            "draws": self.draws,
            "packets": self.last.packets,
            "per_record": self.per_record,
            "epsilon_claimed": self.claimed,
            "looks": [look.to_dict() for look in self.looks],
            "recovered": self.recovered,
            "rarest_leak_seen": self.rarest,
            **self.last.verdicts(),
            "verdict": self.verdict,
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each look, for CSV."""
        made = []
        for look in self.looks:
            row: dict[str, Any] = {
                "file": self.name,
                "mechanism": self.mechanism,
                "draws": look.draws,
                "packets": look.packets,
            }
            row |= {f"p_{test}": found and found.p_value for test, found in look.tests.items()}
            row |= {"event": look.event.of} | look.event.numbers()
            made.append(row | {"passed": look.passed, "verdict": self.verdict if look is self.last else ""})
        return made

    def figure(self) -> "Figure":
        """Draw the lower bound after each look, and the claim."""
        found: dict[str, float | None] = {f"{look.draws:,} draws": look.event.bound for look in self.looks}
        axis = f"lower bound of epsilon by the worst event, confidence {self.confidence:g}"
        title = f"{self.name or self.mechanism}, {self.draws:,} draws, seed {self.seed}: {self.verdict}"
        return bars(title, found, axis, line=(self.last.event.claimed, "claimed"))

    @property
    def last(self) -> Look:
        return self.looks[-1]

    @property
    def draws(self) -> int:
        return self.last.draws

    @property
    def matches(self) -> bool:
        return self.last.matches

    @property
    def independent(self) -> bool:
        return self.last.independent

    @property
    def leaks(self) -> bool:
        return self.last.event.leaks

    @property
    def passed(self) -> bool:
        return self.last.passed


def plan_batches(source: Source, draws: int) -> list[Batch]:
    """Return the batches: a pilot, then one for each look, each as large as all before it."""
    fewest = max(FEWEST_DRAWS, FEWEST_PACKETS * source.per_record)
    if draws < fewest:
        raise InputError(f"draws is {draws}; an audit needs at least {fewest}, and finds more with 10^8.")
    each = draws // source.per_record // sum(one.weight for one in source.inputs)
    looks = max(1, (each // PILOT).bit_length() - 1)
    ends = [0, *(each >> (looks - k) for k in range(looks + 1))]
    return list(pairwise(ends))


def examine(
    source: Source,
    draws: int = 10**8,
    seed: int = 0,
    confidence: float = 0.9999,
    threads: int = 1,
    progress: Progress = lambda drawn: None,
) -> Audit:
    """Draw from a source and test for a leak."""
    if not 0.5 <= confidence < 1:
        raise InputError(f"confidence is {confidence}; give a number from 0.5 to below 1, as in 0.9999.")
    batches = plan_batches(source, draws)
    work = _Work(source, seed, threads, progress)
    work.pilot(batches[0])
    looks: list[Look] = []
    share = (1 - confidence) / (len(batches) - 1)
    for batch in batches[1:]:
        work.draw(batch)
        looks.append(interim_look(work, share))
        if not looks[-1].passed:
            break
        work.merge()
    error = share / 3 / (2 * count_events(work))
    trials = (batch[1] - batch[0]) * source.inputs[0].weight
    seen = rarest(trials, min(field.cost for field in source.fields), error, confidence)
    names = tuple(one.name for one in source.inputs)
    about = source.mechanism, source.sees, source.words, seed, confidence, draws, source.per_record, source.claimed
    return Audit(*about, names, tuple(looks), work.recovered(), seen)


class _Work(Counted):
    """Draw and count the batches of an audit."""

    def __init__(self, source: Source, seed: int, threads: int, progress: Progress) -> None:
        self.source, self.seed, self.threads, self.progress = source, seed, max(1, threads), progress
        self.pairs = cell_counts.column_pairs(len(source.fields))
        self.lock = threading.Lock()
        self.samples: list[list[Any]] = [[] for _ in source.inputs]
        self.learned, self.scores = [], []
        self.learned_from = self.packets = 0

    def pilot(self, batch: Batch) -> None:
        """Make the cells from the first packets, and count these."""
        numbers = range(len(self.source.inputs))
        first = [np.concatenate([self.packets_of(*block[:3]) for block in self.blocks(batch, k)]) for k in numbers]
        self.cells = cell_counts.make_cells(self.source, first)
        self.expected = cell_counts.expected_cells(self.source, self.cells)
        self.expected_values = cell_counts.expected_values(self.source, self.cells)
        width = len(self.source.fields)
        self.seen, self.fresh = ([cell_counts.empty_counts(width, self.pairs) for _ in first] for _ in range(2))
        size = 1 << self.cells.bits if len(self.cells.pooled) else 1
        self.seen_values, self.fresh_values = (np.zeros((len(first), size), np.uint32) for _ in range(2))
        for which, packets in enumerate(first):
            self.samples[which].append(packets)
            self.count(which, packets)
        self.merge()

    def draw(self, batch: Batch) -> None:
        """Learn from the packets so far, then draw a batch and count it."""
        self.learn()
        self.scores = [np.zeros((2, len(event.cuts) + 1), np.int64) for _, event in self.learned]
        work = [block for which in range(len(self.source.inputs)) for block in self.blocks(batch, which)]
        with ThreadPoolExecutor(self.threads) as pool:
            list(pool.map(lambda block: self.take(*block), work))

    def take(self, which: int, start: int, size: int, first: bool) -> None:
        """Draw a block of packets of an input and count it."""
        packets = self.packets_of(which, start, size)
        self.count(which, packets)
        for number, (pair, event) in enumerate(self.learned):
            if which in pair:
                more = event.tally(packets)
                with self.lock:
                    self.scores[number][pair.index(which)] += more
        if first:
            with self.lock:
                self.samples[which].append(packets[: 2 * cell_counts.MOST_WINDOWS].copy())

    def count(self, which: int, packets: Any) -> None:
        """Add packets to the fresh counts."""
        more = cell_counts.count_packets(packets, self.cells, which, self.pairs)
        with self.lock:
            cell_counts.add_counts(self.fresh[which], more)
            if len(self.cells.pooled):
                cell_counts.count_values(packets, self.cells, self.fresh_values[which])
            self.packets += len(packets)

    def merge(self) -> None:
        """Add the fresh counts, which were tested, to those on which the next events are chosen."""
        for seen, fresh in zip(self.seen, self.fresh, strict=True):
            cell_counts.add_counts(seen, fresh)
            fresh.cells[:] = 0
            fresh.joint[:] = 0
        self.seen_values += self.fresh_values
        self.fresh_values[:] = 0

    def learn(self) -> None:
        """Learn again while there are more samples: the two ends, and two inputs between them."""
        most, ready = 2 * cell_counts.MOST_WINDOWS, min(sum(map(len, blocks)) for blocks in self.samples)
        if ready <= self.learned_from:
            return
        self.learned_from = ready if ready < most else 1 << 62
        known = [np.concatenate(blocks[::-1])[:most] for blocks in self.samples]
        tried = [(pair, window) for pair in ([(0, 1), (2, 4)] if len(known) > 4 else [(0, 1)]) for window in (1, 2)]
        found = [((a, b), cell_counts.learn(known[a], known[b], window)) for (a, b), window in tried]
        self.learned = [(pair, event) for pair, event in found if event is not None]

    def packets_of(self, which: int, start: int, size: int) -> Any:
        """Draw a block of packets of an input."""
        made = self.source.draw(self.source.inputs[which].record, size, (self.seed, which, start))
        self.progress(size * self.source.per_record)
        return np.ascontiguousarray(made, np.int32)

    def blocks(self, batch: Batch, which: int) -> Iterator[tuple[int, int, int, bool]]:
        """Yield input, first packet, number of packets, and whether it is the first block of the batch."""
        rows = max(2, CHUNK // len(self.source.fields) // 2 * 2)
        first, last = (end * self.source.inputs[which].weight for end in batch)
        for start in range(first, last, rows):
            yield which, start, min(rows, last - start), start == first

    def recovered(self) -> bool:
        """Return whether some field has one value for each of the two ends, and these differ."""
        ends = [np.stack([seen.ends, fresh.ends]) for seen, fresh in zip(self.seen[:2], self.fresh[:2], strict=True)]
        least, most = ([function(end[..., e], axis=0) for end in ends] for e, function in ((0, np.min), (1, np.max)))
        alone = (least[0] == most[0]) & (least[1] == most[1])
        return bool((alone & (least[0] != least[1])).any())
