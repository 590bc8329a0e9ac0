"""A sensor's steps as Numba runs them over many devices: those of `device.Sensor`, on the same kernels.

The kernels do the work here as there. What stands here is the thin layer around them, for a board that is a few arrays:
two slots of flash that power cuts tear, a source of entropy that follows from a seed or is stuck, a clock. Whatever
`device.Sensor` does, faults included, tests/test_fleet_truth.py asks of this too, packet for packet.
"""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sensorsim.device.flash import MODES, SLOTS
from sensorsim.device.status import Status
from sensorsim.fleet.fast import fast
from sensorsim.kernels import checksum, generator, health, journal
from sensorsim.kernels.generator import KEY_WORDS, SEED_BYTES
from sensorsim.kernels.health import NO_BYTE, RECENT_WORDS, START_UP, STATE_WORDS
from sensorsim.kernels.journal import ALONE, BLANK, COUNT, EPOCH, HOLDS, NEW, NEXT, SLOT_BYTES
from sensorsim.language.run import compiled

if TYPE_CHECKING:
    from sensorsim.device.firmware import Firmware

OK, NO_ENTROPY, NO_STORE = int(Status.OK), int(Status.NO_ENTROPY), int(Status.NO_STORE)
BAD_JOURNAL, BAD_CLOCK = int(Status.BAD_JOURNAL), int(Status.BAD_CLOCK)
CUT = -1  # the power went: no status of a sensor, which has none any more
BITS, ERASE_FIRST, WHOLE_STORE = (MODES.index(name) for name in ("bits", "erase first", "whole store"))
CUT_BITS = 0x55
STUCK_BYTE = 0x55
NEVER = -1
CIPHER_WORDS = 16

# What a device keeps from step to step: the sensor's memory, the board, and what the simulation wants to know.
OPEN, KNOWN_EPOCH, KNOWN_SPENT, AHEAD, NOW, CUT_AT, CUT_MODE, STUCK, STORES, OPENS = range(10)
SEEN_EPOCH, SEEN_SPENT, SPENT_BEFORE, WORST = range(10, 14)  # of the journal: its last period, all before, the most
NUMBER, CLOCKS, SKEW, SENT = range(14, 18)  # of the device, clocks that were set, days off, packets
NUMBERS = 18


class Device(NamedTuple):
    """One device: its memory, its flash, and what is public of its firmware. Made once for a batch."""

    numbers: Any
    flash: Any
    entropy: Any  # the state of the source
    key: Any
    word: Any
    state: Any
    block: Any
    seed: Any
    health: Any
    recent: Any
    entry: Any
    found: Any
    counts: Any
    identity: Any
    crc: Any
    blocks: int
    budget: int
    reserve: int


def device(firmware: "Firmware") -> Device:
    """Room for one, as it is before `blank`."""
    return Device(
        np.zeros(NUMBERS, np.int64),
        np.zeros(SLOTS * SLOT_BYTES, np.uint8),
        np.zeros(1, np.uint64),
        np.zeros(KEY_WORDS, np.uint32),
        np.zeros(generator.BLOCK_WORDS * firmware.blocks, np.uint32),
        np.zeros(CIPHER_WORDS, np.uint32),
        np.zeros(CIPHER_WORDS, np.uint32),
        np.zeros(SEED_BYTES, np.uint8),
        np.zeros(STATE_WORDS, np.uint32),
        np.zeros(RECENT_WORDS, np.uint32),
        np.zeros(SLOT_BYTES, np.uint8),
        np.zeros(4, np.uint32),
        np.zeros(2, np.uint32),
        np.array(list(firmware.journal_identity), np.uint8),
        np.array(checksum.CRC.contents, np.uint32),
        firmware.blocks,
        firmware.releases,
        firmware.reserve,
    )


class Steps(NamedTuple):
    """What a board can be asked to do, as Numba's functions of a device."""

    blank: Callable[..., Any]  # a new device with this seed of its entropy
    close: Callable[..., Any]
    open: Callable[..., Any]
    count: Callable[..., Any]  # take one release off the budget
    words: Callable[..., Any]  # draw the words of the release that was counted; gives its number
    look: Callable[..., Any]  # note what the journal says at the end
    forget: Callable[..., Any]  # overwrite an array


