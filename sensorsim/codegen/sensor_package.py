"""A package of a private sensor: every file of it, with its README."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError
from sensorsim._util.terminal import counted
from sensorsim.codegen.encoder import ENCODER, encoder_file, encoder_record, trained_line
from sensorsim.codegen.golden import golden_json, golden_vectors, kernel_selftest_header, kernel_selftest_source
from sensorsim.codegen.kernel_sources import kernel_sources
from sensorsim.codegen.misra import misra_report
from sensorsim.codegen.noise_constants import read_noise
from sensorsim.codegen.package_options import Options
from sensorsim.codegen.sensor import SensorCode
from sensorsim.codegen.sensor_test import sensor_selftest
from sensorsim.codegen.sensor_words import about, protects
from sensorsim.codegen.sketch import SKETCH, sketch_record
from sensorsim.codegen.write import SCHEMA, facts, in_temporary_folder, json_text, template, with_manifest
from sensorsim.device.firmware import Firmware
from sensorsim.device.pace import pace_wait
from sensorsim.device.sketch_file import read_sketch, sketch_text
from sensorsim.device.status import Status
from sensorsim.encoders import read_encoder
from sensorsim.kernels import health
from sensorsim.language.c.comments import ascii_text, comment
from sensorsim.machine.emulated_sensor import CALLS, SensorCost, sensor_costs
from sensorsim.machine.machine_cost import PREFIX
from sensorsim.machine.targets import SHOWN_FLAGS, TARGETS, compiler_version
from sensorsim.noise.table_file import table_bytes

if TYPE_CHECKING:
    from sensorsim.noise.noise_table import NoiseTable

ADVICE = {
    Status.OK: "send the packet",
    Status.SPENT: "wait for the next period",
    Status.NO_ENTROPY: "look at the random generator; nothing is released without it",
    Status.NO_STORE: "try again later; if it stays, the memory is worn",
    Status.BAD_JOURNAL: "stay silent; to erase both slots starts anew, budget included",
    Status.BAD_CLOCK: "set the clock and open again",
    Status.NOT_OPEN: "call open first",
}


def sensor_readme(code: SensorCode, vectors: int, costs: Sequence[SensorCost]) -> str:
    """Return the README of a sensor's package, with what was measured for it."""
    firmware, prefix = code.firmware, code.prefix
    days = firmware.budget_days
    fill = {
        "ABOUT": about(firmware),
        "PROTECTS": protects(firmware) + (trained_line(firmware.encoder) if firmware.encoder else ""),
        "VERSION": version("sensorsim"),
        "RECEIVE_MORE": _beside(code),
        "BUDGET": counted(firmware.releases, "release"),
        "EPOCH": "day" if days == 1 else f"{days} days",
        "STATUS": "\n".join(f"| `{prefix.upper()}{one.name}` | {one.about} | {ADVICE[one]} |" for one in Status),
        "LOST": counted(firmware.reserve, "release"),
        "START_UP": str(health.START_UP),
        "CLAIMED_BITS": str(health.CLAIMED_BITS),
        "LONGEST_CYCLE": str(health.LONGEST_CYCLE),
        "BUDGET_EPSILON": str(firmware.budget),
        "EPSILON": str(firmware.epsilon),
        "PACKET_BYTES": str(firmware.layout.bytes),
        "FIELDS": "\n".join(f"| {at} | {bits} | {_field(what, code)} |" for what, at, bits in firmware.layout.fields()),
        "CODE": str(firmware.layout.code),
        "IDENTITY": f"{firmware.layout.identity:04X}",
        "VALUES": _values(code),
        "COMPILER": f"{compiler_version()}, {SHOWN_FLAGS}",
        "COSTS": _costs(costs, prefix),
        "TIMING": "\n".join(_timing(code)),
        "VECTORS": str(vectors),
        "NAMESPACE": prefix.rstrip("_"),
        "MACRO": prefix.upper(),
        "PREFIX": prefix,
    }
    return template("sensor/README.md", fill=fill)


def _beside(code: SensorCode) -> str:
    """Return the option that `sensorsim receive` needs beside the table."""
    if code.firmware.sketch is not None:
        return f" --sketch {SKETCH}"
    return f" --encoder {code.firmware.encoder.name}" if code.firmware.encoder else ""


