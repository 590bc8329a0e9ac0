"""Run an audit as a group-sequential test: growing batches, an interim look after each, early stopping.

The draws double from look to look, so each batch is as large as all before it: events are chosen on earlier batches
and measured on the fresh one. The error probability, 1 - confidence, is shared evenly among the looks; at each look a
third goes to distributions, a third to dependence, a third to events, each shared among all tests of its kind. The
probability of a false alarm over all looks is then at most 1 - confidence.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple

from sensorsim._util.errors import InputError
from sensorsim.auditing.audit_result import Audit, Look
from sensorsim.auditing.cell_counts import (
    Cells,
    Expected,
    Pairs,
    add_counts,
    column_pairs,
    count_packets,
    count_values,
    empty_counts,
    make_cells,
)
from sensorsim.auditing.hypothesis_tests import rarest
from sensorsim.auditing.interim_tests import Counted, count_events, interim_look
from sensorsim.auditing.learned_event import MOST_WINDOWS, LearnedEvent, learn
from sensorsim.auditing.packet_source import Source, input_pairs

CHUNK = 1 << 19  # values drawn at once
FEWEST_DRAWS = 1000
FEWEST_PACKETS = 64
PILOT = 128  # packets of an input of weight 1 from which the cells are made, if there are enough
Progress = Callable[[int], None]


class Batch(NamedTuple):
    """A range of packets of each input, per unit of weight."""

    first: int
    last: int


def plan_batches(source: Source, draws: int) -> list[Batch]:
    """Return the batches: a pilot, then one for each look, each as large as all before it."""
    fewest = max(FEWEST_DRAWS, FEWEST_PACKETS * source.per_record)
    if draws < fewest:
        raise InputError(f"draws is {draws}; an audit needs at least {fewest}, and finds more with 10^8.")
    each = draws // source.per_record // sum(one.weight for one in source.inputs)
    looks = max(1, (each // PILOT).bit_length() - 1)
    ends = [0, *(each >> (looks - k) for k in range(looks + 1))]
    return [Batch(first, last) for first, last in pairwise(ends)]


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
        looks.append(interim_look(work.counted(), share))
        if not looks[-1].passed:
            break
        work.merge()
    error = share / 3 / (2 * count_events(work.counted()))
    trials = (batch.last - batch.first) * source.inputs[0].weight
    return Audit(
        source.mechanism,
        source.sees,
        source.words,
        seed,
        confidence,
        draws,
        source.per_record,
        source.claimed,
        tuple(one.name for one in source.inputs),
        tuple(looks),
        work.recovered(),
        rarest(trials, min(field.cost for field in source.fields), error, confidence),
    )


class _Work:
    """The state of an audit: counts of earlier batches (`seen`) and of the batch just drawn (`fresh`)."""

    cells: Cells

    def __init__(self, source: Source, seed: int, threads: int, progress: Progress) -> None:
        self.source, self.seed, self.threads, self.progress = source, seed, max(1, threads), progress
        self.pairs: Pairs = column_pairs(len(source.fields))
        self.input_pairs = input_pairs(source.inputs)
        self.lock = threading.Lock()
        self.samples: list[list[Any]] = [[] for _ in source.inputs]
        self.learned: list[tuple[tuple[int, int], LearnedEvent]] = []
        self.learned_from = 0
        self.packets = 0

    def pilot(self, batch: Batch) -> None:
        """Make the cells from the first packets, and count these."""
        import numpy as np

        first = [np.concatenate([self.packets_of(*block) for block in self.blocks(batch, which)])
                for which in range(len(self.source.inputs))]  # fmt: skip
        self.cells = make_cells(self.source, first)
        self.expected = Expected(self.source, self.cells)
        width = len(self.source.fields)
        self.seen, self.fresh = ([empty_counts(width, self.pairs) for _ in first] for _ in range(2))
        size = 1 << self.cells.bits if len(self.cells.pooled) else 1
        self.seen_values, self.fresh_values = (np.zeros((len(first), size), np.uint32) for _ in range(2))
        for which, packets in enumerate(first):
            self.samples[which].append(packets)
            self.count(which, packets)
        self.merge()

    def draw(self, batch: Batch) -> None:
        """Learn from the packets so far, then draw a batch and count it."""
        import numpy as np

        self.learn()
        self.scores = [np.zeros((2, len(event.cuts) + 1), np.int64) for _, event in self.learned]
        work = [block for which in range(len(self.source.inputs)) for block in self.blocks(batch, which)]
        with ThreadPoolExecutor(self.threads) as pool:
            for _ in pool.map(lambda block: self.take(*block), work):
                pass

    def take(self, which: int, start: int, size: int, first: bool) -> None:
        packets = self.packets_of(which, start, size, first)
        self.count(which, packets)
        for number, (pair, event) in enumerate(self.learned):
            if which in pair:
                more = event.tally(packets)
                with self.lock:
                    self.scores[number][pair.index(which)] += more
        if first:
            with self.lock:
                self.samples[which].append(packets[: 2 * MOST_WINDOWS].copy())

    def count(self, which: int, packets: Any) -> None:
        more = count_packets(packets, self.cells, which, self.pairs)
        with self.lock:
            add_counts(self.fresh[which], more)
            if len(self.cells.pooled):
                count_values(packets, self.cells, self.fresh_values[which])
            self.packets += len(packets)

    def merge(self) -> None:
        """Add the fresh counts, which were tested, to those on which the next events are chosen."""
        for seen, fresh in zip(self.seen, self.fresh, strict=True):
            add_counts(seen, fresh)
            fresh.cells[:] = 0
            fresh.joint[:] = 0
        self.seen_values += self.fresh_values
        self.fresh_values[:] = 0

    def learn(self) -> None:
        """Learn again while there are more samples: the two ends, and two inputs between them."""
        import numpy as np

        ready = min(sum(map(len, blocks)) for blocks in self.samples)
        if ready <= self.learned_from:
            return
        self.learned_from = ready if ready < 2 * MOST_WINDOWS else 1 << 62
        known = [np.concatenate(blocks[::-1])[: 2 * MOST_WINDOWS] for blocks in self.samples]
        between = [(2, 4)] if len(known) > 4 else []
        self.learned = []
        for pair in [(0, 1), *between]:
            for window in (1, 2):
                event = learn(known[pair[0]], known[pair[1]], window)
                if event is not None:
                    self.learned.append((pair, event))

    def packets_of(self, which: int, start: int, size: int, first: bool) -> Any:
        import numpy as np

        made = self.source.draw(self.source.inputs[which].record, size, (self.seed, which, start))
        self.progress(size * self.source.per_record)
        return np.ascontiguousarray(made, np.int32)

    def blocks(self, batch: Batch, which: int) -> Iterator[tuple[int, int, int, bool]]:
        """Yield input, first packet, number of packets, and whether it is the first block of the batch."""
        weight = self.source.inputs[which].weight
        rows = max(2, CHUNK // len(self.source.fields) // 2 * 2)
        first, last = batch.first * weight, batch.last * weight
        for start in range(first, last, rows):
            yield which, start, min(rows, last - start), start == first

    def counted(self) -> Counted:
        return Counted(
            self.source, self.cells, self.pairs, self.input_pairs, self.seen, self.fresh, self.seen_values,
            self.fresh_values, self.expected, self.learned, self.scores, self.packets,
        )  # fmt: skip

    def recovered(self) -> bool:
        """Return whether some field has one value for each of the two ends, and these differ."""
        import numpy as np

        low, high = (np.stack([np.stack([seen.ends[:, e], fresh.ends[:, e]]) for seen, fresh in
                               zip(self.seen[:2], self.fresh[:2], strict=True)]) for e in (0, 1))  # fmt: skip
        least, most = low.min(axis=1), high.max(axis=1)
        alone = (least == most).all(axis=0)
        return bool((alone & (least[0] != least[1])).any())
