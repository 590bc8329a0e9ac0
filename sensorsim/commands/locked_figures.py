"""Collect the figures that a lock of each command holds.

A report's JSON is flattened: each number is named by its path. A lock of `cost` also has the parameters that decide
how accurate a record is, and locks of `cost` and `kernel` have the machine code on sensor cores.
"""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError
from sensorsim.commands.lock_file import Figure, Taken, Value

if TYPE_CHECKING:
    from sensorsim.costing.kernel_report import KernelReport

CORES = ("cortex-m0plus", "cortex-m4", "ibex")  # of sensors, one of each kind of code: seconds for all three
# Keys at the top of the JSON of `cost` that are choices.
COST_CHOICES = {"n", "l", "m", "cpu", "metric", "width", "signed", "accounting", "chip", "battery_mah"}
DIGITS = 12  # of a float: more than any figure here means, fewer than machines may differ in
# Keys that are no figures: text for readers, choices and toolchain, what follows from other figures, other choices.
LEFT_OUT = {
    *("schema_version", "title", "about", "notes", "estimates", "table_notes", "machine_notes", "machine_text"),
    *("verdict", "findings", "exceptions", "varying", "moving", "folder", "image", "file", "line", "lines", "seconds"),
    *("unit", "cost_unit", "compiler", "gcc", "flags", "level", "costs", "classes", "machine_classes"),
    *("total_all_users", "share_percent", "uJ_per_day", "missing", "unsettled", "variant", "chip_given"),
    *("printed_by_operands", "break_even_division", "published"),
}
TRANSPARENT = {"mechanisms", "results", "cases", "machine", "kernels"}  # keys that every path would begin with
IDENTIFY = ("kernel", "cpu", "target", "mechanism", "call", "part", "name")  # keys that identify items of a list
PRICED = {"typical", "min", "max", "price", "paper", "machine_cost", "machine_worst_case", "by_data"}
UNITS = {"bytes": "bytes", "bits": "bits", "percent": "%", "nanojoule": "nJ", "instructions": "instructions"}
UNITS |= {name: name for name in ("cycles", "pJ", "nJ", "uJ", "mJ", "mAh", "us", "ms")}
# How many levels below these keys have names that users choose, so that any word may be one.
NAMED_BY_USERS = {"counts": 2, **dict.fromkeys(("steps", "parts", "operations", "formula", "formula_otherwise"), 1)}
NAMED_BY_USERS |= dict.fromkeys(("kernels", "mechanisms", "cost", "at", "lengths"), 1)
OF_ALL_BELOW = {"operations", "counts", "instructions", "price", "saving_percent"}  # decide the unit of their parts

Figures = dict[str, Figure]


# ---- flatten a report


def figures_of(report: Mapping[str, Any], choices: Set[str] = frozenset(), leave: Set[str] = frozenset()) -> Figures:
    """Return the figures of a report's JSON without the choices at its top, and without keys in `leave` anywhere."""
    found: Figures = {}
    own = {name: part for name, part in report.items() if name not in choices}
    for name, figure in _walk(own, "", "", str(report.get("unit", "")), LEFT_OUT | leave):
        if name in found:
            raise RuntimeError(f"two figures are called {name}")
        found[name] = figure
    return found


def _walk(node: Any, path: str, key: str, unit: str, leave: Set[str], free: int = 0) -> Iterator[tuple[str, Figure]]:
    """Yield every leaf below the node; `unit` is that of prices, `free` the number of levels named by users."""
    if isinstance(node, Mapping):
        unit = unit if free else str(node.get("unit") or node.get("cost_unit") or unit)
        for name, part in node.items():
            repeats = name in ("total_min", "total_max") and part == node.get("total")  # one change would be three
            if not free and (name in leave or repeats):
                continue
            has_parts = isinstance(part, Mapping | list | tuple)
            inner = path if name in TRANSPARENT and has_parts and not free else _join(path, str(name))
            below = free - 1 if free else NAMED_BY_USERS.get(name, 0)
            yield from _walk(part, inner, key if key in OF_ALL_BELOW else str(name), unit, leave, below)
    elif isinstance(node, list | tuple) and any(isinstance(item, Mapping) for item in node):
        for place, item in enumerate(node):
            own = {name: item[name] for name in IDENTIFY if isinstance(item.get(name), str)}
            parts = [part for part in own.values() if part not in path.split("/")] if own else [str(place)]
            yield from _walk(item, _join(path, *parts), key, unit, leave | set(own))
    elif node is not None and node not in ([], ()):
        yield path, Figure(_value(node), _unit(key, unit) if not isinstance(node, str | bool) else "")


