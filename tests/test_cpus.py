"""`sensorsim cpus`: the list, one table, and a checker that finds each kind of fault."""

import csv
import io
import json

import pytest
from click.testing import CliRunner

from sensorsim.cli import group, main
from sensorsim.cli.cpus import command
from sensorsim.cost.prices import cpu_folder, cpu_names, energy_file
from sensorsim.cost.published import published_file
from sensorsim.cost.radio import radio_files
from sensorsim.cost.tablecheck import check_file, table_files

HEAD = (
    "# title: Mine\noperation,operands,class,width,signedness,unit,min,typical,max,per_register,latency_cycles,"
    "reciprocal_throughput_cycles,source,status,status_of,note\n"
)
ADD = "ADD,any,ADD,32,any,cycles,1,1,1,,1,1/3,manual,confirmed,,"


def run(*args):
    return CliRunner().invoke(command, args)


def faults_of(tmp_path, text, name="mine.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return check_file(path)[1]


def test_list():
    result = run()
    assert result.exit_code == 0
    for word in ("k7", "AMD K7", "macro-ops", "cortex-m4f", "nrf52832", "174", "apollo3-edge2-board", "not a board"):
        assert word in result.output
    assert max(map(len, result.output.splitlines())) <= 100


def test_list_as_json_and_csv():
    data = json.loads(run("--format", "json").output)
    assert data["schema_version"] == 1
    assert [cpu["name"] for cpu in data["cpus"]] == cpu_names()
    k7 = next(cpu for cpu in data["cpus"] if cpu["name"] == "k7")
    assert (k7["disputed"], k7["rows"]) == (2, k7["confirmed"] + 2 + k7["estimate"])
    assert {chip["chip"]: chip["pJ_per_cycle"] for chip in data["chips"]}["nrf52832"] == 174
    rows = list(csv.DictReader(io.StringIO(run("--format", "csv").output)))
    assert len(rows) == len(data["cpus"]) + len(data["chips"])
    assert {row["kind"] for row in rows} == {"cpu", "chip"}


def test_show():
    result = run("show", "k7")
    assert result.exit_code == 0
    assert "AMD K7 · macro-ops" in result.output
    assert "disputed, latency" in result.output
    assert "1 + 1·N" in run("show", "cortex-m0plus").output
    rows = json.loads(run("show", "cortex-m4f", "--format", "json").output)["rows"]
    assert {"UDIV", "VDIV.F32"} <= {row["operation"] for row in rows}
    text = run("show", "k7", "--format", "csv").output
    assert text == (cpu_folder() / "k7.csv").read_text(encoding="utf-8").partition("\n")[2]


def test_show_of_an_unknown_processor_is_one_sentence(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["cpus", "show", "k8"])
    assert stop.value.code == 2
    assert capsys.readouterr().err.startswith("Error: processor 'k8' is not known (did you mean k7?)")


def test_the_packaged_tables_have_no_faults():
    result = run("check")
    assert result.exit_code == 0, result.output
    files = table_files()
    lines = [line for path in files for line in path.read_text(encoding="utf-8").splitlines()]
    rows = sum(not line.startswith("#") for line in lines) - len(files)  # without the names of the columns
    assert len(files) == len(cpu_names()) + 1 + 3  # processors, chips, radios
    assert result.output == f"{len(files) + 1} files, {rows + 2:,} rows, no faults\n"  # and two published figures


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (",1436,", ",many,", "published.csv:2: cycles 'many' is not a whole number from 1 on"),
        ("msp430,", "msp43,", "published.csv:2: unknown cpu 'msp43'"),
        (",confirmed,", ",sure,", "published.csv:2: unknown status 'sure'"),
        ("value, half", "value half", "published.csv:2: what has no comma"),
        (",cited,", ",", "published.csv:1: not the columns of published cycles"),
    ],
)
def test_faults_of_published_cycles(tmp_path, old, new, fault):
    text = published_file().read_text("utf-8")
    path = tmp_path / "published.csv"
    path.write_text(text.replace(old, new, 1), "utf-8")
    result = run("check", str(path))
    assert result.exit_code == 1 and fault in result.output


