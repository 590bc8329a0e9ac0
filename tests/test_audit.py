"""The audit: it finds each leak that was built in, passes what is sound, and its bound holds."""

import json
import math
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sensorsim.cli import main
from sensorsim.errors import InputError
from sensorsim.privacy import audit as audit_module
from sensorsim.privacy.audit import audit, chi_square, epsilon_bound
from sensorsim.privacy.tablefile import write_table
from sensorsim.privacy.tables import NoiseTable, make_table, ready_table

DRAWS = 1 << 20  # whole passes through every table that is read in order


@pytest.fixture(scope="module")
def small() -> NoiseTable:
    """Stairs on the kernels' lattice, narrow enough that a fast audit resolves them."""
    return make_table("stairs", 2, features=2, entries=2**8)


def with_count_moved(table: NoiseTable, value: int, by: int) -> NoiseTable:
    counts = dict(table.counts)
    counts[value] -= by
    counts[0] += by
    return replace(table, counts=tuple(sorted(counts.items())))


def run(line: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    try:
        main(shlex.split(line))
        code = 0
    except SystemExit as exit_:
        code = int(exit_.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


def test_sound_releases_pass(small: NoiseTable) -> None:
    for table in (small, ready_table("1.6", 1)):
        found = audit(table, draws=DRAWS)
        assert found.passed and not found.recovered
        assert 0.001 < found.p_value < 0.999
        assert 0.9 * found.epsilon_claimed < found.epsilon_bound <= found.epsilon_claimed


def test_a_naive_table_leaks() -> None:
    found = audit(make_table("naive", 1, frac_bits=8), draws=DRAWS)
    assert found.leaks and found.matches  # the kernel does what the table says; the table is what leaks
    assert found.epsilon_bound > 8 and found.event_rates[1] == 0


@pytest.mark.parametrize("mechanism", ["prefetch", "shared"])
@pytest.mark.parametrize("kind", ["naive", "stairs"])
def test_a_fixed_order_and_a_shared_draw_give_x_away(mechanism: str, kind: str, small: NoiseTable) -> None:
    """However good the table: each value alone looks right, and x is read off exactly."""
    table = small if kind == "stairs" else make_table("naive", 1, frac_bits=8)
    found = audit(table, mechanism, draws=DRAWS)
    assert found.recovered and found.leaks and found.matches
    assert found.event_rates == (1.0, 0.0)


def test_one_count_changed_breaks_the_certificate(small: NoiseTable) -> None:
    """The file still claims the old epsilon; the draws show that it does not keep it."""
    top = small.counts[-1][0]
    broken = with_count_moved(small, 1 - top, dict(small.counts)[1 - top] // 2)
    found = audit(broken, draws=DRAWS)
    assert found.leaks and found.matches and not found.recovered


def test_a_kernel_that_does_something_else_is_noticed(small: NoiseTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel draws from one table, the certificate is about another: a single count moved by one."""
    other = with_count_moved(small, 1, 1)
    sound = audit_module.make_observer(small, None)
    monkeypatch.setattr(audit_module, "make_observer", lambda table, mechanism: sound)
    found = audit(other, draws=DRAWS)
    assert not found.matches and not found.passed


def test_the_result_depends_on_the_seed_and_not_on_threads(small: NoiseTable) -> None:
    one, two = (audit(small, draws=100_000, seed=3, threads=threads) for threads in (1, 2))
    assert one == two != audit(small, draws=100_000, seed=4)


def test_the_bound_holds_and_is_near() -> None:
    """Known rates: the bound stays below the true epsilon, and comes near it with many draws."""
    rng = np.random.default_rng(0)
    p, q = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.1, 0.2, 0.3, 0.4])
    above = 0
    for _ in range(300):
        choose, test = (np.stack([rng.multinomial(1000, p), rng.multinomial(1000, q)]) for _ in range(2))
        above += epsilon_bound(choose, test, 0.9)[0] > math.log(4)
    assert above <= 30
    many = [np.stack([rng.multinomial(10**7, p), rng.multinomial(10**7, q)]) for _ in range(2)]
    bound, rates = epsilon_bound(*many, 0.9999)
    assert 0.99 * math.log(4) < bound < math.log(4) and rates == pytest.approx((0.4, 0.1), abs=0.001)


def test_the_bound_is_zero_where_nothing_differs() -> None:
    same = np.full((2, 8), 1000)
    assert epsilon_bound(same, same, 0.99)[0] == 0


def test_chi_square_is_scipy_s() -> None:
    from scipy.stats import chisquare

    expected = np.array([100.0, 0.0, 300.0, 60.0, 70.0, 0.0])
    found = np.array([90.0, 0.0, 310.0, 55.0, 75.0, 0.0])
    statistic, groups = chi_square(found, expected)
    assert (statistic, groups) == (pytest.approx(chisquare(found[expected > 0], expected[expected > 0])[0]), 4)


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run("noise audit --epsilon 1.6 --mechanism sampled --draws 1e5", capsys)
    assert code == 0 and "No leak found" in out
    path = tmp_path / "naive.txt"
    write_table(path, make_table("naive", 1, frac_bits=8, entries=2**10))
    code, out, _ = run(f"noise audit {path} --draws 1e5 --format json", capsys)
    found = json.loads(out)
    assert code == 1 and found["schema_version"] == 1 and found["leaks"] and not found["passed"]
    code, out, _ = run(f"noise audit {path} --mechanism shared --draws 1e5 --format csv", capsys)
    assert code == 1 and "exactly" in out.splitlines()[1]


@pytest.mark.parametrize(
    "line, word",
    [
        ("--draws 10", "at least 1000"),
        ("--draws many", "whole number"),
        ("--confidence 1", "below 1"),
        ("--epsilon 0.3", "no ready table"),
        ("nowhere.txt", "cannot read"),
        ("nowhere.txt --epsilon 1", "give one of them"),
        ("--threads 0", "at least 1"),
        ("--mechanism lean", "stairs table"),
    ],
)
def test_bad_input(line: str, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(f"noise audit {line}", capsys)
    assert code == 2 and out == "" and err.count("\n") == 1 and word in err


def test_mechanisms_that_do_not_fit_the_table(small: NoiseTable) -> None:
    with pytest.raises(InputError, match="choose one of"):
        audit(small, "other", draws=1000)
    with pytest.raises(InputError, match="without --limit"):
        audit(make_table("naive", 1, frac_bits=8, limit_scales=3), draws=1000)
    with pytest.raises(InputError, match="--frac-bits 15"):
        audit(make_table("stairs", 1, frac_bits=8), draws=1000)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.1", "0.8", "6.4"])
@pytest.mark.parametrize("of", ["all", 1])
def test_ready_tables_pass_at_length(epsilon: str, of: int | str) -> None:
    assert audit(ready_table(epsilon, of), draws=10**8, threads=2).passed