def _field(what: str, code: SensorCode) -> str:
    return "number of the direction" if code.firmware.sketch and what == "features" else what


def _values(code: SensorCode) -> str:
    """Say how a hospital makes an unbiased value of what is in a packet."""
    remark = ascii_text(" ".join(code.firmware.table.c_remark()))
    sketch = code.firmware.sketch
    if sketch is None:
        return remark
    return f"{remark} Here x is the square over R^2, R = {sketch.root:.9g}, cut off at 1."


def _costs(costs: Sequence[SensorCost], prefix: str) -> str:
    lines = [
        "| core | call | instructions | cost | stack, bytes |",
        "|---|---|---|---|---|",
    ]
    for cost in costs:
        for call in cost.calls:
            price = f"{call.cost:.0f} {call.unit}" if call.cost is not None else "no price"
            name = f"`{prefix}sensor_{call.call.split(',')[0]}`" + call.call[len(call.call.split(",")[0]) :]
            lines.append(
                f"| {TARGETS[cost.target].title} | {name} | {call.instructions:.0f} | {price} | {call.stack_bytes} |"
            )
    assert all(tuple(call.call for call in cost.calls) == CALLS for cost in costs)
    sizes = ", ".join(f"{TARGETS[cost.target].title} {cost.flash_bytes}" for cost in costs)
    rams = sorted({cost.ram_bytes for cost in costs})
    lines += [
        "",
        f"Code and tables in bytes: {sizes}. An `{prefix}sensor` takes {' or '.join(map(str, rams))} bytes of RAM.",
    ]
    return "\n".join(lines)


def _timing(code: SensorCode) -> list[str]:
    return [
        f"- `{code.names.functions[kernel]}`: {ascii_text(kernel.secrecy().statement)}."
        for kernel in code.kernels
        if kernel.secrecy().secrets
    ]


DEFAULT_EPSILON = 1.6  # of the ready table that a sensor gets without --noise
PORTS = (
    "ports/ss_pace.h",
    "ports/host/ss_port_host.c",
    "ports/host/ss_port_host.h",
    "ports/template/ss_port_board.c",
    "ports/template/ss_port_board.h",
    "ports/zephyr/ss_port_zephyr.c",
    "ports/zephyr/ss_port_zephyr.h",
    "examples/host/main.c",
)
TABLE = "hospital/table.txt"  # what `sensorsim receive` needs
BUILD = ("CMakeLists.txt", "Makefile", "zephyr/CMakeLists.txt", "zephyr/Kconfig", "zephyr/module.yml", "library.json")


def firmware_of(options: Options) -> Firmware:
    """Return the firmware of these options, with the proof of its table."""
    if options.encoder and options.sketch:
        raise InputError("a sensor releases hidden units or a sketch; leave out --encoder or --sketch.")
    encoder = read_encoder(options.encoder) if options.encoder else None
    if encoder is not None and options.noise is None:
        raise InputError("--encoder needs a table for its hidden units; make one with --features and give --noise.")
    sketch = read_sketch(options.sketch) if options.sketch else None
    table = read_noise(options.noise, allow_uncertified=False) if options.noise else default_table()
    return Firmware(
        table,
        encoder,
        options.budget_epsilon,
        1 if options.budget_days is None else options.budget_days,
        1 if options.reserve is None else options.reserve,
        options.packet_numbers,
        sketch,
    )


def default_table() -> "NoiseTable":
    """Return the table of a sensor without --noise: one of 14 features, by rows."""
    from sensorsim.noise.noise_table import ready_table

    return ready_table(DEFAULT_EPSILON, 1)


def default_sensor_costs(n: int, targets: Sequence[str]) -> list[SensorCost]:
    """Run the default sensor for records of n features on these targets and count."""
    firmware = Firmware(replace(default_table(), features=n))
    return sensor_costs(firmware, SensorCode(firmware, PREFIX).sources(""), PREFIX, targets)


