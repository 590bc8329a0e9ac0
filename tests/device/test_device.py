"""The firmware model against a sensor by obvious steps, packet for packet; and what it answers when the board fails."""

import time
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import Any

import naive_device as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sensorsim.tables import folder

from sensorsim._util.errors import InputError
from sensorsim.device import (
    BiasedEntropy,
    Clock,
    FailingEntropy,
    Firmware,
    Flash,
    FlashError,
    ListedEntropy,
    PowerCut,
    SeededEntropy,
    Sensor,
    Status,
    StuckEntropy,
    SystemEntropy,
)
from sensorsim.device.running import Runs, compiled, plain
from sensorsim.encoders import read_encoder
from sensorsim.noise.kinds.rows_table import RowsTable
from sensorsim.noise.noise_table import certified, ready_table

ENCODER = folder() / "encoders" / "default.json"
ONE = ready_table("1.6", 1)
X = [2000 * i for i in range(14)]
SEED = np.random.default_rng(9).bytes(1024)  # what the start-up takes, so that opening is fast


def several(table: Any, k: int) -> Any:
    """The same draw for k features of a record."""
    return certified(replace(table, release=k, epsilon=table.epsilon * k))


def mirrored() -> Any:
    whole = ready_table("6.4", 1)
    return certified(RowsTable(whole.epsilon, 14, 1, 15, 16, whole.counts[:9], mirrored=True))


def looked_up() -> Any:
    return certified(RowsTable(Decimal("1.7"), 14, 1, 15, 8, ((160, 64, 32), (32, 64, 160))))


def rows(table: Any, form: str = "thresholds") -> naive.Table:
    counts = [list(row) for row in table.counts]
    if table.mirrored:
        counts += [row[::-1] for row in counts[-2::-1]]
    return naive.rows_table(table.features, table.release, counts, form)


def stairs(table: Any) -> naive.Table:
    entries = [value for value, count in table.counts for _ in range(count)]
    return naive.stairs_table(table.features, table.release, entries, table.limit, table.stair_bits)


CASES: dict[str, tuple[Callable[[], Any], Callable[[Any], naive.Table]]] = {
    "rows, one": (lambda: ONE, rows),
    "rows, three": (lambda: several(ONE, 3), rows),
    "rows, all": (lambda: ready_table("6.4", "all"), rows),
    "rows, mirrored": (mirrored, lambda table: rows(table, "mirrored")),
    "rows, one bit": (lambda: ready_table("0.1", 1), lambda table: rows(table, "bit")),
    "rows, one bit of all": (lambda: ready_table("1.6", "all"), lambda table: rows(table, "bit")),
    "stairs, one": (lambda: ready_table("1.6", 1, "stairs"), stairs),
    "stairs, three": (lambda: several(ready_table("1.6", 1, "stairs"), 3), stairs),
    "rows, looked up": (looked_up, rows),
}
FAST = ("rows, one", "rows, one bit", "stairs, one")  # each takes a compilation; plain Python runs them all
KINDS = [
    pytest.param(*case, id=name, marks=[pytest.mark.slow] if name not in FAST else []) for name, case in CASES.items()
]


def firmware(budget: int = 5, reserve: int = 1, table: Any = ONE, **other: Any) -> Firmware:
    made = Firmware(table, budget_epsilon=Decimal("1.6") * budget, reserve=reserve, **other)
    assert made.releases == budget
    return made


def sensor(made: Firmware | None = None, flash: Flash | None = None, epoch: int = 100, entropy: Any = None) -> Sensor:
    return Sensor(made or firmware(), flash or Flash(), entropy or ListedEntropy(SEED * 30), Clock(epoch))


def opened(*given: Any, **other: Any) -> Sensor:
    made = sensor(*given, **other)
    assert made.open() == Status.OK
    return made


def refuses(made: Sensor, status: Status) -> None:
    """Nothing is released, the packet is all zeros."""
    before = made.flash.image
    assert made.release(X) == (status, bytes(made.firmware.layout.bytes))
    assert made.flash.image == before


