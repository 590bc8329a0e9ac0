"""The draws: against the definition, against the counts of their tables word by word, and what they cost."""

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import checking
import naive_release
import naive_rows as naive
import numba
import numpy as np
import pytest
from sensorsim.kernels import rows, rows_bit, rows_lookup, rows_mirrored, rows_search, stairs
from sensorsim.kernels.rows import rows_scan

from sensorsim.costing.pricing import PAPER_PRICES
from sensorsim.language.kernel import Kernel
from sensorsim.language.numba_backend import compiled
from sensorsim.language.numba_backend.batch import BLOCK
from sensorsim.language.numba_backend.generators import GENERATORS, generator_fill, generator_state
from sensorsim.noise.noise_table import ready_table

D = 2**15
EDGE_X = (0, 1, 511, 512, D // 2 - 1, D // 2, D // 2 + 1, D - 1, D, D + 1, 2 * D - 1)
NINE_X = (0, 1, 777, D // 4, D // 2 - 1, D // 2, 20000, D - 1, D)
EDGE_WORDS = (0, 1, D - 1, D, 2**16 - 1, 2**16, 2**31 - 1, 2**31, 2**32 - 1)
# Six symbols at five knots, made for epsilon 1.6, with its certificate.
SIX = (
    (32637, 17946, 2369, 2369, 3624, 6591),
    (13913, 17946, 11731, 11731, 3624, 6591),
    (6591, 14450, 11727, 11727, 14450, 6591),
    (6591, 3624, 11731, 11731, 17946, 13913),
    (6591, 3624, 2369, 2369, 17946, 32637),
)
RATIO = Fraction(2991, 604)


def cut(draw: random.Random, symbols: int, whole: int, even: bool) -> tuple[int, ...]:
    """`whole` cut into counts, none of them 0; the same from either end if `even`."""
    if even:
        low = sorted(draw.sample(range(1, whole // 2), (symbols - 1) // 2))
        cuts = [*low, *([whole // 2] if symbols % 2 == 0 else []), *(whole - place for place in reversed(low))]
    else:
        cuts = sorted(draw.sample(range(1, whole), symbols - 1))
    return tuple(b - a for a, b in zip([0, *cuts], [*cuts, whole], strict=True))


def made(knot_bits: int, symbols: int, bits: int = 16) -> tuple[tuple[int, ...], ...]:
    """A table of counts that is its own mirror image."""
    draw = random.Random(100 * knot_bits + symbols)
    half = [cut(draw, symbols, 2**bits, False) for _ in range(-(-(2**knot_bits) // 2))]
    middle = [cut(draw, symbols, 2**bits, True)] if knot_bits else []
    return (*half, *middle, *(each[::-1] for each in half[::-1]))


class Form(NamedTuple):
    """One form of the draw: its kernels, the tables it is tried with, and its arguments and definition for one."""

    module: Any
    name: str
    tables: tuple[Any, ...]
    given: Callable[[Any], dict[str, Any]]
    draw: Callable[[Any], Callable[[int, int], int]]

    def kernel(self, kind: str) -> Kernel:
        found: Kernel = getattr(self.module, kind.format(self.name))
        return found


def cut_up(counts: Any) -> dict[str, Any]:
    return {
        "table": naive.thresholds(counts),
        "cuts": len(counts[0]) - 1,
        "knot_bits": (len(counts) - 1).bit_length() - 1,
    }


def first_half(counts: Any) -> dict[str, Any]:
    return cut_up(counts) | {"table": naive.thresholds(counts[: len(counts) // 2 + 1])}


def looked_up(counts: Any) -> dict[str, Any]:
    return {"table": naive.lookup(counts), "knot_bits": (len(counts) - 1).bit_length() - 1}


def one_bit(counts: Any) -> dict[str, Any]:
    (_, low), (_, high) = counts
    return {"top": high << 15, "slope": high - low}


def of_stairs(which: tuple[str, Any]) -> dict[str, Any]:
    given = ready_table(*which, kind="stairs").arguments()
    return given | {"table": [int(entry) for entry in given["table"]]}


def stairs_draw(which: tuple[str, Any]) -> Callable[[int, int], int]:
    given = of_stairs(which)
    return lambda x, w: naive_release.release(x, given["table"], w, given["limit"], given["stair_bits"])


LARGE = [made(5, 32), made(4, 18), made(3, 8), made(2, 2), made(1, 5), made(0, 2), made(0, 6)]
SHORT = [made(b, s) for b, s in ((0, 5), (5, 6), (3, 7), (1, 8))]
SMALL = [made(b, s, 8) for b, s in ((5, 32), (2, 6), (1, 3), (0, 2))]
BITS = [((2**16 - a, a), (2**16 - b, b)) for a, b in ((10000, 55536), (1, 2**16 - 1), (32000, 32000), (32700, 32836))]
FORMS = (
    Form(rows, "rows", (SIX, *LARGE), cut_up, lambda c: lambda x, w: naive.symbol(x, c, w)),
    Form(rows_search, "rows_search", (SIX, *SHORT), cut_up, lambda c: lambda x, w: naive.symbol(x, c, w)),
    Form(
        *(rows_mirrored, "rows_mirrored", (SIX, *(t for t in LARGE if len(t) > 2)), first_half),
        lambda c: lambda x, w: naive.symbol_mirrored(x, c, w),
    ),
    Form(rows_lookup, "rows_lookup", tuple(SMALL), looked_up, lambda c: lambda x, w: naive.symbol(x, c, w, 8)),
    Form(rows_bit, "rows_bit", tuple(BITS), one_bit, lambda c: lambda x, w: naive.bit(x, c, w)),
    Form(stairs, "stairs", (("1.6", 1), ("0.1", "all"), ("6.4", 1)), of_stairs, stairs_draw),
)
ROWS = FORMS[:-1]
EVERY = pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)


def test_the_tables_are_tables() -> None:
    for form in ROWS:
        for counts in form.tables:
            assert {sum(each) for each in counts} <= {2**8, 2**16} and min(map(min, counts)) >= 1
            if form.name == "rows_mirrored":
                assert counts == tuple(each[::-1] for each in counts[::-1])
    assert max(Fraction(max(column), min(column)) for column in zip(*SIX, strict=True)) == RATIO


def edges(counts: Any) -> tuple[list[int], list[int]]:
    """Features and words side by side: every edge with every other, words at the thresholds, and random ones."""
    draw = random.Random(4)
    words = [*EDGE_WORDS, *(draw.randrange(2**32) for _ in range(40))]
    cuts = [] if isinstance(counts[0], str) else naive.thresholds(counts)  # a table of stairs has none
    for cut in random.Random(1).sample(cuts, min(12, len(cuts))):
        words += [(cut << 16) - 1, cut << 16, ((cut << 16) | 0x7FFF) % 2**32]
    pairs = [(x, word) for x in (*EDGE_X, *(draw.randrange(2 * D) for _ in range(9))) for word in words]
    return [x for x, _ in pairs], [word for _, word in pairs]


@EVERY
def test_every_form_against_the_definition(form: Form) -> None:
    """Edges with edges, in plain Python and by Numba."""
    for counts in form.tables:
        draw, given, (x, words) = form.draw(counts), form.given(counts), edges(counts)
        wanted = [draw(*both) for both in zip(x, words, strict=True)]
        kernel, release = form.kernel("{}"), form.kernel("release_{}")
        for a, w, y in list(zip(x, words, wanted, strict=True))[::7]:
            values = {"x": a, "word": w, **given}
            assert kernel(*[values[name] for name in kernel.parameters]) == y
        batch = release.batch(x=np.array(x)[:, None], word=np.array(words)[:, None], **given)
        assert batch["y"].ravel().tolist() == wanted


def test_the_scan_is_the_same_symbol() -> None:
    for counts in (SIX, *LARGE):
        x, words = edges(counts)
        given = cut_up(counts) | {"knots": len(counts)}
        wanted = [naive.symbol(a, counts, w) for a, w in zip(x, words, strict=True)]
        assert rows_scan.batch(x=x, word=words, **given)["returns"].tolist() == wanted
        for a, w, symbol in list(zip(x, words, wanted, strict=True))[::99]:
            assert rows_scan(a, w, given["table"], given["cuts"], given["knots"], given["knot_bits"]) == symbol


# word by word


@numba.njit
def _tally(draw: Any, found: Any, x: int, table: Any, cuts: int, knot_bits: int, shift: int) -> None:
    for top in range(2**16):
        for low in range(2**shift):
            found[draw(np.uint16(x), np.uint32(top << 16 | low), table, cuts, knot_bits)] += 1


@pytest.mark.parametrize("form, counts", [(FORMS[0], made(5, 6)), (FORMS[1], made(5, 6)), (FORMS[2], made(5, 5))])
def test_all_words_of_a_fine_table(form: Form, counts: Any) -> None:
    """2^26 words, every one that differs: each symbol as often as the mean of the two rows says."""
    given = form.given(counts)
    for x in (777, D // 2, 20000):
        found = np.zeros(len(counts[0]), np.int64)
        table = np.array(given["table"], np.uint16)
        _tally(compiled(form.kernel("{}")), found, x, table, given["cuts"], given["knot_bits"], 10)
        assert found.tolist() == naive.distribution(x, counts)


@pytest.mark.slow
def test_all_words_of_the_table_for_six_symbols() -> None:
    """2^29 words at nine x, and the certificate's ratio in what they give: reached, and never passed."""
    given, table, columns = cut_up(SIX), np.array(naive.thresholds(SIX), np.uint16), []
    for x in NINE_X:
        found = np.zeros(6, np.int64)
        _tally(compiled(rows.rows), found, x, table, given["cuts"], given["knot_bits"], 13)
        assert found.tolist() == naive.distribution(x, SIX)
        columns.append(found.tolist())
    assert max(Fraction(max(column), min(column)) for column in zip(*columns, strict=True)) == RATIO


def tallied(form: Form, counts: Any, x: int, words: Any) -> list[int]:
    y = form.kernel("release_{}").batch(x=np.full((len(words), 1), x), word=words[:, None], **form.given(counts))["y"]
    return np.bincount(y[:, 0], minlength=len(counts[0])).tolist()


@pytest.mark.parametrize("form", FORMS[:4], ids=lambda form: form.name)
def test_each_part_of_the_word(form: Form) -> None:
    """All values of the low part: rows as often as x is near them. All of the top part: the counts of the row."""
    counts = form.tables[0]
    bits = 8 if form.name == "rows_lookup" else 16
    step = D // (len(counts) - 1)
    tops = np.arange(2**bits, dtype=np.uint32) << (32 - bits)
    lows = np.arange(step, dtype=np.uint32)
    between = np.uint32((2 ** (32 - bits) - step) & 0x5A5A5A5A)  # bits that must not matter
    seen = []
    for x in NINE_X:
        turned = form.name == "rows_mirrored" and x > D // 2
        r, part = divmod(D - x if turned else x, step)
        for low in (0, step // 3, step - 1):
            found = tallied(form, counts, x, tops | between | np.uint32(low))
            assert found == list(counts[r + (part + low >= step)])[:: -1 if turned else 1]
            seen.append(found)
        for top in (0, counts[r][0] - 1, counts[r][0], 2**bits - 1):
            wanted = [0] * len(counts[0])
            for row, often in ((r, step - part), (r + 1, part)):
                if often:
                    wanted[naive.symbol(row * step, counts, top << (32 - bits), bits)] += often
            found = tallied(form, counts, x, np.uint32(top << (32 - bits)) | between | lows)
            assert found == wanted[:: -1 if turned else 1]
    if counts is SIX:  # nine x reach the rows that hold the columns' largest and smallest counts
        assert max(Fraction(max(column), min(column)) for column in zip(*seen, strict=True)) == RATIO


def test_one_bit_has_the_distribution_of_two_rows() -> None:
    """The last word that gives 1 and the first that gives 0: as many words as two rows of two symbols have for 1."""
    for counts in BITS:
        given = one_bit(counts)
        for x in NINE_X:
            ones = naive.distribution(x, counts)[1]
            assert 0 < ones < 2**31
            for word, wanted in ((2 * ones - 1, 1), (2 * ones, 0), (2 * ones - 2, 1), (2 * ones + 1, 0)):
                assert rows_bit.rows_bit(x, word, given["top"], given["slope"]) == wanted
    assert rows_bit.rows_bit(D, 2**32 - 1, 2**31, 0) == 1  # certain


# a few features of a record


@EVERY
def test_sampled_against_the_definition(form: Form) -> None:
    draws = random.Random(8)
    for counts in form.tables[:3]:
        given, draw = form.given(counts), form.draw(counts)
        for n, k in ((1, 1), (2, 2), (14, 1), (14, 5), (20, 20)):
            x = [draws.randrange(2 * D) for _ in range(n)]
            words = [draws.choice([0, 2**32 - 1, draws.randrange(2**32)]) for _ in range(2 * k)]
            order = draws.sample(range(n), n)
            kept = list(order)
            chosen, y = naive.sampled(x, words, k, kept, draw)
            made = form.kernel("sampled_{}").run(x=x, word=words, order=order, k=k, **given)
            assert (made["chosen"].tolist(), made["y"].tolist(), made["order"].tolist()) == (chosen, y, kept)


@EVERY
def test_one_of_n_is_sampled_with_k_1(form: Form) -> None:
    """Words at the ends and random ones: what `sampled_…` picks and draws from the numbers in their order."""
    draws = np.random.default_rng(2)
    counts, n = form.tables[0], 14
    given = form.given(counts)
    x = draws.integers(0, 2**16, (300, n))
    words = draws.integers(0, 2**32, (300, 2), np.uint32)
    words[:6] = [[a, b] for a in (0, 2**31, 2**32 - 1) for b in (0, 2**32 - 1)]
    one = form.kernel("sampled_{}_one").batch(x=x, word=words, **given)
    for r in range(0, 300, 6 if form.name == "rows" else 30):
        some = form.kernel("sampled_{}").run(x=x[r], word=words[r], order=list(range(n)), k=1, **given)
        wanted = naive.sampled(x[r].tolist(), words[r].tolist(), 1, list(range(n)), form.draw(counts))
        assert (one["chosen"][r].tolist(), one["y"][r].tolist()) == wanted
        assert (some["chosen"].tolist(), some["y"].tolist()) == wanted


@EVERY
@pytest.mark.parametrize("n", [3, 14])
def test_every_feature_is_picked_as_often(form: Form, n: int) -> None:
    """All 2^20 words that differ for the choice: every feature its share, to one word."""
    words = np.stack([np.arange(2**20, dtype=np.uint32) << 12 | 0xABC, np.zeros(2**20, np.uint32)], axis=1)
    made = form.kernel("sampled_{}_one").batch(x=np.zeros(n, np.uint16), word=words, **form.given(form.tables[0]))
    assert abs(np.bincount(made["chosen"][:, 0], minlength=n) - 2**20 / n).max() < 1


@pytest.mark.parametrize(
    "form, generator",
    [
        pytest.param(form, generator, marks=[pytest.mark.slow] if form.name != name else [])
        for form in FORMS
        for generator, name in zip(GENERATORS, ("rows", "rows_lookup"), strict=True)
    ],
)
def test_batches_draw_their_own_words(form: Form, generator: str) -> None:
    """The generator's words, block by block; whatever the threads."""
    counts, n, k, count = form.tables[0], 3, 2, BLOCK + 9
    x = np.random.default_rng(3).integers(0, 2**16, (count, n))
    given, draw = form.given(counts), form.draw(counts)
    settings = {"x": x, "generator": generator, "seed": 9}

    def words(width: int) -> Any:
        found = np.empty((2, BLOCK * width), np.uint32)
        for block in range(2):
            generator_fill(generator)(found[block], generator_state(9), block)
        return found.reshape(2 * BLOCK, width)

    for threads in (1, 2):
        y = form.kernel("release_{}").batch(**settings, threads=threads, **given)["y"]
        assert y.tolist() == [
            [draw(int(a), int(w)) for a, w in zip(*both, strict=True)] for both in zip(x, words(n)[:count], strict=True)
        ]
    made = form.kernel("sampled_{}").batch(**settings, order=list(range(n)), k=k, **given)
    one = form.kernel("sampled_{}_one").batch(**settings, **given)
    order: list[int] = []
    for r in range(count):
        order = list(range(n)) if r % BLOCK == 0 else order
        wanted = naive.sampled(x[r].tolist(), words(2 * k)[r].tolist(), k, order, draw)
        assert (made["chosen"][r].tolist(), made["y"][r].tolist()) == wanted
        wanted = naive.sampled(x[r].tolist(), words(2)[r].tolist(), 1, list(range(n)), draw)
        assert (one["chosen"][r].tolist(), one["y"][r].tolist()) == wanted


# what it costs


BOUND = """
from sensorsim.language import Array, Below, Length, kernel, out
from sensorsim.kernels.formats import CUT, RANDOM, SYMBOL, X
N = Length("n", 14, 14, "features of a record")

@kernel()
def bound(x: X["n"], {table}word: RANDOM["2"], chosen: out(Below("n")["1"]), y: out(SYMBOL["1"]), n: N) -> None:
    sampled(x, {passed})
"""
TABLE = "table: Array(CUT, '25', contents=SIX), "
ENTRIES = "table: Array(SYMBOL, '1280', contents=SIX), "
PASSED = {
    "rows": (TABLE, "word, chosen, y, 14, table, 5, 2"),
    "rows_search": (TABLE, "word, chosen, y, 14, table, 5, 2"),
    "rows_mirrored": (TABLE.replace("25", "15"), "word, chosen, y, 14, table, 5, 2"),
    "rows_lookup": (ENTRIES, "word, chosen, y, 14, table, 2"),
    "rows_bit": ("", "word, chosen, y, 14, 55536 << 15, 45536"),
}
# What the paper prices, counted by hand with the K7's prices, a multiplication 3 and all else 1: the choice, the
# rounding, and the steps of the form for six symbols.
MACRO = {
    "rows": 3 + 2 + 3 + 5 * 2,
    "rows_search": 3 + 2 + 3 + 1 + 3 + 4 + 2 + 2,
    "rows_mirrored": 3 + 3 + 3 + 5 * 2 + 2,
    "rows_lookup": 3 + 2 + 4,
    "rows_bit": 3 + 1 + 3 + 1 + 1,
}


@pytest.mark.parametrize("form", ROWS, ids=lambda form: form.name)
def test_cost_of_one_feature_with_its_constants_bound(form: Form) -> None:
    from sensorsim.machine.machine_cost import count_kernel

    table, passed = PASSED[form.name]
    contents = tuple(form.given(SIX)["table"]) if form.module in (rows, rows_search, rows_mirrored) else ()
    contents = contents or tuple(naive.lookup(made(2, 6, 8)))
    text = BOUND.format(table=table, passed=passed)
    bound = checking.load(text, SIX=contents, sampled=form.kernel("sampled_{}_one"))["bound"]
    prices = {operation: 3 if operation == "MUL" else 1 for operation in PAPER_PRICES}
    priced = sum(prices.get(operation, 0) * count for (_, operation), count in bound.count().items())
    assert priced == MACRO[form.name]
    draws, seen = random.Random(6), set()
    for _ in range(2):  # the emulated core gives the kernel's bits, in as many instructions whatever the secrets
        record = {"x": [draws.randrange(2 * D) for _ in range(14)], "word": [draws.randrange(2**32) for _ in range(2)]}
        seen.add(count_kernel(bound, record, "cortex-m0plus")["machine_instructions"])
    assert len(seen) == 1
    if form.name in ("rows_search", "rows_lookup", "rows_bit"):  # the goal: 60 instructions with the choice
        assert seen.pop() <= 60
