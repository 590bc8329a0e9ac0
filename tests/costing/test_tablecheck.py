"""The checker of tables finds each kind of fault with its line and column, and none in the packaged tables."""

import csv
import io

import pytest

from sensorsim._util.errors import InputError
from sensorsim.costing.chips import (
    ANY,
    CHIP_SCHEMA,
    PUBLISHED_SCHEMA,
    RADIO_SCHEMA,
    SCHEMAS,
    check_file,
    energy_file,
    load_published,
    load_radios,
    published_file,
    radio_files,
    table_files,
)
from sensorsim.costing.prices import CPU_SCHEMA, Checked, cpu_folder, parse_checked, read_cpu

HEAD = f"# title: Mine\n{','.join(CPU_SCHEMA.names)}\n"
ADD = 'ADD,"r,r",ADD,32,any,cycles,1,1,1,,1,1/3,manual,confirmed,,'
MUL = ADD.replace("ADD", "MUL").replace("1,1,1", "3,3,3")
CHECKED = "a simulation, clang 22 -O2; 36 kernels, largest error 24.7 % (dpsgd), mean error 1.0 %"


def faults_of(tmp_path, text, name="mine.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return check_file(path)[1]


def headed(*headers):
    return HEAD.replace("Mine\n", "".join(["Mine\n", *(f"# {header}\n" for header in headers)]))


def test_the_packaged_tables_have_no_faults():
    results = {path.name: check_file(path) for path in table_files()}
    assert {name: faults for name, (_, faults) in results.items() if faults} == {}
    assert all(rows for rows, _ in results.values())
    assert {path.parent for path in table_files()} == {cpu_folder(), energy_file().parent, radio_files()[0].parent}


def test_radios_name_their_owners_and_published_cycles_their_case():
    radios = load_radios()
    owners = {radio.radio: radio.owner for radio in radios if radio.chip == ANY}
    assert owners.keys() == {radio.radio for radio in radios}
    assert all(owner.startswith(("a ", "an ")) for owner in owners.values())
    assert all(", " in row.what for row in load_published("msp430"))


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("ADD,", ",", "empty operation"),
        ("manual", "", "empty source"),
        (",1,1,1,", ",,1,1,", "empty min"),
        (",1,1,1,", ",1,1,many,", "max: 'many'"),
        (",1,1,1,", ",2,1,3,", "min 2, typical 1, max 3"),
        (",1,1,1,", ",0,0,0,", "zero"),
        ("1,1/3", "5..4,1/3", "latency_cycles: 5..4"),
        ("1/3", "1/0", "reciprocal_throughput_cycles: '1/0'"),
        (",ADD", ",PLUS", "class: 'PLUS'"),
        (",32,", ",31,", "width: '31'"),
        (",32,", ",,", "empty width"),
        (",32,", ",any,", "widths"),
        ("32,any", "32,both", "signedness: 'both'"),
        ("cycles", "hours", "unit: 'hours'"),
        ("confirmed", "sure", "status: 'sure'"),
        ("confirmed,", "confirmed,latency", "status_of"),
        ("confirmed,,", "disputed,weight,why", "status_of: 'weight'"),
        ("confirmed", "estimate", "note"),
        (",confirmed,,", ",confirmed,,,more", "17 cells"),
    ],
)
def test_each_fault_of_a_row(tmp_path, old, new, fault):
    assert old in ADD
    (found,) = faults_of(tmp_path, HEAD + ADD.replace(old, new, 1) + "\n")
    assert found.startswith("mine.csv:3: ") and fault in found


def test_faults_between_rows(tmp_path):
    second = ADD.replace("ADD,", "ADDS,", 1)
    assert faults_of(tmp_path, HEAD + f"{ADD}\n{second}\n") == [
        "mine.csv:4: a second row for class ADD 32 signed; the first is line 3",
        "mine.csv:4: a second row for class ADD 32 unsigned; the first is line 3",
    ]
    twin = ADD.replace(",ADD,", ",,")
    (fault,) = faults_of(tmp_path, HEAD + f"{ADD}\n{twin}\n")
    assert fault.startswith("mine.csv:4: duplicate of ADD r,r 32")
    (fault,) = faults_of(tmp_path, HEAD + f"{ADD}\n{twin.replace('ADD', 'SUB').replace('cycles', 'macro-ops')}\n")
    assert fault.startswith("mine.csv:4: unit macro-ops")