def is_wiped(made: Sensor) -> bool:
    return (
        not made.is_open and not made._memory.key.array.any() and not made._memory.word.array.any() and made.left() == 0
    )


# ── packet for packet ──


def twin(made: Firmware, table: naive.Table, flash: Flash, seed: int, clock: Clock) -> naive.Sensor:
    same = naive.Sensor(table, made.identity, made.releases, made.reserve, made.numbers)
    return same.board(flash.load, flash.store, SeededEntropy(seed), clock)


def live_alike(
    made: Firmware, table: naive.Table, encode: Any = None, releases: int = 12, n: int = 14, runs: Runs = compiled
) -> int:
    """Two power-ups across two epochs; returns how many were released."""
    flash, other, clock, seed, source = Flash(), Flash(), Clock(2**16 + 7), 42, Random(1)
    device = Sensor(made, flash, SeededEntropy(seed), clock, runs=runs)
    same = twin(made, table, other, seed, clock)
    same.encode = encode or same.encode
    done = 0
    for _ in range(2):
        assert device.open() == same.open() == naive.OK
        for step in range(releases):
            x = [source.choice([0, 1, 2**14, 2**15, 2**16 - 1, source.randrange(2**15)]) for _ in range(n)]
            found = device.release(x)
            assert found == same.release(x)
            assert flash.image == other.image
            done += found[0] == Status.OK
            clock.epoch += step == releases // 2
    return done


@pytest.mark.parametrize("make, naively", KINDS)
def test_packets_are_those_of_the_reference(make: Callable[[], Any], naively: Callable[[Any], naive.Table]) -> None:
    table = make()
    made = Firmware(table, budget_epsilon=11 * table.epsilon, reserve=3)
    assert live_alike(made, naively(table)) > 11


@pytest.mark.parametrize("name", CASES)
def test_packets_by_plain_python_are_those_of_the_reference(name: str) -> None:
    make, naively = CASES[name]
    table = make()
    made = Firmware(table, budget_epsilon=6 * table.epsilon, reserve=2)
    assert live_alike(made, naively(table), releases=5, runs=plain) > 6


@pytest.mark.parametrize("runs", [compiled, plain])
def test_packets_of_hidden_units_are_those_of_the_reference(runs: Runs) -> None:
    encoder = read_encoder(ENCODER)
    table = certified(replace(ONE, features=7))
    made = Firmware(table, encoder, budget_epsilon=160)
    assert (made.n, made.features) == (14, 7)
    assert live_alike(made, rows(table), lambda x: naive.encoded(x, encoder.weights, encoder.bias), runs=runs) == 24


@pytest.mark.parametrize("numbers", [("epoch",), ("sequence",), ("epoch", "sequence")])
def test_numbers_in_a_packet_are_those_of_the_reference(numbers: tuple[str, ...]) -> None:
    assert live_alike(firmware(20, 4, numbers=numbers), rows(ONE), releases=5) == 10


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_lives_are_those_of_the_reference(data: st.DataObject) -> None:
    """Anything a board can do, in any order: releases, resets, cuts, a clock either way, faults and their repair."""
    budget = data.draw(st.integers(1, 9))
    made = firmware(budget, min(budget, data.draw(st.integers(1, 4))))
    boards = [(flash := Flash(), clock := Clock(5)), (other := Flash(), clock)]
    seed = data.draw(st.integers(0, 2**64 - 1))
    device, same = Sensor(made, flash, SeededEntropy(seed), clock), twin(made, rows(ONE), other, seed, clock)
    image = flash.image
    for _ in range(data.draw(st.integers(5, 40))):
        what = data.draw(st.sampled_from(["release"] * 6 + ["open", "clock", "cut", "wear", "load", "restore", "keep"]))
        if what == "clock":
            clock.epoch = max(0, clock.epoch + data.draw(st.sampled_from([1, 1, 1, 2, -1])))
        elif what == "keep":
            image = flash.image
        elif what == "restore":
            flash.restore(image)
            other.restore(image)
        elif what == "cut":
            after, mode = data.draw(st.integers(0, 60)), data.draw(st.sampled_from(["bytes", "bits", "erase first"]))
            for board, _ in boards:
                board.cut(after, mode)
        elif what in ("wear", "load"):
            for board, _ in boards:
                board.wear, board.fail_load = (
                    (not board.wear, False) if what == "wear" else (False, not board.fail_load)
                )
        else:
            found = []
            for one in (device, same):
                try:
                    found.append(one.open() if what == "open" else one.release(X))
                except PowerCut:
                    found.append("cut")
            same.open_now = same.open_now and found[1] != "cut"
            assert found[0] == found[1]
        assert flash.image == other.image


