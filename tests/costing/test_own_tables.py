"""A stranger's own board: files with a processor or a chip, checked like ours, and every way to get one wrong."""

import hashlib
import json
from pathlib import Path

import pytest
from command import run
from own_tables import CORE, DEAR, HEAD, board

from sensorsim.costing.chips import STORE_COLUMNS, load_chip, own_files
from sensorsim.costing.cost_report import cost
from sensorsim.costing.prices import load_cpu


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("core.csv").write_text(CORE)
    Path("dear.csv").write_text(DEAR)
    Path("board.csv").write_text(board(core="My core", cpu="dear"))


def test_a_processor_of_ones_own(capsys):
    assert load_cpu("core.csv").title == "My core" and load_cpu("core.csv").unit == "cycles"
    ours, dear = (cost(cpu=cpu, accounting="full").mechanisms["spof"] for cpu in ("cortex-m4", "dear.csv"))
    operations = ours.counted.operations
    assert dear.counted.total - ours.counted.total == 8 * (operations["ADD"] + operations["INDEX"])
    assert (
        cost(cpu="core.csv").mechanisms["spof"].counted.total == cost(cpu="cortex-m4").mechanisms["spof"].counted.total
    )
    code, out, _ = run(capsys, "cpus", "show", "core.csv")
    assert code == 0 and out.startswith("My core") and "MYOP" in out
    assert run(capsys, "cpus", "check", "core.csv", "dear.csv", "board.csv") == (0, "3 files, 3 rows, no faults\n", "")
    code, out, _ = run(capsys, "kernel", "stairs.sampled_stairs_one", "--cpu", "core.csv,k7", "--format", "json")
    assert code == 0 and set(next(iter(json.loads(out)["kernels"].values()))["cost"]) == {"core.csv", "k7"}


def test_a_chip_of_ones_own_with_a_core_beside_it():
    assert load_chip("board.csv").name == "My board"
    mine, ours = cost(chip="board.csv").record, cost(chip="nrf52840", cpu="cortex-m4f").record
    assert mine.chip.name == "My board" and mine.store == ours.store and mine.trng == ours.trng
    assert mine.costs["spof"].cycles > ours.costs["spof"].cycles
    assert mine.radio.chip == "any"  # no radio has a row for it
    Path("board.csv").write_text(board(cpu="cortex-m4f"))
    same = cost(chip="board.csv").record.costs["spof"]
    assert same.cycles == ours.costs["spof"].cycles
    assert same.parts["arithmetic"].nJ == ours.costs["spof"].parts["arithmetic"].nJ


BAD = {
    "none.csv": (None, "cannot read none.csv: No such file"),
    "empty.csv": ("", "empty.csv:1: no table of a processor, whose first column is operation"),
    "chip.csv": (board(), "no table of a processor"),
    "k7.csv": (CORE, "there is one of ours with this name"),
    "vast.csv": (CORE.replace(",1,1,1,", ",1,1,9999999999999,"), "is larger than 1000000000"),
    "long.csv": (CORE.replace(",1,1,1,", f",1,1,{'9' * 5000},"), "has more than 40 characters"),
    "path.csv": (CORE.replace("cortex-m4", "../core"), "extends ../core, which is no table beside it, nor one of ours"),
    "self.csv": (CORE.replace("cortex-m4", "self"), "which is no table beside it"),
    "ring.csv": (CORE.replace("cortex-m4", "gnir").replace("MYOP", "ONE"), "builds on ring, which builds on itself"),
    "twice.csv": (CORE.replace("# extends: cortex-m4", "# alters: k7\n# alters: k7"), "twice.csv:3: a second line"),
    "below.csv": (CORE.replace("cortex-m4", "broad"), "builds on broad, which cannot be read (broad.csv:1: not CSV"),
    "other.csv": (
        CORE.replace("cortex-m4", "board"),
        "which cannot be read (board.csv:1: missing column",
    ),
    "bytes.csv": ("\x00\x01\x02", "no table of a processor"),
    "wide.csv": (f"{HEAD}\n{'x' * 200_000}\n", "wide.csv:2: not CSV (field larger than field limit"),
    "large.csv": ("x" * 2_000_001, "has more than 2000000 bytes"),
    "quote.csv": (f'# title: q\n{HEAD}\n"' + "a\n" * 100, "1 cells, not 16"),
}
SOUND = ("chip.csv", "k7.csv")  # tables without a fault, which only do not fit the question


