"""Register-transfer simulators of open cores: built by Verilator from the cores' own sources, which pip installs.

`pip install pythondata-cpu-ibex pythondata-cpu-cv32e40p`, and Verilator 5 from the system's packages.
"""

import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Core:
    """One configuration of a core: the table that prices it, and how Verilator builds it."""

    table: str
    title: str
    package: str  # of pip, which brings the sources
    bench: str
    options: tuple[str, ...] = ()


LARGE = ("-GBranchTargetALU=1", "-GWritebackStage=1", "+define+MULTIPLIER=RV32MSingleCycle")
CORES = {
    core.table: core
    for core in (
        Core("ibex", "lowRISC Ibex", "pythondata_cpu_ibex", "ibex_bench.sv"),
        Core("ibex-large", "lowRISC Ibex", "pythondata_cpu_ibex", "ibex_bench.sv", LARGE),
        Core("cv32e40p", "OpenHW CV32E40P", "pythondata_cpu_cv32e40p", "cv32e40p_bench.sv"),
    )
}
# Files that must be read before the modules that Verilator finds by their names.
IBEX_FIRST = (
    *(
        f"vendor/lowrisc_ip/ip/prim/rtl/prim_{name}_pkg.sv"
        for name in ("util", "cipher", "count", "mubi", "ram_1p", "secded")
    ),
    "rtl/ibex_pkg.sv",
)
IBEX_FOLDERS = ("rtl", "vendor/lowrisc_ip/ip/prim/rtl")
IBEX_INCLUDE = ("vendor/lowrisc_ip/ip/prim/rtl", "vendor/lowrisc_ip/dv/sv/dv_utils")
CV32E40P_FIRST = (
    *(f"rtl/include/cv32e40p_{name}_pkg.sv" for name in ("apu_core", "fpu")),
    "rtl/include/cv32e40p_pkg.sv",
    "rtl/cv32e40p_register_file_ff.sv",
)
# The cores' sources are not ours to mend. BLKANDNBLK: counters of CV32E40P, which nobody reads here.
SILENT = ("-Wno-fatal", "-Wno-lint", "-Wno-style", "-Wno-UNOPTFLAT", "-Wno-BLKANDNBLK")


def missing(core: Core) -> str:
    """Return, as a sentence, what is not installed; nothing where all is."""
    if shutil.which("verilator") is None:
        return "verilator is not installed (Debian has it)"
    if find_spec(core.package) is None:
        return f"{core.package} is not installed (pip has it)"
    return ""


def version(core: Core) -> str:
    """Return the commit of the core that the package holds, as its `__init__` says."""
    text = Path(_origin(core)).read_text("utf-8")
    return next(line.split('"')[1] for line in text.splitlines() if line.startswith("data_git_describe"))


@cache
def build(core: Core, folder: Path) -> Path:
    """The simulator, built in the folder; it takes about a minute."""
    sources = Path(_origin(core)).with_name("system_verilog")
    ibex = core.package.endswith("ibex")
    first, folders, include = (
        (IBEX_FIRST, IBEX_FOLDERS, IBEX_INCLUDE) if ibex else (CV32E40P_FIRST, ("rtl",), ("rtl/include",))
    )
    own = [HERE / "cells.sv"] if ibex else []
    command = ["verilator", "--cc", "--exe", "--build", "-j", "2", "-O3", "--top-module", "bench", *SILENT]
    command += ["--Mdir", str(folder), "+define+SYNTHESIS", *core.options]
    command += [f"+incdir+{sources / name}" for name in include]
    for name in folders:
        command += ["-y", str(sources / name)]
    command += [str(sources / name) for name in first]
    command += [str(path) for path in (*own, HERE / core.bench, HERE / "bench.cpp")]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"Verilator refused {core.table}: {done.stderr[-2000:]}")
    return folder / "Vbench"


def _origin(core: Core) -> str:
    spec = find_spec(core.package)
    assert spec is not None and spec.origin is not None
    return spec.origin