# ── what a sensor is by itself ──


def test_a_sensor_left_alone_is_private() -> None:
    made = Sensor(ONE)
    assert isinstance(made._memory.port.source, SystemEntropy) and made.flash.image == b"\xff" * 48
    assert made.firmware.releases == 1 and made.open() == Status.OK and made.left() == 1
    status, packet = made.release(X)
    assert status == Status.OK and len(packet) == 4 and any(packet)
    assert made.release(X) == (Status.SPENT, bytes(4)) and made.left() == 0
    days = int.from_bytes(made.flash.load(0)[12:16], "little")
    assert abs(days - time.time() / 86400) < 2


def test_a_record_is_checked_before_anything_is_counted() -> None:
    made = opened()
    for bad in ([0] * 13, [0] * 15, [[0] * 14], [1.5] * 14, [-1] + [0] * 13, [2**16] + [0] * 13, "x"):
        with pytest.raises(InputError):
            made.release(bad)
    assert made.is_open and made.left() == 5
    for good in (np.array(X, np.uint16), np.array(X, np.int64), tuple(X)):
        assert made.release(good)[0] == Status.OK


def test_a_clock_beyond_its_range_is_refused_and_closes() -> None:
    for epoch in (-1, 2**32):
        made = opened()
        made._memory.port.clock.epoch = epoch
        with pytest.raises(InputError, match="epoch"):
            made.release(X)
        assert is_wiped(made)


def test_what_is_left_counts_down() -> None:
    made = opened(firmware(5, 2))
    for left in range(5, 0, -1):
        assert made.left() == left
        assert made.release(X)[0] == Status.OK
    assert made.left() == 0
    made._memory.port.clock.epoch += 1
    assert made.left() == 5


def test_reserves_spare_the_flash() -> None:
    for reserve in (1, 4, 16):
        made = opened(firmware(32, reserve))
        for _ in range(32):
            assert made.release(X)[0] == Status.OK
        assert made.flash.stores == 2 + 32 // reserve


def test_the_words_are_wiped_and_the_key_moves_on() -> None:
    encoder = read_encoder(ENCODER)
    for made in (opened(), opened(Firmware(certified(replace(ONE, features=7)), encoder))):
        before = made._memory.key.array.copy()
        made.release(X)
        assert made.is_open and not made._memory.word.array.any()
        assert made.firmware.encoder is None or not made._memory.hidden.array.any()
        assert not set(before) & set(made._memory.key.array)


# ── entropy ──


