"""Every file of a sensor's package."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from sensorsim.device.firmware import Firmware
from sensorsim.device.pace import pace_wait
from sensorsim.device.sketch_file import read_sketch, sketch_text
from sensorsim.encoders import read_encoder
from sensorsim.errors import InputError
from sensorsim.export.choose import Options
from sensorsim.export.encoder import ENCODER, encoder_file, encoder_record
from sensorsim.export.files import SCHEMA, facts, json_text, template, with_manifest
from sensorsim.export.golden import golden_json, golden_vectors, kernel_selftest_header, kernel_selftest_source
from sensorsim.export.misra import misra_report
from sensorsim.export.noise import read_noise
from sensorsim.export.origins import origins
from sensorsim.export.sensor import SensorCode
from sensorsim.export.sensor_readme import sensor_readme
from sensorsim.export.sensor_test import sensor_selftest
from sensorsim.export.sketch import SKETCH, sketch_record
from sensorsim.export.write import in_temporary_folder
from sensorsim.language.c.text import comment
from sensorsim.machine.emulated_sensor import SensorCost, sensor_costs
from sensorsim.machine.machine_cost import PREFIX
from sensorsim.machine.targets import SHOWN_FLAGS, compiler_version
from sensorsim.privacy.tablefile import table_bytes

if TYPE_CHECKING:
    from sensorsim.privacy.tables import NoiseTable

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
    """What the options bind, proved."""
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
    """What a sensor releases through where no table is given: one feature of 14 by rows."""
    from sensorsim.privacy.tables import ready_table

    return ready_table(DEFAULT_EPSILON, 1)


def default_sensor_costs(n: int, targets: Sequence[str]) -> list[SensorCost]:
    """Run the default sensor for records of n features on these targets and count."""
    firmware = Firmware(replace(default_table(), features=n))
    return sensor_costs(firmware, SensorCode(firmware, PREFIX).sources(""), PREFIX, targets)


def sensor_package(options: Options) -> dict[str, str]:
    """Every file by its path."""
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
    sources = origins(code.kernels, code.names)
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
    """What the manifest says of the sensor."""
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
