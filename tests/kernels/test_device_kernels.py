"""The kernels of the sensor against known answers and the obvious reference: checksum, health, generator, journal,
packet. Each in plain Python and as Numba compiles it."""

import struct
import zlib
from random import Random
from typing import Any

import naive_device as naive
import naive_release
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sensorsim.kernels import checksum, generator, health, journal, packet

from sensorsim.language.kernel import Kernel
from sensorsim.language.numba_backend import compiled

WORD = st.integers(0, 2**32 - 1)
CRC = np.array(checksum.CRC.contents, np.uint32)
IDENTITY = bytes.fromhex("0123456789abcdef")
COUNTING_KEY = bytes(range(32))
START = [health.NO_BYTE, 0, 0, 0, 0, 0]


def array(data: bytes) -> np.ndarray:
    return np.array(list(data), np.uint8)


def call(kernel: Kernel, **given: Any) -> Any:
    """The kernel as Numba compiles it."""
    return compiled(kernel)(*(given[name] for name in kernel.parameters))


# ── checksum ──


def test_the_checksum_has_its_published_check_value() -> None:
    assert checksum.crc32(list(b"123456789"), list(checksum.CRC.contents), 9, 16) == 0xCBF43926
    assert compiled(checksum.crc32)(array(b"123456789"), CRC, 9, 16) == 0xCBF43926


@settings(max_examples=50, deadline=None)
@given(st.binary(min_size=1, max_size=300))
def test_the_checksum_is_that_of_zlib(data: bytes) -> None:
    assert checksum.crc32(list(data), list(checksum.CRC.contents), len(data), 16) == zlib.crc32(data)
    assert compiled(checksum.crc32)(array(data), CRC, len(data), 16) == zlib.crc32(data)


# ── health tests ──


def watched(seed: bytes) -> list[int]:
    """The alarm after each byte, one byte a call."""
    state = np.array(START, np.uint32)
    return [int(compiled(health.watch)(array(seed[i : i + 1]), state, 1)) for i in range(len(seed))]


def alarm_at(seed: bytes) -> int | None:
    alarms = watched(seed)
    return alarms.index(1) if 1 in alarms else None


def unlike(count: int, taken: int = 0) -> bytes:
    """Bytes of which none repeats the one before it, none is `taken` and each comes a few times in a window."""
    return bytes(1 + (taken + i) % 255 for i in range(count)).replace(bytes([taken]), b"")


def test_the_cutoffs_are_those_of_sp_800_90b() -> None:
    """1 + ceil(30/6), and 1 + the critical value of 512 trials at 2^-6, by SciPy's binomial distribution."""
    from scipy.stats import binom

    repeated, too_many = naive.cutoffs(health.CLAIMED_BITS, health.ALARM_BITS, health.WINDOW)
    assert repeated == health.REPEATED and too_many == health.TOO_MANY
    assert binom.sf(too_many - 1, 512, 2**-6) <= 2**-30 < binom.sf(too_many - 2, 512, 2**-6)
    assert naive.cutoffs(health.CLAIMED_BITS / 8, health.ALARM_BITS, health.BIT_WINDOW)[1] == health.TOO_MANY_BITS
    assert health.START_UP >= 1024  # section 4.3: at least 1,024 samples at start-up


def test_the_reference_gives_the_cutoffs_of_the_standard_s_table() -> None:
    """SP 800-90B, table 2, alpha = 2^-20."""
    assert [naive.cutoffs(bits, 20, 512)[1] for bits in (0.5, 1, 2, 4, 8)] == [410, 311, 177, 62, 13]
    assert [naive.cutoffs(bits, 20, 1024)[1] for bits in (0.2, 0.4, 0.6, 0.8, 1)] == [941, 840, 748, 664, 589]


def test_repetition_alarms_at_its_cutoff_and_not_before() -> None:
    repeated, _ = naive.cutoffs()
    for start in (0, 1, 100, 509, 511):  # across the end of a window too
        quiet = unlike(start + 10)[:start]
        assert alarm_at(quiet + bytes(repeated - 1) + unlike(40)) is None
        assert alarm_at(quiet + bytes(repeated) + unlike(40)) == start + repeated - 1


def test_proportion_alarms_at_its_cutoff_and_not_before() -> None:
    _, too_many = naive.cutoffs()
    for window in (0, 1):
        filler = unlike(512 * window + 20)[: 512 * window]
        others = [bytes([0]) + unlike(256, 0)[7 * i % 200 :][:9] for i in range(60)]
        seen = b"".join(others)  # a zero in every ten bytes, the first of its window
        assert alarm_at(filler + b"".join(others[: too_many - 1]) + unlike(180)) is None
        assert alarm_at(filler + seen) == 512 * window + 10 * (too_many - 1)