def test_seeded_entropy_is_splitmix64_before_its_last_step() -> None:
    """The first five numbers of seed 1234567 as published with the algorithm; the last step is z ^ z >> 31."""
    published = (6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431)
    published += (16408922859458223821,)
    assert list(SeededEntropy(1234567)(5)) == [(number >> 32 ^ number >> 63) & 255 for number in published]
    assert "not private" in repr(SeededEntropy(1)) and "Not private" in (SeededEntropy.__doc__ or "")
    for bad in (-1, 2**64, 1.5, "1", True):
        with pytest.raises(InputError, match="seed"):
            SeededEntropy(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "entropy",
    [
        *(StuckEntropy(byte) for byte in (0, 0x55, 0xFF)),
        *(BiasedEntropy(p) for p in (0, 0.05, 0.1, 0.9, 0.95, 1)),
        *(FailingEntropy(calls) for calls in (0, 1, 31)),
        ListedEntropy(SEED[:-1]),
        lambda count: bytes(count - 1),
        lambda count: bytes(Random(1).choices(range(9), k=count)),
    ],
    ids=lambda entropy: type(entropy).__name__,
)
def test_bad_entropy_keeps_the_sensor_closed(entropy: Any) -> None:
    made = sensor(entropy=entropy)
    assert made.open() == Status.NO_ENTROPY
    assert is_wiped(made) and made.flash.stores == 0
    refuses(made, Status.NOT_OPEN)


@pytest.mark.parametrize("entropy", [BiasedEntropy(0.5), BiasedEntropy(0.55), FailingEntropy(32)])
def test_good_entropy_opens(entropy: Any) -> None:
    """A bit that is one in 55 of 100 leaves 8·log2(1/0.55) = 6.9 bits a byte, more than the 6 that are claimed."""
    assert sensor(entropy=entropy).open() == Status.OK


def test_an_alarm_at_the_last_byte_keeps_the_sensor_closed() -> None:
    """As an alarm at any byte does: the whole start-up is looked at before a byte is used."""
    repeated, _ = naive.cutoffs()
    quiet = Random(1).randbytes(1024)
    assert sensor(entropy=ListedEntropy(quiet)).open() == Status.OK
    for end in (repeated, 32, 33, 512, 1000, 1024):
        stuck = bytearray(quiet)
        stuck[end - repeated : end] = [quiet[end - repeated]] * repeated
        almost = bytearray(quiet)
        almost[end - repeated + 1 : end] = [quiet[end - repeated + 1]] * (repeated - 1)
        assert naive.first_alarm(bytes(stuck), *naive.cutoffs()) == end - 1
        assert sensor(entropy=ListedEntropy(bytes(stuck))).open() == Status.NO_ENTROPY
        assert sensor(entropy=ListedEntropy(bytes(almost))).open() == Status.OK


def test_entropy_that_fails_at_a_later_open_closes_an_open_sensor() -> None:
    made = opened(entropy=FailingEntropy(32))
    assert made.release(X)[0] == Status.OK
    assert made.open() == Status.NO_ENTROPY and is_wiped(made)
    refuses(made, Status.NOT_OPEN)


# ── flash ──


def test_a_store_that_was_made_and_could_not_be_read_back_counts() -> None:
    class Blind(Flash):
        def load(self, slot: int) -> bytes:
            if self.blind:
                raise FlashError("blind")
            return super().load(slot)

        def store(self, slot: int, entry: bytes) -> None:
            super().store(slot, entry)
            self.blind = self.blinding

        blind = blinding = False

    flash = Blind()
    made = opened(flash=flash)
    flash.blinding = True
    assert made.release(X) == (Status.NO_STORE, bytes(4))
    flash.blind = flash.blinding = False
    done = 0
    while made.release(X)[0] == Status.OK:
        done += 1
    assert done == 4  # of 5, and the lost one was never drawn


@pytest.mark.parametrize("slot", [0, 1])
def test_bits_that_stick_are_found_when_the_slot_is_read_back(slot: int) -> None:
    """Every bit of both slots, on the first write and on later ones: what reads back otherwise is not relied on."""
    for place in range(24):
        for bit in range(8):
            made = sensor(firmware(12))
            made.flash.stuck_bits = {(slot, place): 1 << bit}
            status = made.open()
            done = 0
            while status == Status.OK and done < 12:
                status = made.release(X)[0]
                done += status == Status.OK
            assert status in (Status.OK, Status.NO_STORE)
            written = naive.slot(made.firmware.journal_identity, 1, 100, 0)
            if not written[place] >> bit & 1:  # stuck at one where the first entry has a zero
                assert status == Status.NO_STORE and done == 0 and is_wiped(made)
            held = naive.slot_kind(made.flash.load(slot), made.firmware.journal_identity)
            assert held == "good" or status == Status.NO_STORE