def test_a_table_that_extends_another(tmp_path):
    (tmp_path / "base.csv").write_text(HEAD + ADD + "\n")
    assert faults_of(tmp_path, headed("extends: base") + MUL + "\n") == []
    assert [row.operation for row in read_cpu(tmp_path / "mine.csv").rows] == ["ADD", "MUL"]
    found = faults_of(tmp_path, headed("extends: base") + ADD + "\n")
    assert len(found) == 3 and all(fault.startswith("mine.csv:4: ") and "base.csv" in fault for fault in found)


def test_a_table_that_alters_another(tmp_path):
    (tmp_path / "base.csv").write_text(HEAD + f"{ADD}\n{MUL}\n")
    assert faults_of(tmp_path, headed("alters: base") + MUL.replace("3,3,3", "1,1,1") + "\n") == []
    cpu = read_cpu(tmp_path / "mine.csv")
    assert [row.operation for row in cpu.rows] == ["ADD", "MUL"]
    assert cpu.instruction("MUL", "r,r", 32).max == cpu.price("MUL", 32, False, "native").max == 1
    # A row for the same class under another name is still a second one.
    other = faults_of(tmp_path, headed("alters: base") + MUL.replace("MUL,", "TIMES,", 1) + "\n")
    assert any("a second row for class MUL 32" in fault for fault in other)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (HEAD.partition("\n")[2] + ADD, "1: no title"),
        (headed("colour: red") + ADD, "1: unknown header 'colour'"),
        (headed("extends: lost") + ADD, "1: extends lost"),
        (headed("alters: lost") + ADD, "1: alters lost"),
        (headed("alters: k7", "extends: k7") + ADD.replace("cycles", "macro-ops"), "1: extends one table and alters"),
        (HEAD, "2: no rows"),
        (HEAD.replace("status_of,", ""), "2: missing column status_of"),
        (HEAD.replace("note", "remark"), "2: missing column note; unknown column 'remark'"),
        (HEAD.replace("operation,operands", "operands,operation") + ADD, "2: columns in another order"),
        ("", "1: missing column operation"),
    ],
)
def test_faults_of_the_header(tmp_path, text, fault):
    assert any(found.startswith(f"mine.csv:{fault}") for found in faults_of(tmp_path, text))


def test_a_file_that_is_not_text(tmp_path):
    (tmp_path / "mine.csv").write_bytes(b"\xff\xfe\x00")
    (fault,) = check_file(tmp_path / "mine.csv")[1]
    assert fault.startswith("mine.csv:1: cannot be read")


def test_how_a_table_was_checked(tmp_path):
    assert parse_checked(CHECKED) == Checked("a simulation, clang 22 -O2", 36, "24.7", "dpsgd", "1.0")
    assert parse_checked(CHECKED.replace(" (dpsgd)", "")).worst == ""
    assert parse_checked("a; b; 1 kernel, largest error 0 %, mean error 0 %").against == "a; b"
    assert parse_checked("never") is parse_checked("") is None
    assert faults_of(tmp_path, headed(f"checked: {CHECKED}", "configuration: slow") + ADD) == []
    cpu = read_cpu(tmp_path / "mine.csv")
    assert cpu.checked == parse_checked(CHECKED) and cpu.configuration == "slow"


@pytest.mark.parametrize(
    ("old", "new"),
    [(CHECKED, "yes"), ("36", "0"), ("24.7 %", "24.7"), ("24.7", "-24.7"), ("1.0 %", "1.0 %.")],
)
def test_any_other_form_is_a_fault(tmp_path, old, new):
    """A mean above the largest error is one too."""
    (fault,) = faults_of(tmp_path, headed(f"checked: {CHECKED.replace(old, new)}") + ADD)
    assert fault.startswith("mine.csv:1: checked: ")
    with pytest.raises(InputError, match="cpus check"):
        read_cpu(tmp_path / "mine.csv")