def test_a_window_starts_anew() -> None:
    """As often as is allowed in one window and as often in the next is no alarm."""
    _, too_many = naive.cutoffs()
    quiet = b"".join(bytes([0]) + unlike(256, 0)[7 * i % 200 :][:9] for i in range(too_many - 1))
    window = (quiet + unlike(600))[:512]
    assert alarm_at(window * 4) is None


def test_bits_alarm_at_their_cutoff_and_not_before() -> None:
    """A window of 128 bytes with so many ones, or so many zeros, and no byte too often."""
    most = naive.cutoffs(6 / 8, 30, 1024)[1]
    for turned in (0, 255):
        for ones, expected in ((most - 1, None), (most, 127)):
            weights = [ones // 128] * 128
            for i in range(ones % 128):
                weights[i] += 1
            by_weight = {w: [b for b in range(256) if b.bit_count() == w] for w in set(weights)}
            stream = bytes(by_weight[w][i % len(by_weight[w])] ^ turned for i, w in enumerate(weights))
            assert sum((byte ^ turned).bit_count() for byte in stream) == ones
            assert alarm_at(stream + unlike(100)) == expected


@pytest.mark.parametrize("values", [1, 2, 3, 12, 40, 256])
def test_health_is_that_of_the_reference(values: int) -> None:
    """Also where few values are likely, so that one of the two tests alarms sooner or later."""
    for seed in range(6):
        stream = bytes(Random(seed).choices(range(values), k=1300))
        cuts = naive.cutoffs()
        assert alarm_at(stream) == naive.first_alarm(stream, *cuts)


def test_calls_of_any_length_watch_alike_and_keep_to_their_arrays() -> None:
    stream = bytes(Random(5).choices(range(12), k=1100))
    first = naive.first_alarm(stream, *naive.cutoffs())
    assert first is not None
    for size in (1, 7, 32, 512, 1024):
        state, guard = list(START), np.array([*START, 99], np.uint32)
        for begin in range(0, len(stream), size):
            part = stream[begin : begin + size]
            plain = health.watch(list(part), state, len(part))
            assert compiled(health.watch)(array(part), guard[:6], len(part)) == plain
            if begin <= first < begin + size:
                assert plain == 1
                break
            assert plain == 0
        assert guard[6] == 99


def test_uniform_bytes_give_no_alarm() -> None:
    """2^22 bytes; an alarm has probability below 2^-7 even at 6 bits a byte, and next to none at 8."""
    source = np.random.default_rng(1)
    state = np.array(START, np.uint32)
    alarm = 0
    for _ in range(2**12):
        alarm |= compiled(health.watch)(source.integers(0, 256, 1024, np.uint8), state, 1024)
    assert alarm == 0


# ── generator ──


def key_words(key: bytes) -> list[int]:
    return list(struct.unpack("<8I", key))


def test_a_block_of_the_generator_is_one_of_the_cipher() -> None:
    """RFC 8439, appendix A.1, vector 1: key, counter and nonce zero. The first half is the next key, the rest words."""
    next_key = "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
    words = "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
    key, word = np.zeros(8, np.uint32), np.zeros(8, np.uint32)
    compiled(generator.fresh_words)(key, word, np.zeros(16, np.uint32), np.zeros(16, np.uint32), 0, 0, 1)
    assert (key.tobytes().hex(), word.tobytes().hex()) == (next_key, words)


@settings(max_examples=20, deadline=None)
@given(st.binary(min_size=32, max_size=32), st.binary(min_size=32, max_size=32), WORD, WORD, st.integers(1, 4))
def test_the_generator_is_that_of_the_reference(key: bytes, seed: bytes, number: int, epoch: int, blocks: int) -> None:
    ref = naive.Generator()
    ref.key = key
    ref.absorb(seed)
    wanted = ref.words(blocks, number, epoch)

    plain, plain_word, state, block = key_words(key), [0] * (8 * blocks), [7] * 16, [7] * 16
    generator.absorb(plain, list(seed), state, block)
    generator.fresh_words(plain, plain_word, state, block, number, epoch, blocks)
    assert (plain, plain_word) == (key_words(ref.key), wanted)

    fast, fast_word = np.array(key_words(key), np.uint32), np.full(8 * blocks + 2, 5, np.uint32)
    room = np.full(32, 7, np.uint32)
    compiled(generator.absorb)(fast, array(seed), room[:16], room[16:])
    compiled(generator.fresh_words)(fast, fast_word[:-2], room[:16], room[16:], number, epoch, blocks)
    assert (list(fast), list(fast_word)) == (plain, [*wanted, 5, 5])


@pytest.mark.parametrize("blocks", [1, 2])
def test_no_key_and_no_word_stays_behind(blocks: int) -> None:
    """After a call the working arrays hold no key, old or new, and no word that was given out."""
    keys = [COUNTING_KEY]
    for place in range(blocks):
        keys.append(naive_release.chacha20_block(keys[-1], place, struct.pack("<III", 3, 4, 0))[:32])
    key, room = np.array(key_words(COUNTING_KEY), np.uint32), np.full(32, 7, np.uint32)
    word = np.zeros(8 * blocks, np.uint32)
    compiled(generator.fresh_words)(key, word, room[:16], room[16:], 3, 4, blocks)
    secrets = {*word.tolist(), *(number for one in keys for number in key_words(one))}
    assert key_words(keys[-1]) == key.tolist()
    assert not secrets & set(room[4:12].tolist()) and not room[16:].any()
    compiled(generator.absorb)(key, array(COUNTING_KEY), room[:16], room[16:])
    mixed = {a ^ b for a, b in zip(key_words(keys[-1]), key_words(COUNTING_KEY), strict=True)}
    assert not (mixed | set(key.tolist())) & set(room[4:12].tolist()) and not room[16:].any()


def test_another_number_epoch_or_key_gives_other_words() -> None:
    """A key that came twice does not give the words of another release."""
    found = set()
    cases = [(key, number, epoch) for key in (1, 2) for number in (0, 1, 2**32 - 1) for epoch in (0, 1, 2**32 - 1)]
    for first, number, epoch in cases:
        key, word = np.full(8, first, np.uint32), np.zeros(16, np.uint32)
        compiled(generator.fresh_words)(key, word, np.zeros(16, np.uint32), np.zeros(16, np.uint32), number, epoch, 2)
        found |= set(map(int, word))
    assert len(found) == 16 * len(cases)


# ── journal ──


def written(reserve: int, epoch: int, spent: int, identity: bytes = IDENTITY) -> bytes:
    entry = np.zeros(24, np.uint8)
    compiled(journal.write_slot)(entry, array(identity), CRC, reserve, epoch, spent, 16)
    return entry.tobytes()


def read(first: bytes, second: bytes) -> tuple[str, tuple[int, int], int]:
    found = np.full(4, 9, np.uint32)
    state = compiled(journal.read_journal)(array(first + second), array(IDENTITY), CRC, found, 16)
    name = {journal.HOLDS: "holds", journal.NEW: "blank", journal.DOUBTFUL: "doubt"}[state]
    return (name, (int(found[0]), int(found[1])), int(found[2])) if name == "holds" else (name, (0, 0), 0)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 255), WORD, WORD, st.binary(min_size=8, max_size=8))