def _join(*parts: str) -> str:
    return "/".join(part for part in parts if part)


def _value(node: Any) -> Value:
    if isinstance(node, bool | int | str):
        return node
    if isinstance(node, list | tuple):
        return ", ".join(str(_value(item)) for item in node)
    if isinstance(node, float) and math.isfinite(node):
        shown = float(f"{node:.{DIGITS}g}")
        return int(shown) if shown.is_integer() else shown
    return str(node)


def _unit(key: str, unit: str) -> str:
    if key in ("operations", "counts"):
        return "operations"
    if key in PRICED or key.startswith(("total", "cost")):
        return unit
    return next((UNITS[word] for word in key.split("_") if word in UNITS), "")


# ---- figures of each command


def of_cost(report: Mapping[str, Any], variant: str, cores: str) -> Taken:
    """Return the figures of `sensorsim cost`, its accuracy parameters, and the machine code on the cores."""
    figures = figures_of(report, COST_CHOICES)
    if not cores:
        return Taken(figures | accuracy_parameters(report["n"]), toolchain())
    from sensorsim.machine.machine_cost import machine_cost

    _need_tools()
    machine = of_machine(machine_cost(report["n"], report["l"], cores.split(","), variant).to_dict())
    return Taken(figures | machine.figures, machine.toolchain)


def of_machine(report: Mapping[str, Any]) -> Taken:
    """Return the figures of `sensorsim cost --level machine`, and the accuracy parameters."""
    figures = _below_machine(figures_of(report, COST_CHOICES, leave={"kernel", "counts", "paper_width"}))
    return Taken(figures | accuracy_parameters(report["n"]), toolchain(report["compiler"], report["flags"]))


def of_verify(report: Mapping[str, Any]) -> Taken:
    """Return the figures of `sensorsim verify`."""
    return Taken(figures_of(report), toolchain(report["compiler"], report["flags"]))


def of_kernel(report: Mapping[str, Any], machine: Mapping[str, Any]) -> Taken:
    """Return the figures of `sensorsim kernel`, with `machine`, the machine code on cores."""
    kernels = report["kernels"].values()
    counted = [price for kernel in kernels for price in kernel["cost"].values()]
    counted += [part for of_core in machine.values() for part in of_core.values()]
    counted += [row for kernel in kernels for row in kernel["verified"]]
    compilers = dict.fromkeys(str(part["compiler"]) for part in counted if "compiler" in part)
    return Taken(figures_of(report) | _below_machine(figures_of(machine)), toolchain("; ".join(compilers)))


def toolchain(compiler: str = "", flags: str = "") -> dict[str, str]:
    """Return the version of this program, and the compiler if machine code was counted."""
    from sensorsim import __version__

    made = {"sensorsim": __version__, "compiler": compiler, "flags": flags}
    return {name: text for name, text in made.items() if text}


def _below_machine(figures: Figures) -> Figures:
    return {f"machine/{name}": figure for name, figure in figures.items()}


# ---- machine code on cores