@pytest.mark.parametrize("name", BAD)
def test_a_bad_table_is_one_sentence(name, capsys):
    text, said = BAD[name]
    if text is not None:
        Path(name).write_text(text)
    Path("gnir.csv").write_text(CORE.replace("cortex-m4", "ring").replace("MYOP", "TWO"))
    Path("broad.csv").write_text("x" * 200_000)
    before = sorted(Path().iterdir())
    code, out, err = run(capsys, "cost", "--cpu", name)
    assert (code, out) == (2, "") and said in err and err.count("\n") == 1 and len(err) < 300, err
    code, out, err = run(capsys, "cpus", "check", name)
    assert code in ((0,) if name in SOUND else (1, 2)) and max(map(len, out.split("\n"))) < 400, (code, out, err)
    assert sorted(Path().iterdir()) == before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (board(pJ_per_cycle="0"), "each is above 0"),
        (board(supply_V="1e9"), "'1e9' is not a number; write it like 4, 0.5 or 1/3"),
        (board(cpu="nowhere"), "unknown cpu 'nowhere'"),
        (board(cpu="../core"), "unknown cpu '../core'"),
        (board() + board().splitlines()[1].replace("mine", "other") + "\n", "2 chips; give a file with one"),
        (CORE, "no table of a chip, whose first column is chip"),
    ],
)
def test_a_bad_chip_is_one_sentence(text, said, capsys):
    Path("bad.csv").write_text(text)
    code, out, err = run(capsys, "cost", "--chip", "bad.csv")
    assert (code, out) == (2, "") and said in err and err.count("\n") == 1 and len(err) < 300, err


def test_another_core_than_the_chips_is_refused(capsys):
    assert "the core of My board is dear.csv, not k7" in run(capsys, "cost", "--chip", "board.csv", "--cpu", "k7")[2]
    assert run(capsys, "cost", "--chip", "board.csv", "--cpu", "dear.csv")[0] == 0
    assert "there is no machine code for core.csv" in run(capsys, "cost", "--level", "machine", "--cpu", "core.csv")[2]


def test_the_files_of_a_board_are_those_that_are_read():
    assert own_files("board.csv") == [Path("board.csv"), Path("dear.csv")]
    assert own_files("nrf52840") == own_files(None) == []
    assert own_files("none.csv") == [Path("none.csv")]
    Path("dear.csv").write_text(DEAR.replace("cortex-m4", "core"))
    assert own_files("dear.csv") == [Path("dear.csv"), Path("core.csv")]
    Path("core.csv").write_text(CORE.replace("cortex-m4", "dear"))  # each builds on the other
    assert own_files("dear.csv") == [Path("dear.csv"), Path("core.csv")]


@pytest.mark.parametrize("victim", ["board.csv", "dear.csv"])
@pytest.mark.parametrize(
    "words",
    [
        ("plan", "--write-table"),
        ("report", "--no-claims", "--out"),
        ("fleet", "--devices", "1", "--days", "1", "--noise", "none.txt", "--out", "new.sqlite", "--statistics"),
    ],
)
def test_a_board_is_never_written_over(words, victim, capsys):
    before = {path: path.read_bytes() for path in Path().iterdir()}
    code, out, err = run(capsys, *words, victim, "--chip", "board.csv")
    assert (code, out) == (2, "") and f"{victim} is read, and would be written over" in err
    assert {path: path.read_bytes() for path in Path().iterdir()} == before


def test_plan_and_fleet_count_a_board_of_ones_own(capsys):
    from sensorsim.device.firmware import Firmware
    from sensorsim.fleets.energy import board_of
    from sensorsim.noise.noise_table import ready_table

    def planned(chip):
        code, out, _ = run(capsys, "plan", "--columns", "TotalSteps", "--chip", chip, "--format", "json")
        lines = {one["name"]: one["value"] for one in json.loads(out)["lines"]}
        assert code == 0
        return lines["cycles of a release"], lines["energy of a release"]

    mine, ours = planned("board.csv"), planned("nrf52840")
    assert mine[0] > ours[0] and mine[1] > ours[1]
    firmware = Firmware(ready_table("1", 1))
    dear, plain = (board_of(firmware, 7, 1, chip) for chip in ("board.csv", "nrf52840"))
    assert dear.chip == "My board" and dear.prices.release > plain.prices.release
    Path("board.csv").write_text(board(**{column.name: "" for column in STORE_COLUMNS}))
    note = "the table of My board has no figure for its memory, so no energy is counted"
    assert board_of(firmware, 7, 1, "board.csv").note == note


def test_a_page_names_the_files_of_a_board():
    from sensorsim.reporting.findings import InputReader, core_costs

    reader, other = InputReader(), InputReader()
    reader.board("board.csv"), other.board(None)
    named = [(one.option, one.name, one.sha256) for one in reader.files]
    hashes = [hashlib.sha256(Path(name).read_bytes()).hexdigest() for name in ("board.csv", "dear.csv")]
    assert named == [("--chip", "board.csv", hashes[0]), ("--chip", "dear.csv", hashes[1])] and other.files == []
    cores = core_costs(14, "dear.csv")
    assert cores[-1].title == "Dear core" and len(cores) == len(core_costs(14, "cortex-m4")) + 1
