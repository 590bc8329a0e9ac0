"""Faults that were built in: each is found with modest draws, by the look that it should show in."""

from collections.abc import Callable, Sequence
from typing import Any

import faulty_words
import numpy as np
import pytest
from own_noise import rows_table

from sensorsim.auditing import Audit, Source, examine, make_source
from sensorsim.auditing.packet_source import repeat
from sensorsim.noise.noise_table import NoiseTable, make_table

DRAWS = 1 << 18
FRAC = 15


@pytest.fixture(scope="module")
def tables() -> dict[str, NoiseTable]:
    return {
        "stairs": make_table("stairs", 2, features=4, entries=2**8),
        "stairs one": make_table("stairs", "1.6", features=14, release=1, entries=2**8),
        "rows": rows_table(14, 14),
        "rows one": rows_table(14, 1),
        "rows some": rows_table(14, 3),
    }


def look_at(table: NoiseTable, words: Callable[..., Any]) -> Audit:
    return examine(make_source(table, words=words), draws=DRAWS)


@pytest.mark.parametrize("name", ["stairs", "stairs one", "rows", "rows one", "rows some"])
def test_sound_words_pass(name: str, tables: dict[str, NoiseTable]) -> None:
    assert look_at(tables[name], faulty_words.sound).passed


# Rows take their symbols from the top bits of a word, and those of an LCG pass: its low bits only round x.
OF_ALL = [("stairs", words) for words in faulty_words.ALL_FEATURES]
OF_ALL += [("rows", words) for words in faulty_words.ALL_FEATURES if words is not faulty_words.lcg]


@pytest.mark.parametrize("name, words", OF_ALL, ids=lambda one: one if isinstance(one, str) else one.__name__)
def test_words_of_all_features(name: str, words: Callable[..., Any], tables: dict[str, NoiseTable]) -> None:
    found = look_at(tables[name], words)
    assert not found.passed and not found.independent
    assert found.draws <= DRAWS / 2  # early


@pytest.mark.parametrize("words", faulty_words.SOME_FEATURES, ids=lambda words: words.__name__)
@pytest.mark.parametrize("name", ["stairs one", "rows one"])
def test_words_of_a_picked_feature(name: str, words: Callable[..., Any], tables: dict[str, NoiseTable]) -> None:
    found = look_at(tables[name], words)
    assert not found.passed and found.draws <= 40_000
    if words is faulty_words.biased_choice:
        assert not found.matches and found.last.distribution is not None
        assert found.last.distribution.of == "chosen[0]"
    else:
        assert not found.independent and found.last.dependence is not None
        assert "chosen[0]" in found.last.dependence.of


@pytest.mark.parametrize("words", [faulty_words.choice_is_noise, faulty_words.sticky_choice, faulty_words.lfsr])
def test_words_of_several_picked_features(words: Callable[..., Any], tables: dict[str, NoiseTable]) -> None:
    assert not look_at(tables["rows some"], words).passed


def test_noise_that_cancels_is_a_leak_that_is_learnt(tables: dict[str, NoiseTable]) -> None:
    """Every value by itself costs what it may; the sum of two has no noise."""
    found = look_at(tables["stairs"], faulty_words.antithetic_features)
    assert found.matches and found.leaks
    assert found.last.event.of.startswith("learnt from a whole packet, by y[") and " + y[" in found.last.event.of


def altered(source: Source, change: Callable[[Any, Any], None]) -> Source:
    """Return the source with its packets changed by `change(records, packets)`."""

    def draw(x: Any, count: int, seed: Sequence[int]) -> Any:
        packets = source.draw(x, count, seed).copy()
        change(repeat(x, count, seed), packets)
        return packets

    return source._replace(draw=draw)


def test_a_leak_between_the_ends(tables: dict[str, NoiseTable]) -> None:
    """Sound at x = 0 and x = 1; at 1/2 one feature is let through in one packet of four."""

    def at_one_half(x: Any, packets: Any) -> None:
        packets[np.flatnonzero(x[:, 1] == 1 << (FRAC - 1))[::4], 1] = 0

    found = examine(altered(make_source(tables["stairs"]), at_one_half), draws=DRAWS)
    assert found.leaks and not found.matches
    assert "1/2" in found.last.event.inputs
    ends = altered(make_source(tables["stairs"]), at_one_half)
    assert examine(ends._replace(inputs=ends.inputs[:2]), draws=DRAWS).passed


@pytest.mark.parametrize(("low", "high"), [(0.55, 0.6), (0.01, 0.02), (0.985, 0.995)])
@pytest.mark.parametrize("name", ["stairs one", "rows", "rows one", "rows some"])
def test_a_leak_in_a_narrow_part_of_the_range(name, low, high, tables):
    """A feature within it is sent as one symbol; every other value is released as it should be."""
    table = tables[name]
    picked = range(table.release) if table.sampled else ()

    def raw(x: Any, packets: Any) -> None:
        inside = (x > low * 2**FRAC) & (x < high * 2**FRAC)
        if not picked:
            packets[inside] = 0
            return
        features = np.tile(np.arange(x.shape[1]), (len(x), 1))
        for j in picked:  # a choice is told as its place among the features that are left
            feature = features[np.arange(len(x)), packets[:, 2 * j]]
            packets[inside[np.arange(len(x)), feature], 2 * j + 1] = 0
            features = features[features != feature[:, None]].reshape(len(x), -1)

    source = make_source(table)
    assert not examine(altered(source, raw), draws=1 << 21).passed
    assert examine(altered(source._replace(inputs=source.inputs[:6]), raw), draws=1 << 18).passed


def test_a_choice_that_follows_x(tables: dict[str, NoiseTable]) -> None:
    """The first feature is picked a little more often where x is 1: `chosen` must cost nothing at all."""

    def prefer(x: Any, packets: Any) -> None:
        packets[np.flatnonzero(x[:, 0] == 1 << FRAC)[::20], 0] = 0

    source = altered(make_source(tables["rows one"]), prefer)
    found = examine(source._replace(expected=lambda x, column: None), draws=DRAWS)
    assert found.leaks and found.last.event.of == "chosen[0]" and found.last.event.claimed == 0


def test_a_value_that_cannot_be(tables: dict[str, NoiseTable]) -> None:
    def once(x: Any, packets: Any) -> None:
        packets[-1, 0] = 7  # the table has six symbols

    found = examine(altered(make_source(tables["rows"]), once), draws=DRAWS)
    assert not found.matches and found.last.distribution is not None
    assert found.last.distribution.chi_square == np.inf


@pytest.mark.parametrize("offset", [0, 1])
def test_packets_that_follow_each_other(offset: int, tables: dict[str, NoiseTable]) -> None:
    """Noise that is used again in the next packet, from an even and from an odd packet on."""

    def again(x: Any, packets: Any) -> None:
        later = packets[offset + 1 :: 2]
        later[:] = packets[offset::2][: len(later)]

    found = examine(altered(make_source(tables["rows"]), again), draws=DRAWS)
    assert not found.independent and found.last.dependence is not None
    assert found.last.dependence.of.endswith("of the next packet")
