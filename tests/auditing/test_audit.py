"""The audit of tables: it passes what is sound, finds what is not, and repeats itself."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from own_noise import rows_table

from sensorsim._util.errors import InputError
from sensorsim.auditing import Audit, examine, make_source
from sensorsim.auditing.table_sources import interleaved
from sensorsim.noise.noise_table import NoiseTable, make_table

DRAWS = 1 << 17


def audit(table: NoiseTable, mechanism: str | None = None, **options: Any) -> Audit:
    return examine(make_source(table, mechanism), **options)


@pytest.fixture(scope="module")
def small() -> NoiseTable:
    """Stairs on the kernels' lattice, narrow enough that a fast audit resolves them."""
    return make_table("stairs", 2, features=2, entries=2**8)


def with_count_moved(table: Any, value: int, by: int) -> Any:
    counts = dict(table.counts)
    counts[value] -= by
    counts[0] += by
    return replace(table, counts=tuple(sorted(counts.items())))


@pytest.mark.parametrize("features, release", [(2, 2), (14, 1), (5, 2)])
@pytest.mark.parametrize("kind", ["stairs", "rows"])
def test_sound_releases_pass(kind: str, features: int, release: int) -> None:
    if kind == "rows":
        table = rows_table(features, release)
    else:
        table = make_table("stairs", "1.6", features=features, release=release, entries=2**8)
    found = audit(table, draws=DRAWS)
    assert found.passed and not found.recovered
    assert found.mechanism == ("sampled" if release < features else "release")
    for look in found.looks:
        assert look.distribution is not None and look.dependence is not None
    assert 0.8 * found.last.event.claimed < found.last.event.bound <= found.last.event.claimed
    assert DRAWS - 8 * release < found.draws <= found.asked == DRAWS


def test_a_naive_table_leaks() -> None:
    found = audit(make_table("naive", 1, frac_bits=8), draws=DRAWS)
    assert found.leaks and found.matches and found.independent  # the kernel does what the table says
    assert found.last.event.bound > 5 and found.last.event.rates[1] == 0


@pytest.mark.parametrize("mechanism", ["prefetch", "shared"])
@pytest.mark.parametrize("kind", ["naive", "stairs"])
def test_a_fixed_order_and_a_shared_draw_give_x_away(mechanism: str, kind: str, small: NoiseTable) -> None:
    """However good the table: x is read off exactly."""
    table = small if kind == "stairs" else make_table("naive", 1, frac_bits=8)
    found = audit(table, mechanism, draws=DRAWS)
    assert found.recovered and found.leaks
    assert found.last.event.rates == (1.0, 0.0)
    assert found.independent == (mechanism == "shared")  # what comes next in a fixed order is known


def test_one_count_changed_breaks_the_certificate(small: Any) -> None:
    """The file still claims the old epsilon; the draws show that it does not keep it."""
    top = small.counts[-1][0]
    broken = with_count_moved(small, 1 - top, dict(small.counts)[1 - top] // 2)
    found = audit(broken, draws=1 << 20)
    assert found.leaks and found.matches and not found.recovered


def test_a_kernel_that_does_something_else_is_noticed(small: Any) -> None:
    """The kernel draws from one table, the certificate is about another: a single count moved by one."""
    other = with_count_moved(small, 1, 1)
    source = make_source(other)._replace(draw=make_source(small).draw)
    found = examine(source, draws=1 << 21)
    assert not found.matches and not found.passed


def test_the_result_depends_on_the_seed_and_not_on_threads(small: NoiseTable) -> None:
    one, two = (audit(small, draws=100_000, seed=3, threads=threads) for threads in (1, 2))
    assert one == two
    assert one.looks != audit(small, draws=100_000, seed=4).looks


def test_looks_double_and_a_leak_ends_them(small: NoiseTable) -> None:
    found = audit(small, draws=DRAWS)
    draws = [look.draws for look in found.looks]
    assert len(draws) > 3 and all(b == 2 * a for a, b in pairwise(draws))
    assert sum(look.allowed for look in found.looks) == pytest.approx((1 - found.confidence) / 3)
    early = audit(small, "shared", draws=DRAWS)
    assert len(early.looks) == 1 and early.draws < DRAWS / 8


def test_more_draws_see_what_is_rarer(small: NoiseTable) -> None:
    few, many = (audit(small, draws=draws).rarest for draws in (1 << 15, 1 << 18))
    assert 0 < many < few / 4 < 1


def test_a_choice_is_told_as_its_place_among_what_is_left() -> None:
    rng = np.random.default_rng(0)
    chosen = np.stack([rng.permutation(6)[:3] for _ in range(50)]).astype(np.uint32)
    told = interleaved(chosen, np.zeros((50, 3), np.int32))[:, ::2]
    for row, places in zip(chosen.tolist(), told.tolist(), strict=True):
        left = list(range(6))
        assert [left.pop(place) for place in places] == row


def test_mechanisms_that_do_not_fit_the_table(small: NoiseTable) -> None:
    for table, mechanism, options in (
        (small, "other", {"draws": 1000}),
        (make_table("naive", 1, frac_bits=8, limit_scales=3), None, {"draws": 1000}),
        (make_table("stairs", 1, frac_bits=8), None, {"draws": 1000}),
        (rows_table(2, 2), "spof", {"draws": 1000}),
        (small, None, {"draws": 999}),
        (small, None, {"draws": 1000, "confidence": 1}),
    ):
        with pytest.raises(InputError):
            audit(table, mechanism, **options)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100))
def test_no_false_alarm(seed: int, small: NoiseTable) -> None:
    for table in (small, rows_table(14, 1), rows_table(5, 2)):
        assert audit(table, draws=50_000, seed=seed).passed


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.1", "0.8", "6.4"])
@pytest.mark.parametrize("release", ["all", 1])
@pytest.mark.parametrize("kind", ["rows", "stairs"])
def test_tables_pass_at_length(kind: str, epsilon: str, release: int | str) -> None:
    assert audit(make_table(kind, epsilon, release=release), draws=10**8, threads=2).passed