def test_radios_are_listed_and_errors_are_numbers():
    data = json.loads(run("--format", "json").output)
    rows = [line for path in radio_files() for line in path.read_text("utf-8").splitlines()[2:]]
    assert len(data["radios"]) == len(rows)
    assert all(isinstance(row["nJ_per_event"], int | float) for row in data["radios"])
    found = [cpu["checked"] for cpu in data["cpus"] if cpu["checked"]]
    assert found and all(isinstance(each[key], float) for each in found for key in ("largest", "mean"))
    shown = run().output
    assert all(row["radio"] in shown for row in data["radios"])


def test_a_sound_file_of_ones_own(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(HEAD + ADD + "\n")
    assert run("check", str(path)).output == "1 file, 1 row, no faults\n"


def test_faults_are_lines_and_exit_code_1(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(HEAD + ADD.replace("manual", "") + "\n" + ADD.replace("ADD", "SUB").replace("1/3", "x") + "\n")
    result = run("check", str(path))
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "mine.csv:3: empty source",
        "mine.csv:4: reciprocal_throughput_cycles: 'x' is not a number",
    ]
    assert result.stderr == "1 file, 2 rows, 2 faults\n"


@pytest.mark.parametrize(
    "row, fault",
    [
        (ADD.replace("ADD,any", ",any"), "empty operation"),
        (ADD.replace("manual", ""), "empty source"),
        (ADD.replace(",1,1,1,", ",,1,1,"), "empty min"),
        (ADD.replace(",1,1,1,", ",1,,1,"), "empty typical"),
        (ADD.replace(",1,1,1,", ",1,1,,"), "empty max"),
        (ADD.replace(",1,1,1,", ",1,1,many,"), "max: 'many' is not a number"),
        (ADD.replace(",1,1,1,", ",2,1,3,"), "min 2, typical 1, max 3 do not ascend"),
        (ADD.replace(",1,1,1,", ",1,4,3,"), "min 1, typical 4, max 3 do not ascend"),
        (ADD.replace(",1,1,1,", ",0,0,0,"), "a cost of zero"),
        (ADD.replace("1,1/3", "5..4,1/3"), "latency_cycles 5..4 does not ascend"),
        (ADD.replace("1/3", "1/0"), "reciprocal_throughput_cycles: '1/0' is not a number"),
        (ADD.replace("any,ADD", "any,PLUS"), "unknown class 'PLUS'"),
        (ADD.replace(",32,", ",31,"), "unknown width '31'"),
        (ADD.replace(",32,", ",,"), "empty width"),
        (ADD.replace(",32,", ",any,"), "a row that prices a class names its widths; only BRANCH may have any"),
        (ADD.replace("32,any", "32,both"), "unknown signedness 'both'; one of any, signed, unsigned"),
        (ADD.replace("cycles", "hours"), "unknown unit 'hours'; one of macro-ops, cycles"),
        (ADD.replace("confirmed", "sure"), "unknown status 'sure'; one of confirmed, disputed, estimate"),
        (ADD.replace("confirmed,", "confirmed,latency"), "status_of 'latency' with status 'confirmed'"),
        (ADD.replace("confirmed,,", "disputed,weight,why"), "status_of 'weight' with status 'disputed'"),
        (ADD.replace("confirmed", "estimate"), "status estimate without a note that says why"),
        (ADD + ",more", "17 cells, not 16"),
    ],
)
def test_each_fault_of_a_row(tmp_path, row, fault):
    assert faults_of(tmp_path, HEAD + row + "\n") == [f"mine.csv:3: {fault}"]


def test_faults_between_rows(tmp_path):
    second = ADD.replace("ADD,any", "ADDS,any")
    assert faults_of(tmp_path, HEAD + f"{ADD}\n{second}\n") == [
        "mine.csv:4: a second row for class ADD 32 signed; the first is line 3",
        "mine.csv:4: a second row for class ADD 32 unsigned; the first is line 3",
    ]
    twin = ADD.replace(",ADD,", ",,")
    assert faults_of(tmp_path, HEAD + f"{ADD}\n{twin}\n") == [
        "mine.csv:4: duplicate of ADD any 32; the first is line 3"
    ]
    other = twin.replace("ADD", "SUB").replace("cycles", "macro-ops")
    assert faults_of(tmp_path, HEAD + f"{ADD}\n{other}\n") == [
        "mine.csv:4: unit macro-ops, where other rows of the table have another"
    ]


def test_faults_against_the_table_that_is_extended(tmp_path):
    (tmp_path / "base.csv").write_text(HEAD + ADD + "\n")
    child = HEAD.replace("Mine\n", "Mine\n# extends: base\n")
    found = faults_of(tmp_path, child + ADD + "\n")
    assert "mine.csv:4: duplicate of ADD any 32; the first is base.csv" in found
    assert "mine.csv:4: a second row for class ADD 32 signed; the first is base.csv" in found
    lost = child.replace("base", "lost")
    (fault,) = faults_of(tmp_path, lost + ADD + "\n")
    assert fault == "mine.csv:1: extends lost, which is no table beside it, nor one of ours"


@pytest.mark.parametrize(
    "text, fault",
    [
        (HEAD.replace("# title: Mine\n", "") + ADD, "mine.csv:1: no title; the first line is `# title: …`"),
        (HEAD.replace("Mine", "Mine\n# colour: red") + ADD, "mine.csv:1: unknown header 'colour'"),
        (HEAD, "mine.csv:2: no rows"),
        (HEAD.replace("status_of,", ""), "mine.csv:2: missing column status_of"),
        (HEAD.replace("note", "remark"), "mine.csv:2: missing column note; unknown column 'remark'"),
    ],
)
def test_faults_of_the_header(tmp_path, text, fault):
    assert faults_of(tmp_path, text) == [fault]


def test_columns_in_another_order(tmp_path):
    (fault,) = faults_of(tmp_path, HEAD.replace("operation,operands", "operands,operation") + ADD)
    assert fault.startswith("mine.csv:2: columns in another order")


def test_a_file_that_is_not_text(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_bytes(b"\xff\xfe\x00")
    (fault,) = check_file(path)[1]
    assert fault.startswith("mine.csv:1: cannot be read")


def test_an_empty_file(tmp_path):
    (fault,) = faults_of(tmp_path, "")
    assert "missing column operation" in fault


@pytest.mark.parametrize(
    "old, new, fault",
    [
        ("58,3.0,64,174", "58,3.0,64,175", "58 uA/MHz at 3.0 V is 174 pJ per cycle, not 175"),
        ("58,3.0,64,174", "58,3.0,64,", "empty pJ_per_cycle"),
        ("58,3.0,64,174", "x,3.0,64,174", "'x' is not a number"),
        ("Cortex-M4F,cortex-m4f,58", "Cortex-M4F,cortex-m9,58", "unknown cpu 'cortex-m9'"),
        (",estimate,secondary,128", ",maybe,secondary,128", "unknown status 'maybe'"),
        ("nrf52840,", "nrf52832,", "duplicate of chip nrf52832; the first is line 2"),
    ],
)
def test_faults_of_the_energy_table(tmp_path, old, new, fault):
    text = energy_file().read_text(encoding="utf-8")
    assert old in text
    found = faults_of(tmp_path, text.replace(old, new, 1), "energy.csv")
    assert any(fault in line for line in found)


@pytest.mark.parametrize("words", [["cpus"], ["cpus", "show", "k7"], ["cpus", "show", "cortex-m0plus"]], ids=" ".join)
def test_eighty_columns_are_enough(words):
    for width in (80, 120):
        lines = CliRunner().invoke(group, words, env={"COLUMNS": str(width)}).stdout.splitlines()
        assert max(map(len, lines)) <= width
        assert not any("…" in line for line in lines)  # no name is cut