def sensor_package(options: Options) -> dict[str, str]:
    """Return every file of a sensor's package by its path."""
    firmware, prefix = firmware_of(options), options.prefix
    name = options.noise.name if options.noise else f"rows-eps{DEFAULT_EPSILON}-1.txt"
    code = SensorCode(firmware, prefix, name)
    lines = [options.command, f"SPDX-License-Identifier: {options.spdx}"]
    banner = "".join(comment([line]) + "\n" for line in lines)
    texts = code.sources(banner)
    vectors = golden_vectors(code.kernels)
    texts |= sensor_selftest(code, banner)
    texts[f"test/{prefix}selftest_kernels.c"] = banner + kernel_selftest_source(vectors, code.names)
    texts[f"test/{prefix}selftest_kernels.h"] = banner + kernel_selftest_header(prefix, vectors)
    texts["test/main.c"] = banner + template("main.c", prefix)
    texts["test/golden.json"] = json_text({"schema_version": SCHEMA, "vectors": golden_json(vectors, code.names)})
    texts |= {path.replace("ss_", prefix): banner + template(f"sensor/{path}", prefix) for path in PORTS}
    texts |= _build_files(texts, code, options, lines)
    texts[TABLE] = table_bytes(code.table).decode("ascii")
    if firmware.encoder is not None:
        texts[ENCODER] = encoder_file(firmware.encoder)
    if firmware.sketch is not None:
        texts[SKETCH] = sketch_text(firmware.sketch)
    with ThreadPoolExecutor(1) as pool:  # both wait for other programs
        checking = pool.submit(in_temporary_folder, dict(texts), misra_report)
        costs = sensor_costs(firmware, texts, prefix)
        misra, findings = checking.result()
    mark = f"<!-- {options.command} -->\n"
    texts["MISRA.md"] = mark + misra
    texts["README.md"] = mark + sensor_readme(code, len(vectors), costs)
    sources = kernel_sources(code.kernels, code.names)
    texts |= sources.copies
    data = facts(code.kernels, options, code.tables, sources)
    data |= {
        "private": True,
        "sensor": _record(firmware),
        "noise_table": code.noise.record,
        "encoder": encoder_record(firmware.encoder) if firmware.encoder else None,
        "sketch": sketch_record(firmware.sketch, options.sketch.name) if firmware.sketch and options.sketch else None,
        "sizes": {
            "compiler": compiler_version(),
            "flags": SHOWN_FLAGS,
            "by_core": [cost.to_dict() for cost in costs],
        },
        "misra_findings": findings,
    }
    return with_manifest(texts, data, options, f"{prefix}sensor")


def _record(firmware: Firmware) -> dict[str, Any]:
    """Return the part of the manifest about the sensor."""
    layout = firmware.layout
    return {
        "epsilon_of_a_release": str(firmware.epsilon),
        "budget_epsilon": str(firmware.budget),
        "budget_days": firmware.budget_days,
        "releases": firmware.releases,
        "reserve": firmware.reserve,
        "identity_sha256": firmware.identity.hex(),
        "packet": {
            "bytes": layout.bytes,
            "fields": [{"what": what, "first_bit": at, "bits": bits} for what, at, bits in layout.fields()],
        },
    }


def _build_files(texts: dict[str, str], code: SensorCode, options: Options, lines: Sequence[str]) -> dict[str, str]:
    prefix, firmware = options.prefix, code.firmware
    remark = "".join(f"# {line}\n" for line in lines)
    fill = {
        "VERSION": version("sensorsim"),
        "SOURCES": " ".join(sorted(p for p in texts if p.startswith("src/") and p.endswith(".c"))),
        "TEST_SOURCES": " ".join(sorted(p for p in texts if p.startswith("test/") and p.endswith(".c"))),
        "NAMESPACE": prefix.rstrip("_"),
        "PREFIX": prefix,
        "LIBRARY": f"{prefix}sensor".replace("_", "-"),
        "BUDGET": str(firmware.releases),
        "BUDGET_DAYS": str(firmware.budget_days),
        "PACE_WAIT": str(pace_wait(firmware.budget_days)),
        "RESERVE": str(firmware.reserve),
        "SPDX": options.spdx,
        "DESCRIPTION": "A private sensor: records go in, packets that protect them come out.",
    }
    found = {}
    for path in BUILD:
        text = template(f"sensor/project/{path}", prefix, fill)
        found[path] = text if path.endswith(".json") else remark + text
    return found
