"""What each command locks of its report: the report's own figures, and for `cost` what stands behind them."""

from collections.abc import Mapping
from typing import Any

from sensorsim.errors import InputError
from sensorsim.locking.figures import figures_of
from sensorsim.locking.lock import Taken
from sensorsim.locking.parameters import accuracy_parameters

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
    from sensorsim.export.levels import machine_cost
    from sensorsim.machine.targets import need_firmware_tools

    try:
        need_firmware_tools()
    except InputError as error:
        raise InputError(f"the lock has figures of machine code: {error}") from None
    machine = of_machine(machine_cost(report["n"], report["l"], cores.split(","), variant).to_dict())
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
    """The JSON of `sensorsim kernel`."""
    machine = [price for kernel in report["kernels"].values() for price in kernel["cost"].values()]
    compilers = [str(price["compiler"]) for price in machine if "compiler" in price]
    compilers += [str(row["compiler"]) for kernel in report["kernels"].values() for row in kernel["verified"]]
    return Taken(figures_of(report), toolchain(compilers[0] if compilers else ""))


def cores_for(cpu: str | None, chip: str | None) -> str:
    """The cores whose machine code a lock of `cost` has, with commas: none where the tools are not installed."""
    from sensorsim.cost.prices import load_chip
    from sensorsim.export.levels import target_of
    from sensorsim.machine.targets import need_firmware_tools

    chosen = cpu or (load_chip(chip).cpu if chip else None)
    try:
        need_firmware_tools()
        for name in [chosen] if chosen else CORES:
            target_of(name)
    except InputError:
        return ""
    return chosen or ",".join(CORES)