OTHERS = {CHIP_SCHEMA: energy_file(), RADIO_SCHEMA: cpu_folder().parent / "radio" / "ble.csv",
          PUBLISHED_SCHEMA: published_file()}  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "column", "cell", "fault"),
    [
        (CHIP_SCHEMA, "pJ_per_cycle", "175", "pJ_per_cycle is 175"),
        (CHIP_SCHEMA, "pJ_per_cycle", "", "empty pJ_per_cycle"),
        (CHIP_SCHEMA, "uA_per_MHz", "x", "uA_per_MHz: 'x'"),
        (CHIP_SCHEMA, "uA_per_MHz", "0", "above 0"),
        (CHIP_SCHEMA, "cpu", "cortex-m9", "unknown cpu 'cortex-m9'"),
        (CHIP_SCHEMA, "status", "maybe", "status: 'maybe'"),
        (CHIP_SCHEMA, "trng_nJ_per_word", "7", "trng_nJ_per_word is 7"),
        (CHIP_SCHEMA, "trng_mA", "", "empty trng_mA"),
        (CHIP_SCHEMA, "trng_status", "none", "trng_us_per_word without trng_status"),
        (CHIP_SCHEMA, "trng_status", "perhaps", "trng_status: 'perhaps'"),
        (CHIP_SCHEMA, "store", "paper", "store: 'paper'"),
        (CHIP_SCHEMA, "store_status", "", "store without store_status"),
        (CHIP_SCHEMA, "store_note", "", "store_status estimate without a note"),
        (CHIP_SCHEMA, "store_us_per_word", "fast", "store_us_per_word: 'fast'"),
        (CHIP_SCHEMA, "erase_nJ", "1", "erase_nJ is 1"),
        (CHIP_SCHEMA, "page_bytes", "0", "page_bytes and erase_us"),
        (RADIO_SCHEMA, "nJ_per_byte", "128.2", "nJ_per_byte is 128.2"),
        (RADIO_SCHEMA, "nJ_per_event", "9267", "nJ_per_event is 9267"),
        (RADIO_SCHEMA, "max_payload_bytes", "22.5", "max_payload_bytes: '22.5'"),
        (RADIO_SCHEMA, "duty_percent", "101", "duty_percent 101"),
        (RADIO_SCHEMA, "chip", "nrf5283", "unknown chip 'nrf5283'"),
        (RADIO_SCHEMA, "chip", "nrf52840", "a second row for ble-1m of nrf52840"),
        (RADIO_SCHEMA, "start_us", "x", "start_us: 'x'"),
        (RADIO_SCHEMA, "status", "confirmed", ""),
        (PUBLISHED_SCHEMA, "cycles", "many", "cycles: 'many'"),
        (PUBLISHED_SCHEMA, "cpu", "msp43", "unknown cpu 'msp43'"),
        (PUBLISHED_SCHEMA, "status", "sure", "status: 'sure'"),
    ],
)
def test_faults_of_the_other_tables(tmp_path, schema, column, cell, fault):
    """One cell of the first row changes; a row is found faulty where a change makes it so."""
    header, _, rest = OTHERS[schema].read_text("utf-8").rpartition(schema.names[0] + "," + schema.names[1])
    rows = list(csv.reader(io.StringIO(schema.names[0] + "," + schema.names[1] + rest)))
    rows[1][schema.names.index(column)] = cell
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    found = faults_of(tmp_path, header + text.getvalue())
    assert any(fault in line for line in found) if fault else not found, found


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=lambda schema: schema.title)
def test_columns_of_another_table_are_a_fault(tmp_path, schema):
    names = [*schema.names[:-1], "remark"]
    (fault,) = faults_of(tmp_path, ",".join(names) + "\n")
    assert fault == f"mine.csv:1: missing column {schema.names[-1]}; unknown column 'remark'"
