"""A package of a private sensor: its C, build files, README and every other file.

Every constant is bound here: nothing is left that an application could set to what the certificate does not cover. The
thin layer of the port is a template, everything else is made from the kernels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError
from sensorsim.codegen.golden import sensor_selftest
from sensorsim.codegen.package_options import Options
from sensorsim.codegen.package_tables import (
    CENTRE,
    ENCODER,
    SENSOR_NOISE,
    SKETCH,
    SKETCH_CONSTANTS,
    Noise,
    encoder_file,
    encoder_record,
    encoder_tables,
    for_package,
    read_noise,
    sketch_macro,
    sketch_record,
    sketch_table,
    trained_line,
)
from sensorsim.codegen.rendering import template
from sensorsim.codegen.write import banner_lines, banner_of, finish
from sensorsim.device.firmware import Firmware
from sensorsim.device.pace import pace_wait
from sensorsim.device.sketch_file import read_sketch, sketch_text
from sensorsim.device.status import Status
from sensorsim.encoders import read_encoder
from sensorsim.kernels import checksum, generator, health, journal, packet, sensor, sketch
from sensorsim.kernels.encoder import encoder as encoder_kernel
from sensorsim.language.c.comments import fold, with_prefix
from sensorsim.language.c.declarations import Table, header_of, known_tables, members
from sensorsim.language.c.helpers import HOLDS
from sensorsim.language.c.identifiers import Names
from sensorsim.language.c.translation_units import c_sources
from sensorsim.language.kernel import Kernel, reachable
from sensorsim.machine.emulated_sensor import SensorCost, sensor_costs
from sensorsim.machine.machine_cost import PREFIX
from sensorsim.machine.targets import TARGETS
from sensorsim.noise.table_file import table_bytes

if TYPE_CHECKING:
    from sensorsim.noise.noise_table import NoiseTable

# Kernels that are verified one by one where a sensor uses them, before the release and after it.
BEFORE = (
    *(generator.absorb, generator.fresh_words, health.watch, health.watch_patterns),
    *(journal.read_journal, journal.write_slot, journal.spend, encoder_kernel, sketch.direction, sketch.sketch),
)
AFTER = (
    *(packet.pack_head, packet.pack_number, packet.pack_chosen, sketch.pack_direction),
    *(packet.pack_symbols, packet.pack_values),
)
STEPS = (sensor.open_sensor, sensor.count_release, sensor.left, sensor.close_sensor, sensor.wipe)
ADVICE = {
    Status.OK: "send the packet",
    Status.SPENT: "wait for the next period",
    Status.NO_ENTROPY: "look at the random generator; nothing is released without it",
    Status.NO_STORE: "try again later; if it stays, the memory is worn",
    Status.BAD_JOURNAL: "stay silent; to erase both slots starts anew, budget included",
    Status.BAD_CLOCK: "set the clock and open again",
    Status.NOT_OPEN: "call open first",
}
DEFAULT_EPSILON = 1.6  # of the ready table that a sensor gets without --noise
PORTS = (
    *("ports/ss_pace.h", "ports/host/ss_port_host.c", "ports/host/ss_port_host.h"),
    *("ports/template/ss_port_board.c", "ports/template/ss_port_board.h"),
    *("ports/zephyr/ss_port_zephyr.c", "ports/zephyr/ss_port_zephyr.h", "examples/host/main.c"),
)
BUILD = ("CMakeLists.txt", "Makefile", "zephyr/CMakeLists.txt", "zephyr/Kconfig", "zephyr/module.yml", "library.json")


@dataclass(frozen=True)
class SensorCode:
    """The C of one firmware under one prefix."""

    firmware: Firmware
    prefix: str = "ss_"
    table_name: str = "the noise table"

    @cached_property
    def kernels(self) -> list[Kernel]:
        """Return the kernels that have golden vectors and are verified one by one."""
        used = set(reachable(self.steps))
        before, after = ([one for one in some if one in used] for some in (BEFORE, AFTER))
        return [*before, self.firmware.kernel, *after]

    @cached_property
    def steps(self) -> list[Kernel]:
        """Return the kernels that the thin layer calls."""
        draw = self.firmware.draw
        return [*STEPS, draw.draw_release, *([] if draw.start is None else [draw.start])]

    @cached_property
    def table(self) -> "NoiseTable":
        """Return the table with its proof; of a sketch, which is one number, the table is for one feature."""
        table, one = self.firmware.table, self.firmware.sketch is not None
        return replace(table, certificate=self.firmware.certificate, features=1 if one else table.features)

    @cached_property
    def noise(self) -> Noise:
        return for_package(self.table_name, self.table, [self.firmware.kernel], self.prefix)

    @cached_property
    def flash(self) -> list[tuple[Kernel, str]]:
        """Return the parameters that constant tables are bound to."""
        firmware, draw = self.firmware, self.firmware.draw.draw_release
        bound = [(one, self.noise.parameter) for one in (firmware.kernel, draw) if self.noise.table.values]
        bound += [(one, name) for one in (encoder_kernel, draw) for name in ("weights", "bias") if firmware.encoder]
        return bound + [(one, CENTRE) for one in (sketch.sketch, draw) if firmware.sketch]

    @cached_property
    def names(self) -> Names:
        """Return the C names of everything in the package."""
        return Names([*self.kernels, *self.steps], self.prefix, self.flash, private=True)

    @cached_property
    def tables(self) -> list[Table]:
        """Return every constant array of the package."""
        firmware = self.firmware
        bound = [(kernel, name) for kernel, name in self.flash if kernel in self.kernels]
        own = replace(self.noise.table, flash=bool(self.noise.table.values))
        beside = encoder_tables(firmware.encoder, self.prefix) if firmware.encoder else []
        beside += [sketch_table(firmware.sketch, self.prefix)] if firmware.sketch else []
        return [*known_tables(self.kernels, self.prefix, bound), own, *(replace(one, flash=True) for one in beside)]

    def sources(self, banner: str) -> dict[str, str]:
        """Return every file below include/ and src/."""
        prefix, firmware, names = self.prefix, self.firmware, self.names
        called = [*self.kernels, *self.steps]
        texts = c_sources(called, prefix, self.tables, banner, private=True, flash=self.flash)
        del texts[f"src/{header_of(firmware.draw.record, prefix)}"]  # the public header has it
        values = {
            **self.values,
            "time": with_prefix(HOLDS, prefix),
            "slot_bytes": journal.SLOT_BYTES,
            "members": members(firmware.draw.record, prefix),
            "headers": sorted({names.header(kernel) for kernel in called} | {f"{prefix}tables.h"}),
            "crc": names.tables[journal.read_journal, "crc"],
            "crc_size": len(checksum.CRC.contents or ()),
            "draw": self._draw(),
            "start": names.functions[firmware.draw.start] if firmware.draw.start else None,
        }
        for path in ("include/ss_sensor.h", "src/ss_guard.h", "src/ss_sensor.c"):
            texts[path.replace("ss_", prefix)] = banner + template(f"sensor/{path}", prefix, **values)
        return dict(sorted(texts.items()))

    @property
    def values(self) -> dict[str, Any]:
        """Return what the templates of header and README share."""
        return {"code": self, "firmware": self.firmware, "Status": Status, "health": health}

    def _draw(self) -> str:
        """Return the call of the firmware's draw, with every constant."""
        draw, known = self.firmware.draw.draw_release, dict(self.noise.constants)
        known |= {self.noise.parameter: self.noise.table.name} if self.noise.table.values else {}
        if self.firmware.encoder is not None:
            known |= {name: f"{self.prefix}encoder_{name}" for name in ("weights", "bias")}
            known["sigmoid"] = self.names.tables[encoder_kernel, "table"]
        if self.firmware.sketch is not None:
            known |= {name: sketch_macro(name, self.prefix) for name in SKETCH_CONSTANTS}
            known[CENTRE] = f"{self.prefix}sketch_{CENTRE}"
        own = [name for name in draw.parameters if "." not in name]
        passed = ["sensor", *(known.get(name, name) for name in own)]
        return fold(f"    {self.names.functions[draw]}({', '.join(passed)});")