def test_an_entry_is_that_of_the_reference(reserve: int, epoch: int, spent: int, identity: bytes) -> None:
    plain = [1] * 24
    journal.write_slot(plain, list(identity), list(checksum.CRC.contents), reserve, epoch, spent, 16)
    assert bytes(plain) == written(reserve, epoch, spent, identity) == naive.slot(identity, reserve, epoch, spent)


GOOD = naive.slot(IDENTITY, 3, 7, 5)
BEFORE = naive.slot(IDENTITY, 3, 7, 3)
NUMBERS = [
    *((7, spent) for spent in (0, 1, 2, 3, 4, 5, 6, 8, 9)),
    *((6, spent) for spent in (0, 5, 100)),
    *((8, spent) for spent in (0, 1, 3, 4)),
    (0, 0),
    (2**32 - 1, 3),
    (2**32 - 1, 2**32 - 1),
]
SLOTS = {
    "blank": b"\xff" * 24,
    "zeros": bytes(24),
    "garbage": bytes(Random(3).randbytes(24)),
    "foreign": naive.slot(b"another!", 3, 7, 5),
    "another version": (lambda head: head + struct.pack("<I", zlib.crc32(head)))(b"SJ\x02" + GOOD[3:20]),
    "another magic": (lambda head: head + struct.pack("<I", zlib.crc32(head)))(b"SK\x01" + GOOD[3:20]),
    "no reserve": (lambda head: head + struct.pack("<I", zlib.crc32(head)))(b"SJ\x01\x00" + GOOD[4:20]),
    "begun": GOOD[:13] + b"\xff" * 11,
    "torn over another": GOOD[:17] + BEFORE[17:20] + b"\x12\x34\x56\x78",
    **{f"epoch {epoch} spent {spent}": naive.slot(IDENTITY, 3, epoch, spent) for epoch, spent in NUMBERS},
    "reserve 1": naive.slot(IDENTITY, 1, 7, 5),
    "reserve 255": naive.slot(IDENTITY, 255, 7, 255),
}


