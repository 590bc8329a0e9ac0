"""What each command locks of its report: the report's own figures, and for `cost` what stands behind them."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sensorsim.errors import InputError
from sensorsim.locking.figures import figures_of
from sensorsim.locking.lock import Taken
from sensorsim.locking.parameters import accuracy_parameters

if TYPE_CHECKING:
    from sensorsim.cost.kernel_report import KernelReport

CORES = ("cortex-m0plus", "cortex-m4", "ibex")  # of sensors, one of each kind of code: some seconds for all three

# What stands at the top of the JSON of `cost` as well as among the choices.
COST_CHOICES = {"n", "l", "m", "cpu", "metric", "width", "signed", "accounting", "chip", "battery_mah"}


def toolchain(compiler: str = "", flags: str = "") -> dict[str, str]:
    """What counted; the compiler where machine code was counted."""
    from sensorsim import __version__

    made = {"sensorsim": __version__, "compiler": compiler, "flags": flags}
    return {name: text for name, text in made.items() if text}


def of_cost(report: Mapping[str, Any], variant: str, cores: str) -> Taken:
    """The JSON of `sensorsim cost`, accuracy parameters, and the machine code of every mechanism on the cores."""
    figures = figures_of(report, COST_CHOICES)
    if not cores:
        return Taken(figures | accuracy_parameters(report["n"]), toolchain())
    from sensorsim.export.sensor_package import default_sensor_costs
    from sensorsim.machine.machine_cost import machine_cost
    from sensorsim.machine.targets import need_firmware_tools

    try:
        need_firmware_tools()
    except InputError as error:
        raise InputError(f"the lock has figures of machine code: {error}") from None
    measured = machine_cost(report["n"], report["l"], cores.split(","), variant, sensor=default_sensor_costs)
    machine = of_machine(measured.to_dict())
    return Taken(figures | machine.figures, machine.toolchain)


def of_machine(report: Mapping[str, Any]) -> Taken:
    """The JSON of `sensorsim cost --level machine`, cycles and bytes of the compiled code, and accuracy parameters."""
    found = figures_of(report, COST_CHOICES, leave={"kernel", "counts", "paper_width"})
    figures = {f"machine/{name}": figure for name, figure in found.items()}
    return Taken(figures | accuracy_parameters(report["n"]), toolchain(report["compiler"], report["flags"]))


def of_verify(report: Mapping[str, Any]) -> Taken:
    """The JSON of `sensorsim verify`."""
    return Taken(figures_of(report), toolchain(report["compiler"], report["flags"]))


def of_kernel(report: Mapping[str, Any]) -> Taken:
    """The JSON of `sensorsim kernel`; below `machine`, what its lock has beside: the machine code on the cores."""
    own = {name: part for name, part in report.items() if name != "machine"}
    beside = report.get("machine", {})
    machine = {f"machine/{name}": figure for name, figure in figures_of(beside).items()}
    ran = [price for kernel in report["kernels"].values() for price in kernel["cost"].values()]
    ran += [part for kernels in beside.values() for part in kernels.values()]
    ran += [row for kernel in report["kernels"].values() for row in kernel["verified"]]
    compilers = dict.fromkeys(str(part["compiler"]) for part in ran if "compiler" in part)
    return Taken(figures_of(own) | machine, toolchain("; ".join(compilers)))


def with_machine_code(
    data: dict[str, Any],
    reports: Mapping[str, "KernelReport"],
    cpus: Sequence[str],
    level: str,
    choose: Callable[[str, Callable[[], str]], str],
) -> dict[str, Any]:
    """The JSON of `sensorsim kernel` for its lock, which has figures of the machine code at either level."""
    if level == "machine":
        return data
    return data | {"machine": _on_cores(reports, choose("cores", lambda: _cores_of(cpus)))}


def _on_cores(reports: Mapping[str, "KernelReport"], cores: str) -> dict[str, dict[str, Any]]:
    """By core and kernel: instructions, cycles, flash, RAM and stack of one call; of kernels that are proved."""
    from sensorsim.machine.machine_cost import count_kernel
    from sensorsim.machine.targets import need_firmware_tools

    if not cores:
        return {}
    try:
        need_firmware_tools()
    except InputError as error:
        raise InputError(f"the lock has figures of machine code: {error}") from None
    proved = {name: report for name, report in reports.items() if report.proof is not None}
    return {
        core: {name: _with_unit(count_kernel(each.kernel, each.at, core), core) for name, each in proved.items()}
        for core in cores.split(",")
    }


def _with_unit(found: dict[str, Any], core: str) -> dict[str, Any]:
    from sensorsim.cost.prices import load_cpu

    if not found:
        raise InputError(f"there is no machine code for {core[:40]}; write the lock anew.")
    return {"unit": load_cpu(core).unit, **found}


def _cores_of(cpus: Sequence[str]) -> str:
    """Those of the processors that machine code is made for, with commas; none where the tools are not installed.

    The paper's processor alone, which is nobody's choice of a sensor, stands for the usual cores.
    """
    from sensorsim.machine.machine_cost import find_target
    from sensorsim.machine.targets import need_firmware_tools

    found = []
    for name in CORES if list(cpus) == ["k7"] else cpus:
        try:
            need_firmware_tools()
            find_target(name)
            found.append(name)
        except InputError:
            continue
    return ",".join(found)


def cores_for(cpu: str | None, chip: str | None) -> str:
    """The cores whose machine code a lock of `cost` has, with commas: none where the tools are not installed."""
    from sensorsim.cost.chips import load_chip
    from sensorsim.machine.machine_cost import find_target
    from sensorsim.machine.targets import need_firmware_tools

    chosen = cpu or (load_chip(chip).cpu if chip else None)
    try:
        need_firmware_tools()
        for name in [chosen] if chosen else CORES:
            find_target(name)
    except InputError:
        return ""
    return chosen or ",".join(CORES)
