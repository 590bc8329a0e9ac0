"""Tables of numbers on the pages, computed again."""

import re
from pathlib import Path

import faulty_words as words
import pytest
from hand_c import CORES, build, clang, run, sources
from own_noise import rows_table

from sensorsim.costing.cost_report import cost

NOISE = Path(__file__).parents[2] / "docs" / "noise.md"
# By the row: the form of the cost report, and that of the C with its constants bound; SPOF is compiled as it is.
ROWS = {
    "SPOF as printed": ("spof", None),
    "`release`, all features, one bit": ("release", ("bit", "all")),
    "`sampled`, 1 feature by thresholds": ("sampled", ("rows", "one")),
    "`sampled`, 1 feature by one load": ("sampled-lookup", ("lookup", "one")),
    "`sampled`, 1 feature, one bit": ("sampled-bit", ("bit", "one")),
    "`sampled`, 1 feature, stairs": ("sampled-stairs", ("stairs", "one")),
}


def shown():
    """By row: macro-operations, instructions, random bits, bits sent."""
    lines = NOISE.read_text("utf-8").partition("| one record, n = 14 |")[2].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[: len(ROWS)]]
    return {first: [int(re.match(r"\d+", cell)[0]) for cell in rest[:4]] for first, *rest in cells}


def test_operations_and_bits_of_a_release():
    report = cost(14, 7)
    found = {row: report.mechanisms[name] for row, (name, _) in ROWS.items()}
    table = shown()
    assert table.keys() == ROWS.keys()
    for row, one in found.items():
        operations, _, random_bits, bits_sent = table[row]
        assert (operations, random_bits, bits_sent) == (one.counted.total, one.random_bits, one.bits_sent), row
    assert f"({found['`release`, all features, one bit'].symbolic.formula})" in NOISE.read_text("utf-8")


@pytest.mark.slow
def test_instructions_of_a_release(tmp_path):
    from sensorsim.machine.machine_cost import machine_cost

    core, table = CORES[0], shown()
    machine = build(clang(core), sources(tmp_path)["export"], core)
    printed = next(one for one in machine_cost(14, 7, [core], "paper").cases if one.mechanism == "spof")
    for row, (_, bound) in ROWS.items():
        made = printed.instructions if bound is None else run(machine, *bound, core)[0][0]
        assert table[row][1] == made, row


# By how a row begins: the faults that it is of.
FAULTS = {
    "words antithetic": (
        words.antithetic_features, words.antithetic_records, words.xor_features, words.xor_records,
    ),
    "the same word": (words.same_for_all_features, words.repeated_in_the_next_record, words.pool_of_five),
    "words of a 32-bit LFSR": (words.lfsr,),
    "words of an LCG": (words.lcg,),
    "the word that picks": (words.choice_is_noise,),
}  # fmt: skip


@pytest.mark.slow
def test_faults_are_found_after_so_many_values():
    from sensorsim.auditing import examine, make_source
    from sensorsim.noise.noise_table import make_table

    whole = make_table("stairs", 2, features=4, entries=2**8), rows_table(14, 14)
    one = make_table("stairs", "1.6", features=14, release=1, entries=2**8), rows_table(14, 1)
    lines = NOISE.read_text("utf-8").partition("| built in |")[2].splitlines()[2 : 2 + len(FAULTS)]
    for line, (begin, faults) in zip(lines, FAULTS.items(), strict=True):
        what, *shown = (cell.strip() for cell in line.strip("|").split("|"))
        assert what.startswith(begin)
        for fault in faults:
            for table, cell in zip(one if fault is words.choice_is_noise else whole, shown, strict=True):
                found = examine(make_source(table, words=fault), draws=8_000_000)
                assert cell == ("not found" if found.passed else f"{found.draws:,}"), (fault, table)
