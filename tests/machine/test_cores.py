"""Adding a core takes a table of prices and one object: every command then knows it."""

import shutil

import pytest
from click.testing import CliRunner
from sensorsim.tables import folder

from sensorsim.codegen.kernels_package import make_package
from sensorsim.codegen.manifest import open_package
from sensorsim.codegen.package_options import Options
from sensorsim.codegen.write import write_folder
from sensorsim.commands.program import group
from sensorsim.costing import prices
from sensorsim.language import secrecy
from sensorsim.machine import targets
from sensorsim.verification.bits import Effort, Work

TABLE = """# title: Cortex-M0+ with a multiplier that ends early
# alters: cortex-m0plus
operation,operands,class,width,signedness,unit,min,typical,max,per_register,latency_cycles,reciprocal_throughput_cycles,source,status,status_of,note
MUL,any,MUL,8/16/32,any,cycles,1,32,32,,,,made up,estimate,,
"""
CORE = targets.Target("made-up", "made up", targets.ARM, "cortex_m0plus", "made-up", model="CORTEX_M0")
KERNEL = """from sensorsim.language import Q, kernel, mulu
X = Q("x", "u32", 0, 0, 9, ""{secret})
Y = Q("y", "u32", 0, 0, 81, "")
@kernel()
def square(x: X) -> Y:
    return mulu(x, x)
"""


@pytest.fixture
def made_up(tmp_path, monkeypatch):
    shutil.copytree(folder() / "cpu", tmp_path / "cpu")
    (tmp_path / "cpu" / "made-up.csv").write_text(TABLE, "utf-8")
    for module in (prices, secrecy):
        monkeypatch.setattr(module, "folder", lambda: tmp_path)
    for known in (targets.COUNTED, targets.TARGETS, targets.CORES):
        monkeypatch.setitem(known, CORE.name, CORE)
    secrecy.uneven_cores.cache_clear()
    yield tmp_path
    secrecy.uneven_cores.cache_clear()


def verified(tmp_path, secret):
    """The kernel and what `verify` says of it there; in this process, as others would not know the core."""
    (tmp_path / "square.py").write_text(KERNEL.format(secret=secret), "utf-8")
    write_folder(tmp_path / "c", make_package(Options((f"{tmp_path}/square.py:square",))))
    work = Work(open_package(tmp_path / "c"), tmp_path, Effort(host=100, core=60, edges=16), 0)
    (kernel,) = work.package.kernels
    return kernel, work.on_core(targets.CORES["made-up"], kernel)


def test_a_table_and_an_object_make_a_core(made_up):
    words = ["cost", "--level", "machine", "--cpu", "made-up", "--n", "1", "--l", "1", "--variant", "paper"]
    done = CliRunner().invoke(group, words)
    assert done.exit_code == 0 and "made-up" in done.output
    assert targets.check_targets(["made-up"]) == ["made-up"]
    assert verified(made_up, "")[1].passed


def test_the_table_says_which_operations_take_longer_for_some_operands(made_up):
    kernel, result = verified(made_up, ", secret=True")
    assert "the time of `mulu` depends on a secret operand on made-up," in kernel.secrecy().verdict
    assert not result.passed and result.operations[0].text("cycles") == "1 multiplication (1–32 cycles)"
