"""A sensor by obvious steps in plain Python: generator, health tests, journal, packet. Shares no code with the project.

Numbers of any size, strings of bits, structs: slow, and easy to compare with the description of each format.
"""

import hashlib
import struct
import zlib
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from math import ceil, exp

import naive_packets
import naive_release
import naive_rows

OK, SPENT, NO_ENTROPY, NO_STORE, BAD_JOURNAL, BAD_CLOCK, NOT_OPEN = range(7)
Picks = tuple[list[int] | None, list[int]]


@cache
def cutoffs(bits: float = 6, alpha_bits: int = 30, window: int = 512) -> tuple[int, int]:
    """The two cutoffs of SP 800-90B, 4.4.1 and 4.4.2: 1 + ceil(-log2(alpha)/H), 1 + CRITBINOM(W, 2^-H, 1 - alpha)."""
    from scipy.stats import binom

    critical = next(k for k in range(window + 1) if binom.sf(k, window, 2**-bits) <= 2**-alpha_bits)
    return 1 + ceil(alpha_bits / bits), 1 + critical


def first_alarm(seed: bytes, repeated: int, too_many: int, window: int = 512) -> int | None:
    """The number of the byte at which one of the tests, on bytes or on bits, first alarms; None where none does."""
    for end in range(1, len(seed) + 1):
        last = seed[max(0, end - repeated) : end]
        if len(last) == repeated and len(set(last)) == 1:
            return end - 1
        part = seed[(end - 1) // window * window : end]
        if part.count(part[0]) >= too_many:
            return end - 1
        ones = sum(byte.bit_count() for byte in seed[end - 128 : end])
        if end % 128 == 0 and max(ones, 1024 - ones) >= cutoffs(6 / 8, 30, 1024)[1]:
            return end - 1
    return None


def shows_a_pattern(seed: bytes) -> bool:
    """Tell whether 1,024 bytes count or repeat themselves: each test as a sentence says it."""
    even = sum((seed[i] + (seed[i - 16] if i >= 16 else 0)) % 256 == 2 * (seed[i - 8] if i >= 8 else 0) % 256
               for i in range(1024))  # fmt: skip
    repeats = any(
        seed[mark - 8 : mark] in (seed[end - 8 : end] for end in range(mark + 1, min(2 * mark, 1024) + 1))
        for mark in (32, 64, 128, 256, 512)
    )
    return even >= cutoffs(6, 30, 1024)[1] or repeats


class Generator:
    """ChaCha20; the first half of every block is the next key, the second half is given out."""

    def __init__(self) -> None:
        self.key = bytes(32)

    def absorb(self, seed: bytes) -> None:
        mixed = bytes(a ^ b for a, b in zip(self.key, seed, strict=True))
        self.key = naive_release.chacha20_block(mixed, 0, bytes(12))[:32]

    def words(self, blocks: int, number: int, epoch: int) -> list[int]:
        found = b""
        for place in range(blocks):
            block = naive_release.chacha20_block(self.key, place, struct.pack("<III", number, epoch, 0))
            self.key, found = block[:32], found + block[32:]
        return list(struct.unpack(f"<{8 * blocks}I", found))


def slot(identity: bytes, reserve: int, epoch: int, spent: int) -> bytes:
    """The 24 bytes of one entry."""
    entry = struct.pack("<2sBB8sII", b"SJ", 1, reserve, identity, epoch, spent)
    return entry + struct.pack("<I", zlib.crc32(entry))


def slot_kind(held: bytes, identity: bytes) -> str:
    if held == b"\xff" * 24:
        return "blank"
    if struct.unpack("<I", held[20:])[0] == zlib.crc32(held[:20]):
        own = held[:3] == b"SJ\x01" and held[4:12] == identity and held[3] > 0
        return "good" if own else "foreign"
    first = held[:16] + bytes(4)  # as it would be whole: nothing spent
    wanted = b"SJ\x01" + identity + struct.pack("<I", zlib.crc32(first))  # a first write leaves these ones
    kept = all(byte & ones == ones for byte, ones in zip(held[:3] + held[4:12] + held[20:], wanted, strict=True))
    return "begun" if kept else "other"


def read_journal(slots: Sequence[bytes], identity: bytes) -> tuple[str, tuple[int, int], int]:
    """Read two slots: "holds", "blank" or "doubt"; epoch and count; the slot to write next."""
    kinds = [slot_kind(held, identity) for held in slots]
    if "foreign" in kinds:
        return "doubt", (0, 0), 0
    entries = {i: struct.unpack("<II", slots[i][12:20]) for i in (0, 1) if kinds[i] == "good"}
    if not entries:
        new = sorted(kinds) in (["blank", "blank"], ["begun", "blank"])
        return ("blank" if new else "doubt"), (0, 0), 0
    newest = max(entries, key=lambda i: (entries[i], i))
    if len(entries) == 2:
        (epoch, spent), (epoch_before, before) = entries[newest], entries[1 - newest]
        steps = spent - before if epoch == epoch_before else spent
        begun = epoch == epoch_before and spent == before == 0
        if not begun and not 1 <= steps <= slots[newest][3]:
            return "doubt", (0, 0), 0
    return "holds", entries[newest], 1 - newest


class Table:
    """A table: how many features, how many of them released, how one value is drawn and sent."""

    def __init__(self, features: int, k: int, value_bits: int, draw: Callable[[int, int], int], lift: int = 0) -> None:
        self.features, self.k, self.value_bits, self.draw, self.lift = features, k, value_bits, draw, lift
        self.all = k == features
        self.words = k if self.all else 2 * k

    def release(self, x: Sequence[int], words: Sequence[int], order: list[int]) -> Picks:
        if self.all:
            return None, [self.draw(feature, word) for feature, word in zip(x, words, strict=False)]
        fresh = list(range(self.features)) if self.k == 1 else order  # one pick of n keeps no order
        return naive_rows.sampled(x, words, self.k, fresh, self.draw)

    def form(self, identity: bytes) -> naive_packets.Form:
        return naive_packets.Form(identity, self.features, self.k, self.value_bits, 2**self.value_bits, self.lift)

    def bytes(self, numbers: int) -> int:
        return self.form(b"").length(numbers)

    def packet(self, picks: Picks, identity: bytes, epoch: int | None, number: int | None) -> bytes:
        chosen, y = picks
        return naive_packets.packed(self.form(identity), chosen or [], y, epoch, number)


def rows_table(features: int, k: int, counts: Sequence[Sequence[int]], form: str) -> Table:
    """`form` is how the device draws: by thresholds, mirrored thresholds, look-up, or one bit."""
    bits = (sum(counts[0])).bit_length() - 1
    draws = {
        "mirrored": lambda x, word: naive_rows.symbol_mirrored(x, counts, word),
        "bit": lambda x, word: naive_rows.bit(x, counts, word),
        "thresholds": lambda x, word: naive_rows.symbol(x, counts, word, bits),
    }
    return Table(features, k, (len(counts[0]) - 1).bit_length(), draws[form])


def stairs_table(features: int, k: int, entries: Sequence[int], limit: int, stair_bits: int) -> Table:
    bits = (2 * limit).bit_length()
    return Table(
        features, k, bits, lambda x, word: naive_release.release(x, entries, word, limit, stair_bits), lift=limit
    )


def encoded(x: Sequence[int], weights: Sequence[Sequence[int]], bias: Sequence[int]) -> list[int]:
    """The hidden units: each term rounded down to 13 fraction bits, the logistic function in steps of 1/16."""
    hidden = []
    for row, start in zip(weights, bias, strict=True):
        terms = [weight * min(feature, 2**15) // 2**13 for weight, feature in zip(row, x, strict=True)]
        step = max(0, min(255, (start + sum(terms) + 8 * 2**13) * 16 // 2**13))
        hidden.append(round(2**15 / (1 + exp(8 - (step + 0.5) / 16))))
    return hidden


class Sensor:
    """Opened once for each power-up. `load`, `store`, `entropy` and `epoch` are the board's; OSError is its failure."""

    def __init__(
        self, table: Table, identity: bytes, budget: int, reserve: int, numbers: Sequence[str] = (), days: int = 1
    ) -> None:
        self.table, self.identity, self.budget, self.reserve = table, identity, budget, reserve
        self.journal = hashlib.sha256(b"sensorsim journal 1\n" + identity + f"days {days}\n".encode()).digest()[:8]
        self.numbers, self.open_now = numbers, False
        self.encode: Callable[[Sequence[int]], Sequence[int]] = list

    def board(
        self,
        load: Callable[[int], bytes],
        store: Callable[[int, bytes], None],
        entropy: Callable[[int], bytes],
        epoch: Callable[[], int],
    ) -> "Sensor":
        self.load, self.store, self.entropy, self.epoch = load, store, entropy, epoch
        return self

    def open(self) -> int:
        self.open_now = False
        try:
            seed = b"".join(self.entropy(32) for _ in range(32))
        except OSError:
            return NO_ENTROPY
        chunks = [bytes(32), *(seed[i : i + 32] for i in range(0, 1024, 32))]
        stale = any(one == other for one, other in pairwise(chunks))
        if stale or first_alarm(seed, *cutoffs()) is not None or shows_a_pattern(seed):
            return NO_ENTROPY
        self.generator = Generator()
        for start in range(0, 1024, 32):
            self.generator.absorb(seed[start : start + 32])
        try:
            slots = [self.load(0), self.load(1)]
        except OSError:
            return NO_STORE
        state, self.known, other = read_journal(slots, self.journal)
        now = self.epoch()
        if state == "doubt":
            return BAD_JOURNAL
        if state == "blank":
            self.known = (now, 0)
            if not (self.written(0, now, 0) and self.written(1, now, 0)):
                return NO_STORE
        if now < self.known[0]:
            return BAD_CLOCK
        alone = state == "holds" and slot_kind(slots[other], self.journal) != "good"
        spent = self.known[1] if now == self.known[0] else 0
        if alone and spent < self.budget:  # the bad slot may have been the newer one
            self.known = (now, min(spent + self.reserve, self.budget))
            if not self.written(other, *self.known):
                return NO_STORE
        self.ahead, self.order, self.open_now = 0, list(range(self.table.features)), True
        return OK

    def written(self, at: int, epoch: int, spent: int) -> bool:
        entry = slot(self.journal, self.reserve, epoch, spent)
        try:
            self.store(at, entry)
            return self.load(at) == entry
        except OSError:
            return False

    def count(self) -> int:
        if not self.open_now:
            return NOT_OPEN
        now = self.epoch()
        if now < self.known[0]:
            return BAD_CLOCK
        if now == self.known[0] and self.ahead > 0:
            self.ahead -= 1
            return OK
        try:
            slots = [self.load(0), self.load(1)]
        except OSError:
            return NO_STORE
        state, found, at = read_journal(slots, self.journal)
        if state != "holds" or found < self.known:
            self.open_now = False
            return BAD_JOURNAL
        if found > self.known:
            self.known, self.ahead = found, 0
        if now < found[0]:
            return BAD_CLOCK
        spent = found[1] if now == found[0] else 0
        if spent >= self.budget:
            return SPENT
        after = min(spent + self.reserve, self.budget)
        if not self.written(at, now, after):
            return NO_STORE
        self.known, self.ahead = (now, after), after - spent - 1
        return OK

    def release(self, x: Sequence[int]) -> tuple[int, bytes]:
        status = self.count()
        if status != OK:
            return status, bytes(self.table.bytes(len(self.numbers)))
        epoch, number = self.known[0], self.known[1] - self.ahead
        words = self.generator.words(ceil(self.table.words / 8), number, epoch)
        picks = self.table.release(self.encode(x), words, self.order)
        return OK, self.table.packet(picks, self.identity, *self.carried(epoch, number))

    def carried(self, epoch: int, number: int) -> tuple[int | None, int | None]:
        return epoch if "epoch" in self.numbers else None, number if "sequence" in self.numbers else None