def machine_code(reports: Mapping[str, "KernelReport"], cores: str) -> dict[str, Any]:
    """Return the machine code of all proved kernels on the cores, by core."""
    from sensorsim.costing.prices import load_cpu
    from sensorsim.machine.machine_cost import count_kernel

    found: dict[str, Any] = {}
    if cores:
        _need_tools()
    for core in cores.split(",") if cores else ():
        found[core] = {}
        for name, report in reports.items():
            if report.proof is not None:
                counted = count_kernel(report.kernel, report.at, core)
                if not counted:
                    raise InputError(f"there is no machine code for {core[:40]}; write the lock anew.")
                found[core][name] = {"unit": load_cpu(core).unit, **counted}
    return found


def kernel_cores(cpus: Sequence[str]) -> str:
    """Return the cores whose machine code a lock of `kernel` has; the paper's processor alone stands for CORES."""
    return ",".join(filter(_has_machine_code, CORES if list(cpus) == ["k7"] else cpus))


def cost_cores(cpu: str | None, chip: str | None) -> str:
    """Return the cores whose machine code a lock of `cost` has, with commas; none if the tools are not installed."""
    from sensorsim.costing.chips import load_chip

    chosen = cpu or (load_chip(chip).cpu if chip else None)
    names = [chosen] if chosen else CORES
    return ",".join(names) if all(map(_has_machine_code, names)) else ""


def _has_machine_code(name: str) -> bool:
    from sensorsim.machine.machine_cost import find_target

    try:
        _need_tools()
        find_target(name)
    except InputError:
        return False
    return True


def _need_tools() -> None:
    from sensorsim.machine.targets import need_firmware_tools

    try:
        need_firmware_tools()
    except InputError as error:
        raise InputError(f"the lock has figures of machine code: {error}") from None


# ---- accuracy parameters


def accuracy_parameters(n: int) -> Figures:
    """Return what decides the accuracy of a record: formats, tables, the default encoder and sensor for n features."""
    from sensorsim.kernels import formats
    from sensorsim.language.types import Q

    kinds = {name: value for name, value in vars(formats).items() if isinstance(value, Q)}
    shown = {name: f"{q.storage}, {q.frac_bits} fraction bits, {q.lo} … {q.hi}" for name, q in kinds.items()}
    tables = {"exp": formats.EXP_TABLE, "sigmoid": formats.SIGMOID_TABLE}
    sized = {
        name: {"entries": len(table), "sha256": _sha256(",".join(map(str, table)).encode("ascii"))}
        for name, table in tables.items()
    }
    return figures_of({"parameters": {"formats": shown, "tables": sized, "encoder": _encoder(), "sensor": _sensor(n)}})


def _encoder() -> dict[str, Any]:
    from sensorsim.encoders import DEFAULT
    from sensorsim.tables import folder

    content = (folder() / "encoders" / f"{DEFAULT}.json").read_bytes()
    found = json.loads(content)
    return {
        "sha256": _sha256(content),
        "formats": {name: f"{q['storage']}, {q['frac_bits']} fraction bits" for name, q in found["formats"].items()},
        "sigmoid_table_bits": found["sigmoid_table_bits"],
        "features": len(found["columns"]),
        "hidden_units": len(found["weights"]),
    }


def _sensor(n: int) -> dict[str, Any]:
    from sensorsim.codegen.sensor_package import default_table
    from sensorsim.device.firmware import Firmware

    firmware = Firmware(replace(default_table(), features=n))
    table, proved, gives = firmware.table, firmware.certificate, firmware.table.delivered()
    name, values = table.c_array()
    return {
        "kind": table.kind,
        "kernel": firmware.kernel.name,
        "identity": firmware.identity.hex(),
        "released": table.release,
        "nominal_epsilon": str(table.epsilon),
        "certified_epsilon": str(proved.epsilon_record),
        "certified_delta": str(proved.delta_record),
        "worst_sd": gives.estimate_sd,
        "mean_sd": gives.estimate_sd_mean,
        "on_air_bits": gives.bits_on_air,
        "packet_bits": firmware.layout.bits,
        **{each: getattr(gives, each) for each in ("secret_bits", "value_bits", "table_bytes")},
        "constants": dict(table.c_constants()),
        "entries": {name: len(values)},
    }


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
