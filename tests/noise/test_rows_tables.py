"""Rows tables: the certificate against all pairs of inputs, the compiled kernels against the counts, files, peers."""

import json
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import naive_noise as naive
import numpy as np
import pytest

from sensorsim._util.errors import InputError
from sensorsim.commands.program import main
from sensorsim.noise.batch_release import release_records, sampled_records
from sensorsim.noise.kinds.rows_table import RowsTable
from sensorsim.noise.noise_table import READY_EPSILONS, certified, make_table, ready_table
from sensorsim.noise.table_file import parse_table, table_bytes

READY = [(epsilon, release) for epsilon in READY_EPSILONS for release in ("all", 1)]
NINE = [0, 1, 777, 8191, 16384, 16385, 20000, 32767, 32768]


def symbol_counts(table: RowsTable, x: int, frac_bits: int) -> list[int]:
    """How many draws give each symbol, one draw after another: rounding bits, then the counts of the row."""
    rows = [list(row) for row in table.counts]
    if table.mirrored:
        rows += [row[::-1] for row in rows[-2::-1]]
    step = (1 << frac_bits) // (len(rows) - 1)
    found = [0] * len(rows[0])
    for low in range(step):
        for symbol, count in enumerate(rows[(x + low) // step]):
            found[symbol] += count
    return found


def worst_ratio(table: RowsTable, frac_bits: int) -> Fraction:
    seen = [symbol_counts(table, x, frac_bits) for x in range((1 << frac_bits) + 1)]
    return max(Fraction(a, b) for p in seen for q in seen for a, b in zip(p, q, strict=True))


@pytest.mark.parametrize(("epsilon", "release"), READY)
def test_ready_tables_hold_for_all_pairs(epsilon: str, release: int | str) -> None:
    table = ready_table(epsilon, release)
    assert isinstance(table, RowsTable)
    brute = worst_ratio(table, table.rows.knot_bits + 1)
    proved = table.certify()
    assert proved == table.certificate and proved.ratio == brute
    assert naive.is_private(brute, table.epsilon, table.release) and proved.holds(Decimal(epsilon))


@pytest.mark.parametrize("seed", range(60))
def test_fresh_tables_have_the_ratio_of_all_pairs(seed: int) -> None:
    """Random counts, not designed ones: nothing about them is symmetric or in order."""
    rng = np.random.default_rng(seed)
    knots, symbols, bits = 2 ** int(rng.integers(0, 4)) + 1, int(rng.integers(2, 9)), int(rng.choice([8, 16]))
    left = (1 << bits) - symbols
    odds = [rng.dirichlet(np.ones(symbols)) for _ in range(knots)]
    counts = tuple(tuple(int(c) + 1 for c in rng.multinomial(left, row)) for row in odds)
    table = RowsTable(Decimal(3), 4, 2, 6, bits, counts)
    assert table.certify().ratio == worst_ratio(table, int(rng.integers(table.rows.knot_bits, 7)))
    for x in (0, 13, 64):
        scale = sum(table.distribution(x)[1]) // (1 << bits)
        naive_counts = symbol_counts(table, x, 6)
        assert [int(c) for c in table.distribution(x)[1]] == naive_counts and scale == 64 // (knots - 1)


@pytest.mark.parametrize(
    ("epsilon", "release"),
    [pytest.param(*one, marks=[pytest.mark.slow] if place % 4 > 1 else []) for place, one in enumerate(READY)],
)
def test_the_compiled_kernel_draws_the_counts(epsilon: str, release: int | str) -> None:
    """At nine x: every value of the top 16 bits of a word with the others at their edges."""
    table = ready_table(epsilon, release)
    assert isinstance(table, RowsTable)
    one_bit = table.rows.one_bit()
    shift = 15 - table.rows.knot_bits
    top = np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)
    for x in NINE:
        for low in (0, 1, (1 << shift) // 2, (1 << shift) - 1):
            found = Counter(drawn(table, x, top | np.uint32(low)).tolist())
            if one_bit:
                base, slope = one_bit
                reached = sum(int(w >> 1) < base + slope * x for w in (top | np.uint32(low)).tolist())
                assert found == Counter({s: c for s, c in ((0, (1 << 16) - reached), (1, reached)) if c})
                continue
            rows = table.rows.all_counts()
            mirrored = table.mirrored and x > 1 << 14
            place = ((1 << 15) - x if mirrored else x) + low >> shift
            expected = rows[place][::-1] if mirrored else rows[place]
            assert found == Counter({s: c for s, c in enumerate(expected) if c}), (x, low)


@pytest.mark.parametrize("epsilon", ["0.8", "1.6", "6.4"])
def test_every_rounding_bit_counts(epsilon: str) -> None:
    """At nine x: every value of the low bits, with the top bits at both sides of every threshold of the two rows."""
    table = ready_table(epsilon, 1)
    assert isinstance(table, RowsTable) and not table.mirrored
    shift = 15 - table.rows.knot_bits
    low = np.arange(1 << shift, dtype=np.uint32)
    thresholds = np.array(table.rows.thresholds())
    for x in NINE:
        row = (x + low.astype(np.int64)) >> shift
        for cut in sorted({int(edge) for t in np.unique(thresholds[np.unique(row)]) for edge in (t - 1, t)}):
            expected = (thresholds[row] <= cut).sum(1)
            assert np.array_equal(drawn(table, x, low | np.uint32(cut << 16)), expected)


def drawn(table: RowsTable, x: int, word: "np.ndarray") -> "np.ndarray":
    """The symbols for these words, each in a record of its own."""
    words = len(word)
    if table.sampled:
        pairs = np.stack([np.zeros(words, np.uint32), word], 1)  # the first word picks the feature
        records = np.full((words, table.features), x, np.uint16)
        return sampled_records(records, table, word=pairs)[1][:, 0]
    records = np.full((words // table.features + 1, table.features), x, np.uint16)
    padded = np.resize(word, records.shape).astype(np.uint32)
    return release_records(records, table, word=padded).reshape(-1)[:words]


@pytest.mark.parametrize(
    "lines",
    [
        ["rows 3 symbols 2", "65535 1", "40000 25536", "1 65535", "1 65535"],
        ["rows 4 symbols 2", "65535 1", "40000 25536", "1 65535", "1 65535"],
        ["rows 2 symbols 3", "65535 1", "1 65535"],
        ["rows 2 symbols 2", "65535 2", "1 65535"],
        ["rows 2 symbols 2", "65537 -1", "1 65535"],
        ["rows 2 symbols 2 mirrored ", "65535 1", "1 65535"],
        ["rows 2 symbols 2", "65535 1", "x 65535"],
        ["rows 2 symbols 2"],
    ],
)
def test_files_with_counts_that_are_none_are_refused(lines: list[str]) -> None:
    """The checksum is right in each: whoever alters a file can do that too."""
    import hashlib

    good = table_bytes(ready_table("0.1", 1)).decode().splitlines()
    start = next(k for k, line in enumerate(good) if line.startswith("rows "))
    body = "".join(line + "\n" for line in good[:start] + lines).encode()
    content = body + f"sha256 {hashlib.sha256(body).hexdigest()}\n".encode()
    with pytest.raises(InputError, match=r"t line \d+"):
        parse_table(content, "t")


def test_a_table_that_is_looked_up_cannot_be_mirrored() -> None:
    """Half of its rows would be read past their end."""
    half = ((180, 50, 26), (100, 56, 100))
    with pytest.raises(InputError):
        RowsTable(Decimal(3), 1, 1, 15, 8, half, mirrored=True).certify()
    with pytest.raises(InputError):
        RowsTable(
            Decimal(3), 1, 1, 15, 16, ready_table("0.1", 1).counts * 17 + ready_table("0.1", 1).counts[:1], True
        ).certify()


def test_a_bit_that_falls_with_x_is_drawn_by_thresholds() -> None:
    """The comparison without a table is for a slope that rises; the same counts upside down are a table like any."""
    rising = make_table("rows", 2, features=3, release=1, knots=2, symbols=2)
    falling = certified(replace(rising, counts=rising.counts[::-1]))
    assert rising.form == "one bit" and falling.form == "thresholds"
    assert falling.certificate == rising.certificate
    falling.check_kernels()
    x = np.full((100_000, 3), 5000, np.uint16)
    values = falling.estimate(sampled_records(x, falling, seed=5)[1])
    assert abs(values.mean() - 5000 / 2**15) < 5 * falling.estimate_sd / 100_000**0.5


def test_arguments_outside_the_kernels_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    table = ready_table("1.6", 1)
    table.check_kernels()
    for name, value in (("cuts", 9), ("knot_bits", 6), ("table", np.zeros(3, np.uint16))):
        given = table.arguments() | {name: value}
        monkeypatch.setattr(RowsTable, "arguments", lambda self, given=given: given)
        with pytest.raises(InputError):
            table.check_kernels()
        monkeypatch.undo()


@pytest.mark.parametrize("run", [release_records, sampled_records])
def test_nothing_is_released_with_a_table_that_is_not_proved(run: object) -> None:
    """Whatever the certificate in its file says."""
    table = ready_table("1.6", 1)
    first = list(table.counts[0])
    first[0], first[1] = first[0] + first[1] - 1, 1
    lying = replace(table, counts=(tuple(first), *table.counts[1:]))
    assert lying.certificate is not None and lying.certificate.holds(table.epsilon)
    with pytest.raises(InputError):
        run(np.zeros((2, 1), np.uint16), lying)
    run(np.zeros((2, 1), np.uint16), lying, unproved=True)


def test_one_load_in_place_of_thresholds() -> None:
    table = make_table("rows", 1.6, release=1, knots=5, symbols=5, count_bits=8)
    assert table.certificate is not None and table.certificate.holds(Decimal("1.6"))
    assert table.table_bytes == 5 * 256
    records = np.full((200_000, 14), 20_000, np.uint16)
    values = table.estimate(sampled_records(records, table, seed=2)[1])
    assert table.estimate_sd is not None
    assert abs(values.mean() - 20_000 / 2**15) < 5 * table.estimate_sd / 200_000**0.5


@pytest.mark.slow
def test_peers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plot = tmp_path / "records.svg"
    main(["noise", "peers", "--plot", str(plot), "--format", "json"])
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["epsilon"] for row in rows] == [float(epsilon) for epsilon in READY_EPSILONS]
    for row in rows:
        names = [name for name in row if name.endswith("_sd") and not name.startswith(("rows", "best"))]
        others = [row[name] for name in names]
        assert row["rows_sd"] <= 1.005 * min(others)  # one bit in integers is a hair above one bit in reals
        assert row["records"] > 1
    assert plot.read_bytes().startswith(b"<?xml")