def test_the_image_of_a_flash_is_checked() -> None:
    with pytest.raises(InputError, match="48 bytes"):
        Flash(b"short")
    with pytest.raises(InputError, match="24 bytes"):
        Flash().store(0, b"short")
    for bad in ((-1, "bytes", 0), (0, "hammer", 0), (0, "bits", 256)):
        with pytest.raises(InputError, match="cut"):
            Flash().cut(*bad)


# ── journals that are in doubt ──

OWN = firmware().journal_identity
FOREIGN = naive.slot(b"another!", 1, 100, 0)
BLANK = b"\xff" * 24
GARBAGE = Random(4).randbytes(24)
FIRST, NEXT = naive.slot(OWN, 1, 100, 2), naive.slot(OWN, 1, 100, 3)


def test_everything_that_changes_a_packet_changes_the_identity() -> None:
    encoder = read_encoder(ENCODER)
    seven = certified(replace(ONE, features=7))
    moved = replace(encoder, bias=(encoder.bias[0] + 1, *encoder.bias[1:]))
    made = [
        *(Firmware(make()) for make, _ in CASES.values()),
        Firmware(seven),
        Firmware(seven, encoder),
        Firmware(seven, moved),
    ]
    assert len({one.identity for one in made}) == len({one.identity[:2] for one in made}) == len(made)
    assert firmware(5, 1).identity == firmware(9, 3).identity  # what is counted stays the same


@pytest.mark.parametrize(
    "slots, left",
    [
        ((BLANK, BLANK), 5),
        ((FIRST[:13] + BLANK[13:], BLANK), 5),
        ((FIRST, NEXT), 2),
        ((FIRST, GARBAGE), 2),  # what the bad slot may have counted is counted
        ((FIRST, NEXT[:17] + GARBAGE[17:]), 2),
        ((FIRST, BLANK), 2),
        ((naive.slot(OWN, 1, 99, 5), FIRST[:19] + BLANK[19:]), 4),
        ((naive.slot(OWN, 1, 100, 5), GARBAGE), 0),
        ((naive.slot(OWN, 9, 100, 9), naive.slot(OWN, 9, 100, 7)), 0),  # counted under a larger budget
    ],
)
def test_what_holds_opens_with_what_is_left(slots: tuple[bytes, bytes], left: int) -> None:
    for pair in (slots, slots[::-1]):
        made = opened(flash=Flash(b"".join(pair)))
        assert made.left() == left
        for _ in range(left):
            assert made.release(X)[0] == Status.OK
        refuses(made, Status.SPENT)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_bytes_crash_a_sensor_and_no_garbage_opens_it(data: st.DataObject) -> None:
    pieces = st.one_of(st.binary(min_size=24, max_size=24), st.sampled_from([FIRST, NEXT, BLANK, FOREIGN]))
    slots = [bytearray(data.draw(pieces)) for _ in range(2)]
    for held in slots:
        for _ in range(data.draw(st.integers(0, 2))):
            held[data.draw(st.integers(0, 23))] = data.draw(st.integers(0, 255))
    state, found, _ = naive.read_journal([bytes(held) for held in slots], OWN)
    made = sensor(flash=Flash(bytes(slots[0] + slots[1])))
    wanted = {"doubt": Status.BAD_JOURNAL, "blank": Status.OK}.get(state)
    wanted = wanted if wanted is not None else (Status.OK if found[0] <= 100 else Status.BAD_CLOCK)
    assert made.open() == wanted
    if wanted != Status.OK:
        assert is_wiped(made)
        refuses(made, Status.NOT_OPEN)


