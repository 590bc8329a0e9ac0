"""`sensorsim cpus`: the list, one table, and the check of files."""

import csv
import io
import json

from click.testing import CliRunner

from sensorsim.commands.program import group
from sensorsim.costing.chips import radio_files
from sensorsim.costing.prices import cpu_folder, cpu_names, load_cpu

HEAD = (
    "# title: Mine\noperation,operands,class,width,signedness,unit,min,typical,max,per_register,latency_cycles,"
    "reciprocal_throughput_cycles,source,status,status_of,note\n"
)
ADD = "ADD,any,ADD,32,any,cycles,1,1,1,,1,1/3,manual,confirmed,,"


def run(*args):
    return CliRunner().invoke(group, ["cpus", *args])


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


def test_radios_are_listed_and_errors_are_numbers():
    data = json.loads(run("--format", "json").output)
    rows = [line for path in radio_files() for line in path.read_text("utf-8").splitlines()[2:]]
    assert len(data["radios"]) == len(rows)
    assert all(isinstance(row["nJ_per_event"], int | float) for row in data["radios"])
    found = [cpu["checked"] for cpu in data["cpus"] if cpu["checked"]]
    assert found and all(isinstance(each[key], float) for each in found for key in ("largest", "mean"))
    shown = run().output
    assert all(row["radio"] in shown for row in data["radios"])


def test_the_commands_show_how_a_table_was_checked():
    found = {cpu["name"]: cpu for cpu in json.loads(run("--format", "json").output)["cpus"]}
    lines = {line.split()[0]: line.rstrip() for line in run().output.splitlines() if line.split()}
    for name in cpu_names():
        cpu = load_cpu(name)
        assert found[name]["configuration"] == cpu.configuration
        assert (found[name]["checked"] is None) == (cpu.checked is None)
        assert lines[name].endswith(f"{cpu.checked.largest} %" if cpu.checked else "–")
    assert load_cpu("ibex").checked.against in " ".join(run("show", "ibex").output.split())
    assert "never compared" in run("show", "k7").output


def test_faults_are_lines_and_exit_code_1(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(HEAD + ADD.replace("manual", "") + "\n" + ADD.replace("ADD", "SUB").replace("1/3", "x") + "\n")
    result = run("check", str(path))
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "mine.csv:3: empty source",
        "mine.csv:4: reciprocal_throughput_cycles: 'x' is not a number; write it like 4, 0.5 or 1/3",
        "1 file, 2 rows, 2 faults",
    ]