def firmware_of(options: Options) -> Firmware:
    """Return the firmware of these options, with the proof of its table."""
    if options.encoder and options.sketch:
        raise InputError("a sensor releases hidden units or a sketch; leave out --encoder or --sketch.")
    encoder = read_encoder(options.encoder) if options.encoder else None
    if encoder is not None and options.noise is None:
        raise InputError("--encoder needs a table for its hidden units; make one with --features and give --noise.")
    sketched = read_sketch(options.sketch) if options.sketch else None
    table = read_noise(options.noise, allow_uncertified=False) if options.noise else default_table()
    days, reserve = (1 if number is None else number for number in (options.budget_days, options.reserve))
    return Firmware(table, encoder, options.budget_epsilon, days, reserve, options.packet_numbers, sketched)


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
    lines = banner_lines(options)
    banner, encoder, layout = banner_of(lines), firmware.encoder, firmware.layout
    texts = code.sources(banner) | sensor_selftest(code, banner)
    texts |= {path.replace("ss_", prefix): banner + template(f"sensor/{path}", prefix) for path in PORTS}
    texts |= _build_files(texts, firmware, options, "".join(f"# {line}\n" for line in lines))
    texts[SENSOR_NOISE] = table_bytes(code.table).decode("ascii")
    if encoder is not None:
        texts[ENCODER] = encoder_file(encoder)
    if firmware.sketch is not None:
        texts[SKETCH] = sketch_text(firmware.sketch)

    def measure(texts: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
        costs = sensor_costs(firmware, texts, prefix)
        days = firmware.budget_days
        return {
            **code.values,
            "advice": ADVICE,
            "costs": costs,
            "epoch": "day" if days == 1 else f"{days} days",
            "namespace": prefix.rstrip("_"),
            "sketch_file": SKETCH,
            "titles": {cost.target: TARGETS[cost.target].title for cost in costs},
            "trained": trained_line(encoder) if encoder else "",
        }, {"by_core": [cost.to_dict() for cost in costs]}

    fields = [{"what": what, "first_bit": at, "bits": bits} for what, at, bits in layout.fields()]
    own = {
        "private": True,
        "sensor": {
            "epsilon_of_a_release": str(firmware.epsilon),
            "budget_epsilon": str(firmware.budget),
            "budget_days": firmware.budget_days,
            "releases": firmware.releases,
            "reserve": firmware.reserve,
            "identity_sha256": firmware.identity.hex(),
            "packet": {"bytes": layout.bytes, "fields": fields},
        },
        "noise_table": code.noise.record,
        "encoder": encoder_record(encoder) if encoder else None,
        "sketch": sketch_record(firmware.sketch, options.sketch.name) if firmware.sketch and options.sketch else None,
    }
    return finish(options, code.kernels, code.names, code.tables, texts, measure, "sensor/README.md", own)


def _build_files(texts: dict[str, str], firmware: Firmware, options: Options, remark: str) -> dict[str, str]:
    prefix = options.prefix
    tests = [*(path for path in texts if path.startswith("test/") and path.endswith(".c")), "test/main.c"]
    values = {
        "firmware": firmware,
        "sources": " ".join(sorted(path for path in texts if path.startswith("src/") and path.endswith(".c"))),
        "test_sources": " ".join(sorted([*tests, f"test/{prefix}selftest_kernels.c"])),
        "namespace": prefix.rstrip("_"),
        "library": f"{prefix}sensor".replace("_", "-"),
        "pace_wait": pace_wait(firmware.budget_days),
        "spdx": options.spdx,
    }
    made = {path: template(f"sensor/project/{path}", prefix, **values) for path in BUILD}
    return {path: text if path.endswith(".json") else remark + text for path, text in made.items()}
