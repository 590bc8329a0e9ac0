"""Entropy that counts or repeats itself: each counter and each cycle that is promised is found, good bytes pass."""

from random import Random

import naive_device as naive
import numpy as np
import pytest
from sensorsim.kernels import health

from sensorsim.device import Firmware, ListedEntropy, Sensor, Status
from sensorsim.device.running import plain
from sensorsim.language.numba_backend.compile import compiled
from sensorsim.noise.noise_table import ready_table

SIZE = health.START_UP


def alarms(seed: bytes, run=None) -> bool:
    """Run the test for patterns alone over all start-up bytes."""
    run = run or compiled(health.watch_patterns)
    recent, alarm = np.zeros(health.RECENT_WORDS, np.uint32), 0
    for start in range(0, SIZE, 32):
        alarm |= run(np.frombuffer(seed[start : start + 32], np.uint8).copy(), recent)
    return bool(alarm)


def refused(seed: bytes) -> bool:
    return Sensor(ready_table(1.6, 1), entropy=ListedEntropy(seed)).open() == Status.NO_ENTROPY


def counter(width: int, start: int, step: int, order: str) -> bytes:
    """A counter of `width` bytes, written one after the other."""
    count = -(-SIZE // width) + 1
    return b"".join(((start + i * step) % 256**width).to_bytes(width, order) for i in range(count))  # type: ignore[arg-type]


def random_bytes(seed: int, count: int = SIZE) -> bytes:
    return Random(seed).randbytes(count)


def test_the_cutoffs_are_for_a_false_alarm_of_two_to_the_minus_30() -> None:
    """The counter's is that of a proportion test; eight marked bytes come again, anywhere, with 1024 * 2^-48."""
    from scipy.stats import binom

    even = health.TOO_EVEN
    assert naive.cutoffs(health.CLAIMED_BITS, health.ALARM_BITS, SIZE)[1] == even
    assert binom.sf(even - 1, SIZE, 2**-6) <= 2**-30 < binom.sf(even - 2, SIZE, 2**-6)
    assert SIZE * 2.0 ** -(health.MARKED * health.CLAIMED_BITS) <= 2**-health.ALARM_BITS


@pytest.mark.parametrize("order", ["little", "big"])
@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_a_counter_of_any_step_start_and_phase_is_refused(width: int, order: str) -> None:
    """Every step of a byte; for wider ones those near powers of two and others at random, forward and backward."""
    choose = Random(width)
    steps = {*range(256), *(s * 2**b + o for b in range(8 * width) for s in (1, -1) for o in (-1, 0, 1))}
    steps |= {choose.randrange(256**width) for _ in range(100)}
    for step in sorted(steps):
        phase = choose.randrange(width)  # the source may be asked in the middle of a number
        stream = counter(width, choose.randrange(256**width), step, order)[phase : phase + SIZE]
        assert alarms(stream), (step, phase)
    assert refused(stream)


def test_every_cycle_up_to_the_longest_is_refused_and_a_longer_one_is_another_s_work() -> None:
    for length in range(1, health.LONGEST_CYCLE + 1):
        cycle = random_bytes(length, length)
        for late in (0, Random(length).randrange(505)):  # also where others come before it
            stream = (random_bytes(1, late) + cycle * (SIZE // length + 1))[:SIZE]
            assert refused(stream) if length < 6 else alarms(stream), (length, late)
    assert refused((bytes(range(100, 118)) * 60)[:SIZE])
    assert not alarms((random_bytes(3, 513) * 2)[:SIZE])


def test_a_counter_is_refused_at_its_cutoff_and_not_before() -> None:
    """So many bytes at an even pace, made one by one."""
    for even, expected in ((health.TOO_EVEN - 1, False), (health.TOO_EVEN, True)):
        made, choose = bytearray(Random(5).randbytes(16)), Random(6)
        held = sum(byte == 2 * old % 256 for byte, old in zip(made, [*bytes(8), *made], strict=False))  # after zeros
        while len(made) < SIZE:
            wanted = (2 * made[-8] - made[-16]) % 256
            if held < even and len(made) % 3 == 0:
                held += 1
                made.append(wanted)
            else:
                made.append((wanted + choose.randrange(1, 256)) % 256)
        assert held == even
        assert alarms(bytes(made)) is expected is naive.shows_a_pattern(bytes(made))


def test_good_sources_give_no_alarm() -> None:
    """20,000 openings with bytes of 8 bits of min-entropy and 20,000 with 6; an alarm would be one in 2^30."""
    run, source = compiled(health.watch_patterns), np.random.default_rng(24)
    for values in (256, 64):
        recent = np.zeros(health.RECENT_WORDS, np.uint32)
        for part in source.integers(0, values, (20_000 * SIZE // 1024, 32, 32), np.uint8):
            assert not any(run(chunk, recent) for chunk in part)


@pytest.mark.parametrize("seed", range(8))
def test_patterns_are_those_of_the_reference(seed: int) -> None:
    """Over few values, where both tests alarm now and then; plain Python, Numba and the obvious way agree."""
    for number in range(60):
        choose = Random(f"{seed} {number}")
        stream = bytearray(choose.choices(range(choose.choice((2, 16, 30, 64, 256))), k=SIZE))
        for _ in range(choose.randrange(3)):  # a stretch that is copied from before
            size, at = choose.randrange(4, 40), choose.randrange(50, SIZE - 50)
            stream[at : at + size] = stream[at - 45 : at - 45 + size]
        del stream[SIZE:]
        expected = naive.shows_a_pattern(bytes(stream)) or bytes(8) in bytes(stream)
        found = alarms(bytes(stream))
        assert found == expected or bytes(8) in bytes(stream)
        if number < 2:
            assert alarms(bytes(stream), plain(health.watch_patterns)) == found


def test_a_sensor_stays_closed_on_a_counter() -> None:
    """0, 1, 2, 3 … and eighteen bytes over and over passed the tests of SP 800-90B."""
    for seed in (bytes(range(256)) * 4, (random_bytes(9, 18) * 57)[:SIZE]):
        assert (
            Sensor(Firmware(ready_table(1.6, 1)), entropy=ListedEntropy(seed), runs=plain).open() == Status.NO_ENTROPY
        )