def test_every_flipped_bit_of_a_journal_is_caught_while_running() -> None:
    """In the newer slot, the journal then says less than the sensor knows; in the older one nothing is lost."""
    newer = opened()
    for _ in range(2):
        newer.release(X)
    image = newer.flash.image
    for bit in range(48 * 8):
        made = opened(flash=Flash(image))
        damaged = bytearray(image)
        damaged[bit // 8] ^= 1 << bit % 8
        made.flash.restore(bytes(damaged))
        if bit >= 24 * 8:  # the second release went to slot 1
            refuses(made, Status.BAD_JOURNAL)
            assert is_wiped(made)
        else:
            assert made.release(X)[0] == Status.OK


# ── clock and epochs ──


@pytest.mark.parametrize("first", [0, 100, 2**16 - 1, 2**31 - 1, 2**32 - 2])
def test_a_new_epoch_brings_a_new_budget(first: int) -> None:
    made = opened(firmware(5, 2), epoch=first)
    for epoch in (first, first + 1):
        made._memory.port.clock.epoch = epoch
        for left in range(5, 0, -1):
            assert made.left() == left and made.release(X)[0] == Status.OK
        refuses(made, Status.SPENT)
        assert made.open() == Status.OK and made.left() == 0
        refuses(made, Status.SPENT)


# ── several sensors, and flash that is put back ──


@pytest.mark.parametrize("reserves", [(1, 1), (1, 2), (3, 2), (5, 5)])
def test_two_sensors_on_one_flash_stay_within_the_budget_together(reserves: tuple[int, int]) -> None:
    """Each counts before it draws, and reads what the other counted."""
    source = Random(2)
    for _ in range(20):
        flash, clock = Flash(), Clock(7)
        pair = [Sensor(firmware(10, r), flash, ListedEntropy(SEED * 30), clock) for r in reserves]
        assert [one.open() for one in pair] == [Status.OK] * 2
        for _ in range(3):
            done = 0
            for _ in range(60):
                one = source.choice(pair)
                if source.random() < 0.05:
                    one.open()
                status, _ = one.release(X)
                assert status in (Status.OK, Status.SPENT)
                done += status == Status.OK
            assert done <= 10
            clock.epoch += 1


@pytest.mark.parametrize("reserve", [1, 2])
def test_flash_that_is_put_back_while_running_is_found(reserve: int) -> None:
    made = opened(firmware(9, reserve))
    images = []
    for _ in range(3):
        images.append(made.flash.image)
        for _ in range(reserve):
            assert made.release(X)[0] == Status.OK
    for image in images:
        again = opened(firmware(9, reserve), Flash(made.flash.image))
        again.flash.restore(image)
        refuses(again, Status.BAD_JOURNAL)
        assert is_wiped(again)
        refuses(again, Status.NOT_OPEN)


def test_a_board_of_ones_own_is_taken_even_if_it_counts_as_empty() -> None:
    """A journal that were left out for another one would forget what was spent."""

    class Own(Flash):
        def __len__(self) -> int:
            return 0

    flash = Own()
    for expected in (Status.OK, Status.SPENT):
        sensor = Sensor(ONE, flash, SeededEntropy(1), Clock(5), runs=plain)
        assert sensor.flash is flash and sensor.open() == Status.OK
        assert sensor.release(X)[0] == expected
    for name in ("epoch", "entropy", "flash", "runs"):
        with pytest.raises(InputError, match=f"{name} is of type int; give a"):
            Sensor(ONE, **{name: 5})  # type: ignore[arg-type]
    with pytest.raises(
        InputError, match=r"^Sensor: got an unexpected keyword argument 'budget'; it takes firmware, fl"
    ):
        Sensor(ONE, budget=5)  # type: ignore[call-arg]
    with pytest.raises(InputError, match=r"^Sensor: missing a required argument: 'firmware'; it takes firmware, flash"):
        Sensor()  # type: ignore[call-arg]