@cache
def steps() -> Steps:
    """Compiled on first use."""
    read, spend, write = compiled(journal.read_journal), compiled(journal.spend), compiled(journal.write_slot)
    watch, watch_patterns = compiled(health.watch), compiled(health.watch_patterns)
    absorb, fresh_words = compiled(generator.absorb), compiled(generator.fresh_words)

    @fast
    def fill(values: Any, value: int) -> None:
        for i in range(len(values)):
            values[i] = value

    @fast
    def forget(values: Any) -> None:
        fill(values, 0)

    @fast
    def blank(device: Any, seed: int) -> None:
        forget(device.numbers)
        device.numbers[CUT_AT] = NEVER
        fill(device.flash, BLANK)
        device.entropy[0] = seed

    @fast
    def close(device: Any) -> None:
        """The memory is lost: key and words first."""
        forget(device.key)
        forget(device.word)
        forget(device.state)
        forget(device.block)
        forget(device.seed)
        forget(device.health)
        forget(device.recent)
        numbers = device.numbers
        numbers[OPEN] = numbers[KNOWN_EPOCH] = numbers[KNOWN_SPENT] = numbers[AHEAD] = 0

    @fast
    def next_byte(device: Any) -> Any:
        """As `device.SeededEntropy` gives it, or for ever the same."""
        if device.numbers[STUCK]:
            return np.uint8(STUCK_BYTE)
        device.entropy[0] += np.uint64(0x9E3779B97F4A7C15)
        z = device.entropy[0]
        z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        return np.uint8(z >> np.uint64(32) & np.uint64(255))

    @fast
    def seeded(device: Any) -> Any:
        device.health[0] = NO_BYTE
        alarm = False
        for _ in range(START_UP // SEED_BYTES):
            same = True
            for i in range(SEED_BYTES):
                byte = next_byte(device)
                same = same and byte == device.seed[i]
                device.seed[i] = byte
            alarm = alarm or same  # a buffer that nobody fills anew
            alarm = watch(device.seed, device.health, SEED_BYTES) != 0 or alarm
            alarm = watch_patterns(device.seed, device.recent) != 0 or alarm
            absorb(device.key, device.seed, device.state, device.block)
        forget(device.seed)
        return NO_ENTROPY if alarm else OK

    @fast
    def note(device: Any, epoch: int, spent: int) -> None:
        """For the simulation: what the journal counts, over all periods."""
        numbers = device.numbers
        if epoch > numbers[SEEN_EPOCH]:
            numbers[SPENT_BEFORE] += numbers[SEEN_SPENT]
            numbers[SEEN_EPOCH], numbers[SEEN_SPENT] = epoch, 0
        if epoch == numbers[SEEN_EPOCH]:
            numbers[SEEN_SPENT] = max(numbers[SEEN_SPENT], spent)
            numbers[WORST] = max(numbers[WORST], spent)

    @fast
    def look(device: Any) -> Any:
        answer = read(device.flash, device.identity, device.crc, device.found, len(device.crc))
        if answer == HOLDS:
            note(device, np.int64(device.found[EPOCH]), np.int64(device.found[COUNT]))
        return answer

    @fast
    def torn(device: Any, at: int, after: int, mode: int) -> None:
        """A store whose power goes at the byte after `after`; see `device.Flash.cut`."""
        if mode == WHOLE_STORE:
            after = SLOT_BYTES
        for i in range(SLOT_BYTES):
            new, kept = device.entry[i], device.flash[at + i]
            if mode == ERASE_FIRST:
                kept = np.uint8(BLANK)
            if i == after and mode == BITS:
                kept = np.uint8(kept & ~np.uint8(CUT_BITS) | new & np.uint8(CUT_BITS))
            device.flash[at + i] = new if i < after else kept

    @fast
    def stored(device: Any, slot: int, epoch: int, spent: int) -> Any:
        """Whether an entry was stored; not where the power went."""
        numbers = device.numbers
        write(device.entry, device.identity, device.crc, device.reserve, epoch, spent, len(device.crc))
        numbers[STORES] += 1
        if numbers[CUT_AT] != NEVER:
            torn(device, slot * SLOT_BYTES, numbers[CUT_AT], numbers[CUT_MODE])
            numbers[CUT_AT] = NEVER
            return False
        for i in range(SLOT_BYTES):
            device.flash[slot * SLOT_BYTES + i] = device.entry[i]
        note(device, epoch, spent)
        return True

    @fast
    def begin(device: Any) -> Any:
        """What opening finds in the journal."""
        numbers, found = device.numbers, device.found
        now, state = numbers[NOW], look(device)
        if state == NEW:
            numbers[KNOWN_EPOCH], numbers[KNOWN_SPENT] = now, 0
            for slot in range(SLOTS):
                if not stored(device, slot, now, 0):
                    return CUT
            return OK
        if state != HOLDS:
            return BAD_JOURNAL
        numbers[KNOWN_EPOCH], numbers[KNOWN_SPENT] = np.int64(found[EPOCH]), np.int64(found[COUNT])
        if now < numbers[KNOWN_EPOCH]:
            return BAD_CLOCK
        if found[ALONE] and spend(found, device.counts, now, device.budget, device.reserve) == HOLDS:
            after = np.int64(device.counts[1])
            if not stored(device, np.int64(found[NEXT]), now, after):
                return CUT
            numbers[KNOWN_EPOCH], numbers[KNOWN_SPENT] = now, after
        return OK

    @fast
    def open_(device: Any) -> Any:
        device.numbers[OPENS] += 1
        close(device)
        status = seeded(device)
        if status == OK:
            status = begin(device)
        device.numbers[OPEN] = status == OK
        if status != OK:
            close(device)
        return status

    @fast
    def count(device: Any) -> Any:
        """One release of those that are counted ahead, or count some more in the journal."""
        numbers, found = device.numbers, device.found
        now = numbers[NOW]
        if now < numbers[KNOWN_EPOCH]:
            return BAD_CLOCK
        if now == numbers[KNOWN_EPOCH] and numbers[AHEAD] > 0:
            numbers[AHEAD] -= 1
            return OK
        if look(device) != HOLDS:
            close(device)
            return BAD_JOURNAL
        answer = spend(found, device.counts, now, device.budget, device.reserve)
        if answer != HOLDS:
            return np.int64(answer)
        before, after = np.int64(device.counts[0]), np.int64(device.counts[1])
        if not stored(device, np.int64(found[NEXT]), now, after):
            close(device)
            return CUT
        numbers[KNOWN_EPOCH], numbers[KNOWN_SPENT], numbers[AHEAD] = now, after, after - before - 1
        return OK

    @fast
    def words(device: Any) -> Any:
        numbers = device.numbers
        number = numbers[KNOWN_SPENT] - numbers[AHEAD]
        fresh_words(device.key, device.word, device.state, device.block, number, numbers[KNOWN_EPOCH], device.blocks)
        return number

    return Steps(blank, close, open_, count, words, look, forget)
