"""Every draw of the compiled release against the table's own counts: C that was altered a little is seen."""

import numpy as np
import pytest

from sensorsim.codegen.kernels_package import make_package
from sensorsim.codegen.manifest import open_package
from sensorsim.codegen.package_options import Options
from sensorsim.codegen.write import write_folder
from sensorsim.noise.noise_table import make_table, ready_table
from sensorsim.noise.table_file import write_table
from sensorsim.verification import every_draw
from sensorsim.verification.audited_package import Release
from sensorsim.verification.bits import Effort, Work
from sensorsim.verification.every_draw import counts_at, draw_proof, output_of, places_of
from sensorsim.verification.package_checks import read_tables

PLAIN = "ss_rows_search(x[picked], word[1U], table, cuts, knot_bits)"
DRAWS = f"y[0U] = {PLAIN};"
LOOK = "ss_reaches(drawn, table_at_first[some])"  # the one that meets the threshold 55306 of the second row


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The files of a package that holds nothing but the release of the default sensor."""
    folder = tmp_path_factory.mktemp("made")
    write_table(folder / "t.txt", ready_table("1.6", 1))
    return make_package(Options(("sampled",), noise=folder / "t.txt"))


@pytest.fixture
def altered(made, tmp_path):
    """The package with a text of its C replaced; nothing that reads hashes looks at it."""

    def alter(old="", new=""):
        write_folder(tmp_path / "p", made)
        package = open_package(tmp_path / "p")
        paths = [path for path in sorted((tmp_path / "p/src").iterdir()) if old and old in path.read_text()]
        assert len(paths) == bool(old)
        for path in paths:
            path.write_text(path.read_text().replace(old, new))
        return package

    return alter


@pytest.fixture
def few_places(monkeypatch):
    """The knots, where the certificate is attained, and one beside them: a test takes a second."""
    monkeypatch.setattr(every_draw, "places_of", lambda release, table: [0, 8192, 8193, 16384, 24576, 32768])


def when(condition, otherwise):
    return f"y[0U] = (uint8_t)(({condition}) ? ({otherwise}) : {PLAIN});"


def later(steps):
    """The look at a threshold with one of them larger than the table says."""
    cut = f"table_at_first[some] + ((table_at_first[some] == 55306U) ? {steps}U : 0U)"
    return f"ss_reaches(drawn, (uint16_t)({cut}))"


def test_what_was_done_is_told(altered, few_places, tmp_path):
    (proof,) = draw_proof(altered(), tmp_path)
    assert proof.passed
    assert "all values of both parts (16 and 13 bits) of a word" in proof.detail
    assert "pairs of them tried, not exhausted, at 6 x" in proof.detail
    assert "each output as often as by the table" in proof.detail
    assert "each of 14 features at all of them" in proof.detail
    assert "3 unused bits of a word change nothing, on a sample" in proof.detail


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (LOOK, later(1), "by the table"),
        (DRAWS, DRAWS + " y[0U] = (y[0U] == 1U) ? 3U : ((y[0U] == 3U) ? 1U : y[0U]);", "by the table"),
        (DRAWS, when("(picked == 5U) && ((word[1U] >> 16U) == 999U)", "x[5] >> 14U"), "compiled"),
        (DRAWS, when("(x[(picked + 1U) % n] > 60000U) && (x[picked] < 500U)", "4U"), "compiled"),
        (DRAWS, when("(word[1U] & 0xE000U) == 0xA000U", "0U"), "compiled"),
        (DRAWS, when("(x[picked] == 8193U) && ((word[1U] >> 16U) == 7U)", "4U"), "x = 8193"),
        (DRAWS, when("(word[0U] & 0xFFFU) == 77U", "x[picked] >> 14U"), "compiled"),
    ],
    ids=["threshold", "swap", "feature", "other", "unused", "beside", "picking"],
)
def test_a_draw_that_is_wrong_somewhere_is_seen(altered, few_places, tmp_path, old, new, said):
    (proof,) = draw_proof(altered(old, new), tmp_path)
    assert not proof.passed
    assert said in proof.detail


def test_where_it_is_tried(altered, tmp_path):
    """Nine x and every knot, with both neighbours, beyond 1 and at random; nothing is known of x = 12345 otherwise."""
    package = altered(DRAWS, when("x[picked] == 12345U", "0U"))
    release = Release(package, package.kernels[0], tmp_path)
    places = places_of(release, read_tables(package).table)
    marks = [k * 4096 for k in range(9)]
    assert {x + off for x in marks for off in (-1, 0, 1) if x + off >= 0} | {65535} <= set(places)
    assert len(places) > 28
    words = np.arange(1 << 16, dtype=np.uint32) << 16
    assert release.draw(words, 12344).any()
    assert not release.draw(words, 12345).any()


def test_an_x_is_caught_where_it_is_among_those_tried(altered, few_places, tmp_path, monkeypatch):
    tried = [0, 8192, 12345, 16384, 24576, 32768]
    package = altered(DRAWS, when("x[picked] == 12345U", "0U"))
    assert draw_proof(package, tmp_path)[0].passed  # 12345 is not tried: it cannot be seen
    monkeypatch.setattr(every_draw, "places_of", lambda release, table: tried)
    assert not draw_proof(package, tmp_path)[0].passed


def test_half_of_the_vectors_on_the_host_have_the_packages_own_table(altered, tmp_path):
    package = altered()
    table = read_tables(package).array
    work = Work(package, tmp_path, Effort(host=25_000, core=5_000, edges=8), 0)
    more = list(work.host_sets(package.kernels[0]))[len(work.sets(package.kernels[0])) :]
    own = sum(v.count for v, _ in more if np.array_equal(np.unique(v.values["table"], axis=0), [table]))
    assert sum(v.count for v, _ in more) == 20_000
    assert own == 10_000
    assert {v.lengths["n"] for v, _ in more} == {14}


def test_bits_see_a_threshold_of_the_packages_own_table(altered, tmp_path):
    package = altered(LOOK, later(9))
    work = Work(package, tmp_path, Effort(host=300_000, core=20, edges=8), 0)
    work.check_selftest = lambda *given: None
    assert work.on_host(package.kernels[0]).differing_bits


@pytest.mark.parametrize(
    "table",
    [
        make_table("rows", "0.3", release=1, symbols=2, knots=2),
        make_table("rows", "6.4", release=1, count_bits=8),
        ready_table("1.6", 1),
        make_table("stairs", "8", release=1, entries=1 << 10),
    ],
    ids=["one bit", "lookup", "search", "stairs"],
)
@pytest.mark.parametrize("x", [0, 5, 9000, 16385, 32768, 65535])
def test_the_plain_rule_has_the_counts_of_the_table(table, x):
    """Two ways that share no code: draws of many words, and the distribution of the table's own file."""
    high = table.index_bits if table.kind == "stairs" else table.count_bits
    low_bits = table.secret_bits - high
    want = counts_at(table, x, high + low_bits)
    assert sum(want.values()) == 1 << (high + low_bits)
    rng = np.random.default_rng(1)
    count = 1 << 18
    y = output_of(table, x, rng.integers(0, 1 << high, count), rng.integers(0, 1 << low_bits, count), low_bits)
    assert set(y.tolist()) <= set(want)
    mean = sum(value * n for value, n in want.items()) / (1 << (high + low_bits))
    variance = sum((value - mean) ** 2 * n for value, n in want.items()) / (1 << (high + low_bits))
    assert abs(y.mean() - mean) < 5 * (variance / count) ** 0.5
