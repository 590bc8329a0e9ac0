"""The machine level of `sensorsim cost`: three levels that speak of the same record."""

import json

import pytest

from sensorsim.cli import main
from sensorsim.cost.report import cost
from sensorsim.errors import InputError
from sensorsim.export.levels import GROUPS, machine_cost, target_of
from sensorsim.machine.decode import CLASSES


@pytest.fixture(scope="module")
def report():
    return machine_cost(14, 7, ["cortex-m4"], variant="paper")


def test_levels_agree_with_where_they_come_from(report):
    spof, dpsgd = report.cases
    assert spof.paper == cost(cpu="cortex-m4").mechanisms["spof"].printed.total
    full = cost(cpu="cortex-m4", accounting="full", width=32).mechanisms["dpsgd"].traced
    assert dpsgd.kernel.total == pytest.approx(sum(dpsgd.kernel.costs.values())) == full.total
    for case in report.cases:
        assert case.instructions == sum(case.machine.counts.values())
        assert case.machine.total == pytest.approx(sum(case.machine.costs.values()))
    assert dpsgd.kernel.counts["divide"] == dpsgd.machine.counts["divide"] == 14 + 7 + 1 + 14
    assert spof.machine.counts["store"] >= 14 * 7 + 2 * 14


def test_every_operation_class_has_a_machine_class():
    from sensorsim.cost.rows import CLASSES as OPERATIONS

    assert {name for name in OPERATIONS if not name.startswith("F")} <= set(GROUPS)
    assert set(GROUPS.values()) <= set(CLASSES)


def test_energy_and_battery():
    report = machine_cost(14, 7, [], "lean", chip="nrf52832", battery_mah=100)
    case = report.cases[0]
    assert case.cpu == "cortex-m4f"
    assert case.nanojoule == pytest.approx(case.machine.total * 174.0 / 1000)  # 58 uA/MHz at 3.0 V is 174 pJ a cycle
    assert case.records_per_charge == pytest.approx(100 * 3.6 * 3.0 / (case.nanojoule * 1e-9))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cpu", "avr"], "no machine code for avr"),
        (["--cpu", "z80"], "processor 'z80' is not known|no machine code for z80"),
        (["--battery-mah", "100"], "needs --chip"),
        (["--chip", "nrf52832", "--battery-mah", "-1"], "above 0"),
        (["--sweep", "n=1:3"], "takes --n, --l"),
        (["--l", "20"], "larger than n"),
    ],
)
def test_bad_input(arguments, message, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["cost", "--level", "machine", *arguments])
    assert caught.value.code == 2
    import re

    assert re.search(message, capsys.readouterr().err)


def test_targets_by_either_name():
    assert target_of("ibex").name == target_of("rv32imc").name == "rv32imc"
    assert target_of("cortex-m4f").name == "cortex-m4"
    with pytest.raises(InputError, match="no machine code"):
        target_of("avr")


def test_table_json_and_figure(tmp_path, capsys):
    choices = ["cost", "--level", "machine", "--cpu", "cortex-m3", "--variant", "paper"]
    main([*choices, "--plot", str(tmp_path / "levels.svg")])
    text = capsys.readouterr().out
    assert "operations of the kernel → instructions executed" in text
    assert max(map(len, text.splitlines())) <= 120
    assert "wide multiply" not in text or "→" in text
    assert (tmp_path / "levels.svg").stat().st_size > 5000
    main([*choices, "--format", "json"])
    assert json.loads(capsys.readouterr().out)["schema_version"] == 1
