"""What a table says of how it was checked, and a table that alters another."""

import json

import pytest
from click.testing import CliRunner

from sensorsim.cli.cpus import command
from sensorsim.cost.prices import cpu_names, load_cpu, read_cpu
from sensorsim.cost.rows import COLUMNS, Checked, read_checked
from sensorsim.cost.tablecheck import check_file
from sensorsim.errors import InputError

LINE = "a simulation, clang 22 -O2; 36 kernels, largest error 24.7 % (dpsgd), mean error 1.0 %"
ADD = 'ADD,"r,r",ADD,32,any,cycles,1,1,1,,,,manual,confirmed,,'
MUL = 'MUL,"r,r",MUL,32,any,cycles,3,3,3,,,,manual,confirmed,,'


def table(path, *lines, headers=()):
    path.write_text("\n".join(["# title: Mine", *headers, ",".join(COLUMNS), *lines]) + "\n", encoding="utf-8")
    return path


def test_what_the_line_says():
    assert read_checked(LINE) == Checked("a simulation, clang 22 -O2", 36, "24.7", "dpsgd", "1.0")
    assert read_checked(LINE.replace(" (dpsgd)", "")).worst == ""
    assert read_checked("a; b; 1 kernel, largest error 0 %, mean error 0 %").against == "a; b"
    assert read_checked("never") is read_checked("") is None


@pytest.mark.parametrize(
    "text",
    [
        "yes",
        LINE.replace("36", "0"),
        LINE.replace("24.7 %", "24.7"),
        LINE.replace("24.7", "-24.7"),
        LINE.replace("a simulation, clang 22 -O2; ", ""),
        LINE.replace("mean error 1.0 %", "mean error 24.8 %"),  # a mean is never above the largest
        LINE + ".",
    ],
)
def test_any_other_form_is_a_fault(text, tmp_path):
    with pytest.raises(ValueError):
        read_checked(text)
    path = table(tmp_path / "mine.csv", ADD, headers=[f"# checked: {text}"])
    (fault,) = check_file(path)[1]
    assert fault.startswith("mine.csv:1: checked: ")
    with pytest.raises(InputError, match="cpus check"):
        read_cpu(path)


def test_a_table_with_the_line(tmp_path):
    path = table(tmp_path / "mine.csv", ADD, headers=[f"# checked: {LINE}"])
    assert check_file(path) == (1, [])
    assert read_cpu(path).checked.kernels == 36
    assert read_cpu(table(path, ADD)).checked is None


def test_the_configuration(tmp_path):
    path = table(tmp_path / "mine.csv", ADD, headers=["# configuration: single-cycle multiplier"])
    assert check_file(path) == (1, [])
    assert read_cpu(path).configuration == "single-cycle multiplier"
    assert read_cpu(table(path, ADD)).configuration == ""
    for text in ("", "small.", "x" * 121):
        (fault,) = check_file(table(path, ADD, headers=[f"# configuration: {text}"]))[1]
        assert fault.startswith("mine.csv:1: configuration: ")
        with pytest.raises(InputError, match="cpus check"):
            read_cpu(path)


def test_the_tables_name_theirs():
    """Every core but the paper's, which is one chip, is built in several ways."""
    assert [name for name in cpu_names() if not load_cpu(name).configuration] == ["k7"]
    assert "single-cycle multiplier" in load_cpu("cortex-m0plus").configuration
    assert load_cpu("cortex-m4f").configuration.startswith("floating-point unit")
    assert "writeback stage" in load_cpu("ibex-large").configuration != load_cpu("ibex").configuration


def test_a_table_that_alters_another(tmp_path):
    table(tmp_path / "base.csv", ADD, MUL)
    path = table(tmp_path / "mine.csv", MUL.replace("3,3,3", "1,1,1"), headers=["# alters: base"])
    assert check_file(path) == (1, [])
    cpu = read_cpu(path)
    assert [row.operation for row in cpu.rows] == ["ADD", "MUL"]
    assert cpu.instruction("MUL", "r,r", 32).max == cpu.price("MUL", 32, False, "native").max == 1
    # A row for the same class under another name is still a second one.
    other = table(path, MUL.replace("MUL,", "TIMES,", 1), headers=["# alters: base"])
    assert any("a second row for class MUL 32" in fault for fault in check_file(other)[1])
    lost = table(path, MUL, headers=["# alters: lost"])
    assert check_file(lost)[1] == ["mine.csv:1: alters lost, which is no table beside it, nor one of ours"]
    both = table(path, headers=["# alters: base", "# extends: base"])
    assert any("extends one table and alters another" in fault for fault in check_file(both)[1])


def test_the_commands_show_it():
    data = json.loads(CliRunner().invoke(command, ["--format", "json"]).output)
    found = {cpu["name"]: cpu["checked"] for cpu in data["cpus"]}
    assert {cpu["name"]: cpu["configuration"] for cpu in data["cpus"]} == {
        name: load_cpu(name).configuration for name in cpu_names()
    }
    text = CliRunner().invoke(command, []).output
    assert max(map(len, text.splitlines())) <= 100
    for name in cpu_names():
        checked = load_cpu(name).checked
        assert (found[name] is None) == (checked is None)
        if checked:
            numbers = {"largest": float(checked.largest), "mean": float(checked.mean)}
            assert found[name] == {**checked._asdict(), **numbers}
        (line,) = (line for line in text.splitlines() if line.split()[:1] == [name])
        assert line.rstrip().endswith(f"{checked.largest} %" if checked else "–")
    shown = " ".join(CliRunner().invoke(command, ["show", "ibex"]).output.split())
    assert load_cpu("ibex").checked.against in shown
    assert "never compared" in CliRunner().invoke(command, ["show", "k7"]).output


@pytest.mark.parametrize("name", ["ibex", "ibex-large", "cv32e40p"])
def test_open_cores_were_checked(name):
    assert "register-transfer simulation" in load_cpu(name).checked.against
