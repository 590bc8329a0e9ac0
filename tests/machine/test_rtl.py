"""The tables of Ibex and CV32E40P beside the cores themselves, simulated from their register-transfer descriptions.

Needs Verilator and the packages that bring the cores' sources: see rtl/simulator.py.
"""

import pytest
from rtl.comparing import compare
from rtl.instructions import measured
from rtl.simulator import CORES, build, missing, version

from sensorsim.costing.prices import load_cpu
from sensorsim.machine.targets import SHOWN_FLAGS, compiler_version

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=list(CORES))
def core(request):
    core = CORES[request.param]
    if why := missing(core):
        pytest.skip(why)
    return core


@pytest.fixture(scope="module")
def simulator(core, tmp_path_factory):
    return build(core, tmp_path_factory.mktemp(core.table))


def test_every_row_is_what_the_core_takes(core, simulator, tmp_path):
    rows = load_cpu(core.table).rows
    found = list(measured(simulator, list(rows), tmp_path))
    assert [(row.operation, cell, cycles) for row, cell, cycles in found if getattr(row, cell) != cycles] == []
    # A row is called confirmed by the simulation exactly where it was measured.
    simulated = {row.operation for row in rows if f"simulation of {core.title} {version(core)}" in row.source}
    assert simulated == {row.operation for row, _, _ in found}


def test_the_header_says_how_far_off_the_table_is(core, simulator, tmp_path):
    cpu = load_cpu(core.table)
    said = cpu.checked
    assert said is not None
    for what, own in (("core", version(core)), ("compiler", compiler_version()), ("flags", SHOWN_FLAGS)):
        if own not in said.against:
            pytest.skip(f"{cpu.path.name} was checked with another {what} than {own}")
    made = compare(simulator, cpu, tmp_path)
    errors = {one.name: abs(one.error) for one in made}
    worst = max(errors, key=lambda name: errors[name])
    mean = sum(errors.values()) / len(errors)
    assert said.kernels == len(made)
    assert (said.largest, said.mean) == (f"{errors[worst]:.1f}", f"{mean:.1f}")
    if said.worst:
        assert said.worst == worst