def test_every_pair_of_slots_reads_as_in_the_reference() -> None:
    for first in SLOTS.values():
        for second in SLOTS.values():
            assert read(first, second) == naive.read_journal([first, second], IDENTITY)


@pytest.mark.parametrize(
    "first, second, wanted",
    [
        ("blank", "blank", "blank"),
        ("begun", "blank", "blank"),
        ("blank", "begun", "blank"),
        ("begun", "begun", "doubt"),
        ("blank", "garbage", "doubt"),
        ("blank", "zeros", "doubt"),
        ("garbage", "garbage", "doubt"),
        ("epoch 7 spent 5", "garbage", "holds"),
        ("epoch 7 spent 5", "begun", "holds"),
        ("epoch 7 spent 5", "blank", "holds"),
        ("epoch 7 spent 5", "foreign", "doubt"),
        ("foreign", "blank", "doubt"),
        ("foreign", "begun", "doubt"),
        ("foreign", "foreign", "doubt"),
        ("epoch 7 spent 5", "another version", "doubt"),
        ("epoch 7 spent 5", "another magic", "doubt"),
        ("epoch 7 spent 5", "no reserve", "doubt"),
        ("epoch 7 spent 5", "epoch 7 spent 6", "holds"),
        ("epoch 7 spent 5", "epoch 7 spent 8", "holds"),
        ("epoch 7 spent 5", "epoch 7 spent 9", "doubt"),  # more than a reserve of 3 ahead
        ("epoch 7 spent 5", "epoch 7 spent 5", "doubt"),  # nothing is stored twice
        ("epoch 7 spent 0", "epoch 7 spent 0", "holds"),  # but the first entries
        ("epoch 7 spent 5", "epoch 8 spent 3", "holds"),
        ("epoch 7 spent 5", "epoch 8 spent 4", "doubt"),
        ("epoch 7 spent 5", "epoch 8 spent 0", "doubt"),
    ],
)
def test_what_two_slots_say(first: str, second: str, wanted: str) -> None:
    for pair in ((SLOTS[first], SLOTS[second]), (SLOTS[second], SLOTS[first])):
        assert read(*pair)[0] == naive.read_journal(pair, IDENTITY)[0] == wanted


def test_every_flipped_bit_of_a_good_slot_is_caught() -> None:
    """Alone it opens nothing, whatever the other slot is; beside a good one it is as if it were torn."""
    for bit in range(8 * 24):
        flipped = bytearray(GOOD)
        flipped[bit // 8] ^= 1 << bit % 8
        damaged = bytes(flipped)
        for other in (damaged, SLOTS["garbage"], SLOTS["zeros"], SLOTS["foreign"]):
            assert read(damaged, other)[0] == read(other, damaged)[0] == "doubt"
        assert read(damaged, SLOTS["blank"])[0] in ("doubt", "blank")
        assert read(damaged, BEFORE) == ("holds", (7, 3), 0)
        assert read(BEFORE, damaged) == ("holds", (7, 3), 1)


@settings(max_examples=200, deadline=None)
@given(st.binary(min_size=24, max_size=24), st.sampled_from([*SLOTS.values(), None]), st.booleans())
def test_random_bytes_are_no_journal(data: bytes, other: bytes | None, swap: bool) -> None:
    pair = (other or data, data) if swap else (data, other or data)
    assert read(*pair) == naive.read_journal(pair, IDENTITY)
    if naive.slot_kind(other or data, IDENTITY) != "good":
        assert read(*pair)[0] != "holds"


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damaged_entries_read_as_in_the_reference(data: st.DataObject) -> None:
    """Slots mixed of two, cut anywhere, with bytes changed: nearer to a real journal than random ones."""
    pair = []
    for _ in range(2):
        mixed = bytearray(data.draw(st.sampled_from(list(SLOTS.values()))))
        cut = data.draw(st.integers(0, 24))
        mixed[cut:] = data.draw(st.sampled_from(list(SLOTS.values())))[cut:]
        if data.draw(st.booleans()):
            mixed[data.draw(st.integers(0, 23))] ^= data.draw(st.integers(1, 255))
        pair.append(bytes(mixed))
    assert read(*pair) == naive.read_journal(pair, IDENTITY)


def test_plain_python_reads_as_compiled() -> None:
    for first, second in zip(SLOTS.values(), reversed(list(SLOTS.values())), strict=True):
        found = [0, 0, 0, 0]
        state = journal.read_journal(list(first + second), list(IDENTITY), list(checksum.CRC.contents), found, 16)
        fast = np.zeros(4, np.uint32)
        assert state == compiled(journal.read_journal)(array(first + second), array(IDENTITY), CRC, fast, 16)
        assert found == list(fast)


@settings(max_examples=200, deadline=None)
@given(
    st.tuples(st.sampled_from([0, 1, 7, 2**32 - 2, 2**32 - 1]), st.one_of(st.integers(0, 600), WORD)),
    st.sampled_from([0, 1, 6, 7, 8, 2**32 - 2, 2**32 - 1]),
    st.one_of(st.integers(1, 300), st.just(2**31 - 1)),
    st.integers(1, 255),
)
def test_spending_counts_up_to_the_budget(found: tuple[int, int], now: int, budget: int, reserve: int) -> None:
    epoch, spent = found
    counts = np.full(2, 9, np.uint32)
    answer = compiled(journal.spend)(np.array([epoch, spent, 0], np.uint32), counts, now, budget, reserve)
    before = spent if now == epoch else 0
    if now < epoch:
        assert answer == journal.BACKWARD == naive.BAD_CLOCK
    elif before >= budget:
        assert answer == journal.USED_UP == naive.SPENT
    else:
        assert (answer, *counts) == (journal.HOLDS, before, min(before + reserve, budget))


# ── packet ──


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_packets_are_those_of_the_reference(data: st.DataObject) -> None:
    features = data.draw(st.integers(2, 40))
    k = data.draw(st.integers(1, features))
    limit = data.draw(st.sampled_from([None, 1, 24576, 2**23]))
    bits = data.draw(st.integers(1, 5)) if limit is None else (2 * limit).bit_length()
    low, high = (0, 2**bits - 1) if limit is None else (-limit, limit)
    y = data.draw(st.lists(st.integers(low, high), min_size=k, max_size=k))
    chosen = None if k == features else data.draw(st.permutations(range(features)))[:k]
    epoch, number = data.draw(st.one_of(st.none(), WORD)), data.draw(st.one_of(st.none(), WORD))
    identity = data.draw(st.binary(min_size=2, max_size=2))

    table = naive.Table(features, k, bits, lambda x, word: 0, lift=limit or 0)
    wanted = table.packet((chosen, y), identity, epoch, number)
    assert len(wanted) == table.bytes((epoch is not None) + (number is not None))

    room = np.full(len(wanted) + 2, 77, np.uint8)  # what was there before must not show, what lies behind must stay
    made, at = room[:-2], 20
    head = 1 + 4 * (epoch is not None) + 8 * (number is not None) + 16 * int.from_bytes(identity, "little")
    call(packet.pack_head, packet=made, head=head, bytes=len(made))
    for value in (epoch, number):
        if value is not None:
            call(packet.pack_number, packet=made, number=value, at=at)
            at += 16
    if chosen is not None:
        which = (features - 1).bit_length()
        picked = np.array(chosen, np.uint32)
        call(packet.pack_chosen, packet=made, chosen=picked, at=at, n=features, k=k, bits=which)
        at += k * which
    if limit is None:
        call(packet.pack_symbols, packet=made, y=np.array(y, np.uint8), at=at, k=k, bits=bits)
    else:
        call(packet.pack_values, packet=made, y=np.array(y, np.int32), limit=limit, at=at, k=k, bits=bits)
    assert made.tobytes() == wanted
    assert list(room[-2:]) == [77, 77]


def test_a_packet_of_one_symbol_by_hand() -> None:
    """Version 1; identity 0xBBAA; feature 9 of 14; symbol 6 of 8: 4 + 16 + 4 + 3 bits."""
    made = np.zeros(4, np.uint8)
    call(packet.pack_head, packet=made, head=1 + (0xBBAA << 4), bytes=4)
    call(packet.pack_chosen, packet=made, chosen=np.array([9], np.uint32), at=20, n=14, k=1, bits=4)
    call(packet.pack_symbols, packet=made, y=np.array([6], np.uint8), at=24, k=1, bits=3)
    assert made.tobytes() == bytes([0xA1, 0xBA, 0x9B, 0x06])
    assert naive.Table(14, 1, 3, lambda x, word: 0).packet(([9], [6]), b"\xaa\xbb", None, None) == made.tobytes()
